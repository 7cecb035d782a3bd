"""C10: a model that repeats itself causes an approval request, also with other calls in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman import (
    Answer,
    ConfigError,
    Group,
    Plugin,
    TurnView,
    allow_always,
    allow_for_conversation,
    allow_once,
    reject,
    stop,
    tool,
)
from dragoman.messages.events import CallAsked
from dragoman.messages.message import CallState
from dragoman.plugins.loop_guard import LoopGuard
from dragoman.tools.tool import Tool
from dragoman.turn.api.conversation_handle import ConversationHandle
from dragoman.turn.api.turn_handle import TurnResult
from dragoman.turn.plugin import PlannedCall
from dragoman.wire.scripted import Line, calls, says
from tests.runtimes import calls_of, model_of, runtime_with


@tool
def look(at: str) -> str:
    """Look at something."""
    return f"nothing new at {at}"


@tool
def wait(seconds: int = 1) -> str:
    """Wait a little."""
    return "waited"


async def converse(
    chat: ConversationHandle, said: str, answer: Answer | None = None
) -> tuple[TurnResult, list[CallAsked]]:
    """Run one turn with the same answer to every approval request, and return the requests."""
    asked: list[CallAsked] = []
    turn = await chat.send(said)
    async for event in turn.events():
        if isinstance(event, CallAsked):
            asked.append(event)
            await turn.answer(event.question, answer or allow_once())
    return await turn.result(), asked


async def looped(
    folder: Path, script: list[Line], answer: Answer | None = None, **options: Any
) -> tuple[TurnResult, list[CallAsked]]:
    options.setdefault("tools", [look, wait])
    async with runtime_with(folder, script, **options) as runtime:
        return await converse(await runtime.conversation(), "go", answer)


async def test_the_third_time_a_person_is_asked(tmp_path: Path) -> None:
    """C10"""
    result, asked = await looped(tmp_path, [calls("look", at="door")] * 3 + [says("nothing")])
    assert [(event.kind, event.tool) for event in asked] == [("loop", "look")]
    assert "called look 2 times with these arguments" in asked[0].text
    assert [call.state for call in calls_of(result.messages)] == [CallState.COMPLETED] * 3


async def test_other_calls_and_text_between_do_not_hide_a_loop(tmp_path: Path) -> None:
    """Another order of the arguments, or several calls in one reply, does not hide it either (C10)."""
    script = [
        calls("look", at="door"),
        says("Hm, let me wait. ") + calls("wait", seconds=1),
        calls("wait", seconds=2) + says("Again: ") + calls("look", at="door"),
        calls("look", at="window"),
        says("Once more. ") + calls("look", at="door"),
        says("nothing"),
    ]
    result, asked = await looped(tmp_path, script)
    assert [event.arguments for event in asked] == [{"at": "door"}]
    third = [call for call in calls_of(result.messages) if call.arguments == {"at": "door"}][2]
    assert third.id == asked[0].call


async def test_a_cycle_is_a_loop(tmp_path: Path) -> None:
    """C10: A B A B A B"""
    pair = [calls("look", at="door"), calls("look", at="window")]
    _, asked = await looped(tmp_path, pair * 3 + [says("nothing")])
    assert [event.arguments["at"] for event in asked] == ["door", "window"]


async def test_reading_again_what_was_changed_is_no_loop(tmp_path: Path) -> None:
    """Other tools still cause requests, and so does reading an unchanged file (C10)."""
    read = calls("read_file", path="a.txt")
    edits = [calls("write_file", path=f"{n}.txt", text=str(n)) + calls("look", at="door") for n in range(3)]
    (tmp_path / "a.txt").write_text("a")
    options: dict[str, Any] = {"tools": ["files", look], "workspace": tmp_path, "allow": ["files.*", "look"]}
    told = [line for edit in edits for line in (read, edit)]
    _, asked = await looped(tmp_path, [*told, says("ok")], **options)
    assert [event.tool for event in asked] == ["look"]
    _, asked = await looped(tmp_path, [read] * 3 + [says("ok")], **options)
    assert [event.tool for event in asked] == ["read_file"]


async def test_three_at_once_are_a_loop(tmp_path: Path) -> None:
    """C10"""
    one = calls("look", at="door")
    _, asked = await looped(tmp_path, [one + one + one, says("nothing")])
    assert len(asked) == 1


async def test_the_same_tool_on_other_things_is_no_loop(tmp_path: Path) -> None:
    """C10"""
    script = [calls("look", at=place) for place in "abcde"] + [
        calls("wait"),
        calls("wait", seconds=1),
        says("ok"),
    ]
    _, asked = await looped(tmp_path, script)
    assert asked == []


async def test_the_count_starts_anew_with_each_turn(tmp_path: Path) -> None:
    """C10"""
    script = [calls("look", at="door"), calls("look", at="door"), says("ok")]
    async with runtime_with(tmp_path, script * 2, tools=[look]) as runtime:
        chat = await runtime.conversation()
        assert (await converse(chat, "one"))[1] == []
        assert (await converse(chat, "two"))[1] == []


# ── a tool's own word ─────────────────────────────────────────────────────────────────────────────


async def test_a_tool_that_may_repeat_itself_is_left_alone(tmp_path: Path) -> None:
    """C10: polling"""
    poll = tool(name="poll", description="Poll.", repeats=True)(lambda: "not yet")
    _, asked = await looped(tmp_path, [calls("poll")] * 6 + [says("ok")], tools=[poll])
    assert asked == []


def job(identity: Any) -> Tool:
    def status(job: int, since: int = 0) -> str:
        """How a job is doing."""
        return "running"

    return tool(identity=identity)(status)


async def test_a_tool_may_say_what_makes_two_calls_the_same(tmp_path: Path) -> None:
    """C10"""
    script = [calls("status", job=1, since=n) for n in range(3)] + [says("ok")]
    _, asked = await looped(tmp_path / "job", script, tools=[job(lambda arguments: arguments["job"])])
    assert len(asked) == 1
    _, asked = await looped(tmp_path / "all", script, tools=[job(None)])
    assert asked == []


async def test_a_call_that_does_not_fit_its_tool_does_not_confuse_the_guard(tmp_path: Path) -> None:
    """The tool's own identity function expects valid arguments (C10, C7)."""
    script = [calls("status"), calls("status", job=1), says("ok")]
    result, asked = await looped(tmp_path, script, tools=[job(lambda arguments: arguments["job"])])
    assert (result.text, asked) == ("ok", [])


