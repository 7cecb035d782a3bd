"""Decides what may happen next in a turn. All such rules are in this file, which does no I/O.

`TURN` maps each state and fact to the turn's next state, `CALL` does the same for a call, and `SETTLES` lists
how a call in a given state may end. `advance` applies one fact. `replay` applies them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import reduce
from typing import TypeAlias, get_args

from dragoman.errors import IllegalFact
from dragoman.messages.codec import replace_fast
from dragoman.messages.message import CallState
from dragoman.messages.usage import Usage
from dragoman.turn.facts import (
    ApprovalAsked,
    CallFact,
    CallFinished,
    CallInterrupted,
    CallsMade,
    CallStarted,
    Compacted,
    CompactionStarted,
    Fact,
    MessageAppended,
    ModelAsked,
    QuestionAnswered,
    QuestionWithdrawn,
    ReplyReceived,
    RequestBuilt,
    ResultAsked,
    Steered,
    StepFinished,
    ToolAsked,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnOptions,
    TurnStarted,
)


class State(StrEnum):
    IDLE = "idle"
    PREPARING = "preparing"
    STREAMING = "streaming"  # A step's request is being built, sent and answered.
    TOOL_CALL = "tool_call"
    WAITING = "waiting"  # every unfinished call waits for a user or a client
    COMPACTING = "compacting"
    FINALIZING = "finalizing"
    COMPLETED = "completed"
    ERROR = "error"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        return self in ENDED


ENDED = frozenset({State.COMPLETED, State.ERROR, State.CANCELLED})


@dataclass(slots=True, frozen=True)
class Call:
    """The state of a call that decides what may happen to it."""

    tool: str
    step: int
    state: CallState = CallState.PENDING
    asked: bool = False  # whether it needs a user's approval to run
    questions: tuple[str, ...] = ()  # Open requests. A running tool may have several at the same time.
    approved: str | None = None  # fingerprint of the arguments that a user approved
    client: bool = False
    review: str = ""  # Whether a user reviews its result first, as known when it started.
    starts: int = 0
    began: float = 0.0  # The time of its first start: the clock of a program.
    usage: Usage = Usage()  # usage of models that the tool asked, included in the turn's usage
    parent: str | None = None  # the call of the program that made it
    wanted: str = ""  # fingerprint of the tool and arguments that the program requested
    settled: int = 0  # The turn's number of calls with a result at that time, including this one.

    @property
    def waits(self) -> bool:
        """Return whether only a user or a client can move the call."""
        return bool(self.questions) or (self.client and self.state is CallState.RUNNING)


@dataclass(slots=True, frozen=True)
class Turn:
    """A turn at one moment. Equal facts produce equal turns."""

    state: State = State.IDLE
    message: str = ""
    options: TurnOptions = TurnOptions()
    step: int = 0
    attempt: int = 0
    reply: str | None = None  # ID of the awaited or latest reply
    replied: bool = True  # whether the current step has its reply
    finished: bool = True  # whether the current step is over
    finish: str = ""  # how the last reply ended
    rounds: int = 0  # replies with calls, or paused for the provider's calls
    closing: bool = False  # A limit was reached: the next request is the last, and has no tools.
    closed_in: int = 0  # the step whose calls reached it
    limit: str = ""  # a description of that limit
    calls: Mapping[str, Call] = field(default_factory=dict)
    unsettled: tuple[str, ...] = ()  # calls without a result, in the order in which they were made
    appended: tuple[str, ...] = ()  # messages of plugins
    goes_on: bool = False  # whether a message in this step requests another step
    steered: bool = False  # whether a user sent that message
    usage: Usage = Usage()
    known_cost: float = 0.0  # total known cost, even if part of the usage has no known cost
    error: TurnFailed | None = None
    started: float = 0.0
    ended: float = 0.0

    @property
    def closes(self) -> bool:
        """Return whether the current step is the last one: its request was made without tools."""
        return self.closing and self.closed_in < self.step


# ── the tables ────────────────────────────────────────────────────────────────────────────────────

Choice: TypeAlias = Callable[[Turn], State]  # The fact's content decides, as seen in the turn it produced.


def _tools_or_end(turn: Turn) -> State:
    return State.TOOL_CALL if turn.unsettled else State.FINALIZING


def _waiting_or_not(turn: Turn) -> State:
    """Return the next state. A program waits for its calls: if all of them wait for a user, so does it."""
    open = [turn.calls[id] for id in turn.unsettled]
    programs = {call.parent for call in open}
    moving = (call for id, call in zip(turn.unsettled, open, strict=True) if id not in programs)
    return State.WAITING if open and all(call.waits for call in moving) else State.TOOL_CALL


def _again_or_end(turn: Turn) -> State:
    return State.STREAMING if turn.goes_on else State.FINALIZING


_STOPS: dict[type[Fact], State | Choice] = {TurnFailed: State.ERROR, TurnCancelled: State.CANCELLED}
_CALLS: dict[type[Fact], State | Choice] = dict.fromkeys(get_args(CallFact), _waiting_or_not)

TURN: dict[State, dict[type[Fact], State | Choice]] = {
    State.IDLE: {TurnStarted: State.PREPARING},
    State.PREPARING: {
        RequestBuilt: State.STREAMING,
        Steered: State.PREPARING,
        MessageAppended: State.PREPARING,
        CompactionStarted: State.COMPACTING,
        **_STOPS,
    },
    State.STREAMING: {
        RequestBuilt: State.STREAMING,
        ReplyReceived: _tools_or_end,
        Steered: State.STREAMING,
        MessageAppended: State.STREAMING,
        ModelAsked: State.STREAMING,
        CompactionStarted: State.COMPACTING,
        **_STOPS,
    },
    State.COMPACTING: {
        CompactionStarted: State.COMPACTING,  # repeated by a new owner
        Compacted: State.STREAMING,
        RequestBuilt: State.STREAMING,  # by a new owner that does not compact
        ReplyReceived: _tools_or_end,  # a partial reply of a stopped turn
        Steered: State.COMPACTING,
        ModelAsked: State.COMPACTING,
        **_STOPS,
    },
    State.TOOL_CALL: {
        **_CALLS,
        Steered: State.TOOL_CALL,
        MessageAppended: State.TOOL_CALL,
        StepFinished: _again_or_end,
        **_STOPS,
    },
    State.WAITING: {
        **_CALLS,
        Steered: State.WAITING,
        MessageAppended: State.WAITING,
        **_STOPS,
    },
    State.FINALIZING: {
        Steered: State.FINALIZING,
        MessageAppended: State.FINALIZING,
        StepFinished: _again_or_end,
        TurnCompleted: State.COMPLETED,
        **_STOPS,
    },
    State.COMPLETED: {},
    State.ERROR: {},
    State.CANCELLED: {},
}

CALL: dict[CallState, dict[type[Fact], CallState]] = {
    CallState.PENDING: {ApprovalAsked: CallState.ASKED, CallStarted: CallState.RUNNING},
    CallState.ASKED: {QuestionAnswered: CallState.PENDING},  # An allowed call waits for its start.
    CallState.RUNNING: {
        CallStarted: CallState.RUNNING,  # repeated by a new owner
        CallInterrupted: CallState.ASKED,
        ToolAsked: CallState.RUNNING,
        QuestionAnswered: CallState.RUNNING,
        QuestionWithdrawn: CallState.RUNNING,
        ModelAsked: CallState.RUNNING,
        CallsMade: CallState.RUNNING,
        ResultAsked: CallState.REVIEWING,
    },
    CallState.REVIEWING: {QuestionAnswered: CallState.REVIEWING},
}

SETTLES: dict[CallState, frozenset[CallState]] = {
    CallState.PENDING: frozenset(
        {CallState.FAILED, CallState.REJECTED, CallState.SKIPPED, CallState.CANCELLED, CallState.INTERRUPTED}
    ),
    CallState.ASKED: frozenset(
        {CallState.REJECTED, CallState.SKIPPED, CallState.CANCELLED, CallState.INTERRUPTED}
    ),
    CallState.RUNNING: frozenset(
        {CallState.COMPLETED, CallState.FAILED, CallState.CANCELLED, CallState.INTERRUPTED}
    ),
    CallState.REVIEWING: frozenset(
        {CallState.COMPLETED, CallState.FAILED, CallState.WITHHELD, CallState.CANCELLED}
    ),
}


# ── applying a fact ───────────────────────────────────────────────────────────────────────────────


def replay(facts: Iterable[Fact]) -> Turn:
    """Return the turn that these facts produce."""
    return reduce(advance, facts, Turn())


def advance(turn: Turn, fact: Fact) -> Turn:
    """Return the turn after this fact, without changing the given one. Raise IllegalFact if it is not
    allowed."""
    target = TURN[turn.state].get(type(fact))
    if target is None:
        raise IllegalFact(f"{_name(fact)}, but the turn is {turn.state}")
    changed = _apply(turn, fact)
    state = target if isinstance(target, State) else target(changed)
    return changed if state is changed.state else replace_fast(changed, state=state)


def _apply(turn: Turn, fact: Fact) -> Turn:
    match fact:
        case TurnStarted():
            return replace_fast(turn, message=fact.message, options=fact.options, started=fact.at)
        case RequestBuilt():
            return _build(turn, fact)
        case ReplyReceived():
            return _receive(turn, fact)
        case StepFinished():
            _refuse_if(fact, not turn.replied or turn.finished or fact.step != turn.step, _where(turn))
            _refuse_unsettled(turn, fact)
            return replace_fast(turn, finished=True, goes_on=fact.again, limit=turn.limit or fact.limit)
        case Steered():
            _refuse_if(fact, turn.state is State.FINALIZING and turn.finished, "its last step is over")
            return replace_fast(turn, goes_on=True, steered=True)
        case MessageAppended():
            _refuse_if(fact, turn.state is State.FINALIZING and turn.finished, "its last step is over")
            _refuse_if(fact, fact.message in turn.appended, f"{fact.message} is there already")
            appended = (*turn.appended, fact.message)
            return replace_fast(turn, appended=appended, goes_on=turn.goes_on or fact.request)
        case CompactionStarted():
            _refuse_if(fact, turn.replied and not turn.finished, _where(turn))
            return turn
        case Compacted() | ModelAsked(call=""):
            return _use(turn, fact.usage)
        case TurnCompleted():
            _refuse_if(fact, not turn.finished, _where(turn))
            return replace_fast(turn, ended=fact.at)
        case TurnFailed():
            _refuse_unsettled(turn, fact)
            return replace_fast(turn, error=fact, ended=fact.at)
        case TurnCancelled():
            _refuse_unsettled(turn, fact)
            return replace_fast(turn, ended=fact.at)
        case _:
            return _change_call(turn, fact)


def _build(turn: Turn, fact: RequestBuilt) -> Turn:
    again = not turn.replied and (fact.step, fact.attempt) == (turn.step, turn.attempt + 1)
    anew = turn.finished and (fact.step, fact.attempt) == (turn.step + 1, 1)
    _refuse_if(fact, not (again or anew), _where(turn))
    return replace_fast(
        turn,
        step=fact.step,
        attempt=fact.attempt,
        reply=fact.reply,
        replied=False,
        finished=False,
        goes_on=False,
        steered=False,
    )


def _receive(turn: Turn, fact: ReplyReceived) -> Turn:
    _refuse_if(fact, turn.replied or fact.step != turn.step, _where(turn))
    made = {call.call: Call(call.tool, fact.step) for call in fact.calls}
    _refuse_if(
        fact, len(made) < len(fact.calls) or bool(made.keys() & turn.calls.keys()), "a call id repeats"
    )
    return _use(
        turn,
        fact.usage,
        replied=True,
        finish=fact.finish,
        # A pause means that the provider's tools ran.
        rounds=turn.rounds + (bool(made) or fact.finish == "pause"),
        calls={**turn.calls, **made},
        unsettled=(*turn.unsettled, *made),
    )


def _use(turn: Turn, usage: Usage, **changes: object) -> Turn:
    known_cost = turn.known_cost + (usage.cost or 0.0)
    return replace_fast(turn, usage=turn.usage + usage, known_cost=known_cost, **changes)


def _change_call(turn: Turn, fact: CallFact) -> Turn:
    call = turn.calls.get(fact.call)
    if call is None:
        raise IllegalFact(f"{_name(fact)}, but the turn has no call {fact.call}")
    state = CALL.get(call.state, {}).get(type(fact))
    closing, closed_in, limit = turn.closing, turn.closed_in, turn.limit
    if isinstance(fact, ModelAsked):
        turn = _use(turn, fact.usage)
    if isinstance(fact, CallFinished):
        state = fact.state if fact.state in SETTLES.get(call.state, ()) else None
        closed_in = closed_in or (call.step if fact.closing else 0)
        closing, limit = closing or fact.closing, limit or fact.limit
    if state is None:
        raise IllegalFact(f"{_name(fact)}, but call {fact.call} is {call.state}")
    if isinstance(fact, CallsMade):
        return _make(turn, fact, call.step)
    calls, unsettled = {**turn.calls, fact.call: _changed(call, fact, state)}, turn.unsettled
    if isinstance(fact, CallFinished):
        unsettled = tuple(id for id in unsettled if id != fact.call)
        left = [id for id in unsettled if turn.calls[id].parent == fact.call]
        _refuse_if(fact, bool(left), f"these calls of its program have no result: {', '.join(left)}")
        order = len(calls) - len(unsettled)
        calls[fact.call] = replace_fast(calls[fact.call], settled=order)
    return replace_fast(
        turn, calls=calls, unsettled=unsettled, closing=closing, closed_in=closed_in, limit=limit
    )


def _make(turn: Turn, fact: CallsMade, step: int) -> Turn:
    made = {one.call: Call(one.tool, step, parent=fact.call, wanted=one.wanted) for one in fact.calls}
    repeats = len(made) < len(fact.calls) or bool(made.keys() & turn.calls.keys())
    _refuse_if(fact, repeats, "a call id repeats")
    return replace_fast(turn, calls={**turn.calls, **made}, unsettled=(*turn.unsettled, *made))


def _changed(call: Call, fact: CallFact, state: CallState) -> Call:
    assert not isinstance(fact, CallsMade)  # That fact changes other calls.
    match fact:
        case ApprovalAsked() | CallInterrupted():
            _refuse_if(fact, bool(call.questions), f"call {fact.call} has an open question already")
            return replace_fast(call, state=state, questions=(fact.question,), asked=True, approved=None)
        case ToolAsked() | ResultAsked():
            known = isinstance(fact, ResultAsked) and bool(call.questions)
            _refuse_if(fact, known, f"call {fact.call} has an open question already")
            _refuse_if(fact, fact.question in call.questions, f"call {fact.call} asks it already")
            return replace_fast(call, state=state, questions=(*call.questions, fact.question))
        case QuestionAnswered() | QuestionWithdrawn():
            asks = fact.question in call.questions
            _refuse_if(fact, not asks, f"call {fact.call} does not ask {fact.question}")
            open = tuple(question for question in call.questions if question != fact.question)
            approved = fact.approved if isinstance(fact, QuestionAnswered) else None
            return replace_fast(call, state=state, questions=open, approved=approved or call.approved)
        case CallStarted():
            _refuse_if(
                fact, call.asked and call.approved is None, f"no rule or user allowed call {fact.call}"
            )
            return replace_fast(
                call,
                state=state,
                client=fact.client,
                review=fact.review,
                starts=call.starts + 1,
                began=call.began or fact.at,
                questions=(),
            )
        case ModelAsked():
            return replace_fast(call, state=state, usage=call.usage + fact.usage)
        case CallFinished():
            return replace_fast(call, state=state, questions=())


def _refuse_unsettled(turn: Turn, fact: Fact) -> None:
    _refuse_if(fact, bool(turn.unsettled), f"these calls have no result: {', '.join(turn.unsettled)}")


def _refuse_if(fact: Fact, wrong: bool, why: str) -> None:
    if wrong:
        raise IllegalFact(f"{_name(fact)}, but {why}")


def _where(turn: Turn) -> str:
    phase = "over" if turn.finished else "answered" if turn.replied else "awaited"
    return f"the turn is {turn.state}: step {turn.step}, attempt {turn.attempt}, is {phase}"


def _name(fact: Fact) -> str:
    call = getattr(fact, "call", None)
    return f"{type(fact).__name__} of {call}" if call else type(fact).__name__
