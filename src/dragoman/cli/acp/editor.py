"""Let the file tools and the shell work through the editor: with its unsaved text, and in its terminals.

The usual rules decide beforehand whether a call may run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from dragoman.cli.acp.jsonrpc import RpcError
from dragoman.errors import ToolFailed
from dragoman.messages.message import Arguments
from dragoman.tools.builtin import BUILTIN
from dragoman.tools.builtin.shell import ShellOutput
from dragoman.tools.schema import attribute
from dragoman.tools.tool import Returned, Tool, ToolContext, ToolOutput
from dragoman.tools.toolbox import Group
from dragoman.tools.workspace import OPEN_FILES, PREVIEWING, inside
from dragoman.workspace.diff import FileDiff
from dragoman.workspace.hunks import HunkChoices

T = TypeVar("T")
Ask = Callable[[str, dict[str, Any]], Coroutine[Any, Any, Any]]
"""Sends a request to the editor, and waits for its answer."""
SessionOf = Callable[[str], Coroutine[Any, Any, str | None]]
"""Returns the session of a conversation, or None if the editor does not have it open any longer."""

_PATIENCE = 20.0  # seconds for an editor to read or write a file
_OUTPUT = 1_000_000  # bytes of a terminal's output that the editor keeps
_NOT_OPEN = object()
_ON_FILES = ("read_file", "write_file", "edit_file", "apply_patch")


class Editor:
    """The capabilities of the editor. `session_of` also finds sessions for conversations of tasks."""

    def __init__(
        self, ask: Ask, *, reads: bool, writes: bool, terminals: bool, session_of: SessionOf
    ) -> None:
        self.ask = ask
        self.reads = reads
        self.writes = writes
        self.terminals = terminals
        self.session_of = session_of
        self.loop = asyncio.get_running_loop()

    def groups(self, wanted: Sequence[str]) -> list[Group]:
        """Return the wanted built-in groups that work through the editor."""
        found = []
        if "files" in wanted and (self.reads or self.writes):
            group = BUILTIN["files"]()
            tools = tuple(self._on_files(tool) if tool.name in _ON_FILES else tool for tool in group.tools)
            found.append(replace(group, tools=tools))
        if "shell" in wanted and self.terminals:
            group = BUILTIN["shell"]()
            found.append(replace(group, tools=tuple(self._in_terminal(tool) for tool in group.tools)))
        return found

    # ── files ─────────────────────────────────────────────────────────────────────────────────────

    def _on_files(self, tool: Tool) -> Tool:
        """Return the tool with access to files as they are in the editor. It still runs in a thread."""
        run, preview, keep = tool.run, tool.preview, tool.keep_hunks
        assert run is not None
        assert tool.threaded

        def run_on_open_files(arguments: BaseModel, context: ToolContext) -> Returned:
            return _with_files(EditorFiles(self, context.conversation), lambda: run(arguments, context))

        def preview_open_files(arguments: Arguments, workspace: Path | None) -> Sequence[FileDiff]:
            assert preview is not None
            return _with_files(EditorFiles(self, PREVIEWING.get()), lambda: preview(arguments, workspace))

        def keep_in_open_files(
            arguments: Arguments, workspace: Path | None, chosen: HunkChoices
        ) -> Arguments:
            assert keep is not None
            files = EditorFiles(self, PREVIEWING.get())
            return _with_files(files, lambda: keep(arguments, workspace, chosen))

        return replace(
            tool,
            run=run_on_open_files,
            preview=preview_open_files if preview is not None else None,
            keep_hunks=keep_in_open_files if keep is not None else None,
        )

    # ── terminals ─────────────────────────────────────────────────────────────────────────────────

    def _in_terminal(self, tool: Tool) -> Tool:
        own = tool.run
        assert own is not None

        async def run(arguments: BaseModel, context: ToolContext) -> Returned:
            session = await self.session_of(context.conversation)
            if session is None:
                return await own(arguments, context)
            command = str(getattr(arguments, attribute("command")))
            seconds = float(getattr(arguments, attribute("timeout")))
            return await self._run_command(session, command, seconds, context)

        return replace(tool, run=run)

    async def _run_command(
        self, session: str, command: str, seconds: float, context: ToolContext
    ) -> ToolOutput:
        if "\0" in command or not command.strip():
            raise ToolFailed("The line has no command, or a NUL character.")
        where = {"sessionId": session}
        try:
            made = await self.ask(
                "terminal/create",
                {
                    **where,
                    "command": "/bin/sh",
                    "args": ["-c", command],
                    "cwd": str(inside(context.workspace, ".")),
                    "outputByteLimit": _OUTPUT,
                },
            )
        except RpcError as error:
            raise ToolFailed(f"The editor did not open a terminal: {error}") from error
        terminal = {**where, "terminalId": str(made["terminalId"])}
        context.progress({"terminal": terminal["terminalId"]})
        try:
            return await self._await_exit(terminal, command, seconds)
        except RpcError as error:
            raise ToolFailed(f"The editor's terminal failed: {error}") from error
        finally:
            await asyncio.shield(self._release(terminal))

    async def _await_exit(self, terminal: dict[str, str], command: str, seconds: float) -> ToolOutput:
        late = False
        try:
            async with asyncio.timeout(seconds):
                await self.ask("terminal/wait_for_exit", terminal)
        except TimeoutError:
            late = True
            await self.ask("terminal/kill", terminal)
        shown = await self.ask("terminal/output", terminal)
        output = ShellOutput()
        output.add(str(shown.get("output") or ""))
        text = output.text() + ("\n[the editor did not keep all of it]" if shown.get("truncated") else "")
        if late:
            raise ToolFailed(
                f"The command took longer than {seconds:g} s, so Dragoman stopped "
                f"it. Its output until then:\n{text}"
            )
        status = shown.get("exitStatus") or {}
        code, signal = status.get("exitCode"), status.get("signal")
        ending = f"ended by signal {signal}" if code is None else f"exit status {code}"
        metadata = {"exit_status": code, "terminal": terminal["terminalId"]}
        return ToolOutput(f"{ending}\n{text}", title=command[:80], metadata=metadata)

    async def _release(self, terminal: dict[str, str]) -> None:
        """Release a terminal. This ends a program that still runs there. The user still sees its output."""
        with suppress(RpcError, OSError):
            await self.ask("terminal/release", terminal)


class EditorFiles:
    """Sends requests to the editor from the thread of a tool."""

    def __init__(self, editor: Editor, conversation: str) -> None:
        self._editor = editor
        self._conversation = conversation

    def read(self, path: Path) -> str | None:
        if not self._editor.reads:
            return None
        try:
            found = self._ask("fs/read_text_file", path)
        except (RpcError, TimeoutError):
            return None  # The editor does not know the file, so the tool reads it from disk.
        content = found.get("content") if isinstance(found, dict) else None
        return content if isinstance(content, str) else None

    def write(self, path: Path, text: str) -> bool:
        if not self._editor.writes:
            return False
        try:
            return self._ask("fs/write_text_file", path, content=text) is not _NOT_OPEN
        except (RpcError, TimeoutError) as error:
            why = str(error) or "it took too long"
            raise ToolFailed(f"The editor did not write {path.name!r}: {why}") from error

    def _ask(self, method: str, path: Path, **more: str) -> Any:
        """Return the editor's answer, or `_NOT_OPEN` if it has no session for this conversation."""

        async def ask() -> Any:
            session = await self._editor.session_of(self._conversation)
            if session is None:
                return _NOT_OPEN
            return await self._editor.ask(method, {"sessionId": session, "path": str(path), **more})

        asking = asyncio.run_coroutine_threadsafe(ask(), self._editor.loop)
        try:
            return asking.result(_PATIENCE)
        except TimeoutError:
            asking.cancel()
            raise


def _with_files(files: EditorFiles, work: Callable[[], T]) -> T:
    token = OPEN_FILES.set(files)
    try:
        return work()
    finally:
        OPEN_FILES.reset(token)
