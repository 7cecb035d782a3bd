"""Many at once: turns stream to as many clients from one process; against uvicorn that sends the same bytes.

The clients check that each gets every piece once and in order. CPU and memory are the server process's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import uvicorn

PIECES = 200  # of one answer
PAUSE = 0.05  # seconds between two of them
TEXT = "".join(f"{n:07d} " for n in range(PIECES))  # a piece is eight characters


# ── the two servers ───────────────────────────────────────────────────────────────────────────────


async def dragoman(port: int) -> None:
    """Ours, whole: a store on disk, a turn a client, the guard and the door before it."""
    # imported here: the bare server is measured without it
    from dragoman import Runtime, ScriptedModel
    from dragoman.server.app import server
    from dragoman.server.auth import Auth
    from dragoman.wire.scripted import says

    with tempfile.TemporaryDirectory() as folder:
        model = ScriptedModel(lambda _: says(TEXT, waits=PAUSE))
        async with Runtime(f"{folder}/chat.db", model=model) as runtime:
            auth = Auth(runtime.store, b"0" * 32, token="load")
            await _serve(server(runtime, auth), port)


async def bare(port: int) -> None:
    """What uvicorn needs to send the same: frames of the same size, at the same pace, made beforehand."""
    data = {"turn": "turn_0123456789abcdef", "text": "0000000 ", "seq": 12345, "type": "text.delta"}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for n in range(PIECES):
            frame = f"id: aaaaaaaa:{n}\nevent: text.delta\ndata: {json.dumps(data)}\n\n".encode()
            await send({"type": "http.response.body", "body": frame, "more_body": True})
            await asyncio.sleep(PAUSE)
        await send({"type": "http.response.body", "body": b"event: turn.end\ndata: {}\n\n"})

    await _serve(app, port)


async def _serve(app: Any, port: int) -> None:
    config = uvicorn.Config(
        app, port=port, log_level="warning", lifespan="off", backlog=4096, timeout_graceful_shutdown=1
    )
    running = uvicorn.Server(config)
    started = time.process_time()
    asyncio.get_running_loop().add_reader(sys.stdin, lambda: setattr(running, "should_exit", True))
    await running.serve()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"cpu": time.process_time() - started, "megabytes": peak}), flush=True)


# ── the clients ───────────────────────────────────────────────────────────────────────────────────


async def _lines(port: int, request: bytes) -> AsyncGenerator[bytes, None]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
    writer.write(request)
    try:
        while line := await reader.readline():
            yield line
    finally:
        writer.close()


def _request(method: str, path: str, body: str = "") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer load\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n{body}".encode()


async def _post(port: int, path: str, body: dict[str, str]) -> Any:
    lines = [line async for line in _lines(port, _request("POST", path, json.dumps(body)))]
    return json.loads(lines[-1])


async def _client_of_ours(port: int) -> list[str]:
    """Makes a conversation, listens, says something, and hears it out."""
    conversation = (await _post(port, "/api/conversations", {}))["id"]
    heard: list[str] = []
    speaking: asyncio.Task[Any] | None = None
    path = f"/api/conversations/{conversation}"
    async with aclosing(_lines(port, _request("GET", f"{path}/events"))) as lines:
        async for line in lines:
            if line.startswith(b"event: snapshot"):
                speaking = asyncio.create_task(_post(port, f"{path}/turns", {"text": "go"}))
            elif line.startswith(b"event: turn.end"):
                break
            _note(line, heard)
    assert speaking is not None
    await speaking
    return heard


async def _client_of_bare(port: int) -> list[str]:
    heard: list[str] = []
    async with aclosing(_lines(port, _request("GET", "/"))) as lines:
        async for line in lines:
            _note(line, heard)
    return heard


def _note(line: bytes, heard: list[str]) -> None:
    if line.startswith(b"data: ") and b'"text.delta"' in line:
        heard.append(json.loads(line[6:])["text"])


# ── one run ───────────────────────────────────────────────────────────────────────────────────────


async def _measured(who: str, clients: int) -> dict[str, float]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, __file__, "--serve", who, "--port", str(port)]
    process = subprocess.Popen(  # noqa: ASYNC220 - nothing runs beside it yet
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except OSError:
            await asyncio.sleep(0.05)
    client = _client_of_ours if who == "dragoman" else _client_of_bare
    began = time.perf_counter()
    heard = await asyncio.gather(*(client(port) for _ in range(clients)))
    seconds = time.perf_counter() - began
    pieces = sum(len(one) for one in heard)
    if who == "dragoman":
        wrong = sum("".join(one) != TEXT for one in heard)
        assert not wrong, f"{wrong} of {clients} clients lost or doubled something"
    process.stdin.close()
    told: dict[str, float] = json.loads(process.stdout.readline())
    process.wait()
    return {**told, "seconds": seconds, "pieces": pieces}


def main(clients: int) -> None:
    from rich.console import Console  # imported here: neither server is measured with it
    from rich.table import Table

    _allow_files(clients)
    ours, plain = (asyncio.run(_measured(who, clients)) for who in ("dragoman", "bare"))
    table = Table(
        "", "dragoman", "bare uvicorn", "ratio", title=f"{clients} turns streamed to {clients} clients"
    )
    for name, unit in (("seconds", "s"), ("cpu", "s"), ("megabytes", "MB")):
        one, other = ours[name], plain[name]
        table.add_row(name, f"{one:.1f} {unit}", f"{other:.1f} {unit}", f"×{one / other:.1f}")
    each = [1e6 * run["cpu"] / run["pieces"] for run in (ours, plain)]
    table.add_row("CPU a piece", f"{each[0]:.0f} µs", f"{each[1]:.0f} µs", f"×{each[0] / each[1]:.1f}")
    console = Console()
    console.print(table)
    console.print(f"{ours['pieces']:,.0f} pieces: none lost, none doubled.")


def _allow_files(clients: int) -> None:
    """Each client is a file to the system, here and there."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(soft, clients * 4 + 200)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard) if hard > 0 else wanted, hard))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--serve", choices=["dragoman", "bare"])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--clients", type=int, default=500)
    order = parser.parse_args()
    if order.serve:
        asyncio.run({"dragoman": dragoman, "bare": bare}[order.serve](order.port))
    else:
        main(order.clients)
