"""Check what unauthenticated connections can consume (U1, U2), with real sockets and the real program."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import socket
import sys
from asyncio.subprocess import PIPE, Process
from asyncio.trsock import TransportSocket
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from starlette.types import Receive, Scope, Send

from dragoman.server.connections import CONNECTION, ConnectionLimits, Connections, recognise
from dragoman.server.event_stream import STUCK, EventStream, OpenStreams
from dragoman.wire.scripted import says
from tests.cli.program import clean_environment
from tests.patience import PATIENCE, eventually
from tests.runtimes import runtime_with
from tests.server.site import listening, serving

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="limits of open files")]

SILENT = b""
HALF_A_HEAD = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "


@dataclass
class Program:
    """`dragoman serve`, running with a limit of open files."""

    process: Process
    url: str
    token: str
    log: Path

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def client(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(self.url, headers={"authorization": f"Bearer {self.token}"})

    def seconds_of_processor(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100  # a hundred ticks a second, everywhere on Linux


@asynccontextmanager
async def serving_with_files(folder: Path, files: int) -> AsyncIterator[Program]:
    (folder / "dragoman.toml").write_text('store = "chat.db"\nmodel = "ollama/none"\n', "utf-8")
    log = folder / "log"
    command = f"ulimit -n {files}; exec {sys.executable} -m dragoman.cli.main serve --port 0"
    with log.open("wb") as err:
        process = await asyncio.create_subprocess_exec(
            "sh",
            "-c",
            command,
            cwd=folder,
            env=clean_environment(folder),
            stdin=PIPE,
            stdout=PIPE,
            stderr=err,
        )
    try:
        assert process.stdout is not None
        line = (await asyncio.wait_for(process.stdout.readline(), PATIENCE)).decode()
        found = re.search(r"(http://127\.0\.0\.1:\d+)/\?token=(\S+)", line)
        assert found is not None, (line, log.read_text("utf-8"))
        yield Program(process, found[1], found[2], log)
    finally:
        process.terminate()
        await asyncio.wait_for(process.wait(), PATIENCE)


@contextmanager
def strangers(port: int, count: int, sent: bytes, addresses: int = 1) -> Iterator[list[socket.socket]]:
    """So many connections, from as many addresses of this machine, that send this and then nothing."""
    opened: list[socket.socket] = []
    try:
        for number in range(count):
            stranger = socket.socket()
            opened.append(stranger)
            stranger.bind((f"127.0.1.{number % addresses + 1}", 0))
            stranger.connect(("127.0.0.1", port))
            if sent:
                stranger.send(sent)
            stranger.setblocking(False)
        yield opened
    finally:
        for stranger in opened:
            stranger.close()


def hung_up(stranger: socket.socket) -> bool:
    try:
        return stranger.recv(4096) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


async def all_hung_up(opened: list[socket.socket]) -> None:
    """Wait until the server has closed all these connections."""
    waiting = opened
    async with asyncio.timeout(PATIENCE):
        while waiting := [stranger for stranger in waiting if not hung_up(stranger)]:  # noqa: ASYNC110 - by asking
            await asyncio.sleep(0.05)


async def answers(program: Program, times: int) -> None:
    for _ in range(times):
        async with program.client() as client, client.post("/api/conversations", json={}) as response:
            assert response.status == 201


@pytest.mark.long
async def test_two_thousand_strangers_disturb_nobody_and_are_hung_up_on(tmp_path: Path) -> None:
    """Unauthenticated clients used to take all connections, and none was disconnected (U1)."""
    async with serving_with_files(tmp_path, 4096) as program, program.client() as client:
        async with client.get("/api/events") as stream:
            for sent, addresses in ((SILENT, 1), (HALF_A_HEAD, 200)):
                with strangers(program.port, 2000, sent, addresses) as opened:
                    await answers(program, 20)
                    await all_hung_up(opened)
                assert (
                    stream.content.exception() is None
                )  # the signed-in client stayed connected all the time
        assert len(program.log.read_bytes()) < 2000


@pytest.mark.long
async def test_a_server_with_few_files_pauses_and_neither_spins_nor_fills_its_log(tmp_path: Path) -> None:
    """With 1,100 connections at `ulimit -n 1024`, the server wrote 61 MB of tracebacks and answered no client
    (U1)."""
    async with serving_with_files(tmp_path, 1024) as program:
        with strangers(program.port, 1100, HALF_A_HEAD, 1100 // 5) as opened:
            await answers(program, 20)
            before = program.seconds_of_processor()
            await asyncio.sleep(2)  # the time over which the test measures
            assert program.seconds_of_processor() - before < 1.5
            await all_hung_up(opened)
        await answers(program, 5)
        assert len(program.log.read_bytes()) < 2000
        assert b"Traceback" not in program.log.read_bytes()


@pytest.mark.long
async def test_a_server_that_has_no_file_left_goes_on_when_it_has(tmp_path: Path) -> None:
    """U1, S2: so few that the limits themselves are above them."""
    async with serving_with_files(tmp_path, 48) as program:
        with strangers(program.port, 300, SILENT, 50) as opened:
            await all_hung_up(opened)
        await answers(program, 3)
        assert len(program.log.read_bytes()) < 4000


LIMITS = ConnectionLimits(most=8, unauthenticated=6, per_address=4, head=0.5)


@asynccontextmanager
async def small(folder: Path) -> AsyncIterator[tuple[str, int]]:
    """A server with small limits in this process, and its port."""
    async with runtime_with(folder, [says("x")]) as runtime, serving(folder, runtime, limits=LIMITS) as site:
        yield site.url, int(site.url.rpartition(":")[2])


@dataclass(eq=False)
class Caller:
    """A connection that is none."""

    address: str = "192.0.2.1"

    def recognise(self) -> None:
        pass

    def disconnect(self) -> None:
        pass


def test_a_connection_that_has_gone_takes_no_room_whoever_is_recognised_on_it() -> None:
    """The answer to a sign-in can come after its connection was lost or displaced by another (U1)."""
    connections = Connections(LIMITS)
    callers = [Caller() for _ in range(LIMITS.per_address + 1)]
    going = [gone for caller in callers for gone in connections.add(caller)]
    assert going == callers[:1]
    connections.recognise(callers[0])
    connections.recognise(callers[1])
    connections.remove(callers[2])
    connections.recognise(callers[2])
    assert set(connections) == {callers[1], *callers[3:]}
    assert (len(connections), connections.unauthenticated) == (len(callers) - 2, len(callers) - 3)


def test_the_longest_silent_stranger_of_the_busiest_address_makes_room() -> None:
    """One goes for one that comes, and nobody who has signed in. A proxy's clients share no address (U1)."""
    connections = Connections(ConnectionLimits(most=5, unauthenticated=3, per_address=2))
    a, b, proxy = ([Caller(address) for _ in range(3)] for address in ("192.0.2.1", "192.0.2.2", ""))
    assert [connections.add(each) for each in (a[0], a[1], b[0])] == [[], [], []]
    connections.touch(a[0])
    assert connections.add(b[1]) == [a[1]]  # too many strangers
    assert connections.add(b[2]) == [b[0]]  # too many of one address
    assert [*connections] == [a[0], b[1], b[2]]
    for each in (b[1], b[2]):
        connections.recognise(each)
    assert [connections.add(each) for each in proxy[:2]] == [[], []]
    assert (len(connections), connections.unauthenticated, connections.full) == (5, 3, False)
    assert connections.add(proxy[2]) == [proxy[0]]
    for each in (a[0], *proxy[1:]):
        connections.recognise(each)
    assert (connections.full, connections.longest_idle(1), connections.add(a[1])) == (True, [], [])
    connections.remove(b[1])
    assert (len(connections), connections.full) == (5, False)
    assert connections.add(a[2]) == [a[1]]  # too many connections


