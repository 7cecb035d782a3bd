"""Generate titles for conversations (T9)."""

from __future__ import annotations

from pathlib import Path

from dragoman import Plugin, TurnView
from dragoman.messages.events import Notice
from dragoman.messages.message import Message
from dragoman.turn.plugin import Appender
from dragoman.wire.scripted import fails, says
from tests.runtimes import runtime_with


async def test_the_title_is_the_beginning_of_what_was_said(tmp_path: Path) -> None:
    """T9"""
    async with runtime_with(tmp_path, [says("ok")]) as runtime:
        chat = await runtime.conversation()
        await (await chat.send("Please   tell me\nall about the moons of Jupiter")).result()
        assert (await chat.info()).title == "Please tell me all about the…"


async def test_how_long_a_title_is_can_be_set(tmp_path: Path) -> None:
    """T9"""
    async with runtime_with(tmp_path, [says("ok")], title_length=12) as runtime:
        chat = await runtime.conversation()
        await (await chat.send("Please tell me all about the moons of Jupiter")).result()
        assert (await chat.info()).title == "Please tell…"


async def test_a_models_title_takes_its_place(tmp_path: Path) -> None:
    """T9"""
    async with runtime_with(
        tmp_path, [says("ok"), says('"Moons of Jupiter"')], titles_by_model=True
    ) as runtime:
        chat = await runtime.conversation()
        turn = await chat.send("Tell me all about the moons of Jupiter")
        events = [event async for event in turn.events()]
        assert (await chat.info()).title == "Moons of Jupiter"
        told = [event.text for event in events if isinstance(event, Notice) and event.kind == "title"]
        assert told[-1] == "Moons of Jupiter"


async def test_a_title_that_fails_costs_nothing(tmp_path: Path) -> None:
    """T9"""
    async with runtime_with(tmp_path, [says("ok"), fails("no title today")], titles_by_model=True) as runtime:
        chat = await runtime.conversation()
        result = await (await chat.send("Tell me")).result()
        assert (result.state, result.text) == ("completed", "ok")
        assert (await chat.info()).title == "Tell me"


async def test_a_title_that_a_person_gives_meanwhile_stays(tmp_path: Path) -> None:
    """T9: also where a model would call it otherwise when the turn is over."""

    class Renames(Plugin):
        async def on_after_request(self, reply: Message, turn: TurnView, append: Appender) -> None:
            await chat.rename("My own")

    async with runtime_with(
        tmp_path, [says("ok"), says("Moons of Jupiter")], titles_by_model=True, plugins=[Renames()]
    ) as runtime:
        chat = await runtime.conversation()
        turn = await chat.send("Tell me all about the moons of Jupiter")
        events = [event async for event in turn.events()]
        assert (await chat.info()).title == "My own"
        told = [event.text for event in events if isinstance(event, Notice) and event.kind == "title"]
        assert "Moons of Jupiter" not in told
