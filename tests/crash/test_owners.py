"""A live process adopts the turns of a dead or stopped one, whose later writes are refused (S3, N2)."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from dragoman import Runtime
from tests.crash.workers import LEASE, process, until, until_so, worker, wrote
from tests.patience import PATIENCE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be stopped and forked here"),
]


async def _text_of(runtime: Runtime, turn: object) -> str:
    async with asyncio.timeout(PATIENCE):
        return (await runtime.turn(str(turn)).result()).text


@pytest.mark.long
@pytest.mark.usefixtures("engine")
async def test_a_child_that_a_tool_forked_does_not_keep_its_dead_parents_turn(tmp_path: Path) -> None:
    """The child outlives the owner, and another process adopts the turn meanwhile (S3)."""
    async with worker(tmp_path) as living:
        with process(tmp_path, "forks", gate="in forks") as owner:
            await until(lambda: wrote(tmp_path, "at"))
            (child,) = wrote(tmp_path, "forked")
            owner.kill()
            owner.wait()
            (turn,) = wrote(tmp_path, "turn")
            try:
                assert await _text_of(living, turn) == "done"
                os.kill(int(str(child)), 0)  # it is still there
            finally:
                os.kill(int(str(child)), signal.SIGKILL)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("gate", "ran_first"),
    [("in first", 2), ("before second", 1)],
    ids=["stopped in a tool", "stopped before a tool starts"],
)
async def test_a_stopped_owner_is_replaced_and_can_do_nothing_when_it_wakes(
    gate: str, ran_first: int, tmp_path: Path
) -> None:
    """N2: it neither writes what it had nor starts the next tool."""
    async with worker(tmp_path) as living:
        with process(tmp_path, "first\nsecond", gate=gate) as owner:
            await until(lambda: wrote(tmp_path, "at"))
            (turn,) = wrote(tmp_path, "turn")

            async def stored() -> bool:
                facts = "".join(await living.store.facts(str(turn)))
                return facts.count("call_finished") == 2 - ran_first

            await until_so(stored)  # work before the gate
            owner.send_signal(signal.SIGSTOP)
            assert await _text_of(living, turn) == "done"
            written = await living.store.facts(str(turn))

            (tmp_path / "go").touch()
            owner.send_signal(signal.SIGCONT)
            await asyncio.to_thread(owner.wait, PATIENCE)
            assert wrote(tmp_path, "fenced") == [owner.pid]
        assert await living.store.facts(str(turn)) == written
    *firsts, second = wrote(tmp_path, "ran")
    assert (set(firsts), second) == ({"first"}, "second")
    assert len(firsts) >= ran_first  # it may run again: an owner that came late to its lease lost it before
    assert wrote(tmp_path, "pid")[-1] == os.getpid()


@pytest.mark.long
async def test_a_machine_that_slept_as_a_whole_loses_no_turns(tmp_path: Path) -> None:
    """The sleep is longer than any lease. The first process to wake finds the others' leases old, and waits
    for them. A database on another machine did not sleep and measures their absence, so it is not tested
    (N2)."""
    with process(tmp_path, "first\nsecond", gate="in first") as owner, process(tmp_path, "") as watcher:
        await until(lambda: wrote(tmp_path, "at") and wrote(tmp_path, "open"))
        for one in (owner, watcher):
            one.send_signal(signal.SIGSTOP)
        await asyncio.sleep(LEASE * 2)  # the subject of this test: time passes, and no lease ends
        for one in (watcher, owner):
            one.send_signal(signal.SIGCONT)
        await asyncio.sleep(LEASE * 2)  # in which the watcher looks for orphans at least once
        (tmp_path / "go").touch()
        await until(lambda: wrote(tmp_path, "result") or wrote(tmp_path, "fenced"))
    assert wrote(tmp_path, "result") == ["done"]
    assert set(wrote(tmp_path, "ran")) == {"first", "second"}
    assert len(wrote(tmp_path, "ran")) == 2


@pytest.mark.long
@pytest.mark.usefixtures("engine")
async def test_an_owner_that_is_only_slow_keeps_its_turn(tmp_path: Path) -> None:
    """A live process renews its lease, whatever its tools do (N2)."""
    async with worker(tmp_path):
        with process(tmp_path, "first\nsecond", gate="in first"):
            await until(lambda: wrote(tmp_path, "at"))
            # the subject of this test: no other process adopts it in that time
            await asyncio.sleep(LEASE * 2)
            (tmp_path / "go").touch()
            await until(lambda: wrote(tmp_path, "result") or wrote(tmp_path, "fenced"))
    assert wrote(tmp_path, "result") == ["done"]
    assert wrote(tmp_path, "ran") == ["first", "second"]


@pytest.mark.usefixtures("engine")
async def test_an_answer_reaches_a_turn_whose_owner_is_stopped(tmp_path: Path) -> None:
    """N2, T6: a cancel given to another process takes effect when the lease is over."""
    async with worker(tmp_path) as living:
        with process(tmp_path, "first\nsecond", gate="in first") as owner:
            await until(lambda: wrote(tmp_path, "at"))
            owner.send_signal(signal.SIGSTOP)
            (turn,) = wrote(tmp_path, "turn")
            await living.turn(str(turn)).cancel("enough")

            async def over() -> bool:
                return not (await living.store.turn(str(turn))).live

            await until_so(over)
            assert (await living.store.turn(str(turn))).state == "cancelled"
    assert wrote(tmp_path, "ran") == ["first"]
