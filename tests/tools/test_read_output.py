"""`read_output`: the rest of a result, in pieces (C9), and never what a person withheld."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Runtime, allow_once, release, tool, withhold
from dragoman.messages.message import CallState, ToolCall
from dragoman.messages.questions import Answer
from dragoman.messages.request import Request
from dragoman.tools.builtin.basics import read_output
from dragoman.wire.scripted import Line, calls, says
from tests.runtimes import calls_of, runtime_with
from tests.tools.bench import Bench

BENCH = Bench(
    outputs={"call_9": "\n".join(f"line {n}" for n in range(1, 1001)), "call_8": "x" * 9000 + "\nend"}
)


async def read(**arguments: int | str) -> str:
    return (await BENCH.run(read_output, {**arguments})).result.text


async def test_a_page_says_where_it_is() -> None:
    """C9"""
    assert await read(call="call_9", start=998) == "lines 998 to 1000 of 1000\nline 998\nline 999\nline 1000"
    assert await read(call="call_9", start=2, lines=1) == "lines 2 to 2 of 1000\nline 2"
    assert (await read(call="call_9")).startswith("lines 1 to 400 of 1000\nline 1\n")


async def test_a_line_without_end_is_read_in_pieces() -> None:
    """C9"""
    assert (await read(call="call_8", start=3, lines=2)) == "lines 3 to 4 of 4\n" + "x" * 1000 + "\nend"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"call": "call_9", "start": 1001}, "The output of call_9 has 1000 lines, so start cannot be 1001."),
        ({"call": "call_7"}, "Unknown call 'call_7'"),
        ({"call": "call_9", "start": 0}, "start: Input should be greater than or equal to 1"),
        ({"call": "call_9", "lines": 5000}, "lines: Input should be less than or equal to 2000"),
    ],
)
async def test_a_page_that_is_not_there_is_explained(arguments: dict[str, int | str], told: str) -> None:
    """C9"""
    assert told in await read(**arguments)


@given(st.text(st.sampled_from("ab\n"), max_size=60).filter(str.strip), st.integers(1, 5))
async def test_the_pages_together_are_the_whole(text: str, size: int) -> None:
    """C9"""
    bench = Bench(outputs={"c": text})
    pages: list[str] = []
    while len(pages) < len(text.splitlines()):
        page = await bench.run(read_output, {"call": "c", "start": len(pages) + 1, "lines": size})
        pages += page.result.text.split("\n")[1:]
    assert pages == text.splitlines()


# ── in a conversation ─────────────────────────────────────────────────────────────────────────────


@tool(max_lines=2)
def much() -> str:
    """Says much."""
    return "one\ntwo\nthree\nfour\n"


secret = tool(name="secret", description="A secret.", review="always", max_lines=2)(
    lambda: "you\nhave\nfound\nit\n"
)


def reads_it_back(request: Request) -> Line:
    """Calls the tool the person named, then reads its output, then answers."""
    made = [part for said in request.messages for part in said.parts if isinstance(part, ToolCall)]
    if not made:
        return calls(str(getattr(request.messages[0].parts[0], "text", "")))
    return calls("read_output", call=made[0].id) if len(made) == 1 else says("read")


async def second_call(runtime: Runtime, said: str, answer: Answer | None = None) -> ToolCall:
    turn = await runtime.send(said)
    async for event in turn.events():
        if event.type == "call.asked" and answer is not None:
            await turn.answer(event.question, answer)
    return calls_of((await turn.result()).messages)[1]


async def test_the_model_reads_what_was_left_out(tmp_path: Path) -> None:
    """The read needs no approval (C9)."""
    async with runtime_with(tmp_path, reads_it_back, tools=[much], allow=["much"]) as runtime:
        call = await second_call(runtime, "much")
    assert call.result is not None
    assert call.result.text == "lines 1 to 4 of 4\none\ntwo\nthree\nfour"


@pytest.mark.parametrize(
    ("answer", "state", "text"),
    [
        (release(), CallState.COMPLETED, "lines 1 to 4 of 4\nyou\nhave\nfound\nit"),
        (release("nothing"), CallState.COMPLETED, "lines 1 to 1 of 1\nnothing"),
        (withhold(), CallState.FAILED, "is not available"),
    ],
)
async def test_only_what_a_person_released_can_be_read(
    tmp_path: Path, answer: Answer, state: CallState, text: str
) -> None:
    """C9, P5"""
    async with runtime_with(tmp_path, reads_it_back, tools=[secret]) as runtime:
        call = await second_call(runtime, "secret", answer)
    assert call.state is state
    assert call.result is not None
    assert text in call.result.text
    assert ("found" in call.result.text) == ("found" in text)


async def test_another_conversations_output_cannot_be_read(tmp_path: Path) -> None:
    """C9"""
    other = ""

    def script(request: Request) -> Line:
        if other:
            return calls("read_output", call=other) if len(request.messages) == 1 else says("no")
        return reads_it_back(request)

    async with runtime_with(tmp_path, script, tools=[much]) as runtime:
        first = await (await runtime.send("much")).result()
        other = calls_of(first.messages)[0].id
        turn = await runtime.send("much")
        async for event in turn.events():
            if event.type == "call.asked":
                await turn.answer(event.question, allow_once())
        (call,) = calls_of((await turn.result()).messages)
    assert call.result is not None
    assert "Unknown call" in call.result.text


@pytest.mark.parametrize("how", ["fork", "import"])
async def test_a_copy_of_a_conversation_says_how_its_own_outputs_are_read(tmp_path: Path, how: str) -> None:
    """C9 x S1: calls have other ids there."""

    @tool
    def much() -> str:
        """Say much."""
        return "\n".join(f"line {n}" for n in range(1, 5001))

    def line(request: Request) -> Line:
        shown = [part for said in request.messages for part in said.parts if isinstance(part, ToolCall)]
        if not shown:
            return calls("much")
        if len(shown) == 2 or len(request.messages) == 2:
            return says("ok")
        assert shown[0].result is not None
        named = re.search(r"read_output\(call='([^']+)'", shown[0].result.text)
        assert named is not None
        return calls("read_output", call=named[1], start=2500, lines=1)

    async with runtime_with(tmp_path, line, tools=[much]) as runtime:
        chat = await runtime.conversation()
        await (await chat.send("go")).result()
        if how == "fork":
            copy = await runtime.fork(chat.id, (await chat.messages())[-1].id)
        else:
            copy = await runtime.import_conversation(await runtime.export(chat.id))
        (call,) = calls_of((await (await copy.send("more")).result()).messages)
        assert call.result is not None
        assert call.result.text == "lines 2500 to 2500 of 5000\nline 2500"
