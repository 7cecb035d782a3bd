"""Check that a reply cut off by the length limit continues where it stopped."""

from __future__ import annotations

from pathlib import Path

from dragoman.messages.message import CallState
from dragoman.plugins.continuation import Length
from dragoman.wire.scripted import Line, calls, calls_with, says, thinks
from tests.runtimes import add, calls_of, model_of, play, runtime_with


def cut(text: str) -> Line:
    return says(text, finish="length")


async def test_the_rest_is_asked_for_and_the_answer_is_one(tmp_path: Path) -> None:
    """H10"""
    async with runtime_with(tmp_path, [cut("Once upon "), cut("a time "), says("there was.")]) as runtime:
        chat = await runtime.conversation()
        result = await (await chat.send("a story")).result()
        assert result.text == "Once upon a time there was."
        assert [(m.role, m.author) for m in await chat.messages()] == [
            ("user", None),
            ("assistant", None),
            ("user", "length"),
            ("assistant", None),
            ("user", "length"),
            ("assistant", None),
        ]
        last = model_of(runtime).requests[-1].messages
        assert [said.role for said in last] == ["user", "assistant", "user", "assistant", "user"]


async def test_it_is_asked_for_a_few_times_and_no_more(tmp_path: Path) -> None:
    """H10"""
    async with runtime_with(tmp_path, lambda _: cut("and "), plugins=[Length(times=2)]) as runtime:
        chat = await runtime.conversation()
        assert (await (await chat.send("go on")).result()).text == "and and and "
        assert (await (await chat.send("and now?")).result()).text == "and and and "
        assert len(model_of(runtime).requests) == 6


async def test_a_call_that_was_cut_off_is_told_to_the_model_instead(tmp_path: Path) -> None:
    """C4: and it never runs."""
    torn = cut("let me add ") + calls_with("add", '{"a": 1, ')
    result = await play(tmp_path, [torn, says("sorry")], tools=[add])
    (call,) = calls_of(result.messages)
    assert (call.state, result.messages[-1].text) == (CallState.FAILED, "sorry")
    assert all(message.author is None for message in result.messages)


async def test_nothing_said_is_nothing_to_go_on_with(tmp_path: Path) -> None:
    """A model that reasons up to the limit is not requested forever (H10)."""
    async with runtime_with(tmp_path, [thinks("hm") + cut("")]) as runtime:
        await (await runtime.send("go")).result()
        assert len(model_of(runtime).requests) == 1


async def test_it_can_be_left_out_of_a_turn(tmp_path: Path) -> None:
    """H9"""
    async with runtime_with(tmp_path, [cut("Once upon "), calls("add")]) as runtime:
        chat = await runtime.conversation()
        assert (await (await chat.send("a story", disable=["length"])).result()).text == "Once upon "


async def test_another_version_of_a_continued_answer_is_continued_by_itself(tmp_path: Path) -> None:
    """The request to continue the first version is not part of the second (T10, H10)."""
    script = [cut("Once "), says("upon."), cut("Twice "), says("below.")]
    async with runtime_with(tmp_path, script) as runtime:
        chat = await runtime.conversation()
        first = await (await chat.send("a story")).result()
        second = await (await chat.rerun(first.messages[-1].id)).result()
        assert (first.text, second.text) == ("Once upon.", "Twice below.")
        assert [said.role for said in model_of(runtime).requests[2].messages] == ["user"]


async def test_a_limit_holds_for_the_send_that_names_it(tmp_path: Path) -> None:
    """H10, T14: and for a repetition of it."""
    async with runtime_with(tmp_path, lambda _: cut("and ")) as runtime:
        chat = await runtime.conversation()
        first = await (await chat.send("go", options={"max_tokens": 5})).result()
        again = await (await chat.rerun(first.messages[-1].id)).result()
        assert (first.text, again.text, again.finish) == ("and ", "and ", "length")
        assert (await (await chat.send("go")).result()).text == "and and and and "
