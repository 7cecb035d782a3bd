"""Show a turn on the screen, with finished parts above the live part, and print stored messages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.markdown import Markdown
from rich.segment import Segment
from rich.spinner import Spinner
from rich.text import Text

from dragoman.cli.terminal.cards import call_card, describe_file, folded_line, item_line, source_lines
from dragoman.cli.terminal.text import format_json, one_line, plain
from dragoman.conversation.tree import LOCAL
from dragoman.messages import events as e
from dragoman.messages.endings import ending_of
from dragoman.messages.message import (
    Arguments,
    CallState,
    Citation,
    Error,
    File,
    Message,
    ProviderItem,
    Reasoning,
    Summary,
    ToolCall,
    ToolResult,
)
from dragoman.messages.message import Text as TextPart

# A terminal shows neither HTML nor images, so they are parsed as text and nothing is lost.
_PARSER = MarkdownIt().enable(["strikethrough", "table"]).disable(["html_block", "html_inline", "image"])
REFRESHED = 8  # times a second


class Blocks:
    """Splits a growing text at blocks that can no longer change."""

    def __init__(self) -> None:
        self.open = ""

    def feed(self, piece: str) -> str:
        """Add a chunk, and return the text that it finishes, if any."""
        self.open += piece
        if "\n" not in piece:
            return ""  # A block ends at the end of a line.
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
    """The last lines of Markdown that fit, because the live part must not be taller than the screen."""

    def __init__(self, text: str, room: int) -> None:
        self._text = text
        self._room = room

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(TerminalMarkdown(self._text), options, pad=False)
        for line in lines[-self._room :]:
            yield from line
            yield Segment.line()


@dataclass(slots=True)
class _Thought:
    """Reasoning as it streams."""

    text: str = ""
    began: float = field(default_factory=time.monotonic)

    @property
    def first_line(self) -> str:
        return one_line(self.text.strip().partition("\n")[0], 100)


@dataclass(slots=True)
class _RunningCall:
    line: str
    at: float | None
    progress: str = ""


@dataclass(slots=True)
class _Retry:
    """A wait until the provider is asked again, by the monotonic clock."""

    event: e.StepRetry
    at: float

    @property
    def text(self) -> str:
        left = max(0.0, self.at - time.monotonic())
        attempt = f"attempt {self.event.attempt} of {self.event.attempts}"
        return f"{one_line(self.event.reason)}: {attempt} in {left:.0f} s"


def said_line(text: str) -> Text:
    """Return a user's message as it is shown among the answers."""
    return Text.assemble(("you: ", "bold cyan"), plain(text).strip())


class DownloadProgress:
    """The progress of a model's download, for display."""

    def __init__(self) -> None:
        self.text = ""

    def __call__(self, done: int, size: int) -> None:
        self.text = f"fetching the model: {100 * done // max(size, 1)} %" if done < size else ""


