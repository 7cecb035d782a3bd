"""Run `!command` in a chat as the user, and send its output with the next message."""

from __future__ import annotations

import asyncio
import codecs
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from contextlib import suppress
from pathlib import Path

from rich.text import Text

from dragoman.cli.chat.session import Session
from dragoman.cli.terminal.follow import on_interrupt
from dragoman.cli.terminal.text import plain
from dragoman.errors import BadRequest

_MOST = 30_000  # maximum characters that the model sees, from the end of the output
_PIECE = 1 << 16


async def run_line(session: Session, command: str) -> None:
    """Run a command in the tools' folder, but without a cage, because it is the user's command. Ctrl-C ends
    it."""
    if not command:
        raise BadRequest("Type !COMMAND to run a command in this folder.")
    workspace = await session.workspace()
    process = await asyncio.create_subprocess_shell(
        command,
        cwd=workspace.folder if workspace is not None else Path.cwd(),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None

    async def stop() -> None:
        with suppress(ProcessLookupError):
            if sys.platform == "win32":
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGTERM)

    decoder, output = codecs.getincrementaldecoder("utf-8")("replace"), ""
    with on_interrupt(stop):
        while piece := await process.stdout.read(_PIECE):
            text = plain(decoder.decode(piece))
            session.console.print(Text(text), end="", soft_wrap=True)
            output = (output + text)[-_MOST:]
        status = await process.wait()
    if output and not output.endswith("\n"):
        session.console.print()
    ended = f"\nexit status {status}" if status else ""
    session.outputs[f"The user ran: {command}"] = f"{output}{ended}".strip() or "(no output)"
    session.notify(f"{f'exit status {status}; ' if status else ''}the model sees this with your next message")
