"""What a provider did itself, and the sources of an answer, each as a line for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dragoman.cli.terminal.text import one_line
from dragoman.messages.message import Citation


def item_line(kind: str, text: str) -> str:
    """`⌕ web_search_call: population of Lyon`."""
    return f"⌕ {one_line(kind)}: {one_line(text)}" if text.strip() else f"⌕ {one_line(kind)}"


def source_lines(citations: Iterable[Citation]) -> Iterator[str]:
    """One line for each source, however often it is cited."""
    shown: set[tuple[str | None, str | None]] = set()
    for citation in citations:
        name = (citation.url, citation.title)
        if name in shown or not any(name):
            continue
        shown.add(name)
        number = len(shown)
        yield f"[{number}] " + " · ".join(one_line(one, 300) for one in (citation.title, citation.url) if one)
