"""What README and docs show is run, and what they link to is there."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

from dragoman.messages.events import Event
from tests.patience import PATIENCE

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
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", block],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_rule_has_a_test_that_names_it() -> None:
    """A rule that no test names is only a wish."""
    rules = re.findall(r"^\| ([A-Z]\d+) \|", (ROOT / "docs/rules.md").read_text("utf-8"), re.MULTILINE)
    assert len(rules) > 40
    here = Path(__file__)
    tests = "\n".join(file.read_text("utf-8") for file in (ROOT / "tests").rglob("*.py") if file != here)
    missing = [rule for rule in rules if not re.search(rf"\b{rule}\b", tests)]
    assert missing == []


def test_every_event_and_its_fields_are_documented() -> None:
    """E1"""
    text = (ROOT / "docs/events.md").read_text("utf-8")
    rows = {row.split("`")[1]: row for row in text.splitlines() if row.startswith("| `")}
    for event in get_args(Event):
        names = {field.name: field.default for field in fields(event)}
        row = rows[str(names["type"])]
        assert [name for name in names if name not in ("seq", "type") and f"`{name}`" not in row] == []
