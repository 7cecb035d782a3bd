"""The bodies of requests, checked before anything is done with them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from dragoman.messages.parts import Arguments, File, Text
from dragoman.messages.questions import Rule, Scope, Verdict


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


Title = Annotated[str, Field(max_length=500, examples=["Tidy up my notes"])]
Settings = Annotated[
    dict[str, JsonValue],
    Field(examples=[{"mode": "ask", "tools": {"files": False}}], max_length=20),
]


class NewConversation(Body):
    title: Title | None = None
    settings: Settings = {}


class ConversationChange(Body):
    """What is to be different. In `settings`, null takes one away."""

    title: Title | None = None
    settings: Settings | None = None
    leaf: Annotated[str | None, Field(description="a message: look at its branch")] = None


class Fork(Body):
    message: Annotated[str, Field(description="the last message of the copy")]


class SendBody(Body):
    """What a person says: a text, or texts and files."""

    text: Annotated[str | None, Field(examples=["What is 17 * 23?"])] = None
    parts: list[Annotated[Text | File, Field(discriminator="type")]] | None = None

    def content(self) -> str | list[Text | File]:
        return self.parts if self.parts is not None else self.text or ""


class NewTurn(SendBody):
    parent: Annotated[str | None, Field(description="the message to answer to, if not the leaf")] = None
    queue: Annotated[bool, Field(description="wait for the turn that runs, instead of being refused")] = False
    model: str | None = None
    agent: str | None = None
    mode: Literal["auto", "ask", "manual", "off"] | None = None
    options: dict[str, JsonValue] = {}


class Again(Body):
    model: str | None = None


class Cancel(Body):
    reason: str = ""


class Decision(Body):
    """What a person decided. Which verdicts fit depends on the kind of question."""

    verdict: Verdict
    scope: Scope = "once"
    arguments: Annotated[Arguments | None, Field(description="run with these instead")] = None
    rules: Annotated[list[Rule], Field(description="the rules to keep, of those the question offers")] = []
    reason: Annotated[str | None, Field(max_length=10_000, description="for the model to read")] = None
    value: Annotated[JsonValue, Field(description="the reply to a tool, or the text to release instead")] = (
        None
    )
    hash: Annotated[str | None, Field(description="of the arguments that were seen: checked if given")] = None


class Result(Body):
    """What came of a call that the client ran."""

    text: str | None = None
    value: JsonValue = None
    failed: bool = False


class Prompt(Body):
    text: Annotated[str, Field(min_length=1, max_length=100_000, examples=["Review this text: "])]


class Credentials(Body):
    password: Annotated[str, Field(max_length=1000)]
