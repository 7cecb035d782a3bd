"""Check the live view of a turn: it overwrites only its own lines, so no part of an answer is lost."""

from __future__ import annotations

import asyncio
import io
import re
import threading

from rich.console import Console

from dragoman.cli.terminal.screen import DownloadProgress, Screen
from dragoman.messages import events as e
from tests.patience import eventually

WIDTH, HEIGHT = 60, 12
_PIECES = re.compile(r"\x1b\[\??(\d*)(?:;\d+)*([A-Za-z])|(\r)|(\n)|([^\x1b\r\n]+)")


class Terminal(io.StringIO):
    """Remembers who wrote to it, and can tell what stands on it."""

    def __init__(self) -> None:
        super().__init__()
        self.writers: list[int] = []

    def write(self, text: str) -> int:
        self.writers.append(threading.get_ident())
        return super().write(text)

    def lines(self) -> list[str]:
        lines, row = [""], 0
        for number, command, back, down, text in _PIECES.findall(self.getvalue()):
            if command == "A":
                row -= int(number or 1)
            elif command == "K" or back:
                lines[row] = "" if command else lines[row]
            elif down:
                row += 1
                lines += [""] * (row + 1 - len(lines))
            elif text:
                lines[row] += text
        return [line.rstrip() for line in lines]

    async def shows(self, text: str) -> None:
        await eventually(lambda: text in "\n".join(self.lines()))


def screen_on(terminal: Terminal) -> Screen:
    console = Console(file=terminal, force_terminal=True, width=WIDTH, height=HEIGHT, color_system=None)
    return Screen(console, server_of=lambda _: None, download=DownloadProgress())


async def test_one_thread_draws() -> None:
    """Two would each count the lines that the other has drawn over, and rows of an answer would go."""
    terminal = Terminal()
    with screen_on(terminal) as screen:
        for number in range(3):
            screen.show(e.TextDelta(text=f"word{number} "))
            await terminal.shows(f"word{number}")
    assert set(terminal.writers) == {threading.get_ident()}


async def test_what_is_finished_stands_there_once() -> None:
    """The finished line appears immediately, and not with the next redraw."""
    terminal = Terminal()
    with screen_on(terminal) as screen:
        screen.show(e.TextDelta(text="The first paragraph.\n"))
        await terminal.shows("The first paragraph.")
        screen.show(e.TextDelta(text="\nThe second one.\n"))
        assert [line for line in terminal.lines() if line] == ["The first paragraph.", "The second one."]


async def test_an_answer_taller_than_the_screen_stands_there_whole() -> None:
    terminal = Terminal()
    with screen_on(terminal) as screen:
        screen.show(e.TextDelta(text="| a | b |\n|---|---|\n| 1 | 2 |\n\n"))
        for number in range(1, 41):
            screen.show(e.TextDelta(text=f"{number}. Item\n"))
            await asyncio.sleep(0)
        screen.show(e.TextEnd())
    shown = [line.strip() for line in terminal.lines() if line.strip()]
    assert (shown[0], shown[2]) == ("a  b", "1  2")
    assert shown[3:] == [f"{number} Item" for number in range(1, 41)]
