"""Permissions and approval, from outside: P1 to P4, P6 to P8."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dragoman import (
    AlreadyAnswered,
    BadRequest,
    NotFound,
    allow_always,
    allow_for_conversation,
    allow_once,
    reject,
    tool,
    withhold,
)
from dragoman.messages.message import Arguments, CallState, ToolResult
from dragoman.messages.questions import Answer, Question
from dragoman.wire.scripted import calls, says
from dragoman.workspace.diff import FileDiff
from tests.patience import PATIENCE, eventually
from tests.runtimes import calls_of, model_of, only_call, play, runtime_with

ran: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


@tool(permission="files.delete", pattern="path")
def delete(path: str) -> str:
    """Delete a file."""
    ran.append(path)
    return f"deleted {path}"


def _commands(arguments: dict) -> list[str]:  # type: ignore[type-arg]
    return [part.strip() for part in str(arguments["line"]).split("&&")]


@tool(pattern=_commands)
def shell(line: str) -> str:
    """Run commands."""
    ran.append(line)
    return "ok"


async def test_a_call_that_no_rule_allows_is_asked_about(tmp_path: Path) -> None:
    """The approval request shows the tool, all arguments, and in words what "always" would allow (P1, P3)."""
    async with runtime_with(
        tmp_path, [calls("delete", path="a.txt"), says("gone")], tools=[delete], allow=()
    ) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        (question,) = await runtime.questions()
        assert (question.tool, question.arguments, question.kind) == ("delete", {"path": "a.txt"}, "approve")
        assert "always would mean: allow files.delete for 'a.txt'" in question.text
        assert question.schema["required"] == ["path"]
        assert ran == []
        await runtime.answer(question.id, allow_once())
        assert (await turn.result()).text == "gone"
    assert ran == ["a.txt"]


@pytest.mark.parametrize("name", ["run_program", "find_tools", "read_output"])
async def test_p1_a_tool_that_has_a_name_of_ours_is_asked_about(tmp_path: Path, name: str) -> None:
    """A custom tool with the name of a Dragoman tool has neither its permission nor the right to run
    programs."""

    @tool(name=name)
    def own(code: str) -> str:
        """Do something else."""
        return code

    async with runtime_with(tmp_path, [calls(name, code="x"), says("No.")], tools=[own], allow=()) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        (asked,) = await runtime.questions()
        spec = next(spec for spec in model_of(runtime).requests[0].tools if spec.name == name)
        assert (asked.tool, spec.description) == (name, "Do something else.")
        await turn.cancel()


async def test_the_last_rule_that_matches_wins(tmp_path: Path) -> None:
    """P1"""
    script = [calls("delete", path="tmp/a") + calls("delete", path="etc/b"), says("ok")]
    result = await play(tmp_path, script, tools=[delete], allow=["files.delete"], deny=["files.delete:etc/*"])
    assert [call.state for call in calls_of(result.messages)] == ["completed", "rejected"]
    assert ran == ["tmp/a"]


async def test_a_denial_among_patterns_asks_nobody(tmp_path: Path) -> None:
    """`git status` alone would need approval, but a rule denies `rm`, so no approval request appears (P1,
    P2)."""
    call = only_call(
        await play(
            tmp_path,
            [calls("shell", line="git status && rm -rf x"), says("ok")],
            tools=[shell],
            allow=(),
            deny=["shell:rm *"],
        )
    )
    assert call.state is CallState.REJECTED
    assert call.result is not None
    assert call.result.text == "A rule forbids shell here: the call did not run."


async def test_every_part_of_a_call_must_be_allowed(tmp_path: Path) -> None:
    """P1"""
    script = [calls("shell", line="git status && rm -rf x"), says("ok")]
    async with runtime_with(tmp_path, script, tools=[shell], allow=["shell:git *"]) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        await turn.cancel()
    assert ran == []


async def test_a_tool_that_is_wholly_denied_is_not_offered(tmp_path: Path) -> None:
    """P2"""
    async with runtime_with(
        tmp_path, [calls("delete", path="a"), says("ok")], tools=[delete, shell], deny=["files.*"]
    ) as runtime:
        result = await (await runtime.send("go")).result()
        assert [spec.name for spec in model_of(runtime).requests[0].tools] == ["shell", "read_output"]
    assert only_call(result).state is CallState.FAILED


async def test_allowed_for_this_conversation_is_not_asked_again_in_it(tmp_path: Path) -> None:
    """P3"""
    script = [
        calls("delete", path="a"),
        says("1"),
        calls("delete", path="a"),
        says("2"),
        calls("delete", path="a"),
    ]
    async with runtime_with(tmp_path, script, tools=[delete], allow=()) as runtime:
        chat = await runtime.conversation()
        turn = await chat.send("one")
        assert await turn.reached("waiting")
        await turn.answer(turn.question, allow_for_conversation())
        await turn.result()
        assert (await (await chat.send("two")).result()).text == "2"
        elsewhere = await runtime.send("three")
        assert await elsewhere.reached("waiting")
        await elsewhere.cancel()
    assert ran == ["a", "a"]


async def test_always_is_stored_listed_and_can_be_revoked(tmp_path: Path) -> None:
    """P3"""
    async with runtime_with(
        tmp_path, [calls("delete", path="a"), says("1")], tools=[delete], allow=()
    ) as runtime:
        turn = await runtime.send("one")
        assert await turn.reached("waiting")
        await turn.answer(turn.question, allow_always())
        await turn.result()
    async with runtime_with(
        tmp_path, [calls("delete", path="a"), says("2"), calls("delete", path="a")], tools=[delete], allow=()
    ) as runtime:
        assert (await (await runtime.send("two")).result()).text == "2"
        (grant,) = await runtime.grants()
        assert str(grant.rule) == "allow files.delete on a"
        await runtime.revoke(grant.id)
        with pytest.raises(NotFound):
            await runtime.revoke(grant.id)
        turn = await runtime.send("three")
        assert await turn.reached("waiting")
        await turn.cancel()


async def test_a_rejected_call_stays_in_the_history_with_its_reason(tmp_path: Path) -> None:
    """P3, P4: and the next request holds it."""
    async with runtime_with(
        tmp_path, [calls("delete", path="a"), says("fine"), says("really")], tools=[delete], allow=()
    ) as runtime:
        chat = await runtime.conversation()
        turn = await chat.send("go")
        assert await turn.reached("waiting")
        await turn.answer(turn.question, reject("not that one"))
        assert (await turn.result()).text == "fine"
        await (await chat.send("why?")).result()
        for request in model_of(runtime).requests[1:]:
            (call,) = [part for said in request.messages for part in said.parts if part.type == "call"]
            assert call.state is CallState.REJECTED
            assert call.result == ToolResult("A person did not let this call run. They said: not that one")
    assert ran == []


async def test_a_rejection_may_end_the_turn(tmp_path: Path) -> None:
    """P4"""
    async with runtime_with(
        tmp_path, [calls("delete", path="a")], tools=[delete], allow=(), on_reject="stop"
    ) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        await turn.answer(turn.question, reject())
        assert (await turn.result()).state == "completed"
        assert len(model_of(runtime).requests) == 1


async def test_a_denial_by_a_rule_stops_no_turn(tmp_path: Path) -> None:
    """Nor does an allowed call beside it (P4)."""
    script = [calls("delete", path="a") + calls("delete", path="b"), says("ok")]
    async with runtime_with(
        tmp_path, script, tools=[delete], allow=(), deny=["files.delete:b"], on_reject="stop"
    ) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        await turn.answer(turn.question, allow_once())
        result = await turn.result()
    assert [call.state for call in calls_of(result.messages)] == [CallState.COMPLETED, CallState.REJECTED]
    assert result.text == "ok"


async def test_arguments_may_be_edited_and_the_model_is_told(tmp_path: Path) -> None:
    """P3"""
    async with runtime_with(
        tmp_path, [calls("delete", path="a.txt"), says("ok")], tools=[delete], allow=()
    ) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        with pytest.raises(BadRequest, match="path: Input should be a valid string"):
            await turn.answer(turn.question, allow_once({"path": 5}))
        await turn.answer(turn.question, allow_once({"path": "b.txt"}))
        call = only_call(await turn.result())
    assert ran == ["b.txt"]
    assert (call.arguments, call.original) == ({"path": "b.txt"}, {"path": "a.txt"})
    assert call.result is not None
    assert call.result.note == (
        'A user changed the arguments before the call ran. It ran with: {"path":"b.txt"}'
    )


async def test_arguments_that_come_back_as_they_were_are_not_edited(tmp_path: Path) -> None:
    """The model sees a note about edited arguments only if the edit changed them (P3)."""
    async with runtime_with(
        tmp_path, [calls("delete", path="a.txt"), says("ok")], tools=[delete], allow=()
    ) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        await turn.answer(turn.question, allow_once({"path": "a.txt"}))
        call = only_call(await turn.result())
    assert call.original is None
    assert call.result is not None
    assert call.result.note is None


# ── P6: once, from anywhere, bound to what was shown ──────────────────────────────────────────────


async def test_a_question_is_answered_once(tmp_path: Path) -> None:
    """Of two simultaneous answers one counts, and the other caller receives an error (P6)."""
    async with runtime_with(
        tmp_path, [calls("delete", path="a"), says("ok")], tools=[delete], allow=()
    ) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        question = turn.question
        outcomes = await asyncio.gather(
            runtime.answer(question, allow_once()), runtime.answer(question, reject()), return_exceptions=True
        )
        await turn.result()
        (settled,) = (outcome for outcome in outcomes if isinstance(outcome, Question))
        assert sum(isinstance(outcome, AlreadyAnswered) for outcome in outcomes) == 1
        assert settled.answer is not None
        with pytest.raises(AlreadyAnswered, match=f"already has an answer: {settled.answer.verdict}"):
            await runtime.answer(question, allow_once())
    assert ran == (["a"] if settled.answer.verdict == "allow" else [])


async def test_an_answer_from_another_process_is_heard(tmp_path: Path) -> None:
    """P6: a second house on the same file, as another process would be."""
    async with runtime_with(
        tmp_path, [calls("delete", path="a"), says("gone")], tools=[delete], allow=()
    ) as first:
        turn = await first.send("go")
        assert await turn.reached("waiting")
        async with runtime_with(tmp_path, [], tools=[delete], allow=()) as second:
            (question,) = await second.questions()
            await second.answer(question.id, allow_once())
            assert (await asyncio.wait_for(turn.result(), PATIENCE)).text == "gone"
            assert (await asyncio.wait_for(second.turn(turn.id).result(), PATIENCE)).text == "gone"
    assert ran == ["a"]


async def test_a_cancel_from_another_process_is_heard(tmp_path: Path) -> None:
    """T6"""
    async with runtime_with(tmp_path, [says("x" * 4000, waits=0.01)]) as first:
        turn = await first.send("go")
        assert await turn.reached("streaming")
        async with runtime_with(tmp_path, []) as second:
            assert await second.turn(turn.id).cancel()
            assert (await asyncio.wait_for(turn.result(), PATIENCE)).state == "cancelled"


async def test_a_question_survives_a_restart(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The end of the program is no error of its turn (P6, S2)."""
    async with runtime_with(tmp_path, [calls("delete", path="a")], tools=[delete], allow=()) as first:
        turn = await first.send("go")
        assert await turn.reached("waiting")
        question = turn.question
    async with runtime_with(tmp_path, [says("gone")], tools=[delete], allow=()) as second:
        assert [q.id for q in await second.questions()] == [question]
        await second.answer(question, allow_once())
        assert (await second.turn(turn.id).result()).text == "gone"
    assert ran == ["a"]
    assert "broke off" not in caplog.text


