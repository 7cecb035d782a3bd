"""Run `dragoman usage`: print usage by day, person, model, agent or tool, as a table, CSV or JSON."""

from __future__ import annotations

import csv
import re
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from rich.table import Table

from dragoman.cli.flags.inspection import UsageFlags
from dragoman.cli.folder_trust import settings_for
from dragoman.cli.lookup import open_store
from dragoman.cli.terminal.tables import NARROW, as_markup, open_console
from dragoman.cli.terminal.text import print_json
from dragoman.config.build import store_of, teams_of
from dragoman.errors import BadRequest, ConfigError
from dragoman.messages.usage import Dimension, Spending, dimensions, group

_NUMBERS = ("replies", "input", "output", "cached", "reasoning", "cost", "unpriced")
_SPARE = ("cached", "reasoning", "unpriced")  # columns that are left out in a narrow terminal
_CALLS = ("calls", "failed")
_AGO = re.compile(r"(\d{1,4})([dwh])")
_HOURS = {"h": 1, "d": 24, "w": 24 * 7}


async def show_usage(flags: UsageFlags) -> None:
    settings = settings_for(flags)
    try:
        names = dimensions(flags.by) or ("day",)
    except BadRequest as error:
        raise ConfigError(f"Invalid --by: {error}") from error
    began = parse_since(flags.since) if flags.since else 0.0
    spent: list[Spending] = []
    if store_of(settings).is_there:
        async with open_store(settings) as runtime:
            spent = await runtime.store.spending(began, flags.person)
            if flags.team is not None:
                runtime.teams = teams_of(settings.values)
                members = await runtime.members(flags.team)
                spent = [one for one in spent if one.person in members]
    rows = group(spent, names)
    columns = [*names, *(_CALLS if "tool" in names else _NUMBERS)]
    if flags.json:
        print_json([{name: _value(row, name) for name in columns} for row in rows], indent=2)
    elif flags.csv:
        writer = csv.writer(sys.stdout)
        writer.writerow(columns)
        writer.writerows([_cell(_value(row, name)) for name in columns] for row in rows)
    else:
        _print_table(rows, names, columns)


def parse_since(text: str) -> float:
    """Parse a day (2026-11-01) or an age: 7d, 2w, 12h. Raises ConfigError for other texts."""
    if ago := _AGO.fullmatch(text):
        return time.time() - int(ago[1]) * _HOURS[ago[2]] * 3600
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigError(
            f"Invalid --since {text!r}. Write a day such as 2026-11-01, or 7d, 2w, 12h."
        ) from error
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _value(row: Spending, name: str) -> Any:
    return row.known_cost if name == "cost" else getattr(row, name)


def _cell(value: object) -> object:
    """Return a cell for CSV. Text that begins like a formula is quoted, because spreadsheets would run it."""
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t")):
        return f"'{value}"
    return "" if value is None else value


def _print_table(rows: Sequence[Spending], names: Sequence[Dimension], columns: Sequence[str]) -> None:
    console = open_console(soft_wrap=True)
    if console.width < NARROW:
        columns = [column for column in columns if column not in _SPARE]
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="left" if column in names else "right", no_wrap=True)
    total = sum(rows, Spending())
    for row in (*rows, total) if len(rows) > 1 else rows:
        cells = ["in all" if row is total and name == names[0] else _shown(row, name) for name in columns]
        table.add_row(*cells, style="bold" if row is total else None)
    console.print(table)
    if total.unpriced == 1:
        console.print("The price of 1 reply is unknown, so the total is too low.")
    elif total.unpriced:
        console.print(f"The price of {total.unpriced} replies is unknown, so the total is too low.")


def _shown(row: Spending, name: str) -> str:
    value = _value(row, name)
    if name == "cost":
        return f"${value:.4f}" if value is not None else "unknown"
    if isinstance(value, str):
        return as_markup(value)
    return "–" if value is None else str(value)
