"""What grows and what does not: turns of a long conversation, many conversations at once, the import."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time

from dragoman import Runtime, ScriptedModel
from dragoman.conversation.window import window
from dragoman.messages.request import Request
from dragoman.wire.scripted import Line, says


async def long_conversation() -> None:
    """CPU of a turn after 10 messages and after 10,000, less what the request itself takes."""
    with tempfile.TemporaryDirectory() as folder:
        async with Runtime(
            f"{folder}/chat.db", model=ScriptedModel(lambda _: says("fine")), compact_at=None
        ) as runtime:
            chat = await runtime.conversation()
            costs = {}
            for size in (10, 10_000):
                while len(await chat.tree() if size == 10 else range(size)) < size:
                    await (await chat.send("hello")).result()
                if size > 10:
                    for _ in range(size // 2 - 10):
                        await (await chat.send("hello")).result()
                costs[size] = await _turn_cost(runtime, chat)
    short, long = costs[10], costs[10_000]
    print(f"a turn after 10,000 messages costs ×{long / short:.2f} of one after 10 (requests aside)")


async def _turn_cost(runtime: Runtime, chat) -> float:  # type: ignore[no-untyped-def]
    path = await chat.messages()
    cpu = time.process_time()
    for _ in range(20):
        window(path)
    request = (time.process_time() - cpu) / 20
    cpu = time.process_time()
    for _ in range(20):
        await (await chat.send("hello")).result()
    return (time.process_time() - cpu) / 20 - request


async def many_at_once(count: int = 1000) -> None:
    """So many conversations streaming at the same time, in one process."""

    def script(_: Request) -> Line:
        return says("word " * 80, waits=0.02)

    with tempfile.TemporaryDirectory() as folder:
        async with Runtime(f"{folder}/chat.db", model=ScriptedModel(script)) as runtime:
            cpu, wall = time.process_time(), time.perf_counter()
            turns = await asyncio.gather(*(runtime.send("go") for _ in range(count)))
            results = await asyncio.gather(*(turn.result() for turn in turns))
    assert {result.text for result in results} == {"word " * 80}
    pieces = count * 50
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    print(f"{count} conversations at once: {wall:.1f} s, {cpu / pieces * 1e6:.0f} µs CPU a piece, none lost")


def import_time() -> None:
    code = "import time; t = time.process_time(); import dragoman; print(time.process_time() - t)"
    times = [float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(5)]
    print(f"import dragoman: {min(times):.3f} s CPU")


if __name__ == "__main__":
    import_time()
    asyncio.run(many_at_once())
    asyncio.run(long_conversation())