async def test_a_call_that_fits_no_more_when_it_is_allowed_fails(tmp_path: Path) -> None:
    """After a restart, the tool has other parameters (P6 × R2)."""

    @tool(name="delete")
    def delete_number(number: int) -> str:
        """Delete the file of this number."""
        raise AssertionError("it does not run")

    async with runtime_with(tmp_path, [calls("delete", path="a")], tools=[delete], allow=()) as first:
        turn = await first.send("go")
        assert await turn.reached("waiting")
        question = turn.question
    async with runtime_with(tmp_path, [says("ok")], tools=[delete_number], allow=()) as second:
        await second.answer(question, allow_once())
        call = only_call(await second.turn(turn.id).result())
    assert call.state is CallState.FAILED
    assert "number" in str(call.result)


async def test_an_answer_is_bound_to_the_arguments_that_were_shown(tmp_path: Path) -> None:
    """P6"""
    async with runtime_with(tmp_path, [calls("delete", path="a")], tools=[delete], allow=()) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        with pytest.raises(BadRequest, match="other arguments"):
            await runtime.answer(turn.question, Answer("allow", hash="0" * 32))
        with pytest.raises(BadRequest, match="'withhold' does not answer question"):
            await runtime.answer(turn.question, withhold())
        with pytest.raises(NotFound, match="Unknown question 'ask_x'"):
            await runtime.answer("ask_x", allow_once())
        await turn.cancel()


