"""Observe the turns of a process, and export what ends in them as spans and metrics after it is stored."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from dragoman.background import Background
from dragoman.messages.message import Message
from dragoman.store.store import Store
from dragoman.telemetry import registry as m
from dragoman.telemetry import spans as s
from dragoman.telemetry.spans import Contents, SpanValue
from dragoman.trace_context import TraceContext, context_of_turn, parse_header
from dragoman.turn.live.event_bus import EventBus
from dragoman.turn.live.log import TurnLog
from dragoman.turn.live.observed import Aside, Observed, Written
from dragoman.turn.machine import State
from dragoman.turn.trace import (
    CallTrace,
    CompactionTrace,
    Ended,
    Remark,
    RequestTrace,
    StepTrace,
    Tracer,
    TurnTrace,
    Wait,
)

_log = logging.getLogger("dragoman.telemetry")
_LOOK = 10.0  # seconds between counts of the turns
_CHAT = ("gen_ai.operation.name", "chat")
_INPUT, _OUTPUT = ("gen_ai.token.type", "input"), ("gen_ai.token.type", "output")


class SpanExporter(Protocol):
    """Receives ended spans in any order: a parent can come after its children."""

    def samples(self, trace: str) -> bool:
        """Return whether a trace that begins here is sampled."""

    def emit(self, spans: Sequence[SpanValue]) -> None:
        """Export spans. It is called from any thread, but never concurrently."""


class Telemetry:
    """The telemetry of one runtime. With `content`, spans contain messages and arguments.

    Every write to the store is measured. Only a failed write, or one of at least `slow_write` seconds, gets a
    span. After a write, spans are built within `moment` seconds.
    """

    def __init__(
        self,
        *,
        spans: SpanExporter | None = None,
        meters: Sequence[m.Meter] = (),
        content: bool = False,
        slow_write: float = 0.01,
        moment: float = 1.0,
    ) -> None:
        self.spans = spans
        self.meters = [*meters]
        self.content = content
        self.slow_write = slow_write
        self.moment = moment
        self._waiting: deque[tuple[_TurnObserver, Observed]] = deque()
        self._lock = threading.Lock()
        self.gauges: dict[str, float] = {measure.name: 0 for measure in m.GAUGES}  # values of the last count
        self._private: Mapping[str, str] = {}

    def join(
        self, bus: EventBus, background: Background, store: Store, private: Mapping[str, str] | None = None
    ) -> None:
        """Observe every turn that begins here from now on. `private` are strings that must not be
        exported."""
        self._bus, self._store = bus, store
        self._private = private or {}
        bus.watchers.append(self._watch)
        self._repeat = background.repeat

    def open(self) -> None:
        """Start the periodic work. Called when the store can be read."""
        self._repeat("counting the turns", self.look, every=_LOOK)
        self._repeat("telling of turns", self.tell, every=self.moment)

    async def tell(self) -> None:
        """Process what was written, in a thread, so that no turn waits for it."""
        if self._waiting:
            await asyncio.to_thread(self._work)

    def _work(self) -> None:
        with self._lock:
            while self._waiting:
                observer, observed = self._waiting.popleft()
                try:
                    observer.take(observed)
                except Exception:  # A failure in one turn must not stop reports about others.
                    _log.warning("cannot report a turn", exc_info=True)

    async def look(self) -> None:
        """Count the turns, and those that wait."""
        turns = self._bus.turns()
        waiting = sum(live.log.turn.state is State.WAITING for live in turns)
        queued = len(await self._store.queued())
        self.gauges = {m.LIVE.name: len(turns), m.WAITING.name: waiting, m.QUEUED.name: queued}

    async def close(self) -> None:
        """Process what is left."""
        await self.tell()

    def _watch(self, log: TurnLog) -> None:
        if self.spans is not None:
            parent = parse_header(log.turn.options.traceparent)
            context = context_of_turn(log.id, parent)
            sampled = context.sampled if parent is not None else self.spans.samples(context.trace)
            log.trace = replace(context, sampled=sampled)
        observer = _TurnObserver(self, log, self._contents(log) if self.content else None)
        if self.content:
            log.observers.append(observer.take)  # Process immediately, because messages change.
        else:
            log.observers.append(lambda observed: self._waiting.append((observer, observed)))

    def _contents(self, log: TurnLog) -> Contents:
        own = log.settings.get("private")
        texts = own.values() if isinstance(own, dict) else ()
        return Contents([*self._private.values(), *(text for text in texts if isinstance(text, str))])


class _TurnObserver:
    """Observes one turn. It does not repeat what an earlier process has reported."""

    def __init__(self, telemetry: Telemetry, log: TurnLog, contents: Contents | None) -> None:
        self._log = log
        self._telemetry = telemetry
        self._contents = contents
        self._parent = parse_header(log.turn.options.traceparent)
        self._tracer = Tracer(log.id, log.conversation.id, log.questions.get)
        self._writes = 0
        for fact in log.loaded:
            self._tracer.take(fact)
        if log.resumed:
            self._tracer.trace.remarks.append(Remark("resumed", log.now()))

    def take(self, observed: Observed) -> None:
        trace, spans = self._log.trace, list[SpanValue]()
        sampled = trace if trace is not None and trace.sampled else None
        if isinstance(observed, Written):
            self._take_write(observed, sampled, spans)
        else:
            self._take_aside(observed, sampled, spans)
        if spans and self._telemetry.spans is not None:
            self._telemetry.spans.emit(spans)

    def _take_write(self, written: Written, trace: TraceContext | None, spans: list[SpanValue]) -> None:
        self._writes += 1
        error = type(written.error).__name__ if written.error is not None else None
        seconds = written.ended - written.began
        self._record(m.STORE, seconds, (("error.type", error),) if error else ())
        if trace is not None and (error is not None or seconds >= self._telemetry.slow_write):
            spans.append(
                s.store_span(
                    trace,
                    f"{self._log.epoch}.{self._writes}",
                    len(written.facts),
                    start=written.began,
                    end=written.ended,
                    error=error,
                )
            )
        if written.error is not None:
            return  # A failed write changed nothing.
        for fact in written.facts:
            for ended in self._tracer.take(fact):
                if isinstance(ended, RequestTrace | CallTrace) and ended.copied:
                    continue  # The turn that it was copied from has reported it.
                self._measure(ended)
                if trace is not None:
                    spans.append(self._span(trace, ended))

    def _take_aside(self, aside: Aside, trace: TraceContext | None, spans: list[SpanValue]) -> None:
        compactions = self._tracer.trace.compactions
        for attempt in aside.attempts:
            self._measure_request(attempt)
            if trace is None:
                continue
            parent = (aside.parent or trace).span
            if aside.purpose == "summary" and compactions:
                parent = s.compaction_id(trace, compactions[-1])
            span = s.aside_span(trace, parent, aside, attempt)
            spans.append(_with(span, self._content_of_aside(aside)) if attempt.finish else span)

    # ── spans ─────────────────────────────────────────────────────────────────────────────────────

    def _span(self, turn: TraceContext, ended: Ended) -> SpanValue:
        match ended:
            case TurnTrace():
                parent = self._parent.span if self._parent else None
                span = s.turn_span(turn, parent, ended, owners=self._log.epoch)
            case StepTrace():
                span = s.step_span(turn, ended)
            case RequestTrace():
                span = s.request_span(turn, self._step.number, ended)
            case CallTrace():
                span = s.call_span(turn, self._step.number, ended)
            case Wait():
                call = next(one.id for one in self._step.calls if ended in one.waits)
                span = s.wait_span(turn, call, ended)
            case CompactionTrace():
                span = s.compaction_span(turn, ended)
        return span if self._contents is None else _with(span, self._content_of(self._contents, ended))

    @property
    def _step(self) -> StepTrace:
        return self._tracer.trace.steps[-1]

    def _content_of(self, contents: Contents, ended: Ended) -> dict[str, s.Attribute]:
        messages = self._log.path
        match ended:
            case RequestTrace() if ended.finish is not None:
                at = next((n for n, one in enumerate(messages) if one.id == self._log.turn.reply), None)
                if at is None:
                    return {}
                return {
                    "gen_ai.input.messages": contents.messages(messages[:at]),
                    "gen_ai.output.messages": contents.output(messages[at]),
                }
            case CallTrace():
                call = self._log.call(ended.id)
                return {
                    "gen_ai.tool.call.arguments": contents.arguments(call),
                    "gen_ai.tool.call.result": contents.result(call),
                }
            case TurnTrace():
                own = [message for message in self._log.messages if not message.calls]
                said, answers = _split(own)
                return {
                    "gen_ai.input.messages": contents.messages(said),
                    **({"gen_ai.output.messages": contents.output(answers[-1])} if answers else {}),
                }
        return {}

    def _content_of_aside(self, aside: Aside) -> dict[str, s.Attribute]:
        if self._contents is None or aside.reply is None:
            return {}
        return {
            "gen_ai.input.messages": self._contents.messages(aside.request.messages),
            "gen_ai.output.messages": self._contents.output(aside.reply),
        }

    # ── metrics ───────────────────────────────────────────────────────────────────────────────────

    def _measure(self, ended: Ended) -> None:
        match ended:
            case RequestTrace():
                self._measure_request(ended)
            case CallTrace() if ended.runs:
                labels = ("gen_ai.tool.name", ended.tool), ("dragoman.call.state", ended.state)
                self._record(m.TOOL, s.ran_for(ended), labels)
            case Wait():
                seconds = max(0.0, (ended.answered or ended.asked) - ended.asked)
                self._record(m.WAIT, seconds, (("kind", ended.kind), ("verdict", ended.verdict or "none")))
            case TurnTrace():
                state = (*s.model_attributes(ended.model).items(), ("state", ended.state))
                self._record(m.TURN, (ended.ended or ended.started) - ended.started, state)
                if ended.error_kind:
                    self._record(m.ERRORS, 1, (("error.type", ended.error_kind),))

    def _measure_request(self, request: RequestTrace) -> None:
        labels = (_CHAT, *s.model_attributes(request.model).items())
        error = s.error_of(request)
        seconds = max(0.0, (request.ended or request.started) - request.started)
        self._record(m.REQUEST, seconds, (*labels, ("error.type", error)) if error else labels)
        if request.first:
            self._record(m.FIRST, max(0.0, request.first - request.started), labels)
        usage = request.usage
        if usage is None or not usage.total:
            return
        self._record(m.TOKENS, usage.input, (*labels, _INPUT))
        self._record(m.TOKENS, usage.output, (*labels, _OUTPUT))
        if usage.cost is None:
            self._record(m.UNPRICED, 1, labels)
        else:
            self._record(m.COST, usage.cost, labels)

    def _record(self, measure: m.Measure, value: float, labels: m.Labels) -> None:
        for meter in self._telemetry.meters:
            meter.record(measure, value, labels)


def _with(span: SpanValue, more: Mapping[str, s.Attribute]) -> SpanValue:
    return replace(span, attributes={**span.attributes, **more}) if more else span


def _split(messages: Sequence[Message]) -> tuple[list[Message], list[Message]]:
    said = [message for message in messages if message.role == "user"]
    return said, [message for message in messages if message.role == "assistant"]
