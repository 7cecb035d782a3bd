"""Prepares requests: `assemble` and `start_plugins` run once in a turn, `build_request` before every step."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Set
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pydantic import JsonValue

from dragoman.conversation.sharing import Right
from dragoman.dialects.reader import brought_in
from dragoman.errors import ConfigError, NotFound
from dragoman.messages.events import Event, Notice
from dragoman.messages.ids import new_id
from dragoman.messages.message import ToolCall
from dragoman.messages.questions import MODES, Mode, Rule
from dragoman.messages.request import FIND_TOOLS, Request
from dragoman.sentences import sentence
from dragoman.tools.authorize import decide_with_grants, review_of
from dragoman.tools.permissions import hidden
from dragoman.tools.program import condensed, functions_of, program_in
from dragoman.tools.tool import Review, Tool
from dragoman.tools.toolbox import Group, Offer
from dragoman.turn.acting_agent import NAME, agents_in, handoff_tool, handoffs_here, keep_agent
from dragoman.turn.agent import Agent
from dragoman.turn.live.log import TurnLog
from dragoman.turn.live.signals import Signals, take_in_steering
from dragoman.turn.output import Output, SchemaOutput
from dragoman.turn.plugin import Cleanup, Hooks, Plugin, returned
from dragoman.turn.send import NO_INPUTS, client_tools_of
from dragoman.turn.services import Services
from dragoman.turn.settings import AUTO
from dragoman.turn.steps.authority import Givers, bounds_in, load_grants
from dragoman.turn.steps.request_layers import (
    TOOL_RULES,
    deferred_offer,
    options_of,
    switches_of,
    system_layers,
    system_of,
)
from dragoman.turn.view import TurnView
from dragoman.wire.options import merge_options, without_removed
from dragoman.wire.wire import Model
from dragoman.workspace.workspaces import Workspace


@dataclass(slots=True, frozen=True)
class PreparedTurn:
    """A turn whose plugins have started, ready for requests."""

    services: Services
    log: TurnLog
    signals: Signals
    hooks: Hooks
    view: TurnView
    agent: Agent
    model: Model
    mode: Mode
    workspace: Workspace | None = None
    givers: Givers = field(default_factory=Givers)
    # tools of the toolbox, as they were at the first request
    kept: dict[str, Group] = field(default_factory=dict)

    def watch_events(self) -> None:
        """Let the plugins that want it see every event."""
        for plugin in self.hooks.event:
            self.log.events.watchers.append(partial(_watch, plugin, self.view))

    @property
    def rules(self) -> list[Rule]:
        """Return the rules of the settings, then those of the agent, then the bounds that nothing
        overrides."""
        return [*self.services.rules, *self.agent.rules, *self.bounds]

    @property
    def bounds(self) -> list[Rule]:
        return bounds_in(self.services, self.workspace)

    def review(self, tool: Tool, offered_as: str) -> Review:
        """Return which results a user sees first: the strictest policy of tool, settings and conversation."""
        node: Any = accepted.review if (accepted := self.log.turn.options.accepted) is not None else None
        said = _setting(self.log, "review")
        return review_of(tool, self.services.review, node, said, offered_as=offered_as)


@dataclass(slots=True, frozen=True)
class RequestReady:
    """A request that can be sent, and the tools it offers."""

    prepared: PreparedTurn
    request: Request
    offer: Offer
    step: int
    attempt: int
    reply: str


def assemble(services: Services, log: TurnLog, signals: Signals) -> PreparedTurn:
    """Collect what this turn was started with. Raise an error that names what is missing here."""
    options = log.turn.options
    hooks = Hooks(services.plugins, options.disabled)
    *earlier, agent = agents_in(services, log)
    model = model_of(services, log, agent, handed=bool(earlier))

    side_model = services.model(services.small_model) if services.small_model else None
    asked = options_of(services, agent, model, log.settings, options.options)
    known: Mapping[str, JsonValue] = getattr(model, "default_options", {})  # Custom models may have none.
    workspace = services.workspace_of(options)
    view = TurnView(
        log,
        model,
        agent,
        lambda request: hooks.see_side_request(request, view),
        lambda: take_in_steering(log, signals),
        workspace=workspace.folder if workspace is not None else None,
        side_model=side_model,
        options=without_removed(merge_options(known, asked)),
        output=_output_of(services, log),
    )
    mode = mode_of(services, log, *earlier, agent)
    givers = Givers.of(options, earlier)
    return PreparedTurn(services, log, signals, hooks, view, agent, model, mode, workspace, givers)


def _output_of(services: Services, log: TurnLog) -> Output[Any] | None:
    """Return the output type sent with the turn, or its schema if the type was in another process."""
    inputs, spec = services.inputs.get(log.id, NO_INPUTS), log.turn.options.output
    return inputs.output or (SchemaOutput(spec) if spec is not None else None)


async def find_deps(prepared: PreparedTurn) -> Any:
    """Return the dependencies sent with the turn, else those created for it, else the runtime's."""
    services = prepared.services
    sent = services.inputs.get(prepared.log.id, NO_INPUTS).deps
    if sent is not None:
        return sent
    if services.make_deps is None:
        return services.deps
    made = services.make_deps(prepared.view)
    return await made if isinstance(made, Awaitable) else made


