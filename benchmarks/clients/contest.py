"""Run a number of turns of a scenario, timed by CPU, and print one JSON line. Every contestant uses this."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable

Turn = Callable[[], Awaitable[int]]  # one turn; returns the number of text chunks


def url() -> str:
    return sys.argv[1]


def model() -> str:
    return sys.argv[2]


async def measure(turn: Turn) -> None:
    turns = int(sys.argv[3])
    for _ in range(2):
        await turn()
    cpu, loop, wall = time.process_time(), time.thread_time(), time.perf_counter()
    seen = 0
    for _ in range(turns):
        seen += await turn()
    spent = {
        "cpu": (time.process_time() - cpu) / turns,
        "loop": (time.thread_time() - loop) / turns,  # of this, the CPU of the event loop's thread
        "wall": (time.perf_counter() - wall) / turns,
        "seen": seen / turns,
    }
    print(json.dumps(spent))


def run(main: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(main())  # type: ignore[arg-type]
