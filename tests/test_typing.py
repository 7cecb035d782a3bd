"""mypy and pyright find the same mistakes, those of `typing/misuse.py`, and nothing else."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE

ROOT = Path(__file__).parent.parent
MISUSE = (ROOT / "tests" / "typing" / "misuse.py").read_text("utf-8").splitlines()
WRONG = {number for number, line in enumerate(MISUSE, 1) if "# type: ignore" in line}
PYRIGHT = shutil.which("basedpyright", path=str(Path(sys.executable).parent)) or shutil.which("basedpyright")


@pytest.fixture
def snippets(tmp_path: Path) -> Path:
    """The file without the comments that silence a checker."""
    file = tmp_path / "misuse.py"
    file.write_text("\n".join(re.sub(r"\s*# type: ignore.*", "", line) for line in MISUSE), "utf-8")
    return file


def test_there_are_twenty_mistakes_at_least() -> None:
    assert len(WRONG) >= 20


@pytest.mark.long
@pytest.mark.slow
def test_mypy_finds_each_mistake_and_nothing_else(snippets: Path) -> None:
    command = ["-m", "mypy", "--strict", "--config-file=", f"--cache-dir={ROOT / '.mypy_cache' / 'misuse'}"]
    lines = _run([sys.executable, *command, str(snippets)])
    found = {int(line.split(":")[1]) for line in lines.splitlines() if ": error: " in line}
    assert found == WRONG, lines


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.skipif(PYRIGHT is None, reason="there is no basedpyright")
def test_pyright_finds_each_mistake_and_nothing_else(snippets: Path) -> None:
    """`library.py`, whose comments stay, has no mistake, and each of its comments is needed."""
    shutil.copy(ROOT / "tests" / "typing" / "library.py", snippets.parent)
    config = {
        "include": ["misuse.py", "library.py"],
        "typeCheckingMode": "strict",
        "reportUnnecessaryTypeIgnoreComment": "error",
        "extraPaths": [str(ROOT / "src")],
    }
    (snippets.parent / "pyrightconfig.json").write_text(json.dumps(config))
    command = ["--outputjson", "--project", str(snippets.parent), "--pythonpath", sys.executable]
    report = _run([PYRIGHT or "", *command])
    problems = [one for one in json.loads(report)["generalDiagnostics"] if one["severity"] == "error"]
    found = {(Path(one["file"]).stem, one["range"]["start"]["line"] + 1) for one in problems}
    assert found == {("misuse", line) for line in WRONG}, report


def _run(command: list[str]) -> str:
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=PATIENCE * 4,
        check=False,
    )
    assert done.stdout.strip(), done.stderr
    return done.stdout