async def hand_over(prepared: PreparedTurn) -> PreparedTurn:
    """Return the turn prepared for the agent it was handed to, possibly through several agents in a copied
    answer."""
    services, log = prepared.services, prepared.log
    *earlier, agent = agents_in(services, log)
    binding = [one for one in earlier if one not in prepared.givers.agents]
    if agent is prepared.agent and not binding:
        return prepared
    await keep_agent(services, log)
    model = model_of(services, log, agent, handed=True)
    prepared.view.hand_to(agent, model)
    log.publish(Notice(sentence("agent.goes_on", name=agent.name), "handoff"))
    mode = mode_of(services, log, *earlier, agent)
    givers = Givers([*prepared.givers.agents, *binding], prepared.givers.nodes)
    return replace(prepared, agent=agent, model=model, mode=mode, givers=givers)


def model_of(services: Services, log: TurnLog, agent: Agent, *, handed: bool = False) -> Model:
    """Return the model the turn was started with, or that of an agent it was handed to, never another one."""
    options = log.turn.options
    if handed and agent.model is not None:
        return services.model(agent.model)
    model = services.model(options.model or _setting(log, "model") or agent.model)
    if options.started_with in (None, model.name):
        return model
    model = services.model(options.started_with)
    if model.name != options.started_with:
        raise NotFound("model", str(options.started_with), sentence("hint.started_with"))
    return model


async def start_plugins(prepared: PreparedTurn, cleanups: list[Cleanup]) -> None:
    """Run `on_turn_start` of one plugin after another. Each cleanup is added to `cleanups` immediately."""
    for plugin in prepared.hooks.turn_start:
        cleanup = await _start(plugin, prepared.view)
        if cleanup is not None:
            cleanups.append(cleanup)


async def look_for_tools(prepared: PreparedTurn) -> None:
    """Load new tools, except where a turn keeps the ones from its start (T14)."""
    toolbox = prepared.services.toolbox
    await toolbox.ready()
    if not prepared.kept:
        prepared.kept.update(toolbox.lasting())


async def build_request(prepared: PreparedTurn) -> RequestReady:
    """Build the next request. Read the history first, so that it never contains the answer's placeholder."""
    log, hooks, view = prepared.log, prepared.hooks, prepared.view
    await _check_sender(log)
    await take_in_steering(log, prepared.signals)
    await look_for_tools(prepared)
    if log.turn.step == 0:
        _tell_of_missing_sources(prepared)
    offer, talks = offer_of(prepared), prepared.view.talks
    request = Request(
        model=prepared.model.name,
        messages=view.window(),
        system="",
        tools=offer.specs(),
        tool_choice="auto" if offer.tools else None,
        options=options_of(
            prepared.services, prepared.agent, prepared.model, log.settings, log.turn.options.options
        ),
        dialect=_dialect(log),
        has_called=partial(_has_called, log, await _native_models(prepared)),
        brought=lambda: brought_in(log.path),
        may_write=await _granted_formats(prepared),
        continues=bool(log.path) and log.path[-1].role == "assistant" and log.path[-1].finish == "pause",
    )
    if talks:
        request.system = await _system_prompt(prepared, offer)
    for plugin in hooks.request_params:
        params = await plugin.request_params(request.options, view)
        request.options = returned(plugin, "request_params", params, dict)
    for plugin in hooks.before_request:
        await plugin.on_before_request(request, view)
    missing = [tool for name, tool in view.added_tools.items() if name not in offer.tools]
    request.tools = (*request.tools, *(tool.spec() for tool in missing))  # added just now
    for plugin in hooks.before_sending:
        await plugin.on_before_request(request, view)
    if not talks:
        request.without_tools()
    if request.tools and request.tool_choice is None:
        request.tool_choice = "auto"
    if log.turn.closing:
        request.without_tools()
    kept = _offered(prepared, request, offer)
    if program := program_in(kept):
        functions = functions_of(kept, NAME)
        request.tools = condensed(request.tools, program, functions, request.tool_choice)
    await _pin_at_first_sight(prepared, kept.values())
    view.forget_tools()
    turn = log.turn  # A plugin may have compacted meanwhile.
    again = not turn.replied
    return RequestReady(
        prepared,
        request,
        Offer(kept, offer.texts, offer.sources, offer.deferred if FIND_TOOLS in kept else {}),
        step=turn.step if again else turn.step + 1,
        attempt=turn.attempt + 1 if again else 1,
        reply=(turn.reply if again else None) or new_id("msg"),
    )


