"""Provide a folder to work in, next to a secret and with links that lead to it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from pydantic import JsonValue

from dragoman.messages.message import CallState
from dragoman.tools.builtin.read_write import read_file
from dragoman.tools.tool import Tool
from tests.tools.bench import Bench

SECRET = "the secret beside the workspace"


def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    (root / "sub").mkdir(parents=True)
    (root / "a.txt").write_text("one\ntwo\nthree\n")
    (root / "sub" / "b.py").write_text("def b():\n    return 2\n")
    (tmp_path / "secret.txt").write_text(SECRET)
    (tmp_path / "work-2").mkdir()
    (root / "out").symlink_to(tmp_path)
    (root / "secret").symlink_to(tmp_path / "secret.txt")
    (root / "in").symlink_to(root / "sub")
    (root / "alias.txt").symlink_to("a.txt")
    (root / "loop").symlink_to(root / "loop")
    os.mkfifo(root / "pipe")
    return root


def names(folder: Path) -> list[str]:
    return sorted(found.name for found in folder.iterdir())


async def told(root: Path, tool: Tool, **arguments: JsonValue) -> str:
    """Return the text that the model reads from a successful call."""
    outcome = await Bench(workspace=root).run(tool, arguments)
    assert outcome.state is CallState.COMPLETED, outcome.result.text
    return outcome.result.text


async def refused(root: Path, tool: Tool, **arguments: JsonValue) -> str:
    """Return the text that the model reads from a failed call."""
    outcome = await Bench(workspace=root).run(tool, arguments)
    assert outcome.state is CallState.FAILED, outcome.result.text
    return outcome.result.text


async def version(root: Path, path: str) -> str:
    found = re.search(r"version (\w+)\]", await told(root, read_file, path=path))
    assert found
    return found[1]
