"""Configure all tests.

Properties have no time limit, since a busy machine proves nothing about the code. Compiled code is kept,
since the tests start hundreds of processes. Files are in memory if it is large enough, since a shared disk
makes every test wait.
"""

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

gc.disable()  # until all is imported: none of it is ever freed
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

_CACHE = Path(__file__).parents[1] / ".cache"
_MEMORY = Path("/dev/shm")
_ENOUGH = 2 << 30  # bytes
_ALL_SLOW = "\npytestmark = pytest.mark.slow\n"
# Words in a file whose tests are not unit tests: a runtime, a store, a server, another process.
_WHOLE = re.compile(
    r"\b(Runtime|SqliteStore|create_server|subprocess)\b"
    r"|from tests\.(cli|loopback|media|people|postgres|runtimes|server|store|tools|turn|wire\.clouds)\b"
)
# Imports of a file whose tests fork programs (`forks.py`).
_FORKING = re.compile(
    r"from tests\.(browser|cli|crash|fleet|fork_server|forks|server\.mcp\.client|tools\.mcp\.(asking|rig))\b"
)
_LEFT_OUT = pytest.mark.skip(reason="takes long: `make sweep` runs it, and `pytest -m long`")


def pytest_configure() -> None:
    """Set the environment before any folder is created. Workers inherit it from the process that started
    them."""
    if "TMPDIR" not in os.environ and _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK):
        memory = os.statvfs(_MEMORY)
        if memory.f_bavail * memory.f_frsize > _ENOUGH and not memory.f_flag & os.ST_NOEXEC:
            os.environ["TMPDIR"] = tempfile.tempdir = str(_MEMORY)
    os.environ["HF_ENDPOINT"] = "http://127.0.0.1:9"  # no test reaches the real hub: no server listens there
    os.environ.setdefault("NODE_COMPILE_CACHE", str(_CACHE / "node"))  # a quarter of a client's time


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip files that are left out as a whole without importing them, which took half of the time."""
    asked = config.option.markexpr
    if asked not in ("unit", "not slow") or not collection_path.name.startswith("test_"):
        return None
    text = collection_path.read_text("utf-8")
    return _ALL_SLOW in text or (asked == "unit" and _WHOLE.search(text) is not None) or None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Leave long tests to a sweep, unless they are requested."""
    config = item.config
    if config.option.markexpr == "unit" and not item.get_closest_marker("slow"):
        item.add_marker(pytest.mark.unit)  # files with other tests were not read
    if WHOLE or "long" in config.option.markexpr or any("::" in asked for asked in config.args):
        return
    if item.get_closest_marker("long"):
        item.add_marker(_LEFT_OUT)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give each worker an equal number of consecutive tests.

    The slow ones come first in each part, so that the rest, which workers take from one another, is short.
    Tests that fork programs are together, since each worker that runs one starts with five seconds of
    imports.
    """
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
    """Exclude imported objects from garbage collection, since they are never freed."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server, one for all tests of a worker."""
    if programs() is None:
        pytest.skip("there is no PostgreSQL server here to start: see `make postgres`")
    with served() as server:
        yield server
