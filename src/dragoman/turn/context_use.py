"""What fills a model's context: who brought how much of the last request of a turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dragoman.conversation.tree import Tree
from dragoman.conversation.window import window
from dragoman.messages.media import CHAT, type_of
from dragoman.messages.message import File, Part, ProviderItem, Reasoning, Summary, Text, ToolCall, canonical
from dragoman.messages.request import RequestMessage
from dragoman.tools.tool import Tool
from dragoman.turn.facts import options_in
from dragoman.turn.layers import RequestLayers, layers_of
from dragoman.turn.services import Services
from dragoman.wire.selection import current_message

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
    layers = await layers_of(services, turn)
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
    sizes = _sizes(layers, sent, services.toolbox.offer().tools)
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
