"""Defines the request to a model, which a turn builds and a wire encodes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, get_args

from pydantic import JsonValue

from dragoman.errors import ConfigError
from dragoman.messages.events import Event
from dragoman.messages.message import Message, Part, Role, Text, ToolCall
from dragoman.messages.usage import Usage


@dataclass(slots=True, frozen=True)
class RequestMessage:
    """A message in a request: its role and its parts, without IDs, times and metadata."""

    role: Role
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolCall))


@dataclass(slots=True, frozen=True)
class ToolSpec:
    """A tool as the model sees it. Each example has the arguments of one call."""

    name: str
    description: str
    parameters: dict[str, JsonValue]
    examples: tuple[JsonValue, ...] = ()
    found: bool = False  # Loaded by `find_tools` or by a call, and not offered from the start.


FIND_TOOLS = "find_tools"  # The tool that loads others. Some wires have native forms for it.


def found_by(call: ToolCall) -> list[str]:
    """Return the names of tools that a call of `find_tools` has loaded."""
    value = call.result.value if call.result is not None else None
    found = value.get("tools") if isinstance(value, dict) else None
    names = [one.get("name") for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    return [name for name in names if isinstance(name, str)]


def found_in(request: Request) -> set[str]:
    """Return the tools named in a `find_tools` result of the request.

    Wires that load tools there name them.
    """
    found = {spec.name for spec in request.tools if spec.found}
    calls = (call for message in request.messages for call in message.calls if call.tool == FIND_TOOLS)
    return found & {name for call in calls for name in found_by(call)} if found else found


def name_key(name: str) -> str:
    """Return a tool's name without case and separators, for comparison."""
    return re.sub(r"[-_\s.:/]", "", name).lower()


@dataclass(slots=True, frozen=True)
class OutputSpec:
    """The required form of an answer.

    `wrapped`: the schema itself is not an object, so the value is the only field of a described object.
    """

    schema: dict[str, JsonValue]
    wrapped: bool = False
    retries: int = 3  # Maximum number of retries.


ReplyFilter: TypeAlias = Callable[[Event | None], Sequence[Event]]
"""Replaces each event of a reply before any other code sees it. None marks the end of the events."""


@dataclass(slots=True, frozen=True)
class LostReply:
    """An unfinished attempt at a reply, with the usage that its provider had reported."""

    model: str
    usage: Usage


ToolChoice: TypeAlias = Literal["auto", "none", "required"] | str  # Any other word names a tool.


@dataclass(slots=True)
class Request:
    """One model request. Plugins can change it in `on_before_request`. Wires only read it.

    `options` have names shared by all wires (`temperature`, `max_tokens`, `stop`, `reasoning_effort`,
    `response_schema`, …) and names of the provider. None prevents sending even the catalog's value for the
    model. An option that neither knows is refused. `extra` goes into the body unchecked.
    """

    model: str
    messages: tuple[RequestMessage, ...]
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice | None = None
    options: dict[str, JsonValue] = field(default_factory=dict)
    extra: dict[str, JsonValue] = field(default_factory=dict)
    output: OutputSpec | None = None  # the required form of the final answer
    dialect: str | None = None  # The form in which calls must be written, whatever is known of the model.
    continues: bool = False  # The last reply paused: it is sent back unchanged, and the model continues it.
    has_called: Callable[[str], bool] = field(default=lambda model: False, compare=False, repr=False)
    """Whether a model has made native calls in this conversation."""
    may_write: Callable[[str, str], bool] | None = field(default=None, compare=False, repr=False)
    """Whether users decided that a text format of a model is calls (D7). None if they decided nothing."""
    # deadline for waits between attempts
    deadline: float | None = field(default=None, compare=False, repr=False)
    # attempts whose usage the caller counts
    lost: list[LostReply] = field(default_factory=list, compare=False, repr=False)
    brought: Callable[[], Iterable[str]] = field(default=tuple, compare=False, repr=False)
    """Texts that users and tools sent in this conversation, including those a request holds in
    another form.
    """
    # texts of attached files, as sent
    texts: list[str] = field(default_factory=list, compare=False, repr=False)
    filters: list[ReplyFilter] = field(default_factory=list, compare=False, repr=False)

    def set_messages(self, messages: Iterable[Message | RequestMessage]) -> None:
        """Replace the messages. Of each, only the role and the parts are kept."""
        self.messages = tuple(RequestMessage(message.role, message.parts) for message in messages)

    def filter_reply(self, filter: ReplyFilter) -> None:
        """Change the reply while it streams. `filter` replaces each event before anything is shown or stored.

        Of several filters, the last one sees an event first.
        """
        self.filters.append(filter)

    def read_reply(self, event: Event | None) -> list[Event]:
        """Return the filtered events. Pass None when the reply is over or interrupted."""
        events = [event] if event is not None else []
        for filter in reversed(self.filters):
            events = [one for each in events for one in _filtered(filter, each)]
            events += _filtered(filter, None) if event is None else ()
        return events

    def copy(self) -> Request:
        return replace(self, options=dict(self.options), extra=dict(self.extra))

    def without_tools(self) -> None:
        self.tools = ()
        self.tool_choice = None


_EVENTS = get_args(Event)


def _filtered(filter: ReplyFilter, event: Event | None) -> Sequence[Event]:
    events = filter(event)
    if not isinstance(events, list | tuple) or not all(isinstance(one, _EVENTS) for one in events):
        raise ConfigError(f"A filter of the reply returned {events!r}. Return a list of events.")
    return events