# ── what a person may answer ──────────────────────────────────────────────────────────────────────


async def test_once_means_that_the_next_time_is_asked_about_again(tmp_path: Path) -> None:
    """C10"""
    _, asked = await looped(tmp_path, [calls("look", at="door")] * 5 + [says("ok")], allow_once())
    assert len(asked) == 3


@pytest.mark.parametrize("answer", [allow_always(), allow_for_conversation()])
async def test_always_holds_in_this_conversation_and_in_no_other(tmp_path: Path, answer: Answer) -> None:
    """The rule can be revoked (C10)."""
    script = [*[calls("look", at="door")] * 5, says("ok")]
    async with runtime_with(tmp_path, script * 4, tools=[look]) as runtime:
        chat = await runtime.conversation()
        assert len((await converse(chat, "one", answer))[1]) == 1
        assert len((await converse(chat, "two"))[1]) == 0
        assert len((await converse(await runtime.conversation(), "three"))[1]) == 3
        (grant,) = await runtime.grants()
        assert grant.conversation == chat.id
        await runtime.revoke(grant.id)
        assert len((await converse(chat, "four"))[1]) == 3


async def test_always_holds_for_a_tool_that_is_offered_under_its_groups_name(tmp_path: Path) -> None:
    """C10, C11"""
    tools = [look, Group("attic", (tool(name="look", description="Look up there.")(lambda: "dust"),))]
    _, asked = await looped(tmp_path, [calls("attic_look")] * 5 + [says("ok")], allow_always(), tools=tools)
    assert len(asked) == 1


async def test_stop_ends_the_calls_and_asks_for_the_answer(tmp_path: Path) -> None:
    """C10"""
    script = [
        *[calls("look", at="door")] * 2,
        calls("look", at="door") + calls("wait"),
        says("nothing there"),
    ]
    async with runtime_with(tmp_path, script, tools=[look, wait]) as runtime:
        result, asked = await converse(await runtime.conversation(), "go", stop("it is late"))
        assert [bool(request.tools) for request in model_of(runtime).requests] == [True, True, True, False]
    stopped = calls_of(result.messages)[2]
    assert (stopped.state, result.text, len(asked)) == (CallState.SKIPPED, "nothing there", 1)
    assert stopped.result is not None
    assert "it is late" in stopped.result.text


async def test_a_rejection_is_a_result_like_any_other_and_is_not_asked_for_twice(tmp_path: Path) -> None:
    """C10, P4, P10"""
    script = [*[calls("look", at="door")] * 3, calls("look", at="door"), says("I give up")]
    result, asked = await looped(tmp_path, script, reject("no more"))
    assert [call.state for call in calls_of(result.messages)] == [
        "completed",
        "completed",
        "rejected",
        "rejected",
    ]
    assert (len(asked), result.text) == (1, "I give up")


def test_a_limit_below_two_is_refused() -> None:
    """C10"""
    with pytest.raises(ConfigError, match="2 or more, not 1"):
        LoopGuard(1)


async def test_the_limit_can_be_set(tmp_path: Path) -> None:
    """A custom guard replaces the built-in one (C10, H9)."""
    script = [*[calls("look", at="door")] * 2, says("ok")]
    _, asked = await looped(tmp_path, script, plugins=[LoopGuard(2)])
    assert len(asked) == 1


class Signs(Plugin):
    """Changes every call on its way."""

    async def before_tool(self, call: PlannedCall, turn: TurnView) -> None:
        call.arguments = {"at": f"{call.arguments['at']} ({len(turn.calls)})"}


async def test_a_call_that_a_plugin_changes_is_the_same_call(tmp_path: Path) -> None:
    """The model repeats the same call, although another one runs in its place (C10 x H8)."""
    script = [*[calls("look", at="door")] * 3, says("ok")]
    result, asked = await looped(tmp_path, script, reject(), plugins=[Signs()])
    assert [one.kind for one in asked] == ["loop"]
    assert [call.state for call in calls_of(result.messages)] == ["completed", "completed", "rejected"]


async def test_a_call_that_a_person_edits_is_the_same_call(tmp_path: Path) -> None:
    """C10 x P3: by what the model asked for, and by what ran."""
    script = [*[calls("look", at="door")] * 3, calls("look", at="window"), says("ok")]
    _, asked = await looped(tmp_path, script, allow_once({"at": "window"}), allow=())
    assert [one.kind for one in asked] == ["approve", "approve", "loop", "loop"]
