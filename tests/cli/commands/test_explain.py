"""`dragoman explain`: facts, states and open questions of a turn, for people and for programs."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dragoman import Plugin, Runtime, ScriptedModel, TurnView, tool
from dragoman.wire.scripted import calls, says
from tests.cli.person import Person
from tests.cli.program import Ended, program
from tests.runtimes import play, runtime_with

pytestmark = pytest.mark.slow


@tool
def delete(path: str) -> str:
    """Delete a file."""
    return "gone"


async def _waiting(folder: Path) -> str:
    async with runtime_with(folder, [calls("delete", path="a.txt")], tools=[delete], allow=()) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        return turn.id


async def _explain(folder: Path, *words: str) -> Ended:
    return await program("explain", "--store", str(folder / "chat.db"), *words, folder=folder)


async def test_it_prints_facts_states_and_what_is_still_asked(tmp_path: Path) -> None:
    turn = await _waiting(tmp_path)
    printed = (await _explain(tmp_path, turn)).out
    assert printed.startswith(f"{turn} of conv_")
    for word in ("TurnStarted", "ReplyReceived", "ApprovalAsked", "waiting", "(approve)"):
        assert word in printed
    assert "\x1b" not in printed  # piped: no colours
    assert re.search(r"\d{10}\.\d", printed) is None  # times are shown as clock times


async def test_as_json_it_says_the_same_to_programs(tmp_path: Path) -> None:
    turn = await _waiting(tmp_path)
    report = json.loads((await _explain(tmp_path, "--json")).out)  # without an id, the latest turn
    assert (report["turn"], report["state"]) == (turn, "waiting")
    assert [fact["type"] for fact in report["facts"]] == [
        "turn_started",
        "request_built",
        "reply_received",
        "call_asked",
    ]
    assert [fact["turn_state"] for fact in report["facts"]][-1] == "waiting"
    (question,) = report["questions"]
    assert (question["tool"], question["arguments"], question["kind"]) == (
        "delete",
        {"path": "a.txt"},
        "approve",
    )
    assert next(iter(report["calls"].values()))["state"] == "asked"


async def test_names_and_errors_neither_control_the_terminal_nor_break_the_table(tmp_path: Path) -> None:
    """A tool name from a model can look like table markup or like terminal control sequences."""
    hostile = "no[/x][bold]such\x1b]0;title\x07\x9b31m\u202e"
    async with runtime_with(tmp_path, [calls(hostile), says("done")]) as runtime:
        turn = await runtime.send("go")
        await turn.result()
    printed = await _explain(tmp_path, turn.id)
    assert printed.status == 0
    assert "no[/x][bold]such" in printed.out
    told = await _explain(tmp_path, turn.id, "--json")
    assert hostile in json.dumps(json.loads(told.out), ensure_ascii=False).replace("\\u001b", "\x1b").replace(
        "\\u0007", "\x07"
    )
    assert not set(printed.out + told.out) & set("\x1b\x9b\x07\u202e")


async def test_the_state_of_a_call_and_of_the_turn_are_two_things(tmp_path: Path) -> None:
    await play(tmp_path, [calls("delete", path="a"), says("ok")], tools=[delete])
    facts = json.loads((await _explain(tmp_path, "--json")).out)["facts"]
    (finished,) = [fact for fact in facts if fact["type"] == "call_finished"]
    assert (finished["state"], finished["turn_state"]) == ("completed", "tool_call")


async def test_what_cannot_be_explained_is_one_line_and_changes_nothing(tmp_path: Path) -> None:
    missing = await _explain(tmp_path)
    assert (missing.status, len(missing.err.splitlines())) == (2, 1)
    assert "Database" in missing.err
    with closing(sqlite3.connect(tmp_path / "chat.db")) as foreign, foreign:
        foreign.execute("CREATE TABLE users (name)")
    foreign.close()
    refused = await _explain(tmp_path)
    assert refused.status == 2
    assert "not a Dragoman store" in refused.err
    with closing(sqlite3.connect(tmp_path / "chat.db")) as foreign, foreign:
        assert foreign.execute("SELECT count(*) FROM sqlite_master").fetchone() == (1,)
    foreign.close()


async def test_a_trace_is_a_waterfall_that_is_plain_when_piped(tmp_path: Path) -> None:
    """O3: a line for each step, request, call and question, with why it ran."""
    await play(tmp_path, [calls("delete", path="a"), says("ok")], tools=[delete])
    printed = (await _explain(tmp_path, "--trace")).out
    lines = printed.splitlines()
    assert "completed after" in lines[0]
    assert "cost unknown" in lines[1]
    names = [line[36:74].split()[0] for line in lines[2:]]
    assert names == ["step", "request", "delete", "step", "request"]
    assert "rule: allow * (given to the runtime)" in printed
    assert "\x1b" not in printed
    report = json.loads((await _explain(tmp_path, "--trace", "--json")).out)
    assert [step["number"] for step in report["trace"]["steps"]] == [1, 2]


class Slow(Plugin):
    name = "slow"

    async def on_turn_start(self, turn: TurnView) -> None:
        await asyncio.sleep(0.2)


async def test_a_trace_says_what_passed_before_the_first_request(tmp_path: Path) -> None:
    """O3: a turn that waits for what has to start is not a riddle."""
    await play(tmp_path, [says("ok")], plugins=[Slow()])
    printed = (await _explain(tmp_path, "--trace")).out
    assert re.match(r"[\d.]+ m?s before the first request, first token", printed.splitlines()[1])


@pytest.mark.parametrize("columns", [100, 80])
async def test_a_trace_is_wrapped_between_words_at_a_terminal(tmp_path: Path, columns: int) -> None:
    """O3"""
    await play(tmp_path, [calls("delete", path="a"), says("ok")], tools=[delete])
    store = str(tmp_path / "chat.db")
    somebody = Person("explain", "--trace", "--store", store, folder=tmp_path, COLUMNS=str(columns))
    before = somebody.sees("completed; rule: allow * (given to the runtime)")
    assert before.endswith("\n" + " " * 13)
    assert max(map(len, before.splitlines())) <= columns
    assert somebody.ended() == 0


async def test_the_trace_of_a_turn_that_waits_says_so(tmp_path: Path) -> None:
    """O3"""
    turn = await _waiting(tmp_path)
    printed = (await _explain(tmp_path, turn, "--trace")).out
    assert "waiting for" in printed
    assert "not answered" in printed


async def test_a_request_is_shown_with_who_gave_what(tmp_path: Path) -> None:
    """R1: as the settings that hold here have it."""
    model = ScriptedModel([says("Hi.")], name="ollama/x")
    async with Runtime(tmp_path / "chat.db", model=model) as runtime:
        await (await runtime.send("Hello", options={"seed": 7})).result()
    file = tmp_path / "settings.toml"
    file.write_text('model = "ollama/x"\nsystem = "Be kind."\ntools = ["basics"]\n')
    printed = (await _explain(tmp_path, "--request", "--config", str(file))).out
    for line in ("── system prompt: settings\nBe kind.", "seed = 7  (this send)", "calculator"):
        assert line in printed
