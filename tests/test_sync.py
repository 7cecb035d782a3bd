"""The library without `await`: the whole of it, also where an event loop runs already."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from dragoman import ScriptedModel, SyncRuntime, allow_once, reject, run_sync
from dragoman.errors import BadRequest, ConfigError, NotFound, ProviderError
from dragoman.wire.scripted import calls, fails, says
from tests.runtimes import add


def test_a_conversation_without_a_loop(tmp_path: Path) -> None:
    """Sends, events, a question and its answer, versions, search, export."""
    script = [calls("add", a=1, b=2), says("It is 3."), says("Three."), says("Hi."), says("[1, 2]")]
    with SyncRuntime(tmp_path / "chat.db", model=ScriptedModel(script), tools=[add]) as runtime:
        chat = runtime.conversation(system="Be brief.")
        turn = chat.send("add")
        seen = []
        for event in turn.events():
            seen.append(event.type)
            if event.type == "call.asked":
                assert [question.id for question in runtime.questions()] == [event.question]
                turn.answer(event.question, allow_once())
        assert turn.result().text == "It is 3."
        assert seen[-1] == "turn.end"
        answer = chat.messages()[-1]
        assert chat.rerun(answer.id).result().text == "Three."
        assert chat.edit(chat.messages()[0].id, "hello").result().text == "Hi."
        assert runtime.send("list", output_type=list[int]).result().output == [1, 2]
        assert runtime.search("Three")
        assert "It is 3." in str(runtime.export(chat.id))
        chat.rename("Sums")
        assert chat.info().title == "Sums"
        runtime.delete(chat.id)
        with pytest.raises(NotFound):
            runtime.conversation(chat.id)


def test_what_is_raised_inside_is_raised_here(tmp_path: Path) -> None:
    with SyncRuntime(tmp_path / "chat.db", model=ScriptedModel([fails("no")])) as runtime:
        with pytest.raises(ProviderError, match="no"):
            runtime.send("go").result()
        with pytest.raises(BadRequest):
            runtime.send("")
    assert not [thread for thread in threading.enumerate() if thread.name == "dragoman"]


def test_a_runtime_that_cannot_be_made_leaves_no_thread(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        SyncRuntime(tmp_path / "chat.db", model=ScriptedModel([]), max_rounds=-1)
    assert not [thread for thread in threading.enumerate() if thread.name == "dragoman"]


def test_who_stops_reading_can_still_ask_for_the_result(tmp_path: Path) -> None:
    with SyncRuntime(tmp_path / "chat.db", model=ScriptedModel([says("a long answer")])) as runtime:
        turn = runtime.send("go")
        for event in turn.events():
            if event.type == "text.delta":
                break
        assert turn.result().text == "a long answer"


async def test_in_a_notebook_a_loop_runs_already(tmp_path: Path) -> None:
    model = ScriptedModel([says("Hi.")])
    assert run_sync("Hello", model=model, store=tmp_path / "chat.db").text == "Hi."


def test_a_turn_goes_on_in_the_next_program(tmp_path: Path) -> None:
    """S1"""
    with SyncRuntime(
        tmp_path / "chat.db", model=ScriptedModel([calls("add", a=1, b=2)]), tools=[add]
    ) as runtime:
        turn = runtime.send("add")
        assert turn.reached("waiting")
    with SyncRuntime(tmp_path / "chat.db", model=ScriptedModel([says("No then.")]), tools=[add]) as runtime:
        (question,) = runtime.questions()
        runtime.answer(question.id, reject("not today"))
        assert runtime.turn(turn.id).result().text == "No then."
