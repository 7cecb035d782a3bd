"""Builds the trace of a turn: durations, waits, retries, and the reason why each call ran.

Its only sources are the turn's facts and the requests they name, which record who answered. It holds no
contents: no message, no arguments, no result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

from dragoman.messages.questions import Question
from dragoman.messages.usage import Usage
from dragoman.sentences import SaidFields, Sentence, Spoken
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
    Retried,
    Steered,
    StepFinished,
    ToolAsked,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
)


@dataclass(slots=True)
class Because(Spoken):
    """Why a call ran: `kind` is rule, grant, answer or repeated.

    `origin` is the file and line, or the grant.
    """

    kind: str
    text: str
    origin: str | None = None
    by: str | None = None
    at: float | None = None
    said: SaidFields = field(default=None, compare=False)


@dataclass(slots=True)
class Wait:
    """An approval request or question to a user, from its start to its answer."""

    question: str
    kind: str  # approve, run, loop, interrupted, review, tool
    because: str | None  # the reason for the request
    asked: float
    answered: float | None = None  # also set if withdrawn or closed
    verdict: str | None = None  # None if it was not answered
    by: str | None = None
    scope: str | None = None


@dataclass(slots=True)
class ToolRun:
    """One start of a call's tool. A call repeated after a crash has several."""

    started: float
    ended: float | None = None


@dataclass(slots=True)
class CallTrace(Spoken):
    """A call from the reply that made it to its result."""

    id: str
    tool: str
    made: float
    state: str = "pending"
    client: bool = False
    ended: float | None = None
    because: Because | None = None
    limit: str | None = None  # the limit that prevented it, if any
    opened: str | None = None  # the turn of the sub-agent that it started
    parent: str | None = None  # the call of the program that made it
    usage: Usage | None = None  # usage of models that it asked
    copied: bool = False  # Copied from an earlier version of the answer. It did not run here.
    runs: list[ToolRun] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    said: SaidFields = field(default=None, compare=False)


@dataclass(slots=True)
class RequestTrace:
    """One attempt to get a reply. `wait` is the delay before the next attempt."""

    attempt: int
    model: str
    started: float
    first: float | None = None  # arrival time of the reply's first chunk
    ended: float | None = None
    finish: str | None = None
    error: str | None = None
    status: int | None = None
    wait: float = 0.0
    usage: Usage | None = None
    built: int = 1  # number of the request within its step
    sent: int = 1  # how often that request was sent
    copied: bool = False  # Copied from an earlier version of the answer. No request was sent.


@dataclass(slots=True)
class StepTrace:
    number: int
    started: float
    ended: float | None = None
    requests: list[RequestTrace] = field(default_factory=list)
    calls: list[CallTrace] = field(default_factory=list)


@dataclass(slots=True)
class CompactionTrace:
    reason: str
    started: float
    ended: float | None = None
    usage: Usage | None = None
    error: str | None = None  # The reason for a missing summary, as one word.


@dataclass(slots=True)
class Remark:
    """A message that arrived meanwhile from a user (`steered`) or a plugin (`appended`)."""

    kind: str
    at: float
    by: str | None = None


@dataclass(slots=True, frozen=True)
class Totals:
    """Durations in seconds. Overlapping intervals count once."""

    seconds: float  # the whole turn
    preparing: float | None  # Time before its first request: waiting for a slot, starting tools and plugins.
    first_token: float | None  # from its start to the first chunk of its first reply
    waited: float  # waiting for a user
    requests: float  # waiting for the model
    tools: float  # running tools, including waits for answers to their questions


