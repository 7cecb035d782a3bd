"""Run `dragoman demo`: a conversation with a scripted model, but with real tools and a real approval
request."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from rich.console import Console

from dragoman.cli.commands.run import follow
from dragoman.cli.flags.chat import DemoFlags
from dragoman.cli.terminal.output import TextOutput
from dragoman.runtime import Runtime
from dragoman.tools.tool import tool
from dragoman.wire.scripted import Line, ScriptedModel, calls, says, thinks

MESSAGE = "How many letters has the file notes.txt? If it is short, delete it."


def _script() -> list[Line]:
    looks = thinks("I need to read it first.") + says("Let me look.\n", waits=0.03)
    return [
        looks + calls("count_letters", name="notes.txt"),
        says("It is short, so I would delete it.\n", waits=0.03) + calls("delete_file", name="notes.txt"),
        says("That is all: the file had 20 letters.\n", waits=0.03),
    ]


async def play_demo(_: DemoFlags) -> None:
    with tempfile.TemporaryDirectory() as folder:
        await _play(Path(folder))


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
        return f"Deleted {name}."

    opening = Runtime(
        folder / "demo.db",
        model=ScriptedModel(_script()),
        tools=[count_letters, delete_file],
        allow=["files.read"],
    )
    console.print(f"[bold]you[/]  {MESSAGE}\n")
    async with opening as runtime:
        turn = await runtime.send(MESSAGE)
        output = TextOutput(sys.stdout)
        end, _ = await follow(runtime, turn, output, typed=False)
        output.end(end)
    console.print(
        "\n[dim]Nothing here needed a key: the model was a script. `dragoman --help` shows the rest.[/]"
    )
