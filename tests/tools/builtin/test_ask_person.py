"""`ask_person`: a model's own question, answered by a person."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import JsonValue

from dragoman.errors import BadRequest
from dragoman.messages.message import CallState
from dragoman.messages.questions import reply
from dragoman.tools.builtin import basics_group
from dragoman.tools.builtin.basics import ask_person
from dragoman.wire.scripted import calls, says
from tests.runtimes import calls_of, runtime_with
from tests.tools.bench import Bench


async def test_the_question_and_its_choices_reach_the_person() -> None:
    bench = Bench(answers=["green"])
    outcome = await bench.run(ask_person, {"question": "Which?", "choices": ["red", "green"]})
    assert outcome.result.text == "green"
    assert outcome.result.title == "Which? → green"
    assert bench.questions == [("Which?", ("red", "green"))]


async def test_without_choices_they_write_what_they_like() -> None:
    bench = Bench(answers=["blue, please"])
    assert (await bench.run(ask_person, {"question": "Which?"})).result.text == "blue, please"
    assert bench.questions == [("Which?", ())]


@pytest.mark.parametrize("arguments", [{"question": ""}, {"question": "Which?", "choices": [""]}])
async def test_an_empty_question_or_choice_does_not_fit(arguments: dict[str, str | list[str]]) -> None:
    outcome = await Bench().run(ask_person, {**arguments})  # type: ignore[dict-item]
    assert outcome.state is CallState.FAILED


async def test_a_long_answer_is_whole_and_its_title_is_one_line() -> None:
    bench = Bench(answers=["word\n" * 5000])
    outcome = await bench.run(ask_person, {"question": "Why\nnot? " * 100})
    assert outcome.result.text == "word\n" * 5000
    assert outcome.result.title is not None
    assert len(outcome.result.title) < 250
    assert "\n" not in outcome.result.title


async def test_an_answer_that_is_no_text_is_json_to_the_model() -> None:
    """C6: a client may send any value where there are no choices."""
    outcome = await Bench(answers=[["a", None]]).run(ask_person, {"question": "Which?"})
    assert '"a"' in outcome.result.text
    assert "null" in outcome.result.text
    assert outcome.result.title == 'Which? → ["a", null]'


async def test_with_choices_they_may_write_something_else(tmp_path: Path) -> None:
    """The answer can be free text. An empty answer and a value that is not a string are refused (C8)."""
    script = [calls("ask_person", question="Which?", choices=["red", "green"]), says("Teal it is.")]
    async with runtime_with(tmp_path, script, tools=[basics_group()], allow=["basics.*"]) as runtime:
        turn = await runtime.send("Paint it.")
        assert await turn.reached("waiting")
        (question,) = turn.questions
        assert question.free
        wrongs: list[JsonValue] = [" ", 7, None, ["red"]]
        for wrong in wrongs:
            with pytest.raises(BadRequest, match="Choose one of these, or write a text: red, green"):
                await turn.answer(question, reply(wrong))
        await turn.answer(question, reply("teal"))
        (call,) = calls_of((await turn.result()).messages)
    assert call.result is not None
    assert call.result.text == "teal"


async def test_in_a_turn_it_waits_for_the_answer(tmp_path: Path) -> None:
    script = [calls("ask_person", question="Which?", choices=["red", "green"]), says("Green it is.")]
    async with runtime_with(tmp_path, script, tools=[basics_group()], allow=["basics.*"]) as runtime:
        turn = await runtime.send("Paint it.")
        async for event in turn.events():
            if event.type == "call.asked":
                assert (event.kind, event.text) == ("tool", "Which?")
                await turn.answer(event.question, reply("green"))
        result = await turn.result()
    (call,) = calls_of(result.messages)
    assert call.result is not None
    assert (call.result.text, result.text) == ("green", "Green it is.")
