"""Read a user's input: messages with history and completion, lines, texts, and keys while a turn runs."""

from __future__ import annotations

import asyncio
import codecs
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import Completer, WordCompleter
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyBindings, KeyPress, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.styles import Style

from dragoman.cli.terminal.follow import on_interrupt
from dragoman.cli.terminal.forms import InputClosed, Interrupted

if sys.platform != "win32":
    import termios

PASTES = ("\x1b[?2004h", "\x1b[?2004l")  # turn the terminal's marks for pasted text on and off
_ALONE = 0.1  # seconds after which an Escape is a key, and not the beginning of a sequence
_AS_A_SHELL_HAS_IT = f"\x1b[?25h{PASTES[1]}"  # show the cursor and turn marks for pasted text off
_AGAIN = 1.0  # seconds between checks whether a background program is in the foreground again


class TypedLine:
    """A line that is typed while a turn runs. Enter and Tab submit it. Escape clears it, or calls `stop` if
    it is empty."""

    def __init__(
        self, *, enter: Callable[[str], None], tab: Callable[[str], None], stop: Callable[[], None]
    ) -> None:
        self.text = ""
        self._enter = enter
        self._tab = tab
        self._stop = stop
        self._decoder = codecs.getincrementaldecoder("utf-8")("ignore")
        self._parser = Vt100Parser(self._press)
        self._later: asyncio.TimerHandle | None = None
        self._listens = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Read keys while the block runs. Without a suitable terminal, nothing is read."""
        if sys.platform == "win32" or not sys.stdin.isatty():
            yield
            return
        self._listen(True)
        try:
            yield
        finally:
            self._listen(False)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop reading while a prompt reads the keys."""
        listens = self._listens
        if listens:
            self._listen(False)
        try:
            yield
        finally:
            if listens:
                self._listen(True)

    def _listen(self, wanted: bool) -> None:
        loop, terminal = asyncio.get_running_loop(), sys.stdin.fileno()
        self._listens = wanted
        print(PASTES[0 if wanted else 1], end="", file=sys.__stdout__, flush=True)
        if wanted:
            loop.add_reader(terminal, self._read)
            return
        loop.remove_reader(terminal)
        if self._later is not None:
            self._later.cancel()

    def _read(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            data = os.read(sys.stdin.fileno(), 4096)
        except OSError:
            data = b""
        if not data:  # The terminal is gone, and would be reported as readable forever.
            loop.remove_reader(sys.stdin.fileno())
            return
        if self._later is not None:
            self._later.cancel()
        self._parser.feed(self._decoder.decode(data))
        self._later = loop.call_later(_ALONE, self._parser.flush)

    def _press(self, press: KeyPress) -> None:
        match press.key:
            case Keys.ControlM | Keys.ControlJ:
                self._hand_over(self._enter)
            case Keys.ControlI:
                self._hand_over(self._tab)
            case Keys.Backspace | Keys.ControlH:
                self.text = self.text[:-1]
            case Keys.ControlU:
                self.text = ""
            case Keys.ControlW:
                self.text = self.text.rstrip().rpartition(" ")[0]
            case Keys.Escape if self.text:
                self.text = ""
            case Keys.Escape:
                self._stop()
            case Keys.BracketedPaste:
                self.text += press.data.replace("\r\n", "\n").replace("\r", "\n")
            case str() as letter if not isinstance(press.key, Keys) and letter.isprintable():
                self.text += letter
            case _:
                pass  # Arrow keys are ignored: the line only grows at its end.

    def _hand_over(self, to: Callable[[str], None]) -> None:
        text, self.text = self.text.strip(), ""
        if text:
            to(text)


@contextmanager
def mute_typing() -> Iterator[None]:
    """Hide keys between prompts, without treating any as the end of input. Ctrl-C still interrupts.

    Ctrl-Z gives the terminal back to the shell in its original state.
    """
    if sys.platform == "win32":
        yield
        return
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    quiet = termios.tcgetattr(terminal)
    quiet[3] &= ~(termios.ICANON | termios.ECHO)
    termios.tcsetattr(terminal, termios.TCSADRAIN, quiet)

    def stop(*_: object) -> None:
        mode = termios.tcgetattr(terminal)
        print(_AS_A_SHELL_HAS_IT, end="", file=sys.__stdout__, flush=True)
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)  # The program is stopped here until it is continued.
        signal.signal(signal.SIGTSTP, stop)
        termios.tcsetattr(terminal, termios.TCSADRAIN, mode)
        print(PASTES[0], end="", file=sys.__stdout__, flush=True)

    stops = signal.getsignal(signal.SIGTSTP)
    if stops is signal.SIG_DFL:
        signal.signal(signal.SIGTSTP, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTSTP, stops)
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


