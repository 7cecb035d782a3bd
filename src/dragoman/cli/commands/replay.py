"""`dragoman replay`: stored turns on other models, beside what they were."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import cast

from pydantic import JsonValue
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dragoman.cli.lookup import LAST, find_turn
from dragoman.cli.model_choice import choose_model
from dragoman.cli.terminal.tables import as_markup, open_console
from dragoman.cli.terminal.text import one_line, plain, print_json
from dragoman.config.build import build_runtime
from dragoman.config.settings import Settings
from dragoman.messages.message import ToolCall, canonical
from dragoman.replay import Replayed, ToolsOf, TurnOutcome, replay_turn


def show_replays(
    settings: Settings, turns: Sequence[str], models: Sequence[str], *, tools: str, as_json: bool
) -> None:
    found = asyncio.run(_replay(settings, turns, models, cast("ToolsOf", tools)))
    if as_json:
        print_json([_report(one) for one in found], indent=2)
        return
    console = open_console()
    if len(found) == 1:
        _print_one(console, found[0])
    else:
        _print_table(console, found)


async def _replay(
    settings: Settings, turns: Sequence[str], models: Sequence[str], tools: ToolsOf
) -> list[Replayed]:
    named = replace(settings, values={**settings.values, "model": models[0]})
    chosen = await choose_model(named)
    built = build_runtime(settings, model=chosen.models, adopts=False)
    async with chosen.models, built.runtime as runtime:
        wanted = [(await find_turn(runtime.store, turn, ended=True)).id for turn in turns or [LAST]]
        return [
            await replay_turn(runtime, turn, model=model, tools=tools) for turn in wanted for model in models
        ]


# ── one, in full ──────────────────────────────────────────────────────────────────────────────────


def _print_one(console: Console, replayed: Replayed) -> None:
    before, after = replayed.before, replayed.after
    table = Table(box=None, pad_edge=False)
    for head in ("", as_markup(before.model), as_markup(after.model)):
        table.add_column(head, overflow="fold")
    for name, one, other in _numbers(before, after):
        table.add_row(name, one, other)
    console.print(table)
    if after.error:
        console.print(Text(f"\nfailed: {one_line(after.error, 500)}", "red"))
    for title, lines in (
        ("calls", _difference(_calls(before), _calls(after))),
        ("answer", _difference(before.text.splitlines(), after.text.splitlines())),
    ):
        console.print(Text(f"\n{title}", "bold"))
        for line in lines:
            style = {"-": "red", "+": "green"}.get(line[:1], "")
            console.print(Text(plain(line), style), soft_wrap=True)


def _difference(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """`-` was then, `+` is now, what is the same stands between."""
    if list(before) == list(after):
        yield from (f"  {line}" for line in before or ["none"])
        return
    for line in difflib.ndiff(before, after):
        if not line.startswith("?"):
            yield line


def _calls(run: TurnOutcome) -> list[str]:
    return [_call(call) for call in run.calls]


def _call(call: ToolCall) -> str:
    return one_line(f"{call.tool} {canonical(call.original or call.arguments)} {call.state}", 300)


def _numbers(before: TurnOutcome, after: TurnOutcome) -> Iterator[tuple[str, str, str]]:
    yield "calls", str(len(before.calls)), str(len(after.calls))
    yield "tokens", _tokens(before), _tokens(after)
    yield "cost", _cost(before), _cost(after)
    yield "seconds", f"{before.seconds:.1f}", f"{after.seconds:.1f}"


def _tokens(run: TurnOutcome) -> str:
    return f"{run.usage.input:,} + {run.usage.output:,}"


def _cost(run: TurnOutcome) -> str:
    return "unknown" if run.usage.cost is None else f"${run.usage.cost:.4f}"


# ── many ──────────────────────────────────────────────────────────────────────────────────────────


def _print_table(console: Console, replays: Sequence[Replayed]) -> None:
    table = Table(box=None, pad_edge=False)
    for head in ("turn", "model", "calls", "answer", "tokens", "cost", "seconds"):
        table.add_column(head, overflow="fold")
    for one in replays:
        after = one.after
        table.add_row(
            one.turn,
            as_markup(after.model),
            "same" if one.same_calls else f"{len(one.before.calls)} → {len(after.calls)}",
            "failed" if after.error else "same" if after.text == one.before.text else "other",
            _tokens(after),
            _cost(after),
            f"{after.seconds:.1f}",
        )
    console.print(table)
    same = sum(one.same_calls and not one.after.error for one in replays)
    console.print(f"{same} of {len(replays)} with the same calls")


def _report(replayed: Replayed) -> JsonValue:
    def run(one: TurnOutcome) -> JsonValue:
        calls: list[JsonValue] = [
            {"tool": call.tool, "arguments": call.original or call.arguments, "state": str(call.state)}
            for call in one.calls
        ]
        return {
            "model": one.model,
            "calls": calls,
            "text": one.text,
            "usage": asdict(one.usage),
            "seconds": round(one.seconds, 3),
            "error": one.error,
        }

    return {
        "turn": replayed.turn,
        "same_calls": replayed.same_calls,
        "before": run(replayed.before),
        "after": run(replayed.after),
    }
