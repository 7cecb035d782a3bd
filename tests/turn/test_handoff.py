"""Handing a conversation over to another agent, in the middle of a turn and over a crash."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, Answer, Plugin, Rule, Runtime, ScriptedModel, TurnView, allow_once, tool
from dragoman.errors import ConfigError, StoreUnavailable
from dragoman.messages.message import CallState
from dragoman.messages.request import Request
from dragoman.store.sqlite import SqliteStore
from dragoman.wire.scripted import calls, says
from tests.runtimes import add, calls_of, model_of, runtime_with

DESK = Agent(name="desk", prompt="You greet.", handoffs=("sums", "mail"), tools=())
SUMS = Agent(name="sums", description="adds", prompt="You add.", tools=("tools",))
MAIL = Agent(name="mail", description="writes letters")
AGENTS = [DESK, SUMS, MAIL]


def _desk(folder: Path, script: Any, **options: Any) -> Runtime:
    return runtime_with(folder, script, **{"tools": [add], "agents": AGENTS, **options})


async def test_the_other_agent_goes_on_in_the_same_turn(tmp_path: Path) -> None:
    """With its prompt and its tools, and in the turns that follow, too."""
    script = [calls("hand_off", agent="sums", reason="2 + 2"), calls("add", a=2, b=2), says("4"), says("5")]
    async with _desk(tmp_path, script) as runtime:
        chat = await runtime.conversation(agent="desk")
        assert (await (await chat.send("2 + 2?")).result()).text == "4"
        first, second, _, *_ = model_of(runtime).requests
        assert "You greet." in first.system
        assert [spec.name for spec in first.tools] == ["hand_off"]
        assert "You add." in second.system
        assert "You greet." not in second.system
        assert "add" in [spec.name for spec in second.tools]
        await (await chat.send("2 + 3?")).result()
        assert "You add." in model_of(runtime).requests[-1].system
        assert (await chat.info()).settings["agent"] == "sums"


async def test_a_turn_that_was_handed_over_stays_so_after_a_crash(tmp_path: Path) -> None:
    """S1"""
    script = [calls("hand_off", agent="sums"), calls("add", a=2, b=2)]
    async with _desk(tmp_path, script, allow=["hand_off"]) as runtime:
        turn = await runtime.send("2 + 2?", agent="desk")
        assert await turn.reached("waiting")
        question = turn.question
    async with _desk(tmp_path, [says("4")], allow=["hand_off"]) as runtime:
        again = runtime.turn(turn.id)
        await again.answer(question, allow_once())
        assert (await again.result()).text == "4"
        assert "You add." in model_of(runtime).requests[-1].system


class GoneAtTheHandover(SqliteStore):
    """A store that is unreachable when the settings change."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.asked = asyncio.Event()

    async def change_settings(self, *_: Any) -> None:
        self.asked.set()
        raise StoreUnavailable("the store", "it is gone", retryable=True)


async def test_a_handover_that_could_not_be_kept_is_kept_after_a_restart(tmp_path: Path) -> None:
    """S2: the next turn starts with the agent that answered."""
    store = GoneAtTheHandover(tmp_path / "chat.db")
    async with _desk(tmp_path, [calls("hand_off", agent="sums")], store=store) as runtime:
        chat = await runtime.conversation(agent="desk")
        turn = await chat.send("2 + 2?")
        await store.asked.wait()
    async with _desk(tmp_path, [says("4")]) as runtime:
        assert (await runtime.turn(turn.id).result()).text == "4"
        assert (await (await runtime.conversation(chat.id)).info()).settings["agent"] == "sums"


async def test_only_those_it_may_hand_over_to(tmp_path: Path) -> None:
    """An agent cannot hand over to a name outside its offer, and an agent without handoffs cannot hand over
    (P1)."""
    script = [
        calls("hand_off", agent="desk"),
        calls("hand_off", agent="sums"),
        calls("hand_off", agent="mail"),
        says("done"),
    ]
    async with _desk(tmp_path, script) as runtime:
        result = await (await runtime.send("go", agent="desk")).result()
        states = [call.state for call in calls_of(result.messages)]
        assert states == [CallState.FAILED, CallState.COMPLETED, CallState.FAILED]
        assert "You add." in model_of(runtime).requests[-1].system


async def test_it_is_asked_about_and_can_be_edited(tmp_path: Path) -> None:
    """P9, P10: a grant is for what ran, though the model had asked for another one."""
    script = [calls("hand_off", agent="sums"), says("hello")]
    async with _desk(tmp_path, script, allow=[]) as runtime:
        turn = await runtime.send("go", agent="desk")
        assert await turn.reached("waiting")
        await turn.answer(turn.question, Answer("allow", "always", {"agent": "mail"}))
        await turn.result()
        (grant,) = await runtime.grants()
        assert (grant.rule.permission, grant.rule.pattern) == ("hand_off", "mail")
        assert "You add." not in model_of(runtime).requests[-1].system


