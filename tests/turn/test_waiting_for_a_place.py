"""A call with permission waits for a free slot, in combination with other rules (C3)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dragoman import Runtime, allow_always, reject, stop, tool
from dragoman.messages.message import CallState
from dragoman.messages.questions import Answer, Rule
from dragoman.wire.scripted import calls, says
from tests.patience import PATIENCE
from tests.runtimes import calls_of, runtime_with

SCRIPT = [calls("busy") + calls("write") + calls("look"), says("ok")]


class Stage:
    """A tool that holds the only slot until it is released, one that waits for it, and a third."""

    def __init__(self) -> None:
        self.begun, self.done = asyncio.Event(), asyncio.Event()
        self.written = False

        @tool(replay="safe")
        async def busy() -> str:
            """Keeps the place."""
            self.begun.set()
            await self.done.wait()
            return "done"

        @tool
        async def write() -> str:
            """Write."""
            self.written = True
            return "written"

        @tool
        async def look() -> str:
            """Look."""
            return "seen"

        self.tools = [busy, write, look]

    def runtime(self, folder: Path, allow: list[str], *, max_calls: int | None = None) -> Runtime:
        return runtime_with(folder, SCRIPT, tools=self.tools, concurrency=1, allow=allow, max_calls=max_calls)


async def _grant(runtime: Runtime, rule: Rule, answer: Answer) -> str:
    return (await runtime.commands.grant(rule, answer, user=None, owner="")).id


@pytest.mark.parametrize(
    ("change", "state"),
    [("revoked", CallState.CANCELLED), ("denied", CallState.REJECTED), ("stopped", CallState.SKIPPED)],
)
async def test_what_let_a_call_run_has_to_hold_when_its_turn_comes(
    tmp_path: Path, change: str, state: CallState
) -> None:
    """Before the call starts, its rule is revoked so it needs approval, another rule denies it, or a user
    stops all calls (C3 × P3 × P9 × P10)."""
    stage = Stage()
    async with stage.runtime(tmp_path, ["busy"]) as runtime:
        grant = await _grant(runtime, Rule("write", "*", "allow"), allow_always())
        turn = await runtime.send("go")
        async with asyncio.timeout(PATIENCE):
            await stage.begun.wait()
        async for asked in turn.asked():  # about the third: the second waits for its place
            if asked.tool == "write":
                assert (change, stage.done.is_set()) == ("revoked", True)
                await turn.cancel()
                break
            if change == "revoked":
                await runtime.revoke(grant)
            elif change == "denied":
                await _grant(runtime, Rule("write", "*", "deny"), reject(scope="always"))
            await turn.answer(asked, stop() if change == "stopped" else reject())
            stage.done.set()
        made = calls_of((await turn.result()).messages)[1]
    assert (made.state, stage.written) == (state, False)


async def test_a_call_within_the_limit_runs_also_after_a_restart(tmp_path: Path) -> None:
    """C3 × T12 × S3: the one behind it was over the limit, which closed the turn while it waited."""
    stage = Stage()
    async with stage.runtime(tmp_path, ["*"], max_calls=2) as first:
        turn = await first.send("go")
        async for event in turn.events():
            if event.type == "call.end":
                break
    stage.done.set()
    async with stage.runtime(tmp_path, ["*"], max_calls=2) as second:
        result = await second.turn(turn.id).result()
    states = [call.state for call in result.messages[1].calls]
    assert states == [CallState.COMPLETED, CallState.COMPLETED, CallState.SKIPPED]
