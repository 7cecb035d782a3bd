"""What a model is asked: the value that a turn builds and a wire encodes."""

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
    """A message as a request carries it: its role and its parts, without ids, times and metadata."""

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
    found: bool = False  # loaded by `find_tools`, or by a call: it was not there from the beginning


FIND_TOOLS = "find_tools"  # the tool that loads others: some wires have their own words for it


def found_by(call: ToolCall) -> list[str]:
    """Names of the tools that a call of `find_tools` has loaded."""
    value = call.result.value if call.result is not None else None
    found = value.get("tools") if isinstance(value, dict) else None
    names = [one.get("name") for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    return [name for name in names if isinstance(name, str)]


def found_in(request: Request) -> set[str]:
    """Tools that stand in a result of `find_tools` of the request: wires that load tools there name them."""
    found = {spec.name for spec in request.tools if spec.found}
    calls = (call for message in request.messages for call in message.calls if call.tool == FIND_TOOLS)
    return found & {name for call in calls for name in found_by(call)} if found else found


def name_key(name: str) -> str:
    """A tool's name as far as its spelling counts: case and separators do not."""
    return re.sub(r"[-_\s.:/]", "", name).lower()


@dataclass(slots=True, frozen=True)
class OutputSpec:
    """What an answer has to look like. `wrapped`: the value is the only field of the object that the schema
    describes, since it is none itself."""

    schema: dict[str, JsonValue]
    wrapped: bool = False
    retries: int = 3  # how often the model may try again


ReplyFilter: TypeAlias = Callable[[Event | None], Sequence[Event]]
"""What each event of a reply becomes before anything else sees it. None: no more events come."""


@dataclass(slots=True, frozen=True)
class LostReply:
    """An attempt at a reply that came to no end: what its provider said by then that it used."""

    model: str
    usage: Usage


ToolChoice: TypeAlias = Literal["auto", "none", "required"] | str  # any other word names a tool


@dataclass(slots=True)
class Request:
    """One model request. Plugins may change it in `on_before_request`; wires only read it.

    `options` have the words that all wires share (`temperature`, `max_tokens`, `stop`, `reasoning_effort`,
    `response_schema`, …) and those of the provider; None says that not even what the catalog has for the
    model is sent. One that neither understands is refused. `extra` goes into the body unchecked.
    """

    model: str
    messages: tuple[RequestMessage, ...]
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice | None = None
    options: dict[str, JsonValue] = field(default_factory=dict)
    extra: dict[str, JsonValue] = field(default_factory=dict)
    output: OutputSpec | None = None  # what the answer has to look like, in the end
    dialect: str | None = None  # in which calls are to be written, whatever is known of the model
    continues: bool = False  # the last reply paused: it is sent back as it is, and the model goes on with it
    has_called: Callable[[str], bool] = field(default=lambda model: False, compare=False, repr=False)
    """Whether a model has made native calls in this conversation."""
    may_write: Callable[[str, str], bool] | None = field(default=None, compare=False, repr=False)
    """Whether people decided that a text format of a model is calls (D7); None where they decided nothing."""
    deadline: float | None = field(default=None, compare=False, repr=False)  # for a wait between attempts
    lost: list[LostReply] = field(default_factory=list, compare=False, repr=False)  # for who counts them
    brought: Callable[[], Iterable[str]] = field(default=tuple, compare=False, repr=False)
    """What people and tools said in this conversation, also where a request holds it in another form."""
    texts: list[str] = field(default_factory=list, compare=False, repr=False)  # of attached files, as sent
    filters: list[ReplyFilter] = field(default_factory=list, compare=False, repr=False)

    def set_messages(self, messages: Iterable[Message | RequestMessage]) -> None:
        """Replace the messages. Of each, only what a request may carry is taken: its role and its parts."""
        self.messages = tuple(RequestMessage(message.role, message.parts) for message in messages)

    def filter_reply(self, filter: ReplyFilter) -> None:
        """Change the reply while it streams: each of its events becomes those that `filter` returns, before
        anything is shown or stored. Of several filters, the last one sees an event first."""
        self.filters.append(filter)

    def read_reply(self, event: Event | None) -> list[Event]:
        """What the filters make of an event; None when the reply is over, or broke off."""
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
