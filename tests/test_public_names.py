"""Check what `import dragoman` provides, and what it costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import dragoman


def test_every_public_name_is_there_and_imported_from_its_home() -> None:
    for name in dragoman.__all__:
        assert getattr(dragoman, name).__name__ == name
    assert sorted(dragoman._HOME) == sorted(dragoman.__all__) == dir(dragoman)


def test_the_names_for_type_checkers_are_the_names_there_are() -> None:
    source = Path(dragoman.__file__).read_text("utf-8")
    typed = source.split("if TYPE_CHECKING:")[1].split("_HOME")[0]
    for name, home in dragoman._HOME.items():
        assert f"from {home} import" in typed
        assert name in typed


def test_a_name_that_is_not_there_says_so() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Runtim'"):
        _ = dragoman.Runtim


# Imports in order, and the modules that each must not load.
IMPORTS = {
    "import dragoman": {"pydantic", "aiohttp", "typer", "asyncio", "sqlite3"},
    "from dragoman import Runtime": {"aiohttp", "typer", "rich", "opentelemetry.sdk"},
    "import dragoman.cli.commands.mcp_serve": {"dragoman.server.app"},
}


@pytest.mark.slow
def test_what_is_imported_brings_in_no_more_than_it_needs() -> None:
    """A program without telemetry does not pay for it (O1). A client starts an MCP server for each of its
    windows, and none of them waits for the API of the web UI (F1)."""
    code = "import sys\n" + "".join(f"{one}\nprint(*sys.modules)\n" for one in IMPORTS)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for (one, unwanted), there in zip(IMPORTS.items(), done.stdout.splitlines(), strict=True):
        assert not unwanted & {*there.split()}, one
