"""Run a shell command in the workspace with `shell`, and end everything it started when it ends."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import signal
from asyncio.subprocess import Process
from codecs import getincrementaldecoder
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field, JsonValue

from dragoman.errors import ToolFailed
from dragoman.messages.message import Arguments
from dragoman.messages.questions import Rule
from dragoman.tools.cage.enter import Entered, enter, environment, refuse_all
from dragoman.tools.cage.policy import Cage, Refusal, beyond_of
from dragoman.tools.cage.supervise import Gate
from dragoman.tools.permissions import literal
from dragoman.tools.tool import ToolContext, ToolOutput, tool
from dragoman.tools.workspace import inside

# Split a shell line into its simple commands, if that is unambiguous.
#
# Permission rules check each command separately. So only syntax that every shell reads in the same way is
# split: plain words, quoted strings without expansion, and `&&`, `||`, `|`, `;` and line ends between
# commands. Everything else (`$`, backticks, `\`, redirects to files, `( )`, `{ }`, `&`, `#`, `!`, and `*`,
# `?`, `[`, which could expand to any word) is not split.


_PLAIN = r"[\w@%+=:,./~-]"
_WORD = re.compile(rf"""(?:{_PLAIN}|'[^'\0]*'|"[^"$`\\!\0]*")+(?=[ \t\n;|&]|$)""")
_HARMLESS = re.compile(r"[12]?>(?:&[12]|[ \t]*/dev/null)(?=[ \t\n;|&]|$)")  # redirects that touch no file
_BETWEEN = re.compile(r"[ \t]*(&&|\|\||[|;\n])[ \t\n]*")
_BLANK = re.compile(r"[ \t]*")
_ASSIGNMENT = re.compile(r"\w+\+?=")  # `X=1 rm y` runs rm
_KEYWORDS = frozenset(
    {"case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select"}
    | {"then", "time", "until", "while"}
)


def line_patterns(arguments: Arguments) -> list[str]:
    """Return the patterns that rules match: each command, or the whole line in `< >`.

    Only a pattern written for such a line, or for everything, matches the latter.
    """
    line = str(arguments.get("command", ""))
    return simple_commands(line) or [f"<{line}>"]


def wider_lines(arguments: Arguments) -> list[str]:
    """Return `git status *` and `git *` for `git status --short`. Empty for more than one command."""
    commands = simple_commands(str(arguments.get("command", ""))) or []
    if len(commands) != 1:
        return []
    words = [literal(word) for word in commands[0].split(" ")]
    return [f"{' '.join(words[:count])} *" for count in (2, 1) if count <= len(words)]


def simple_commands(line: str) -> list[str] | None:
    """Return each command in normalized spelling: `"rm"  'x y'` becomes `rm 'x y'`."""
    line = line.strip(" \t\n")
    commands: list[str] = []
    at = 0
    while at < len(line):
        words, at = _words(line, at)
        if not words or words[0] in _KEYWORDS or words[0].startswith("~") or _ASSIGNMENT.match(words[0]):
            return None  # Rules cannot match a name that the shell expands or that is empty.
        commands.append(" ".join(map(_quoted, words)))
        between = _BETWEEN.match(line, at)
        if between is None:
            return commands if at == len(line) else None
        at = between.end()
        if at == len(line) and between[1] != ";":
            return None
    return commands or None


def _words(line: str, at: int) -> tuple[list[str], int]:
    """Return the words from here on, and the position of the first character that is not part of one."""
    words: list[str] = []
    while True:
        at = _BLANK.match(line, at).end()  # type: ignore[union-attr]  # it matches the empty text, too
        if redirect := _HARMLESS.match(line, at):
            at = redirect.end()
        elif word := _WORD.match(line, at):
            words.append(_unquoted(word[0]))
            at = word.end()
        else:
            return words, at


def _unquoted(word: str) -> str:
    return re.sub(r"""'([^']*)'|"([^"]*)\"""", lambda quoted: quoted[1] or quoted[2] or "", word)


def _quoted(word: str) -> str:
    return word if re.fullmatch(rf"{_PLAIN}+", word) else shlex.quote(word)


# Run a program in the workspace: bounded, without our secrets, and with all its processes ended with ours.


