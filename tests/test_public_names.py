"""What `import dragoman` gives, and what it costs."""

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


@pytest.mark.slow
def test_importing_the_package_brings_in_nothing_heavy() -> None:
    assert not {"pydantic", "aiohttp", "typer", "asyncio", "sqlite3"} & _modules_after("import dragoman")


@pytest.mark.slow
def test_the_runtime_brings_in_no_http_client_and_no_terminal() -> None:
    assert not {"aiohttp", "typer", "rich"} & _modules_after("from dragoman import Runtime")


def _modules_after(code: str) -> set[str]:
    code = f"{code}; import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())
