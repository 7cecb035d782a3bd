"""Merges the layers of settings into a request, later over earlier, and records their sources (R1, R2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias

from pydantic import JsonValue

from dragoman.conversation.tree import Tree
from dragoman.conversation.window import window
from dragoman.errors import DragomanError
from dragoman.messages.media import CHAT, type_of
from dragoman.messages.message import (
    File,
    Message,
    Part,
    ProviderItem,
    Reasoning,
    Summary,
    Text,
    ToolCall,
    canonical,
)
from dragoman.messages.request import RequestMessage
from dragoman.tools.deferred import defer
from dragoman.tools.tool import Tool
from dragoman.tools.toolbox import Offer
from dragoman.turn.acting_agent import NAME as HAND_OFF
from dragoman.turn.acting_agent import agents_of
from dragoman.turn.agent import Agent
from dragoman.turn.facts import options_in
from dragoman.turn.plugin import Hooks
from dragoman.turn.send import client_tools_of
from dragoman.turn.services import Services
from dragoman.turn.steps.authority import bounds_in
from dragoman.wire.media.selection import current_message
from dragoman.wire.options import merge_options, without_removed
from dragoman.wire.wire import Model
from dragoman.workspace.workspaces import Workspace

Options: TypeAlias = Mapping[str, JsonValue]


def option_layers(
    services: Services, agent: Agent, model: Model, settings: Mapping[str, Any], sent: Options
) -> list[tuple[str, Options]]:
    variant: Options = getattr(model, "variant", {})  # Custom models may have none.
    talks = type_of(model) == CHAT  # Settings for all models apply to chat models.
    return [
        ("settings", services.options if talks else {}),
        (f"agent {agent.name}", agent.options if talks else {}),
        ("the model's variant", variant),
        ("conversation", settings.get("options") or {}),
        ("this send", sent),
    ]


def options_of(
    services: Services, agent: Agent, model: Model, settings: Mapping[str, Any], sent: Options
) -> dict[str, JsonValue]:
    """Return the options of a request. None removes the value of lower layers."""
    return merge_options(*(layer for _, layer in option_layers(services, agent, model, settings, sent)))


def switches_of(model: object, chosen: object, sent: Mapping[str, bool]) -> dict[str, bool]:
    """Return which groups and tools are on or off by model, conversation (`chosen`) and send."""
    own: Mapping[str, bool] = getattr(model, "switches", {})  # Custom models may have none.
    return {**own, **(chosen if isinstance(chosen, dict) else {}), **sent}


def conversation_switches(
    services: Services, settings: Mapping[str, JsonValue], agent: Agent
) -> dict[str, bool]:
    """Return the switches for the next turn of a conversation. A model that is unavailable here switches
    nothing."""
    return switches_of(model_here(services, settings, agent), settings.get("tools"), {})


def model_here(services: Services, settings: Mapping[str, JsonValue], agent: Agent) -> Model | None:
    """Return the model of the next turn. None if it is unavailable here."""
    named = settings.get("model") or agent.model
    try:
        return services.model(str(named) if named else None)
    except DragomanError:
        return None


def deferred_offer(
    services: Services,
    agent: Agent,
    model: Model | None,
    offer: Offer,
    path: Iterable[Message],
    *,
    settings: Mapping[str, JsonValue],
) -> Offer:
    """L1: above the budget, tools of sources are left out until the model searches for them."""
    named = settings.get("always_tools")
    always = {*services.always_tools, *(named if isinstance(named, list) else ())}
    context = model.context if model is not None else None
    return defer(offer, agent.tool_budget or services.tool_budget, context, {*map(str, always)}, path)


TOOL_RULES = "tools"  # the layer with the rules of tool groups


def system_layers(
    services: Services,
    agent: Agent,
    model: Model,
    settings: Mapping[str, Any],
    *,
    workspace: Workspace | None,
    sent: str | None,
    rules: str,
) -> list[tuple[str, str]]:
    """Return the layers of the system prompt.

    A fixed head comes first, without anything that changes within a day, so that providers can cache it.
    """
    texts = [
        ("the day", f"Today is {services.today()}."),
        ("workspace", workspace.prompt if workspace is not None else ""),
        ("settings", services.system),
        (f"model {model.name}", getattr(model, "prompt", "")),  # Custom models may have none.
        (f"agent {agent.name}", agent.prompt),
        ("conversation", settings.get("system")),
        ("this send", sent),
        (TOOL_RULES, rules),
    ]
    return [(who, text.strip()) for who, text in texts if text and text.strip()]


def today_by(clock: Callable[[], float]) -> Callable[[], str]:
    """Return a function that describes the day in the local time zone, updated at most once a minute."""
    said, words = -1, ""

    def today() -> str:
        nonlocal said, words
        now = clock()
        if (minute := int(now // 60)) != said:
            said, words = minute, datetime.fromtimestamp(now).astimezone().strftime("%A, %d %B %Y (%Z)")
        return words

    return today


def system_of(layers: Sequence[tuple[str, str]]) -> str:
    return "\n\n".join(text for _, text in layers)


@dataclass(slots=True, frozen=True)
class RequestLayers:
    """The contents of a turn's requests before plugins change them, each with its source."""

    turn: str
    model: str
    agent: str
    system: tuple[tuple[str, str], ...]  # source and text
    options: tuple[tuple[str, JsonValue, str], ...]  # name, value and source
    tools: tuple[str, ...]
    switched_off: tuple[str, ...]  # groups and tools switched off by model, conversation or send
    plugins: tuple[str, ...]  # plugins that may change the request

    def text(self) -> str:
        """Return the layers as readable text."""
        lines = [f"model    {self.model}", f"agent    {self.agent or 'none'}", ""]
        for who, text in self.system:
            lines += [f"── system prompt: {who}", text, ""]
        lines.append("── options")
        lines += [f"{name} = {value!r}  ({who})" for name, value, who in self.options] or ["none"]
        lines += ["", "── tools", ", ".join(self.tools) or "none"]
        if self.switched_off:
            lines.append(f"switched off: {', '.join(self.switched_off)}")
        lines += ["", f"── plugins that may change it: {', '.join(self.plugins) or 'none'}"]
        return "\n".join(lines)


