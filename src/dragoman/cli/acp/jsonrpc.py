"""Exchange JSON-RPC 2.0 messages in both directions on standard input and output, one on each line."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import stat
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from pydantic import JsonValue

LONGEST = 256 * 1024 * 1024  # maximum bytes of a line: a message can contain images
_log = logging.getLogger("dragoman.acp")
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
REQUEST_CANCELLED = -32800
NOT_FOUND = -32002
CANCEL_REQUEST = "$/cancel_request"
Params: TypeAlias = dict[str, Any]


@contextmanager
def claimed_streams() -> Iterator[tuple[int, int]]:
    """Yield descriptors of standard input and output for this connection only.

    Meanwhile, reading from descriptor 0 yields nothing. Everything that this process or its children write to
    descriptor 1 goes to descriptor 2.
    """
    ours = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    try:
        yield ours
    finally:
        os.dup2(ours[0], 0)
        os.dup2(ours[1], 1)
        for each in ours:
            os.close(each)


async def open_lines(descriptor: int) -> AsyncIterator[bytes]:
    """Yield each line until the other side closes."""
    if not _is_watchable(descriptor):
        with os.fdopen(os.dup(descriptor), "rb") as file:
            for line in file:
                yield line
        return
    reader = asyncio.StreamReader(limit=LONGEST)
    pipe = os.fdopen(os.dup(descriptor), "rb", buffering=0)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), pipe
    )
    try:
        while line := await reader.readline():
            yield line
    finally:
        transport.close()


async def open_writer(descriptor: int) -> asyncio.StreamWriter | FileWriter:
    if not _is_watchable(descriptor):
        return FileWriter(os.dup(descriptor))
    loop = asyncio.get_running_loop()
    pipe = os.fdopen(os.dup(descriptor), "wb", buffering=0)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, pipe)
    return asyncio.StreamWriter(transport, protocol, None, loop)


class FileWriter:
    """A writer to a file, which never makes the caller wait."""

    def __init__(self, descriptor: int) -> None:
        self._file = os.fdopen(descriptor, "wb")

    def write(self, data: bytes) -> None:
        self._file.write(data)

    async def drain(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def _is_watchable(descriptor: int) -> bool:
    """Return whether the event loop can wait for it. It cannot wait for files or the null device."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)


@dataclass(slots=True, frozen=True)
class ResultThen:
    """A result, and the work that follows after it has been sent."""

    result: JsonValue
    then: Callable[[], Awaitable[None]]


Handler: TypeAlias = Callable[[Params], Awaitable[JsonValue | ResultThen]]


