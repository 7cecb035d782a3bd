"""Search the workspace: files by name, and lines by pattern."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from fnmatch import fnmatchcase
from itertools import islice
from typing import Annotated

from pydantic import Field

from dragoman.errors import ToolFailed
from dragoman.tools.builtin import matcher
from dragoman.tools.tool import ToolContext, tool
from dragoman.tools.workspace import on_one_line, path_patterns, walk, wider_paths
from dragoman.workspace.folder import OpenFolder

# `glob`: the files of the workspace whose paths match a pattern.


FILES = 50_000  # maximum number of files examined
_MOST_FILES = 500
_MOST_NAMED = 5  # maximum number of names listed of those that ignore files exclude


@tool(
    permission="files.read",
    writes="nothing",
    pattern=path_patterns,
    wider=wider_paths,
    replay="safe",
    timeout=30,
)
def glob(
    pattern: Annotated[str, Field(description="`*.py`: in this folder; `**/*.py`: also in all below")],
    context: ToolContext,
    path: Annotated[str, Field(description="the folder to look in")] = ".",
) -> str:
    """Find files by name. `*` is any part of a name, `?` one character, `**` any folders. Paths in the result
    start at the workspace. Left out: what .gitignore and .ignore files name (unless path is in it), version
    control, node_modules, __pycache__, .venv, links."""
    if ".." in steps(pattern):
        raise ToolFailed("A pattern cannot contain '..'. Pass the folder as path.")
    found: list[str] = []
    left_out: list[str] = []
    looked = 0
    with closing(walk(context.workspace, path, left_out)) as files:
        for name, whole, _, _ in islice(files, FILES):
            looked += 1
            if context.cancelled():
                break
            if fits(name, pattern) and context.permits(whole):
                found.append(on_one_line(whole))
    notes = _ignored(left_out)
    notes += [f"[{len(found) - _MOST_FILES} more are not shown]"] if len(found) > _MOST_FILES else []
    if looked == FILES:
        notes.append(f"[only the first {FILES} files were looked at: give a folder]")
    return (
        "\n".join([*found[:_MOST_FILES], *notes])
        if found
        else "\n".join([f"no file in {path} matches {pattern}", *notes])
    )


def _ignored(left_out: Sequence[str]) -> list[str]:
    """Return a note about ignored files, so that the model does not conclude that they are missing."""
    named = ", ".join(map(on_one_line, left_out[:_MOST_NAMED]))
    more = f" and {len(left_out) - _MOST_NAMED} more" if len(left_out) > _MOST_NAMED else ""
    return [f"[left out by ignore files: {named}{more}]"] if left_out else []


def fits(path: str, pattern: str) -> bool:
    """Match all alternatives in parallel, step by step, so that no pattern takes long."""
    wanted = steps(pattern)
    at = _skipping({0}, wanted)
    for step in path.split("/"):
        at = _skipping(
            {
                here if wanted[here] == "**" else here + 1
                for here in at
                if here < len(wanted) and (wanted[here] == "**" or fnmatchcase(step, wanted[here]))
            },
            wanted,
        )
    return len(wanted) in at


def steps(pattern: str) -> list[str]:
    return [step for step in pattern.split("/") if step not in ("", ".")]


def _skipping(at: set[int], wanted: Sequence[str]) -> set[int]:
    """Add the positions after each `**`, which can also match no folder."""
    for here in sorted(at):
        end = here
        while end < len(wanted) and wanted[end] == "**":
            end += 1
            at.add(end)
    return at


# `grep`: the lines of the workspace's text files that match a regular expression.


_BIGGEST = 1_000_000  # bytes of a file that is searched
_MOST_LINES = 200  # lines in total
_TIME = 20.0  # seconds for the search


@tool(
    permission="files.read",
    writes="nothing",
    pattern=path_patterns,
    wider=wider_paths,
    replay="safe",
    timeout=_TIME + 10,
)
def grep(
    pattern: Annotated[str, Field(min_length=1, description="a regular expression, as Python knows them")],
    context: ToolContext,
    path: Annotated[str, Field(description="the folder or file to search")] = ".",
    files: Annotated[str, Field(description="which files, as for glob")] = "**",
    ignore_case: bool = False,
) -> str:
    """Search text files line by line. The result has PATH:LINE: TEXT for each line that matches, with paths
    that start at the workspace. Left out: binary files, files over 1 MB, what .gitignore and .ignore files
    name (unless path is in it), version control, node_modules, __pycache__, .venv, links."""
    _check(pattern)
    hits: list[str] = []
    left_out: list[str] = []
    searched = big = 0
    with _matcher(pattern, ignore_case) as ask, closing(walk(context.workspace, path, left_out)) as found:
        for name, whole, folder, entry in islice(found, FILES):
            if context.cancelled() or len(hits) >= _MOST_LINES:
                break
            if not fits(name, files) or not context.permits(whole):
                continue
            if entry.size > _BIGGEST:
                big += 1
                continue
            if (data := _text(folder, entry.name)) is not None:
                searched += 1
                hits += [f"{on_one_line(whole)}:{number}: {line}" for number, line in ask(data)]
    notes = [f"[{big} files over {_BIGGEST // 1000} kB were not searched]"] if big else []
    notes += _ignored(left_out)
    if len(hits) >= _MOST_LINES:
        notes.append(f"[stopped after {_MOST_LINES} lines: make the pattern or the files narrower]")
    return "\n".join([*(hits[:_MOST_LINES] or [f"no line matches in {searched} files"]), *notes])


def _check(pattern: str) -> None:
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ToolFailed(f"{pattern!r} is not a regular expression: {error}") from error


def _text(folder: OpenFolder, name: str) -> bytes | None:
    """Return the file's bytes, or None if it is not text or can no longer be read."""
    try:
        data = folder.read(name, _BIGGEST)
        data.decode()
    except (OSError, ToolFailed, UnicodeDecodeError):
        return None
    return None if b"\0" in data else data


class _Matcher:
    """A process that matches until its time is up."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._to, self._from = process.stdin, process.stdout

    def begin(self, pattern: str, ignore_case: bool) -> None:
        asked = {"pattern": pattern, "ignore_case": ignore_case, "most": _MOST_LINES}
        self._send(json.dumps(asked).encode() + b"\n")

    def __call__(self, text: bytes) -> list[tuple[int, str]]:
        self._send(b"%d\n" % len(text) + text)
        answer = self._from.readline()
        if not answer:
            raise ToolFailed(_TOO_LONG)
        return [(number, line) for number, line in json.loads(answer)]

    def close(self) -> None:
        self._to.close()

    def _send(self, data: bytes) -> None:
        try:
            self._to.write(data)
            self._to.flush()
        except BrokenPipeError:
            raise ToolFailed(_TOO_LONG) from None


_TOO_LONG = f"the search took longer than {_TIME:g} s: make the pattern simpler, or search fewer files"


@contextmanager
def _matcher(pattern: str, ignore_case: bool, time: float = _TIME) -> Iterator[_Matcher]:
    command = [sys.executable, "-I", "-S", matcher.__file__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        timer = threading.Timer(time, process.kill)
        timer.daemon = True
        timer.start()
        ask = _Matcher(process)
        try:
            ask.begin(pattern, ignore_case)
            yield ask
        finally:
            timer.cancel()
            process.kill()
            with suppress(OSError):  # Closing can fail on input that the killed process did not read.
                ask.close()