async def _check_sender(log: TurnLog) -> None:
    """Cancel the turn if its sender was removed, so that no model receives requests in that user's name.

    This also covers a removing process that died before it cancelled the turn.
    """
    if log.sender == log.conversation.owner:
        return
    if await log.store.right_of(log.conversation.id, log.sender) < Right.TAKE_PART:
        if log.cancelled is None:
            log.cancelled = sentence("share.removed", user=log.sender)
        raise asyncio.CancelledError


async def _pin_at_first_sight(prepared: PreparedTurn, tools: Iterable[Tool]) -> None:
    """Pin an external tool's definition when it is first offered, even before it runs.

    If the definition changes later, a user is asked.
    """
    sender, seen = prepared.log.sender, prepared.services.seen_tools
    for tool in tools:
        if tool.fingerprint is None or (sender, tool.permission) in seen:
            continue
        if await prepared.log.store.pin(sender, tool.permission) is None:
            await prepared.log.store.set_pin(sender, tool.permission, tool.fingerprint)
        seen.add((sender, tool.permission))


def offer_of(prepared: PreparedTurn) -> Offer:
    """Return the enabled tools. None in mode `off`, and for models other than chat models."""
    if prepared.mode == "off" or not prepared.view.talks:
        return Offer({})
    switches = switches_of(prepared.model, _setting(prepared.log, "tools"), prepared.log.turn.options.tools)
    toolbox = prepared.services.toolbox
    offer = toolbox.offer(prepared.rules, switches, prepared.agent.tools, prepared.kept)
    brought = client_tools_of(prepared.log.turn.options, prepared.rules)
    # Even a denied client tool replaces the runtime's tool of that name.
    named = {spec.name for spec in prepared.log.turn.options.client_tools}
    own = {name: tool for name, tool in offer.tools.items() if name not in named}
    tools = {**own, **brought}
    if handoffs_here(prepared.services, prepared.agent) and not hidden(NAME, prepared.rules):
        tools[NAME] = handoff_tool(prepared.services, prepared.agent, partial(_calls_now, prepared.log))
    tools |= prepared.view.added_tools  # Merged last, as when they are added.
    return _deferred(prepared, replace(offer, tools=tools))


def _deferred(prepared: PreparedTurn, offer: Offer) -> Offer:
    """L1: above the budget, tools of sources are left out until the model searches for them."""
    log = prepared.log
    return deferred_offer(
        prepared.services, prepared.agent, prepared.model, offer, log.path, settings=log.settings
    )


async def offer_to_calls(prepared: PreparedTurn, offer: Offer, calls: Iterable[str]) -> Offer:
    """Return the tools for calls made before a restart that must run now.

    Wait for servers that are still starting, because a user may have allowed the calls.
    """
    if all(offer.find(prepared.log.call(id).tool) for id in calls):
        return offer
    await prepared.services.toolbox.started()
    return offer_of(prepared)


_MOST_TOLD = 10_000


def _tell_of_missing_sources(prepared: PreparedTurn) -> None:
    """Report servers that cannot start, since the model will state that their tools do not exist.

    Each is reported once per conversation. If a server's tools are known, their calls report the fault
    instead.
    """
    told, conversation = prepared.services.told_sources, prepared.log.conversation.id
    if len(told) >= _MOST_TOLD:
        told.clear()  # A repeated notice is cheaper than unbounded memory.
    for source in prepared.services.toolbox.sources:
        if source.group().tools:
            continue
        why = getattr(source, "error", "")  # Custom sources may lack it.
        if not why and getattr(source, "state", "") == "starting":
            why = sentence("tools.starting")
        if why and (conversation, source.name, str(why)) not in told:
            told.add((conversation, source.name, str(why)))
            prepared.view.notice(sentence("tools.missing", source=source.name, why=why), "source")


def _offered(prepared: PreparedTurn, request: Request, offer: Offer) -> dict[str, Tool]:
    """Return the tools of a request after the plugins changed it.

    A tool that a plugin adds by description must exist. `TurnView.add_tool` adds a custom one.
    """
    tools = {**offer.tools, **prepared.view.added_tools}
    if any(spec.name not in tools for spec in request.tools):
        tools = {**prepared.services.toolbox.offer().tools, **tools}
    for spec in request.tools:
        if spec.name not in tools:
            raise ConfigError(
                f"A plugin offers the tool {spec.name!r}, but no code runs it. Use turn.add_tool."
            )
    return {spec.name: tools[spec.name] for spec in request.tools}


