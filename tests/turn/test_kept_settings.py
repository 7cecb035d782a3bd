"""A turn keeps its initial settings, and a repeated send keeps those of the first send (T14)."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, Plugin, Runtime, ScriptedModel, TurnView, allow_once, release
from dragoman.errors import BadRequest, TurnQuarantined
from dragoman.messages.message import CallState
from dragoman.messages.request import Request
from dragoman.store.sqlite import SqliteStore
from dragoman.store.store import Started, StoredEvent
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.turn.facts import TurnCancelled
from dragoman.wire.scripted import calls, says
from tests.patience import PATIENCE
from tests.runtimes import add, calls_of, model_of, runtime_with


class Marks(Plugin):
    async def on_before_request(self, request: Request, turn: TurnView) -> None:
        request.system += " marked"


CAREFUL = Agent(name="careful", prompt="Be careful.")


@pytest.mark.parametrize("again", ["rerun", "edit"])
async def test_a_repeated_send_keeps_its_own_settings(tmp_path: Path, again: str) -> None:
    """A repeated send keeps mode, agent, options, prompt, plugins and tools, unless the caller changes them
    (T10, T14)."""
    script = [calls("add", a=1, b=1), says("2"), calls("add", a=1, b=1), says("2"), says("plain")]
    options: dict[str, Any] = {"tools": [add], "agents": [CAREFUL], "plugins": [Marks()]}
    async with runtime_with(tmp_path, script, **options) as runtime:
        chat = await runtime.conversation()
        sent: dict[str, Any] = {
            "mode": "ask",
            "agent": "careful",
            "system": "Be brief.",
            "options": {"temperature": 0.5},
            "disable": ["marks"],
            "tools": {"agents": False},
        }
        first = await chat.send("add", **sent)
        assert await first.reached("waiting")
        await first.answer(first.question, allow_once())
        result = await first.result()
        message = (await runtime.store.turn(first.id)).message

        async def repeat(**told: Any) -> TurnHandle:
            if again == "edit":
                return await chat.edit(message, "add them", **told)
            return await chat.rerun(result.messages[-1].id, **told)

        second = await repeat()
        assert await second.reached("waiting")
        await second.answer(second.question, allow_once())
        await second.result()
        before, after = model_of(runtime).requests[0], model_of(runtime).requests[2]
        assert (after.system, after.options, after.tools) == (before.system, before.options, before.tools)
        assert "marked" not in after.system
        third = await repeat(mode="off", options={"temperature": 1})
        await third.result()
        told = model_of(runtime).requests[-1]
        assert (told.tools, told.options) == ((), {"temperature": 1})


async def test_settings_changed_meanwhile_are_for_the_next_turn(tmp_path: Path) -> None:
    """T14"""
    script = [calls("add", a=1, b=1), says("2"), says("x")]
    async with runtime_with(tmp_path, script, tools=[add], mode="ask") as runtime:
        chat = await runtime.conversation(system="Old.")
        turn = await chat.send("go")
        assert await turn.reached("waiting")
        await chat.change(system="New.", mode="off")
        await turn.answer(turn.question, allow_once())
        await turn.result()
        await (await chat.send("and now")).result()
        prompts = [request.system.split("\n\n")[-1] for request in model_of(runtime).requests]
    assert prompts == ["Old.", "Old.", "New."]


async def test_what_is_queued_is_held_to_what_its_conversation_is_held_to_when_it_begins(
    tmp_path: Path,
) -> None:
    """A queued turn has not started, so changes to its conversation apply to it. The message and settings of
    its send stay (T13 × P8, P5, R3)."""
    script = [calls("add", a=1, b=1), says("2"), calls("add", a=2, b=2), says("4"), says("no tools")]
    async with runtime_with(tmp_path, script, tools=[add]) as runtime:
        chat = await runtime.conversation(system="Old.", review="always")
        first = await chat.send("one")
        assert await first.reached("waiting")
        second = await chat.send("in Graz, by Ada", queue=True, private={"name": "Ada"})
        third = await chat.send("three", queue=True, mode="off")
        await chat.change(mode="ask", private={"city": "Graz"}, system="New.", review=None)
        await first.answer(first.question, release())
        await first.result()
        asked = []
        async for question in second.asked():
            asked.append(question.because)
            await second.answer(question, allow_once())
        await second.result()
        await third.result()
        *_, queued, _, last = model_of(runtime).requests
    assert asked == ["mode"]
    assert queued.messages[-1].text == "in [[city]], by [[name]]"
    assert "Old." in queued.system
    assert last.tools == ()


async def test_a_turn_is_taken_up_with_its_own_model_or_not_at_all(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Without its model a turn stays unchanged and can be cancelled, and it resumes where the model exists
    (T14)."""
    store = tmp_path / "chat.db"
    old = ScriptedModel([calls("add", a=1, b=1), says("2")], name="old/model")
    async with Runtime(store, model=old, tools=[add]) as first:
        turn = await first.send("go")
        assert await turn.reached("waiting")
    with caplog.at_level(logging.WARNING, logger="dragoman.turn"):
        async with Runtime(
            store, model=ScriptedModel([says("x")], name="new/model"), tools=[add]
        ) as stranger:
            await stranger.answer(turn.question, allow_once())
            with pytest.raises(TurnQuarantined, match="old/model"):
                await stranger.turn(turn.id).result()
            assert (await stranger.store.turn(turn.id)).live
    assert "old/model" in caplog.text
    back = ScriptedModel([says("two")], name="old/model")
    async with Runtime(store, model=back, tools=[add]) as second:
        assert (await second.turn(turn.id).result()).text == "two"