_GRACE = 0.5  # seconds between SIGTERM and SIGKILL
_HALF = 500_000  # characters of output from its start, and as many from its end
_REPORTED = 200_000  # characters of output reported as progress
_PIECE = 1_000_000  # bytes read together, with a pause after each read, so that many small reads become one
_PAUSE = 0.02
# End the command's process group with our process, even after `kill -9`. Otherwise the command would continue
# while the user is asked whether to run it again. A watcher in the group reads a pipe whose write end only we
# hold and never use. When our process ends, the watcher reads end-of-file and kills the group.
# PR_SET_PDEATHSIG would reach only the shell, not its children, and exists only on Linux. The watcher has no
# living parent (two subshells), so a command that waits for all its children does not wait for it. It starts
# before the command does.
_WATCHED = """\
exec 3<&0 </dev/null
( (trap '' HUP INT TERM; read -r _ <&3; kill -KILL 0) >/dev/null 2>&1 & )
exec 3<&-
"""
_START = 'exec "$@"'


class ShellOutput:
    """A command's output: its start and its end, in bounded memory."""

    def __init__(self, half: int = _HALF) -> None:
        self._half = half
        self._head = ""
        self._tail: deque[str] = deque()
        self._tail_length = 0
        self.length = 0

    def add(self, text: str) -> None:
        self.length += len(text)
        room = self._half - len(self._head)
        self._head += text[:room]
        if rest := text[room:]:
            self._tail.append(rest)
            self._tail_length += len(rest)
        while self._tail and self._tail_length - len(self._tail[0]) >= self._half:
            self._tail_length -= len(self._tail.popleft())

    def text(self) -> str:
        tail = "".join(self._tail)[-self._half :]
        if left_out := self.length - len(self._head) - len(tail):
            return f"{self._head}\n[… {left_out} characters were not kept …]\n{tail}"
        return self._head + tail


async def run_program(
    program: Sequence[str],
    folder: Path,
    output: ShellOutput,
    report: Callable[[str], None],
    *,
    cage: Cage | None = None,
    gate: Gate = refuse_all,
    env: Sequence[str] = (),
    timeout: float | None = None,
) -> tuple[int | None, list[Refusal]]:
    """Run a command, whose words no shell reads, in a folder and in its cage.

    Everything it starts ends with it, when the caller stops waiting, or when its time is up. Return its exit
    status (negative for a signal, None for a timeout) and what the cage refused.
    """
    names = (*env, *(cage.settings.env if cage is not None else ()))
    known = environment(os.environ, names)
    limit = asyncio.timeout(timeout)
    if cage is None:
        return await _run(Entered([*program], known), folder, output, report, limit), []
    async with enter(program, known, cage, _paused(limit, gate)) as entered:
        status = await _run(entered, folder, output, report, limit, caged=True)
    return status, entered.refused


def _paused(limit: asyncio.Timeout, gate: Gate) -> Gate:
    """Stop the clock while a user answers: that time does not count for the command."""

    async def ask(pattern: str, question: str, permission: str) -> None:
        loop, when = asyncio.get_running_loop(), limit.when()
        left = when - loop.time() if when is not None else None
        with suppress(RuntimeError):  # The command has ended, and the request is about what it left behind.
            limit.reschedule(None)
        try:
            await gate(pattern, question, permission)
        finally:
            if left is not None:
                with suppress(RuntimeError):
                    limit.reschedule(loop.time() + left)

    return ask


async def _run(
    entered: Entered,
    folder: Path,
    output: ShellOutput,
    report: Callable[[str], None],
    limit: asyncio.Timeout,
    *,
    caged: bool = False,
) -> int | None:
    # Use our own pipe: with asyncio's, `wait` would wait for any other process that holds it.
    ours, its = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            "/bin/sh",
            "-c",
            _WATCHED + entered.first + _START,
            "/bin/sh",
            *entered.words,
            cwd=folder,
            env=entered.env,
            stdin=_lifeline(),
            stdout=its,
            stderr=its,
            pass_fds=entered.files,
            start_new_session=True,  # a separate process group, without a terminal
        )
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(its)
    entered.started()
    reading = asyncio.create_task(_read(ours, output, report))
    try:
        async with limit:
            return await process.wait()
    except TimeoutError:
        return None
    finally:
        try:
            await _end(process, caged=caged)
        finally:
            await _finish(reading)


@cache
def _lifeline() -> int:
    """Return the read end of a pipe that closes when this process ends."""
    held = list(os.pipe())

    def close() -> None:
        """Close both ends in a forked child, which may outlive us and creates a new pipe if it needs one."""
        while held:  # only once, not again in children of the child
            os.close(held.pop())
        _lifeline.cache_clear()

    os.register_at_fork(after_in_child=close)
    return held[0]


