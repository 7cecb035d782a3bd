"""The bodies of requests that set the server up. A key goes in, and never comes back."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, SecretStr

from dragoman.server.bodies import Body

_Text = Annotated[str, Field(max_length=4000)]
_Texts = Annotated[dict[Annotated[str, Field(max_length=200)], _Text], Field(max_length=50)]
Secret = Annotated[SecretStr, Field(min_length=1, max_length=20_000)]


class NewKey(Body):
    key: Annotated[Secret, Field(description="it is stored, and never sent back")]


class NewProvider(Body):
    """A server of one's own, that speaks one of the known protocols."""

    name: Annotated[str, Field(max_length=60, examples=["my-server"])]
    base_url: Annotated[str, Field(max_length=2000, examples=["http://127.0.0.1:8000/v1"])]
    wire: Literal["openai_chat", "openai_responses", "anthropic_messages", "gemini"] = "openai_chat"
    key: Annotated[Secret | None, Field(description="without one, requests carry none")] = None


class NewServer(Body):
    """An MCP server: a program to be started, or an address."""

    name: Annotated[str, Field(max_length=60, examples=["files"])]
    command: Annotated[_Text | None, Field(description="the program, without its arguments")] = None
    args: Annotated[list[_Text], Field(max_length=100)] = Field(default_factory=list)
    env: Annotated[_Texts, Field(description="what looks like a secret is stored as a key is")] = Field(
        default_factory=dict
    )
    cwd: _Text | None = None
    url: Annotated[_Text | None, Field(description="where it answers, if it is no program")] = None
    headers: Annotated[_Texts, Field(description="what looks like a secret is stored as a key is")] = Field(
        default_factory=dict
    )
    sse: Annotated[bool, Field(description="of an older server")] = False
    oauth: Annotated[bool, Field(description="it wants a sign-in in the browser")] = False


class ConfirmedServer(NewServer):
    confirm: Annotated[str, Field(max_length=200, description="from the plan that was shown")]


_Words = Annotated[str, Field(min_length=1, max_length=2200)]
_Rules = Annotated[list[_Words], Field(max_length=200, examples=[["files.read", "shell:git *"]])]


class AgentBody(Body):
    """What an agent is, as the settings have it. What is left out is as for everybody."""

    description: Annotated[_Text, Field(description="what it is good at: other agents read this")] = ""
    prompt: Annotated[str, Field(max_length=100_000, description="after the general system prompt")] = ""
    model: Annotated[str | None, Field(max_length=300, examples=["ollama/qwen3"])] = None
    tools: Annotated[
        list[_Words] | None, Field(max_length=500, description="groups and tools; without it, all of them")
    ] = None
    allow: _Rules = Field(default_factory=list)
    ask: _Rules = Field(default_factory=list)
    deny: _Rules = Field(default_factory=list)


class SkillBody(Body):
    """What a skill says, as its `SKILL.md` has it. What else stands in the front matter stays."""

    description: Annotated[_Text, Field(min_length=1, description="what the model sees before it loads it")]
    when: Annotated[_Text, Field(description="when it is to be used")] = ""
    always: Annotated[bool, Field(description="its text is in the system prompt of every turn")] = False
    text: Annotated[str, Field(min_length=1, max_length=200_000, description="Markdown")]
    version: Annotated[
        str | None,
        Field(max_length=100, description="of what is changed; a new one has none"),
    ] = None


class Returned(Body):
    """What a browser came back with from where it signed in, as it stood in the address."""

    state: Annotated[str, Field(max_length=2000)]
    code: Annotated[str | None, Field(max_length=10_000)] = None
    iss: Annotated[str | None, Field(max_length=2000)] = None
    error: Annotated[str | None, Field(max_length=200)] = None
    error_description: Annotated[str | None, Field(max_length=10_000)] = None