@dataclass(slots=True)
class TurnTrace:
    """A whole turn. Unfinished parts have no end."""

    turn: str
    conversation: str
    state: str = "preparing"
    started: float = 0.0
    ended: float | None = None
    model: str | None = None
    agent: str | None = None
    error: str | None = None
    error_kind: str | None = None
    limit: str | None = None
    usage: Usage = field(default_factory=Usage)
    steps: list[StepTrace] = field(default_factory=list)
    compactions: list[CompactionTrace] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    by: str | None = None  # The user who sent it. None: stored by a version without this field.
    cancelled_by: str | None = None

    def totals(self, now: float) -> Totals:
        """Return the totals, up to `now` if the turn is not over."""
        until = self.ended or now
        requests = [request for step in self.steps for request in step.requests]
        runs = [run for call in self.calls for run in call.runs]
        firsts = [request.first for request in requests if request.first]
        return Totals(
            seconds=max(0.0, until - self.started),
            preparing=max(0.0, requests[0].started - self.started) if requests else None,
            first_token=max(0.0, min(firsts) - self.started) if firsts else None,
            waited=_covered((wait.asked, wait.answered or until) for wait in self.waits),
            requests=_covered((request.started, request.ended or until) for request in requests),
            tools=_covered((run.started, run.ended or until) for run in runs),
        )

    @property
    def calls(self) -> list[CallTrace]:
        return [call for step in self.steps for call in step.calls]

    @property
    def waits(self) -> list[Wait]:
        return [wait for call in self.calls for wait in call.waits]


Ended: TypeAlias = TurnTrace | StepTrace | RequestTrace | CallTrace | Wait | CompactionTrace
"""A finished item of a trace."""


def _covered(spans: Iterable[tuple[float, float]]) -> float:
    """Return the total time covered by at least one interval."""
    seconds, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        seconds += max(0.0, end - max(start, until))
        until = max(until, end)
    return seconds


# Builds the trace of a turn from its facts, in one pass or fact by fact as they are stored.


STOPPED = "the program stopped"  # the recorded reason for an attempt without a recorded end
_BECAUSE = re.compile(
    r"(?P<kind>rule|grant|answer|repeated): (?P<text>.*?)(?: \((?P<origin>[^()]*)\))?", re.DOTALL
)


def trace_turn(
    turn: str, conversation: str, facts: Iterable[Fact], questions: Iterable[Question] = ()
) -> TurnTrace:
    """Return the trace of these facts."""
    known = {question.id: question for question in questions}
    tracer = Tracer(turn, conversation, known.get)
    for fact in facts:
        tracer.take(fact)
    for wait in tracer.trace.waits:
        question = known.get(wait.question)
        if wait.answered is None and question is not None and question.answer is not None:
            _answer(wait, question, question.answer.at)  # The turn has not read the answer yet.
    return tracer.trace


