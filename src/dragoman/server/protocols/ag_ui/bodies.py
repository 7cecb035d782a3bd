"""What an AG-UI client posts: `RunAgentInput`."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from dragoman.errors import BadRequest
from dragoman.messages.message import canonical
from dragoman.messages.request import ToolSpec
from dragoman.server.protocols.ag_ui.state import describe_state, state_tool
from dragoman.turn.facts import TurnOptions
from dragoman.turn.send import turn_options


class _Loose(BaseModel):
    """Clients send more than is known here, and newer ones more still."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)


class PartSource(_Loose):
    type: str = ""
    value: str = ""
    media_type: Annotated[str, Field(alias="mimeType", max_length=200)] = ""


class AgentPart(_Loose):
    """A text, or something with a source."""

    type: str
    text: str = ""
    source: PartSource | None = None


class AgentMessage(_Loose):
    id: str = ""
    role: str
    content: JsonValue = None
    call: Annotated[str, Field(alias="toolCallId")] = ""
    error: str | None = None

    @property
    def parts(self) -> list[AgentPart]:
        """Of what has none that we know, such as an activity, nothing."""
        if isinstance(self.content, str):
            return [AgentPart(type="text", text=self.content)]
        try:
            listed = self.content if isinstance(self.content, list) else []
            return [AgentPart.model_validate(part) for part in listed]
        except ValidationError as error:
            raise BadRequest("the content of a message is a text, or a list of parts") from error

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts)


class AgentTool(_Loose):
    name: str
    description: str = ""
    parameters: dict[str, JsonValue] | None = None


class ContextEntry(_Loose):
    description: str = ""
    value: JsonValue = None


class ResumeEntry(_Loose):
    interrupt: Annotated[str, Field(alias="interruptId")]
    status: Literal["resolved", "cancelled"]
    payload: JsonValue = None


class RunAgentInput(_Loose):
    thread: Annotated[str, Field(alias="threadId")]
    run: Annotated[str, Field(alias="runId", max_length=500)]
    messages: Annotated[list[AgentMessage], Field(max_length=10_000)] = []
    tools: Annotated[list[AgentTool], Field(max_length=512)] = []
    context: Annotated[list[ContextEntry], Field(max_length=1000)] = []
    resume: Annotated[list[ResumeEntry], Field(max_length=1000)] = []
    state: JsonValue = None
    version: Annotated[str, Field(alias="protocolVersion", max_length=20)] = ""  # none before 1.0

    def turn_options(self, agent: str | None, state: JsonValue) -> TurnOptions:
        """The tools are the client's own; what it says of its context and state comes after the prompts."""
        said = [one.text for one in self.messages if one.role in ("system", "developer")]
        said += [f"{one.description}: {_words(one.value)}" for one in self.context]
        said.append(describe_state(state))
        brought = [ToolSpec(tool.name, tool.description, tool.parameters or {}) for tool in self.tools]
        brought += state_tool(state, [tool.name for tool in self.tools])
        system = "\n\n".join(text for text in said if text) or None
        return replace(turn_options(agent=agent, system=system, client_tools=brought), state=state or None)


def _words(value: JsonValue) -> str:
    return value if isinstance(value, str) else canonical(value)
