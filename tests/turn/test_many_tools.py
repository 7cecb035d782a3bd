"""L1–L4 in a turn: tools that a model finds, across restarts, forks, tasks and agents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, Runtime
from dragoman.errors import BadRequest
from dragoman.messages.message import CallState
from dragoman.messages.request import FIND_TOOLS
from dragoman.tools.deferred import ToolBudget
from dragoman.wire.scripted import calls, says
from tests.runtimes import calls_of, model_of, runtime_with
from tests.server.site import served
from tests.tools.test_deferred import Hub, named

TOOLS = [named(f"tool_{n}", f"Paint the fence number {n}.") for n in range(60)]
TOOLS[7] = named("water_plants", "Give the plants some water.")
SCRIPT = [calls(FIND_TOOLS, query="water for plants"), calls("water_plants"), says("Done.")]


def offered(runtime: Runtime, number: int) -> list[str]:
    """Without what the runtime brings itself."""
    names = [spec.name for spec in model_of(runtime).requests[number].tools]
    return [name for name in names if name not in ("read_output", "task")]


def opened(folder: Path, script: Any, **options: Any) -> Runtime:
    return runtime_with(folder, script, tools=[Hub(*TOOLS)], **options)


async def test_a_tool_is_found_loaded_and_called(tmp_path: Path) -> None:
    """A loaded tool is in every request from the next one on, and in the next turn (L1)."""
    async with opened(tmp_path, [*SCRIPT, says("Again.")]) as runtime:
        chat = await runtime.conversation()
        result = await (await chat.send("Water the plants.")).result()
        await (await chat.send("And now?")).result()
        assert offered(runtime, 0) == [FIND_TOOLS]
        assert offered(runtime, 1)[:2] == [FIND_TOOLS, "water_plants"]
        assert offered(runtime, 2) == offered(runtime, 3) == offered(runtime, 1)
    assert [(call.tool, call.state) for call in calls_of(result.messages)] == [
        (FIND_TOOLS, CallState.COMPLETED),
        ("water_plants", CallState.COMPLETED),
    ]


async def test_what_is_before_a_loaded_tool_stays_the_same(tmp_path: Path) -> None:
    """L1: request by request, tools, system prompt and messages only grow at their ends."""
    script = [calls(FIND_TOOLS, query="plants"), calls(FIND_TOOLS, query="fence 12"), says("Done.")]
    async with opened(tmp_path, script) as runtime:
        await (await runtime.send("Go.")).result()
        first, second, third = model_of(runtime).requests
    assert first.system == second.system == third.system
    assert first.tools == second.tools[: len(first.tools)]
    assert second.tools == third.tools[: len(second.tools)]
    assert len(third.tools) > len(second.tools) > len(first.tools)


async def test_a_call_by_the_right_name_loads_the_tool(tmp_path: Path) -> None:
    """L4"""
    async with opened(tmp_path, [calls("tool_9"), says("Done.")]) as runtime:
        (call,) = calls_of((await (await runtime.send("Go.")).result()).messages)
        assert call.state is CallState.COMPLETED
        assert offered(runtime, 1) == [FIND_TOOLS, "tool_9"]


async def test_what_is_found_is_a_function_of_a_program(tmp_path: Path) -> None:
    """A loaded tool's definition comes last, so the earlier ones stay the same. Programs call it by name (L1
    × G1, L4)."""
    code = "await water_plants()\nawait tool_9()\n'done'"
    script = [SCRIPT[0], calls("run_program", code=code), says("Done.")]
    async with runtime_with(tmp_path, script, tools=[Hub(*TOOLS), "programs"]) as runtime:
        _, program = calls_of((await (await runtime.send("Water the plants.")).result()).messages)
        first, second, third = model_of(runtime).requests
    assert program.state is CallState.COMPLETED, program.result
    assert "Tools that find_tools loads are functions" in first.tools[0].description
    assert first.tools == second.tools[: len(first.tools)]
    assert second.tools == third.tools[: len(second.tools)]
    assert third.tools[-1].name == "tool_9"


async def test_a_tool_that_rules_deny_is_not_found_and_not_called(tmp_path: Path) -> None:
    """L4"""
    script = [calls(FIND_TOOLS, query="water for plants"), calls("water_plants"), says("Done.")]
    async with opened(tmp_path, script, deny=["mcp.hub.water_plants"]) as runtime:
        found, called = calls_of((await (await runtime.send("Go.")).result()).messages)
        assert found.result is not None
        assert "water_plants" not in found.result.text
        assert called.state is CallState.FAILED
        assert "water_plants" not in offered(runtime, 1)


async def test_a_loaded_tool_asks_as_ever(tmp_path: Path) -> None:
    """L4 × P1: to find a tool allows nothing."""
    async with opened(tmp_path, SCRIPT, allow=[]) as runtime:
        turn = await runtime.send("Water the plants.")
        assert await turn.reached("waiting")
        (question,) = (await turn.snapshot()).questions
        assert question.tool == "water_plants"


async def test_another_process_and_a_fork_keep_what_was_loaded(tmp_path: Path) -> None:
    async with opened(tmp_path, SCRIPT) as runtime:
        chat = await runtime.conversation()
        result = await (await chat.send("Water the plants.")).result()
    async with opened(tmp_path, lambda _: says("Yes.")) as runtime:
        copy = await runtime.fork(chat.id, result.messages[-1].id)
        for one in (await runtime.conversation(chat.id), copy):
            await (await one.send("Still there?")).result()
        assert offered(runtime, 0)[1] == offered(runtime, 1)[1] == "water_plants"


async def test_a_task_has_the_tools_that_were_loaded(tmp_path: Path) -> None:
    script = [
        calls(FIND_TOOLS, query="water for plants"),
        calls("task", agent="gardener", request="Water."),
        calls("water_plants"),
        says("Watered."),
        says("Done."),
    ]
    async with opened(tmp_path, script, agents=[Agent(name="gardener")]) as runtime:
        assert (await (await runtime.send("Go.")).result()).text == "Done."
        assert "water_plants" in offered(runtime, 2)


async def test_budgets_of_runtimes_and_agents(tmp_path: Path) -> None:
    agent = Agent(name="wide", tool_budget=ToolBudget(None, None))
    async with opened(tmp_path, lambda _: says("Hi."), agents=[agent], tool_budget=70) as runtime:
        await (await runtime.send("Hi.")).result()
    async with opened(tmp_path, lambda _: says("Hi."), agents=[agent], tool_budget="1%") as narrow:
        await (await narrow.send("Hi.", agent="wide")).result()
        assert len(offered(narrow, 0)) == len(offered(runtime, 0)) == 60


async def test_a_tool_is_pinned_for_a_conversation(tmp_path: Path) -> None:
    async with opened(tmp_path, lambda _: says("Hi.")) as runtime:
        chat = await runtime.conversation(always_tools=["tool_3"])
        await (await chat.send("Hi.")).result()
        assert offered(runtime, 0) == ["tool_3", FIND_TOOLS]
        with pytest.raises(BadRequest, match="always_tools"):
            await chat.change(always_tools="tool_3")  # type: ignore[arg-type]


async def test_the_api_tells_what_is_loaded_and_why(tmp_path: Path) -> None:
    async with served(tmp_path, [*SCRIPT, calls("tool_3"), says("Done.")], tools=[Hub(*TOOLS)]) as site:
        id = await site.conversation()
        await site.until(f"/api/turns/{await site.say('Water.', id)}/events", "turn.end")
        await site.until(f"/api/turns/{await site.say('Paint.', id)}/events", "turn.end")
        groups = (await site.get(f"/api/tools?conversation={id}"))["groups"]
        (hub,) = [group["tools"] for group in groups if group["name"] == "hub"]
        known = {tool["name"]: tool for tool in hub}
        loaded = {name: tool["loaded"] for name, tool in known.items()}
        assert (loaded["water_plants"], loaded["tool_3"], loaded["tool_5"]) == ("found", "called", "no")
        assert known["tool_5"]["tokens"] > 5
        assert known["tool_5"]["on"]
        await site.ask("PATCH", f"/api/conversations/{id}", {"settings": {"always_tools": ["tool_5"]}})
        groups = (await site.get(f"/api/tools?conversation={id}"))["groups"]
        (now,) = [tool for group in groups for tool in group["tools"] if tool["name"] == "tool_5"]
        assert now["loaded"] == "always"