class Keyboard:
    """The prompts of one chat. Only one is active at a time."""

    def __init__(self, completer: Completer, history: Path) -> None:
        self._messages: PromptSession[str] = PromptSession(
            history=_History(str(history)),
            completer=completer,
            complete_while_typing=True,
            auto_suggest=AutoSuggestFromHistory(),
            multiline=True,
            key_bindings=_send_with_enter(),
            prompt_continuation="  ",
            enable_open_in_editor=True,
            reserve_space_for_menu=5,
            style=Style.from_dict({"bottom-toolbar": "noreverse fg:ansibrightblack"}),
            interrupt_exception=Interrupted,
            eof_exception=InputClosed,
        )

    async def message(self, default: str = "", *, status: Callable[[int], str] | None = None) -> str:
        """Return a message. Enter sends it, Alt-Enter inserts a newline, and pasted text is kept whole.
        `status` returns the line below, for a given width."""
        self._messages.bottom_toolbar = _toolbar(status) if status is not None else None
        with on_interrupt(_leave_to_editor):
            return await _prompt(self._messages, _styled("› ", "cyan"), default)

    async def line(self, prompt: str, *, default: str = "", words: Sequence[str] = (), keys: str = "") -> str:
        session: PromptSession[str] = PromptSession(
            completer=WordCompleter(list(words)) if words else None,
            key_bindings=_answer_with(keys) if keys else None,
            interrupt_exception=Interrupted,
            eof_exception=InputClosed,
        )
        text = await _prompt(session, _styled(prompt, "yellow"), default)
        return text.strip()

    def forget_typing(self) -> None:
        if sys.platform == "win32":
            return
        with suppress(termios.error):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)

    async def edit(self, text: str, what: str) -> str:
        """Return an edited text. Enter inserts a newline."""
        session: PromptSession[str] = PromptSession(
            multiline=True,
            key_bindings=_finish_with_ctrl_s(),
            enable_open_in_editor=True,
            interrupt_exception=Interrupted,
            eof_exception=InputClosed,
        )
        keys = f"{what}: Alt-Enter or Ctrl-S when done · Ctrl-X Ctrl-E your editor · Ctrl-C back\n"
        return await _prompt(session, _styled(keys, "yellow"), text)


async def _leave_to_editor() -> None:
    """Do nothing. At a prompt, Ctrl-C is a key, so this signal comes from an editor that was opened."""


async def _prompt(session: PromptSession[str], prompt: FormattedText, default: str) -> str:
    """Prompt without signal and exception handlers, because the session handles both."""
    return await session.prompt_async(
        prompt, default=default, handle_sigint=False, set_exception_handler=False
    )


class _History(FileHistory):
    """A stored history. If its folder is not writable, the chat continues without storing."""

    def load_history_strings(self) -> list[str]:
        try:
            return list(super().load_history_strings())
        except OSError:
            return []

    def store_string(self, string: str) -> None:
        try:
            Path(self.filename).parent.mkdir(parents=True, exist_ok=True)  # type: ignore[arg-type]
            super().store_string(string)
        except OSError:
            pass


def _toolbar(status: Callable[[int], str]) -> Callable[[], FormattedText]:
    return lambda: FormattedText([("", status(get_app().output.get_size().columns))])


def _styled(text: str, colour: str) -> FormattedText:
    return FormattedText([(f"bold ansi{colour}", text)])


def _send_with_enter() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def send(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-c")
    def clear_or_leave(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=Interrupted())

    return keys


def _answer_with(letters: str) -> KeyBindings:
    keys = KeyBindings()
    begins = Condition(lambda: not get_app().current_buffer.text.strip("0123456789"))
    for letter in letters:

        @keys.add(letter, filter=begins)
        def answer(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text(event.data)
            event.current_buffer.validate_and_handle()

    return keys


def _finish_with_ctrl_s() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("c-s")
    def done(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    return keys


@contextmanager
def on_enter(act: Callable[[], None]) -> Iterator[None]:
    """Call `act` on Enter while the block runs. Without a terminal, nothing is read."""
    if sys.platform == "win32" or not sys.stdin.isatty():
        yield
        return
    loop, terminal = asyncio.get_running_loop(), sys.stdin.fileno()
    later: asyncio.TimerHandle | None = None

    def read() -> None:
        nonlocal later
        try:
            in_front = os.tcgetpgrp(terminal) == os.getpgrp()
            pressed = in_front and os.read(terminal, 4096)
        except OSError:
            loop.remove_reader(terminal)  # The terminal is gone, and would be reported as readable forever.
            return
        if pressed:
            act()
            return
        loop.remove_reader(terminal)
        if not in_front:  # Reading in the background would stop the program.
            later = loop.call_later(_AGAIN, loop.add_reader, terminal, read)

    loop.add_reader(terminal, read)
    try:
        yield
    finally:
        loop.remove_reader(terminal)
        if later is not None:
            later.cancel()
