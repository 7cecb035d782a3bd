"""Provide `make_runtime`, `recording` and the mark `cases` to pytest. `--dragoman-record` makes new
recordings."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dragoman  # imports each name on first use
from dragoman import evaluation, testing


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("dragoman").addoption(
        "--dragoman-record",
        action="store_true",
        help="ask the real providers, and write recordings again",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "cases(*places): run the test once for each case in these places")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Pass the argument `case` to tests with `@pytest.mark.cases("evals")`. Paths start in the folder of the
    test."""
    marker = metafunc.definition.get_closest_marker("cases")
    if marker is not None and "case" in metafunc.fixturenames:
        places = [metafunc.definition.path.parent / place for place in marker.args or ("evals",)]
        found = evaluation.cases(*places)
        metafunc.parametrize("case", found, ids=[case.id for case in found])


@pytest.fixture
def make_runtime(tmp_path: Path) -> Callable[..., dragoman.Runtime]:
    """Return a function that makes runtimes, each with a separate store and a model that plays a script.
    Other arguments go to `Runtime`. Use the runtimes in an `async with` statement."""

    def make(script: Any, **options: Any) -> dragoman.Runtime:
        model = script if hasattr(script, "stream") else dragoman.ScriptedModel(script)
        return dragoman.Runtime(tmp_path / "chat.db", model=model, **options)

    return make


@pytest.fixture
def recording(request: pytest.FixtureRequest) -> testing.Recording:
    """The recording of this test, in `recordings/` next to its file."""
    name = re.sub(r"[^\w.-]+", "-", request.node.name).strip("-")
    file = request.path.parent / "recordings" / f"{request.path.stem}.{name}.jsonl"
    return testing.Recording(file, record=request.config.getoption("--dragoman-record"))
