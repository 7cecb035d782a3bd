"""Measure many concurrent turns that stream to as many clients from one process, against uvicorn with the
same bytes.

The clients check that each receives every chunk once and in order. CPU and memory are the server
process's, after a first client has warmed it up. A second table shows how long streaming clients wait
while another client opens, searches and deletes a very long conversation.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, suppress
from itertools import pairwise
from typing import Any

import uvicorn

PIECES = 200  # chunks of one answer
PAUSE = 0.05  # seconds between two of them
MESSAGES = 10_000  # messages of the long conversation
LONG = "conv_long"


def text_of(pieces: int) -> str:
    return "".join(f"{n:07d} " for n in range(pieces))  # a chunk is eight characters


# ── the two servers ───────────────────────────────────────────────────────────────────────────────


async def dragoman(port: int, pieces: int) -> None:
    """Run the whole Dragoman server: a store on disk, one turn per client, signed-in users."""
    # Imported here, so that the bare server is measured without it.
    from dragoman import Runtime, ScriptedModel
    from dragoman.server.app import server
    from dragoman.server.auth import Auth
    from dragoman.wire.scripted import says

    with tempfile.TemporaryDirectory() as folder:
        model = ScriptedModel(lambda _: says(text_of(pieces), waits=PAUSE))
        async with Runtime(f"{folder}/chat.db", model=model) as runtime:
            auth = Auth(runtime.store, b"0" * 32, token="load")
            await _add_long_conversation(runtime)
            app = server(runtime, auth)
            gc.freeze()  # as `dragoman serve` does
            await _serve(app, port)


async def _add_long_conversation(runtime: Any) -> None:
    from dragoman.conversation.tree import Conversation
    from dragoman.messages.message import Message, Text

    messages: list[Message] = []
    for n in range(MESSAGES):
        parent = messages[-1].id if messages else None
        role, text = ("assistant", "An answer. " * 60) if n % 2 else ("user", f"Question {n}? needle")
        messages.append(Message(f"msg_{n}", LONG, parent, role, (Text(text),), created=1.0))
    long = Conversation(LONG, title="long", leaf=messages[-1].id, created=1.0, updated=1.0)
    await runtime.store.add_conversation(long, messages)


async def bare(port: int, pieces: int) -> None:
    """Run plain uvicorn with the same output: prepared frames of the same size, at the same pace."""
    data = {"turn": "turn_0123456789abcdef", "text": "0000000 ", "seq": 12345, "type": "text.delta"}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for n in range(pieces):
            frame = f"id: aaaaaaaa:{n}\nevent: text.delta\ndata: {json.dumps(data)}\n\n".encode()
            await send({"type": "http.response.body", "body": frame, "more_body": True})
            await asyncio.sleep(PAUSE)
        await send({"type": "http.response.body", "body": b"event: turn.end\ndata: {}\n\n"})

    await _serve(app, port)


async def _serve(app: Any, port: int) -> None:
    """Serve until standard input ends. For each line there, print the usage so far."""
    config = uvicorn.Config(
        app, port=port, log_level="warning", lifespan="off", backlog=4096, timeout_graceful_shutdown=1
    )
    running = uvicorn.Server(config)

    def report() -> None:
        if sys.stdin.readline():
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(json.dumps({"cpu": time.process_time(), "megabytes": peak}), flush=True)
        else:
            asyncio.get_running_loop().remove_reader(sys.stdin)
            running.should_exit = True

    asyncio.get_running_loop().add_reader(sys.stdin, report)
    await running.serve()


# ── the clients ───────────────────────────────────────────────────────────────────────────────────


async def _lines(port: int, request: bytes) -> AsyncGenerator[bytes, None]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 26)
    writer.write(request)
    try:
        while line := await reader.readline():
            yield line
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


def _request(method: str, path: str, body: str = "") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer load\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n{body}".encode()


async def _post(port: int, path: str, body: dict[str, str]) -> Any:
    lines = [line async for line in _lines(port, _request("POST", path, json.dumps(body)))]
    return json.loads(lines[-1])


class Heard:
    """The chunks that one client received, and when."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.times: list[float] = []

    def note(self, line: bytes) -> None:
        if line.startswith(b"data: ") and b'"text.delta"' in line:
            self.pieces.append(json.loads(line[6:])["text"])
            self.times.append(time.perf_counter())

    def gaps(self, begin: float, end: float) -> list[float]:
        """Return the seconds between consecutive chunks in this period."""
        times = [at for at in self.times if begin <= at <= end]
        return [later - earlier for earlier, later in pairwise(times)]


