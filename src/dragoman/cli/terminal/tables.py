"""Rows on standard output: a table with heads at a terminal, lines with tabs in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from dragoman.cli.terminal.text import plain

NARROW = 80  # columns of a terminal, below which less is shown
_WIDE = 200  # columns of what nobody looks at on a screen


def as_markup(text: str) -> str:
    """Somebody else's text, on one line, between marks of rich: safe to print, and none of them."""
    return escape(" ".join(plain(text).split()))


def open_console(*, soft_wrap: bool = False, stderr: bool = False) -> Console:
    """As wide as the terminal; what goes into a pipe is not folded as if it were one."""
    width = None if (sys.stderr if stderr else sys.stdout).isatty() else _WIDE
    return Console(highlight=False, soft_wrap=soft_wrap, stderr=stderr, width=width)


def print_table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    folds: Collection[int] = (),
    spare: Collection[int] = (),
) -> None:
    """The columns that take what room is left are those of `folds`, else the last; those that are `spare` are
    left out at a narrow terminal. Nothing without rows."""
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
