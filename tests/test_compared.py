"""The ten programs of `docs/project/compared.md`, written with Dragoman, do what the page says."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
COMPARED = ROOT / "benchmarks" / "compared"
PROGRAMS = runpy.run_path(str(COMPARED / "expected.py"))["PROGRAMS"]
SERVE: Any = runpy.run_path(str(COMPARED / "loopback_model.py"))["serve"]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
async def test_a_program_answers_what_it_must(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    main = runpy.run_path(str(COMPARED / "with_dragoman" / f"{program.name}.py"))["main"]
    async with SERVE() as url:
        assert await main(url) == program.answer


def test_the_page_tells_of_every_program() -> None:
    page = (ROOT / "docs" / "project" / "compared.md").read_text("utf-8")
    assert [program.title for program in PROGRAMS if f"| {program.title} |" not in page] == []
