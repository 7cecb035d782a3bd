"""Run `dragoman explain`: print a turn as facts with states, as a waterfall, or as its requests."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from textwrap import wrap

from pydantic import JsonValue
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from dragoman.cli.flags.inspection import ExplainFlags
from dragoman.cli.folder_trust import settings_for
from dragoman.cli.lookup import find_turn, open_store
from dragoman.cli.model_choice import choose_model
from dragoman.cli.terminal.tables import as_markup, open_console
from dragoman.cli.terminal.text import one_line, plain, print_json
from dragoman.config.build import build_runtime
from dragoman.config.settings import Settings
from dragoman.messages.codec import Codec
from dragoman.messages.questions import Question
from dragoman.messages.usage import Usage
from dragoman.store.store import TurnRow
from dragoman.turn.api.turn_handle import load_trace
from dragoman.turn.facts import FACT, Fact
from dragoman.turn.machine import Turn, advance
from dragoman.turn.trace import Because, CallTrace, RequestTrace, Totals, TurnTrace, Wait

# Floats above this are times in seconds since 1970: no duration, token count or price is as large.
_A_MOMENT = 1e9
_TRACE: Codec[TurnTrace] = Codec(TurnTrace)
_TOTALS: Codec[Totals] = Codec(Totals)
_BAR = 24  # maximum characters, fewer in a narrow terminal
_BESIDE = 62  # characters of a line next to the bar, before its subject
_INDENT = " " * 13  # indentation of text that did not fit into the line
_NAME = 34
_NOTABLE = 0.1  # seconds before the first request that are worth showing
_COLOURS = {"step": "dim", "request": "cyan", "call": "green", "wait": "yellow", "compaction": "magenta"}


async def explain(flags: ExplainFlags) -> None:
    settings = settings_for(flags)
    if flags.request:
        await _explain_request(flags, settings)
        return
    async with open_store(settings) as runtime:
        row = await find_turn(runtime.store, flags.turn)
        if flags.trace:
            _explain_trace(await load_trace(runtime.store, row), as_json=flags.json)
            return
        facts = [FACT.load(body) for body in await runtime.store.facts(row.id)]
        questions = await runtime.store.questions_of(row.id)
    if flags.json:
        print_json(_report(row, facts, questions), indent=2)
    else:
        _show(row, facts, questions)


async def _explain_request(flags: ExplainFlags, settings: Settings) -> None:
    """Print a turn's requests with the tools, agents and models of these settings."""
    async with open_store(settings):
        pass  # raises an error if the store does not exist
    chosen = await choose_model(settings)
    built = build_runtime(settings, model=chosen.models, adopts=False)
    async with chosen.models, built.runtime as runtime:
        layers = await runtime.turn((await find_turn(runtime.store, flags.turn)).id).request()
    if flags.json:
        print_json(asdict(layers), indent=2)
    else:
        print(plain(layers.text()))


def _explain_trace(trace: TurnTrace, *, as_json: bool) -> None:
    now = time.time()
    if as_json:
        print_json(trace_report(trace, now), indent=2)
    else:
        show_waterfall(trace, now)


def _replay(facts: list[Fact]) -> list[tuple[Fact, Turn]]:
    """Return each fact with the state of the turn after it."""
    turn, steps = Turn(), []
    for fact in facts:
        turn = advance(turn, fact)
        steps.append((fact, turn))
    return steps


def _report(row: TurnRow, facts: list[Fact], questions: list[Question]) -> dict[str, JsonValue]:
    steps = _replay(facts)
    turn = steps[-1][1]
    calls: dict[str, JsonValue] = {
        id: {"tool": call.tool, "state": call.state, "questions": list(call.questions)}
        for id, call in turn.calls.items()
    }
    return {
        "turn": row.id,
        "conversation": row.conversation,
        "state": turn.state,
        "owner": row.owner,
        "epoch": row.epoch,
        "facts": [{**_fields(fact), "turn_state": after.state} for fact, after in steps],
        "calls": calls,
        "questions": [_report_question(question) for question in questions if question.open],
        "usage": asdict(turn.usage),
        "error": turn.error.error if turn.error else None,
    }


