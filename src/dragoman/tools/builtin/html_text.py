"""The title and the text of a web page. No network."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from html.parser import HTMLParser

SILENT = frozenset(
    ["script", "style", "noscript", "template", "svg", "math", "iframe", "object", "select", "textarea"]
)
BLOCKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "br",
        "dd",
        "details",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "li",
        "main",
        "nav",
        "ol",
        "p",
        "pre",
        "section",
        "summary",
        "table",
        "title",
        "tr",
        "ul",
    ]
)
CELLS = frozenset({"td", "th"})
PIECE = 8192  # characters: between any two the time is looked at
PENDING = 1 << 18  # characters of one tag: as much as a picture inside it may need
SECONDS = 5.0


class _Late(Exception):
    """The time is up."""


def text_of(html: str, seconds: float = SECONDS) -> tuple[str, str]:
    """The page's title and its text. Of a page made to keep a parser busy, as much as there was time for."""
    page = _Page(until=time.monotonic() + seconds)
    with suppress(_Late):
        for at in range(0, len(html), PIECE):
            page.feed(html[at : at + PIECE])
            page.look_at_the_time()
            if len(page.rawdata) > PENDING:
                break
        else:
            page.close()
    lines = (re.sub(r"[^\S\n]+", " ", line).strip() for line in "".join(page.text).split("\n"))
    return " ".join("".join(page.title).split()), re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


class _Page(HTMLParser):
    def __init__(self, until: float) -> None:
        super().__init__(convert_charrefs=True)
        self._until = until
        self.text: list[str] = []
        self.title: list[str] = []
        self._silent: str | None = None  # the tag whose end is awaited
        self._depth = 0  # of tags of that name
        self._in_title = False
        self._in_pre = False

    def look_at_the_time(self) -> None:
        if time.monotonic() > self._until:
            raise _Late

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._silent is not None:
            self._depth += tag == self._silent
        elif tag in SILENT:
            self._silent, self._depth = tag, 1
        else:
            self._in_title = self._in_title or (tag == "title" and not self.title)
            self._in_pre = self._in_pre or tag == "pre"
            self._space(tag)
            if tag == "li":
                self.text.append("- ")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._silent is None:
            self._space(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._silent is not None:
            self._depth -= tag == self._silent
            self._silent = self._silent if self._depth else None
            return
        if tag == "title":
            self._in_title = False
        if tag == "pre":
            self._in_pre = False
        self._space(tag)

    def handle_data(self, data: str) -> None:
        self.look_at_the_time()  # at the end of a page, the rest of it is searched at each "<" that is no tag
        if self._silent is not None:
            return
        if self._in_title:
            self.title.append(data)
        else:
            self.text.append(data if self._in_pre else re.sub(r"\s+", " ", data))

    def _space(self, tag: str) -> None:
        if tag in BLOCKS:
            self.text.append("\n")
        elif tag in CELLS:
            self.text.append(" ")
