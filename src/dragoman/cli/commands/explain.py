"""`dragoman explain`: a turn fact by fact, with the state each led to, and its open questions."""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict
from datetime import datetime

from pydantic import JsonValue
from rich.table import Table

from dragoman.cli.commands.waterfall import show_waterfall, trace_report
from dragoman.cli.lookup import LAST, find_turn
from dragoman.cli.model_choice import choose_model
from dragoman.cli.terminal.tables import as_markup, open_console
from dragoman.cli.terminal.text import plain, print_json
from dragoman.config.build import build_runtime, store_of
from dragoman.config.settings import Settings
from dragoman.errors import ConfigError
from dragoman.messages.questions import Question
from dragoman.parameters import store_at
from dragoman.store.address import StoreAddress
from dragoman.store.store import TurnRow
from dragoman.turn.api.turn_handle import load_trace
from dragoman.turn.facts import FACT, Fact
from dragoman.turn.machine import Turn, advance
from dragoman.turn.steps.request_layers import RequestLayers
from dragoman.turn.trace import TurnTrace

_A_MOMENT = 1e9  # seconds since 1970: no duration, number of tokens or price is as large, and a fraction too


def explain(turn: str | None, address: StoreAddress, *, as_json: bool, trace: bool = False) -> None:
    if not address.is_there:
        raise ConfigError(f"there is no database {address}: name one with --store or DRAGOMAN_STORE")
    if trace:
        _explain_trace(asyncio.run(_read_trace(turn, address)), as_json=as_json)
        return
    row, facts, questions = asyncio.run(_read(turn, address))
    if as_json:
        print_json(_report(row, facts, questions), indent=2)
    else:
        _show(row, facts, questions)


def explain_request(turn: str | None, settings: Settings, *, as_json: bool) -> None:
    """With the tools, agents and models of these settings."""
    address = store_of(settings)
    if not address.is_there:
        raise ConfigError(f"there is no database {address}: name one with --store or DRAGOMAN_STORE")

    async def read() -> RequestLayers:
        chosen = await choose_model(settings)
        built = build_runtime(settings, model=chosen.models, adopts=False)
        async with chosen.models, built.runtime as runtime:
            return await runtime.turn((await find_turn(runtime.store, turn or LAST)).id).request()

    layers = asyncio.run(read())
    if as_json:
        print_json(asdict(layers), indent=2)
    else:
        print(plain(layers.text()))


def _explain_trace(trace: TurnTrace, *, as_json: bool) -> None:
    now = time.time()
    if as_json:
        print_json(trace_report(trace, now), indent=2)
    else:
        show_waterfall(trace, now)


async def _read_trace(turn: str | None, address: StoreAddress) -> TurnTrace:
    store = store_at(address)
    await store.open()
    try:
        row = await find_turn(store, turn or LAST)
        return await load_trace(store, row)
    finally:
        await store.close()


async def _read(turn: str | None, address: StoreAddress) -> tuple[TurnRow, list[Fact], list[Question]]:
    store = store_at(address)
    await store.open()
    try:
        row = await find_turn(store, turn or LAST)
        facts = [FACT.load(body) for body in await store.facts(row.id)]
        return row, facts, await store.questions_of(row.id)
    finally:
        await store.close()


def _replay(facts: list[Fact]) -> list[tuple[Fact, Turn]]:
    """Each fact with the turn as it was after it."""
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
    """As JSON, without what is empty."""
    body = FACT.to_json(fact)
    assert isinstance(body, dict)
    return {key: value for key, value in body.items() if value not in (None, (), [], {}, "")}


def _describe(value: JsonValue) -> str:
    """The fields of a fact as text: names and values, without what is empty, zero or false."""
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
