"""What the layers of settings give to a request, the later over the earlier, and who gave what (R1, R2)."""

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
    variant: Options = getattr(model, "variant", {})  # a model of one's own may have none
    talks = type_of(model) == CHAT  # what is set for all is set for those who talk
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
    """The options of a request; None removes what is below it."""
    return merge_options(*(layer for _, layer in option_layers(services, agent, model, settings, sent)))


def switches_of(model: object, chosen: object, sent: Mapping[str, bool]) -> dict[str, bool]:
    """Which groups and tools are on or off: as the model, the conversation (`chosen`) and the send say."""
    own: Mapping[str, bool] = getattr(model, "switches", {})  # a model of one's own may have none
    return {**own, **(chosen if isinstance(chosen, dict) else {}), **sent}


def conversation_switches(
    services: Services, settings: Mapping[str, JsonValue], agent: Agent
) -> dict[str, bool]:
    """What is on or off in the next turn of a conversation. A model that cannot be asked switches nothing."""
    return switches_of(model_here(services, settings, agent), settings.get("tools"), {})


def model_here(services: Services, settings: Mapping[str, JsonValue], agent: Agent) -> Model | None:
    """The model of the next turn; None where it cannot be asked."""
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
    """L1: above the budget, the tools of sources are found when they are needed."""
    named = settings.get("always_tools")
    always = {*services.always_tools, *(named if isinstance(named, list) else ())}
    context = model.context if model is not None else None
    return defer(offer, agent.tool_budget or services.tool_budget, context, {*map(str, always)}, path)


TOOL_RULES = "tools"  # the layer of the rules that groups of tools bring


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
    """The fixed head first and nothing that changes within a day, so that providers can cache it."""
    texts = [
        ("the day", f"Today is {services.today()}."),
        ("workspace", workspace.prompt if workspace is not None else ""),
        ("settings", services.system),
        (f"model {model.name}", getattr(model, "prompt", "")),  # a model of one's own may have none
        (f"agent {agent.name}", agent.prompt),
        ("conversation", settings.get("system")),
        ("this send", sent),
        (TOOL_RULES, rules),
    ]
    return [(who, text.strip()) for who, text in texts if text and text.strip()]


def today_by(clock: Callable[[], float]) -> Callable[[], str]:
    """The day in words, by this clock and the machine's time zone; put into words once a minute."""
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
    """What the requests of a turn hold before plugins change them, and who gave it."""

    turn: str
    model: str
    agent: str
    system: tuple[tuple[str, str], ...]  # who, and the text
    options: tuple[tuple[str, JsonValue, str], ...]  # name, value, and who gave it
    tools: tuple[str, ...]
    switched_off: tuple[str, ...]  # groups and tools, by model, conversation or send
    plugins: tuple[str, ...]  # that may change it

    def text(self) -> str:
        """For people."""
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
    """Of a stored turn. What its plugins did is not known: they may do something else each time."""
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
    known: Options = getattr(model, "default_options", {})  # one's own may have none
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
    """The tools that a stored turn could call, also those that it would have to find first. Its model and its
    folder can be gone since."""
    sent = options_in(await services.store.facts(turn))
    settings = sent.settings or {}
    *_, agent = await agents_of(services, turn)
    await services.toolbox.ready()
    model = model_here(services, {"model": sent.started_with}, agent)
    switches = switches_of(model, settings.get("tools"), sent.tools)
    rules = [*services.rules, *agent.rules, *services.bounds]
    return services.toolbox.offer(rules, switches, agent.tools)


# What fills a model's context: who brought how much of the last request of a turn.


ShareKind: TypeAlias = Literal[
    "prompt", "tools", "person", "answers", "thoughts", "calls", "files", "summary"
]
_Sizes: TypeAlias = "Counter[tuple[ShareKind, str]]"

_LETTERS = 4  # of a token, about
_PICTURE = 4_000  # letters that a file counts for: what it is sent as, its provider decides


@dataclass(slots=True, frozen=True)
class ContextShare:
    """`name` says whose: a layer of the prompt, a tool. `tokens` are estimated by length."""

    kind: ShareKind
    name: str
    tokens: int


@dataclass(slots=True, frozen=True)
class ContextUse:
    """Of the last request of a turn, before plugins changed it. `counted` tells whether `used` is what the
    provider counted, and no estimate. `context` is None where nobody knows what the model takes."""

    turn: str
    model: str
    context: int | None
    used: int
    counted: bool
    shares: tuple[ContextShare, ...]  # the largest first

    def by_kind(self) -> list[tuple[ShareKind, list[ContextShare]]]:
        """The largest first."""
        kinds: dict[ShareKind, list[ContextShare]] = {}
        for share in self.shares:
            kinds.setdefault(share.kind, []).append(share)
        return sorted(kinds.items(), key=lambda one: -sum(share.tokens for share in one[1]))


async def context_use(services: Services, turn: str) -> ContextUse:
    """Of a stored turn."""
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
    """In letters."""
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
    return +sizes  # without what has no letters


def _of_part(role: str, part: Part) -> Iterator[tuple[ShareKind, str, int]]:
    match part:
        case Text():
            yield "person" if role == "user" else "answers", "", len(part.text)
        case Reasoning():
            yield "thoughts", "", len(part.text)
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
