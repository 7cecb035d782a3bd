"""The live view of a turn in a chat: what is finished stands above, what is under way moves below it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from dragoman.cli.terminal.cards import call_card
from dragoman.cli.terminal.markdown import Blocks, Tail, TerminalMarkdown
from dragoman.cli.terminal.sources import item_line, source_lines
from dragoman.cli.terminal.text import format_json, one_line, plain
from dragoman.messages import events as e
from dragoman.messages.message import Citation

REFRESHED = 8  # times a second


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
    """A provider did not answer, and is asked again at a time of the monotonic clock."""

    event: e.StepRetry
    at: float

    @property
    def text(self) -> str:
        left = max(0.0, self.at - time.monotonic())
        attempt = f"attempt {self.event.attempt} of {self.event.attempts}"
        return f"{one_line(self.event.reason)}: {attempt} in {left:.0f} s"


def said_line(text: str) -> Text:
    """What a person said, as it stands among the answers."""
    return Text.assemble(("you: ", "bold cyan"), plain(text).strip())


class DownloadProgress:
    """How far the download of a model is, for whoever shows it."""

    def __init__(self) -> None:
        self.text = ""

    def __call__(self, done: int, size: int) -> None:
        self.text = f"fetching the model: {100 * done // max(size, 1)} %" if done < size else ""


class Screen:
    """Shows one turn. `server_of` says where a tool lives, if not here."""

    def __init__(
        self,
        console: Console,
        *,
        thoughts: bool = False,
        server_of: Callable[[str], str | None],
        download: DownloadProgress,
        below: Callable[[], Sequence[RenderableType]] = tuple,
    ) -> None:
        """`below` is what stands under the turn while it runs: what the person types, and a status line."""
        self._console = console
        self._thoughts = thoughts
        self._server_of = server_of
        self._download = download
        self._blocks = Blocks()
        self._thought: _Thought | None = None
        self._calls: dict[str, _RunningCall] = {}
        self._sources: list[Citation] = []  # of the reply, shown when it is over
        self._state = "sending"
        self._retry: _Retry | None = None
        self._below = below
        self._between = False  # a block of this text stands above already
        self._live = self._new_live()
        self._next: asyncio.TimerHandle | None = None

    def __enter__(self) -> Screen:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """While a person is asked, nothing moves."""
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
            case e.CallStart():
                line = f"{one_line(event.tool)} {one_line(format_json(event.arguments), 100)}"
                self._calls[event.call] = _RunningCall(line, event.at)
            case e.CallProgress(call=call, value=value) if call in self._calls:
                self._calls[call].progress = _describe_progress(value)
            case e.CallEnd():
                self._end_call(event)
            case e.MessageAdded(message=message):
                if message.role == "assistant":
                    self._print_block(plain(message.text))
                elif message.author is None:  # it was said while the turn ran
                    self._console.print(said_line(message.text))
            case e.Notice(kind=kind, text=text) if kind != "title":
                self.notify(text)
            case e.TurnEnd():
                self._end_turn(event)
            case _:
                pass

    def notify(self, text: str, style: str = "dim") -> None:
        self._console.print(Text(f"· {one_line(text, 1000)}", style))

    # ── what is finished ──────────────────────────────────────────────────────────────────────────

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
            self.notify(f"what stands above was a thought: {one_line(rest, 100)}" if self._between else rest)
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
        if self._thoughts:
            self._console.print(Text(f"∴ thought for {lasted:.1f} s", "dim"))
            self._console.print(Text(thought.text.strip(), "dim italic"))
        else:
            self._console.print(Text(f"∴ thought for {lasted:.1f} s: {thought.first_line}", "dim"))

    def _end_call(self, event: e.CallEnd) -> None:
        running = self._calls.pop(event.call, None)
        lasted = event.at - running.at if running and running.at and event.at else None
        self._console.print(
            call_card(
                event.tool,
                event.arguments,
                event.state,
                event.result,
                server=self._server_of(event.tool),
                seconds=lasted,
                original=event.original,
            )
        )

    def _start_over(self, attempt: int) -> None:
        self._blocks.end()
        self._thought = None
        self._sources = []
        self.notify(f"the model is asked again (attempt {attempt}); what it said before does not count")

    def _end_turn(self, event: e.TurnEnd) -> None:
        self._end_text(False)
        self._calls.clear()
        self._state = ""
        if event.error is not None:
            self._console.print(Text(f"error: {one_line(event.error, 2000)}", "red"))
        elif event.state != "completed":
            self.notify(f"the turn was {event.state}", "yellow")

    # ── what moves ────────────────────────────────────────────────────────────────────────────────

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
        """In the thread that prints: beside it, each would count the lines that the other has drawn over."""
        self._live.refresh()
        self._next = asyncio.get_running_loop().call_later(1 / REFRESHED, self._refresh)

    def __rich__(self) -> RenderableType:
        """What moves, as it is now: also below what is printed between two refreshes."""
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