class RpcError(Exception):
    """An error response, sent or received."""

    def __init__(self, code: int, message: str, data: JsonValue = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def to_json(self) -> dict[str, JsonValue]:
        error: dict[str, JsonValue] = {"code": self.code, "message": self.message}
        return error if self.data is None else {**error, "data": self.data}


class LineWriter(Protocol):
    """The output of lines: an `asyncio.StreamWriter`, or an object with the same methods."""

    def write(self, data: bytes) -> None: ...

    async def drain(self) -> None: ...


class RpcPeer:
    """The other side of a connection.

    Each of its requests runs in a separate task, so that it can cancel one, or answer a request to it, in the
    meantime. Notifications are handled in order.
    """

    def __init__(
        self,
        lines: AsyncIterator[bytes],
        writer: LineWriter,
        requests: Mapping[str, Handler],
        notifications: Mapping[str, Handler],
        explain: Callable[[Exception], RpcError],
    ) -> None:
        """`explain` converts an exception of a handler to an error of the protocol."""
        self._lines = lines
        self._writer = writer
        self._requests = requests
        self._notifications = notifications
        self._explain = explain
        self._sending = asyncio.Lock()
        self._last = 0
        self._waiting: dict[int, asyncio.Future[JsonValue]] = {}
        self._working: dict[str | int, asyncio.Task[None]] = {}
        self.closed = False  # whether the other side has disconnected

    async def serve(self) -> None:
        """Handle messages until the other side closes. Its unfinished requests are then cancelled."""
        try:
            async for line in self._lines:
                if line.strip():
                    await self._take(line)
        finally:
            self.closed = True
            for task in list(self._working.values()):
                task.cancel()
            for future in self._waiting.values():
                future.cancel()
            await asyncio.gather(*self._working.values(), return_exceptions=True)

    async def request(self, method: str, params: Mapping[str, Any]) -> Any:
        """Send a request and return the answer. Raises RpcError for an error response. If the caller is
        cancelled, cancel the request as well."""
        self._last += 1
        id = self._last
        answered: asyncio.Future[JsonValue] = asyncio.get_running_loop().create_future()
        self._waiting[id] = answered
        try:
            await self._send({"id": id, "method": method, "params": params})
            return await answered
        except asyncio.CancelledError:
            if not self.closed and (answered.cancelled() or not answered.done()):
                with suppress(OSError):
                    await asyncio.shield(self.notify(CANCEL_REQUEST, {"requestId": id}))
            raise
        finally:
            self._waiting.pop(id, None)

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        await self._send({"method": method, "params": params})

    # ── input ─────────────────────────────────────────────────────────────────────────────────────

    async def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError) as error:
            return await self._refuse(None, RpcError(PARSE_ERROR, f"Invalid JSON: {error}"))
        if not isinstance(message, dict):
            return await self._refuse(None, RpcError(INVALID_REQUEST, "a message is an object"))
        method, id = message.get("method"), message.get("id")
        if method is None and ("result" in message or "error" in message):
            return self._settle(id, message)
        params = message.get("params", {})
        if not isinstance(method, str) or isinstance(id, bool) or not isinstance(id, str | int | None):
            return await self._refuse(None, RpcError(INVALID_REQUEST, "that is not a request"))
        if not isinstance(params, dict | None):
            return await self._refuse(id, RpcError(INVALID_PARAMS, f"{method}: params are an object"))
        if id is None:
            return await self._hear(method, params or {})
        if id in self._working:
            return await self._refuse(id, RpcError(INVALID_REQUEST, f"request {id} is worked on already"))
        task = asyncio.create_task(self._work(id, method, params or {}))
        self._working[id] = task
        task.add_done_callback(lambda _: self._working.pop(id, None))
        return None

    def _settle(self, id: object, message: Params) -> None:
        future = self._waiting.get(id) if isinstance(id, int) else None
        if future is None or future.done():
            return  # No caller waits for it any longer.
        if "error" not in message:
            future.set_result(message["result"])
            return
        error = message["error"] if isinstance(message["error"], dict) else {}
        code = error.get("code")
        text = str(error.get("message") or "it gave no reason")
        future.set_exception(RpcError(code if isinstance(code, int) else INTERNAL_ERROR, text))

    async def _hear(self, method: str, params: Params) -> None:
        if method == CANCEL_REQUEST:
            id = params.get("requestId")
            if isinstance(id, str | int) and (task := self._working.get(id)) is not None:
                task.cancel()
            return
        if (handler := self._notifications.get(method)) is not None:
            try:
                await handler(params)
            except Exception as error:
                _log.warning("%s: %s", method, self._explain(error).message)

    async def _work(self, id: str | int, method: str, params: Params) -> None:
        with suppress(ConnectionError):  # The other side has disconnected.
            await self._answer(id, method, params)

    async def _answer(self, id: str | int, method: str, params: Params) -> None:
        try:
            if (handler := self._requests.get(method)) is None:
                raise RpcError(METHOD_NOT_FOUND, f"Unknown method {method!r}.")
            result = await handler(params)
        except asyncio.CancelledError:
            await self._refuse(id, RpcError(REQUEST_CANCELLED, f"{method} was cancelled"))
            raise
        except Exception as error:
            await self._refuse(id, self._explain(error))
        else:
            answer = result if isinstance(result, ResultThen) else ResultThen(result, _nothing)
            await self._send({"id": id, "result": answer.result})
            await answer.then()

    # ── output ────────────────────────────────────────────────────────────────────────────────────

    async def _refuse(self, id: str | int | None, error: RpcError) -> None:
        if not self.closed:
            await self._send({"id": id, "error": error.to_json()})

    async def _send(self, message: Mapping[str, Any]) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":"))
        async with self._sending:
            self._writer.write(line.encode() + b"\n")
            await self._writer.drain()


async def _nothing() -> None:
    pass
