"""Build spans from what ended in a turn, with the names of OpenTelemetry's GenAI conventions. It is pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

from pydantic import JsonValue

from dragoman.messages.message import Message, Part, ToolCall
from dragoman.messages.request import RequestMessage
from dragoman.messages.usage import Usage
from dragoman.redaction import redact_text, redact_value, spellings
from dragoman.trace_context import TraceContext, derive_id
from dragoman.turn.live.observed import Aside
from dragoman.turn.trace import CallTrace, CompactionTrace, RequestTrace, StepTrace, TurnTrace, Wait

# ── attributes of spans ───────────────────────────────────────────────────────────────────────────
# These are the contents of spans, if requested: messages and arguments without secrets.


class Contents:
    """Writes contents as the conventions define. `secrets` are strings that must not appear."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # Three levels suffice: strings in a result that is JSON itself are encoded once more.
        spelled = {one for secret in filter(None, secrets) for one in spellings(secret, 3)}
        self._secrets = sorted(spelled, key=len, reverse=True)

    def messages(self, messages: Sequence[Message | RequestMessage]) -> str:
        return self._text([{"role": one.role, "parts": _parts(one.parts)} for one in messages])

    def output(self, message: Message) -> str:
        reply: JsonValue = {
            "role": "assistant",
            "parts": _parts(message.parts),
            "finish_reason": message.finish or "",
        }
        return self._text([reply])

    def arguments(self, call: ToolCall) -> str:
        return self._text(dict(call.arguments))

    def result(self, call: ToolCall) -> str:
        return self._hidden(call.result.text if call.result is not None else "")

    def _text(self, value: JsonValue) -> str:
        return self._hidden(json.dumps(redact_value(value), ensure_ascii=False))

    def _hidden(self, text: str) -> str:
        for secret in self._secrets:  # Longer secrets come first, because one can contain another.
            text = text.replace(secret, "‹private›")
        return redact_text(text)


def _parts(parts: Sequence[Part]) -> list[JsonValue]:
    written: list[JsonValue] = []
    for part in parts:
        if part.type == "text":
            written.append({"type": "text", "content": part.text})
        elif isinstance(part, ToolCall):
            written.append(
                {"type": "tool_call", "id": part.id, "name": part.tool, "arguments": dict(part.arguments)}
            )
            if part.result is not None:
                written.append({"type": "tool_call_response", "id": part.id, "response": part.result.text})
    return written


Attribute: TypeAlias = str | int | float | bool | Sequence[str]

# Providers for which the conventions define a different name.
_PROVIDERS = {
    "azure": "azure.ai.openai",
    **dict.fromkeys(
        ("bedrock", "bedrock-converse", "bedrock-openai", "bedrock-gpt", "bedrock-mantle"), "aws.bedrock"
    ),
    "gemini": "gcp.gemini",
    "google": "gcp.gemini",
    "mistral": "mistral_ai",
    "moonshot": "moonshot_ai",
    "vertex": "gcp.vertex_ai",
    "xai": "x_ai",
}


@dataclass(slots=True, eq=False)
class Usual:
    """Attributes that many spans share. They are encoded once for each maximum length."""

    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    encoded: dict[int | None, bytes] = field(default_factory=dict)


NOTHING = Usual()


@dataclass(slots=True)
class SpanValue:
    """An ended span. `error` is a short code for the failure, never a message."""

    name: str
    trace: str
    id: str
    parent: str | None  # the ID of the parent span
    start: float
    end: float
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    usual: Usual = NOTHING
    client: bool = False  # whether the span is a request to another machine
    error: str | None = None
    events: Sequence[tuple[str, float]] = ()


