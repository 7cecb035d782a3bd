"""Measure what grows and what does not: turns of a long conversation, many concurrent conversations, the
import."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time

from dragoman import Plugin, Runtime, ScriptedModel, TurnView
from dragoman.messages.request import Request
from dragoman.turn.api.conversation_handle import ConversationHandle
from dragoman.wire.scripted import Line, says


async def long_conversation() -> None:
    """Measure the CPU of a turn after 10 messages and after 10,000, without the request itself."""
    model = ScriptedModel(lambda _: says("fine"))
    watch = Stopwatch()
    with tempfile.TemporaryDirectory() as folder:
        async with Runtime(f"{folder}/chat.db", model=model, compact_at=None, plugins=[watch]) as runtime:
            chat = await runtime.conversation()
            await _talk(chat, model, 5)
            short = await _turn_cost(chat, model, watch)
            await _talk(chat, model, 4970)
            long = await _turn_cost(chat, model, watch)
            messages = len(await chat.messages())
    print(f"a turn after {messages:,} messages costs ×{long / short:.2f} of one after 10, requests aside")


async def _talk(chat: ConversationHandle, model: ScriptedModel, turns: int) -> None:
    for _ in range(turns):
        await (await chat.send("hello")).result()
        model.requests.clear()


async def _turn_cost(chat: ConversationHandle, model: ScriptedModel, stopwatch: Stopwatch) -> float:
    """The cheapest of a few turns, without the time from its start to the finished history."""
    costs = []
    for _ in range(30):
        cpu = time.process_time()
        await (await chat.send("hello")).result()
        costs.append(time.process_time() - cpu - stopwatch.spent)
        model.requests.clear()  # the model kept the request, so that freeing it is not counted either
    return min(costs)


class Stopwatch(Plugin):
    """Measure how long collecting the history of a request takes: it must grow with the conversation."""

    def __init__(self) -> None:
        self._began = 0.0
        self.spent = 0.0

    async def on_turn_start(self, turn: TurnView) -> None:
        self._began = time.process_time()

    async def system_prompt(self, text: str, turn: TurnView) -> str:
        self.spent = time.process_time() - self._began
        return text


async def many_at_once(count: int = 1000) -> None:
    """Stream this number of conversations at the same time in one process."""

    def script(_: Request) -> Line:
        return says("word " * 80, waits=0.02)

    with tempfile.TemporaryDirectory() as folder:
        async with Runtime(f"{folder}/chat.db", model=ScriptedModel(script)) as runtime:
            cpu, wall = time.process_time(), time.perf_counter()
            turns = await asyncio.gather(*(runtime.send("go") for _ in range(count)))
            results = await asyncio.gather(*(turn.result() for turn in turns))
    assert [result.text for result in results] == ["word " * 80] * count
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
