"""`shell`: a line for the shell, run in the workspace, and everything it started ended with it."""

from __future__ import annotations

import asyncio
from typing import Annotated

from pydantic import Field

from dragoman.errors import ToolFailed
from dragoman.tools.builtin.commands import line_patterns, wider_lines
from dragoman.tools.builtin.process import ShellOutput, run_program
from dragoman.tools.tool import ToolContext, ToolOutput, tool
from dragoman.tools.workspace import inside

_LONGEST = 600.0  # seconds


@tool(
    permission="shell",
    pattern=line_patterns,
    wider=wider_lines,
    replay="ask",
    timeout=_LONGEST + 30,
    sequential=True,
    cancellable=True,
)
async def shell(
    command: Annotated[str, Field(min_length=1, max_length=20_000, description="a line for /bin/sh")],
    context: ToolContext,
    timeout: Annotated[float, Field(gt=0, le=_LONGEST, description="seconds")] = 120.0,
) -> ToolOutput:
    """Run a shell command in the workspace. The result is its exit status and what it printed. Nothing can
    be typed into it, and whatever it leaves running is ended when it ends."""
    if "\0" in command or not command.strip():
        raise ToolFailed("there is no command in this, or a NUL character")
    folder = inside(context.workspace, ".")
    output = ShellOutput()
    try:
        async with asyncio.timeout(timeout):
            status = await run_program(["/bin/sh", "-c", command], folder, output, context.progress)
    except TimeoutError:
        text = f"it took longer than {timeout:g} s and was ended; it had printed:\n{output.text()}"
        raise ToolFailed(text) from None
    ending = f"exit status {status}" if status >= 0 else f"ended by signal {-status}"
    return ToolOutput(f"{ending}\n{output.text()}", title=command[:80], metadata={"exit_status": status})
