"""A turn that another process started: processes that see it, resume it, or only answer its questions."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman import Runtime, ScriptedModel, allow_once, tool
from dragoman.messages.message import CallState, ToolResult
from dragoman.tools.tool import Tool
from dragoman.tools.toolbox import Group
from dragoman.wire.scripted import calls, says
from tests.patience import PATIENCE
from tests.runtimes import only_call, runtime_with

ran: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


@tool
def delete(path: str) -> str:
    """Delete a file."""
    ran.append(path)
    return "gone"


async def _left_waiting(folder: Path) -> tuple[str, str]:
    """A house that closes while its question is open."""
    async with runtime_with(folder, [calls("delete", path="a")], tools=[delete], allow=()) as first:
        turn = await first.send("go")
        assert await turn.reached("waiting")
        return turn.id, turn.question


async def test_whoever_follows_a_turn_after_a_restart_hears_what_it_asks(tmp_path: Path) -> None:
    """P6, E2: the loop that answered before the restart answers after it."""
    id, question = await _left_waiting(tmp_path)
    async with runtime_with(tmp_path, [says("done")], tools=[delete], allow=()) as second:
        turn = second.turn(id)
        async for event in turn.events():
            if event.type == "call.asked":
                assert event.question == question
                await turn.answer(event.question, allow_once())
        assert (await turn.result()).text == "done"
    assert ran == ["a"]


async def test_a_house_that_does_not_adopt_answers_and_leaves_the_turn_alone(tmp_path: Path) -> None:
    """The visitor does not have the tool. The call runs when a process with the tool opens the store (P6)."""
    id, question = await _left_waiting(tmp_path)
    async with Runtime(tmp_path / "chat.db", model=ScriptedModel([]), adopts=False) as visitor:
        assert [open.id for open in await visitor.questions()] == [question]
        await visitor.answer(question, allow_once())
        await asyncio.sleep(0.05)
        assert (await visitor.turn(id).snapshot()).state == "waiting"
    assert ran == []
    async with runtime_with(tmp_path, [says("done")], tools=[delete], allow=()) as owner:
        assert only_call(await owner.turn(id).result()).state is CallState.COMPLETED
    assert ran == ["a"]


async def test_an_answer_of_a_visitor_is_found_by_a_house_that_is_open(tmp_path: Path) -> None:
    """An open process finds the answer, also if no process ran the turn at that moment (P6)."""
    id, question = await _left_waiting(tmp_path)
    async with runtime_with(tmp_path, [says("done")], tools=[delete], allow=()) as owner:
        async with Runtime(tmp_path / "chat.db", model=ScriptedModel([]), adopts=False) as visitor:
            await visitor.answer(question, allow_once())
        assert (await asyncio.wait_for(owner.turn(id).result(), PATIENCE)).text == "done"


async def test_a_turn_that_asks_nothing_here_says_where_to_look(tmp_path: Path) -> None:
    id, question = await _left_waiting(tmp_path)
    async with runtime_with(tmp_path, [], tools=[delete], allow=()) as second:
        turn = second.turn(id)
        with pytest.raises(LookupError, match="snapshot"):
            _ = turn.question
        assert [open.id for open in (await turn.snapshot()).questions] == [question]
        assert repr(turn) == f"TurnHandle('{id}')"


async def test_a_turn_goes_on_only_in_a_house_that_works_in_its_folder(tmp_path: Path) -> None:
    """The user allowed the call in one folder. In another folder the same names are other files (S3)."""
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    elsewhere.mkdir()
    options: dict[str, Any] = {"tools": [delete], "allow": ()}
    async with runtime_with(tmp_path, [calls("delete", path="a")], workspace=here, **options) as first:
        turn = await first.send("go")
        assert await turn.reached("waiting")
    async with runtime_with(tmp_path, [says("done")], workspace=elsewhere, **options) as stranger:
        await stranger.answer(turn.question, allow_once())
        await asyncio.sleep(0.05)
        assert stranger.bus.here(turn.id) is None
        assert ran == []
    async with runtime_with(tmp_path, [says("done")], workspace=here, **options) as second:
        assert (await second.turn(turn.id).result()).text == "done"
        assert ran == ["a"]


class Late:
    """A source whose tools are known only after it has started."""

    name = "late"

    def __init__(self, *tools: Tool) -> None:
        self._tools: tuple[Tool, ...] = ()
        self._later = tools

    def group(self) -> Group:
        return Group(self.name, self._tools)

    async def ready(self) -> None: ...
    async def close(self) -> None: ...

    async def started(self) -> None:
        self._tools = self._later


async def test_a_call_that_is_repeated_waits_for_the_server_of_its_tool(tmp_path: Path) -> None:
    """The new process may not have started it yet (S3 × L3)."""
    began = asyncio.Event()

    @tool(replay="safe")
    async def look() -> str:
        """Look around."""
        if began.is_set():
            return "seen"
        began.set()
        await asyncio.Event().wait()
        return "never"

    source = Late(look)
    await source.started()
    async with runtime_with(tmp_path, [calls("look")], tools=[source]) as first:
        turn = await first.send("go")
        await began.wait()
    async with runtime_with(tmp_path, [says("done")], tools=[Late(look)]) as second:
        call = only_call(await second.turn(turn.id).result())
        assert (call.state, call.result) == (CallState.COMPLETED, ToolResult("seen"))
