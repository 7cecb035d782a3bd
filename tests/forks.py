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
    """Start the fork server in the repository root: Python resolves its imports from the current folder.

    If it finds nothing there, it fails silently, and every fork would import everything again.
    """
    with chdir(Path(__file__).parents[1]):
        ensure_running()


FORKS = _Context()
FORKS.set_forkserver_preload(
    ["tests.collector_off", "tests.crash.test_kill_sweep", "tests.cli.person", "tests.preloaded"]
)