async def _client_of_ours(port: int, heard: Heard) -> None:
    """Create a conversation, follow it, send a message, and receive the whole answer."""
    conversation = (await _post(port, "/api/conversations", {}))["id"]
    speaking: asyncio.Task[Any] | None = None
    path = f"/api/conversations/{conversation}"
    async with aclosing(_lines(port, _request("GET", f"{path}/events"))) as lines:
        async for line in lines:
            if line.startswith(b"event: snapshot"):
                speaking = asyncio.create_task(_post(port, f"{path}/turns", {"text": "go"}))
            elif line.startswith(b"event: turn.end"):
                break
            heard.note(line)
    assert speaking is not None
    await speaking


async def _client_of_bare(port: int, heard: Heard) -> None:
    async with aclosing(_lines(port, _request("GET", "/"))) as lines:
        async for line in lines:
            heard.note(line)


async def _disturb(port: int) -> None:
    """Open, search and delete the long conversation."""
    async with aclosing(_lines(port, _request("GET", f"/api/conversations/{LONG}/events"))) as lines:
        async for line in lines:
            if b'"revision":' in line:  # with which the snapshot ends
                break
    for method, path in (
        ("GET", f"/api/conversations/{LONG}/tree"),
        ("GET", "/api/conversations?search=needle"),
        ("DELETE", f"/api/conversations/{LONG}"),
    ):
        status, *_ = [line async for line in _lines(port, _request(method, path))]
        assert b" 20" in status, status


# ── one run ───────────────────────────────────────────────────────────────────────────────────────