class WatchingStore(SqliteStore):
    """Records which process owns a turn whenever it stores an event."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.abandoned: list[bool] = []

    async def put_events(self, events: Sequence[StoredEvent], epochs: Mapping[str, int]) -> None:
        await super().put_events(events, epochs)
        self.abandoned += [await self.is_abandoned(turn) for turn in epochs]


async def test_who_is_told_that_a_turn_was_set_aside_finds_that_nobody_runs_it(tmp_path: Path) -> None:
    """A client that is notified of a quarantined turn finds it without an owner, so every view offers to
    continue or close it (T14)."""
    store = tmp_path / "chat.db"
    old = ScriptedModel([calls("add", a=1, b=1)], name="old/model")
    async with Runtime(store, model=old, tools=[add]) as first:
        turn = await first.send("go")
        assert await turn.reached("waiting")
    watching = WatchingStore(store)
    async with Runtime(watching, model=ScriptedModel([], name="new/model"), tools=[add]) as stranger:
        with pytest.raises(TurnQuarantined, match="old/model"):
            await stranger.turn(turn.id).resume()
    assert watching.abandoned == [True]


async def test_what_was_set_aside_is_cancelled_from_a_process_that_takes_no_turns_up(tmp_path: Path) -> None:
    """A process that adopts no turns can cancel a quarantined turn by its facts (T14 × T6)."""
    store = tmp_path / "chat.db"
    old = ScriptedModel([calls("add", a=1, b=1)], name="old/model")
    async with Runtime(store, model=old, tools=[add]) as first:
        turn = await first.send("go")
        assert await turn.reached("waiting")
    new = ScriptedModel([], name="new/model")
    async with (
        Runtime(store, model=new, tools=[add]) as stranger,
        Runtime(store, model=new, tools=[add], adopts=False) as other,
    ):
        with pytest.raises(TurnQuarantined):
            await stranger.turn(turn.id).resume()
        assert await other.turn(turn.id).cancel("enough")
        result = await asyncio.wait_for(other.turn(turn.id).result(), PATIENCE)
        assert (result.state, calls_of(result.messages)[0].state) == ("cancelled", CallState.CANCELLED)
        both = (stranger.turn(turn.id).reached("cancelled") for _ in range(2))  # each forgets what it lacked
        assert await asyncio.gather(*both) == [True, True]


async def test_a_cancel_that_nobody_has_read_ends_a_turn_that_cannot_go_on(tmp_path: Path) -> None:
    """The process that was asked died before it ended the turn (T6 × T14)."""
    old = ScriptedModel([calls("add", a=1, b=1)], name="old/model")
    async with Runtime(tmp_path / "chat.db", model=old, tools=[add]) as first:
        turn = await first.send("go")
        assert await turn.reached("waiting")
    async with runtime_with(tmp_path, [], adopts=False) as visitor:
        await visitor.store.post(turn.id, "cancel", {"reason": "enough"})
    async with runtime_with(tmp_path, []) as second:
        ended = await second.turn(turn.id).facts()
        assert isinstance(ended[-1], TurnCancelled)
        assert ended[-1].reason == "enough"


async def test_what_was_set_aside_goes_on_when_a_person_wants_it_and_what_it_lacked_is_there(
    tmp_path: Path,
) -> None:
    """T14: without a restart."""
    async with runtime_with(tmp_path, [calls("add", a=1, b=1)], tools=[add], allow=()) as first:
        turn = await first.send("go")
        assert await turn.reached("waiting")
        question = turn.question
    damage(tmp_path / "chat.db", turn.id)
    async with runtime_with(tmp_path, lambda _: says("done"), tools=[add], allow=()) as second:
        await second.answer(question, allow_once())
        for _ in range(2):
            with pytest.raises(TurnQuarantined, match="cannot read"):
                await second.turn(turn.id).resume()
        damage(tmp_path / "chat.db", turn.id, repaired=True)
        assert await second.turn(turn.id).resume()
        assert (await second.turn(turn.id).result()).text == "done"


def damage(store: Path, turn: str, *, repaired: bool = False) -> None:
    words = ("request_made", "request_built") if repaired else ("request_built", "request_made")
    with closing(sqlite3.connect(store)) as db:
        db.execute("UPDATE facts SET body = replace(body, ?, ?) WHERE turn = ?", (*words, turn))
        db.commit()


async def test_a_turn_whose_start_is_gone_stays_as_it_is(tmp_path: Path) -> None:
    """S3"""
    async with runtime_with(tmp_path, [calls("add", a=1, b=1)], tools=[add], allow=()) as first:
        turn = await first.send("go")
        assert await turn.reached("waiting")
    with closing(sqlite3.connect(tmp_path / "chat.db")) as db, db:
        other = '{"type": "turn_completed"}'
        db.execute("UPDATE facts SET body = ? WHERE turn = ? AND seq = 1", [other, turn.id])
    async with runtime_with(tmp_path, [], tools=[add], allow=()) as second:
        with pytest.raises(TurnQuarantined, match="its first fact is missing"):
            await second.turn(turn.id).resume()
        assert (await second.store.turn(turn.id)).live


async def test_a_turn_whose_message_is_gone_stays_until_it_is_cancelled(tmp_path: Path) -> None:
    """Its trace says that it was, although no fact does (S3)."""
    async with runtime_with(tmp_path, [calls("add", a=1, b=1)], tools=[add], allow=()) as first:
        turn = await first.send("go")
        assert await turn.reached("waiting")
    with closing(sqlite3.connect(tmp_path / "chat.db")) as db, db:
        db.execute("UPDATE turns SET message = 'msg_gone' WHERE id = ?", [turn.id])
    async with runtime_with(tmp_path, [], tools=[add], allow=()) as second:
        turn = second.turn(turn.id)
        with pytest.raises(TurnQuarantined, match="Unknown message 'msg_gone'"):
            await turn.resume()
        assert (await turn.trace()).state == "waiting"
        assert await turn.cancel()
        assert (await turn.trace()).state == "cancelled"


async def test_a_turn_that_cannot_be_read_stops_nothing_else(tmp_path: Path) -> None:
    """Other turns continue, and the client sees the reason. Cancel or delete frees the branch (S3, T14)."""
    script = [calls("add", a=1, b=1), calls("add", a=2, b=2)]
    async with runtime_with(tmp_path, script, tools=[add], allow=()) as first:
        bad, good = await first.send("bad"), await first.send("good")
        assert await bad.reached("waiting")
        assert await good.reached("waiting")
        question = good.question
    damage(tmp_path / "chat.db", bad.id)
    async with runtime_with(tmp_path, lambda _: says("done"), tools=[add], allow=()) as second:
        async with runtime_with(tmp_path, [], adopts=False) as other:  # as another process would
            await other.answer(question, allow_once())
        result = await asyncio.wait_for(second.turn(good.id).result(), PATIENCE)
        assert calls_of(result.messages)[0].state is CallState.COMPLETED
        with pytest.raises(TurnQuarantined, match="cannot read"):
            await second.turn(bad.id).result()
        conversation = (await second.store.turn(bad.id)).conversation
        assert await second.turn(bad.id).cancel()
        assert not (await second.store.turn(bad.id)).live
        chat = await second.conversation(conversation)
        assert (await (await chat.send("go on")).result()).text == "done"
        await second.delete(conversation)


async def test_a_watch_that_fails_is_told_and_begun_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A store that is locked for a while loses no answer of a user (S3)."""
    async with runtime_with(tmp_path, [calls("add", a=1, b=1), says("2")], tools=[add], allow=()) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        with closing(sqlite3.connect(tmp_path / "chat.db", isolation_level=None)) as db:
            db.execute("ALTER TABLE signals RENAME TO hidden")  # the watcher for signals now fails
            with caplog.at_level(logging.ERROR, logger="dragoman.background"):
                while "the watch for signals failed" not in caplog.text:
                    db.execute("UPDATE conversations SET updated = updated + 1")
                    await asyncio.sleep(0.05)
            db.execute("ALTER TABLE hidden RENAME TO signals")
        async with runtime_with(tmp_path, [], adopts=False) as other:
            await other.answer(turn.question, allow_once())
        assert (await asyncio.wait_for(turn.result(), PATIENCE)).text == "2"