async def test_siblings_that_need_no_question_run_at_once(tmp_path: Path) -> None:
    """Sibling calls without an approval request run immediately. Partial answers work, and the next step
    waits for all of them (P7)."""
    script = [
        calls("delete", path="a") + calls("shell", line="ls") + calls("delete", path="b"),
        says("ok"),
    ]
    async with runtime_with(tmp_path, script, tools=[delete, shell], allow=["shell"]) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        assert ran == ["ls"]
        first, second = turn.questions
        await turn.answer(second, allow_once())
        await eventually(lambda: ran == ["ls", "b"])
        assert await turn.reached("waiting")
        assert len(model_of(runtime).requests) == 1
        await turn.answer(first, reject())
        assert (await turn.result()).text == "ok"


# ── P8: modes ─────────────────────────────────────────────────────────────────────────────────────


async def test_in_ask_mode_every_call_is_asked_about(tmp_path: Path) -> None:
    """P8"""
    async with runtime_with(
        tmp_path, [calls("delete", path="a"), says("ok")], tools=[delete], mode="ask"
    ) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        assert turn.questions[0].kind == "approve"
        await turn.answer(turn.question, allow_once())
        await turn.result()


async def test_in_off_mode_there_are_no_tools(tmp_path: Path) -> None:
    """P8"""
    async with runtime_with(tmp_path, [says("ok")], tools=[delete]) as runtime:
        chat = await runtime.conversation(mode="off")
        await (await chat.send("go")).result()
        request = model_of(runtime).requests[0]
    assert (request.tools, request.tool_choice) == ((), None)


