"""Several versions of an answer can run at the same time, each on a separate branch (T10)."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman import Runtime, ScriptedModel, TurnBusy, allow_once, tool
from dragoman.messages.request import Request
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.wire.scripted import Line, calls, says

ONE, TWO, THREE = "stage/one", "stage/two", "stage/three"
ran: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


@tool
def sign(name: str) -> str:
    """Sign."""
    ran.append(name)
    return f"signed {name}"


def speaker(name: str | None) -> ScriptedModel:
    """Has its name signed before it answers."""
    name = name or ONE

    def answer(request: Request) -> Line:
        return calls("sign", name=name) if request.messages[-1].role == "user" else says(f"I am {name}.")

    return ScriptedModel(answer, name=name)


def opened(folder: Path) -> Runtime:
    return Runtime(folder / "chat.db", model=speaker, tools=[sign])


async def asked_three(runtime: Runtime) -> tuple[str, list[TurnHandle]]:
    """The question, and the turns that answer it: each waits for a person."""
    chat = await runtime.conversation()
    turns = [await chat.send("who?")]
    assert await turns[0].reached("waiting")
    (question, _) = await chat.messages()
    for model in (TWO, THREE):
        turns.append(await chat.rerun(question.id, model=model, parallel=True))
        assert await turns[-1].reached("waiting")
    return question.id, turns


async def test_one_question_is_answered_by_several_at_once(tmp_path: Path) -> None:
    """The first version stays selected. A rerun that does not ask for a parallel version fails (T4 × T10)."""
    async with opened(tmp_path) as runtime:
        question, turns = await asked_three(runtime)
        chat = await runtime.conversation((await runtime.conversations())[0].id)
        for again in (question, (await chat.messages())[-1].id):
            with pytest.raises(TurnBusy):
                await chat.rerun(again, model=TWO)
        for turn in reversed(turns):
            await turn.answer(turn.question, allow_once())
        assert [(await turn.result()).text for turn in turns] == [f"I am {one}." for one in (ONE, TWO, THREE)]
        assert sorted(ran) == sorted([ONE, TWO, THREE])
        assert len((await chat.tree()).children(question)) == 3
        assert (await chat.messages())[-1].text == f"I am {ONE}."
        used = [(await turn.result()).usage.output for turn in turns]
        assert (await chat.info()).usage.output == sum(used)


async def test_all_of_them_go_on_after_a_restart(tmp_path: Path) -> None:
    """S3 × T10: each on its own branch, with its own model."""
    async with opened(tmp_path) as first:
        question, turns = await asked_three(first)
    async with opened(tmp_path) as second:
        for turn in turns:
            handle = second.turn(turn.id)
            (waiting,) = [one for one in await second.questions() if one.turn == turn.id]
            await handle.answer(waiting, allow_once())
        texts = [(await second.turn(turn.id).result()).text for turn in turns]
        assert texts == [f"I am {one}." for one in (ONE, TWO, THREE)]
        chat = await second.conversation((await second.conversations())[0].id)
        assert len((await chat.tree()).children(question)) == 3


async def test_one_is_cancelled_and_the_others_answer(tmp_path: Path) -> None:
    """T6 × T10"""
    async with opened(tmp_path) as runtime:
        _, (first, second, third) = await asked_three(runtime)
        await first.cancel()
        assert (await first.result()).state == "cancelled"
        for turn in (second, third):
            await turn.answer(turn.question, allow_once())
            assert (await turn.result()).state == "completed"
        assert sorted(ran) == sorted([TWO, THREE])


async def test_what_is_queued_waits_and_then_follows_the_answer_that_is_looked_at(tmp_path: Path) -> None:
    """T4 × T10"""
    async with opened(tmp_path) as runtime:
        _, turns = await asked_three(runtime)
        chat = await runtime.conversation((await runtime.conversations())[0].id)
        queued = await chat.send("and now?", queue=True)
        for turn in turns:
            await turn.answer(turn.question, allow_once())
            await turn.result()
        assert await queued.reached("waiting")
        await queued.answer(queued.question, allow_once())
        await queued.result()
        said = [message.text for message in await chat.messages() if message.role == "user" or message.text]
        assert said == ["who?", f"I am {ONE}.", "and now?", f"I am {ONE}."]
