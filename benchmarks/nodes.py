"""Nodes of a fleet for benchmarks: processes that share a separate PostgreSQL, and the resources that each
uses.

A node is the library's `Runtime` in a role, with a model in the process, so that neither a provider nor
HTTP is measured. Its commands arrive as lines of JSON on its standard input.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import resource
import subprocess
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.postgres import Server

from dragoman import Runtime, tool
from dragoman.messages import events as e
from dragoman.messages.request import Request, RequestMessage
from dragoman.messages.usage import Usage
from dragoman.turn.drivers.jobs import TurnLimits
from dragoman.wire.scripted import Line, ScriptedModel, calls

_TICKS = os.sysconf("SC_CLK_TCK")


def _machine_ticks() -> tuple[int, int]:
    """Return all seconds of CPU, and those that the host of a virtual machine gave to others."""
    fields = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return sum(fields), fields[7]


_BEGUN = _machine_ticks()

# ── in a node ─────────────────────────────────────────────────────────────────────────────────────


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def pay(amount: int) -> str:
    """Pay it."""
    return "paid"


class BenchModel(ScriptedModel):
    """Act as the last message says: `rounds 3`, `sleep 0.5`, `ask 1`, or `stream 100 0.02`: this many chunks,
    with this many seconds between them. Each chunk contains its time of sending."""

    def __init__(self) -> None:
        super().__init__([], name="bench/model")

    def check_options(self, options: Mapping[str, Any]) -> None:
        pass

    async def stream(self, request: Request, reply: str) -> AsyncGenerator[Sequence[e.Event], None]:
        last = max(at for at, message in enumerate(request.messages) if message.role == "user")
        kind, number, *rest = _text(request.messages[last]).split()
        rounds = len(request.messages) - last - 1
        line = Line("done")
        if kind == "rounds" and rounds < int(number):
            line = calls("add", a=rounds, b=2)
        elif kind == "ask" and not rounds:
            line = calls("pay", amount=1)
        elif kind == "sleep":
            await asyncio.sleep(float(number))
        elif kind == "stream":
            began = asyncio.get_running_loop().time()
            yield (e.TextStart(),)
            for count in range(int(number)):
                at = began + count * float(rest[0])
                await asyncio.sleep(max(0.0, at - asyncio.get_running_loop().time()))
                yield (e.TextDelta(f"{time.monotonic():.4f} "),)
            yield (e.TextEnd(), e.MessageEnd("stop", Usage(input=10, output=5)))
            return
        for event in self._events(line, reply):
            yield (event,)
        yield (e.MessageEnd("tool_calls" if line.calls else "stop", line.usage),)


def _text(message: RequestMessage) -> str:
    return "".join(part.text for part in message.parts if part.type == "text")


async def be_node(store: str, role: str, places: int) -> None:
    """Run until standard input ends."""
    runtime = Runtime(
        store,
        model=BenchModel(),
        tools=[add, pay],
        allow=["add"],
        ask=["pay"],
        max_rounds=1000,
        role=None if role == "alone" else role,  # type: ignore[arg-type]
        turn_limits=None if role == "alone" else TurnLimits(per_node=places),
    )
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    async with runtime:
        print(json.dumps({"ready": role}), flush=True)
        while line := await reader.readline():
            wanted = json.loads(line)
            found = await _talk(runtime, **wanted) if wanted else {}
            usage = resource.getrusage(resource.RUSAGE_SELF)
            print(json.dumps({**found, "cpu": usage.ru_utime + usage.ru_stime, "mb": _memory()}), flush=True)


async def _talk(runtime: Runtime, text: str, count: int, at_once: int, followers: int = 1) -> dict[str, Any]:
    """Run this number of turns, each in a separate conversation, until they end or wait for a user."""
    left = iter(range(count))
    delays: list[float] = []
    pieces = 0
    gaps: list[float] = []  # the longest time without an event, for each turn

    async def follow(turn: str) -> None:
        nonlocal pieces
        last, longest = time.monotonic(), 0.0
        async for event in runtime.turn(turn).events():
            now = time.monotonic()
            if isinstance(event, e.TextDelta):
                pieces += 1
                for sent in event.text.split()[:1]:
                    if sent.replace(".", "", 1).isdigit():
                        delays.append(now - float(sent))
            if isinstance(event, e.CallAsked):
                return
            longest = max(longest, now - last)
            last = now
        gaps.append(longest)

    async def person() -> None:
        for _ in left:
            turn = await runtime.send(text)
            await asyncio.gather(*(follow(turn.id) for _ in range(followers)))

    began = time.monotonic()
    await asyncio.gather(*(person() for _ in range(at_once)))
    return {
        "seconds": time.monotonic() - began,
        "pieces": pieces,
        "delays": sorted(delays),
        "longest_gap": max(gaps, default=0.0),
    }


def _memory() -> float:
    """MB that the process has in memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


