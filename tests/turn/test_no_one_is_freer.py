"""A task never has more permissions than the agent that gave it (P9, docs/guide/agents.md)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dragoman import Agent, Rule, allow_always, reject, tool
from dragoman.messages.message import CallState
from dragoman.messages.questions import Question, Scope
from dragoman.messages.request import Request
from dragoman.wire.scripted import Line, calls, says
from tests.patience import PATIENCE
from tests.runtimes import calls_of, runtime_with

ran: list[str] = []


@tool(pattern="command")
def shell(command: str) -> str:
    """Run."""
    ran.append(command)
    return "ran"


ADMIN = Agent(name="admin", rules=(Rule("shell", "*", "allow"),))
READER = Agent(name="reader", rules=(Rule("shell", "*", "deny"), Rule("task", "*", "allow")))


@pytest.mark.parametrize("agent", ["reader", None])
async def test_a_task_may_not_what_its_giver_may_not(tmp_path: Path, agent: str | None) -> None:
    """A denial by the giver's rules or the settings binds the task, and a task of that task (P9)."""
    ran.clear()
    script = [
        calls("task", agent="admin", request="list"),
        calls("task", agent="admin", request="list, really"),
        calls("shell", command="ls"),
        says("could not"),
        says("they could not"),
        says("no"),
    ]
    deny = [] if agent else ["shell:*"]
    async with runtime_with(tmp_path, script, tools=[shell], agents=[ADMIN, READER], deny=deny) as runtime:
        chat = await runtime.conversation(agent=agent or None)
        result = await (await chat.send("go")).result()
        (task,) = calls_of(result.messages)
        assert task.state is CallState.COMPLETED
        inner = [id for id in await runtime.store.within(chat.id) if id != chat.id]
        found = [call for id in inner for call in calls_of((await runtime.store.messages(id))[0])]
    assert [call.state for call in found if call.tool == "shell"] in (
        [CallState.REJECTED],
        [CallState.FAILED],
    )
    assert ran == []


async def test_a_task_that_its_giver_may_give_runs(tmp_path: Path) -> None:
    """P9"""
    ran.clear()
    script = [
        calls("task", agent="admin", request="list"),
        calls("shell", command="ls"),
        says("a"),
        says("b"),
    ]
    allow = ["task", "shell:ls"]
    async with runtime_with(tmp_path, script, tools=[shell], agents=[ADMIN], allow=allow) as runtime:
        await (await runtime.send("go")).result()
    assert ran == ["ls"]


@pytest.mark.parametrize("giver", [None, "asker"])
async def test_what_its_giver_is_asked_about_a_task_is_asked_about(tmp_path: Path, giver: str | None) -> None:
    """A call that needs approval for the giver, by settings or by its rules, needs it in the task. Rules of
    the task's agent cannot allow it, and a grant settles it as for the giver (P13: task × ask)."""
    ran.clear()
    script = [
        calls("task", agent="admin", request="list"),
        calls("shell", command="ls"),
        calls("shell", command="ls"),
        says("a"),
        says("b"),
    ]
    asker = Agent(name="asker", rules=(Rule("shell", "*", "ask"),))
    allow = ["*"] if giver else ["task"]
    async with runtime_with(tmp_path, script, allow=allow, tools=[shell], agents=[ADMIN, asker]) as runtime:
        turn = await (await runtime.conversation(agent=giver)).send("go")
        asked = []
        async with asyncio.timeout(PATIENCE):
            async for question in turn.asked():
                asked.append((question.tool, question.because))
                assert ran == []
                await turn.answer(question, allow_always())
            assert (await turn.result()).state == "completed"
    assert asked == [("shell", "rule")]
    assert ran == ["ls", "ls"]


@pytest.mark.parametrize("scope", ["conversation", "always"])
async def test_what_a_person_denied_in_a_conversation_is_denied_to_its_tasks(
    tmp_path: Path, scope: Scope
) -> None:
    """A user's denial in the conversation binds the task, whatever its agent allows (P9 × P11)."""
    ran.clear()
    script = [
        calls("shell", command="ls"),
        says("no"),
        calls("task", agent="admin", request="list"),
        calls("shell", command="ls"),
        says("could not"),
        says("no"),
    ]
    async with runtime_with(tmp_path, script, allow=["task"], tools=[shell], agents=[ADMIN]) as runtime:
        chat = await runtime.conversation()
        turn = await chat.send("go")
        async for question in turn.asked():
            await turn.answer(question, reject(scope=scope))
        result = await (await chat.send("let somebody else do it")).result()
        assert [call.state for call in calls_of(result.messages)] == [CallState.COMPLETED]
        inner = [id for id in await runtime.store.within(chat.id) if id != chat.id]
        (refused,) = [call for id in inner for call in calls_of((await runtime.store.messages(id))[0])]
    assert refused.state is CallState.REJECTED
    assert ran == []


async def test_a_denial_settles_what_waits_in_tasks(tmp_path: Path) -> None:
    """Waiting calls of tasks that a new denial covers are refused without an answer (P9 × P11)."""
    ran.clear()
    both = calls("task", agent="clerk", request="list") + calls("shell", command="ls")

    def script(request: Request) -> Line:
        if len(request.messages) > 1:
            return says("could not")
        return calls("shell", command="ls") if request.messages[0].text == "list" else both

    agents = [Agent(name="clerk")]
    async with runtime_with(tmp_path, script, allow=["task"], tools=[shell], agents=agents) as runtime:
        turn = await runtime.send("go")
        asked: dict[str, Question] = {}
        async with asyncio.timeout(PATIENCE):
            async for question in turn.asked():
                asked[question.turn] = question
                if len(asked) == 2:
                    await turn.answer(asked[turn.id], reject(scope="conversation"))
            assert (await turn.result()).state == "completed"
    assert ran == []
