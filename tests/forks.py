"""Processes that begin with everything imported: forked off one that has done that, once for all tests."""

from __future__ import annotations

import multiprocessing

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.crash.test_kill_sweep", "tests.cli.person", "tests.preloaded"])
