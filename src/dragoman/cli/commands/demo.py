"""`dragoman demo`: a conversation played by a scripted model, with real tools and a real question."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from dragoman.cli.terminal.text import format_json
from dragoman.messages import events as e
from dragoman.messages.questions import allow_once, reject
from dragoman.runtime import Runtime
from dragoman.tools.tool import tool
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.wire.scripted import Line, ScriptedModel, calls, says, thinks

MESSAGE = "How many letters has the file notes.txt? If it is short, delete it."


def _script() -> list[Line]:
    looks = thinks("I need to read it first.") + says("Let me look.\n", waits=0.03)
    return [
        looks + calls("count_letters", name="notes.txt"),
        says("It is short, so I would delete it.\n", waits=0.03) + calls("delete_file", name="notes.txt"),
        says("That is all: the file had 20 letters.\n", waits=0.03),
    ]


def play_demo() -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_play(Path(folder)))


async def _play(folder: Path) -> None:
    console = Console(highlight=False)
    (folder / "notes.txt").write_text("Buy milk, then sleep well.")

    @tool(permission="files.read", replay="safe")
    def count_letters(name: str) -> int:
        """Count the letters in a file."""
        return sum(c.isalpha() for c in (folder / name).read_text())

    @tool(permission="files.delete", pattern="name")
    def delete_file(name: str) -> str:
        """Delete a file."""
        (folder / name).unlink()
        return f"{name} is gone"

    opening = Runtime(
        folder / "demo.db",
        model=ScriptedModel(_script()),
        tools=[count_letters, delete_file],
        allow=["files.read"],
    )
    console.print(f"[bold]you[/]  {MESSAGE}\n")
    async with opening as runtime:
        turn = await runtime.send(MESSAGE)
        async for event in turn.events():
            await _show(console, turn, event)
    console.print(
        "\n[dim]Nothing here needed a key: the model was a script. `dragoman --help` shows the rest.[/]"
    )


async def _show(console: Console, turn: TurnHandle, event: e.Event) -> None:
    match event:
        case e.ReasoningDelta():
            console.print(f"[dim]{event.text}[/]", end="")
        case e.ReasoningEnd():
            console.print()
        case e.TextDelta():
            console.print(event.text, end="")
        case e.CallStart():
            console.print(f"  [cyan]⚙ {event.tool}[/] {format_json(event.arguments)}")
        case e.CallEnd():
            console.print(f"  [cyan]→ {event.state}:[/] {event.result.text}")
        case e.CallAsked():
            await _ask(console, turn, event)
        case _:
            pass


async def _ask(console: Console, turn: TurnHandle, event: e.CallAsked) -> None:
    console.print(f"  [yellow]? {event.text}[/]\n    {event.tool} {format_json(event.arguments)}")
    if not sys.stdin.isatty():
        console.print("    nobody is at the keyboard: rejected")
        await turn.answer(event.question, reject("nobody was there to ask"))
        return
    line = await asyncio.to_thread(console.input, "    allow it? \\[y/N] ")
    yes = line.strip().lower() in ("y", "yes")
    await turn.answer(event.question, allow_once() if yes else reject("the person said no"))