def _show(row: TurnRow, facts: list[Fact], questions: list[Question]) -> None:
    console = open_console()
    steps = _replay(facts)
    turn = steps[-1][1]
    console.print(f"[bold]{row.id}[/] of {row.conversation}: [bold]{turn.state}[/]", highlight=False)
    table = Table(box=None, pad_edge=False)
    for heading in ("#", "time", "fact", "state", ""):
        table.add_column(heading, overflow="fold")
    for number, (fact, after) in enumerate(steps, 1):
        when = _clock(fact.at)
        about = _describe({key: value for key, value in _fields(fact).items() if key not in ("at", "type")})
        table.add_row(str(number), when, type(fact).__name__, after.state, as_markup(about))
    console.print(table, highlight=False)
    if turn.error is not None:
        console.print(f"error: {as_markup(turn.error.error)}", highlight=False)
    for question in (question for question in questions if question.open):
        console.print(f"asks {question.id} ({question.kind}): {as_markup(question.text)}", highlight=False)


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at).strftime("%H:%M:%S.%f")[:-3]


def _fields(fact: Fact) -> dict[str, JsonValue]:
    """Return the fact as JSON without empty fields."""
    body = FACT.to_json(fact)
    assert isinstance(body, dict)
    return {key: value for key, value in body.items() if value not in (None, (), [], {}, "")}


def _describe(value: JsonValue) -> str:
    """Return the fields of a fact as text, without empty, zero or false ones."""
    match value:
        case dict():
            parts = ((key, _describe(inner)) for key, inner in value.items() if inner)
            return ", ".join(f"{key} {text}" if text != "yes" else key for key, text in parts if text)
        case list():
            return "; ".join(map(_describe, value))
        case True:
            return "yes"
        case float() if value > _A_MOMENT:
            return _clock(value)
        case _:
            return str(value)


def _report_question(question: Question) -> JsonValue:
    return {
        "id": question.id,
        "kind": question.kind,
        "call": question.call,
        "tool": question.tool,
        "arguments": question.arguments,
        "text": question.text,
    }


@dataclass(slots=True, frozen=True)
class _Row:
    kind: str
    depth: int
    name: str
    start: float
    end: float | None
    about: str = ""


def trace_report(trace: TurnTrace, now: float) -> JsonValue:
    """Return the trace in the form of `GET /api/turns/ID/trace`."""
    return {"trace": _TRACE.to_json(trace), "totals": _TOTALS.to_json(trace.totals(now)), "now": now}


def show_waterfall(trace: TurnTrace, now: float) -> None:
    console = Console(highlight=False)
    for line in _head(trace, now):
        console.print(line, soft_wrap=not console.is_terminal)
    width = max(8, min(_BAR, console.width - _BESIDE)) if console.is_terminal else _BAR
    until = max(trace.ended or now, trace.started)
    whole = max(until - trace.started, 1e-6)
    for row in _rows(trace):
        end = row.end if row.end is not None else until
        bar = _bar((row.start - trace.started) / whole, (end - trace.started) / whole, width)
        name = ("  " * row.depth + one_line(row.name, _NAME))[: _NAME + 4].ljust(_NAME + 4)
        lasts = seconds(end - row.start) if row.end is not None else f"{seconds(end - row.start)} …"
        at = seconds(max(0.0, row.start - trace.started))
        colour = _COLOURS[row.kind]
        about = one_line(row.about, 400)
        line = f"{at:>9}  [{colour}]{bar}[/]  {escape(name)} {lasts:>9}"
        room = console.width - width - _BESIDE - 2
        if not console.is_terminal or len(about) <= room:
            console.print(f"{line}  {escape(about)}".rstrip(), soft_wrap=True)
            continue
        console.print(line, soft_wrap=True)
        for part in wrap(about, max(20, console.width - len(_INDENT)), break_on_hyphens=False):
            console.print(f"{_INDENT}{escape(part)}", soft_wrap=True)


