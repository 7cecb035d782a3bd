"""Markdown at a terminal, also while it streams in: finished blocks once, the last one again as it grows."""

from __future__ import annotations

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Markdown
from rich.segment import Segment

# A terminal shows neither HTML nor images: they are text here, so that nothing a model says gets lost.
_PARSER = MarkdownIt().enable(["strikethrough", "table"]).disable(["html_block", "html_inline", "image"])


class Blocks:
    """Cuts a growing text where a block of it can change no more."""

    def __init__(self) -> None:
        self.open = ""

    def feed(self, piece: str) -> str:
        """What is finished with this piece, if anything."""
        self.open += piece
        if "\n" not in piece:
            return ""  # a block ends at the end of a line
        tokens = _PARSER.parse(self.open)
        starts = [token.map[0] for token in tokens if token.level == 0 and token.nesting >= 0 and token.map]
        if len(starts) < 2:
            return ""
        lines = self.open.split("\n")
        done, self.open = "\n".join(lines[: starts[-1]]), "\n".join(lines[starts[-1] :])
        return done

    def end(self) -> str:
        rest, self.open = self.open, ""
        return rest


class TerminalMarkdown(Markdown):
    """Markdown for a terminal: addresses are written out, and HTML is text."""

    def __init__(self, text: str) -> None:
        super().__init__(text, code_theme="ansi_dark", hyperlinks=False)
        self.parsed = _PARSER.parse(text)


class Tail:
    """The last lines of some Markdown, as many as fit: what is live must not be taller than the screen."""

    def __init__(self, text: str, room: int) -> None:
        self._text = text
        self._room = room

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(TerminalMarkdown(self._text), options, pad=False)
        for line in lines[-self._room :]:
            yield from line
            yield Segment.line()
