"""B2 × S1: the program dies while a formatter runs, as people see it: from outside, with real processes."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dragoman.wire.scripted import calls, says
from tests.fork_server import KILL, python
from tests.loopback import Loopback, loopback
from tests.patience import eventually

pytestmark = pytest.mark.slow

# The first run writes half a file and hangs. Later runs work.
FORMATTER = """
import os, sys, time
from pathlib import Path
file, begun = Path(sys.argv[1]), Path("../begun")
text = file.read_text()
if not begun.exists():
    file.write_text(text[:3])
    begun.write_text(str(os.getpid()))
    time.sleep(600)
file.write_text(text.upper())
"""


def settle(folder: Path, model: Loopback) -> None:
    (folder / "work").mkdir()
    (folder / "format.py").write_text(FORMATTER)
    command = json.dumps([sys.executable, str(folder / "format.py"), "{file}"])
    (folder / "dragoman.toml").write_text(
        f"""
model = "stage/model"
store = "chat.db"
workspace = "work"
allow = ["files.write"]
[shell]
cage = "off"  # it leaves a mark outside of the workspace
[formatters.upper]
files = ["*.txt"]
command = {command}
timeout = 60
[providers.stage]
base_url = "{model.url}"
wire = "openai_chat"
"""
    )


@asynccontextmanager
async def program(folder: Path, *words: str) -> AsyncIterator[asyncio.subprocess.Process]:
    started = await asyncio.create_subprocess_exec(
        *python("-m", "dragoman", *words, "--config", str(folder / "dragoman.toml")),
        cwd=folder,
        env={**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        yield started
    finally:
        if started.returncode is None:
            started.kill()
        await started.communicate()


def alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return status != "Z"


def ended(store: Path) -> bool:
    """Return whether no turn runs any longer."""
    db = sqlite3.connect(f"{store.as_uri()}?mode=ro", uri=True)
    try:
        (live,) = db.execute("SELECT count(*) FROM turns WHERE live = 1").fetchone()
        return bool(live == 0)
    finally:
        db.close()


@pytest.mark.long
async def test_a_formatter_dies_with_the_program_and_the_turn_goes_on(tmp_path: Path) -> None:
    """No formatter runs on alone. The repeated call finds that its file changed meanwhile, and only a forced
    revert restores the file from before the turn (B2 × S1 × B3)."""
    written = calls("write_file", path="a.txt", text="all of it\n")
    async with loopback(written, says("I see.")) as model:
        settle(tmp_path, model)
        file, begun = tmp_path / "work" / "a.txt", tmp_path / "begun"
        async with program(tmp_path, "run", "go") as first:
            await eventually(lambda: begun.exists() and begun.read_text())
            first.send_signal(KILL)
            await first.wait()
        await eventually(lambda: not alive(int(begun.read_text())))
        assert file.read_text() == "all"
        async with program(tmp_path, "serve", "--port", "0", "--no-open"):
            await eventually(lambda: ended(tmp_path / "chat.db"))
        (result,) = [one["content"] for one in model.messages() if one["role"] == "tool"]
        assert "'a.txt' exists. Read it first" in result
        assert file.read_text() == "all"
        for force, status in (((), 1), (("--force",), 0)):  # another user could have changed it by now
            async with program(tmp_path, "revert", "last", "--files-only", *force) as back:
                output, _ = await back.communicate()
            assert back.returncode == status, output
        assert not file.exists()


async def test_what_the_formatter_made_is_told_over_the_wire(tmp_path: Path) -> None:
    """B2: `dragoman run` with a formatter that works."""
    async with loopback(calls("write_file", path="a.txt", text="all of it\n"), says("Done.")) as model:
        settle(tmp_path, model)
        (tmp_path / "begun").touch()
        async with program(tmp_path, "run", "go") as run:
            output, _ = await run.communicate()
        assert run.returncode == 0, output
        (result,) = [one["content"] for one in model.messages() if one["role"] == "tool"]
        assert "a.txt was formatted by upper" in result
        assert (tmp_path / "work" / "a.txt").read_text() == "ALL OF IT\n"
