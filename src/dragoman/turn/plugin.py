"""Defines the hooks of plugins. Subclass `Plugin`, override what you need, register it.

A hook that is not overridden costs nothing. Plugins receive small values, never the engine.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from typing import Any, TypeAlias, TypeVar

from pydantic import JsonValue

from dragoman.errors import ConfigError
from dragoman.messages.boundary import check_json
from dragoman.messages.events import Event
from dragoman.messages.fold import Appending, DraftView
from dragoman.messages.message import Arguments, Message, Part, Role, Text, ToolCall, ToolResult
from dragoman.messages.questions import Kind
from dragoman.messages.request import Request
from dragoman.tools.authorize import Reason
from dragoman.tools.tool import Tool
from dragoman.tools.toolbox import Group, Source
from dragoman.turn.view import TurnView

T = TypeVar("T")

Cleanup: TypeAlias = Callable[[], Awaitable[None] | None]


@dataclass(slots=True)
class PlannedCall:
    """A call that is about to run. A plugin may change its arguments, or keep it from running."""

    id: str
    name: str
    tool: Tool
    arguments: Arguments
    refused: str | None = None
    skipped: str | None = None
    wishes: list[Reason] = field(default_factory=list)
    asked_for: Arguments = field(default_factory=dict)  # the model's arguments, before any change

    def refuse(self, reason: str) -> None:
        """Prevent the call. The model reads the reason."""
        self.refused = reason

    def skip(self, reason: str) -> None:
        """Skip the call because a limit is reached: the model is asked once more, for its answer."""
        self.skipped = reason

    def ask(self, text: str, kind: Kind = "approve") -> None:
        """Run the call only if a user approves it. The approval request contains every plugin's question."""
        self.wishes.append(Reason("loop" if kind == "loop" else "plugin", text))


@dataclass(slots=True)
class PlannedCalls:
    """All calls of one reply before any is examined, including calls that cannot run."""

    calls: Sequence[ToolCall]
    skipped: dict[str, str] = field(default_factory=dict)  # the limit reached, by call
    limit: str = ""  # the limit of the turn as a whole

    def skip(self, limit: str, calls: Iterable[ToolCall] | None = None) -> None:
        """Skip these calls, or all, because a limit is reached: the model is asked for its answer."""
        if calls is None:
            self.limit = self.limit or limit
        for call in self.calls if calls is None else calls:
            self.skipped.setdefault(call.id, limit)


@dataclass(slots=True, frozen=True)
class Appended:
    """A message to add when all plugins are done."""

    parts: tuple[Part, ...]
    role: Role
    request: bool
    priority: int


class Appender:
    """Adds messages for `on_after_request`. Each plugin gets one per step."""

    def __init__(self, now: Callable[[int, Appended], Awaitable[None]]) -> None:
        self._now = now
        self._count = 0
        self.again = False  # whether another step is requested without a message
        self.deferred: list[tuple[int, Appended]] = []

    async def __call__(
        self,
        message: str | Sequence[Part] | Sequence[str],
        *,
        role: Role = "user",
        request: bool = False,
        priority: int = 0,
        deferred: bool = False,
    ) -> None:
        """Add a message, or several texts as one message each.

        They are added immediately or, if `deferred`, when all plugins are done, in order of priority.
        `request` asks for another step, which starts at `on_before_request`. A reached limit of the turn
        takes precedence.
        """
        for parts in _messages(message):
            wanted = Appended(parts, role, request, priority)
            place, self._count = self._count, self._count + 1
            if deferred:
                self.deferred.append((place, wanted))
            else:
                await self._now(place, wanted)

    def request(self) -> None:
        """Ask for another step without a message: the model continues where its reply stopped.

        A reached limit of the turn takes precedence.
        """
        self.again = True

    async def and_request(self, message: str | Sequence[Part] | Sequence[str], **options: Any) -> None:
        """Add a message with `request=True`."""
        await self(message, **{**options, "request": True})


def _messages(given: str | Sequence[Part] | Sequence[str]) -> list[tuple[Part, ...]]:
    if isinstance(given, str):
        return [(Text(given),)]
    texts = [one for one in given if isinstance(one, str)]
    parts = tuple(one for one in given if not isinstance(one, str))
    if texts and parts:
        raise ConfigError(
            "'append' takes a string, the parts of one message, or a list of strings, but not a mixture."
        )
    return [(Text(text),) for text in texts] if texts else [parts]


def name_of(kind: type[Plugin]) -> str:
    """Return the default name of a plugin class: RateLimit is `rate_limit`."""
    return _in_snake_case(kind.__name__)


@cache
def _in_snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


