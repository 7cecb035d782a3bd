"""Rows on standard output: a table with heads at a terminal, lines with tabs in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dragoman.cli.terminal.text import plain


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, widest: int | None = None) -> None:
    """`widest` is the column that takes what room is left; the others are never cut. Nothing without rows."""
    if not rows:
        return
    if not sys.stdout.isatty():
        for row in rows:
            print("\t".join(map(plain, row)).rstrip())
        return
    console = Console(highlight=False)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    wide = len(heads) - 1 if widest is None else widest
    for place, head in enumerate(heads):
        last = place == wide
        table.add_column(head, no_wrap=not last, overflow="fold" if last else "ellipsis")
    for row in rows:
        table.add_row(*(Text(plain(cell)) for cell in row))
    console.print(table)
