"""Agents are named sets of prompt, model, tools, permissions and limits. One agent can give another a
task."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, Limits, Rule, Runtime, ScriptedModel, allow_once, reject, tool
from dragoman.errors import BadRequest, ConfigError, NotFound
from dragoman.messages.message import CallState, Text, ToolCall
from dragoman.messages.request import Request
from dragoman.messages.usage import Usage
from dragoman.plugins.limits import Team
from dragoman.tools.toolbox import Group
from dragoman.turn.acting_agent import turns_of_agent
from dragoman.turn.services import SharedPrompt
from dragoman.wire.scripted import Line, calls, says
from tests.runtimes import add, calls_of, model_of, only_call, runtime_with


@tool(permission="notes.write")
def note(text: str) -> str:
    """Write a note."""
    return f"noted {text}"


GROUPS = [Group("sums", (add,), rules="Add carefully."), Group("notes", (note,))]
CLERK = Agent(
    name="clerk",
    description="writes notes",
    prompt="You are a clerk.",
    mode="auto",
    options={"temperature": 0.1},
    tools=("notes",),
    rules=(Rule("notes.write", "*", "allow"),),
    limits=Limits(max_rounds=1),
)


async def test_an_agent_brings_its_prompt_its_tools_and_its_options(tmp_path: Path) -> None:
    """R1, R2, C11: options of the send win over the agent's, the agent's over the house's."""
    async with runtime_with(
        tmp_path, [says("hi")], tools=GROUPS, agents=[CLERK], options={"temperature": 1, "seed": 1}
    ) as runtime:
        talk = await runtime.conversation(agent="clerk")
        await (await talk.send("go", options={"top_p": 0.5})).result()
        request = model_of(runtime).requests[-1]
        assert [spec.name for spec in request.tools] == ["note"]
        assert "You are a clerk." in request.system
        assert "Add carefully." not in request.system
        assert request.options == {"temperature": 0.1, "seed": 1, "top_p": 0.5}


async def test_an_agent_has_permissions_of_its_own(tmp_path: Path) -> None:
    """An agent's rules come last and win, and another conversation still asks for approval (P1)."""
    script = [calls("note", text="a"), says("done"), calls("note", text="b"), says("done")]
    async with runtime_with(tmp_path, script, tools=GROUPS, agents=[CLERK], allow=()) as runtime:
        result = await (await (await runtime.conversation(agent="clerk")).send("go")).result()
        assert only_call(result).state is CallState.COMPLETED
        turn = await runtime.send("go")
        assert await turn.reached("waiting")


async def test_an_agents_limits_come_before_those_of_the_house(tmp_path: Path) -> None:
    """T7, T12"""
    script = [calls("note", text="a"), calls("note", text="b"), says("done")]
    async with runtime_with(tmp_path, script, tools=GROUPS, agents=[CLERK]) as runtime:
        result = await (await runtime.send("go", agent="clerk")).result()
        assert [call.state for call in calls_of(result.messages)] == [CallState.COMPLETED, CallState.SKIPPED]


async def test_an_unknown_agent_is_refused_before_anything_is_stored(tmp_path: Path) -> None:
    async with runtime_with(tmp_path, [says("hi")], agents=[CLERK]) as runtime:
        talk = await runtime.conversation()
        with pytest.raises(NotFound, match="clerk"):
            await talk.send("go", agent="cook")
        assert await talk.messages() == []
        with pytest.raises(BadRequest):
            await talk.change(agent=5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong", [{"max_rounds": -1}, {"max_rounds": 1.5}, {"max_cost": 0}, {"max_calls": -1}]
)
def test_limits_that_are_none_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        Limits(**wrong)  # type: ignore[arg-type]


# ── tasks ─────────────────────────────────────────────────────────────────────────────────────────


def asked(request: Request) -> str:
    """Return the user's last message."""
    said = [message for message in request.messages if message.role == "user"][-1]
    return "".join(part.text for part in said.parts if isinstance(part, Text))


