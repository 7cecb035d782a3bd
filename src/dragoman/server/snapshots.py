"""Read what clients see of conversations: lines of the list, the queue, and whole conversations.

A long conversation takes time, so the work is divided into small steps and other requests run between them.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from dragoman.conversation.sharing import Right
from dragoman.conversation.tree import Conversation
from dragoman.errors import NotFound, StoreUnavailable
from dragoman.messages.codec import Codec, replace_fast
from dragoman.messages.events import (
    CallAnswered,
    CallAsked,
    CallEnd,
    Event,
    FilePartial,
    StepRetry,
    TurnEnd,
    TurnStart,
    TurnState,
)
from dragoman.messages.fold import TurnFold
from dragoman.messages.message import Message, ToolCall
from dragoman.messages.questions import Question
from dragoman.runtime import Runtime
from dragoman.server.shapes import (
    ConversationSummary,
    Origin,
    QueuedTurn,
    QueueView,
    SteeringMessage,
    UnfinishedTurn,
)
from dragoman.store.codecs import MESSAGE
from dragoman.store.store import Busy, Queued, TurnRow
from dragoman.turn.live.event_log import number_before
from dragoman.turn.live.loading import needs_of
from dragoman.turn.live.log import TurnLog

SUMMARY: Codec[ConversationSummary] = Codec(ConversationSummary)
QUEUE: Codec[QueueView] = Codec(QueueView)

INTERRUPTED = "interrupted"
QUEUED = "queued"
_UNRUN = (INTERRUPTED, QUEUED)
_PATIENCE = 2.0  # maximum seconds until another process's turn reports events here
_TRIES = 3  # tries to read the store no earlier than the received events


def summary(
    conversation: Conversation,
    busy: Busy,
    snippet: str | None = None,
    found: str | None = None,
    *,
    right: Right | None = None,
    shared: bool = False,
) -> ConversationSummary:
    """Return the line of a conversation for a user with this right. Only the owner gets private texts."""
    settings = {**conversation.settings}
    if right not in (None, Right.OWN):
        settings.pop("private", None)
    origin = Origin(conversation.parent, conversation.call) if conversation.parent is not None else None
    return ConversationSummary(
        conversation.id,
        conversation.title,
        conversation.leaf,
        settings,
        conversation.usage,
        conversation.created,
        conversation.updated,
        busy.live,
        busy.waiting,
        origin,
        snippet,
        found,
        conversation.pinned,
        conversation.archived,
        list(conversation.tags),
        conversation.owner,
        right.role if right is not None else None,
        shared,
    )


async def right_in(runtime: Runtime, conversation: Conversation, person: str) -> Right:
    if conversation.owner == person:
        return Right.OWN  # This row was just read.
    try:
        return await runtime.store.right_of(conversation.id, person)
    except NotFound:
        return Right.NONE


async def summaries(
    runtime: Runtime, conversations: Sequence[Conversation], person: str
) -> list[ConversationSummary]:
    """Return the lines of these conversations as this user may see them, without those that the user has
    lost."""
    ids = [one.id for one in conversations]
    busy, shared = await runtime.store.busy(ids), await runtime.store.shared_among(ids)
    rights = [await right_in(runtime, one, person) for one in conversations]
    return [
        summary(one, busy.get(one.id, Busy()), right=right, shared=one.id in shared)
        for one, right in zip(conversations, rights, strict=True)
        if right is not Right.NONE
    ]


def without_private(snapshot: bytes) -> bytes:
    """Return a snapshot for a member, without private texts, which are the owner's."""
    tree = from_json(snapshot)
    tree["conversation"]["settings"].pop("private", None)
    return to_json(tree)


async def state_of(runtime: Runtime, row: TurnRow) -> str:
    """Return the state of a turn. If no process runs an unfinished turn, it is `queued` or `interrupted`.

    It is `queued` if it waits for a worker or for a slot under a limit. It is `interrupted` until a user
    continues it. A turn that only waits for a user needs no process: the answer wakes it.
    """
    if (live := runtime.bus.here(row.id)) is not None:
        await live.log.stored()  # S2: a client that reads `waiting` looks for the approval request next.
        return (await runtime.store.turn(row.id)).state
    if not row.live or not await runtime.store.is_abandoned(row.id):
        return row.state
    if row.state == "waiting":
        signals = await runtime.store.signals(row.id)
        if not any(signal.kind != "follow" for signal in signals):
            return row.state
    return QUEUED if await runtime.driver.will_run(row) else INTERRUPTED


