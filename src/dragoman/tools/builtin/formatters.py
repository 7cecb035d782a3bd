"""Run the project's formatters and linters on files that a tool wrote, and report the result to the model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from pydantic import BaseModel

from dragoman.background import in_thread
from dragoman.errors import ConfigError, ToolFailed
from dragoman.messages.questions import Rule
from dragoman.tools.builtin.file_search import fits
from dragoman.tools.builtin.read_write import MOST, WriteOutput, output_of_write, version_of
from dragoman.tools.builtin.shell import ShellOutput, run_program, told
from dragoman.tools.cage.policy import READ, Cage
from dragoman.tools.permissions import literal
from dragoman.tools.tool import Returned, Tool, ToolContext
from dragoman.tools.toolbox import Group
from dragoman.tools.workspace import inside, read_if_there, replace_inside, steps_of
from dragoman.workspace.diff import diff_texts, joined

T = TypeVar("T")
FILE = "{file}"  # the placeholder for the file in a command
SECONDS = 10.0  # for one program and one file
_TOGETHER = 60.0  # seconds for all files of one call
_SHOWN = 2_000  # characters of a program's output, from its start and from its end
_DIFF = 4_000  # characters of the diff of its changes
_WRITERS = ("write_file", "edit_file", "apply_patch")
_writing: WeakValueDictionary[tuple[int, Path | None, str], asyncio.Lock] = WeakValueDictionary()


@dataclass(slots=True, frozen=True)
class Formatter:
    """A program that runs on each written file whose path matches. It can change the file or report on it.

    `files`: patterns. A pattern without a slash matches the file's name in any folder.
    """

    name: str
    files: tuple[str, ...]
    command: tuple[str, ...]
    timeout: float = SECONDS

    def concerns(self, path: str) -> bool:
        name = path.rpartition("/")[2]
        return any(fits(path, one) if "/" in one else fnmatchcase(name, one) for one in self.files)

    def words(self, path: str) -> list[str]:
        """Return the command line.

        No shell reads it, so any file name is only a name, and never an option.
        """
        shown = f"./{path}" if path.startswith("-") else path
        named = any(FILE in word for word in self.command)
        return [word.replace(FILE, shown) for word in self.command] + ([] if named else [shown])


def with_formatters(
    group: Group, formatters: Sequence[Formatter], check: Callable[[], None] = lambda: None
) -> Group:
    """Return the same tools, with formatting added to those that write.

    `check` raises if a program is not the trusted one. Then that program does not run.
    """
    if not formatters:
        return group
    tools = [_formatting(tool, formatters, check) if tool.name in _WRITERS else tool for tool in group.tools]
    return replace(group, tools=tuple(tools))


def _formatting(tool: Tool, formatters: Sequence[Formatter], check: Callable[[], None]) -> Tool:
    write = tool.run
    assert write is not None
    assert tool.threaded

    async def run(arguments: BaseModel, context: ToolContext) -> Returned:
        paths = tool.patterns(arguments.model_dump(mode="json", by_alias=True))
        async with _alone(context.workspace, paths):
            output = await _to_its_end(in_thread(partial(write, arguments, context)))
            assert isinstance(output, WriteOutput)
            try:
                await in_thread(check)
            except ConfigError as error:
                return replace(output, value=f"{output.value}\nThe formatters did not run: {error}.")
            return await _Formatting(formatters, context).finish(output)

    # A formatter can write other files than the named ones, such as caches: declare that it writes anything.
    timeout = tool.timeout + _TOGETHER + 10
    return replace(tool, run=run, threaded=False, cancellable=True, writes="anything", timeout=timeout)


async def _to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Finish the work even if the caller is cancelled, so that no write stops half-way."""
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


@asynccontextmanager
async def _alone(workspace: Path | None, paths: Sequence[str]) -> AsyncIterator[None]:
    """Lock these files against other writes by our tools in this process while they are written and
    formatted.

    A formatter would otherwise overwrite a newer version with the one it read.
    """
    loop = id(asyncio.get_running_loop())
    async with AsyncExitStack() as stack:
        for path in sorted(set(paths)):  # always in the same order, to prevent deadlocks
            lock = _writing.setdefault((loop, workspace, path), asyncio.Lock())
            await stack.enter_async_context(lock)
        yield