async def layers_of(services: Services, turn: str) -> RequestLayers:
    """Return the layers of a stored turn. Changes by its plugins are unknown: they may differ each time."""
    return (await _layers_and_offer(services, turn))[0]


async def _layers_and_offer(services: Services, turn: str) -> tuple[RequestLayers, Offer]:
    sent = options_in(await services.store.facts(turn))
    settings = sent.settings or {}
    *earlier, agent = await agents_of(services, turn)
    model = services.model((earlier and agent.model) or sent.started_with)
    await services.toolbox.ready()
    switches = switches_of(model, settings.get("tools"), sent.tools)
    workspace = services.workspace_of(sent)
    bounds = bounds_in(services, workspace)
    whole = services.toolbox.offer([*services.rules, *agent.rules, *bounds], switches, agent.tools)
    messages, _ = await services.store.messages((await services.store.turn(turn)).conversation)
    last = next((one.id for one in reversed(messages) if one.turn == turn), None)
    offer = deferred_offer(services, agent, model, whole, Tree(messages).path(last), settings=settings)
    known: Options = getattr(model, "default_options", {})  # Custom models may have none.
    layers = [(f"model {model.name}", known), *option_layers(services, agent, model, settings, sent.options)]
    givers = {name: who for who, layer in layers for name in layer}
    held = without_removed(merge_options(*(layer for _, layer in layers)))
    tools = list({**offer.tools, **client_tools_of(sent, bounds)})
    if agent.handoffs:
        tools.append(HAND_OFF)
    talks = type_of(model) == CHAT
    if not talks or (sent.mode or settings.get("mode") or agent.mode or services.mode) == "off":
        tools = []
    hooks = Hooks(services.plugins, sent.disabled)
    changing = dict.fromkeys(
        [*hooks.system_prompt, *hooks.request_params, *hooks.before_request, *hooks.before_sending]
    )
    found = RequestLayers(
        turn,
        model.name,
        agent.name,
        tuple(
            system_layers(
                services, agent, model, settings, workspace=workspace, sent=sent.system, rules=offer.rules
            )
        )
        if talks
        else (),
        tuple((name, value, givers[name]) for name, value in held.items()),
        tuple(tools),
        tuple(name for name, on in switches.items() if not on),
        tuple(plugin.name for plugin in changing),
    )
    return found, offer


