"""Processes that begin with everything imported: forked off one that has done that, once for all tests."""

from __future__ import annotations

from contextlib import chdir
from functools import cache
from multiprocessing.context import ForkServerContext, ForkServerProcess
from multiprocessing.forkserver import ensure_running
from pathlib import Path


class _Process(ForkServerProcess):
    def start(self) -> None:
        _begin()
        super().start()


class _Context(ForkServerContext):
    Process = _Process


@cache
def _begin() -> None:
    """Python finds what is to be imported in the folder where this begins, and where it finds nothing says
    nothing: every fork would import everything anew."""
    with chdir(Path(__file__).parents[1]):
        ensure_running()


FORKS = _Context()
FORKS.set_forkserver_preload(
    ["tests.collector_off", "tests.crash.test_kill_sweep", "tests.cli.person", "tests.preloaded"]
)
