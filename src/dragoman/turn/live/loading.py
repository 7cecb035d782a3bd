"""Loads a stored turn to run here, and checks that everything it needs is available."""

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
    """Load an owned turn to resume it.

    Raise TurnQuarantined if it is unreadable or if something it was started with is missing here. The caller
    then releases it, as it does if the store fails.
    """
    log = await read_turn(services, turn)
    _check_here(services, turn, log.turn.options)
    return log


async def read_turn(services: Services, turn: str) -> TurnLog:
    """Load an owned turn in its current state. Raise TurnQuarantined if it is unreadable."""
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
    """Return what the turn needs and this process lacks (T14): the same folder, agent and model. None if
    nothing."""
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
    """Describe what a queued turn needs in order to start. Any process that has all of it starts the turn."""
    options = options_in([queued.fact])
    agent = options.agent or _text((options.settings or {}).get("agent"))
    named = {"model": options.started_with or options.model, "agent": agent, "folder": options.workspace}
    needs = [f"the {noun} {name!r}" for noun, name in named.items() if name]
    return f"a running process that has {' and '.join(needs)}" if needs else "a running process"


def _text(setting: object) -> str | None:
    return setting if isinstance(setting, str) else None


async def _under_review(store: Store, facts: list[Fact]) -> dict[str, ToolResult]:
    """Return the results that wait for a user's review."""
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
    """Return the newest message of the turn on its branch."""
    tip = message
    while own := [id for id in tree.children(tip) if tree[id].turn == turn]:
        tip = own[-1]
    return tip


# Caches the messages of conversations whose turns ended here, so that the next turn need not read them.


_ROOM = 64 * 2**20  # bytes
_ANY = 500  # Assumed minimum bytes of a message or a part, whatever its content.


@dataclass(slots=True, frozen=True)
class _EndedPath:
    revision: int
    path: list[Message]
    size: int


class Paths:
    """Paths of ended turns, up to a memory limit. The least recently used is dropped first."""

    def __init__(self, *, room: int = _ROOM) -> None:
        self._room = room
        self._ended: OrderedDict[str, _EndedPath] = OrderedDict()
        self.size = 0  # in bytes, estimated

    def keep(self, log: TurnLog) -> None:
        self._pop(log.conversation.id)
        if log.resumed:
            return  # Its revision was not counted from the start.
        size = sum(map(_size, log.path))
        if size > self._room:
            return
        self._ended[log.conversation.id] = _EndedPath(log.revision, log.path, size)
        self.size += size
        while self.size > self._room:
            self._pop(next(iter(self._ended)))

    def take(self, started: Started) -> list[Message] | None:
        """Return this conversation's path with the new message at its end, if it has not changed since."""
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
        # Return a copy, because holders of the earlier turn keep reading the original.
        return [*path, started.message]

    def forget(self, conversation: str) -> None:
        self._pop(conversation)

    def _pop(self, conversation: str) -> _EndedPath | None:
        ended = self._ended.pop(conversation, None)
        if ended is not None:
            self.size -= ended.size
        return ended


def _size(message: Message) -> int:
    """Estimate the message's bytes in memory. This must be cheap: it runs for each message at every turn's
    end."""
    return _ANY + sum(map(_part_size, (*message.parts, *message.inner)))


def _part_size(part: Part) -> int:
    if isinstance(part, ToolCall):
        text = sum(len(value) if isinstance(value, str) else _ANY for value in part.arguments.values())
        if (result := part.result) is not None:  # A value is about as long as the text made from it.
            text += len(result.text) * (1 if result.value is None else 2)
        return _ANY + text
    if isinstance(part, File):
        return _ANY + len(part.url or "")
    return _ANY + len(part.message if part.type == "error" else part.text)