@dataclass(slots=True)
class _Formatting:
    formatters: Sequence[Formatter]
    context: ToolContext
    notes: list[str] = field(default_factory=list)

    async def finish(self, output: WriteOutput) -> WriteOutput:
        end = time.monotonic() + _TOGETHER
        text, written = str(output.value), list[tuple[str, bytes | None, bytes | None]]()
        for path, old, new in output.written:
            now = new
            for formatter in self.formatters:
                if now is not None and formatter.concerns("/".join(steps_of(path))):
                    now = await self._format(formatter, path, now, end - time.monotonic())
            if new is not None and now is not None:
                text = text.replace(f"version {version_of(new)}", f"version {version_of(now)}")
            written.append((path, old, now))
        return output_of_write("\n".join([text, *self.notes]), written)

    async def _format(self, formatter: Formatter, path: str, data: bytes, left: float) -> bytes:
        """Return what the file is now."""
        name, output = formatter.name, ShellOutput(_SHOWN)
        folder = inside(self.context.workspace, ".")
        if left <= 0:
            self.notes.append(f"{name} was not run on {path}: the others took too long")
            return data
        try:
            status, refused = await run_program(
                formatter.words(path),
                folder,
                output,
                lambda text: None,
                cage=_showing(self.context.cage, formatter),
                env=self.context.env,
                timeout=min(formatter.timeout, left),
            )
        except BaseException:
            await _to_its_end(in_thread(partial(self._put_back, path, data)))
            raise
        # Refused cache writes are not worth a note.
        output.add(told([one for one in refused if one.kind != "lost"]))
        if status is None:
            said = f": it had printed:\n{output.text()}" if output.length else ""
            self.notes.append(f"{name} took too long on {path} and was ended; the file is as written{said}")
            return await in_thread(partial(self._put_back, path, data))
        if status < 0 or status in (126, 127):  # killed, or not found
            why = f"ended by signal {-status}" if status < 0 else "it could not be started"
            self.notes.append(f"{name} failed on {path} ({why}); the file is as written\n{output.text()}")
            return await in_thread(partial(self._put_back, path, data))
        return await in_thread(partial(self._compare, name, path, data, status, output))

    def _compare(self, name: str, path: str, data: bytes, status: int, output: ShellOutput) -> bytes:
        try:
            now = read_if_there(self.context.workspace, path, MOST)
        except ToolFailed as error:
            self.notes.append(f"{path} cannot be read after {name}: {error}")
            return data
        if now is None:
            self.notes.append(f"{name} deleted {path}: it was put back as written")
            return self._put_back(path, data)
        if now != data:
            changed = joined([diff_texts(path, data, now)], _DIFF)
            self.notes.append(
                f"{path} was formatted by {name}, version {version_of(now)}. It changed:\n{changed}"
            )
        if (status or now == data) and output.text().strip():
            ending = f", exit status {status}" if status else ""
            self.notes.append(f"{name} on {path}{ending}:\n{output.text().strip()}")
        elif status:
            self.notes.append(f"{name} on {path}: exit status {status}")
        return now

    def _put_back(self, path: str, data: bytes) -> bytes:
        """Restore the file: a program that was ended while writing can leave half a file."""
        try:
            return replace_inside(self.context.workspace, path, MOST, lambda _: data, create=True)
        except ToolFailed as error:
            self.notes.append(f"{path} could not be put back as written: {error}")
            return data


def _showing(cage: Cage | None, formatter: Formatter) -> Cage | None:
    """Return the cage extended by the paths outside the workspace that the formatter's settings name."""
    if cage is None:
        return None
    named = [path for word in formatter.command if (path := Path(word)).is_absolute() and path.exists()]
    home = Path.home()
    shown = [path if path.parent in (home, *home.parents) else path.parent for path in named]
    return replace(cage, rules=(*(Rule(READ, literal(str(one)), "allow") for one in shown), *cage.rules))