class Plugin:
    """The base class of plugins. Hooks do nothing here. Each states when it runs, in which order, and the
    effect of an error."""

    required = False  # whether a send must not disable it
    tools: Sequence[Tool | Group | Source] = ()  # tools it adds to the runtime
    answers_only = False  # whether its `on_after_request` ignores replies with calls
    comes_last = False  # whether it sees requests after all other plugins, in their final form

    @property
    def name(self) -> str:
        """A later plugin of the same name replaces an earlier one."""
        return name_of(type(self))

    def on_turn_start(
        self, turn: TurnView
    ) -> Awaitable[Cleanup | None] | AsyncIterator[None] | Cleanup | None:
        """Once, before the first request, in registration order, and again with `turn.resumed` when another
        process resumes the turn. Can return a cleanup, or be an async generator that yields once. Cleanups
        run last, in reverse order, also after errors. An error ends the turn."""

    async def on_before_request(self, request: Request, turn: TurnView) -> None:
        """Before every request, in registration order. Plugins with `comes_last` follow, when all tools are
        in it. Can change the request. An error ends the turn."""

    async def on_side_request(self, request: Request, turn: TurnView) -> None:
        """Before a request that a plugin or a tool makes next to the conversation (a title, a summary, an
        image), in the same order. Can change the request. The caller gets the error."""

    def on_stream_data(self, event: Event, draft: DraftView, turn: TurnView) -> None:
        """On every chunk of a reply, in registration order, after it became part of the draft. Cannot change
        the reply: use `request.filter_reply` in `on_before_request`. Be quick: the stream waits for it. An
        error ends the turn."""

    async def on_after_request(self, reply: Message, turn: TurnView, append: Appender) -> None:
        """After every reply, all plugins at the same time, while its calls run. Can append messages and ask
        for another request. Runs again for the same reply if the process died meanwhile. Dragoman does not
        append its messages twice. An error ends the turn."""

    async def on_message_append(self, appending: Appending, turn: TurnView) -> None:
        """Before a reply or a plugin's message is added, in registration order, but not for a user's message.
        Can change or prevent it. An error ends the turn."""

    async def on_turn_end(self, turn: TurnView) -> None:
        """Once, after success or cancel and before the cleanups, in registration order. Not after an error.
        An error ends the turn as failed."""

    async def before_calls(self, calls: PlannedCalls, turn: TurnView) -> None:
        """Once for every reply with calls, also unknown and malformed ones, in registration order. Can skip
        them at a limit. An error ends the turn."""

    async def before_tool(self, call: PlannedCall, turn: TurnView) -> None:
        """Before a call is authorized and run, in registration order. Can change its arguments, refuse it,
        skip it, or ask a user. An error ends the turn."""

    async def before_run(self, call: ToolCall, tool: Tool, turn: TurnView) -> None:
        """Directly before an allowed call runs here, in registration order, after its approval and after it
        is stored as started. Not for calls that a client runs. An error ends the turn."""

    async def after_run(self, call: ToolCall, tool: Tool, turn: TurnView) -> None:
        """Directly after a call ran, in reverse registration order, whatever its outcome, also if the turn is
        cancelled, and before a review of its result. An error ends the turn."""

    async def after_tool(self, call: ToolCall, result: ToolResult, turn: TurnView) -> ToolResult | None:
        """After a call ran, in reverse registration order. The returned value replaces the result. None keeps
        it. An error ends the turn."""

    async def system_prompt(self, text: str, turn: TurnView) -> str:
        """Before every request, in registration order. Receives the prompt of the previous plugin. An error
        ends the turn."""
        return text

    async def request_params(self, options: dict[str, JsonValue], turn: TurnView) -> dict[str, JsonValue]:
        """Before every request, in registration order: temperature and the like. An error ends the turn."""
        return options

    async def on_error(self, error: Exception, turn: TurnView) -> bool:
        """After an error, in registration order. Return True for a request whose cause is fixed: Dragoman
        sends it again. Not called for errors of a cancelled turn. Dragoman reports an error in it next to the
        first."""
        return False

    def on_event(self, event: Event, turn: TurnView) -> None:
        """On every event of the turn, in registration order, to watch. Dragoman ignores an error."""