async def offer_of(services: Services, turn: str) -> Offer:
    """Return the tools that a stored turn could call, including deferred ones.

    Its model and its folder may be gone since.
    """
    sent = options_in(await services.store.facts(turn))
    settings = sent.settings or {}
    *_, agent = await agents_of(services, turn)
    await services.toolbox.ready()
    model = model_here(services, {"model": sent.started_with}, agent)
    switches = switches_of(model, settings.get("tools"), sent.tools)
    rules = [*services.rules, *agent.rules, *services.bounds]
    return services.toolbox.offer(rules, switches, agent.tools)


# Estimates which parts filled a model's context in the last request of a turn.


ShareKind: TypeAlias = Literal[
    "prompt", "tools", "person", "answers", "reasoning", "calls", "files", "summary"
]
_Sizes: TypeAlias = "Counter[tuple[ShareKind, str]]"

_LETTERS = 4  # Approximate number of characters per token.
_PICTURE = 4_000  # Characters assumed for a file, whose sent form depends on the provider.


@dataclass(slots=True, frozen=True)
class ContextShare:
    """One share of the context. `name` is its source: a prompt layer or a tool. `tokens` are estimated by
    length."""

    kind: ShareKind
    name: str
    tokens: int


@dataclass(slots=True, frozen=True)
class ContextUse:
    """The context use of a turn's last request, before plugins changed it.

    `counted` is true if the provider counted `used`, and false if it is an estimate. `context` is None if the
    model's limit is unknown.
    """

    turn: str
    model: str
    context: int | None
    used: int
    counted: bool
    shares: tuple[ContextShare, ...]  # sorted, the largest first

    def by_kind(self) -> list[tuple[ShareKind, list[ContextShare]]]:
        """Return the shares by kind, the largest kind first."""
        kinds: dict[ShareKind, list[ContextShare]] = {}
        for share in self.shares:
            kinds.setdefault(share.kind, []).append(share)
        return sorted(kinds.items(), key=lambda one: -sum(share.tokens for share in one[1]))


async def context_use(services: Services, turn: str) -> ContextUse:
    """Return the context use of a stored turn."""
    layers, offer = await _layers_and_offer(services, turn)
    row = await services.store.turn(turn)
    messages, _ = await services.store.messages(row.conversation)
    tree = Tree(messages)
    replies = [one for one in messages if one.turn == turn and one.role == "assistant"]
    asked = next((one for one in reversed(replies) if one.usage is not None), None)
    path = tree.path(asked.id)[:-1] if asked is not None else tree.path(row.message)
    settings = options_in(await services.store.facts(turn)).settings or {}
    history = settings.get("history")
    model = services.model(layers.model)
    if (type := type_of(model)) == CHAT:
        sent = window(path, turn=turn, history=history if isinstance(history, int) else None)
    else:
        sent = (current_message(path, row.message, type),)
    sizes = _sizes(layers, sent, {**services.toolbox.offer().tools, **offer.tools})
    letters = sum(sizes.values())
    used = asked.usage.input if asked is not None and asked.usage is not None else 0
    total = used or letters // _LETTERS
    shares = [
        ContextShare(kind, name, round(total * size / letters)) for (kind, name), size in sizes.most_common()
    ]
    return ContextUse(turn, layers.model, model.context, total, bool(used), tuple(shares))


def _sizes(layers: RequestLayers, sent: Sequence[RequestMessage], tools: Mapping[str, Tool]) -> _Sizes:
    """Return the sizes in characters."""
    sizes: _Sizes = Counter()
    for who, text in layers.system:
        sizes["prompt", who] += len(text)
    for name in layers.tools:
        if (tool := tools.get(name)) is not None:
            spec = tool.spec()
            sizes["tools", name] += len(spec.description) + len(canonical(spec.parameters))
    for message in sent:
        for part in message.parts:
            for kind, name, size in _of_part(message.role, part):
                sizes[kind, name] += size
    return +sizes  # Drop entries without characters.


def _of_part(role: str, part: Part) -> Iterator[tuple[ShareKind, str, int]]:
    match part:
        case Text():
            yield "person" if role == "user" else "answers", "", len(part.text)
        case Reasoning():
            yield "reasoning", "", len(part.text)
        case Summary():
            yield "summary", "", len(part.text)
        case File():
            yield "files", part.media_type, _PICTURE
        case ToolCall():
            result = part.result.text if part.result is not None else ""
            yield "calls", part.tool, len(canonical(part.arguments)) + len(result)
            for file in part.result.attachments if part.result is not None else ():
                yield "files", file.media_type, _PICTURE
        case ProviderItem():
            yield "answers", "", len(part.text or canonical(part.opaque))
        case _:
            return