class Served:
    """A server in a separate process."""

    def __init__(self, who: str, pieces: int, port: int) -> None:
        self.port, self.pieces = port, pieces
        self.client = _client_of_ours if who == "dragoman" else _client_of_bare
        command = [sys.executable, __file__, "--serve", who, "--port", str(port), "--pieces", str(pieces)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def used(self) -> dict[str, float]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write("\n")
        stdin.flush()
        used: dict[str, float] = json.loads(stdout.readline())
        return used

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@asynccontextmanager
async def serving(who: str, pieces: int) -> AsyncIterator[Served]:
    """Warmed up by one client."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    served = Served(who, pieces, port)
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                await asyncio.sleep(0.05)
        await served.client(port, Heard())
        yield served
    finally:
        await asyncio.to_thread(served.close)


async def streams(who: str, clients: int, pieces: int = PIECES) -> dict[str, float]:
    """Run this number of clients, each with a separate turn."""
    async with serving(who, pieces) as served:
        before, began = served.used(), time.perf_counter()
        heard = [Heard() for _ in range(clients)]
        await asyncio.gather(*(served.client(served.port, one) for one in heard))
        seconds, after = time.perf_counter() - began, served.used()
    if who == "dragoman":
        wrong = sum("".join(one.pieces) != text_of(pieces) for one in heard)
        assert not wrong, f"{wrong} of {clients} clients lost or doubled something"
    return {
        "cpu": after["cpu"] - before["cpu"],
        "megabytes": after["megabytes"],
        "seconds": seconds,
        "pieces": sum(len(one.pieces) for one in heard),
    }


async def _run(*arguments: str) -> None:
    """Start this program next to the measuring one: reading a long conversation in this process would delay
    the clients whose chunks are timed."""
    process = await asyncio.create_subprocess_exec(sys.executable, __file__, *arguments)
    assert await process.wait() == 0, f"{' '.join(arguments)} failed"


async def lateness(clients: int, *, disturbed: bool) -> tuple[float, float, float]:
    """Return by how many seconds chunks were late while all clients received some: the latest, that of one in
    a thousand, and that of one in a hundred."""
    async with serving("dragoman", PIECES) as served:
        heard = [Heard() for _ in range(clients)]
        listening = [asyncio.create_task(served.client(served.port, one)) for one in heard]
        while not all(len(one.pieces) > 2 for one in heard):  # noqa: ASYNC110 - they tell nobody
            await asyncio.sleep(0.01)
        begin = time.perf_counter()
        if disturbed:
            await _run("--disturb", "--port", str(served.port))
        await asyncio.gather(*listening)
    end = min(one.times[-1] for one in heard)
    late = sorted(gap - PAUSE for one in heard for gap in one.gaps(begin, end))
    return late[-1], late[-1 - len(late) // 1000], late[-1 - len(late) // 100]


def main(clients: int) -> None:
    from rich.console import Console  # imported here, so that neither server is measured with it
    from rich.table import Table

    console = Console()
    _allow_files(clients)
    console.print(f"load before: {_load()}")
    ours, plain = (asyncio.run(streams(who, clients)) for who in ("dragoman", "bare"))
    own, other = (asyncio.run(streams(who, clients, 1)) for who in ("dragoman", "bare"))
    table = Table(
        "", "dragoman", "bare uvicorn", "ratio", title=f"{clients} turns streamed to {clients} clients"
    )
    for row in _rows(ours, plain, own, other):
        table.add_row(*row)
    console.print(table, f"{ours['pieces']:,.0f} pieces: none lost, none doubled.\n")

    streaming = min(clients, 100)
    title = f"how late pieces were, for {streaming} clients that get 20 a second"
    table = Table("", "the latest", "one in 1,000", "one in 100", title=title)
    for name, disturbed in (("quiet", False), (f"{MESSAGES:,} messages opened, searched, deleted", True)):
        late = asyncio.run(lateness(streaming, disturbed=disturbed))
        table.add_row(name, *(f"{1000 * one:.0f} ms" for one in late))
    console.print(table)
    console.print(f"load after: {_load()}")


def _rows(
    ours: dict[str, float], plain: dict[str, float], own: dict[str, float], other: dict[str, float]
) -> Iterator[tuple[str, str, str, str]]:
    for name, unit in (("seconds", "s"), ("cpu", "s"), ("megabytes", "MB")):
        one, two = ours[name], plain[name]
        yield name, f"{one:.1f} {unit}", f"{two:.1f} {unit}", f"×{one / two:.1f}"
    whole = [1e6 * run["cpu"] / run["pieces"] for run in (ours, plain)]
    yield (
        "CPU a piece, of the whole",
        f"{whole[0]:.0f} µs",
        f"{whole[1]:.0f} µs",
        f"×{whole[0] / whole[1]:.1f}",
    )
    more = [
        1e6 * (run["cpu"] - one["cpu"]) / (run["pieces"] - one["pieces"])
        for run, one in ((ours, own), (plain, other))
    ]
    yield "CPU a piece, one more", f"{more[0]:.0f} µs", f"{more[1]:.0f} µs", f"×{more[0] / more[1]:.1f}"


def _load() -> str:
    return ", ".join(f"{one:.1f}" for one in os.getloadavg())


def _allow_files(clients: int) -> None:
    """Each client is a file descriptor, in this process and in the server."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(soft, clients * 4 + 200)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard) if hard > 0 else wanted, hard))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--serve", choices=["dragoman", "bare"])
    parser.add_argument("--disturb", action="store_true")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--pieces", type=int, default=PIECES)
    parser.add_argument("--clients", type=int, default=500)
    order = parser.parse_args()
    if order.serve:
        asyncio.run({"dragoman": dragoman, "bare": bare}[order.serve](order.port, order.pieces))
    elif order.disturb:
        os.nice(10)  # it represents another machine: it must not use the core of the timed clients
        asyncio.run(_disturb(order.port))
    else:
        main(order.clients)
