"""A model for everybody who talks at a terminal here, settings that use it, and commands in this process."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from dragoman.cli import main
from tests.browser.plays import furnish
from tests.cli.person import playing
from tests.cli.program import Ended, clean_environment

Cli: TypeAlias = Callable[..., Ended]


@pytest.fixture(scope="session")
def model_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with playing(tmp_path_factory.mktemp("model")) as url:
        yield url


@pytest.fixture
def stage(tmp_path: Path, model_url: str) -> Path:
    """A folder with a `dragoman.toml` whose model plays."""
    furnish(tmp_path, model_url)
    return tmp_path


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Cli]:
    """The program's entry point, called in this process and in this folder: `cli("list", status=0)`."""
    with monkeypatch.context() as here:
        here.chdir(tmp_path)
        wanted = clean_environment(tmp_path)
        for name in set(os.environ) - set(wanted):
            here.delenv(name)
        for name, value in wanted.items():
            here.setenv(name, value)

        def call(*arguments: str, status: int = 0, stdin: str = "") -> Ended:
            here.setattr(sys, "argv", ["dragoman", *arguments])
            here.setattr(sys, "stdin", io.StringIO(stdin))
            with pytest.raises(SystemExit) as leaving:
                main.run()
            ended = Ended(int(leaving.value.code or 0), *capsys.readouterr())
            assert ended.status == status, ended.err
            return ended

        yield call