def _head(trace: TurnTrace, now: float) -> Iterator[str]:
    totals = trace.totals(now)
    lasted = f"after {seconds(totals.seconds)}" if trace.ended else f"for {seconds(totals.seconds)} so far"
    yield f"[bold]{trace.turn}[/] of {trace.conversation}: [bold]{trace.state}[/] {lasted}"
    long = totals.preparing is not None and totals.preparing >= _NOTABLE
    parts = [
        f"{seconds(totals.preparing or 0)} before the first request" if long else "",
        f"first token after {seconds(totals.first_token)}" if totals.first_token is not None else "",
        f"{seconds(totals.requests)} for the model",
        f"{seconds(totals.tools)} in tools" if trace.calls else "",
        f"{seconds(totals.waited)} for a person" if trace.waits else "",
        _used(trace.usage),
    ]
    yield ", ".join(filter(None, parts))
    if trace.error:
        yield f"error: {escape(one_line(trace.error, 400))}"
    if trace.limit:
        yield f"limit: {as_markup(trace.limit)}"


def _rows(trace: TurnTrace) -> Iterator[_Row]:
    for compaction in trace.compactions:
        about = f"{compaction.reason}; {compaction.error}" if compaction.error else compaction.reason
        yield _Row("compaction", 0, "compaction", compaction.started, compaction.ended, about)
    for step in trace.steps:
        yield _Row("step", 0, f"step {step.number}", step.started, step.ended)
        for request in step.requests:
            name = f"request {request.attempt}" if len(step.requests) > 1 else "request"
            yield _Row("request", 1, name, request.started, request.ended, _about_request(request))
        for call in step.calls:
            start = call.runs[0].started if call.runs else call.made
            depth = 1 if call.parent is None else 2
            yield _Row("call", depth, call.tool, start, call.ended, _about_call(call))
            for wait in call.waits:
                yield _Row(
                    "wait", depth + 1, f"asked ({wait.kind})", wait.asked, wait.answered, _about_wait(wait)
                )


def _about_request(request: RequestTrace) -> str:
    parts = [request.model]
    if request.copied:
        parts.append("copied from an earlier version")
    elif request.error:
        status = f"HTTP {request.status}: " if request.status else ""
        parts.append(f"{status}{request.error}")
        if request.wait:
            parts.append(f"asked again after {seconds(request.wait)}")
    elif request.first:
        parts.append(f"first token after {seconds(request.first - request.started)}")
    if request.finish and request.finish != "error":
        parts.append(request.finish)
    if request.usage is not None and request.usage.total:
        parts.append(_used(request.usage))
    return ", ".join(parts)


def _about_call(call: CallTrace) -> str:
    parts = [call.state]
    if call.because is not None:
        parts.append(describe_because(call.because))
    if call.limit:
        parts.append(f"limit: {call.limit}")
    if len(call.runs) > 1:
        parts.append(f"started {len(call.runs)} times")
    if call.client:
        parts.append("run by a client")
    if call.opened:
        parts.append(f"opened {call.opened}")
    return "; ".join(parts)


def _about_wait(wait: Wait) -> str:
    why = f"because of {wait.because}" if wait.because else ""
    if wait.verdict is None:
        return f"{why}, not answered".strip(", ")
    scope = f" ({wait.scope})" if wait.scope and wait.scope != "once" else ""
    at = f" at {_day_and_clock(wait.answered)}" if wait.answered else ""
    return f"{why}, {wait.verdict}{scope} by {wait.by or 'a person'}{at}".strip(", ")


def describe_because(because: Because) -> str:
    """Return why a call ran, as text for users."""
    where = f" ({because.origin})" if because.origin else ""
    at = f" at {_day_and_clock(because.at)}" if because.at else ""
    return f"{because.kind}: {because.text}{where}{at}" if because.kind else because.text


def _bar(start: float, end: float, width: int) -> str:
    first = min(width - 1, max(0, round(start * width)))
    last = min(width, max(first + 1, round(end * width)))
    return "·" * first + "█" * (last - first) + "·" * (width - last)


def seconds(value: float) -> str:
    if value < 0.9995:
        return f"{value * 1000:.0f} ms"
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def _used(usage: Usage) -> str:
    if not usage.total:
        return ""
    cost = f"${usage.cost:.6f}".rstrip("0").rstrip(".") if usage.cost is not None else "cost unknown"
    return f"{usage.input} tokens in, {usage.output} out, {cost}"


def _day_and_clock(at: float) -> str:
    return datetime.fromtimestamp(at).strftime("%Y-%m-%d %H:%M:%S")