# ── in the bench ──────────────────────────────────────────────────────────────────────────────────


@dataclass
class BenchNode:
    """One process."""

    role: str
    process: Process

    async def do(self, **what: Any) -> dict[str, Any]:
        """Return its result, and what the process has used since it began."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(what).encode() + b"\n")
        return await self.hear()

    async def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        if not line:
            raise SystemExit(f"a node in the role {self.role} ended")
        heard: dict[str, Any] = json.loads(line)
        return heard

    async def cpu(self) -> float:
        return float((await self.do())["cpu"])


@asynccontextmanager
async def bench_node(store: str, role: str, places: int = 32) -> AsyncIterator[BenchNode]:
    words = (sys.executable, __file__, store, role, str(places))
    process = await asyncio.create_subprocess_exec(*words, stdin=PIPE, stdout=PIPE, limit=1 << 26)
    node = BenchNode(role, process)
    try:
        await node.hear()
        yield node
    finally:
        if process.returncode is None:
            assert process.stdin is not None
            process.stdin.close()
            try:
                async with asyncio.timeout(30):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()


@asynccontextmanager
async def bench_nodes(store: str, *roles: str, places: int = 32) -> AsyncIterator[list[BenchNode]]:
    async with AsyncExitStack() as running:
        yield [await running.enter_async_context(bench_node(store, role, places)) for role in roles]


def server_cpu(server: Server) -> float:
    """Return the CPU seconds that all processes of the PostgreSQL server have used, including ended ones."""
    postmaster = int((server.folder / "data" / "postmaster.pid").read_text().split()[0])
    spent = 0
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = entry.read_text()
        except OSError:  # it has just ended
            continue
        fields = text.rpartition(")")[2].split()
        if int(entry.parent.name) == postmaster:
            spent += sum(map(int, fields[11:15]))  # of the process, and of its ended children
        elif int(fields[1]) == postmaster:
            spent += sum(map(int, fields[11:13]))
    return spent / _TICKS


def replace_part(file: Path, begin: str, text: str, end: str) -> None:
    """Between two marks of a page."""
    pattern = re.compile(f"{re.escape(begin)}.*{re.escape(end)}", re.DOTALL)
    replaced = pattern.sub(lambda _: f"{begin}\n{text}\n{end}", file.read_text("utf-8"))
    file.write_text(replaced, "utf-8")


def machine() -> str:
    """Return where this was measured, and when: a line for the docs."""
    git = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    python = ".".join(map(str, sys.version_info[:3]))
    all, stolen = (now - then for now, then in zip(_machine_ticks(), _BEGUN, strict=True))
    return (
        f"{time.strftime('%d %B %Y').lstrip('0')}, Python {python}, {os.cpu_count()} cores of a virtual "
        f"machine that others use, too (load {os.getloadavg()[0]:.0f}, its host took "
        f"{stolen / max(all, 1):.0%} of the time), commit {commit}"
    )


if __name__ == "__main__":
    asyncio.run(be_node(sys.argv[1], sys.argv[2], int(sys.argv[3])))
