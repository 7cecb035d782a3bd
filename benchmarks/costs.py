"""Measure the cost of a turn, a token, a follower and a node on a small local fleet. With `--write FILE`, its
table in the docs is replaced.

Each line is a difference: turns with more of it minus turns with less of it, without what the nodes use
when idle. CPU is counted, not time, because other processes can use the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodes import BenchNode, bench_nodes, machine, replace_part, server_cpu
from tests.postgres import Server, served

from dragoman.store.postgres.store import PostgresStore

IDLE = 8.0  # seconds
QUIET = 35.0  # seconds until the events of ended turns have been dropped
WAITING = 100_000  # turns
SETTLE = 1.5  # seconds until the server shows its counters
_BEGIN, _END = "<!-- costs: written by benchmarks/costs.py -->", "<!-- end of costs -->"


@dataclass(slots=True, frozen=True)
class Spent:
    """CPU and database use of something, or until a moment."""

    web: float  # seconds of CPU
    worker: float
    server: float
    transactions: float
    rows: float  # inserted, changed or deleted
    wal: float  # bytes that a disk and a replica must take
    seconds: float = 0.0

    def __sub__(self, other: Spent) -> Spent:
        return Spent(*(getattr(self, name) - getattr(other, name) for name in self.__slots__))

    def __mul__(self, times: float) -> Spent:
        return Spent(*(getattr(self, name) * times for name in self.__slots__))


class Meter:
    """Reads what nodes and database have used so far."""

    def __init__(self, server: Server, db: Any, web: BenchNode, workers: list[BenchNode]) -> None:
        self.server, self.db, self.web, self.workers = server, db, web, workers
        self.idle = Spent(0, 0, 0, 0, 0, 0)

    async def now(self) -> Spent:
        await asyncio.sleep(SETTLE)
        row = await self.db.fetchrow(
            "SELECT xact_commit + xact_rollback AS transactions, "
            "tup_inserted + tup_updated + tup_deleted AS rows, "
            "pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 AS wal "
            "FROM pg_stat_database WHERE datname = current_database()"
        )
        return Spent(
            await self.web.cpu(),
            sum([await worker.cpu() for worker in self.workers]),
            server_cpu(self.server),
            float(row["transactions"]),
            float(row["rows"]),
            row["wal"],
            asyncio.get_running_loop().time(),
        )

    async def by(self, work: Callable[[], Awaitable[object]], count: int) -> Spent:
        """Return the share of one, without what the nodes use when idle."""
        before = await self.now()
        await work()
        spent = await self.now() - before
        return (spent - self.idle * spent.seconds) * (1 / count)

    async def measure_idle(self) -> Spent:
        await asyncio.sleep(QUIET)
        before = await self.now()
        await asyncio.sleep(IDLE)
        spent = await self.now() - before
        self.idle = spent * (1 / spent.seconds)
        return self.idle


async def measure(server: Server) -> list[str]:
    import asyncpg

    url = server.url("costs")
    db = await asyncpg.connect(url.partition("&schema")[0])
    try:
        lines: list[str] = []
        async with bench_nodes(url, "web", "worker") as (web, worker):
            meter = Meter(server, db, web, [worker])

            async def talk(text: str, count: int, at_once: int = 4, followers: int = 1) -> Spent:
                return await meter.by(
                    lambda: web.do(text=text, count=count, at_once=at_once, followers=followers), count
                )

            await talk("rounds 1", 20)  # statements are prepared, caches are warm
            await talk("stream 20 0.02", 8)
            lines.append(_line("idle web server and worker, per second", await meter.measure_idle()))
            size = await _size(db)
            turn = await talk("rounds 0", 40)
            lines.append(_line("a turn without tools, sent and followed on one web server", turn))
            disk = (await _size(db) - size) / 40
            lines.append(_line("one more tool round", (await talk("rounds 6", 12) - turn) * (1 / 6)))
            few = await talk("stream 20 0.02", 16, at_once=16)
            many = await talk("stream 120 0.02", 16, at_once=16)
            lines.append(_line("one more text chunk, 16 turns streaming 50 per second", (many - few) * 0.01))
            followed = await talk("stream 120 0.02", 16, at_once=16, followers=3)
            lines.append(
                _line("the same chunk for one more follower on that server", (followed - many) * (1 / 240))
            )
            await talk("ask 1", 40)
            connections = await db.fetchval(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'dragoman%'"
            )
            memory = [node["mb"] for node in (await web.do(), await worker.do())]
        lines += [
            "",
            f"On disk, with indexes: {disk / 1024:.0f} kB per turn of two short messages. "
            f"Connections: {connections} for these two nodes under this load. "
            f"Memory: {memory[0]:.0f} MB for the web node, {memory[1]:.0f} MB for the worker. "
            "A turn that waits for a user costs its rows and the scans that skip it.",
            "",
            await looks(server, db),
        ]
        return lines
    finally:
        await db.close()


async def looks(server: Server, db: Any) -> str:
    """Measure the work of every node each five seconds, with very many turns that wait for users."""
    store = PostgresStore(server.url("costs"))
    await store.open()
    try:
        await db.execute(
            "SET search_path = costs; INSERT INTO turns (id, conversation, message, state, created) "
            "SELECT 'turn_waits_' || n, conversation, message, 'waiting', n "
            f"FROM generate_series(1, {WAITING}) n, (SELECT conversation, message FROM turns LIMIT 1) one; "
            "ANALYZE turns"
        )
        spent = {}
        for name, waiting in (("without", False), ("with", True)):
            began, at_server = time.process_time(), server_cpu(server)
            for _ in range(5):
                await store.abandoned_turns(waiting=waiting)
            used = (time.process_time() - began, server_cpu(server) - at_server)
            spent[name] = " and ".join(f"{one / 5 * 1000:.0f} ms" for one in used)
        return (
            f"Every five seconds, each server scans for turns that no process runs. With {WAITING:,} waiting "
            f"turns in the store, a scan costs {spent['without']} of CPU in the "
            "server and in PostgreSQL. If it "
            f"read the waiting turns too, it would cost {spent['with']}."
        )
    finally:
        await store.close()


async def _size(db: Any) -> float:
    return float(await db.fetchval("SELECT pg_database_size(current_database())"))


def _line(name: str, one: Spent) -> str:
    cpu = (_cpu(seconds) for seconds in (one.web, one.worker, one.server))
    counts = f"{_short(one.transactions)} | {_short(one.rows)} | {_short(one.wal / 1024)}"
    return f"| {name} | {' | '.join(cpu)} | {counts} |"


def _cpu(seconds: float) -> str:
    return f"{_short(seconds * 1000)} ms"


def _short(number: float) -> str:
    if number < 0.005:
        return "0"
    return f"{number:.2f}" if number < 1 else f"{number:.1f}" if number < 100 else f"{number:,.0f}"


def table(lines: list[str]) -> str:
    names = ("", "web node", "worker", "PostgreSQL", "transactions", "rows written", "kB of log")
    head = f"|{'|'.join(f' {name} ' if name else ' ' for name in names)}|\n{'|---' * len(names)}|"
    return "\n".join([head, *lines, "", f"Measured: {machine()}."])


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    words.add_argument("--write", type=Path, help="a file with a table of these")
    wanted = words.parse_args()
    with served(durable=True) as server:
        text = table(asyncio.run(measure(server)))
    print(text)
    if wanted.write is not None:
        replace_part(wanted.write, _BEGIN, text, _END)


if __name__ == "__main__":
    main()
