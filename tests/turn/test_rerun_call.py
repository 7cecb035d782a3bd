"""Regenerate an answer from one of its calls on, with other arguments or another result (T10)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, allow_once, release, tool, withhold
from dragoman.errors import BadRequest, NotFound, TurnBusy
from dragoman.messages.message import CallState, Text, ToolCall
from dragoman.turn.api.conversation_handle import ConversationHandle
from dragoman.wire.scripted import Line, ScriptedCall, calls, says
from tests.runtimes import add, calls_of, model_of, runtime_with

RAN: list[tuple[int, int]] = []


@tool
def times(a: int, b: int) -> int:
    """Multiply two numbers."""
    RAN.append((a, b))
    return a * b


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


async def shown(chat: ConversationHandle) -> list[Any]:
    """Return the conversation's texts, and its calls with their results."""
    found: list[Any] = []
    for message in await chat.messages():
        for part in message.parts:
            if isinstance(part, ToolCall):
                found.append((part.tool, part.arguments, part.result.text if part.result else None))
            elif isinstance(part, Text):
                found.append(part.text)
    return found


SCRIPT = [calls("times", a=2, b=3), calls("add", a=6, b=1), says("7"), calls("add", a=8, b=1), says("9")]


async def test_with_other_arguments_it_runs_and_the_turn_goes_on(tmp_path: Path) -> None:
    """Calls before this one stay and do not run again. The model regenerates everything after it (T10)."""
    async with runtime_with(tmp_path, [*SCRIPT[:3], says("10")], tools=[add, times]) as runtime:
        chat = await runtime.conversation()
        first = await (await chat.send("go")).result()
        _, second = calls_of(first.messages)
        again = await (await chat.rerun_call(second.id, arguments={"a": 9, "b": 1})).result()
        assert again.text == "10"
        assert RAN == [(2, 3)]
        assert await shown(chat) == [
            "go",
            ("times", {"a": 2, "b": 3}, "6"),
            ("add", {"a": 9, "b": 1}, "10"),
            "10",
        ]
        (changed,) = [call for call in calls_of(again.messages) if call.tool == "add"]
        assert changed.original == {"a": 6, "b": 1}
        tree = await chat.tree()
        assert len(tree.children(first.messages[0].id)) == 2  # both versions are there
        assert again.usage.input < first.usage.input  # copied messages counted once
        assert min(one.created for one in again.messages[1:]) >= max(one.created for one in first.messages)
        sent = model_of(runtime).requests[-1].messages
        made = [part for message in sent for part in message.parts if isinstance(part, ToolCall)]
        assert [call.arguments for call in made] == [{"a": 2, "b": 3}, {"a": 9, "b": 1}]


async def test_with_another_result_nothing_runs(tmp_path: Path) -> None:
    """T10: the model reads what the person says came of it."""
    async with runtime_with(tmp_path, SCRIPT, tools=[add, times]) as runtime:
        chat = await runtime.conversation()
        first, _ = calls_of((await (await chat.send("go")).result()).messages)
        again = await (await chat.rerun_call(first.id, result="8")).result()
        assert again.text == "9"
        assert RAN == [(2, 3)]
        assert (await shown(chat))[1] == ("times", {"a": 2, "b": 3}, "8")


async def test_as_it_was_it_runs_once_more(tmp_path: Path) -> None:
    async with runtime_with(tmp_path, [*SCRIPT[:3], says("6")], tools=[add, times]) as runtime:
        chat = await runtime.conversation()
        first, _ = calls_of((await (await chat.send("go")).result()).messages)
        assert (await (await chat.rerun_call(first.id)).result()).text == "6"
        assert RAN == [(2, 3), (2, 3)]


async def test_other_arguments_are_decided_about_like_any(tmp_path: Path) -> None:
    """A call that a rule asks about needs approval, and a denied one does not run (T10 × P10)."""
    script = [calls("times", a=2, b=3), says("6"), says("12"), says("no")]
    rules: dict[str, Any] = {"allow": ["times"], "ask": ["times:4*"], "deny": ["times:5*"]}

    @tool(pattern="a")
    def times(a: int, b: int) -> int:
        """Multiply two numbers."""
        RAN.append((a, b))
        return a * b

    async with runtime_with(tmp_path, script, tools=[times], **rules) as runtime:
        chat = await runtime.conversation()
        (made,) = calls_of((await (await chat.send("go")).result()).messages)
        turn = await chat.rerun_call(made.id, arguments={"a": 4, "b": 3})
        question = await anext(turn.asked())
        await runtime.answer(question.id, allow_once())
        assert (await turn.result()).text == "12"
        denied = await (await chat.rerun_call(made.id, arguments={"a": 5, "b": 3})).result()
        assert calls_of(denied.messages)[0].state is CallState.REJECTED
        assert RAN == [(2, 3), (4, 3)]


async def test_what_was_said_before_the_call_is_copied(tmp_path: Path) -> None:
    """T10 × T13: the new version has it at its place, as a message that was appended."""
    script = [calls("times", a=2, b=3), calls("times", a=4, b=5), says("20"), says("7")]

    @tool(name="times")
    async def times_after_steering(a: int, b: int) -> int:
        """Multiply two numbers."""
        if a == 2:
            await turn.steer("and more")
        return a * b

    async with runtime_with(tmp_path, script, tools=[times_after_steering], ask=["times"]) as runtime:
        chat = await runtime.conversation()
        turn = await chat.send("go")
        async for question in turn.asked():
            await runtime.answer(question.id, allow_once())
        _, last = calls_of((await turn.result()).messages)
        again = await chat.rerun_call(last.id, result="7")
        assert (await again.result()).text == "7"
        assert [message.text for message in await chat.messages()] == ["go", "", "and more", "", "7"]
        facts = [fact.type for fact in await again.facts()]
        assert facts.count("message_appended") == 1


