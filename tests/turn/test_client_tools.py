"""The sender of a message runs the tools that come with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import JsonValue

from dragoman import BadRequest, ToolSpec, allow_once, reject, tool
from dragoman.messages.message import CallState
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.wire.scripted import calls, says
from tests.runtimes import add, calls_of, only_call, runtime_with

EXACT: dict[str, JsonValue] = {"type": "object", "properties": {"exact": {"type": "boolean"}}}
WHERE = ToolSpec("where", "Where the person is.", EXACT)


async def started(turn: TurnHandle) -> str:
    """Return the first call that the sender receives."""
    async for event in turn.events():
        if event.type == "call.start" and event.client:
            return event.call
    raise AssertionError("nothing was handed to the sender")


async def test_a_tool_that_came_with_a_message_is_run_by_who_sent_it(tmp_path: Path) -> None:
    """The sender's tool needs no approval, runs at the sender or not at all, and is missing in the next turn
    (C6, P1)."""
    script = [calls("where", exact=True), says("In Rome."), calls("where"), says("?")]
    async with runtime_with(tmp_path, script, tools=[add], allow=()) as runtime:
        chat = await runtime.conversation()
        turn = await chat.send("Where am I?", client_tools=[WHERE])
        await turn.deliver(await started(turn), "Rome")
        result = await turn.result()
        assert (result.text, only_call(result).state) == ("In Rome.", CallState.COMPLETED)
        after = await (await chat.send("And now?")).result()
    assert only_call(after).state is CallState.FAILED


async def test_it_stands_in_the_place_of_a_tool_of_the_same_name(tmp_path: Path) -> None:
    """The sender's tool replaces a tool of the same name, and rules for the replaced tool do not apply to it
    (P1)."""
    ran: list[str] = []

    @tool
    def where() -> str:
        "Where the server is."
        ran.append("here")
        return "in the cellar"

    async with runtime_with(tmp_path, [calls("where"), says("In Rome.")], tools=[where], allow=()) as runtime:
        turn = await runtime.send("Where am I?", client_tools=[WHERE])
        await turn.deliver(await started(turn), "Rome")
        assert only_call(await turn.result()).result is not None
    assert ran == []


async def test_a_rule_that_denies_it_holds(tmp_path: Path) -> None:
    """P9: it is not even offered."""
    async with runtime_with(tmp_path, [calls("where"), says("?")], tools=[add], deny=["client.*"]) as runtime:
        result = await (await runtime.send("Where am I?", client_tools=[WHERE])).result()
    assert only_call(result).state is CallState.FAILED


async def test_where_it_is_denied_ours_of_the_same_name_does_not_run_in_its_place(tmp_path: Path) -> None:
    """P9: the sender meant theirs."""

    @tool
    def where() -> str:
        "Where the server is."
        return "in the cellar"

    script = [calls("where"), says("?")]
    async with runtime_with(tmp_path, script, tools=[where, add], deny=["client.*"]) as runtime:
        result = await (await runtime.send("Where am I?", client_tools=[WHERE])).result()
    assert only_call(result).state is CallState.FAILED


@pytest.mark.parametrize("allowed", [True, False])
async def test_a_mode_that_asks_about_everything_asks_about_it(tmp_path: Path, *, allowed: bool) -> None:
    """A caller's tools cannot bypass approval. The tool's schema checks an edit (P8 × P11)."""
    async with runtime_with(tmp_path, [calls("where", exact=True), says("Done.")], mode="ask") as runtime:
        turn = await runtime.send("Where am I?", client_tools=[WHERE])
        assert await turn.reached("waiting")
        with pytest.raises(BadRequest, match="exact"):
            await turn.answer(turn.question, allow_once(arguments={"exact": "very"}))
        await turn.answer(turn.question, allow_once(arguments={"exact": False}) if allowed else reject())
        if allowed:
            await turn.deliver(await started(turn), "Rome")
        call = only_call(await turn.result())
    assert (call.state, call.arguments) == (
        (CallState.COMPLETED, {"exact": False}) if allowed else (CallState.REJECTED, {"exact": True})
    )


async def test_its_result_may_come_after_a_restart(tmp_path: Path) -> None:
    """A result can arrive after a restart, because the turn keeps its tools (S3 × C6)."""
    async with runtime_with(tmp_path, [calls("where"), says("In Rome.")]) as first:
        turn = await first.send("Where am I?", client_tools=[WHERE])
        call = await started(turn)
    async with runtime_with(tmp_path, [says("In Rome.")]) as second:
        again = second.turn(turn.id)
        await again.deliver(call, "Rome")
        assert (await again.result()).text == "In Rome."


async def test_a_rerun_has_the_tools_of_the_send_it_repeats(tmp_path: Path) -> None:
    """T14"""
    script = [says("I do not know."), calls("where"), says("In Rome.")]
    async with runtime_with(tmp_path, script) as runtime:
        chat = await runtime.conversation()
        first = await (await chat.send("Where am I?", client_tools=[WHERE])).result()
        turn = await chat.rerun(first.messages[-1].id)
        await turn.deliver(await started(turn), "Rome")
        assert [call.tool for call in calls_of((await turn.result()).messages)] == ["where"]


@pytest.mark.parametrize(
    "specs",
    [
        [ToolSpec("no name", "", {})],
        [WHERE, WHERE],
        [ToolSpec("where", "", {"type": "nothing"})],
        [ToolSpec(f"t{number}", "", {}) for number in range(513)],
    ],
    ids=["name", "twice", "schema", "many"],
)
async def test_what_can_be_no_tool_is_refused_before_anything_is_stored(
    tmp_path: Path, specs: list[ToolSpec]
) -> None:
    """U1"""
    async with runtime_with(tmp_path, [says("?")]) as runtime:
        with pytest.raises(BadRequest):
            await runtime.send("Where am I?", client_tools=specs)
        assert await runtime.conversations() == []


async def test_a_schema_whose_references_lead_on_without_end_holds_up_nobody(tmp_path: Path) -> None:
    """U2: thirty that name the next one twice are a thousand million."""
    chain: dict[str, JsonValue] = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]} for n in range(30)
    }
    schema: dict[str, JsonValue] = {
        "type": "object",
        "properties": {"place": {"$ref": "#/$defs/d0"}},
        "$defs": {**chain, "d30": {"type": "string"}},
    }
    async with runtime_with(tmp_path, [calls("where", place="x"), says("?")]) as runtime:
        turn = await runtime.send("Where am I?", client_tools=[ToolSpec("where", "", schema)])
        call = only_call(await turn.result())
    assert call.result is not None
    assert (call.state, "references are nested too deep" in call.result.text) == (CallState.FAILED, True)
