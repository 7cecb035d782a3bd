"""Parse the input of an AG-UI client (`RunAgentInput`), and the state that a thread shares with it.

The client sends its state with each run, and it is stored with the turn. The model changes it by calls of
`update_state`. For permissions, this is a tool of the client. The writer of the client's stream delivers its
result. So the state of a thread can be computed from its turns, even after a restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue, ValidationError

from dragoman.errors import BadRequest
from dragoman.messages.boundary import check_json
from dragoman.messages.message import Arguments, CallState, Message, canonical
from dragoman.messages.request import ToolSpec
from dragoman.server.context import Context
from dragoman.server.protocols.threads import Loose, WithContent, unreadable
from dragoman.turn.facts import TurnOptions, options_in
from dragoman.turn.send import turn_options


class PartSource(Loose):
    model_config = ConfigDict(populate_by_name=True)

    type: str = ""
    value: str = ""
    media_type: Annotated[str, Field(alias="mimeType", max_length=200)] = ""


class AgentPart(Loose):
    """Text, or a part with a source. Before 1.0, a `binary` part contains its data or address directly."""

    type: str
    text: str = ""
    source: PartSource | None = None
    media_type: Annotated[str, Field(alias="mimeType", max_length=200)] = ""
    data: str = ""
    url: str = ""

    @property
    def file(self) -> PartSource | None:
        """Return the source of a file, or None for text. Raises BadRequest for other parts, so that none is
        lost silently."""
        if self.type == "binary" and (self.data or self.url):
            kind = "data" if self.data else "url"
            return PartSource(type=kind, value=self.data or self.url, media_type=self.media_type)
        if self.source is None and self.type != "text":
            raise unreadable(self.type)
        return self.source


class CalledFunction(Loose):
    name: str
    arguments: str = ""


class AgentCall(Loose):
    id: str
    function: CalledFunction


class AgentMessage(WithContent):
    id: str = ""
    role: Literal["developer", "system", "assistant", "user", "tool", "activity", "reasoning"]
    content: JsonValue = None
    call: Annotated[str, Field(alias="toolCallId")] = ""
    calls: Annotated[list[AgentCall], Field(alias="toolCalls", max_length=10_000, default_factory=list)]
    error: str | None = None
    metadata: JsonValue = None

    @property
    def parts(self) -> list[AgentPart]:
        """The parts of the message. Without readable content, as in an activity, there are none."""
        if isinstance(self.content, str):
            return [AgentPart(type="text", text=self.content)]
        try:
            listed = self.content if isinstance(self.content, list) else []
            return [AgentPart.model_validate(part) for part in listed]
        except ValidationError as error:
            raise BadRequest("The content of a message must be a string or a list of parts.") from error

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts)

    @property
    def texts(self) -> Iterator[str]:
        """Yield the texts of a message. Raises BadRequest if it contains files."""
        for part in self.parts:
            if part.file is not None:
                raise unreadable(part.type)
            yield part.text


class AgentTool(Loose):
    name: str
    description: str = ""
    parameters: dict[str, JsonValue] | None = None


class ContextEntry(Loose):
    description: str = ""
    value: JsonValue = None


class ResumeEntry(Loose):
    interrupt: Annotated[str, Field(alias="interruptId")]
    status: Literal["resolved", "cancelled"]
    payload: JsonValue = None


class RunAgentInput(WithContent):
    thread: Annotated[str, Field(alias="threadId")]
    run: Annotated[str, Field(alias="runId", max_length=500)]
    messages: Annotated[list[AgentMessage], Field(max_length=10_000, default_factory=list)]
    tools: Annotated[list[AgentTool], Field(max_length=512, default_factory=list)]
    context: Annotated[list[ContextEntry], Field(max_length=1000, default_factory=list)]
    resume: Annotated[list[ResumeEntry], Field(max_length=1000, default_factory=list)]
    state: JsonValue = None
    forwarded: Annotated[JsonValue, Field(alias="forwardedProps")] = None  # client data for a custom agent
    version: Annotated[str, Field(alias="protocolVersion", max_length=20)] = ""  # empty before 1.0

    def turn_options(self, agent: str | None, state: JsonValue) -> TurnOptions:
        """Return the turn's options with the client's tools. Its context and state follow the prompts."""
        said = [text for one in self.messages if one.role in ("system", "developer") for text in one.texts]
        said += [f"{one.description}: {_words(one.value)}" for one in self.context]
        said.append(describe_state(state))
        brought = [ToolSpec(tool.name, tool.description, tool.parameters or {}) for tool in self.tools]
        brought += state_tool(state, [tool.name for tool in self.tools])
        system = "\n\n".join(text for text in said if text) or None
        return replace(turn_options(agent=agent, system=system, client_tools=brought), state=state or None)


def _words(value: JsonValue) -> str:
    return value if isinstance(value, str) else canonical(value)


# ── the state ─────────────────────────────────────────────────────────────────────────────────────


UPDATE_STATE = "update_state"
_LONGEST = 100_000  # characters
_SPEC = ToolSpec(
    UPDATE_STATE,
    "Change the application's state, which the person sees. Say only what changes.",
    {
        "type": "object",
        "properties": {
            "changes": {
                "type": "object",
                "description": "New values by key. Objects are merged, lists replaced; null removes a key.",
            }
        },
        "required": ["changes"],
    },
)


def state_tool(state: JsonValue, taken: Iterable[str]) -> list[ToolSpec]:
    """Return the tool that changes the state, if the client has a state and no tool of this name."""
    return [_SPEC] if state and isinstance(state, dict) and UPDATE_STATE not in taken else []


def check_state(state: JsonValue) -> None:
    """Raise BadRequest if the state cannot be stored, or is too long for a model."""
    check_json(state, "the state")
    if state and len(canonical(state)) > _LONGEST:
        raise BadRequest(f"The state is too long. The limit is {_LONGEST // 1000} kB of JSON.")


def describe_state(state: JsonValue) -> str:
    """Return a sentence about the state for the model."""
    return f"The application's state, as the client has it: {canonical(state)}" if state else ""


async def state_in(context: Context, conversation: str | None) -> JsonValue:
    """Return the latest state of a thread, or None if it never had one."""
    turns = await context.runtime.store.turns(conversation) if conversation is not None else []
    for turn in reversed(turns):
        state = options_in(await context.runtime.store.facts(turn.id)).state
        if state is not None:
            return changed_by((await context.runtime.turn(turn.id).snapshot()).messages, state)
    return None


def changed_by(messages: Iterable[Message], state: JsonValue) -> JsonValue:
    """Return the state after the calls in these messages."""
    for message in messages:
        for call in message.calls:
            if call.tool == UPDATE_STATE and call.state is CallState.COMPLETED:
                state = merged(state, changes_in(call.arguments))
    return state


def changes_in(arguments: Arguments) -> JsonValue:
    changes = arguments.get("changes")
    return changes if isinstance(changes, dict) else {}


def merged(state: JsonValue, changes: JsonValue) -> JsonValue:
    """Return the state after a JSON Merge Patch (RFC 7386)."""
    if not isinstance(changes, dict):
        return changes
    after = dict(state) if isinstance(state, dict) else {}
    for key, value in changes.items():
        if value is None:
            after.pop(key, None)
        else:
            after[key] = merged(after.get(key), value)
    return after


def difference(before: JsonValue, after: JsonValue, path: str = "") -> Iterator[dict[str, JsonValue]]:
    """Yield the JSON Patch operations (RFC 6902) that lead from one state to the other."""
    if not (isinstance(before, dict) and isinstance(after, dict)):
        if canonical(before) != canonical(after):
            yield {"op": "replace", "path": path, "value": after}
        return
    for key in before.keys() | after.keys():
        inner = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
        if key not in after:
            yield {"op": "remove", "path": inner}
        elif key not in before:
            yield {"op": "add", "path": inner, "value": after[key]}
        else:
            yield from difference(before[key], after[key], inner)
