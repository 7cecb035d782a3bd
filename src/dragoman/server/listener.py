"""Accept connections and serve HTTP over them, with limits for clients that have not signed in."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import sys
import time
from collections import deque
from collections.abc import Callable
from types import FrameType
from typing import Any

import httptools
import uvicorn
from starlette.types import ASGIApp
from uvicorn.config import STARTUP_FAILURE
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from dragoman.server.connections import CONNECTION, ConnectionLimits, Connections, Peer
from dragoman.server.proxies import Proxies, counted_address

log = logging.getLogger("dragoman.server")

if sys.platform != "win32":
    import resource

_AT_ONCE = 32  # connections accepted in one go
_SHORTEST, _LONGEST = 0.1, 1.0  # seconds to wait when no connection can be accepted
_MOST_FROM_STRANGERS = 64_000_000  # Bytes after a head. Such a request is answered before its body is read.
_SHORTAGES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
# Errors of `accept` that concern a single connection, which is then gone from the queue.
_PEER_HAS_GONE = {
    errno.ECONNABORTED,
    errno.ECONNRESET,
    errno.EPROTO,
    errno.ETIMEDOUT,
    errno.ENETDOWN,
    errno.ENETUNREACH,
    errno.EHOSTDOWN,
    errno.EHOSTUNREACH,
}
_QUIET = 60.0  # seconds between two log lines about the same problem


class HttpConnection(HttpToolsProtocol):
    """A connection of uvicorn's, with deadlines for each head and for unauthenticated requests."""

    def __init__(self, listener: SocketListener, config: uvicorn.Config, state: ServerState) -> None:
        super().__init__(config, state, {CONNECTION: self}, asyncio.get_running_loop())
        self.parser: RequestParser = RequestParser(self)
        self.address = ""
        self._listener = listener
        self._limits = listener.limits
        self._waiting: deque[RequestResponseCycle] = deque()  # requests that are not yet answered
        self._known = False
        self._in_head = True
        self._size = 0  # bytes of a head, or of the body after it
        self._deadline: asyncio.TimerHandle | None = None
        self._unread_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # uvicorn's own
        super().connection_made(transport)
        peer = self.client[0] if self.client else ""
        self.address = "" if peer in self._listener.proxies else counted_address(peer)
        self._within(self._limits.head)
        self._listener.made(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._within(None)
        self._stop_unread_timer()
        self._listener.lost(self)
        # uvicorn notifies only the last request, and an earlier one can be a live stream.
        for request in self._waiting:
            request.disconnected = True
            request.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._size += len(data)
        super().data_received(data)
        most = self._limits.head_size if self._in_head else _MOST_FROM_STRANGERS
        if self._size > most and (self._in_head or not self._known):
            self.disconnect()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # Trailers after a body must not change who asks, or for what.
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self.parser.offers:
            return
        self._in_head, self._size = False, 0
        self._within(None if self._known else self._limits.unauthenticated_seconds)
        self._listener.connections.touch(self)
        super().on_headers_complete()
        self._waiting.append(self.cycle)

    def on_message_complete(self) -> None:
        if self.parser.offers:
            return
        self._in_head, self._size = True, 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self._waiting.popleft()
        if not self._waiting:
            self._within(self._limits.head)
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stop_unread_timer()
        self._unread_timer = self.loop.call_later(self._limits.unread, self.disconnect)

    def resume_writing(self) -> None:
        self._stop_unread_timer()
        super().resume_writing()

    def _stop_unread_timer(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()

    def recognise(self) -> None:
        self._known = True
        self._listener.connections.recognise(self)
        if self._waiting:
            self._within(None)

    def disconnect(self) -> None:
        self.transport.abort()

    def _within(self, seconds: float | None) -> None:
        """Set the deadline of the next step. None removes it."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self.disconnect)


class RequestParser(httptools.HttpRequestParser):
    """A parser that answers HTTP/2 offers (Java, `curl --http2`) in HTTP/1.1.

    At an offer a parser stops and leaves the body to the other protocol. A new parser then receives the head
    without the offer, and continues.
    """

    def __init__(self, connection: HttpConnection) -> None:
        super().__init__(connection)
        self.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
        self._connection = connection

    @property
    def offers(self) -> bool:
        return self.should_upgrade() and self.get_method() != b"CONNECT"

    def feed_data(self, data: Any) -> None:
        parser, rest = self, memoryview(data)  # The data can contain several requests.
        while rest:
            try:
                httptools.HttpRequestParser.feed_data(parser, rest)
                break
            except httptools.HttpParserUpgrade as stopped:
                if not parser.offers:
                    raise
                head, rest = parser.head_without_offer(), rest[stopped.args[0] :]
                parser = self._connection.parser = RequestParser(self._connection)
                httptools.HttpRequestParser.feed_data(parser, head)

    def head_without_offer(self) -> bytes:
        url, headers = self._connection.url, self._connection.headers
        lines = [b"%b %b HTTP/%b" % (self.get_method(), url, self.get_http_version().encode())]
        lines += [b"%b: %b" % header for header in headers if header[0] != b"upgrade"]
        return b"\r\n".join([*lines, b"", b""])


class SocketListener:
    """Accepts connections from a socket. If it cannot, it waits, so that it neither spins nor fills
    the log."""

    def __init__(
        self,
        listening: socket.socket,
        config: uvicorn.Config,
        state: ServerState,
        *,
        limits: ConnectionLimits,
        proxies: Proxies,
    ) -> None:
        self.limits, self.proxies = limits, proxies
        self.connections = Connections(limits)
        self._socket, self._config, self._state = listening, config, state
        self._change = asyncio.Event()  # set when a connection has ended
        self._refused = 0  # connections disconnected since the last log line
        self._logged = -_QUIET
        listening.setblocking(False)
        self._task = asyncio.create_task(self._accept())

    def close(self) -> None:
        self._task.cancel()

    async def wait_closed(self) -> None:
        await asyncio.wait([self._task])

    def made(self, connection: HttpConnection) -> None:
        self._disconnect(self.connections.add(connection))
        # A connection accepted during shutdown is unknown to the code that closes the others.
        if self._task.cancelling():
            connection.disconnect()

    def lost(self, connection: HttpConnection) -> None:
        self.connections.remove(connection)
        self._change.set()

    async def _accept(self) -> None:
        pause = _SHORTEST
        while True:
            while self.connections.full:
                self._change.clear()
                await self._change.wait()
            accepted, failure = await self._some()
            # A cancelled setup would leave these connections open forever.
            await asyncio.shield(asyncio.gather(*map(self._serve, accepted)))
            await asyncio.sleep(0)  # Let the aborted connections close.
            if failure is None or failure.errno in _PEER_HAS_GONE:
                pause = _SHORTEST
                continue
            hint = ""
            if failure.errno in _SHORTAGES:  # Waiting connections stay in the system's queue.
                self._disconnect(self.connections.longest_idle(_AT_ONCE))
                hint = ". `ulimit -n` says how many files"
            self._log(f"cannot accept connections: {failure.strerror}{hint}")
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST)

    async def _some(self) -> tuple[list[socket.socket], OSError | None]:
        """Accept waiting connections. Returns them, and the error that prevented more."""
        accepted: list[socket.socket] = []
        try:
            if sys.platform == "win32":
                accepted.append((await asyncio.get_running_loop().sock_accept(self._socket))[0])
            else:
                await self._until_readable()
            while len(accepted) < min(_AT_ONCE, max(1, self.limits.most // 8)):
                another, _ = self._socket.accept()
                accepted.append(another)
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            return accepted, error
        return accepted, None

    async def _until_readable(self) -> None:
        """Wait until a connection is waiting. (`sock_accept` would drop an accepted connection when
        cancelled.)"""
        readable = asyncio.Event()
        loop, number = asyncio.get_running_loop(), self._socket.fileno()
        loop.add_reader(number, readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(number)  # The socket itself can be closed by now.

    async def _serve(self, accepted: socket.socket) -> None:
        def protocol() -> HttpConnection:
            return HttpConnection(self, self._config, self._state)

        try:
            # Without this option, the end of an answer waits until its beginning is acknowledged, usually for
            # 40 ms.
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.get_running_loop().connect_accepted_socket(protocol, accepted)
        except OSError:  # The client has already disconnected.
            accepted.close()

    def _disconnect(self, refused: list[Peer]) -> None:
        for peer in refused:
            peer.disconnect()
        self._refused += len(refused)
        if refused:
            self._log("too many unauthenticated connections")

    def _log(self, what: str) -> None:
        """Log at most one line a minute."""
        if time.monotonic() - self._logged >= _QUIET:
            self._logged = time.monotonic()
            log.warning("%s (%d disconnected)", what, self._refused)
            self._refused = 0


class HttpServer(uvicorn.Server):
    """uvicorn with a custom listener."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        limits: ConnectionLimits | None = None,
        proxies: Proxies | None = None,
        on_exit: Callable[[], None] = lambda: None,
        **options: Any,
    ) -> None:
        """The signal handler calls `on_exit`, which ends the live streams that would delay the exit."""
        self._limits = limits or ConnectionLimits.for_files(open_files())
        self._proxies = proxies or Proxies()
        self._on_exit = on_exit
        config = uvicorn.Config(
            app,
            **{
                "log_level": "error",  # Errors of unauthenticated clients would fill the log.
                "access_log": False,
                "log_config": None,  # The program decides where the log goes.
                "proxy_headers": False,  # Only configured proxies are trusted.
                "ws": "none",
                "timeout_keep_alive": self._limits.idle,
                "timeout_graceful_shutdown": 3,
                **options,
            },
        )
        super().__init__(config)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            sys.exit(STARTUP_FAILURE)
        self.servers = [
            SocketListener(one, self.config, self.server_state, limits=self._limits, proxies=self._proxies)  # type: ignore[misc] # has what uvicorn calls: close and wait_closed
            for one in sockets or []
        ]
        self.started = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        # Otherwise uvicorn would raise the signal again before the runtime is closed in order.
        self._captured_signals.clear()
        self._on_exit()


def open_files() -> int:
    """Return how many files this process can have open."""
    if sys.platform == "win32":
        return 2**16
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2**16 if files == resource.RLIM_INFINITY else files