def turn_span(context: TraceContext, parent: str | None, trace: TurnTrace, *, owners: int = 1) -> SpanValue:
    """Return the span of a turn. `owners` is the number of processes that ran it in turn.

    If there were several, one of them can have been killed before it had sent all of its spans.
    """
    agent = {"gen_ai.agent.name": trace.agent} if trace.agent else {}
    attributes: dict[str, Attribute] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.conversation.id": trace.conversation,
        **agent,
        **model_attributes(trace.model),
        **_usage(trace.usage),
        "dragoman.turn.id": trace.turn,
        "dragoman.turn.state": trace.state,
        "dragoman.turn.steps": len(trace.steps),
    }
    if owners > 1:
        attributes["dragoman.turn.owners"] = owners
    name = f"invoke_agent {trace.agent}" if trace.agent else "invoke_agent"
    ended = trace.ended or trace.started
    events = [(remark.kind, remark.at) for remark in trace.remarks]
    return SpanValue(
        name,
        context.trace,
        context.span,
        parent,
        trace.started,
        ended,
        attributes,
        error=trace.error_kind,
        events=events,
    )


def step_span(turn: TraceContext, step: StepTrace) -> SpanValue:
    number, ended = step.number, step.ended or step.started
    return SpanValue(
        f"step {number}",
        turn.trace,
        step_id(turn.span, number),
        turn.span,
        step.started,
        ended,
        usual=_usual_of_step(number),
    )


@lru_cache(256)
def _usual_of_step(number: int) -> Usual:
    return Usual({"dragoman.step": number})


def request_span(turn: TraceContext, step: int, request: RequestTrace) -> SpanValue:
    """Return the span of a request. Its ID is the one that was sent in the header."""
    id = turn.child_id("request", step, request.built, "attempt", request.sent)
    return _chat_span(turn.trace, id, step_id(turn.span, step), request)


def aside_span(turn: TraceContext, parent: str, aside: Aside, attempt: RequestTrace) -> SpanValue:
    """Return the span of a side request. Its parent is the span that made it."""
    id = turn.child_id("aside", aside.place, "attempt", attempt.sent)
    return _chat_span(turn.trace, id, parent, attempt, purpose=aside.purpose)


def _chat_span(
    trace: str, id: str, parent: str, request: RequestTrace, *, purpose: str | None = None
) -> SpanValue:
    attributes = _usage(request.usage) if request.usage is not None else {}
    if request.first:
        attributes["gen_ai.response.time_to_first_chunk"] = max(0.0, request.first - request.started)
    if request.status:
        attributes["http.response.status_code"] = request.status
    if request.wait:
        attributes["dragoman.retry.wait"] = request.wait
    name, usual = _usual_of_chat(request.model, request.attempt, request.finish, purpose)
    return SpanValue(
        name,
        trace,
        id,
        parent,
        request.started,
        request.ended or request.started,
        attributes,
        usual,
        client=True,
        error=error_of(request),
        events=[("first token", request.first)] if request.first else (),
    )


@lru_cache(512)
def _usual_of_chat(model: str, attempt: int, finish: str | None, purpose: str | None) -> tuple[str, Usual]:
    """Return the name and the shared attributes of a chat span."""
    named = model_attributes(model)
    attributes: dict[str, Attribute] = {
        "gen_ai.operation.name": "chat",
        **named,
        "gen_ai.request.stream": True,
        "dragoman.attempt": attempt,
    }
    if finish:
        attributes["gen_ai.response.finish_reasons"] = [finish]
    if purpose:
        attributes["dragoman.purpose"] = purpose
    return f"chat {named.get('gen_ai.request.model', '')}".strip(), Usual(attributes)


def call_span(turn: TraceContext, step: int, call: CallTrace) -> SpanValue:
    """Return the span of a call, from the reply that made it to its result, including waits."""
    kind = rule = origin = None
    if (because := call.because) is not None:
        kind, origin = because.kind or "unknown", because.origin
        rule = because.text if kind == "rule" else None  # The text of a grant is built from arguments.
    usual = _usual_of_call(call.tool, call.state, kind, rule, origin)
    error = None if call.state in ("completed", "withheld") else call.state
    events = [("started", run.started) for run in call.runs]
    name = f"execute_tool {call.tool}"
    return SpanValue(
        name,
        turn.trace,
        turn.child_id("call", call.id),
        step_id(turn.span, step) if call.parent is None else turn.child_id("call", call.parent),
        call.made,
        call.ended or call.made,
        {"gen_ai.tool.call.id": call.id, "dragoman.call.seconds": ran_for(call)},
        usual,
        error=error,
        events=events,
    )


