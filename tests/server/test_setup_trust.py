"""P11: the set-up shows which folders are trusted, what they would do, and what changed since."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.config.sources import trust_answers
from dragoman.config.trust.contents import inspect_project
from tests.server.test_setup import Folder, folder, set_up

__all__ = ["folder"]

URL = "/api/setup/trust"


@pytest.fixture
def project(folder: Folder) -> Path:
    """A folder with settings of its own, in which the server starts."""
    project = folder.path
    (project / "dragoman.toml").write_text('[mcp.notes]\ncommand = "python3"\nargs = ["server.py"]\n')
    (project / "server.py").write_text("print('first')\n")
    return project


async def test_a_folder_that_is_not_trusted_is_shown_with_what_it_would_do(
    folder: Folder, project: Path
) -> None:
    async with set_up(folder) as site:
        [shown] = (await site.get(URL))["items"]
    assert (shown["folder"], shown["state"], shown["changes"]) == (str(project), "not_trusted", [])
    assert any("server.py" in line for line in shown["would"])


async def test_a_change_of_a_program_is_named(folder: Folder, project: Path) -> None:
    trust_answers().remember(inspect_project(project), trusted=True)
    async with set_up(folder) as site:
        [shown] = (await site.get(URL))["items"]
        assert (shown["state"], shown["changes"]) == ("trusted", [])
        (project / "server.py").write_text("print('second')\n")
        [shown] = (await site.get(URL))["items"]  # while the server runs
    assert (shown["state"], shown["changes"]) == ("changed", ["changed: server.py"])
