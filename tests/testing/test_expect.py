"""Check the expectations for tests of turns, and the fixtures that come with the package."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from dragoman import Question, reject
from dragoman.messages.events import CallAsked
from dragoman.testing import Expectation, calls, expect, says
from dragoman.turn.api.turn_handle import TurnHandle
from tests.fork_server import python
from tests.runtimes import add, play

PASSING: list[Callable[[Expectation], object]] = [
    lambda told: told.called("add"),
    lambda told: told.called("add", a=1).called("add", b=5),
    lambda told: told.called_in_order("add", "add").answered("three"),
    lambda told: told.answered(re.compile(r"^three")),
    lambda told: told.never_called("rm"),
    lambda told: told.failed("add", "do not fit"),
    lambda told: told.used_at_most(calls=3, tokens=1000),
]
FAILING: list[Callable[[Expectation], object]] = [
    lambda told: told.called("rm"),
    lambda told: told.called("add", a=7),
    lambda told: told.called_in_order("add", "rm"),
    lambda told: told.answered("four"),
    lambda told: told.never_called("add"),
    lambda told: told.refused("add"),
    lambda told: told.failed("add", "another reason"),
    lambda told: told.used_at_most(calls=2),
    lambda told: told.used_at_most(tokens=10),
]


@pytest.mark.parametrize("number", range(len(PASSING) + len(FAILING)))
async def test_an_expectation_holds_or_says_what_happened(tmp_path: Path, number: int) -> None:
    script = [calls("add", a=1, b=2) + calls("add", a=4, b=5), calls("add", a="x", b=1), says("three")]
    told = expect(await play(tmp_path, script, tools=[add]))
    if number < len(PASSING):
        assert PASSING[number](told) is told
    else:
        with pytest.raises(AssertionError, match=r"add\(a=1, b=2\) completed"):
            FAILING[number - len(PASSING)](told)


async def test_what_a_person_kept_from_running_was_refused(tmp_path: Path) -> None:
    def no(turn: TurnHandle, event: CallAsked) -> Awaitable[Question]:
        return turn.answer(event.question, reject("no"))

    script = [calls("add", a=1, b=2), says("no")]
    told = expect(await play(tmp_path, script, tools=[add], allow=(), answer=no)).refused("add")
    with pytest.raises(AssertionError):
        told.called("add")


TEST = """
import pytest

from dragoman import tool
from dragoman.evaluation import run
from dragoman.testing import Recording, ScriptedModel, calls, expect, says

@tool
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b

async def test_it_adds(make_runtime):
    async with make_runtime([calls("add", a=1, b=2), says("3")], tools=[add], allow=["add"]) as runtime:
        result = await (await runtime.send("What is 1 + 2?")).result()
    expect(result).called("add", a=1).answered("3")

def test_its_recording(recording):
    assert isinstance(recording, Recording)
    assert recording.record
    assert recording.file.name == "test_mine.test_its_recording.jsonl"

@pytest.mark.cases("evals")
async def test_its_cases(case):
    report = await run([case], models={"one": ScriptedModel([says("It is 391.")])})
    assert report.meets(1.0)
"""
CASES = """\
{"id": "right", "messages": [{"role": "user", "text": "17 * 23?"}], "expect": {"contains": ["391"]}}
{"id": "wrong", "messages": [{"role": "user", "text": "17 * 24?"}], "expect": {"contains": ["408"]}}
"""


@pytest.mark.slow
def test_the_fixtures_are_there_for_everybody(tmp_path: Path) -> None:
    """The entry point is disabled here and the plugin named instead, since it can be installed or not. The
    mark `cases` runs a test once for each case (Q1)."""
    (tmp_path / "test_mine.py").write_text(TEST)
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "sums.jsonl").write_text(CASES)
    plugins = ("-p", "pytest_asyncio.plugin", "-p", "dragoman.testing.pytest_plugin")
    done = subprocess.run(
        python("-m", "pytest", "-q", *plugins, "-o", "asyncio_mode=auto", "--dragoman-record"),
        cwd=tmp_path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 failed, 3 passed" in done.stdout, done.stdout
    assert "test_its_cases[wrong]" in done.stdout