class Tracer:
    """Builds a trace fact by fact. `take` returns the items that a fact ended, inner before outer."""

    def __init__(
        self, turn: str, conversation: str, question: Callable[[str], Question | None] = lambda _: None
    ) -> None:
        self.trace = TurnTrace(turn, conversation)
        self._question = question
        self._calls: dict[str, CallTrace] = {}
        self._waits: dict[str, Wait] = {}
        self._failed: RequestTrace | None = None
        self._copies = False  # whether it starts with steps of an earlier turn

    def take(self, fact: Fact) -> list[Ended]:
        trace = self.trace
        match fact:
            case TurnStarted():
                trace.started, trace.by = fact.at, fact.by
                self._copies = fact.options.again_from is not None
                trace.model = fact.options.started_with or fact.options.model
                agent = fact.options.agent or (fact.options.settings or {}).get("agent")
                trace.agent = agent if isinstance(agent, str) else None
            case RequestBuilt():
                left = self._leave_compaction(fact.at, "stopped")  # A new owner does not compact.
                self._request(fact)
                return left
            case ReplyReceived():
                return self._reply(fact)
            case StepFinished():
                step = trace.steps[-1]
                step.ended = fact.at
                trace.limit = trace.limit or fact.limit or None
                return [step]
            case Steered():
                trace.remarks.append(Remark("steered", fact.at))
            case MessageAppended():
                trace.remarks.append(Remark("appended", fact.at, fact.by))
            case CompactionStarted():
                left = self._leave_compaction(fact.at, "stopped")  # A new owner starts again.
                trace.compactions.append(CompactionTrace(fact.reason, fact.at))
                return left
            case Compacted():
                trace.usage += fact.usage
                if trace.compactions:
                    compaction = trace.compactions[-1]
                    compaction.ended, compaction.usage = fact.at, (compaction.usage or Usage()) + fact.usage
                    return [compaction]
            case TurnCompleted() | TurnFailed() | TurnCancelled():
                trace.cancelled_by = fact.by if isinstance(fact, TurnCancelled) else None
                return self._end(fact)
            case ModelAsked(call=""):
                self._used_beside(fact.usage)
            case _:
                return self._call(fact)
        return []

    # ── requests ──────────────────────────────────────────────────────────────────────────────────

    def _request(self, fact: RequestBuilt) -> None:
        steps = self.trace.steps
        self.trace.state = "running"
        if not steps or steps[-1].number != fact.step:
            steps.append(StepTrace(fact.step, fact.at))
        step = steps[-1]
        if step.requests and step.requests[-1].ended is None:
            step.requests[-1].ended, step.requests[-1].error = (
                fact.at,
                STOPPED,
            )  # unless the reply has better information
        step.requests.append(RequestTrace(len(step.requests) + 1, fact.model, fact.at, built=fact.attempt))

    def _used_beside(self, usage: Usage) -> None:
        """Count usage by a part of a summary, or by an attempt at the awaited reply."""
        self.trace.usage += usage
        made = self.trace.compactions
        last = made[-1] if made and made[-1].ended is None else self.trace.steps[-1].requests[-1]
        last.usage = (last.usage or Usage()) + usage

    def _reply(self, fact: ReplyReceived) -> list[Ended]:
        step = self.trace.steps[-1]
        if fact.retries or len(step.requests) > 1:
            step.requests = _with_retries(step.requests, fact.retries)
        last = step.requests[-1]
        last.first, last.ended = fact.first or None, fact.at
        last.finish, last.usage = fact.finish, (last.usage or Usage()) + fact.usage
        last.copied = self._copies and fact.message is not None and not fact.first
        self.trace.usage += fact.usage
        for made in fact.calls:
            call = self._calls[made.call] = CallTrace(made.call, made.tool, fact.at, copied=last.copied)
            step.calls.append(call)
        if fact.finish == "error":  # The end of the turn reports the error.
            self._failed = last
            return [*step.requests[:-1]]
        return [*step.requests]

    # ── calls ─────────────────────────────────────────────────────────────────────────────────────

    def _call(self, fact: CallFact) -> list[Ended]:
        call = self._calls[fact.call]
        match fact:
            case CallsMade():
                for made in fact.calls:
                    inner = CallTrace(made.call, made.tool, fact.at, parent=fact.call)
                    self._calls[made.call] = inner
                    self.trace.steps[-1].calls.append(inner)
            case ApprovalAsked() | CallInterrupted() | ToolAsked() | ResultAsked():
                call.state = "reviewing" if isinstance(fact, ResultAsked) else "asked"
                if isinstance(fact, CallInterrupted | ResultAsked):
                    _stop(call, fact.at)
                self._ask(call, fact)
            case CallStarted():
                _stop(call, fact.at)  # A new owner repeats it.
                call.state, call.client = "running", fact.client
                call.runs.append(ToolRun(fact.at))
                call.because = _because(fact.because, call.waits) or call.because
            case QuestionAnswered():
                wait = self._waits[fact.question]
                question = self._question(fact.question)
                _answer(wait, question, fact.at)
                wait.verdict = fact.verdict
                call.state = "running" if call.runs and call.runs[-1].ended is None else "pending"
                return [wait]
            case QuestionWithdrawn():
                wait = self._waits[fact.question]
                wait.answered = fact.at
                return [wait]
            case ModelAsked():
                self.trace.usage += fact.usage
                call.usage = (call.usage or Usage()) + fact.usage
            case CallFinished():
                _stop(call, fact.at)
                call.state, call.ended = str(fact.state), fact.at
                call.copied = call.copied and call.ended == call.made
                call.limit, call.said = fact.limit or None, fact.said
                left = [wait for wait in call.waits if wait.answered is None]
                for wait in left:
                    wait.answered = fact.at
                return [*left, call]
        return []

    def _ask(self, call: CallTrace, fact: ApprovalAsked | CallInterrupted | ToolAsked | ResultAsked) -> None:
        kinds = {"call_asked": "approve", "call_interrupted": "interrupted", "tool_asked": "tool"}
        question = self._question(fact.question)
        kind = question.kind if question is not None else kinds.get(fact.type, "review")
        wait = Wait(fact.question, kind, question.because if question is not None else None, fact.at)
        self._waits[fact.question] = wait
        call.waits.append(wait)

    def _end(self, fact: TurnCompleted | TurnFailed | TurnCancelled) -> list[Ended]:
        trace, ended = self.trace, list[Ended]()
        trace.ended = fact.at
        states = {"turn_completed": "completed", "turn_failed": "error", "turn_cancelled": "cancelled"}
        trace.state = states[fact.type]
        if isinstance(fact, TurnFailed):
            trace.error, trace.error_kind = fact.error, fact.kind
        ended += self._leave_compaction(fact.at, trace.state)
        if self._failed is not None:
            self._failed.error = trace.error or "error"
            ended.append(self._failed)
        if trace.steps and trace.steps[-1].ended is None:
            step = trace.steps[-1]
            step.ended = fact.at
            if step.requests and step.requests[-1].ended is None:
                step.requests[-1].ended = fact.at
                ended.append(step.requests[-1])
            ended.append(step)
        return [*ended, trace]

    def _leave_compaction(self, at: float, why: str) -> list[Ended]:
        """End a compaction that has no recorded end."""
        compaction = self.trace.compactions[-1] if self.trace.compactions else None
        if compaction is None or compaction.ended is not None:
            return []
        compaction.ended, compaction.error = at, why
        return [compaction]


