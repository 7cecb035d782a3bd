"""The turn, from outside: T1 to T5, T8, T11."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import get_type_hints

import pytest

from dragoman import (
    BadRequest,
    NotFound,
    ProviderError,
    TurnBusy,
    allow_once,
    tool,
)
from dragoman.errors import ConfigError
from dragoman.messages.fold import fold
from dragoman.messages.message import CallState, Error, File, Text
from dragoman.messages.usage import Usage
from dragoman.turn.live.log import Snapshot
from dragoman.turn.steps.calls import Settled, run_calls
from dragoman.turn.steps.prepare import PreparedTurn, RequestReady, assemble, build_request
from dragoman.turn.steps.stream import Streamed, stream
from dragoman.wire.scripted import Line, ScriptedModel, calls, fails, says, thinks
from tests.runtimes import add, calls_of, events_of, model_of, only_call, play, runtime_with


async def _slow(said: str = "x") -> str:
    await asyncio.sleep(30)
    return said


slow = tool(name="slow", description="Takes its time.", cancellable=True)(_slow)


async def test_an_answer_without_tools(tmp_path: Path) -> None:
    result = await play(tmp_path, [thinks("hm ") + says("Hello there.")])
    assert (result.text, result.state) == ("Hello there.", "completed")
    assert result.messages[-1].reasoning == "hm "


async def test_a_turn_passes_through_its_states_in_order(tmp_path: Path) -> None:
    """T1"""
    async with runtime_with(tmp_path, [calls("add", a=1, b=2), says("3")], tools=[add]) as runtime:
        turn = await runtime.send("1 + 2?")
        states = [event.state for event in await events_of(turn) if event.type == "turn.state"]
    assert states == ["streaming", "tool_call", "streaming", "finalizing", "completed"]


async def test_a_subscriber_gets_the_present_and_then_every_change(tmp_path: Path) -> None:
    """T2"""
    seen: list[Snapshot] = []

    def broken(_: Snapshot) -> None:
        raise RuntimeError("mine")

    async with runtime_with(tmp_path, [calls("add", a=1, b=2), says("3")], tools=[add], allow=()) as runtime:
        turn = await runtime.send("1 + 2?")
        assert await turn.reached("waiting")
        turn.subscribe(broken)
        unsubscribe = turn.subscribe(seen.append)
        assert [snapshot.state for snapshot in seen] == ["waiting"]
        assert seen[0].questions[0].tool == "add"
        await turn.answer(turn.question, allow_once())
        await turn.result()
        unsubscribe()
    # answered and started; finished; step over; request; reply; step over; completed
    assert [snapshot.state for snapshot in seen[1:]] == [
        "tool_call",
        "tool_call",
        "streaming",
        "streaming",
        "finalizing",
        "finalizing",
        "completed",
    ]


def test_each_stage_takes_the_value_the_one_before_it_returns() -> None:
    """T3"""
    stages = [assemble, build_request, stream, run_calls]
    values = [PreparedTurn, RequestReady, Streamed, Settled]
    for stage, before, after in zip(stages[1:], values, values[1:], strict=False):
        hints = get_type_hints(stage)
        assert hints["return"] is after
        assert before in hints.values()
    assert get_type_hints(assemble)["return"] is PreparedTurn


async def test_a_turn_needs_no_plugin(tmp_path: Path) -> None:
    """The core works without plugins (H10)."""
    async with runtime_with(tmp_path, [calls("add", a=1, b=2), says("3")], tools=[add]) as runtime:
        every = [plugin.name for plugin in runtime.services.plugins]
        built_in = {
            "privacy",
            "compaction",
            "round_limit",
            "budget",
            "loop_guard",
            "length",
            "pause",
            "titles",
            "typed_output",
        }
        assert set(every) == built_in
        chat = await runtime.conversation()
        assert (await (await chat.send("go", disable=every)).result()).text == "3"
        assert (await chat.info()).title is None


@pytest.mark.parametrize("blank", ["", "  \n\t", []])
async def test_a_blank_message_is_refused_and_nothing_is_stored(tmp_path: Path, blank: str) -> None:
    """T4"""
    async with runtime_with(tmp_path, []) as runtime:
        chat = await runtime.conversation()
        with pytest.raises(BadRequest, match="blank"):
            await chat.send(blank)
        assert await chat.messages() == []
        assert await runtime.store.turns(chat.id) == []


async def test_a_file_alone_is_something_to_say(tmp_path: Path) -> None:
    """T4"""
    async with runtime_with(tmp_path, [says("nice")]) as runtime:
        turn = await runtime.send([File("image/png", url="https://example.org/cat.png")])
        assert (await turn.result()).text == "nice"


async def test_a_second_message_to_a_running_branch_is_refused(tmp_path: Path) -> None:
    """T4"""
    async with runtime_with(tmp_path, [calls("slow")], tools=[slow]) as runtime:
        chat = await runtime.conversation()
        turn = await chat.send("go")
        assert await turn.reached("tool_call")
        with pytest.raises(TurnBusy, match=turn.id):
            await chat.send("and?")
        assert [m.role for m in await chat.messages()] == ["user", "assistant"]
        await turn.cancel()


async def test_a_queued_message_waits_for_the_turn_before_it(tmp_path: Path) -> None:
    """T4"""
    async with runtime_with(tmp_path, [says("first", waits=0.02), says("second"), says("third")]) as runtime:
        chat = await runtime.conversation()
        await chat.send("one")
        second = await chat.send("two", queue=True)
        third = await chat.send("three", queue=True)
        assert (await third.result()).text == "third"
        assert (await second.result()).text == "second"
        assert [m.text for m in await chat.messages()] == ["one", "first", "two", "second", "three", "third"]


async def test_two_branches_run_side_by_side(tmp_path: Path) -> None:
    """T4"""
    async with runtime_with(tmp_path, lambda _: says("hi", waits=0.02)) as runtime:
        chat = await runtime.conversation()
        one = await chat.send("one")
        other = await chat.edit((await chat.messages())[0].id, "one, but better")
        assert {(await one.result()).state, (await other.result()).state} == {"completed"}
        assert len((await chat.tree()).children(None)) == 2


async def test_the_model_never_sees_a_placeholder(tmp_path: Path) -> None:
    """T5, R4"""
    async with runtime_with(tmp_path, [fails("gone"), says("b")]) as runtime:
        chat = await runtime.conversation()
        with pytest.raises(ProviderError):
            await (await chat.send("one")).result()
        await (await chat.send("two")).result()
        second = model_of(runtime).requests[1]
    assert [(said.role, said.parts) for said in second.messages] == [
        ("user", (Text("one"),)),
        ("user", (Text("two"),)),
    ]


# ── T8: errors ────────────────────────────────────────────────────────────────────────────────────


async def test_a_providers_error_ends_the_turn_and_keeps_what_had_arrived(tmp_path: Path) -> None:
    """T8"""
    error = ProviderError("overloaded", status=529, retryable=True)
    async with runtime_with(tmp_path, [fails(error, after="half an ans")]) as runtime:
        chat = await runtime.conversation()
        turn = await chat.send("go")
        seen = [event.type for event in await events_of(turn)]
        with pytest.raises(ProviderError, match="overloaded"):
            await turn.result()
        kept = (await chat.messages())[-1]
        assert kept.text == "half an ans"
        assert kept.parts[-1] == Error("overloaded (HTTP 529)", "provider", retryable=True)
        failed = (await turn.turn()).error
    assert seen[-2:] == ["error", "turn.end"]
    assert failed is not None
    assert (failed.error, failed.retryable) == ("overloaded (HTTP 529)", True)


async def test_what_a_turn_failed_with_is_told_without_the_name_of_our_class(tmp_path: Path) -> None:
    """An error text contains no class name of Dragoman. For foreign errors, the class name can be all there
    is (T8)."""
    errors = (ConfigError("unknown key"), KeyError("k"))
    async with runtime_with(tmp_path, [fails(error) for error in errors]) as runtime:
        told = []
        for error in errors:
            turn = await (await runtime.conversation()).send("hi")
            with pytest.raises(type(error)):
                await turn.result()
            failed = (await turn.turn()).error
            assert failed is not None
            told.append(failed.error)
    assert told == ["unknown key", "KeyError: 'k'"]


async def test_an_error_with_half_a_call_gives_that_call_a_result(tmp_path: Path) -> None:
    """T8, C2"""
    async with runtime_with(tmp_path, [calls("add", a=1, b=1) + fails("gone")], tools=[add]) as runtime:
        chat = await runtime.conversation()
        with pytest.raises(ProviderError):
            await (await chat.send("go")).result()
        (call,) = calls_of(await chat.messages())
    assert call.state is CallState.CANCELLED


async def test_a_tools_error_does_not_end_the_turn(tmp_path: Path) -> None:
    """T8, C7"""

    @tool
    def broken() -> str:
        """Fails."""
        raise ValueError("no luck")

    result = await play(tmp_path, [calls("broken"), says("it failed")], tools=[broken])
    call = only_call(result)
    assert (result.text, call.state) == ("it failed", CallState.FAILED)
    assert call.result is not None
    assert call.result.text == "broken failed: ValueError: no luck"


async def test_usage_is_kept_by_step_turn_and_conversation(tmp_path: Path) -> None:
    """T11: an unknown price is not a price of nothing."""
    priced = Usage(input=100, output=10, cached=50, cost=0.25)
    script = [
        Line(calls=calls("add", a=1, b=1).calls, usage=priced),
        says("2", usage=priced),
        says("x", usage=Usage(input=7)),
    ]
    async with runtime_with(tmp_path, script, tools=[add]) as runtime:
        chat = await runtime.conversation()
        turn = await chat.send("go")
        steps = [event.usage for event in await events_of(turn) if event.type == "step.end"]
        assert steps == [priced, priced]
        assert (await turn.result()).usage == Usage(input=200, output=20, cached=100, cost=0.5)
        assert (await (await chat.send("more")).result()).usage.cost is None
        assert (await chat.info()).usage == Usage(input=207, output=20, cached=100, cost=None)


# ── what every turn keeps to ──────────────────────────────────────────────────────────────────────


async def test_the_events_of_a_turn_fold_into_what_is_stored(tmp_path: Path) -> None:
    """One place builds messages: a client that folds the events gets exactly the stored messages (E1)."""
    script = [thinks("hm") + says("let me add ") + calls("add", a=1, b=2) + calls("nope"), says("It is 3.")]
    async with runtime_with(tmp_path, script, tools=[add], allow=()) as runtime:
        turn = await runtime.send("go")
        events = []
        async for event in turn.events():
            events.append(event)
            if event.type == "call.asked":
                await turn.answer(event.question, allow_once())
        stored = [m for m in (await turn.result()).messages if m.role == "assistant"]
    folded = fold(events, stored[0].conversation, turn.id)
    assert [m.parts for m in folded] == [m.parts for m in stored]
    numbers = [event.seq for event in events]
    assert numbers == list(range(1, len(numbers) + 1))


async def test_a_listener_that_comes_late_gets_each_event_once(tmp_path: Path) -> None:
    """E2"""
    async with runtime_with(tmp_path, [says("x" * 80)]) as runtime:
        turn = await runtime.send("go")
        first = [event async for event in turn.events()]
        again = [event async for event in turn.events(after=first[4].seq)]
    assert again == first[5:]


async def test_bad_input_is_refused_with_a_clear_error(tmp_path: Path) -> None:
    async with runtime_with(tmp_path, [says("a"), says("b")]) as runtime:
        chat, other = await runtime.conversation(), await runtime.conversation()
        await (await chat.send("one")).result()
        message = (await chat.messages())[0].id
        nowhere = runtime.turn("turn_nowhere")
        for look in (nowhere.facts, nowhere.turn, nowhere.request, nowhere.trace, nowhere.context):
            with pytest.raises(NotFound, match="Unknown turn 'turn_nowhere'"):
                await look()
        with pytest.raises(NotFound, match="Unknown conversation 'conv_nowhere'"):
            await runtime.conversation("conv_nowhere")
        with pytest.raises(BadRequest, match="Unknown message"):
            await other.send("two", parent=message)
        with pytest.raises(NotFound, match="Unknown message 'msg_nowhere'"):
            await chat.send("two", parent="msg_nowhere")
        for make_anew in (other.rerun(message), other.edit(message, "two")):
            with pytest.raises(NotFound, match=f"Unknown message '{message}'"):
                await make_anew
        with pytest.raises(NotFound, match="Unknown model 'other/model'"):
            await chat.send("two", model="other/model")
        with pytest.raises(BadRequest, match="mode 'yolo'"):
            await chat.send("two", mode="yolo")  # type: ignore[call-overload]
        assert await other.messages() == []
        assert len(await chat.messages()) == 2


async def test_a_script_that_is_too_short_says_so(tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match="The script has 0 lines"):
        await play(tmp_path, [])
    assert ScriptedModel([]).name == "scripted/model"