async def test_calls_beside_it_keep_their_results(tmp_path: Path) -> None:
    """Calls of the same reply keep their results, and a withheld one stays withheld (T10)."""
    beside = Line(calls=tuple(ScriptedCall("times", {"a": n, "b": n}) for n in (1, 2, 3)))
    async with runtime_with(tmp_path, [beside, says("done"), says("again")], tools=[times]) as runtime:
        chat = await runtime.conversation(review="always")
        turn = await chat.send("go")
        async for question in turn.asked():
            secret = question.arguments == {"a": 3, "b": 3}
            await runtime.answer(question.id, withhold() if secret else release())
        made = calls_of((await turn.result()).messages)
        await chat.change(review="never")
        again = await (await chat.rerun_call(made[1].id, arguments={"a": 5, "b": 5})).result()
        results = [call.result.text for call in calls_of(again.messages) if call.result]
        assert results[:2] == ["1", "25"]
        assert "9" not in results[2]
        assert sorted(RAN) == [(1, 1), (2, 2), (3, 3), (5, 5)]


async def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    async with runtime_with(tmp_path, [*SCRIPT[:3], calls("times", a=1, b=1)], tools=[add, times]) as runtime:
        chat = await runtime.conversation()
        first, _ = calls_of((await (await chat.send("go")).result()).messages)
        with pytest.raises(BadRequest, match="the arguments do not fit"):
            await chat.rerun_call(first.id, arguments={"a": "two"})
        with pytest.raises(BadRequest, match="needs other arguments, or a result"):
            await chat.rerun_call(first.id, arguments={"a": 1, "b": 2}, result="2")
        with pytest.raises(BadRequest, match=r"A result must be a string, not 5\."):
            await chat.rerun_call(first.id, result=5)  # type: ignore[arg-type]
        with pytest.raises(NotFound):
            await chat.rerun_call("call_none")
        other = await runtime.conversation()
        with pytest.raises(NotFound):
            await other.rerun_call(first.id)
        assert len(await runtime.store.turns(chat.id)) == 1


async def test_a_turn_that_still_runs_is_not_begun_beside_itself(tmp_path: Path) -> None:
    """T10 × T2"""
    async with runtime_with(tmp_path, SCRIPT, tools=[add, times], allow=[]) as runtime:
        chat = await runtime.conversation()
        turn = await chat.send("go")
        question = await anext(turn.asked())
        with pytest.raises(TurnBusy):
            await chat.rerun_call(question.call, result="1")
        await turn.cancel()


@pytest.mark.parametrize("asked_again", [False, True])
async def test_it_goes_on_after_a_restart(tmp_path: Path, *, asked_again: bool) -> None:
    """The turn resumes while its call waits for a user, and copies nothing twice (T10 × S1)."""
    rules: dict[str, Any] = {"tools": [add, times], "allow": ["times"], "ask": ["add"]}
    async with runtime_with(tmp_path, SCRIPT, **rules) as runtime:
        chat = await runtime.conversation()
        turn = await chat.send("go")
        question = await anext(turn.asked())
        await runtime.answer(question.id, allow_once())
        _, second = calls_of((await turn.result()).messages)
        again = await chat.rerun_call(second.id, arguments={"a": 9, "b": 1})
        waiting = await anext(again.asked())
    async with runtime_with(tmp_path, [says("10")], **rules) as other:
        if asked_again:
            assert [one.id for one in await other.questions()] == [waiting.id]
        await other.answer(waiting.id, allow_once())
        assert (await other.turn(again.id).result()).text == "10"
        assert len(await shown(await other.conversation(chat.id))) == 4
    assert RAN == [(2, 3)]


async def test_a_version_of_a_version_and_its_plain_rerun(tmp_path: Path) -> None:
    """A version made from a call can be regenerated from a call again, or as a whole (T10)."""
    script = [calls("times", a=2, b=3), says("6"), says("8"), says("9"), calls("times", a=1, b=1), says("1")]
    async with runtime_with(tmp_path, script, tools=[times]) as runtime:
        chat = await runtime.conversation()
        (made,) = calls_of((await (await chat.send("go")).result()).messages)
        second = await (await chat.rerun_call(made.id, result="8")).result()
        (copied,) = calls_of(second.messages)
        third = await (await chat.rerun_call(copied.id, result="9")).result()
        assert third.text == "9"
        whole = await (await chat.rerun(third.messages[-1].id)).result()
        assert whole.text == "1"
        assert RAN == [(2, 3), (1, 1)]


async def test_a_call_of_a_task_can_be_made_anew_in_its_conversation(tmp_path: Path) -> None:
    """T10 × R8"""
    task = calls("task", agent="clerk", request="six")
    script = [task, calls("times", a=2, b=3), says("6"), says("done"), says("8")]
    async with runtime_with(tmp_path, script, tools=[times], agents=[Agent(name="clerk")]) as runtime:
        result = await (await runtime.send("go")).result()
        (given,) = calls_of(result.messages)
        assert given.result is not None
        inner = await runtime.conversation(str(given.result.metadata["conversation"]))
        (made,) = calls_of(await inner.messages())
        assert (await (await inner.rerun_call(made.id, result="8")).result()).text == "8"
