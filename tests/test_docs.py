"""Run the code in README and docs, and check that their links work."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tomllib
import warnings
from dataclasses import fields
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest

from dragoman.messages.events import Event
from tests.forks import FORKS
from tests.patience import PATIENCE
from tests.sweeps import WHOLE

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def _blocks() -> list[object]:
    return [
        pytest.param(block, id=f"{page.stem}-{number}")
        for page in PAGES
        for number, block in enumerate(
            re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL), 1
        )
    ]


@pytest.mark.slow
@pytest.mark.parametrize("block", _blocks())
def test_every_python_block_runs(block: str, tmp_path: Path) -> None:
    """Each block runs as a separate program. All but one in twenty are forked from a process that has
    imported Dragoman, and in a sweep each one imports what it needs."""
    alone = WHOLE or int(hashlib.sha256(block.encode()).hexdigest(), 16) % 20 == 0
    status, printed = (_run_alone if alone else _run_forked)(block, tmp_path)
    assert status == 0, printed


def _run_alone(block: str, folder: Path) -> tuple[int, str]:
    command = [sys.executable, "-W", "error", "-c", block]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False)
    return done.returncode, done.stderr


def _run_forked(block: str, folder: Path) -> tuple[int | None, str]:
    process = FORKS.Process(target=_become, args=(block, folder), daemon=True)
    process.start()
    process.join(PATIENCE)
    if process.exitcode is None:
        process.kill()
    return process.exitcode, (folder / "printed").read_text("utf-8")


def _become(block: str, folder: Path) -> None:
    """A program of which this is all the code."""
    os.chdir(folder)
    printed = os.open("printed", os.O_WRONLY | os.O_CREAT, 0o600)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    warnings.simplefilter("error")
    sys.modules["__main__"] = program = ModuleType("__main__")
    exec(compile(block, "<block>", "exec"), program.__dict__)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file_and_to_a_heading_in_it(page: Path) -> None:
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", page.read_text("utf-8")):
        file = page.parent / target if target else page
        assert file.exists(), f"{page.name} links to {target}"
        assert not anchor or anchor in _anchors(file), f"{page.name} links to {target}#{anchor}"


@cache
def _anchors(page: Path) -> set[str]:
    """The site and GitHub name headings alike: without what is neither letter, digit, space nor hyphen."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE)
    return {re.sub(r" ", "-", re.sub(r"[^\w -]", "", heading.lower())) for heading in headings}


def test_every_page_is_on_the_site() -> None:
    menu = re.findall(r": ([\w./-]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    assert {page for page in pages - {*menu} if not page.startswith("decisions/")} == set()
    assert len(menu) == len({*menu})


def test_every_command_extra_and_setting_is_on_a_page() -> None:
    """Readers can find everything that programs offer: no fact is only in the code."""
    from typer.main import get_command

    from dragoman.cli.main import app

    guide = "\n".join(page.read_text("utf-8") for page in (ROOT / "docs").rglob("*.md"))
    commands = get_command(app).commands  # type: ignore[attr-defined]
    assert [
        name
        for name in commands
        if not re.search(rf"`(?:dragoman )?[^`|]*\b{name}\b|dragoman {name}\b", guide)
    ] == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    readme = (ROOT / "README.md").read_text("utf-8")
    assert [name for name in project["optional-dependencies"] if f"`{name}`" not in readme] == []


def test_every_rule_has_a_test_that_names_it() -> None:
    """A rule that no test names is only a wish."""
    rules = re.findall(
        r"^\| ([A-Z]\d+) \|", (ROOT / "docs/reference/rules.md").read_text("utf-8"), re.MULTILINE
    )
    assert len(rules) > 40
    here = Path(__file__)
    tests = "\n".join(file.read_text("utf-8") for file in (ROOT / "tests").rglob("*.py") if file != here)
    assert set(rules) - {*re.findall(r"\b[A-Z]\d+\b", tests)} == set()


def test_every_event_and_its_fields_are_documented() -> None:
    """E1"""
    text = (ROOT / "docs/reference/events.md").read_text("utf-8")
    rows = {row.split("`")[1]: row for row in text.splitlines() if row.startswith("| `")}
    for event in get_args(Event):
        names = {field.name: field.default for field in fields(event)}
        row = rows[str(names["type"])]
        assert [name for name in names if name not in ("seq", "type") and f"`{name}`" not in row] == []
