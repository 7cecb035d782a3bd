"""P11: the set-up shows which folders are trusted, what trust would enable, and what changed since."""

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
    """Return a folder with separate settings, in which the server starts."""
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


async def test_a_folder_is_trusted_exactly_as_it_was_shown(folder: Folder, project: Path) -> None:
    """The answer does not cover a change made after the folder was shown."""
    async with set_up(folder) as site:
        [shown] = (await site.get(URL))["items"]
        assert "server.py" in shown["files"]
        yes = {"folder": shown["folder"], "trusted": True, "seen": shown["seen"]}
        (project / "server.py").write_text("print('second')\n")
        refused = await site.ask("PUT", URL, yes)
        assert refused.status == 422
        assert "Review it again" in refused.body["detail"]
        [shown] = (await site.get(URL))["items"]
        [shown] = (await site.ask("PUT", URL, {**yes, "seen": shown["seen"]})).body["items"]
        assert (shown["state"], shown["restart"]) == ("trusted", True)
        elsewhere = {"folder": "/", "trusted": True, "seen": shown["seen"]}
        assert (await site.ask("PUT", URL, elsewhere)).status == 404
        no = {**yes, "seen": shown["seen"], "trusted": False}
        [shown] = (await site.ask("PUT", URL, no)).body["items"]
    assert (shown["state"], shown["restart"]) == ("not_trusted", False)
