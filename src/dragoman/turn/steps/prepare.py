"""A turn in, its next request out: `prepare` once, `build_request` before every step."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import JsonValue

from dragoman.conversation.window import window
from dragoman.messages.events import Event
from dragoman.messages.ids import new_id
from dragoman.messages.questions import Rule
from dragoman.messages.request import Request
from dragoman.tools.toolbox import Offer
from dragoman.turn.agent import Agent
from dragoman.turn.live.log import TurnLog
from dragoman.turn.live.signals import Signals
from dragoman.turn.plugin import Cleanup, Hooks, Plugin
from dragoman.turn.services import MODES, Mode, Services
from dragoman.turn.steps.steering import take_in_steering
from dragoman.turn.view import TurnView
from dragoman.wire.options import merge_options
from dragoman.wire.wire import Model


@dataclass(slots=True, frozen=True)
class PreparedTurn:
    """A turn that may ask the model: its plugins have started."""

    services: Services
    log: TurnLog
    signals: Signals
    hooks: Hooks
    view: TurnView
    agent: Agent
    model: Model
    mode: Mode

    @property
    def rules(self) -> list[Rule]:
        """Those of the house, then those of the agent, then those that nobody gets around."""
        return [*self.services.rules, *self.agent.rules, *self.services.bounds]


@dataclass(slots=True, frozen=True)
class RequestReady:
    """A request that may be sent, and the tools it offers."""

    prepared: PreparedTurn
    request: Request
    offer: Offer
    step: int
    attempt: int
    reply: str


async def prepare(
    services: Services, log: TurnLog, signals: Signals, hooks: Hooks, cleanups: list[Cleanup]
) -> PreparedTurn:
    """Start the plugins, one after another. What they leave to clean up goes into `cleanups` at once."""
    agent = services.agent(log.turn.options.agent or _setting(log, "agent"))
    model = services.model(log.turn.options.model or _setting(log, "model") or agent.model)

    async def before_side_request(request: Request) -> None:
        for plugin in hooks.side_request:
            await plugin.on_side_request(request, view)

    view = TurnView(log, model, agent, before_side_request)
    prepared = PreparedTurn(services, log, signals, hooks, view, agent, model, mode_of(services, log, agent))
    for plugin in prepared.hooks.event:
        log.telling.watchers.append(partial(_watch, plugin, prepared.view))
    for plugin in prepared.hooks.turn_start:
        cleanup = await _start(plugin, prepared.view)
        if cleanup is not None:
            cleanups.append(cleanup)
    return prepared


async def build_request(prepared: PreparedTurn) -> RequestReady:
    """The next request: history first, so that no placeholder of the answer is ever part of it."""
    log, hooks, view = prepared.log, prepared.hooks, prepared.view
    await take_in_steering(log, prepared.signals)
    await prepared.services.toolbox.ready()
    offer = offer_of(prepared)
    request = Request(
        model=prepared.model.name,
        messages=window(log.path),
        system=_system(prepared, offer),
        tools=offer.specs(),
        tool_choice="auto" if offer.tools else None,
        options=merge_options(
            prepared.services.options,
            prepared.agent.options,
            prepared.model.variant,
            _setting(log, "options") or {},
            log.turn.options.options,
        ),
    )
    for plugin in hooks.system_prompt:
        request.system = await plugin.system_prompt(request.system, view)
    for plugin in hooks.request_params:
        request.options = await plugin.request_params(request.options, view)
    for plugin in hooks.before_request:
        await plugin.on_before_request(request, view)
    if log.turn.closing:
        request.without_tools()
    kept = {spec.name: offer.tools[spec.name] for spec in request.tools if spec.name in offer.tools}
    turn = log.turn  # a plugin may have compacted meanwhile
    again = not turn.replied
    return RequestReady(
        prepared,
        request,
        Offer(kept, offer.rules),
        step=turn.step if again else turn.step + 1,
        attempt=turn.attempt + 1 if again else 1,
        reply=(turn.reply if again else None) or new_id("msg"),
    )


def offer_of(prepared: PreparedTurn) -> Offer:
    """The tools that are on now. None in mode `off`."""
    if prepared.mode == "off":
        return Offer({})
    switches = _setting(prepared.log, "tools") or {}
    return prepared.services.toolbox.offer(prepared.rules, switches, prepared.agent.tools)


def mode_of(services: Services, log: TurnLog, agent: Agent) -> Mode:
    wanted = log.turn.options.mode or _setting(log, "mode") or agent.mode or services.mode
    return next(
        (mode for mode in MODES if mode == wanted), "ask"
    )  # of a word nobody knows, the careful reading


def merged(*layers: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Options in layers: the later wins, objects are merged, None removes."""
    result: dict[str, JsonValue] = {}
    for layer in layers:
        for key, value in layer.items():
            before = result.get(key)
            if value is None:
                result.pop(key, None)
            elif isinstance(value, dict):
                result[key] = merged(before if isinstance(before, dict) else {}, value)
            else:
                result[key] = value
    return result


def _system(prepared: PreparedTurn, offer: Offer) -> str:
    """The fixed head first and nothing that changes within a day, so that providers can cache it."""
    services, log = prepared.services, prepared.log
    texts = (
        f"Today is {services.today()}.",
        services.system,
        prepared.agent.prompt,
        _setting(log, "system"),
        log.turn.options.system,
        offer.rules,
    )
    return "\n\n".join(text.strip() for text in texts if text and text.strip())


def _setting(log: TurnLog, name: str) -> Any:
    return log.conversation.settings.get(name)


def _watch(plugin: Plugin, view: TurnView, event: Event) -> None:
    plugin.on_event(event, view)


async def _start(plugin: Plugin, view: TurnView) -> Cleanup | None:
    started = plugin.on_turn_start(view)
    if started is None:
        return None
    if isinstance(started, Awaitable):
        return await started
    stack = AsyncExitStack()
    await stack.enter_async_context(asynccontextmanager(lambda: started)())
    return stack.aclose
