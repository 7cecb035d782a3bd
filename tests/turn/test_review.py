"""P5: a person looks at a result before the model does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dragoman import BadRequest, ConfigError, Group, client_tool, release, tool, withhold
from dragoman.messages.message import CallState, ToolResult
from dragoman.messages.questions import Answer
from dragoman.wire.scripted import calls, says
from tests.runtimes import calls_of, model_of, only_call, runtime_with

ran: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


@tool(review="always")
def report() -> str:
    """Report."""
    ran.append("report")
    return "salary: 5000"


@tool(review="on_error")
def risky(fail: bool) -> str:
    """May fail."""
    if fail:
        raise ValueError("password hunter2 is wrong")
    return "fine"


async def _review(tmp_path: Path, answer: Answer) -> tuple[ToolResult, CallState, str]:
    async with runtime_with(tmp_path, [calls("report"), says("ok")], tools=[report]) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        (question,) = turn.questions
        assert (question.kind, question.because) == ("review", "review")
        assert question.result is not None
        assert question.result.text == "salary: 5000"
        await turn.answer(question, answer)
        call = only_call(await turn.result())
        assert call.result is not None
        return call.result, call.state, repr(model_of(runtime).requests[-1])


async def test_a_result_may_be_passed_on(tmp_path: Path) -> None:
    """P5"""
    result, state, sent = await _review(tmp_path, release())
    assert (result.text, state) == ("salary: 5000", CallState.COMPLETED)
    assert "salary: 5000" in sent


async def test_a_result_may_be_edited(tmp_path: Path) -> None:
    """P5"""
    result, state, sent = await _review(tmp_path, release("salary: [removed]"))
    assert (result.text, state) == ("salary: [removed]", CallState.COMPLETED)
    assert result.note == "A user edited this result."
    assert "5000" not in sent


async def test_a_result_may_be_withheld(tmp_path: Path) -> None:
    """P5"""
    result, state, sent = await _review(tmp_path, withhold("not for you"))
    assert state is CallState.WITHHELD
    assert result.text.endswith("They said: not for you")
    assert "5000" not in sent


async def test_only_failures_are_reviewed_where_the_tool_says_so(tmp_path: Path) -> None:
    """P5"""
    script = [calls("risky", fail=False) + calls("risky", fail=True), says("ok")]
    async with runtime_with(tmp_path, script, tools=[risky]) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        (question,) = turn.questions
        assert question.arguments == {"fail": True}
        await turn.answer(question, release("it failed"))
        fine, bad = calls_of((await turn.result()).messages)
    assert (fine.state, bad.state) == (CallState.COMPLETED, CallState.FAILED)


async def test_a_review_survives_a_restart_and_the_tool_does_not_run_again(tmp_path: Path) -> None:
    """P5, P6, S3"""
    async with runtime_with(tmp_path, [calls("report")], tools=[report]) as first:
        turn = await first.send("go")
        assert await turn.reached("waiting")
        question = turn.question
    async with runtime_with(tmp_path, [says("ok")], tools=[report]) as second:
        await second.answer(question, release())
        call = only_call(await second.turn(turn.id).result())
    assert call.result == ToolResult("salary: 5000")
    assert ran == ["report"]


# ── by pattern ────────────────────────────────────────────────────────────────────────────────────


@tool
def look() -> str:
    """Look."""
    return "seen"


@tool(permission="notes.read")
def recall(fail: bool = False) -> str:
    """Recall."""
    if fail:
        raise ValueError("forgotten")
    return "remembered"


@pytest.mark.parametrize(
    ("settings", "conversation", "send", "reviewed"),
    [
        ("never", None, None, []),
        ({"look": "always"}, None, None, ["look"]),
        ({"notes.*": "always"}, None, None, ["recall", "recall"]),
        ("never", {"*": "on_error"}, None, ["recall"]),
        ("never", None, {"l??k": "always", "*": "never"}, ["look"]),
        ({"look": "always"}, {"recall": "on_error"}, None, ["look", "recall"]),
        ("never", {"*": "always"}, {"look": "always"}, ["look"]),  # a send sets it again for its turn
        (
            {"*": "always"},
            "never",
            {"*": "never"},
            ["look", "recall", "recall"],
        ),  # no less than settings
    ],
)
async def test_results_are_reviewed_by_patterns_of_names_and_permissions(
    tmp_path: Path, settings: Any, conversation: Any, send: Any, reviewed: list[str]
) -> None:
    """P5 × R9: the strictest of all that match."""
    script = [calls("look") + calls("recall") + calls("recall", fail=True), says("ok")]
    async with runtime_with(tmp_path, script, tools=[look, recall], allow=["*"], review=settings) as runtime:
        chat = await runtime.conversation(review=conversation)
        turn = await chat.send("go", review=send)
        found = []
        async for question in turn.asked():
            assert question.kind == "review"
            found.append(question.tool)
            await turn.answer(question, release())
        assert (await turn.result()).state == "completed"
    assert sorted(found) == reviewed


async def test_a_tool_is_reviewed_by_the_name_that_it_is_offered_by(tmp_path: Path) -> None:
    """P5: where two have one name, people see the second by a longer one."""
    groups = [Group("notes", (look,)), Group("mail", (replace(look, permission="mail.look"),))]
    script = [calls("look") + calls("mail_look"), says("ok")]
    async with runtime_with(tmp_path, script, tools=groups, allow=["*"]) as runtime:
        turn = await runtime.send("go", review={"mail_*": "always"})
        question = await anext(turn.asked())
        assert question.tool == "mail_look"
        await turn.answer(question, release())
        assert (await turn.result()).text == "ok"


async def test_patterns_of_a_conversation_are_changed_one_by_one(tmp_path: Path) -> None:
    """P5 × R9"""
    async with runtime_with(tmp_path, []) as runtime:
        chat = await runtime.conversation(review={"look": "always", "mcp.*": "on_error"})
        await chat.change(review={"look": "never", "shell": "always"})
        assert (await chat.info()).settings["review"] == {
            "look": "never",
            "mcp.*": "on_error",
            "shell": "always",
        }
        await chat.change(review="always")
        assert (await chat.info()).settings["review"] == "always"


@pytest.mark.parametrize("wrong", ["sometimes", {"look": "sometimes"}, {"": "always"}, 3])
async def test_what_says_nothing_about_results_is_refused(tmp_path: Path, wrong: Any) -> None:
    """P5"""
    with pytest.raises(ConfigError, match="review"):
        runtime_with(tmp_path, [], review=wrong)
    async with runtime_with(tmp_path, []) as runtime:
        chat = await runtime.conversation()
        with pytest.raises(BadRequest, match="review"):
            await chat.send("go", review=wrong)
        with pytest.raises(BadRequest, match="review"):
            await chat.change(review=wrong)


camera = client_tool("camera", "Take a picture.", {"type": "object", "properties": {}}, review="always")


async def _waits_for_client(tmp_path: Path, **options: Any) -> tuple[str, str]:
    async with runtime_with(tmp_path, [calls("camera")], **options) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        (call,) = calls_of((await turn.snapshot()).messages)
        return turn.id, call.id


async def test_what_a_client_delivers_is_reviewed_also_where_its_tool_is_gone(tmp_path: Path) -> None:
    """The program that resumes can lack the tool (P5 × S3)."""
    id, call = await _waits_for_client(tmp_path, tools=[camera])
    async with runtime_with(tmp_path, [says("ok")]) as runtime:
        turn = runtime.turn(id)
        await turn.deliver(call, "a secret face")
        assert await turn.reached("waiting")
        async for question in turn.asked():
            assert question.kind == "review"
            await turn.answer(question, withhold())
        assert only_call(await turn.result()).state is CallState.WITHHELD
        assert "secret" not in repr(model_of(runtime).requests[-1])


async def test_a_tool_that_nobody_reviewed_is_not_reviewed_because_it_is_gone(tmp_path: Path) -> None:
    """P5 × S3"""
    id, call = await _waits_for_client(tmp_path, tools=[replace(camera, review="on_error")])
    async with runtime_with(tmp_path, [says("ok")]) as runtime:
        await runtime.turn(id).deliver(call, "a face")
        assert only_call(await runtime.turn(id).result()).state is CallState.COMPLETED


async def test_what_comes_of_a_tool_that_is_gone_is_bounded(tmp_path: Path) -> None:
    """A client's result and a user's replacement for it have a size limit (C9 × S3)."""
    id, call = await _waits_for_client(tmp_path, tools=[camera])
    async with runtime_with(tmp_path, [says("ok")]) as runtime:
        turn = runtime.turn(id)
        await turn.deliver(call, "x" * 200_000)
        async for question in turn.asked():
            await turn.answer(question, release("y" * 200_000))
        result = only_call(await turn.result()).result
    assert result is not None
    assert len(result.text) < 60_000


@pytest.mark.parametrize("answer", [replace(release(), arguments={}), replace(withhold(), arguments={})])
async def test_arguments_are_not_edited_after_the_call_ran(tmp_path: Path, answer: Answer) -> None:
    """Arguments cannot change after the call ran, because the model received the result of the old ones (P3 ×
    P5)."""
    async with runtime_with(tmp_path, [calls("report"), says("ok")], tools=[report]) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        with pytest.raises(BadRequest, match="only if you allow"):
            await turn.answer(turn.question, answer)
        await turn.answer(turn.question, release())
        await turn.result()
