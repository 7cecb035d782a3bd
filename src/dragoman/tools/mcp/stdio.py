"""Start an MCP server as a program and exchange lines with it, with limits on what it can write."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from subprocess import PIPE

import anyio
import mcp_types as types
from anyio.abc import ByteReceiveStream, ByteSendStream, ObjectReceiveStream, ObjectSendStream, Process
from mcp.client._transport import TransportStreams
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from dragoman.background import in_thread
from dragoman.errors import ToolFailed
from dragoman.messages.questions import Rule
from dragoman.sentences import sentence
from dragoman.tools.cage.enter import Entered, cage_in, enter
from dragoman.tools.cage.policy import NET, CageSettings
from dragoman.tools.mcp.diagnostics import Diagnostics
from dragoman.tools.permissions import literal
from dragoman.wire.prose import join_all, read_json

# Parse a line of an MCP server as a message. If a response is hard to parse, its caller still gets an error.


NO_MCP = "it sent invalid MCP data: "

_ID = rb'"id"\s*:\s*(\d{1,18}|"[^"\\]{1,200}")'
_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"'
_AT_START = re.compile(rb"\s*\{\s*(?:" + _VERSION + rb"\s*,\s*)?" + _ID + rb'\s*,\s*(?:"result"|"error")')
_AT_END = re.compile(_ID + rb"\s*(?:,\s*" + _VERSION + rb"\s*)?\}\s*\Z")
_TAIL = 300  # bytes at its end in which the ID of a response is searched


def read_message(line: bytes) -> types.JSONRPCMessage | None:
    """Return the message, or None if the line is not a message.

    A response that cannot be parsed, such as one nested too deep or with excessive numbers, becomes an error
    for its caller, which would otherwise wait forever.
    """
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError as error:
        why = str(error.errors(include_url=False, include_input=False)[0]["msg"])
    try:
        value = join_all(read_json(line))  # cut inside a character, or not UTF-8
    except (ValueError, RecursionError):
        return _unreadable(_id_of(line), why)
    try:
        return types.jsonrpc_message_adapter.validate_python(value, by_name=False)
    except ValidationError:
        id = value.get("id") if isinstance(value, dict) and "method" not in value else None
        return _unreadable(id, "an answer that is neither a result nor an error")


def _id_of(line: bytes) -> int | str | None:
    """Return the ID of a response that is not valid JSON for us: the ID comes before the result or
    after it."""
    found = _AT_START.match(line) or _AT_END.search(line[-_TAIL:])
    if found is None:
        return None
    return int(found[1]) if found[1].isdigit() else found[1].strip(b'"').decode(errors="replace")


def _unreadable(id: object, why: str) -> types.JSONRPCMessage | None:
    if not isinstance(id, int | str):
        return None
    error = types.ErrorData(code=types.PARSE_ERROR, message=NO_MCP + why)
    return types.JSONRPCError(jsonrpc="2.0", id=id, error=error)


MOST_OF_A_LINE = 32 << 20  # an image of 20 MB, in base64
MOST_NOISE = 4 << 20  # bytes of lines that are not messages: a greeting is fine, a flood is not
GRACE = 2.0  # seconds for a program to exit by itself, and again after SIGTERM
CERTAIN = 10.0  # seconds until the system has removed a process, even under load

_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dragoman" / "pycache"
"""Where Python servers keep compiled code. In the folder that trust covers, code of any origin would run."""
# from the environment, in addition to PATH, HOME and the like
_ALSO = ("LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ")

_CAGE = CageSettings("always", watch=False)  # The refusals are not read.
_GONE = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)


@asynccontextmanager
async def open_program(
    command: str,
    args: Sequence[str],
    env: Mapping[str, str],
    cwd: str | None,
    diagnostics: Diagnostics,
    *,
    hosts: Sequence[str] | None = None,
) -> AsyncIterator[TransportStreams]:
    """Yield the program's streams while it runs. At the end, close its input, then terminate, then kill it.

    Its children are terminated with it. With `hosts`, it runs in a cage that reaches only these. Raises
    OSError if it cannot be started.
    """
    environment = get_default_environment() | {name: os.environ[name] for name in _ALSO if name in os.environ}
    environment |= {"PYTHONPYCACHEPREFIX": str(_CACHE), **env}
    if cwd is not None and Path(command).name != command:
        command = str(Path(cwd, command))  # A relative path starts from the program's working folder.
    found = shutil.which(command, path=environment.get("PATH"))
    if found is None:
        raise FileNotFoundError(sentence("mcp.no_program", command=command))
    async with _caged([found, *args], environment, cwd, hosts) as entered:
        limits = ["/bin/sh", "-c", f'{entered.first}exec "$@"', "/bin/sh"] if entered.first else []
        process = await anyio.open_process(
            [*limits, *entered.words],
            env=entered.env,
            cwd=cwd,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            pass_fds=entered.files,
            start_new_session=True,
        )
        entered.started()
        async with _served(process, diagnostics) as streams:
            yield streams


@asynccontextmanager
async def _caged(
    words: list[str], env: dict[str, str], cwd: str | None, hosts: Sequence[str] | None
) -> AsyncIterator[Entered]:
    if hosts is None:
        yield Entered(words, env)
        return
    rules = tuple(Rule(NET, literal(one), "allow") for one in hosts)
    made = await in_thread(partial(cage_in, Path(cwd or "."), _CAGE, (), look=False))
    if made.missing:
        raise FileNotFoundError(sentence("cage.missing", why=made.missing))

    async def gate(pattern: str, question: str, permission: str) -> None:
        if permission != NET or not {pattern, pattern.rpartition(":")[0]} & set(hosts):
            raise ToolFailed(question)

    async with enter(words, env, replace(made, rules=rules), gate) as entered:
        yield entered


@asynccontextmanager
async def _served(process: Process, diagnostics: Diagnostics) -> AsyncIterator[TransportStreams]:
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    received, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, to_send = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_read_messages, process.stdout, received, diagnostics)
        tasks.start_soon(_write_messages, process.stdin, to_send, received)
        tasks.start_soon(_read_stderr, process.stderr, diagnostics)
        try:
            yield incoming, outgoing
        finally:
            # Otherwise a cancelled caller would leave the program running.
            with anyio.CancelScope(shield=True):
                await _stop(process, process.stdin)
            tasks.cancel_scope.cancel()
            for stream in (received, incoming, outgoing, to_send):
                stream.close()
            _release(process)


async def _read_messages(
    stdout: ByteReceiveStream,
    received: ObjectSendStream[SessionMessage | Exception],
    diagnostics: Diagnostics,
) -> None:
    """Pass each line that is a message to the session, until the program ends or exceeds a limit."""
    line, noise = bytearray(), 0
    async with received:
        with suppress(*_GONE):
            while True:
                *whole, rest = (await stdout.receive()).split(b"\n")
                for piece in whole:
                    line += piece
                    if not await _forward(bytes(line), received):
                        noise += len(line) + 1
                    line.clear()
                line += rest
                if len(line) > MOST_OF_A_LINE:
                    diagnostics.overflow = f"it wrote a line of more than {MOST_OF_A_LINE >> 20} MB"
                if noise > MOST_NOISE:
                    diagnostics.overflow = "it floods its standard output with what are no messages"
                if diagnostics.overflow:
                    return


async def _forward(line: bytes, received: ObjectSendStream[SessionMessage | Exception]) -> bool:
    message = read_message(line)
    if message is None:
        return False
    await received.send(SessionMessage(message))
    return True


async def _write_messages(
    stdin: ByteSendStream,
    to_send: ObjectReceiveStream[SessionMessage],
    received: ObjectSendStream[SessionMessage | Exception],
) -> None:
    with suppress(*_GONE):
        async for message in to_send:
            line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            await stdin.send(line.encode("utf-8", "replace") + b"\n")
        return
    await received.aclose()  # The program has stopped reading: calls that wait for an answer must fail.


async def _read_stderr(stderr: ByteReceiveStream, diagnostics: Diagnostics) -> None:
    with suppress(*_GONE):
        while True:
            diagnostics.add_stderr(await stderr.receive())


async def _stop(process: Process, stdin: ByteSendStream) -> None:
    with suppress(*_GONE):
        await stdin.aclose()
    if await _wait_for_end(process, GRACE):
        return
    _signal(process, signal.SIGTERM)
    await _wait_for_end(process, GRACE)
    if sys.platform != "win32":
        _signal(process, signal.SIGKILL)  # also its children, if they outlive it
    await _wait_for_end(process, CERTAIN)


async def _wait_for_end(process: Process, within: float) -> bool:
    with anyio.move_on_after(within):
        while process.returncode is None:  # noqa: ASYNC110 - wait() waits for its children's pipes, too
            await anyio.sleep(0.01)
    return process.returncode is not None


def _signal(process: Process, number: int) -> None:
    """Signal the program and everything it started."""
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.terminate()
        else:
            os.killpg(process.pid, number)


def _release(process: Process) -> None:
    """Close the pipes even if a detached child holds their other ends. No public API does this."""
    transport = getattr(getattr(process, "_process", None), "_transport", None)
    if transport is not None:
        with suppress(PermissionError):
            transport.close()