def by_depth(inner: list[Line]) -> Callable[[Request], Line]:
    """A script for the outer conversation that gives a task, and one for the inner."""

    def line(request: Request) -> Line:
        place = sum(message.role == "assistant" for message in request.messages)
        if asked(request) == "outer":
            return [calls("task", agent="clerk", request="inner"), says("all done")][place]
        return inner[place]

    return line


async def test_a_task_is_done_in_a_conversation_of_its_own(tmp_path: Path) -> None:
    script = by_depth([calls("note", text="x"), says("it is noted")])
    async with runtime_with(tmp_path, script, tools=GROUPS, agents=[CLERK]) as runtime:
        talk = await runtime.conversation(user="ada")
        result = await (await talk.send("outer")).result()
        call = only_call(result)
        assert call.result is not None
        assert call.result.text == "it is noted"
        inner = await runtime.store.conversation(str(call.result.metadata["conversation"]))
        assert (inner.parent, inner.call, inner.user) == (talk.id, call.id, "ada")
        trail = await (await runtime.conversation(inner.id)).messages()
        assert [message.text for message in trail] == ["inner", "", "it is noted"]


async def test_what_a_task_asks_reaches_the_same_person(tmp_path: Path) -> None:
    """P6: and the call that opened it says which question it is."""
    asking = Agent(name="clerk", tools=("notes",))
    script = by_depth([calls("note", text="x"), says("noted")])
    async with runtime_with(tmp_path, script, tools=GROUPS, agents=[asking], allow=["task"]) as runtime:
        turn = await runtime.send("outer")
        async for event in turn.events():
            if event.type == "call.progress" and isinstance(event.value, dict) and "asks" in event.value:
                (question,) = await runtime.store.questions(user="local")
                assert question.id == event.value["asks"]
                await runtime.answer(question.id, allow_once())
        assert (await turn.result()).text == "all done"


@pytest.mark.parametrize("of_send", [False, True])
@pytest.mark.parametrize("settings", [{"tools": {"notes.note": False}}, {"mode": "ask"}])
async def test_a_task_may_not_do_what_its_conversation_may_not(
    tmp_path: Path, settings: dict[str, Any], of_send: bool
) -> None:
    """A tool that is off or needs approval has the same limits in the sub-conversation, even if only the
    message says so (C11, P8)."""
    script = by_depth([calls("note", text="x"), says("noted")])
    async with runtime_with(tmp_path, script, tools=GROUPS, agents=[CLERK]) as runtime:
        chat = await runtime.conversation(**({} if of_send else settings))
        turn = await chat.send("outer", **(settings if of_send else {}))
        inner = None
        async for event in turn.events():
            if event.type == "call.asked":
                await runtime.answer(event.question, allow_once())
            if event.type == "call.progress" and isinstance(event.value, dict) and "asks" in event.value:
                inner = str(event.value["asks"])
                await runtime.answer(inner, reject())
        made = [
            call
            for one in await runtime.conversations()
            for message in await (await runtime.conversation(one.id)).messages()
            for call in message.calls
        ]
        states = {call.tool: call.state for call in made}
        assert states["note"] in (CallState.REJECTED, CallState.FAILED)


async def test_what_is_private_and_reviewed_is_so_in_a_task_too(tmp_path: Path) -> None:
    """The arguments of a task hold the real values, but its model requests do not (R3, P5)."""

    def line(request: Request) -> Line:
        if "all done" in asked(request) or request.messages[-1].role == "assistant":
            return says("all done")
        if asked(request) == "outer":
            return calls("task", agent="clerk", request="call [[phone]]")
        return says("called")

    async with runtime_with(tmp_path, line, tools=GROUPS, agents=[CLERK]) as runtime:
        private: dict[str, Any] = {"private": {"phone": "0660 1234"}, "review": "on_error"}
        result = await (await (await runtime.conversation(**private)).send("outer")).result()
        call = only_call(result)
        assert call.result is not None
        inner = await runtime.store.conversation(str(call.result.metadata["conversation"]))
        assert {name: inner.settings[name] for name in private} == private
        requests = model_of(runtime).requests
        assert len(requests) > 2
        assert "0660" not in str([request.messages for request in requests])