@pytest.mark.parametrize(
    ("said", "match"),
    [
        ({"model": ScriptedModel([])}, "a function from names to models"),
        ({"system": 5}, "system must be a string, not 5"),
        ({"options": [1]}, "options must be a table"),
        ({"tools": {"files": "false"}}, "true or false"),
        ({"disable": "titles"}, "a list of plugin names"),
    ],
)
async def test_what_could_not_be_read_again_is_not_stored(
    tmp_path: Path, said: dict[str, Any], match: str
) -> None:
    """Dragoman refuses the send and stores no turn (T14 × S1)."""
    async with runtime_with(tmp_path, []) as runtime:
        chat = await runtime.conversation()
        with pytest.raises(BadRequest, match=match):
            await chat.send("go", **said)
        assert await runtime.store.turns(chat.id) == []


class LooksFirst(SqliteStore):
    """Reports when it found a queued turn that is ready to start."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.found = asyncio.Event()

    async def queue(self, conversation: str | None = None) -> list[str]:
        if ready := await super().queue(conversation):
            self.found.set()
        return ready


class BeginsLate(SqliteStore):
    """Starts a queued turn only after the other store has found it."""

    def __init__(self, path: Path, other: LooksFirst) -> None:
        super().__init__(path)
        self._other = other

    async def start_queued(self, turn: str) -> Started | None:
        if (await self.queue()) == [turn]:
            await self._other.found.wait()
        return await super().start_queued(turn)


async def test_what_is_queued_is_begun_by_who_ran_the_turn_before_it(tmp_path: Path) -> None:
    """A second process has another model and does not know the objects passed with the send (T4 × T14)."""
    other = LooksFirst(tmp_path / "chat.db")
    own = BeginsLate(tmp_path / "chat.db", other)
    script = [calls("add", a=1, b=1), says("2"), says("own")]
    async with (
        Runtime(own, model=ScriptedModel(script, name="own/model"), tools=[add]) as runtime,
        Runtime(other, model=ScriptedModel(lambda _: says("other"), name="other/model")),
    ):
        chat = await runtime.conversation()
        first = await chat.send("one")
        assert await first.reached("waiting")
        second = await chat.send("two", queue=True)
        await first.answer(first.question, allow_once())
        assert (await asyncio.wait_for(second.result(), PATIENCE)).text == "own"
