"""Records a turn that runs here: the machine checks each fact, the store keeps it, then it is published."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import takewhile

from pydantic import JsonValue

from dragoman.conversation.tree import Conversation
from dragoman.errors import EngineError, NotFound, ProviderError
from dragoman.messages.codec import replace_fast
from dragoman.messages.events import TurnState
from dragoman.messages.fold import Appending, Draft
from dragoman.messages.message import CallState, Message, ToolCall, ToolResult
from dragoman.messages.questions import Question
from dragoman.messages.request import Request
from dragoman.store.store import Change, Store, TurnRow, Unread
from dragoman.trace_context import TraceContext, current_trace, within
from dragoman.turn.facts import FACT, Fact, ModelAsked
from dragoman.turn.live.event_log import EventLog
from dragoman.turn.live.observed import Aside, Observed, Observer, ReplyTiming, Written
from dragoman.turn.machine import State, Turn, advance, replay
from dragoman.turn.trace import RequestTrace

_log = logging.getLogger("dragoman.turn")
_MOMENT = 0.003  # In seconds: records this close together share one write, if no caller waits for it.


@dataclass(slots=True, frozen=True)
class Snapshot:
    """A turn at one moment, for a caller that joins late: its state, open requests and messages so far."""

    id: str
    conversation: str
    turn: Turn
    messages: tuple[Message, ...]
    questions: tuple[Question, ...]
    last: int  # the number of the last event this contains

    @property
    def state(self) -> State:
        return self.turn.state


Listener = Callable[[Snapshot], None]


class TurnLog:
    """The complete state of a running turn. Its `turn` is always `replay` of the recorded facts."""

    def __init__(
        self,
        row: TurnRow,
        *,
        store: Store,
        conversation: Conversation,
        facts: Sequence[Fact],
        path: list[Message],
        questions: Sequence[Question] = (),
        under_review: dict[str, ToolResult] | None = None,
        revision: int = 0,
        clock: Callable[[], float],
    ) -> None:
        self.id = row.id
        self.epoch = row.epoch
        self.resumed = row.epoch > 1
        self.conversation = conversation
        # This user's rules apply to everything the turn does (V2).
        self.sender = row.sender or conversation.owner
        self.store = store
        self.now = clock
        self.turn = replay(facts)
        self.path = path
        self.questions = {question.id: question for question in questions}
        self.under_review = under_review or {}  # results that wait for a user
        self.draft: Draft | None = None
        self.draft_seen: Appending | None = None  # the complete reply, as plugins have left it so far
        self.loaded = tuple(facts)  # the facts loaded at the start here
        self.trace: TraceContext | None = None  # set if the turn is traced
        self.observers: list[Observer] = []
        self.asides = 0  # number of side requests started here
        self.timing = ReplyTiming()  # timing of the awaited or latest reply
        self.cancelled: str | None = None  # the reason, once a cancel is requested
        self.cancelled_by: str | None = None
        self.broken = False  # A recorded change is missing from the store, and only the store counts.
        self.revision = revision  # revision of the conversation, unless another process changes it
        self.events: EventLog[Snapshot] = EventLog(row.epoch)
        self.publish = self.events.publish
        self._unseen: list[Fact] = []  # recorded facts to report to observers
        self._pending: Change | None = None  # recorded just now and not yet passed to the store
        self._soon: asyncio.TimerHandle | None = None  # timer that passes it to the store
        self._last_write: asyncio.Future[None] | None = None
        self._last_state = self.turn.state
        self._count = len(facts)
        self._home: dict[str, int] = {}  # position in the path of each call's message
        self._inner: dict[str, int] = {}  # position in that message of each call made by a program
        own = sum(1 for _ in takewhile(lambda message: message.turn == self.id, reversed(path)))
        self._start = len(path) - own  # index of this turn's first message
        for place in range(self._start, len(path)):
            self._take_home(place)
        # The messages of an earlier owner. Events describe what follows them.
        self.begun = tuple(path[self._start :])

    # ── messages ──────────────────────────────────────────────────────────────────────────────────

    @property
    def settings(self) -> Mapping[str, JsonValue]:
        """Return the conversation's settings at the start of the turn."""
        kept = self.turn.options.settings
        return kept if kept is not None else self.conversation.settings

    @property
    def tip(self) -> str | None:
        """Return the parent for the turn's next message."""
        return self.path[-1].id if self.path else None

    @property
    def messages(self) -> list[Message]:
        """Return the turn's messages: the end of the path."""
        return self.path[self._start :]

    def call(self, id: str) -> ToolCall:
        if id not in self._home:
            raise NotFound("call", id)
        message = self.path[self._home[id]]
        if (place := self._inner.get(id)) is not None:
            return message.inner[place]
        return next(call for call in message.calls if call.id == id)

    def inner_calls(self, program: str) -> list[ToolCall]:
        """Return the calls made so far by the program of this call, in order."""
        inner = self.path[self._home[program]].inner
        return [call for call in inner if call.made_in is not None and call.made_in.call == program]

    def snapshot(self) -> Snapshot:
        messages = self.messages
        if self.draft is not None:
            messages.append(self.draft.message)
        questions = tuple(q for q in self.questions.values() if q.open)
        return Snapshot(
            self.id, self.conversation.id, self.turn, tuple(messages), questions, self.events.last
        )

    # ── facts ─────────────────────────────────────────────────────────────────────────────────────

    async def record(self, *facts: Fact, change: Change | None = None, sync: bool = False) -> None:
        """Store facts and the rows they change in one transaction. Return once they are stored."""
        stamped = self._stamped(facts)
        turn = reduce(advance, stamped, self.turn)
        if not _steerable(turn):
            self._flush()  # The store may refuse these facts. Earlier ones must not fail with them.
        before, count, length, revision = self.turn, self._count, len(self.path), self.revision
        self._take(turn, stamped, change)
        write = self._flush(sync=sync)
        assert write is not None
        try:
            await write
        except Unread:
            self.turn, self._count = before, count  # Roll back: an unread signal must be read first.
            self._last_state = before.state
            self.revision = revision
            del self.path[length:]
            raise

    def record_soon(self, *facts: Fact, change: Change | None = None) -> None:
        """Record facts without waiting for the store.

        Records of one moment are written together. Events published from now on are sent once that write is
        stored, and later records fail if it does.
        """
        stamped = self._stamped(facts)
        turn = reduce(advance, stamped, self.turn)
        if self._pending is None:
            self._soon = asyncio.get_running_loop().call_later(_MOMENT, self._flush_soon)
        self._take(turn, stamped, change)

    def is_running(self, call: str) -> bool:
        """Return whether the call still runs. A tool that must not be stopped outlives its call. Nothing it
        does then can be recorded."""
        return self.turn.calls[call].state is CallState.RUNNING and not self.turn.state.ended

    def count_lost(self, request: Request, call: str = "") -> None:
        """Record the usage of a request's interrupted attempts, which is billed too."""
        lost = [ModelAsked(call, one.model, one.usage) for one in request.lost]
        request.lost.clear()
        if lost and (not call or self.is_running(call)):
            self.record_soon(*lost)

    def count_draft(self) -> None:
        """Record the usage of a complete reply that is discarded and requested again."""
        if self.draft is None or self.turn.replied:
            return
        reply = self.draft.message
        if reply.usage is not None and not reply.usage.is_empty:
            self.record_soon(ModelAsked("", reply.model or "", reply.usage))

    def _flush_soon(self) -> None:
        # If the store was closed meanwhile, the turn resumes from its stored state.
        with suppress(EngineError):
            self._flush()

    async def stored(self) -> None:
        """Wait until everything recorded so far is on disk."""
        while (write := self._flush()) is not None and not write.done():
            await asyncio.wait([write])

    def _stamped(self, facts: Sequence[Fact]) -> Sequence[Fact]:
        """Set the time of facts, which are not shared with any other object yet."""
        now = self.now()
        for fact in facts:
            if not fact.at:
                object.__setattr__(fact, "at", now)
        return facts

    def _take(self, turn: Turn, facts: Sequence[Fact], change: Change | None) -> None:
        """Apply facts to the turn, and add them to the pending write."""
        if self._pending is None:
            self._pending = Change()
            self.events.hold()
        self._pending.facts += map(FACT.dump, facts)
        if self.observers:
            self._unseen += facts
        self.turn = turn
        if change is not None:
            self._apply(change, self._pending)
        if turn.state is not self._last_state:
            self._last_state = turn.state
            self.publish(TurnState(turn.state))
        if self.events.listeners:
            self.events.show(self.snapshot())

    def _apply(self, change: Change, pending: Change) -> None:
        """Add the change to the pending write, and apply it in memory."""
        pending.add(change)
        if (moved := self._grow(change.messages)) is not None:
            pending.leaf = (pending.leaf or moved)[0], moved[1]
        for call in change.made:
            self._add_inner(call)
        for call in change.calls:
            self._settle(call)
        self.questions.update({question.id: question for question in change.questions})
        for id, why in change.closed.items():
            if self.questions[id].answer is None:  # An answered request stays answered, as in the store.
                self.questions[id] = replace(self.questions[id], closed=why)

    def _flush(self, *, sync: bool = False) -> asyncio.Future[None] | None:
        """Pass pending changes to the store. Return the latest write."""
        change, self._pending = self._pending, None
        if change is None:
            return self._last_write
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        change.conversation = self.conversation.id
        change.state, change.live = self.turn.state, not self.turn.state.ended
        change.steerable = _steerable(self.turn)
        change.usage = self.turn.usage if not change.live else None
        self._newest(change)
        seq = self._count + 1
        self._count += len(change.facts)
        self.revision += bool(change.messages or change.calls or change.made)
        self._last_write = self.store.append(self.id, self.epoch, seq, change, sync=sync)
        if self.observers:
            facts, self._unseen = self._unseen, []
            self._last_write.add_done_callback(partial(self._observed, facts, self.now()))
        else:
            self._last_write.add_done_callback(self._written)
        return self._last_write

    def _newest(self, change: Change) -> None:
        """Write a call that changed right after its message only once, in its latest form."""
        newest = {message.id: message for message in self.messages} if change.messages else {}
        change.messages = [newest.get(message.id, message) for message in change.messages]
        if change.made:  # The same applies to a call that a program just made.
            change.made = [self.call(call.id) for call in change.made]
        new = {call.id for message in change.messages for call in message.calls}
        new |= {call.id for call in change.made}
        change.calls = [call for call in change.calls if call.id not in new or call.id in change.held]

    def _written(self, write: asyncio.Future[None]) -> None:
        error = write.exception()
        if not isinstance(error, Unread | None):
            self.broken = True
            self.events.silence()
        self.events.let_go(stored=error is None)

    def _observed(self, facts: Sequence[Fact], began: float, write: asyncio.Future[None]) -> None:
        """Finish a write, and report it to observers."""
        self._written(write)
        self.tell(Written(facts, began, self.now(), write.exception()))

    def _grow(self, messages: Sequence[Message]) -> tuple[str | None, str] | None:
        before = self.tip
        for message in messages:
            if message.parent == self.tip:
                self.path.append(message)
                self._take_home(len(self.path) - 1)
        return (before, self.path[-1].id) if self.tip != before else None

    def _take_home(self, place: int) -> None:
        message = self.path[place]
        self._home.update({call.id: place for call in message.all_calls})
        self._inner.update({call.id: number for number, call in enumerate(message.inner)})

    def _add_inner(self, call: ToolCall) -> None:
        assert call.made_in is not None
        place = self._home[call.id] = self._home[call.made_in.call]
        inner = self.path[place].inner
        self._inner[call.id] = len(inner)
        self.path[place] = replace_fast(self.path[place], inner=(*inner, call))

    def _settle(self, call: ToolCall) -> None:
        place = self._home[call.id]
        message = self.path[place]
        if (number := self._inner.get(call.id)) is not None:
            inner = (*message.inner[:number], call, *message.inner[number + 1 :])
            self.path[place] = replace_fast(message, inner=inner)
            return
        parts = tuple(call if part.type == "call" and part.id == call.id else part for part in message.parts)
        self.path[place] = replace_fast(message, parts=parts)

    # ── subscribers ───────────────────────────────────────────────────────────────────────────────

    def tell(self, observed: Observed) -> None:
        """Notify the turn's observers. An observer's exception is logged and affects nothing else."""
        for observe in self.observers:
            try:
                observe(observed)
            except Exception:
                _log.warning("an observer of turn %s failed", self.id, exc_info=True)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call the listener now and on every change. Return a function that unsubscribes it. Its exceptions
        are dropped."""
        return self.events.subscribe(listener, self.snapshot())


def _steerable(turn: Turn) -> bool:
    """Return whether a user can still send messages to the turn."""
    return not turn.state.ended and not (turn.state is State.FINALIZING and turn.finished)


# Side requests, outside the conversation: for a title, a summary, or a tool.
#
# They are not stored. Observers of the turn are notified of each when it ends.


@contextmanager
def asking_aside(log: TurnLog, purpose: str, request: Request) -> Iterator[Aside]:
    """Trace a side request, which has its own span. The caller sets `reply`."""
    log.asides += 1
    trace, current = log.trace, current_trace()
    ours = trace is not None and current is not None and current.trace == trace.trace
    aside = Aside(
        purpose,
        f"{log.epoch}.{log.asides}",
        current if ours else trace,
        request,
        [RequestTrace(1, request.model, log.now())],
    )
    error: str | None = "cancelled"
    status: int | None = None
    try:
        with within(trace, "aside", aside.place):
            yield aside
        error = None
    except Exception as wrong:
        error = type(wrong).__name__
        status = wrong.status if isinstance(wrong, ProviderError) else None
        raise
    finally:
        last = aside.attempts[-1]
        last.ended, last.error, last.status = max(last.started, log.now()), error, status
        if aside.reply is not None:
            last.finish, last.usage = aside.reply.finish, aside.reply.usage
        log.tell(aside)


# Logs the end of turns and calls: one line each, with numbers and IDs but no contents.


def log_turn(log: TurnLog) -> None:
    """Log a turn whose end is stored."""
    if not _log.isEnabledFor(logging.INFO):
        return
    turn, usage = log.turn, log.turn.usage
    fields = {
        "turn": log.id,
        "conversation": log.conversation.id,
        "state": str(turn.state),
        "seconds": round(turn.ended - turn.started, 3),
        "steps": turn.step,
        "calls": len(turn.calls),
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cost": usage.cost,  # None if the cost is unknown.
        "model": turn.options.started_with,
        "person": log.sender,
        "limit": turn.limit or None,
        "error_kind": turn.error.kind if turn.error is not None else None,
    }
    _log.info("turn %s", turn.state, extra=fields)


def log_call(log: TurnLog, call: ToolCall) -> None:
    """Log a call that has its result."""
    if not _log.isEnabledFor(logging.INFO):
        return
    seconds = round(call.ended - call.started, 3) if call.started and call.ended else None
    fields = {
        "turn": log.id,
        "conversation": log.conversation.id,
        "call": call.id,
        "tool": call.tool,
        "state": str(call.state),
        "seconds": seconds,
    }
    _log.info("call %s", call.state, extra=fields)