async def test_what_a_task_uses_counts(tmp_path: Path) -> None:
    """T12"""

    def line(request: Request) -> Line:
        if asked(request) != "outer":
            return replace(says("noted"), usage=Usage(5000, 5000))
        if sum(message.role == "assistant" for message in request.messages) < 2:
            return calls("task", agent="clerk", request=f"inner {len(request.messages)}")
        return says("enough")

    async with runtime_with(tmp_path, line, tools=GROUPS, agents=[CLERK], max_tokens=1000) as runtime:
        result = await (await runtime.send("outer")).result()
        states = [call.state for call in calls_of(result.messages)]
        assert states == [CallState.COMPLETED, CallState.SKIPPED]


async def test_cancelling_a_turn_cancels_its_tasks(tmp_path: Path) -> None:
    """T6"""
    asking = Agent(name="clerk", tools=("notes",))
    script = by_depth([calls("note", text="x"), says("noted")])
    async with runtime_with(tmp_path, script, tools=GROUPS, agents=[asking], allow=["task"]) as runtime:
        turn = await runtime.send("outer")
        while not (open := await runtime.questions()):  # noqa: ASYNC110 - the inner turn runs by itself
            await asyncio.sleep(0.01)
        await turn.cancel()
        assert (await turn.result()).state == "cancelled"
        assert await runtime.turn(open[0].turn).reached("cancelled")