async def _end(process: Process, *, caged: bool) -> None:
    """End the whole group: SIGTERM first, so that it can clean up, then SIGKILL.

    In a cage, the command has another group. When the process that holds the cage ends, so does everything
    inside.
    """
    try:
        if process.returncode is None:
            _signal(process.pid if not caged else _group_inside(process.pid), signal.SIGTERM)
            with suppress(TimeoutError):
                async with asyncio.timeout(_GRACE):
                    await process.wait()
    finally:
        _signal(process.pid, signal.SIGKILL)
        await process.wait()


async def _finish(reading: asyncio.Task[None]) -> None:
    """Read the rest of the pipe. Do not wait long for a process that left the group and still holds it."""
    try:
        await asyncio.wait({reading}, timeout=_GRACE)
    finally:
        reading.cancel()
        await asyncio.wait({reading})


def _group_inside(holder: int) -> int:
    """Return the process group of a caged command, or that of its holder if the command has not started."""
    try:
        first = Path(f"/proc/{holder}/task/{holder}/children").read_text().split()
        return os.getpgid(int(first[0]))
    except (OSError, ValueError, IndexError):
        return holder


def _signal(group: int, number: signal.Signals) -> None:
    # macOS reports the latter for a group of dead processes.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


async def _read(pipe: int, output: ShellOutput, report: Callable[[str], None]) -> None:
    reader = asyncio.StreamReader(limit=_PIECE)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(pipe, "rb", buffering=0)
    )
    decoder = getincrementaldecoder("utf-8")("replace")
    try:
        while piece := await reader.read(_PIECE):
            text = decoder.decode(piece)
            if reported := text[: max(0, _REPORTED - output.length)]:
                report(reported)
            output.add(text)
            await asyncio.sleep(_PAUSE)
        output.add(decoder.decode(b"", final=True))
    finally:
        transport.close()


def told(refused: Sequence[Refusal]) -> str:
    """Return the note for the model on the cage's refusals, and how to request access."""
    return "".join(f"\n[cage] {one}" for one in refused)


_LONGEST = 600.0  # seconds


def _beyond(arguments: Arguments) -> list[Rule]:
    given = arguments.get("beyond")
    line = [literal(one) for one in line_patterns(arguments)]
    return beyond_of(map(str, given), line) if isinstance(given, list) else []


@tool(
    permission="shell",
    pattern=line_patterns,
    wider=wider_lines,
    replay="ask",
    timeout=_LONGEST + 30,
    sequential=True,
    cancellable=True,
    caged=True,
    beyond=_beyond,
)
async def shell(
    command: Annotated[str, Field(min_length=1, max_length=20_000, description="a line for /bin/sh")],
    context: ToolContext,
    timeout: Annotated[float, Field(gt=0, le=_LONGEST, description="seconds")] = 120.0,
    beyond: Annotated[
        list[str],
        Field(
            max_length=20,
            description="only after [cage] refused something: write:PATH/*, read:PATH, net:HOST:PORT, or "
            "outside to run without the cage; a person is asked",
        ),
    ] = [],  # noqa: B006 - nobody changes it
) -> ToolOutput:
    """Run a shell command in the workspace. The result is its exit status and what it printed. Nothing can
    be typed into it, and whatever it leaves running is ended when it ends."""
    if "\0" in command or not command.strip():
        raise ToolFailed("The line has no command, or a NUL character.")
    if wrong := [word for word in beyond if not beyond_of([word], ["*"])]:
        raise ToolFailed(
            f"Invalid value {wrong[0]!r} in beyond. Use write:PATH/*, read:PATH, net:HOST:PORT, or outside."
        )
    folder = inside(context.workspace, ".")
    output = ShellOutput()
    program = ["/bin/sh", "-c", command]
    status, refused = await run_program(
        program,
        folder,
        output,
        context.progress,
        cage=context.cage,
        gate=context.require_permission,
        env=context.env,
        timeout=timeout,
    )
    if status is None:
        late = f"it took longer than {timeout:g} s and was ended; it had printed:\n{output.text()}"
        raise ToolFailed(late + told(refused))
    ending = f"exit status {status}" if status >= 0 else f"ended by signal {-status}"
    text = f"{ending}\n{output.text()}{told(refused)}"
    metadata: dict[str, JsonValue] = {"exit_status": status}
    if context.cage is not None:
        metadata["cage"] = {"refused": [{"text": str(one), "asks": one.asks} for one in refused]}
    return ToolOutput(text, title=command[:80], metadata=metadata)
