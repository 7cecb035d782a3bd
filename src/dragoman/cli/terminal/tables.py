"""Print rows on standard output: a table at a terminal, tab-separated lines in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from dragoman.cli.terminal.text import plain

NARROW = 80  # columns below which a terminal is narrow, and less is shown
_WIDE = 200  # columns of output that is not shown on a screen


def as_markup(text: str) -> str:
    """Return external text on one line, escaped for rich, so that it is safe to print."""
    return escape(" ".join(plain(text).split()))


def open_console(*, soft_wrap: bool = False, stderr: bool = False) -> Console:
    """Return a console as wide as the terminal. Output to a pipe is not wrapped at the terminal's width."""
    width = None if (sys.stderr if stderr else sys.stdout).isatty() else _WIDE
    return Console(highlight=False, soft_wrap=soft_wrap, stderr=stderr, width=width)


def print_table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    folds: Collection[int] = (),
    spare: Collection[int] = (),
) -> None:
    """Print a table, or nothing without rows. Columns in `folds`, or else the last one, take the remaining
    width. In a narrow terminal, `spare` columns are left out."""
    if not rows:
        return
    if not sys.stdout.isatty():
        for row in rows:
            print("\t".join(map(plain, row)).rstrip())
        return
    console = Console(highlight=False)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    wide = folds or (len(heads) - 1,)
    shown = [n for n in range(len(heads)) if n not in spare or console.width >= NARROW]
    for place in shown:
        fold = place in wide
        table.add_column(heads[place], no_wrap=not fold, overflow="fold" if fold else "ellipsis")
    for row in rows:
        table.add_row(*(Text(plain(row[place])) for place in shown))
    console.print(table)