def _with_retries(requests: list[RequestTrace], retries: Iterable[Retried]) -> list[RequestTrace]:
    """Return each attempt separately. Retries by the client are recorded with the reply."""
    made: list[RequestTrace] = []
    left = sorted(retries, key=lambda retry: retry.at)
    for place, request in enumerate(requests):
        following = requests[place + 1].started if place + 1 < len(requests) else None
        started, model = request.started, request.model
        mine = [retry for retry in left if following is None or retry.at <= following]
        left = left[len(mine) :]
        for sent, retry in enumerate(mine, 1):
            made.append(
                RequestTrace(
                    len(made) + 1,
                    model,
                    started,
                    ended=retry.at,
                    error=retry.reason,
                    status=retry.status,
                    wait=retry.wait,
                    built=request.built,
                    sent=sent,
                )
            )
            started = retry.at + retry.wait
        if following is None or not mine:
            request.attempt, request.started, request.sent = len(made) + 1, started, len(mine) + 1
            made.append(request)
        else:  # The last attempt shows how it ended.
            made[-1].usage = request.usage
    return made


def _stop(call: CallTrace, at: float) -> None:
    if call.runs and call.runs[-1].ended is None:
        call.runs[-1].ended = at


def _answer(wait: Wait, question: Question | None, at: float) -> None:
    wait.answered = at
    answer = question.answer if question is not None else None
    if answer is not None:
        wait.answered = answer.at or at
        wait.verdict, wait.by, wait.scope = answer.verdict, answer.by, answer.scope


@lru_cache(512)  # Few distinct rules allow most calls.
def _parsed(text: str) -> tuple[str, str, str | None]:
    found = _BECAUSE.fullmatch(text)
    return ("", text, None) if found is None else (found["kind"], found["text"], found["origin"])


def _because(text: str, waits: list[Wait]) -> Because | None:
    if not text:
        return None
    if isinstance(text, Sentence):
        kind, said, where = (str(text.values.get(name, "")) for name in ("kind", "said", "where"))
        because = Because(kind, said, str(where.values["origin"]) if isinstance(where, Sentence) else None)
    elif text.startswith("answer: "):  # Stored before sentences had codes.
        because = Because("answer", text.removeprefix("answer: "))
    else:
        because = Because(*_parsed(text))
    if because.kind == "answer":
        answered = [wait for wait in waits if wait.answered is not None and wait.verdict == "allow"]
        if answered:
            because.by, because.at = answered[-1].by, answered[-1].answered
    return because
