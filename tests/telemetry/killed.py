"""Run one turn whose tool never returns, in a program to be killed. Pass a folder."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from dragoman import tool
from dragoman.telemetry.start import telemetry_from_environment
from dragoman.wire.scripted import calls
from tests.runtimes import add, runtime_with


async def main(folder: Path) -> None:
    @tool(replay="safe")
    async def stay() -> str:
        """Stay for ever."""
        (folder / "stays").touch()
        await asyncio.Event().wait()
        return ""

    script = [calls("add", a=1, b=2), calls("stay")]
    tools, telemetry = [add, stay], telemetry_from_environment()
    async with runtime_with(folder, script, tools=tools, telemetry=telemetry) as runtime:
        turn = await runtime.send("go")
        (folder / "turn").write_text(turn.id)
        await turn.result()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