class Screen:
    """Shows one turn. `server_of` returns the server of a tool, or None for local ones."""

    def __init__(
        self,
        console: Console,
        *,
        reasoning: bool = False,
        server_of: Callable[[str], str | None],
        download: DownloadProgress,
        below: Callable[[], Sequence[RenderableType]] = tuple,
        folds: Callable[[str], bool] = lambda tool: False,
    ) -> None:
        """`below` returns what is shown below the running turn: typed text and a status line.

        Calls of tools that `folds` accepts take one line, and so do calls whose change the user has just
        seen.
        """
        self._folds = folds
        self._asked: set[str] = set()
        self.folded: list[RenderableType] = []  # full cards of calls that are shown on one line, newest last
        self._console = console
        self._reasoning = reasoning
        self._server_of = server_of
        self._download = download
        self._blocks = Blocks()
        self._thought: _Thought | None = None
        self._calls: dict[str, _RunningCall] = {}
        self._lines: dict[str, int] = {}  # line numbers of calls that programs make
        self._sources: list[Citation] = []  # sources of the reply, shown at its end
        self._state = "sending"
        self._retry: _Retry | None = None
        self._below = below
        self._between = False  # whether a block of this text has already been printed
        self._live = self._new_live()
        self._next: asyncio.TimerHandle | None = None

    def __enter__(self) -> Screen:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the live part while a prompt is shown."""
        self._stop()
        try:
            yield
        finally:
            self._live = self._new_live()
            self._start()

    def show(self, event: e.Event) -> None:
        match event:
            case e.StepStart(attempt=attempt):
                self._state, self._retry = "waiting for the model", None
                if attempt > 1:
                    self._start_over(attempt)
            case e.StepRetry():
                self._retry = _Retry(event, time.monotonic() + event.seconds)
            case e.ReasoningStart():
                self._thought = _Thought()
            case e.ReasoningDelta(text=text):
                self._thought = self._thought or _Thought()
                self._thought.text += plain(text)
            case e.ReasoningEnd(seconds=seconds):
                self._end_thought(seconds)
            case e.TextDelta(text=text):
                self._print_block(self._blocks.feed(plain(text)))
            case e.TextEnd(was_reasoning=was_reasoning):
                self._end_text(was_reasoning)
            case e.TextCited(citations=citations):
                self._sources += citations
            case e.ItemAdded(kind=kind, text=text):
                self._console.print(Text(item_line(kind, text), "dim"))
            case e.MessageEnd():
                self._print_sources()
            case e.CallInputStart(tool=tool):
                self._state = f"writing a call of {one_line(tool)}"
            case e.InnerCallMade(call=call, made_in=place):
                self._lines[call] = place.line
            case e.CallStart():
                line = f"{one_line(event.tool)} {one_line(format_json(event.arguments), 100)}"
                self._calls[event.call] = _RunningCall(line, event.at)
            case e.CallProgress(call=call, value=value) if call in self._calls:
                self._calls[call].progress = _describe_progress(value)
            case e.CallAsked():
                self._asked.add(event.call)
            case e.CallEnd():
                self._end_call(event)
            case e.MessageAdded(message=message):
                if message.role == "assistant":
                    self._print_block(plain(message.text))
                elif message.author is None:  # The message was sent while the turn ran.
                    self._console.print(said_line(message.text))
            case e.Notice(kind=kind, text=text) if kind != "title":
                self.notify(text)
            case e.TurnEnd():
                self._end_turn(event)
            case _:
                pass

    def notify(self, text: str, style: str = "dim") -> None:
        self._console.print(Text(f"· {one_line(text, 1000)}", style))

    # ── finished calls ────────────────────────────────────────────────────────────────────────────

    def _print_block(self, text: str) -> None:
        if not text.strip():
            return
        if self._between:
            self._console.print()
        self._console.print(TerminalMarkdown(text))
        self._between = True

    def _end_text(self, was_reasoning: bool) -> None:
        rest = self._blocks.end()
        if was_reasoning:
            self.notify(f"The text above was reasoning: {one_line(rest, 100)}" if self._between else rest)
        else:
            self._print_block(rest)
        self._between = False

    def _print_sources(self) -> None:
        for line in source_lines(self._sources):
            self._console.print(Text(line, "dim"))
        self._sources = []

    def _end_thought(self, seconds: float | None) -> None:
        thought, self._thought = self._thought, None
        if thought is None or not thought.text.strip():
            return
        lasted = seconds if seconds is not None else time.monotonic() - thought.began
        if self._reasoning:
            self._console.print(Text(f"∴ thought for {lasted:.1f} s", "dim"))
            self._console.print(Text(thought.text.strip(), "dim italic"))
        else:
            self._console.print(Text(f"∴ thought for {lasted:.1f} s: {thought.first_line}", "dim"))

    def _end_call(self, event: e.CallEnd) -> None:
        running = self._calls.pop(event.call, None)
        if (line := self._lines.pop(event.call, None)) is not None:
            self._console.print(_inner_line(line, event.tool, event.arguments, event.state, event.result))
            return
        lasted = event.at - running.at if running and running.at and event.at else None
        card = call_card(
            event.tool,
            event.arguments,
            event.state,
            event.result,
            server=self._server_of(event.tool),
            seconds=lasted,
            original=event.original,
        )
        edited = event.original is not None and event.original != event.arguments
        seen = event.call in self._asked and event.result.metadata.get("diff") and not edited
        if event.state is not CallState.COMPLETED or not (seen or self._folds(event.tool)):
            self._console.print(card)
            return
        self._console.print(
            folded_line(event.tool, event.arguments, event.state, event.result, lasted),
            no_wrap=True,
            overflow="ellipsis",
        )
        self.folded.append(card)

    def _start_over(self, attempt: int) -> None:
        self._blocks.end()
        self._thought = None
        self._sources = []
        self.notify(f"Dragoman asks the model again (attempt {attempt}). The text above does not count.")

    def _end_turn(self, event: e.TurnEnd) -> None:
        self._end_text(False)
        self._calls.clear()
        self._state = ""
        if event.error is not None:
            self._console.print(Text(f"error: {one_line(event.error, 2000)}", "red"))
        elif event.state != "completed":
            self.notify(f"the turn was {event.state}", "yellow")

    # ── moves ─────────────────────────────────────────────────────────────────────────────────────

    def _new_live(self) -> Live:
        return Live(self, console=self._console, transient=True, auto_refresh=False, vertical_overflow="crop")

    def _start(self) -> None:
        self._live.start()
        self._refresh()

    def _stop(self) -> None:
        if self._next is not None:
            self._next.cancel()
        self._live.stop()

    def _refresh(self) -> None:
        """Refresh in the printing thread: with two threads, each would miscount the lines that the other has
        drawn."""
        self._live.refresh()
        self._next = asyncio.get_running_loop().call_later(1 / REFRESHED, self._refresh)

    def __rich__(self) -> RenderableType:
        """Return the live part in its current state. It is also drawn below text that is printed between two
        refreshes."""
        parts: list[RenderableType] = []
        below = self._below()
        room = max(3, self._console.height - 3 - len(self._calls) - len(below))
        if self._blocks.open.strip():
            parts.append(Tail(self._blocks.open, room))
        for running in list(self._calls.values()):
            line = f"{running.line} · {running.progress}" if running.progress else running.line
            parts.append(Spinner("dots", Text(line, "cyan", overflow="ellipsis", no_wrap=True)))
        if self._thought is not None:
            parts.append(Spinner("dots", Text(f"thinking: {self._thought.first_line}", "dim", no_wrap=True)))
        elif not parts and self._state:
            state = self._retry.text if self._retry is not None else self._state
            parts.append(Spinner("dots", Text(self._download.text or state, "dim")))
        return Group(*parts, *below)


def _describe_progress(value: object) -> str:
    match value:
        case {"agent": agent, "asks": _}:
            return f"{one_line(str(agent))} asks"
        case {"agent": agent}:
            return f"{one_line(str(agent))} works"
        case str():
            return one_line(value, 100)
        case _:
            return one_line(format_json(value), 100)  # type: ignore[arg-type]  # JSON, as every progress is


def print_messages(console: Console, messages: Sequence[Message], *, reasoning: bool = False) -> None:
    for message, following in zip_longest(messages, messages[1:]):
        if message.role == "user":
            # In a shared conversation, another user sent it.
            sent_by = message.by if message.by != LOCAL else None
            who = message.author or sent_by or "you"
            console.print(Text(f"{one_line(who)}: ", "bold cyan"), end="")
            console.print(Text(plain(message.text).strip()))
            for file in message.files:
                console.print(Text(describe_file(file), "cyan"))
        else:
            _print_answer(console, message, reasoning)
            if (ending := ending_of(message, following)) is not None:
                console.print(Text(f"· {one_line(ending, 1000)}", "dim"))
        console.print()


def _print_answer(console: Console, message: Message, reasoning: bool) -> None:
    for part in message.parts:
        match part:
            case TextPart(text=text) if text.strip() or part.citations:
                if text.strip():
                    source = plain(text)
                    console.print(TerminalMarkdown(source) if console.is_terminal else Text(source.strip()))
                for line in source_lines(part.citations):
                    console.print(Text(line, "dim"))
            case ProviderItem():
                console.print(Text(item_line(part.kind, part.text), "dim"))
            case Reasoning(text=text) if text.strip():
                seconds = f" for {part.seconds:.1f} s" if part.seconds is not None else ""
                shown = plain(text).strip() if reasoning else one_line(text.strip().partition("\n")[0], 100)
                console.print(Text(f"∴ thought{seconds}: {shown}", "dim"))
            case ToolCall():
                for one in message.inner:
                    if one.made_in is not None and one.made_in.call == part.id:
                        at = one.made_in.line
                        console.print(_inner_line(at, one.tool, one.arguments, one.state, one.result))
                console.print(_card_of(part))
            case File():
                console.print(Text(describe_file(part), "cyan"))
            case Summary(text=text):
                console.print(Text(f"· what came before, compacted: {plain(text)}", "dim"))
            case Error(message=text):
                console.print(Text(f"error: {one_line(text, 2000)}", "red"))
            case _:
                pass


def _inner_line(line: int, tool: str, arguments: Arguments, state: str, result: ToolResult | None) -> Text:
    """Return the line of a program's call, which is shown above the program's card."""
    said = f"{one_line(tool)} {one_line(format_json(arguments), 100)} → {state}"
    text = f": {one_line(result.text, 100)}" if result is not None else ""
    return Text(f"  line {line}: {said}{text}", "dim")


def _card_of(call: ToolCall) -> object:
    lasted = call.ended - call.started if call.started is not None and call.ended is not None else None
    return call_card(
        call.tool, call.arguments, call.state, call.result, seconds=lasted, original=call.original
    )