@lru_cache(512)
def _usual_of_call(tool: str, state: str, because: str | None, rule: str | None, origin: str | None) -> Usual:
    attributes: dict[str, Attribute] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool,
        "gen_ai.tool.type": "function",
        "dragoman.call.state": state,
    }
    more = {
        "dragoman.call.because": because,
        "dragoman.call.rule": rule,
        "dragoman.call.because.origin": origin,
    }
    return Usual(attributes | {name: value for name, value in more.items() if value})


def wait_span(turn: TraceContext, call: str, wait: Wait) -> SpanValue:
    attributes: dict[str, Attribute] = {
        "dragoman.question.kind": wait.kind,
        "dragoman.question.verdict": wait.verdict or "none",
    }
    if wait.because:
        attributes["dragoman.question.because"] = wait.because
    if wait.by:
        attributes["dragoman.question.answered_by"] = wait.by
    id, parent = turn.child_id("call", call, "question", wait.question), turn.child_id("call", call)
    ended = max(wait.asked, wait.answered or wait.asked)
    return SpanValue(f"question {wait.kind}", turn.trace, id, parent, wait.asked, ended, attributes)


def compaction_span(turn: TraceContext, compaction: CompactionTrace) -> SpanValue:
    attributes = _usage(compaction.usage) if compaction.usage is not None else {}
    ended = compaction.ended or compaction.started
    return SpanValue(
        "compaction",
        turn.trace,
        compaction_id(turn, compaction),
        turn.span,
        compaction.started,
        ended,
        attributes,
        error=compaction.error,
    )


def store_span(
    turn: TraceContext, place: object, facts: int, *, start: float, end: float, error: str | None
) -> SpanValue:
    attributes: dict[str, Attribute] = {"dragoman.store.facts": facts}
    id = turn.child_id("store", place)
    return SpanValue("store append", turn.trace, id, turn.span, start, end, attributes, error=error)


def compaction_id(turn: TraceContext, compaction: CompactionTrace) -> str:
    return turn.child_id("compaction", compaction.started)


@lru_cache(256)  # Each span in a step uses the ID.
def step_id(turn: str, step: int) -> str:
    """Return the ID of a step, derived from that of its turn."""
    return derive_id(turn, "step", step)


@lru_cache(256)
def model_attributes(model: str | None) -> Mapping[str, str]:
    """Return the attributes of `provider/model`, under the names of the conventions."""
    if not model:
        return {}
    provider, slash, name = model.partition("/")
    if not slash:
        return {"gen_ai.request.model": model}
    return {"gen_ai.provider.name": _PROVIDERS.get(provider, provider), "gen_ai.request.model": name}


def error_of(request: RequestTrace) -> str | None:
    """Return a short code for the error, because messages can contain contents."""
    if request.error is None:
        return None
    return str(request.status) if request.status else "error"


def ran_for(call: CallTrace) -> float:
    seconds = 0.0
    for run in call.runs:
        if run.ended is not None and run.ended > run.started:
            seconds += run.ended - run.started
    return seconds


def _usage(usage: Usage) -> dict[str, Attribute]:
    if not usage.total:
        return {}
    found: dict[str, Attribute] = {
        "gen_ai.usage.input_tokens": usage.input,
        "gen_ai.usage.output_tokens": usage.output,
    }
    if usage.cached:
        found["gen_ai.usage.cache_read.input_tokens"] = usage.cached
    if usage.cache_written:
        found["gen_ai.usage.cache_creation.input_tokens"] = usage.cache_written
    if usage.reasoning:
        found["gen_ai.usage.reasoning.output_tokens"] = usage.reasoning
    if usage.cost is not None:
        found["dragoman.cost"] = usage.cost
    return found