def _calls_now(log: TurnLog) -> tuple[ToolCall, ...]:
    reply = next((message for message in log.messages if message.id == log.turn.reply), None)
    return reply.calls if reply is not None else ()


def mode_of(services: Services, log: TurnLog, *agents: Agent) -> Mode:
    """Return the mode from the send or the conversation, else from the agent.

    For a task, and after handovers, the strictest mode applies. An unknown word counts as `ask`.
    """
    said = log.turn.options.mode or _setting(log, "mode")
    node = accepted.mode if (accepted := log.turn.options.accepted) is not None else services.mode
    nodes = max(services.mode, node, key=lambda mode: MODES.index(mode if mode in MODES else "ask"))
    own = [agent.mode or (None if said else nodes) for agent in agents]
    alone = len(agents) == 1 and log.conversation.parent is None
    wanted = [said] if said and alone else [said, *own]
    known = [mode if mode in MODES else "ask" for mode in wanted if mode]
    return max(known, key=MODES.index)


async def _system_prompt(prepared: PreparedTurn, offer: Offer) -> str:
    """R2: return the layers with the additions of plugins.

    The privacy plugin comes last elsewhere. Its text precedes the rules of tools.
    """
    layers = _system_layers(prepared, offer)
    plugins = sorted(prepared.hooks.system_prompt, key=lambda plugin: not plugin.comes_last)
    text = system_of([layer for layer in layers if layer[0] != TOOL_RULES])
    rules = system_of([layer for layer in layers if layer[0] == TOOL_RULES])
    for plugin in plugins:
        if rules and not plugin.comes_last:
            text, rules = "\n\n".join(filter(None, (text, rules))), ""
        text = returned(plugin, "system_prompt", await plugin.system_prompt(text, prepared.view), str)
    return "\n\n".join(filter(None, (text, rules)))


def _system_layers(prepared: PreparedTurn, offer: Offer) -> list[tuple[str, str]]:
    return system_layers(
        prepared.services,
        prepared.agent,
        prepared.model,
        prepared.log.settings,
        workspace=prepared.workspace,
        sent=prepared.log.turn.options.system,
        rules=offer.rules,
    )


def _dialect(log: TurnLog) -> str | None:
    """Return the form of calls in this turn. None to use the model's known form."""
    wanted = log.turn.options.dialect or _setting(log, "dialect")
    return None if wanted == AUTO else wanted


async def _native_models(prepared: PreparedTurn) -> set[str]:
    """Return models that made native calls in any conversation, including other processes and earlier runs
    (D6)."""
    known = prepared.services.native_models
    if prepared.model.name not in known and _reads_text(prepared.model):
        known |= await prepared.log.store.native_models()
    return known


def _has_called(log: TurnLog, native: Set[str], model: str) -> bool:
    """Return whether this model has made a native call: then its text is only text (D6)."""
    return model in native or any(
        message.model == model and any(call.format == "" for call in message.calls) for message in log.path
    )


async def _granted_formats(prepared: PreparedTurn) -> Callable[[str, str], bool] | None:
    """Return users' decisions about text formats that models are not known to write (D7).

    None if the model's text is not read.
    """
    if not _reads_text(prepared.model) or prepared.log.conversation.parent is not None:
        # The rules of a task's giver count too.
        return None
    log = prepared.log
    grants = await load_grants(prepared.services, log.conversation.id, log.turn.options.workspace, log.sender)
    rules = [rule for rule in prepared.rules if rule.permission == "format"]
    given = [rule for rule in grants if rule.permission == "format"]
    if not rules and not given:
        return None
    return lambda name, model: (
        decide_with_grants("format", (f"{name} {model}",), rules, given).action == "allow"
    )


def _reads_text(model: Model) -> bool:
    return bool(getattr(model, "reads_text", False))  # Custom models may lack this attribute.


def _setting(log: TurnLog, name: str) -> Any:
    return log.settings.get(name)


def _watch(plugin: Plugin, view: TurnView, event: Event) -> None:
    plugin.on_event(event, view)


async def _start(plugin: Plugin, view: TurnView) -> Cleanup | None:
    started = plugin.on_turn_start(view)
    if started is None or callable(started):
        return started
    if isinstance(started, Awaitable):
        cleanup: Any = await started
        if cleanup is not None and not callable(cleanup):
            raise ConfigError(
                f"Plugin {plugin.name!r}: on_turn_start must return a cleanup function, not {cleanup!r}."
            )
        return cleanup  # type: ignore[no-any-return]
    stack = AsyncExitStack()
    await stack.enter_async_context(asynccontextmanager(lambda: started)())
    return stack.aclose