@pytest.mark.parametrize(
    ("files", "limits"),
    [(4, (8, 4, 4)), (12, (9, 4, 4)), (1000, (750, 375, 100)), (99_999, (2000, 1000, 100))],
)
def test_a_quarter_of_the_files_is_left_for_others(files: int, limits: tuple[int, int, int]) -> None:
    found = ConnectionLimits.for_files(files)
    assert (found.most, found.unauthenticated, found.per_address) == limits


async def read_all(reader: asyncio.StreamReader) -> bytes:
    """Return the bytes before the end of the connection, however it ended."""
    read = b""
    async with asyncio.timeout(PATIENCE):
        try:
            while piece := await reader.read(4096):
                read += piece
        except ConnectionError:
            pass
    return read


async def test_a_head_that_never_ends_is_cut_off_however_it_goes_on(tmp_path: Path) -> None:
    """The server cuts it off by time, also after a complete request, and by size (U1)."""
    async with small(tmp_path) as (_, port):
        for first in (b"", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(first + b"GET / HTTP/1.1\r\n")
            ended = asyncio.create_task(read_all(reader))
            while not ended.done():  # a drop now and then keeps nothing open
                writer.write(b"X: y\r\n")
                await asyncio.wait([ended], timeout=0.1)
            assert first == b"" or b" 200 " in ended.result()
            writer.close()


@pytest.mark.parametrize("key", ["", "Authorization: Bearer key of local\r\n"])
async def test_a_head_that_is_too_long_is_cut_off_whoever_sends_it(tmp_path: Path, key: str) -> None:
    """The server reads no more of it, also after a request that was signed in (U1)."""
    async with small(tmp_path) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"GET /healthz HTTP/1.1\r\nHost: localhost\r\n{key}".encode()
        writer.write(head + b"\r\n")
        assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
        writer.write(head + b"Connection: close\r\nX: " + b"y" * 400_000 + b"\r\n\r\n")
        assert b" 200 " not in await read_all(reader)
        writer.close()


async def test_a_strangers_body_that_is_too_long_is_cut_off(tmp_path: Path) -> None:
    """It is cut off even though it has been answered (U1)."""
    async with small(tmp_path) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = "POST /api/conversations HTTP/1.1\r\nHost: localhost\r\nContent-Length: 80000000\r\n\r\n"
        writer.write(head.encode() + bytes(80_000_000))
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert b" 200 " not in await read_all(reader)
        writer.close()


async def test_a_body_that_drips_on_after_the_answer_is_cut_off(tmp_path: Path) -> None:
    """Unauthenticated clients are answered before their body is read, so they need not send it (U1)."""
    async with small(tmp_path) as (_, port):
        head = b"POST /api/conversations HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head + b"Content-Length: 1000000\r\n\r\n")
        ended = asyncio.create_task(read_all(reader))
        while not ended.done():
            writer.write(b"x")
            await asyncio.wait([ended], timeout=0.1)
        assert b" 401 " in ended.result()
        writer.close()


async def test_who_has_signed_in_keeps_the_connection_while_strangers_fight_for_theirs(
    tmp_path: Path,
) -> None:
    """The unauthenticated connection that is silent longest is closed, and a signed-in user's stream stays
    (U1)."""
    headers = {"authorization": "Bearer key of local"}
    async with (
        small(tmp_path) as (url, port),
        aiohttp.ClientSession(url, headers=headers) as person,
        person.get("/api/events") as stream,
    ):
        with strangers(port, 40, SILENT, 10) as opened:
            for _ in range(5):
                async with (
                    aiohttp.ClientSession(url, headers=headers) as other,
                    other.get("/api/me") as response,
                ):
                    assert response.status == 200
            await all_hung_up(opened)
        assert stream.content.exception() is None


@pytest.mark.parametrize(("proxies", "stay"), [([], False), (["127.0.1.1"], True)])
async def test_many_may_come_through_a_proxy(tmp_path: Path, proxies: list[str], stay: bool) -> None:
    """No per-address limit applies to the proxy, while any other address can open only a few connections
    (U1)."""
    async with (
        runtime_with(tmp_path, [says("x")]) as runtime,
        serving(tmp_path, runtime, limits=replace(LIMITS, head=60.0), proxies=proxies) as site,
    ):
        with strangers(int(site.url.rpartition(":")[2]), LIMITS.per_address + 1, SILENT) as opened:
            # the server has accepted them before this request
            assert (await site.ask("GET", "/api/me")).status == 200
            assert any(map(hung_up, opened)) is not stay


class FailingListener(socket.socket):
    """A listener whose `accept` fails a given number of times, as if a peer had disconnected first."""

    failures: list[int]

    def accept(self) -> tuple[socket.socket, Any]:
        if self.failures:
            number = self.failures.pop()
            raise OSError(number, os.strerror(number))
        return super().accept()


@pytest.mark.parametrize("number", [errno.ECONNABORTED, errno.EHOSTUNREACH], ids=errno.errorcode.get)
async def test_a_peer_that_goes_before_it_is_accepted_costs_nobody_their_connection(
    tmp_path: Path, number: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Such a peer used to count as a lack of files: 32 clients were disconnected, and the log named `ulimit
    -n` (U1).
    """
    listener = FailingListener(fileno=socket.create_server(("127.0.0.1", 0)).detach())
    listener.failures = []
    async with (
        runtime_with(tmp_path, [says("x")]) as runtime,
        serving(tmp_path, runtime, listener=listener) as site,
    ):
        with strangers(int(site.url.rpartition(":")[2]), 3, SILENT) as opened:
            # the server has accepted them before this request
            assert (await site.ask("GET", "/api/me")).status == 200
            listener.failures += [number] * 5
            async with aiohttp.ClientSession(site.url) as another, another.get("/api/me") as response:
                assert response.status == 401
            assert not listener.failures
            assert not any(map(hung_up, opened))
    assert caplog.records == []


@pytest.mark.parametrize("steps", range(6))
async def test_who_comes_while_the_server_ends_is_hung_up_on(steps: int) -> None:
    """This holds at any step of the accept. A cancellation there used to leave the connection open (U1)."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError("nobody asks anything")

    opened = ExitStack()
    async with listening(app) as url:
        await asyncio.sleep(0.01)
        strange = opened.enter_context(strangers(int(url.rpartition(":")[2]), 3, SILENT))
        for _ in range(steps):
            await asyncio.sleep(0)
    with opened:
        assert all(map(hung_up, strange))


async def test_an_answer_that_waited_for_its_reader_goes_on() -> None:
    """It is longer than what the system takes at once (E2)."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for number in range(17):
            await send({"type": "http.response.body", "body": bytes(1_000_000), "more_body": number < 16})

    async with (
        asyncio.timeout(PATIENCE),
        listening(app) as url,
        aiohttp.ClientSession() as client,
        client.get(url) as response,
    ):
        assert len(await response.read()) == 17_000_000


async def test_a_stream_that_nobody_reads_gives_its_file_back(tmp_path: Path) -> None:
    """An orderly close would wait forever for the data that the client has not read (U1, E2)."""
    stuck = asyncio.Event()
    opened: list[tuple[EventStream, TransportSocket]] = []

    async def much() -> AsyncGenerator[bytes, None]:
        yield b": welcome\n\n"
        yield b"x" * 50_000_000
        stuck.set()
        yield b"nobody comes so far"

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        recognise(scope)  # as one who has signed in, and has no deadline
        stream = EventStream(much(), OpenStreams(), reader=None)
        opened.append((stream, scope["state"][CONNECTION].transport.get_extra_info("socket")))
        await stream(scope, receive, send)

    async with listening(app) as url, asyncio.timeout(PATIENCE):
        with strangers(int(url.rpartition(":")[2]), 1, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"):
            await stuck.wait()
            ((stream, connection),) = opened
            stream.look_after(asyncio.get_running_loop().time() + STUCK + 1)
            await eventually(lambda: connection.fileno() == -1)


async def test_a_stream_hears_that_its_reader_has_gone_also_where_another_request_waits_behind_it() -> None:
    """uvicorn notified only the last request, and the stream before it continued forever (E2)."""
    gone = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await receive()
        left = asyncio.ensure_future(receive())
        while not left.done():
            await send({"type": "http.response.body", "body": b"x", "more_body": True})
            await asyncio.wait([left], timeout=0.01)
        if left.result()["type"] == "http.disconnect":
            gone.set()

    request = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
    async with listening(app) as url, asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        writer.write(2 * request)
        await reader.readline()
        writer.close()
        await gone.wait()


async def test_who_offers_http_2_is_answered_as_ever_and_its_body_is_read() -> None:
    """Java's client and `curl --http2` send such an offer, and it can be split at any byte (U2)."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message["body"], message["more_body"]
        length = (b"content-length", b"%d" % len(body))
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        await send({"type": "http.response.body", "body": body})

    async def answer() -> bytes:
        head = await reader.readuntil(b"\r\n\r\n")
        return await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split()[0]))

    offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAA\r\n"
    body = b"a\r\nUpgrade: h2c\r\n\r\n"
    before = b"POST / HTTP/1.1\r\nHost: localhost\r\n%bContent-Length: 1\r\n\r\nb" % offer
    request = before[:-6] + b"%d\r\n\r\n%b" % (len(body), body)
    async with listening(app) as url, asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        for cut in range(len(request)):
            writer.write(before + request[:cut])
            assert await answer() == b"b"  # so that the first chunk was read alone
            writer.write(request[cut:])
            assert await answer() == body
        writer.write(request.replace(b"Upgrade, ", b"close, Upgrade, "))
        assert await answer() == body
        writer.close()


async def test_an_answer_that_nobody_reads_is_not_kept_for_ever(tmp_path: Path) -> None:
    """U1: also of one who has signed in, and has no deadline otherwise."""
    opened: list[TransportSocket] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        recognise(scope)
        opened.append(scope["state"][CONNECTION].transport.get_extra_info("socket"))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x" * 50_000_000})

    async with listening(app, limits=ConnectionLimits(unread=0.5)) as url, asyncio.timeout(PATIENCE):
        with strangers(int(url.rpartition(":")[2]), 1, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"):
            await eventually(lambda: opened)
            await eventually(lambda: opened[0].fileno() == -1)
    async with (
        listening(app, limits=ConnectionLimits(unread=20.0)) as url,
        aiohttp.ClientSession() as person,
        person.get(url) as answer,
    ):
        # a client that reads, however slowly, gets the whole file
        assert len(await answer.read()) == 50_000_000
