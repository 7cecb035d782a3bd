"""Memory of ended turns has a limit in bytes, and goes with its conversation (S1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman import Runtime, tool
from dragoman.store.sqlite import SqliteStore
from dragoman.turn.drivers.tasks import TaskDriver
from dragoman.wire.scripted import calls, says
from tests.runtimes import runtime_with

MIB = 2**20


def _kept(runtime: Runtime) -> int:
    """Bytes, as the driver counts them."""
    assert isinstance(runtime.driver, TaskDriver)
    return runtime.driver._paths.size


@pytest.mark.slow
async def test_long_conversations_are_not_all_kept_in_memory(tmp_path: Path) -> None:
    """Twenty conversations of four megabytes each stay usable (S1)."""
    script = [says("yes")] * 20 + [says("still here")]
    async with runtime_with(tmp_path, script) as runtime:
        chats = [await runtime.conversation() for _ in range(20)]
        for chat in chats:
            await (await chat.send("x" * 4 * MIB)).result()
        assert 32 * MIB < _kept(runtime) <= 64 * MIB
        assert (await (await chats[0].send("and now?")).result()).text == "still here"
        assert len(await chats[0].messages()) == 4


async def test_a_deleted_conversation_is_not_kept_in_memory(tmp_path: Path) -> None:
    """S1"""
    async with runtime_with(tmp_path, [says("yes")]) as runtime:
        chat = await runtime.conversation()
        await (await chat.send("x" * MIB)).result()
        assert _kept(runtime) > MIB
        await runtime.delete(chat.id)
        assert _kept(runtime) == 0


async def test_a_result_counts_once_more_if_it_has_a_value(tmp_path: Path) -> None:
    """S1: the value is about as long as its text."""

    @tool
    def text() -> str:
        """Say much."""
        return "x" * 10_000

    @tool
    def value() -> list[str]:
        """Return much."""
        return ["x" * 10_000]

    script = [calls("text"), says("done"), calls("value"), says("done")]
    async with runtime_with(tmp_path, script, tools=[text, value]) as runtime:
        kept = [0]
        for _ in range(2):
            await (await runtime.send("go")).result()
            kept.append(_kept(runtime) - sum(kept))
    assert [size // 10_000 for size in kept] == [0, 1, 2]


class Counting(SqliteStore):
    reads = 0

    async def messages(self, *given: Any) -> Any:
        self.reads += 1
        return await super().messages(*given)


async def test_the_next_turn_reads_no_messages_again(tmp_path: Path) -> None:
    """S1"""
    store = Counting(tmp_path / "chat.db")
    async with runtime_with(tmp_path, [says("yes"), says("yes")], store=store) as runtime:
        chat = await runtime.conversation()
        for _ in range(2):
            await (await chat.send("go")).result()
    assert store.reads == 0
