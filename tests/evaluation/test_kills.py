"""Q2, S3: a killed run repeats no request, and produces the same report as an uninterrupted one."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dragoman.evaluation import Case, Expected, ExpectedCall, save_cases
from dragoman.evaluation.case import CaseMessage
from dragoman.evaluation.expected import Answered, MadeCall
from dragoman.wire.scripted import calls, says
from tests.cli.program import program, started
from tests.fork_server import KILL
from tests.loopback import Body, Reply, Stream, loopback
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow
MODELS = ("acme/one", "acme/two")
CASES = 4


class Provider:
    """A provider that answers by the request, and holds back the answers to requests with these numbers."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.holds: set[int] = set()
        self.held = asyncio.Event()

    def __call__(self, body: Body) -> Reply:
        key = json.dumps([body["model"], [[one["role"], one["content"]] for one in body["messages"]]])
        self.asked[key] += 1
        if self.asked.total() in self.holds:
            self.held.set()
            return Stream((), then="stalls")
        if body["messages"][-1]["role"] == "user":
            return calls("calculator", expression="17 * 23")
        return says("It is 391.")


def _cases(folder: Path) -> None:
    recorded = Answered("acme/old", "About 400.", (MadeCall("calculator", {"expression": "17 * 23"}, "391"),))
    wanted = Expected(contains=("391",), any_order=(ExpectedCall("calculator"),))
    save_cases(
        (
            Case(
                f"case-{n}",
                (CaseMessage("user", f"{n}: 17 * 23?"),),
                wanted,
                tools=("basics",),
                recorded=recorded,
            )
            for n in range(CASES)
        ),
        folder / "evals",
    )


def _words(*more: str) -> list[str]:
    models = [word for model in MODELS for word in ("--model", model)]
    return [
        "eval",
        "run",
        *models,
        "--concurrency",
        "1",
        "--config",
        "settings.toml",
        "--format",
        "json",
        *more,
    ]


def _report(text: str) -> Any:
    """Without what is another in each run: its name, and how long things took."""
    report = json.loads(text)
    for one in report["runs"]:
        one["cached"] = one["answered"]["seconds"] = None
    return {**report, "name": "", "created": 0}


@pytest.mark.parametrize("kills", [2, pytest.param(10, marks=pytest.mark.long)])
async def test_a_killed_run_asks_nothing_twice_and_gives_the_same_report(tmp_path: Path, kills: int) -> None:
    whole, torn = Provider(), Provider()
    reports = []
    for provider, name in ((whole, "whole"), (torn, "torn")):
        folder = tmp_path / name
        _cases(folder)
        async with loopback(provider) as server, asyncio.timeout(PATIENCE * 4):
            (folder / "settings.toml").write_text(
                f'[providers.acme]\nbase_url = "{server.url}"\nlocal = true\n'
            )
            for number in range(kills if provider is torn else 0):
                torn.holds = {torn.asked.total() + 1 + number % 3}
                torn.held.clear()
                process = await started(*_words(), folder=folder)
                await torn.held.wait()
                process.send_signal(KILL)
                await process.wait()
            provider.holds = set()
            ended = await program(*_words(), folder=folder)
            assert ended.status == 0, ended.err
            reports.append(_report(ended.out))
    answers = CASES * len(MODELS)
    assert whole.asked.total() == answers * 2  # a call, and the answer
    assert torn.asked.keys() == whole.asked.keys()
    assert torn.asked.total() == whole.asked.total() + kills  # whose answers had not come
    assert reports[0] == reports[1]
    assert all(met["passed"] for one in reports[0]["runs"] for met in one["met"])