async def test_a_task_goes_on_after_a_restart_in_the_turn_it_began(tmp_path: Path) -> None:
    """After a restart both turns resume, the inner one receives its answer, and no call runs twice (S3)."""
    asking = Agent(name="clerk", tools=("notes",))
    script = by_depth([calls("note", text="x"), says("noted")])
    async with runtime_with(tmp_path, script, tools=GROUPS, agents=[asking], allow=["task"]) as first:
        outer = (await first.send("outer")).id
        while not (open := await first.questions()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    async with runtime_with(tmp_path, script, tools=GROUPS, agents=[asking], allow=["task"]) as second:
        await second.answer(open[0].id, allow_once())
        assert (await second.turn(outer).result()).text == "all done"
        assert len(await second.conversations()) == 2


async def test_a_conversation_is_deleted_with_its_tasks(tmp_path: Path) -> None:
    script = by_depth([calls("note", text="x"), says("noted")])
    async with runtime_with(tmp_path, script, tools=GROUPS, agents=[CLERK]) as runtime:
        talk = await runtime.conversation()
        await (await talk.send("outer")).result()
        await runtime.delete(talk.id)
        assert await runtime.conversations() == []


async def test_a_conversation_that_is_deleted_does_not_go_on_with_what_became_of_its_tasks(
    tmp_path: Path,
) -> None:
    """Deleting a conversation requests no reply that has no reader (T6 × U4)."""
    asking = Agent(name="clerk", tools=("notes",))
    script = by_depth([calls("note", text="x"), says("noted")])
    async with runtime_with(tmp_path, script, tools=GROUPS, agents=[asking], allow=["task"]) as runtime:
        talk = await runtime.conversation()
        turn = await talk.send("outer")
        while not await runtime.questions():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        asked = len(model_of(runtime).requests)
        await runtime.delete(talk.id)
        assert (await turn.result()).state == "cancelled"
        assert len(model_of(runtime).requests) == asked


async def test_tasks_do_not_nest_for_ever(tmp_path: Path) -> None:
    endless = Agent(name="clerk")

    def line(request: Request) -> Line:
        results = [part.result for part in request.messages[-1].parts if isinstance(part, ToolCall)]
        if results and results[0] is not None:
            return says("enough: " + results[0].text)
        return calls("task", agent="clerk", request="again")

    async with runtime_with(tmp_path, line, agents=[endless]) as runtime:
        result = await (await runtime.send("go")).result()
        assert "Do the work yourself" in result.text
        assert len(await runtime.conversations()) == 4


async def test_a_task_that_fails_is_a_failed_call(tmp_path: Path) -> None:
    """C7"""

    def line(request: Request) -> Line:
        if asked(request) == "inner":
            raise RuntimeError("the model fell over")
        place = sum(message.role == "assistant" for message in request.messages)
        return [calls("task", agent="clerk", request="inner"), says("never mind")][place]

    async with runtime_with(tmp_path, line, agents=[CLERK]) as runtime:
        result = await (await runtime.send("go")).result()
        assert only_call(result).state is CallState.FAILED
        assert result.text == "never mind"


async def test_a_task_that_is_cancelled_alone_is_a_failed_call(tmp_path: Path) -> None:
    """C7 × T6"""
    asking = Agent(name="clerk", tools=("notes",))
    script = by_depth([calls("note", text="x")])
    async with runtime_with(tmp_path, script, tools=GROUPS, agents=[asking], allow=["task"]) as runtime:
        turn = await runtime.send("outer")
        while not (open := await runtime.questions()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert await runtime.turn(open[0].turn).cancel()
        call = only_call(await turn.result())
    assert call.result is not None
    assert (call.state, call.result.text) == (
        CallState.FAILED,
        "the task was cancelled before it had an answer",
    )


def test_agents_need_names() -> None:
    with pytest.raises(ConfigError, match="name"):
        Runtime("x.db", model=ScriptedModel([]), agents=[Agent()])


async def test_a_task_whose_agent_refused_is_told_as_that(tmp_path: Path) -> None:
    """A refusal of the task's agent reaches the outer call with the refusal's text (C7)."""
    script = [calls("task", agent="helper", request="x"), says("I will not.", finish="refusal"), says("Hm.")]
    async with runtime_with(tmp_path, script, agents=[Agent(name="helper")]) as runtime:
        result = await (await runtime.send("go")).result()
        (call,) = calls_of(result.messages)
        assert call.result is not None
        assert (call.state, "I will not." in call.result.text, "refused" in call.result.text) == (
            CallState.FAILED,
            True,
            True,
        )


async def test_agents_are_replaced_while_the_program_runs(tmp_path: Path) -> None:
    """Dragoman can list the turns that run with an agent, and offers tools of a new agent set from then on
    (T14)."""
    script = [calls("add", a=1, b=2), says("3"), says("hello")]
    one, other = Agent(name="one"), Agent(name="other", description="is new")
    async with runtime_with(tmp_path, script, agents=[one], allow=(), tools=[add]) as runtime:
        turn = await (await runtime.conversation(agent="one")).send("go")
        assert await turn.reached("waiting")
        assert await turns_of_agent(runtime.services, "one") == [turn.id]
        assert await turns_of_agent(runtime.services, "other") == []
        await turn.answer(turn.question, allow_once())
        await turn.result()
        assert await turns_of_agent(runtime.services, "one") == []
        with pytest.raises(ConfigError, match="hands over to 'nobody'"):
            runtime.use_agents([Agent(name="x", handoffs=("nobody",))])
        assert [*runtime.services.agents] == ["one"]
        runtime.use_agents([other])
        offered = runtime.services.toolbox.offer().tools
        assert "- other: is new" in offered["task"].description
        result = await (await (await runtime.conversation(agent="other")).send("hi")).result()
        assert result.text == "hello"
        runtime.use_agents([])
        assert "task" not in runtime.services.toolbox.offer().tools


@pytest.mark.parametrize(
    ("user", "names"), [("ada", {"all", "ours"}), ("bob", {"all"}), ("local", {"all", "ours", "theirs"})]
)
async def test_a_user_has_the_agents_of_their_teams(tmp_path: Path, user: str, names: set[str]) -> None:
    """The admin has all of them (V2)."""
    agents = [Agent(name="all"), Agent(name="ours", teams=("us",)), Agent(name="theirs", teams=("them",))]
    teams = {"us": Team(members=frozenset({"ada"})), "them": Team()}
    prompts = {agent.name: SharedPrompt(agent.name, agent.teams) for agent in agents}
    async with runtime_with(tmp_path, [], agents=agents, teams=teams, prompts=prompts) as runtime:
        seen = await runtime.services.seen_by(user)
    assert set(seen.agents) == set(seen.prompts) == names
    assert seen.hidden_agents == {"all", "ours", "theirs"} - names
    assert seen.settings_seen({"agent": "theirs"}) == ({"agent": "theirs"} if user == "local" else {})
    with pytest.raises(NotFound, match=r"Choose one of all\."):
        seen.agent("nobody")
