"""For every test: properties are not timed, since a busy machine proves nothing about the code; what is
compiled is kept, since hundreds of processes are started from here; and files are in memory where that is
large enough, since a disk that others use makes every test wait."""

from __future__ import annotations

import gc
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.postgres import Server, programs, served
from tests.sweeps import EXAMPLES, WHOLE

settings.register_profile(
    "steady",
    deadline=None,
    max_examples=EXAMPLES,
    derandomize=not WHOLE,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("steady")

gc.disable()  # until all is imported: nothing of that is ever given back
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

_CACHE = Path(__file__).parents[1] / ".cache"
_MEMORY = Path("/dev/shm")
_ENOUGH = 2 << 30  # bytes
_ALL_SLOW = "\npytestmark = pytest.mark.slow\n"
# What a file speaks of whose tests are no unit tests: a runtime, a store, a server, another process.
_WHOLE = re.compile(
    r"\b(Runtime|SqliteStore|create_server|subprocess)\b"
    r"|from tests\.(cli|loopback|media|people|postgres|runtimes|server|store|tools|turn|wire\.clouds)\b"
)
# What a file imports whose tests fork programs off (`forks.py`).
_FORKING = re.compile(
    r"from tests\.(browser|cli|crash|fleet|fork_server|forks|server\.mcp\.client|tools\.mcp\.(asking|rig))\b"
)
_LEFT_OUT = pytest.mark.skip(reason="takes long: `make sweep` runs it, and `pytest -m long`")


def pytest_configure() -> None:
    """Before any folder is made. Workers have it from the process that started them."""
    if "TMPDIR" not in os.environ and _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK):
        memory = os.statvfs(_MEMORY)
        if memory.f_bavail * memory.f_frsize > _ENOUGH and not memory.f_flag & os.ST_NOEXEC:
            os.environ["TMPDIR"] = tempfile.tempdir = str(_MEMORY)
    os.environ["HF_ENDPOINT"] = "http://127.0.0.1:9"  # no test reaches the real hub: nobody listens there
    os.environ.setdefault("NODE_COMPILE_CACHE", str(_CACHE / "node"))  # a quarter of a client's time


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """What is left out as a whole is not even imported: half of the time went into that."""
    asked = config.option.markexpr
    if asked not in ("unit", "not slow") or not collection_path.name.startswith("test_"):
        return None
    text = collection_path.read_text("utf-8")
    return _ALL_SLOW in text or (asked == "unit" and _WHOLE.search(text) is not None) or None


def pytest_itemcollected(item: pytest.Item) -> None:
    """What takes long is left to a sweep, unless it is asked for."""
    config = item.config
    if config.option.markexpr == "unit" and not item.get_closest_marker("slow"):
        item.add_marker(pytest.mark.unit)  # the others' files were not read
    if WHOLE or "long" in config.option.markexpr or any("::" in asked for asked in config.args):
        return
    if item.get_closest_marker("long"):
        item.add_marker(_LEFT_OUT)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Each worker is given an equal number of tests, one after the other: the slow ones come first in each
    part, so that what is left in the end, and taken from one another, is short. Those that fork programs off
    are together, since each worker that runs one begins with five seconds of imports for it."""
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    slow = [item for item in items if item.get_closest_marker("slow")]
    slow.sort(key=lambda item: not _forks(item.path))
    fast = [item for item in items if not item.get_closest_marker("slow")]
    ordered: list[pytest.Item] = []
    for left in range(workers, 0, -1):
        size, first = (len(slow) + len(fast)) // left, len(slow) // left
        ordered += slow[:first] + fast[: size - first]
        del slow[:first], fast[: size - first]
    items[:] = ordered


@cache
def _forks(path: Path) -> bool:
    return _FORKING.search(path.read_text("utf-8")) is not None


def pytest_collection_finish() -> None:
    """What was imported stays: the collector need not go through it again and again, nor now."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server, one for all tests of a worker."""
    if programs() is None:
        pytest.skip("there is no PostgreSQL server here to start: see `make postgres`")
    with served() as server:
        yield server
