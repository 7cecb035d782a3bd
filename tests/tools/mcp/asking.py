"""Run a turn that calls a tool of a server that asks the user, in a process to be killed meanwhile.

python -m tests.tools.mcp.asking FOLDER TOOL
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from dragoman import Runtime, ScriptedModel
from dragoman.tools.mcp.servers import McpServer
from dragoman.tools.mcp.source import McpSource
from dragoman.wire.scripted import calls, says
from tests.fork_server import python
from tests.patience import PATIENCE
from tests.runtimes import with_tables

SERVER = Path(__file__).parent / "servers" / "asking.py"


def runtime(folder: Path, *script: object, adopts: bool = True) -> Runtime:
    """Return a runtime with a server that asks the user, and that records each start of its tools."""
    command, *words = python(str(SERVER), str(folder / "begun.txt"))
    server = McpServer(command=command, args=tuple(words))
    source = McpSource("it", server, patience=PATIENCE)
    model = ScriptedModel(list(script))  # type: ignore[arg-type]  # replies, as they are made there
    return Runtime(with_tables(folder / "chat.db"), model=model, tools=[source], allow=["*"], adopts=adopts)


async def main(folder: Path, tool: str) -> None:
    async with runtime(folder, calls(f"it_{tool}"), says("done")) as here:
        turn = await here.send("Ask me.")
        await turn.result()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
