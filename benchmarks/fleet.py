"""`make bench-fleet`: measure the speed of a fleet, as ratios in one run: more workers, PostgreSQL against
SQLite, the delay until a follower at another node receives a chunk, and the duration of a take-over.

Everything runs on this machine, including the database, which flushes to the disk. Stores alternate, and
the best of three runs counts. `--streams` is the number of concurrent turns with which the delay is
measured first, at 50 chunks a second each. The number then doubles until `--most`, or until half of the
chunks are a second late.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Sequence

from nodes import bench_node, bench_nodes, machine, server_cpu
from rich.console import Console
from rich.table import Table
from tests.postgres import Server, served

REPEATS = 3
PLACES = 4  # concurrent turns in a worker: few, so that slots run out before the cores do
SERVICE = 1.0  # seconds that a model takes for a turn
PACE = 0.02  # seconds between two chunks
LATE = 1.0  # seconds of delay at which a fleet is saturated


async def workers(server: Server) -> Table:
    """Check whether twice the workers run twice the turns. A worker has a fixed number of slots, and turns
    wait for the model."""
    table = Table("workers", "turns/s", "×", "of what fits", "pieces/s", "×", title="more workers")
    first: tuple[float, float] | None = None
    for count in (1, 2, 3):
        url = server.url(f"workers_{count}")
        async with bench_nodes(url, "web", *["worker"] * count, places=PLACES) as (web, *_):
            await web.do(text="sleep 0.05", count=8, at_once=4)
            turns = PLACES * count * 4
            heard = await web.do(text=f"sleep {SERVICE}", count=turns, at_once=PLACES * count * 2)
            rate = turns / heard["seconds"]
            heard = await web.do(text=f"stream 100 {PACE}", count=PLACES * count, at_once=PLACES * count)
            pieces = heard["pieces"] / heard["seconds"]
        first = first or (rate, pieces)
        fits = PLACES * count / SERVICE
        table.add_row(
            str(count),
            f"{rate:.2f}",
            f"×{rate / first[0]:.2f}",
            f"{rate / fits:.0%}",
            f"{pieces:,.0f}",
            f"×{pieces / first[1]:.2f}",
        )
    return table


async def stores(server: Server) -> Table:
    """One process that runs its own turns, ten rounds each, on either store."""
    table = Table("a tool round on", "wall", "CPU of the process", "CPU of the server", title="the store")
    found: dict[str, list[tuple[float, float, float]]] = {"SQLite": [], "PostgreSQL": []}
    with tempfile.TemporaryDirectory() as folder:
        addresses = {"SQLite": f"{folder}/chat.db", "PostgreSQL": server.url("stores")}
        for _ in range(REPEATS):
            for name, address in addresses.items():
                async with bench_node(address, "alone") as node:
                    await node.do(text="rounds 10", count=2, at_once=1)
                    before, at_server = await node.cpu(), server_cpu(server)
                    heard = await node.do(text="rounds 10", count=6, at_once=1)
                    spent = (heard["seconds"], heard["cpu"] - before, server_cpu(server) - at_server)
                    found[name].append((spent[0] / 60, spent[1] / 60, spent[2] / 60))
    best = {name: [min(column) for column in zip(*rows, strict=True)] for name, rows in found.items()}
    for name, (wall, cpu, at_server) in best.items():
        shown = [f"{1000 * one:.1f} ms ×{one / best['SQLite'][n]:.1f}" for n, one in enumerate((wall, cpu))]
        table.add_row(name, *shown, "" if name == "SQLite" else f"{1000 * at_server:.1f} ms")
    return table


async def delays(server: Server, streams: int, most: int) -> Table:
    """Measure from a worker's chunk to a follower at a web node, through the database."""
    table = Table(
        "streams", "pieces/s", "p50", "p99", "web", "workers", "server", title="delay; cores that are busy"
    )
    url = server.url("delays")
    async with bench_nodes(url, "web", "worker", "worker", places=most) as (web, *two):
        await web.do(text=f"stream 50 {PACE}", count=8, at_once=8)
        while streams <= most:
            before = [await web.cpu(), sum([await one.cpu() for one in two]), server_cpu(server)]
            heard = await web.do(text=f"stream 250 {PACE}", count=streams, at_once=streams)
            after = [heard["cpu"], sum([await one.cpu() for one in two]), server_cpu(server)]
            busy = [f"{(b - a) / heard['seconds']:.2f}" for a, b in zip(before, after, strict=True)]
            assert heard["pieces"] == streams * 250, f"{heard['pieces']} of {streams * 250} pieces came"
            p50, p99 = (_quantile(heard["delays"], part) for part in (0.5, 0.99))
            rate = heard["pieces"] / heard["seconds"]
            table.add_row(str(streams), f"{rate:,.0f}", f"{p50 * 1000:.0f} ms", f"{p99 * 1000:.0f} ms", *busy)
            if p50 > LATE:
                break
            streams *= 2
    return table


def _quantile(ordered: Sequence[float], part: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] if ordered else float("nan")


async def take_overs(server: Server, times: int = 4) -> Table:
    """Kill a worker in the middle of a stream, and measure the longest silence for a follower."""
    table = Table("killed", "until the next event", title="take-over")
    url = server.url("take_overs")
    async with bench_nodes(url, "web", "worker") as (web, _):
        for number in range(times):
            async with bench_node(url, "worker") as victim:
                turns = asyncio.create_task(web.do(text=f"stream 100 {PACE}", count=6, at_once=6))
                await asyncio.sleep(1.0)
                victim.process.kill()
                gap = (await turns)["longest_gap"]
                table.add_row(str(number + 1), f"{gap:.1f} s")
    return table


async def run(streams: int, most: int, parts: Sequence[str]) -> None:
    console = Console()
    with served(durable=True) as server:
        for name, part in {
            "workers": lambda: workers(server),
            "stores": lambda: stores(server),
            "delays": lambda: delays(server, streams, most),
            "take-overs": lambda: take_overs(server),
        }.items():
            if not parts or name in parts:
                console.print(await part())
    console.print(machine())


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    words.add_argument("parts", nargs="*", help="workers, stores, delays, take-overs: all, if none is named")
    words.add_argument("--streams", type=int, default=5)
    words.add_argument("--most", type=int, default=40)
    wanted = words.parse_args()
    asyncio.run(run(wanted.streams, wanted.most, wanted.parts))


if __name__ == "__main__":
    main()