async def test_the_model_of_the_other_agent_answers(tmp_path: Path) -> None:
    """Each agent has a separate model, and the turn uses the model of the agent that it was handed to.
    Plugins see both (T14)."""
    seen: list[tuple[str, str]] = []

    class Sees(Plugin):
        async def on_before_request(self, request: Request, turn: TurnView) -> None:
            seen.append((turn.agent.name, turn.model))

    made = {
        "small": ScriptedModel([calls("hand_off", agent="large")], name="small"),
        "large": ScriptedModel([says("deep")], name="large"),
    }
    agents = [Agent(name="first", model="small", handoffs=("large",)), Agent(name="large", model="large")]
    options: dict[str, Any] = {"agents": agents, "plugins": [Sees()], "allow": ["*"]}
    async with Runtime(tmp_path / "chat.db", model=lambda name: made[name or "small"], **options) as runtime:
        turn = await runtime.send("go", agent="first")
        result = await turn.result()
        assert result.text == "deep"
        layers = await turn.request()
        assert (layers.model, layers.agent) == ("large", "large")
        assert "hand_off" not in layers.tools
        other = await runtime.send("go", agent="first", model="large")
        layers = await other.request()
        assert (layers.model, layers.tools[-1]) == ("large", "hand_off")
        await other.cancel()
        assert [m.model for m in result.messages if m.role == "assistant"] == ["small", "large"]
    assert seen[:2] == [("first", "small"), ("large", "large")]


@tool(pattern="number")
def double(number: int) -> int:
    """Double a number."""
    return 2 * number


async def test_who_goes_on_is_no_freer_than_who_handed_over(tmp_path: Path) -> None:
    """P8: denials and the stricter mode stay, over a crash as well."""
    front = Agent(name="front", mode="auto", handoffs=("careful",))
    free = Agent(name="free", mode="auto", rules=(Rule("double", "*", "allow"),))
    careful = Agent(name="careful", mode="ask", rules=(Rule("double", "5", "deny"),), handoffs=("free",))
    options: dict[str, Any] = {"tools": [double], "agents": [front, free, careful], "allow": []}
    handed = [calls("hand_off", agent=agent) for agent in ("careful", "free")]
    script = [*handed, calls("double", number=5), calls("double", number=4)]
    async with _desk(tmp_path, script, **options) as runtime:
        turn = await runtime.send("go", agent="front")
        answered = 0
        async for event in turn.events():
            if event.type == "call.asked" and answered == 2:
                break  # mode ask still holds for what `free` would do without a question
            if event.type == "call.asked":
                answered += 1
                await turn.answer(event.question, allow_once())
    async with _desk(tmp_path, [calls("double", number=5), says("no")], **options) as runtime:
        again = runtime.turn(turn.id)
        async for event in again.events():
            if event.type == "call.asked":
                await again.answer(event.question, allow_once())
        states = [call.state for call in calls_of((await again.result()).messages)]
        completed, rejected = CallState.COMPLETED, CallState.REJECTED
        assert states == [completed, completed, rejected, completed, rejected]


async def test_its_rules_hold_from_then_on(tmp_path: Path) -> None:
    """After a handover the rules of the new agent decide what calls can do (P1)."""
    careful = Agent(name="careful", rules=(Rule("add", "*", "deny"),))
    free = Agent(name="free", handoffs=("careful",), rules=(Rule("add", "*", "allow"),))
    script = [
        calls("add", a=1, b=1),
        calls("hand_off", agent="careful"),
        calls("add", a=2, b=2),
        says("no"),
    ]
    async with _desk(tmp_path, script, agents=[careful, free], allow=["hand_off"]) as runtime:
        result = await (await runtime.send("go", agent="free")).result()
        states = [call.state for call in calls_of(result.messages)]
        assert states[:2] == [CallState.COMPLETED, CallState.COMPLETED]
        assert states[2] is not CallState.COMPLETED


async def test_a_task_is_bound_by_who_gave_it(tmp_path: Path) -> None:
    """A task opened before the handover gets no more permissions from the new agent (P8)."""
    careful = Agent(name="careful", rules=(Rule("add", "*", "deny"),), handoffs=("free",))
    free = Agent(name="free", rules=(Rule("add", "*", "allow"),))
    worker = Agent(name="worker")
    script = [
        calls("task", agent="worker", request="add") + calls("hand_off", agent="free"),
        calls("add", a=1, b=1),
        says("could not"),
        says("done"),
    ]
    async with _desk(tmp_path, script, agents=[careful, free, worker], allow=["task", "hand_off"]) as runtime:
        await (await runtime.send("go", agent="careful")).result()
        inner = [one for one in await runtime.conversations() if one.parent is not None]
        messages = [m for one in inner for m in (await runtime.store.messages(one.id))[0]]
        assert CallState.COMPLETED not in [call.state for call in calls_of(messages)]


def test_who_is_not_there_cannot_be_handed_to(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="hands over to 'nobody'"):
        Runtime(tmp_path / "chat.db", model=ScriptedModel([]), agents=[Agent(name="a", handoffs=("nobody",))])