class Hooks:
    """The plugins of one turn by hook. Only plugins that override a hook are called."""

    def __init__(self, plugins: Sequence[Plugin], disabled: Sequence[str] = ()) -> None:
        by_name = {plugin.name: plugin for plugin in plugins}
        active = [plugin for name, plugin in by_name.items() if name not in disabled or plugin.required]
        self.plugins = active
        self.turn_start = _that_override(active, "on_turn_start")
        before_request = _that_override(active, "on_before_request")
        self.before_request = [plugin for plugin in before_request if not plugin.comes_last]
        self.before_sending = [plugin for plugin in before_request if plugin.comes_last]
        self.side_request = sorted(
            _that_override(active, "on_side_request"), key=lambda plugin: plugin.comes_last
        )
        self.stream_data = _that_override(active, "on_stream_data")
        self.after_request = _that_override(active, "on_after_request")
        self.after_calls = [plugin for plugin in self.after_request if not _wants_answers_only(plugin)]
        self.message_append = _that_override(active, "on_message_append")
        self.turn_end = _that_override(active, "on_turn_end")
        self.before_calls = _that_override(active, "before_calls")
        self.before_tool = _that_override(active, "before_tool")
        self.before_run = _that_override(active, "before_run")
        self.after_run = _that_override(active, "after_run")[::-1]
        self.after_tool = _that_override(active, "after_tool")[::-1]
        self.system_prompt = _that_override(active, "system_prompt")
        self.request_params = _that_override(active, "request_params")
        self.error = _that_override(active, "on_error")
        self.event = _that_override(active, "on_event")

    async def see_side_request(self, request: Request, turn: TurnView) -> None:
        for plugin in self.side_request:
            await plugin.on_side_request(request, turn)

    async def see_message(self, appending: Appending, turn: TurnView) -> None:
        """Run `on_message_append` of one plugin after another.

        If a plugin fails, or its result cannot be stored, its changes are dropped.
        """
        for plugin in self.message_append:
            before = appending.message, appending.prevented, list(appending.placed)
            appending.message = replace(appending.message, metadata=deepcopy(appending.message.metadata))
            try:
                await plugin.on_message_append(appending, turn)
                check_json([asdict(message) for message in appending.added], _made_by(plugin, "a message"))
            except BaseException:
                appending.message, appending.prevented, appending.placed = before
                raise

    async def see_call(self, planned: PlannedCall, turn: TurnView) -> None:
        """Run `before_tool` of one plugin after another, until one prevents the call."""
        for plugin in self.before_tool:
            await plugin.before_tool(planned, turn)
            made = [planned.arguments, planned.refused, planned.skipped, [why.text for why in planned.wishes]]
            check_json(made, _made_by(plugin, "a call"))
            if planned.skipped is not None or planned.refused is not None:
                return

    async def see_start(self, call: ToolCall, tool: Tool, turn: TurnView) -> None:
        for plugin in self.before_run:
            await plugin.before_run(call, tool, turn)

    async def see_end(self, call: ToolCall, tool: Tool, turn: TurnView) -> None:
        for plugin in self.after_run:
            await plugin.after_run(call, tool, turn)

    async def see_result(self, call: ToolCall, result: ToolResult, turn: TurnView) -> ToolResult:
        """Run `after_tool`, the last plugin first, and return the remaining result."""
        for plugin in self.after_tool:
            made = await plugin.after_tool(call, result, turn)
            result = result if made is None else returned(plugin, "after_tool", made, ToolResult)
            check_json(asdict(result), _made_by(plugin, "a result"))
        return result


def _made_by(plugin: Plugin, what: str) -> str:
    return f"what plugin {plugin.name} made of {what}"


def _that_override(plugins: Sequence[Plugin], hook: str) -> list[Plugin]:
    return [plugin for plugin in plugins if getattr(type(plugin), hook) is not getattr(Plugin, hook)]


def _wants_answers_only(plugin: Plugin) -> bool:
    """Return `answers_only` if it was set on or below the class that defines the plugin's hook."""
    for place in (plugin, *type(plugin).__mro__):
        if "answers_only" in vars(place):
            return plugin.answers_only
        if "on_after_request" in vars(place):
            return False
    return False


# These hooks run for every chunk and every event, and are not awaited.
_PLAIN = ("on_stream_data", "on_event")


def check(plugin: object) -> Plugin:
    """Check a plugin's hooks and return it: a misspelled hook would never run, a plain function would fail
    late."""
    if not isinstance(plugin, Plugin):
        raise ConfigError(f"{plugin!r} is not a plugin. Pass an object of a class that inherits from Plugin.")
    for name, method in inspect.getmembers(type(plugin), inspect.isfunction):
        known = getattr(Plugin, name, None)
        if known is None and (hint := _misspelled(name)) is not None:
            raise ConfigError(f"Plugin {plugin.name!r}: unknown hook {name!r}{hint}")
        if known is None or name.startswith("__"):
            continue
        if inspect.iscoroutinefunction(known) and not inspect.iscoroutinefunction(method):
            raise ConfigError(f"Plugin {plugin.name!r}: define {name} with `async def`.")
        if name in _PLAIN and (inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method)):
            raise ConfigError(f"Plugin {plugin.name!r}: define {name} with `def`, not `async def`.")
        takes = list(inspect.signature(known).parameters)[1:]
        try:
            inspect.signature(getattr(plugin, name)).bind(*takes)
        except TypeError:
            raise ConfigError(
                f"Plugin {plugin.name!r}: {name} must take (self, {', '.join(takes)})."
            ) from None
    return plugin


def _misspelled(name: str) -> str | None:
    """Describe a method that looks like a misspelled hook. None for any other method."""
    hooks = [hook for hook, method in vars(Plugin).items() if inspect.isfunction(method)]
    near = get_close_matches(name, hooks, 1, 0.85) if not name.startswith("_") else ()
    if near:
        return f". Did you mean {near[0]}?"
    return "" if name.startswith(("on_", "before_", "after_")) else None


def returned(plugin: Plugin, hook: str, value: T, kind: type) -> T:
    """Return a hook's result after checking its type: a forgotten `return` would erase the prompt."""
    if not isinstance(value, kind):
        raise ConfigError(f"Plugin {plugin.name!r}: {hook} must return a {kind.__name__}, not {value!r}.")
    return value
