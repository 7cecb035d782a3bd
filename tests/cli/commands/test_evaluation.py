"""`dragoman eval`, as a new user tries it: three thumbs down, another prompt, two models, a report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dragoman import Runtime
from dragoman.evaluation import cases
from dragoman.store.store import Rating
from dragoman.tools.builtin import BUILTIN
from dragoman.wire.scripted import calls, says
from tests.cli.program import Ended, program
from tests.loopback import Body, Reply, loopback
from tests.runtimes import runtime_with

pytestmark = pytest.mark.slow
QUESTIONS = ("What is 17 * 23?", "And 12 * 12?", "And 9 * 9?")


def provider(body: Body) -> Reply:
    """`good` uses the calculator if the prompt asks for it, and `bad` never does."""
    if body["model"] == "judge":
        answer = json.loads(body["messages"][-1]["content"])["answer"]
        return says(json.dumps({"passed": "391" in answer, "reason": "The number decides."}))
    if body["messages"][-1]["role"] == "tool":
        return says(f"It is {body['messages'][-1]['content']}.")
    if body["model"] == "good" and "calculator" in str(body["messages"][0]["content"]):
        return calls("calculator", expression="17 * 23")
    return says("About 400.")


async def _chats(folder: Path) -> list[str]:
    """Store three answers that a user disliked and one without a rating."""
    script = [
        line for _ in range(4) for line in (calls("calculator", expression="17 * 23"), says("About 400."))
    ]
    async with runtime_with(folder, script, tools=[BUILTIN["basics"]()]) as runtime:
        turns = [await _answered(runtime, text) for text in (*QUESTIONS, "And 5 * 5?")]
        for turn, note in zip(turns[:3], ("not exact", "", ""), strict=True):
            await runtime.store.rate(Rating(turn, "local", "bad", note, 1.0))
    return turns


async def _answered(runtime: Runtime, text: str) -> str:
    turn = await runtime.send(text)
    await turn.result()
    return turn.id


async def _eval(folder: Path, *words: str) -> Ended:
    async with loopback(provider) as server:
        (folder / "settings.toml").write_text(f'[providers.acme]\nbase_url = "{server.url}"\nlocal = true\n')
        options = ("--store", "chat.db") if words[0] in ("add", "run") else ()
        return await program("eval", *words, *options, "--config", "settings.toml", folder=folder)


async def test_ten_minutes_of_a_new_user(tmp_path: Path) -> None:
    """Q1 to Q3"""
    await _chats(tmp_path)
    added = await _eval(tmp_path, "add", "--rated", "bad")
    assert len(added.out.splitlines()) == 3, added.err
    again = await _eval(tmp_path, "add", "--rated", "bad", "--contains", "391")
    assert "0 new cases" in again.err
    assert [case.expect.changed for case in cases(tmp_path / "evals")] == [True] * 3
    (tmp_path / "new.md").write_text("Use the calculator for every number.")

    both = ("--model", "acme/good", "--model", "acme/bad")
    nobody = await _eval(tmp_path, "run", *both, "--judge", "acme/judge", "--unrecorded", "ask")
    assert nobody.status == 2
    assert "No terminal" in nobody.err
    blind = await _eval(tmp_path, "run", *both)
    assert blind.status == 2
    assert "--judge" in blind.err  # a model judges a user's note

    run = (
        "run",
        *both,
        "--prompt",
        "settings",
        "--prompt",
        "new.md",
        "--judge",
        "acme/judge",
        "--repeat",
        "2",
    )
    estimate = await _eval(tmp_path, *run, "--estimate")
    assert "24 answers to ask for, 0 cached" in estimate.err
    assert "tokens, about $0.0000" in estimate.err
    assert estimate.out == ""

    first = await _eval(tmp_path, *run, "--threshold", "0.9")
    assert first.status == 1, first.err
    assert "24 of 24 answers" in first.err
    assert "\x1b" not in first.out + first.err  # piped: no colors
    assert "acme/good · new.md" in first.out
    assert "6/6" in first.out
    assert "better than the recording" in first.out

    passing = ("run", "--model", "acme/good", "--prompt", "new.md", "--judge", "acme/judge", "--repeat", "2")
    second = await _eval(
        tmp_path, *passing, "--threshold", "0.9", "--against", "last", "--format", "markdown"
    )
    assert second.status == 0, second.err
    assert "0 answers to ask for, 6 cached" in second.err
    assert "| acme/good · new.md | 6/6 |" in second.out

    (noted,) = [case.id for case in cases(tmp_path / "evals") if case.expect.rubrics]
    shown = await _eval(tmp_path, "report", "--case", noted)
    assert "not exact" not in shown.out.split("recorded")[0]
    for line in ("- About 400.", "+ It is 391.", "acme/judge votes yes: The number decides."):
        assert line in shown.out
    junit = await _eval(tmp_path, "report", "--format", "junit")
    assert junit.out.startswith("<?xml")


async def test_a_turn_is_asked_again_without_a_file(tmp_path: Path) -> None:
    await _chats(tmp_path)
    ended = await _eval(tmp_path, "run", "--turn", "last", "--model", "acme/bad", "--format", "json")
    report = json.loads(ended.out)
    ((met,),) = [one["met"] for one in report["runs"]]
    assert (met["name"], met["passed"]) == ("any_order", False)
    assert not [*(tmp_path / "evals").glob("*.toml")]
    unknown = await _eval(tmp_path, "run", "--turn", "turn_nothing", "--model", "acme/bad")
    assert unknown.status == 1
    assert "Unknown turn 'turn_nothing'" in unknown.err


async def test_cases_are_made_of_what_is_searched_and_named(tmp_path: Path) -> None:
    turns = await _chats(tmp_path)
    found = await _eval(tmp_path, "add", "--search", "12 * 12", "--never", "shell", "--json")
    (file,) = json.loads(found.out)
    (case,) = cases(tmp_path / file)
    assert [call.tool for call in case.expect.never] == ["shell"]
    assert case.expect.changed  # this answer has a rating, too
    async with runtime_with(tmp_path, []) as runtime:
        row = await runtime.store.turn(turns[3])
    named = await _eval(tmp_path, "add", row.message, "--contains", "25")
    (case,) = [one for one in cases(tmp_path / "evals") if one.origin and one.origin.turn == turns[3]]
    assert case.expect.contains == ("25",), named.err


async def test_questions_of_the_leaderboard_are_imported(tmp_path: Path) -> None:
    question = {
        "id": "simple_0",
        "question": [[{"role": "user", "content": "17 * 23"}]],
        "function": [
            {"name": "calculator", "description": "", "parameters": {"type": "dict", "properties": {}}}
        ],
    }
    (tmp_path / "simple.json").write_text(json.dumps(question))
    ended = await _eval(tmp_path, "import", "simple.json")
    assert "1 case in evals/simple.jsonl" in ended.err
    assert [case.id for case in cases(tmp_path / "evals")] == ["simple_0"]


async def test_checks_come_from_the_file_that_you_name(tmp_path: Path) -> None:
    """P12: a case names a function, never code."""
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "a.toml").write_text(
        'id = "a"\nexpect.checks = ["exact"]\n[[messages]]\nrole = "user"\ntext = "17 * 23"\n'
    )
    (tmp_path / "own.py").write_text(
        'def exact(case, answered):\n    return "391" in answered.text or "no number"\n'
    )
    without = await _eval(tmp_path, "run", "--model", "acme/bad")
    assert "expects the check 'exact'" in without.err
    ended = await _eval(tmp_path, "run", "--model", "acme/bad", "--checks", "own.py")
    assert "exact: no number" in ended.out
