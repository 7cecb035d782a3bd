"""T9: what a conversation is called."""

from __future__ import annotations

from pathlib import Path

from dragoman.wire.scripted import fails, says
from tests.runtimes import runtime_with


async def test_the_title_is_the_beginning_of_what_was_said(tmp_path: Path) -> None:
    """T9"""
    async with runtime_with(tmp_path, [says("ok")]) as runtime:
        chat = await runtime.conversation()
        await (await chat.send("Please   tell me\nall about the moons of Jupiter")).result()
        assert (await chat.info()).title == "Please tell me all about the moons of…"


async def test_a_models_title_takes_its_place(tmp_path: Path) -> None:
    """T9"""
    async with runtime_with(
        tmp_path, [says("ok"), says('"Moons of Jupiter"')], titles_by_model=True
    ) as runtime:
        chat = await runtime.conversation()
        await (await chat.send("Tell me all about the moons of Jupiter")).result()
        assert (await chat.info()).title == "Moons of Jupiter"


async def test_a_title_that_fails_costs_nothing(tmp_path: Path) -> None:
    """T9"""
    async with runtime_with(tmp_path, [says("ok"), fails("no title today")], titles_by_model=True) as runtime:
        chat = await runtime.conversation()
        result = await (await chat.send("Tell me")).result()
        assert (result.state, result.text) == ("completed", "ok")
        assert (await chat.info()).title == "Tell me"
