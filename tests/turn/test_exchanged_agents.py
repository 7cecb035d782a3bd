"""Agents exchanged at run time, in pairs with running turns, open questions and grants."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dragoman import Agent, Rule, Runtime, allow_always, allow_once, tool
from dragoman.errors import ConfigError
from dragoman.tools.toolbox import Group
from dragoman.turn.acting_agent import turns_of_agent
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.wire.scripted import calls, says
from tests.runtimes import add, events_of, model_of, runtime_with

CLERK = Agent(name="clerk", prompt="You are a clerk.", rules=(Rule("delete", "*", "ask"),))
AFTERWARDS = {
    "changed": [replace(CLERK, prompt="You are a poet.", model="nobody/there")],
    "removed": [],
}


@tool
def delete(path: str) -> str:
    """Delete it."""
    return f"deleted {path}"


async def _waiting(runtime: Runtime, agent: str | None = None) -> TurnHandle:
    turn = await runtime.send("go", agent=agent)
    assert await turn.reached("waiting")
    return turn


@pytest.mark.parametrize("afterwards", AFTERWARDS.values(), ids=AFTERWARDS)
async def test_a_turn_that_runs_keeps_its_agent(tmp_path: Path, afterwards: list[Agent]) -> None:
    """A running turn keeps prompt, model and rules, and no client receives a handover event (T14)."""
    script = [calls("delete", path="a"), calls("delete", path="b"), says("done"), says("and again")]
    async with runtime_with(tmp_path, script, tools=[delete], agents=[CLERK]) as runtime:
        turn = await _waiting(runtime, "clerk")
        runtime.use_agents(afterwards)
        await turn.answer(turn.question, allow_once())
        assert await turn.reached("waiting")  # its rules still ask
        await turn.answer(turn.question, allow_once())
        assert (await turn.result()).text == "done"
        assert all("You are a clerk." in request.system for request in model_of(runtime).requests)
        assert "handoff" not in [event.kind for event in await events_of(turn) if event.type == "notice"]


async def test_a_grant_settles_what_it_can_beside_a_turn_whose_agent_is_gone(tmp_path: Path) -> None:
    """The answer succeeds although a waiting question belongs to a turn whose agent is missing (P3 × T14)."""
    script = [calls("delete", path="a")] * 3 + [says("done")] * 3
    agents = [CLERK, replace(CLERK, name="gone")]
    async with runtime_with(tmp_path, script, tools=[delete], agents=agents, allow=()) as runtime:
        turns = [await _waiting(runtime, name) for name in ("gone", "clerk", "clerk")]
        runtime.use_agents([CLERK])
        assert await turns_of_agent(runtime.services, "gone") == []  # it cannot go on anyway
        await turns[1].answer(turns[1].question, allow_always())
        assert [(await turn.result()).text for turn in turns[1:]] == ["done", "done"]
        (left,) = await runtime.questions()
        assert left.turn == turns[0].id


async def test_a_group_of_ones_own_is_not_taken_by_that_of_agents(tmp_path: Path) -> None:
    """Dragoman refuses an exchange if a custom group and an agent's group share a name (C11)."""
    own = Group("agents", (add,))
    async with runtime_with(tmp_path, [says("hi")], tools=[own]) as runtime:
        with pytest.raises(ConfigError, match="Two tool groups have the name 'agents'"):
            runtime.use_agents([CLERK])
        assert not runtime.services.agents
        runtime.use_agents([])
        await (await runtime.send("go")).result()
        assert [spec.name for spec in model_of(runtime).requests[-1].tools][:1] == ["add"]
