"""Measure what readers of one conversation cost a web node: a thousand HTTP clients while one turn streams.

CPU of the node is counted. Each client checks that it receives every chunk once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path

import aiohttp
from nodes import machine, server_cpu
from sizes import _cpu
from tests.fleet import Fleet, Node, node, worker
from tests.loopback import Body, loopback
from tests.postgres import Server, served

from dragoman.wire.scripted import Line, says

PIECES, WAITS = 100, 0.2


def act(_: Body) -> Line:
    return says("word " * PIECES, waits=WAITS)


async def read(one: Node, conversation: str, ready: asyncio.Event, late: list[float]) -> int:
    """Return the number of received words. `late` gets the time of the last."""
    text, kind = "", b""
    timeout = aiohttp.ClientTimeout(total=None)
    async with one.http.get(f"/api/conversations/{conversation}/events", timeout=timeout) as stream:
        async for line in stream.content:
            if line.startswith(b"event: "):
                kind = line[7:].strip()
                if kind == b"snapshot":
                    ready.set()
            elif line.startswith(b"data: ") and kind == b"text.delta":
                text += json.loads(line[6:])["text"]
            if kind == b"turn.end":
                late.append(time.monotonic())
                break
    return text.count("word ")


async def measure(server: Server, readers: int) -> str:
    async with loopback(act) as model:
        with tempfile.TemporaryDirectory() as folder:
            fleet = Fleet(Path(folder), server.url("readers"), model.url)
            async with node(fleet, "web") as web, worker(fleet):
                limits = aiohttp.TCPConnector(limit=0)
                async with aiohttp.ClientSession(web.url, headers=web.http.headers, connector=limits) as http:
                    one = Node(web.process, web.url, web.token, http)
                    id = (await one.post("/api/conversations", {}))["id"]
                    ready, late = [asyncio.Event() for _ in range(readers)], list[float]()
                    reading = []
                    # one after the other: so many unauthenticated clients of one address would exceed a limit
                    for each in ready:
                        reading.append(asyncio.create_task(read(one, id, each, late)))
                        await each.wait()
                    await asyncio.sleep(3)
                    spent, at_server, began = _cpu(web.process.pid), server_cpu(server), time.monotonic()
                    await one.post(f"/api/conversations/{id}/turns", {"text": "go"})
                    found = await asyncio.gather(*reading)
                    took = time.monotonic() - began
                    spent, at_server = _cpu(web.process.pid) - spent, server_cpu(server) - at_server
    right = sum(count == PIECES for count in found)
    return (
        f"{readers:,} readers, {PIECES} pieces in {took:.1f} s (the model took {PIECES * WAITS:.0f}): "
        f"web node {spent:.2f} s of CPU, {spent / readers / PIECES * 1e6:.0f} µs a piece and reader, "
        f"PostgreSQL {at_server:.2f} s; {right:,} readers got every piece once; "
        f"the last end came {max(late) - min(late):.2f} s after the first"
    )


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    words.add_argument("readers", type=int, nargs="*", default=[1, 100, 1000])
    for readers in words.parse_args().readers:
        with served() as server:
            print(asyncio.run(measure(server, readers)), flush=True)
    print(f"Measured: {machine()}.")


if __name__ == "__main__":
    main()