async def queue_of(runtime: Runtime, conversation: str, live: Sequence[TurnRow]) -> QueueView:
    """Return a user's messages that no turn has taken yet: those for new turns, and those that steer these
    turns."""
    queued = await runtime.store.queued(conversation=conversation)
    steering = []
    for row in live:
        for signal in await runtime.store.signals(row.id):
            if signal.kind == "steer":
                with suppress(ValidationError):  # The turn removes damaged messages.
                    message = MESSAGE.from_json(signal.body.get("message"))
                    steering.append(SteeringMessage(signal.seq, row.id, message))
    return QueueView(conversation, await queued_turns(runtime, queued), steering)


async def queued_turns(runtime: Runtime, queued: Sequence[Queued]) -> list[QueuedTurn]:
    places = {one.conversation for one in queued}
    may_begin = {turn for place in places for turn in await runtime.store.queue(place)}
    return [
        QueuedTurn(one.turn, one.message, needs_of(one) if one.turn in may_begin else None) for one in queued
    ]


# ── turns of other processes ──────────────────────────────────────────────────────────────────────


class FollowedTurn:
    """A turn that another process runs, as far as its events have arrived here.

    The store is ahead of these events, because its owner publishes only stored ones and they take time to
    arrive. A snapshot shows the turn as of the arrived events, and the next events follow on it.
    """

    def __init__(self, turn: str, conversation: str, *, shown: bool, known: int) -> None:
        self.id = turn
        self.conversation = conversation
        self.shown = shown  # whether a snapshot showed the turn before any event arrived
        self.known = known  # the number up to which readers received events before
        self.epoch = 0  # the epoch of the latest owner whose events arrived
        self.number = 0  # the number of the last event
        self.ended = False
        self.message = ""  # the user's message
        self.state: str | None = None
        self.questions: dict[str, Question] = {}
        self.told: list[Message] | None = None  # messages from before its owner began
        self._fold = TurnFold(conversation, turn)
        self._newest: Event | None = None
        self._moved = asyncio.Event()

    def begin(self, epoch: int, begun: list[Message] | None) -> None:
        """Prepare for the events of another owner."""
        self.epoch, self.told = epoch, begun
        self._fold = TurnFold(self.conversation, self.id, begun or ())
        self.questions.clear()
        self.move()

    @property
    def is_behind(self) -> bool:
        """Whether readers know more than this object: the turn was followed before and is read again."""
        return self.known > 0 and not self.ended

    def apply(self, event: Event, question: Question | None = None) -> None:
        self._newest = event
        self.number = event.seq or self.number
        if event.seq >= self.known > 0:
            self.known = 0
        self.move()
        self._fold.apply(event)
        match event:
            case TurnStart():
                self.message = event.message
            case TurnState():
                self.state = event.state
            case TurnEnd():
                self.ended = True
            case CallAsked() if question is not None:
                self.questions[question.id] = question
            case CallAnswered():
                self.questions.pop(event.question, None)
            case CallEnd():
                for id in [one.id for one in self.questions.values() if one.call == event.call]:
                    del self.questions[id]

    def move(self) -> None:
        """Wake those who wait for progress."""
        self._moved.set()
        self._moved = asyncio.Event()

    async def heard(self, number: int) -> None:
        """Wait until this event or a later one has arrived, and readers know nothing newer. Gives up after a
        while."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                while (self.number < number and not self.ended) or self.is_behind:
                    await self._moved.wait()

    def lay_over(self, texts: dict[str, str]) -> bool:
        """Replace the turn's stored messages by those of the arrived events. Returns False if the store lacks
        one of them."""
        known, arriving = self._fold.messages, self._fold.arriving
        own = [id for id, text in texts.items() if self.id in text and MESSAGE.load(text).turn == self.id]
        own = [id for id in own if id != self.message]
        ahead = known or self.told is not None
        for id in reversed(own):
            if id in known or not ahead:
                break
            del texts[id]  # Its events are still to arrive.
        for id in known.keys() & {*own}:
            heard, stored = known[id], MESSAGE.load(texts[id])
            calls = {call.id: call for call in heard.calls}
            parts = tuple(
                calls.get(part.id, part) if isinstance(part, ToolCall) else part for part in stored.parts
            )
            shown = heard if id == arriving else replace_fast(stored, parts=parts, inner=heard.inner)
            texts[id] = MESSAGE.dump(shown)
        missing = [id for id, message in known.items() if id not in texts and message.parts]
        texts.update({id: MESSAGE.dump(known[id]) for id in missing})
        if arriving is not None:
            texts[arriving] = MESSAGE.dump(known[arriving])
        return not {*missing} - {arriving}

    def unfinished(self, row: UnfinishedTurn | None) -> UnfinishedTurn:
        newest = self._newest
        return UnfinishedTurn(
            self.id,
            row.message if row is not None else self.message,
            row.state if row is not None and row.state in _UNRUN else self.state or "",
            True,
            row.started if row is not None else 0.0,
            newest.reason if isinstance(newest, StepRetry) else None,
            newest if isinstance(newest, FilePartial) else None,
        )


# ── a conversation whole ──────────────────────────────────────────────────────────────────────────


_CHUNK = 64_000  # characters that are sent in one chunk
_CACHED = 32_000_000  # maximum characters of cached conversations


@dataclass(slots=True)
class _Around:
    """A tree without its messages, in the form of `shapes.TreeView`."""

    conversation: ConversationSummary
    turns: list[UnfinishedTurn]
    questions: list[Question]
    queued: list[QueuedTurn]
    steering: list[SteeringMessage]
    revision: int


_AROUND: Codec[_Around] = Codec(_Around)


@dataclass(slots=True, frozen=True)
class _Stored:
    """The messages of a conversation at one revision, as JSON by ID, in their order of arrival."""

    revision: int
    texts: dict[str, str]
    size: int


@dataclass(slots=True, frozen=True)
class TreeSnapshot:
    """A `shapes.TreeView` as JSON. Iterating yields chunks of bytes that are small enough not to block
    others."""

    around: str
    messages: Sequence[str]
    revision: int
    nothing_queued: bool

    def __iter__(self) -> Iterator[bytes]:
        return (piece.encode("utf-8", "replace") for piece in self._pieces())

    def text(self) -> str:
        return "".join(self._pieces())

    def _pieces(self) -> Iterator[str]:
        piece, size, mark = ['{"type":"snapshot","messages":['], 0, ""
        for message in self.messages:
            piece += (mark, message)
            size += len(message)
            mark = ","
            if size > _CHUNK:
                yield "".join(piece)
                piece, size = [], 0
        yield f"{''.join(piece)}],{self.around[1:]}"


class Trees:
    """Reads trees, and caches messages until their conversation changes. `follow` returns the followed turn
    of this ID, if its conversation is read here."""

    def __init__(
        self, runtime: Runtime, follow: Callable[[str, str], FollowedTurn | None] = lambda *_: None
    ) -> None:
        self._runtime = runtime
        self._follow = follow
        self._cache: OrderedDict[str, _Stored] = OrderedDict()

    def forget(self, conversation: str) -> None:
        self._cache.pop(conversation, None)

    async def read(self, id: str, elsewhere: dict[str, FollowedTurn] | None = None) -> TreeSnapshot:
        """Return the conversation as it is now. Turns of other processes are included as far as their events
        have arrived.

        `elsewhere` has the followed turns. The caller adds turns that are followed again in the meantime.
        Turns that run, begin or end here during the read are taken from their logs, so one read suffices.

        No `await` comes after the logs are read, and they have published everything. So a caller that
        counts the published events knows which ones the snapshot contains.
        """
        store = self._runtime.store
        elsewhere = {} if elsewhere is None else elsewhere
        for left in reversed(range(_TRIES)):
            with self._logs(id) as logs:
                await self._hear(id, elsewhere)
                stored = await self._stored(id)
                info = await store.conversation(id)
                shared = id in await store.shared_among([id])
                rows = await store.live_turns(id)
                turns = {
                    row.id: UnfinishedTurn(
                        row.id, row.message, await state_of(self._runtime, row), row.live, row.created, None
                    )
                    for row in rows
                }
                queue = await queue_of(self._runtime, id, rows)
                asked = await store.questions(conversation=id)
                left_by = {row.id: row.epoch for row in rows if await store.is_abandoned(row.id)}
                late = await self._hear(id, elsewhere)
                known = left_by.keys() & elsewhere.keys()
                coming = {one for one in known if await self._next_of(elsewhere[one])}
                untold = left_by.keys() - coming
                await _published(logs)
                texts, questions = dict(stored.texts), {question.id: question for question in asked}
                for log in logs:
                    if log.broken:  # Part of its state was never stored, so the stored state is shown.
                        late = True
                    else:
                        self._lay_over(log, texts, turns, questions)
                untold |= {log.id for log in logs}
                newest = left_by | {log.id: log.epoch + 1 for log in logs}
                for turn in elsewhere.values():
                    if turn.epoch and turn.epoch >= newest.get(turn.id, 0):
                        late |= not self._lay_over_followed(turn, texts, turns, questions)
                    # No owner reports the rest. Once all published events have arrived, the stored state is
                    # shown.
                    else:
                        late |= turn.id in coming
            if not late or not left:
                break
        for turn in elsewhere.values():
            if turn.is_behind and turn.id not in untold:
                raise StoreUnavailable(f"events of {turn.id}", "try again in a moment", retryable=True)
        begun = {log.id for log in logs}
        queued = [one for one in queue.queued if one.id not in begun]
        around = _Around(
            summary(info, Busy(bool(turns), len(questions)), shared=shared),
            list(turns.values()),
            list(questions.values()),
            queued,
            queue.steering,
            stored.revision,
        )
        return TreeSnapshot(
            _AROUND.dump(around),
            list(texts.values()),
            stored.revision,
            nothing_queued=not queued and not queue.steering,
        )

    async def _hear(self, conversation: str, followed: dict[str, FollowedTurn]) -> bool:
        """Wait for the events of turns that other processes run. Returns whether any had to be waited for."""
        waited = False
        for row in await self._runtime.store.live_turns(conversation):
            if self._runtime.bus.here(row.id) is None:
                turn = self._follow(row.id, conversation)
                if turn is not None:
                    followed[row.id] = turn
                    behind = turn.is_behind or turn.epoch < row.epoch
                    if behind and (number := await self._awaited(row, turn)):
                        waited = True
                        await turn.heard(number)
        return waited

    async def _awaited(self, row: TurnRow, turn: FollowedTurn) -> int:
        """Return the number of the owner's first event. For an abandoned turn, return that of the next left
        event, or 0."""
        if await self._runtime.store.is_abandoned(row.id):
            return await self._next_of(turn)
        return number_before(row.epoch) + 1

    async def _next_of(self, turn: FollowedTurn) -> int:
        """Return the number of the next stored event that has not arrived here, or 0."""
        after = max(turn.number, turn.known - 1)
        return next((one.seq for one in await self._runtime.store.events({turn.id: after}, 1)), 0)

    def _lay_over_followed(
        self,
        turn: FollowedTurn,
        texts: dict[str, str],
        turns: dict[str, UnfinishedTurn],
        questions: dict[str, Question],
    ) -> bool:
        """Apply the events of another process's turn. Returns False if the store was read too early."""
        whole = turn.lay_over(texts)
        for old in [question.id for question in questions.values() if question.turn == turn.id]:
            del questions[old]
        questions.update(turn.questions)
        row = turns.pop(turn.id, None)
        if not turn.ended:
            turns[turn.id] = turn.unfinished(row)
        return whole

    @contextmanager
    def _logs(self, conversation: str) -> Iterator[list[TurnLog]]:
        """Yield the logs of turns that run here, and add those of turns that begin before the block ends."""
        bus = self._runtime.bus
        logs = [live.log for live in bus.turns(conversation)]

        def watch(log: TurnLog) -> None:
            if log.conversation.id == conversation:
                logs.append(log)

        bus.watchers.append(watch)
        try:
            yield logs
        finally:
            bus.watchers.remove(watch)

    def _lay_over(
        self,
        log: TurnLog,
        texts: dict[str, str],
        turns: dict[str, UnfinishedTurn],
        questions: dict[str, Question],
    ) -> None:
        """Apply the state of a turn that runs here, which is newer than what was read."""
        shown = log.snapshot()
        for message in shown.messages:
            texts[message.id] = MESSAGE.dump(message)
        for old in [question.id for question in questions.values() if question.turn == log.id]:
            del questions[old]
        questions.update({question.id: question for question in shown.questions})
        turns.pop(log.id, None)
        if not shown.state.ended:
            last = log.events.newest
            turns[log.id] = UnfinishedTurn(
                log.id,
                log.turn.message,
                shown.state,
                True,
                shown.turn.started,
                last.reason if isinstance(last, StepRetry) else None,
                last if isinstance(last, FilePartial) else None,
            )

    async def _stored(self, id: str) -> _Stored:
        store = self._runtime.store
        known = self._cache.get(id)
        if known is not None and (await store.revisions([id])).get(id) == known.revision:
            self._cache.move_to_end(id)
            return known
        texts, revision = await store.message_texts(id)
        read = _Stored(revision, texts, sum(map(len, texts.values())))
        self._remember(id, read)
        return read

    def _remember(self, id: str, read: _Stored) -> None:
        self._cache[id] = read
        self._cache.move_to_end(id)
        size = sum(stored.size for stored in self._cache.values())
        while size > _CACHED and self._cache:
            _, dropped = self._cache.popitem(last=False)
            size -= dropped.size


async def _published(logs: list[TurnLog]) -> None:
    """Wait until these logs have published everything. More logs can be added in the meantime."""
    while waiting := [log for log in logs if log.events.holding]:
        await waiting[0].stored()
        await asyncio.sleep(0)  # What waited for a write is published right after it.