async def test_the_mode_of_a_send_goes_before_that_of_the_conversation(tmp_path: Path) -> None:
    """P8, R1"""
    async with runtime_with(
        tmp_path, [says("a"), says("b")], tools=[delete], options={"temperature": 1, "seed": 7}
    ) as runtime:
        chat = await runtime.conversation(mode="off", options={"temperature": 0.5, "stop": ["x"]})
        await (await chat.send("go", mode="auto", options={"stop": None, "top_p": 0.1})).result()
        request = model_of(runtime).requests[0]
    assert request.tools
    assert request.tool_choice == "auto"
    assert request.options == {"temperature": 0.5, "seed": 7, "stop": None, "top_p": 0.1}


async def test_a_preview_that_fails_still_asks(tmp_path: Path) -> None:
    """P6: without a diff. The user decides by the arguments."""

    def preview(arguments: Arguments, workspace: Path | None) -> list[FileDiff]:
        raise RuntimeError("it has a mistake")

    @tool(preview=preview)
    def write(path: str) -> str:
        """Write a file."""
        return path

    async with runtime_with(tmp_path, [calls("write", path="a"), says("ok")], tools=[write], allow=()) as one:
        turn = await one.send("go")
        question = await anext(turn.asked())
        assert (question.arguments, question.diff) == ({"path": "a"}, "")
        assert "mistake" not in question.text
        await turn.answer(question, allow_once())
        assert only_call(await turn.result()).state is CallState.COMPLETED
