"""The trace of a turn: what took how long, what waited for whom, what was tried again, and why each call ran.

Made from the facts of the turn and from nothing else but the questions they name, which say who answered. It
holds no contents: no message, no arguments, no result.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from dragoman.messages.usage import Usage
from dragoman.sentences import SaidFields, Spoken


@dataclass(slots=True)
class Because(Spoken):
    """Why a call ran: `kind` is rule, grant, answer or repeated; `origin` the file and line, or the grant."""

    kind: str
    text: str
    origin: str | None = None
    by: str | None = None
    at: float | None = None
    said: SaidFields = field(default=None, compare=False)


@dataclass(slots=True)
class Wait:
    """A question to a person, from its asking to its answer."""

    question: str
    kind: str  # approve, run, loop, interrupted, review, tool
    because: str | None  # why it was asked
    asked: float
    answered: float | None = None  # or withdrawn, or closed
    verdict: str | None = None  # None: nobody answered it
    by: str | None = None
    scope: str | None = None


@dataclass(slots=True)
class ToolRun:
    """One start of a call's tool. A call that was repeated after a crash has several."""

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
    limit: str | None = None  # why it did not run, where a limit was reached
    opened: str | None = None  # the turn of the sub-agent that it began
    usage: Usage | None = None  # of models that it asked to make or hear something
    copied: bool = False  # from an earlier version of the answer: it did not run here
    runs: list[ToolRun] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    said: SaidFields = field(default=None, compare=False)


@dataclass(slots=True)
class RequestTrace:
    """One attempt to get a reply. `wait` is how long the next one was put off."""

    attempt: int
    model: str
    started: float
    first: float | None = None  # when the first piece of the reply came
    ended: float | None = None
    finish: str | None = None
    error: str | None = None
    status: int | None = None
    wait: float = 0.0
    usage: Usage | None = None
    built: int = 1  # which request of its step
    sent: int = 1  # how often that one had been sent
    copied: bool = False  # from an earlier version of the answer: nothing was asked


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
    error: str | None = None  # why there is no summary: a word


@dataclass(slots=True)
class Remark:
    """Something that came in between: what a person said meanwhile (`steered`), or a plugin (`appended`)."""

    kind: str
    at: float
    by: str | None = None


@dataclass(slots=True, frozen=True)
class Totals:
    """Seconds. What went on at the same time counts once."""

    seconds: float  # of the whole turn
    preparing: float | None  # before its first request: for a place, for tools that start, for plugins
    first_token: float | None  # from its start to the first piece of its first reply
    waited: float  # for a person
    requests: float  # for the model
    tools: float  # while tools ran, and what they asked was answered


@dataclass(slots=True)
class TurnTrace:
    """A whole turn. What is not over has no end."""

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

    def totals(self, now: float) -> Totals:
        """At this time, where it is not over."""
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
"""Something of a trace that is over."""


def _covered(spans: Iterable[tuple[float, float]]) -> float:
    """How long at least one of them lasted."""
    seconds, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        seconds += max(0.0, end - max(start, until))
        until = max(until, end)
    return seconds
