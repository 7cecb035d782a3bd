"""A transport in, the same out, with word of its end: the SDK keeps that to itself."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Self, TypeAlias

import anyio
from mcp.client._transport import ReadStream, TransportStreams
from mcp.shared.message import SessionMessage

Incoming: TypeAlias = SessionMessage | Exception


class Watched(AbstractAsyncContextManager[TransportStreams]):
    """Calls `over` when nothing more will come from the other side."""

    def __init__(
        self, transport: AbstractAsyncContextManager[TransportStreams], over: Callable[[], None]
    ) -> None:
        self._transport = transport
        self._over = over

    async def __aenter__(self) -> TransportStreams:
        read, write = await self._transport.__aenter__()
        return _Reading(read, self._over), write

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._transport.__aexit__(kind, error, trace)


class _Reading:
    """What comes in. A message keeps the context of the call it belongs to, where the transport knows it."""

    def __init__(self, stream: ReadStream[Incoming], over: Callable[[], None]) -> None:
        self._stream = stream
        self._over = over

    @property
    def last_context(self) -> contextvars.Context | None:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Incoming:
        try:
            return await self._stream.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            self._over()
            raise

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Incoming:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        await self.aclose()
        return None
