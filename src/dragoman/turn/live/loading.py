"""A stored turn, made ready to run here: read, and checked for what it needs."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from pydantic import ValidationError

from dragoman.conversation.tree import Tree
from dragoman.errors import DragomanError, NotFound, StoreUnavailable, TurnQuarantined
from dragoman.messages.message import CallState, File, Message, Part, ToolCall, ToolResult
from dragoman.sentences import sentence
from dragoman.store.store import Queued, Started, Store
from dragoman.turn.facts import FACT, Fact, ResultAsked, TurnOptions, TurnStarted, options_in
from dragoman.turn.live.log import TurnLog
from dragoman.turn.services import Services


async def load_turn(services: Services, turn: str) -> TurnLog:
    """A turn that is ours, to resume. TurnQuarantined if it cannot be read, or if what it was started with is
    missing here. The caller gives it up then, as it does if the store fails."""
    log = await read_turn(services, turn)
    _check_here(services, turn, log.turn.options)
    return log


async def read_turn(services: Services, turn: str) -> TurnLog:
    """A turn that is ours, as it stands. TurnQuarantined where it cannot be read."""
    try:
        return await _load(services, turn)
    except (TurnQuarantined, StoreUnavailable):
        raise
    except (DragomanError, ValidationError, ValueError, LookupError) as error:
        why = " ".join(str(error).split())[:200]
        raise TurnQuarantined(turn, sentence("aside.unreadable", why=why)) from error


async def _load(services: Services, turn: str) -> TurnLog:
    store = services.store
    facts = [FACT.load(body) for body in await store.facts(turn)]
    if not facts or not isinstance(facts[0], TurnStarted):
        raise TurnQuarantined(turn, sentence("aside.no_start"))
    row = await store.turn(turn)
    messages, _ = await store.messages(row.conversation)
    tree = Tree(messages)
    return TurnLog(
        row,
        store=store,
        conversation=await store.conversation(row.conversation),
        facts=facts,
        path=tree.recent(_tip_of(tree, turn, row.message), turn),
        questions=await store.questions_of(turn),
        under_review=await _under_review(store, facts),
        clock=services.clock,
    )


def _check_here(services: Services, turn: str, options: TurnOptions) -> None:
    if (why := missing_here(services, options)) is not None:
        raise TurnQuarantined(turn, why)


def missing_here(services: Services, options: TurnOptions) -> str | None:
    """What a turn needs and this process has not (T14): the same folder, agent and model. None: nothing."""
    try:
        services.workspace_of(options)
    except NotFound:
        return sentence("aside.folder", folder=options.workspace)
    settings = options.settings or {}
    try:
        agent = services.agent(options.agent or _text(settings.get("agent")))
        if options.started_with is not None:
            named = services.model(options.model or _text(settings.get("model")) or agent.model)
            if named.name != options.started_with:
                services.model(options.started_with)
    except DragomanError as error:
        return sentence("aside.missing", error=error)
    return None


def needs_of(queued: Queued) -> str:
    """What a queued turn that could begin waits for, in words: a process that has all of it begins it."""
    options = options_in([queued.fact])
    agent = options.agent or _text((options.settings or {}).get("agent"))
    named = {"model": options.started_with or options.model, "agent": agent, "folder": options.workspace}
    needs = [f"the {noun} {name!r}" for noun, name in named.items() if name]
    return f"a running process that has {' and '.join(needs)}" if needs else "a running process"


def _text(setting: object) -> str | None:
    return setting if isinstance(setting, str) else None


async def _under_review(store: Store, facts: list[Fact]) -> dict[str, ToolResult]:
    """Results that wait for a person."""
    found = {}
    for fact in facts:
        if isinstance(fact, ResultAsked):
            call, _, result = await store.call(fact.call)
            if call.state is CallState.REVIEWING and result is not None:
                found[fact.call] = result
    return found


async def load_path(store: Store, conversation: str, leaf: str) -> list[Message]:
    messages, _ = await store.messages(conversation)
    return Tree(messages).recent(leaf)


def _tip_of(tree: Tree, turn: str, message: str) -> str:
    """The newest message of the turn on its own branch."""
    if message not in tree:
        raise NotFound("message", message)
    tip = message
    while own := [id for id in tree.children(tip) if tree[id].turn == turn]:
        tip = own[-1]
    return tip


# What was said in conversations whose turns ended here: a cache that spares the next turn the reading.


_ROOM = 64 * 2**20  # bytes
_ANY = 500  # bytes that a message or a part of one takes, whatever is in it


@dataclass(slots=True, frozen=True)
class _EndedPath:
    revision: int
    path: list[Message]
    size: int


class Paths:
    """Paths of ended turns, as many as there is room for; the one used longest ago goes first."""

    def __init__(self, *, room: int = _ROOM) -> None:
        self._room = room
        self._ended: OrderedDict[str, _EndedPath] = OrderedDict()
        self.size = 0  # in bytes, estimated

    def keep(self, log: TurnLog) -> None:
        self._pop(log.conversation.id)
        if log.resumed:
            return  # its revision was not counted from the start
        size = sum(map(_size, log.path))
        if size > self._room:
            return
        self._ended[log.conversation.id] = _EndedPath(log.revision, log.path, size)
        self.size += size
        while self.size > self._room:
            self._pop(next(iter(self._ended)))

    def take(self, started: Started) -> list[Message] | None:
        """The path of this conversation, if nobody has changed it since, with the new message at its end."""
        if started.message is None:
            return None
        if started.message.parent is None and started.conversation.leaf is None:
            return [started.message]
        ended = self._pop(started.conversation.id)
        if ended is None:
            return None
        path = ended.path
        if started.revision != ended.revision + 1 or not path or path[-1].id != started.message.parent:
            return None
        return [*path, started.message]  # a copy: who holds the earlier turn reads on in its own

    def forget(self, conversation: str) -> None:
        self._pop(conversation)

    def _pop(self, conversation: str) -> _EndedPath | None:
        ended = self._ended.pop(conversation, None)
        if ended is not None:
            self.size -= ended.size
        return ended


def _size(message: Message) -> int:
    """About how many bytes it takes in memory. Cheap, since every message of a path is asked at every end."""
    return _ANY + sum(map(_part_size, (*message.parts, *message.inner)))


def _part_size(part: Part) -> int:
    if isinstance(part, ToolCall):
        text = sum(len(value) if isinstance(value, str) else _ANY for value in part.arguments.values())
        if (result := part.result) is not None:  # a value is about as long as the text that was made from it
            text += len(result.text) * (1 if result.value is None else 2)
        return _ANY + text
    if isinstance(part, File):
        return _ANY + len(part.url or "")
    return _ANY + len(part.message if part.type == "error" else part.text)
