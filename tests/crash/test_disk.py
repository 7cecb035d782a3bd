"""S2, S3, T8: a disk that is full, locked or read-only for a while: turns wait, try again, and end."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path

import pytest

from dragoman import Runtime, ScriptedModel, tool
from dragoman.errors import NotFound, StoreUnavailable, Unreadable
from dragoman.messages.request import Request
from dragoman.store.sqlite import SqliteStore
from dragoman.wire.scripted import Line, calls, says
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path]:
    """A separate small file system, if the machine allows creating one."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


class Scene:
    """A runtime whose turn is in a tool, until the fault is there."""

    def __init__(self, path: Path) -> None:
        self.entered, self.go_on = asyncio.Event(), asyncio.Event()
        self.output = "short"

        @tool(replay="safe")
        async def work() -> str:
            """Work."""
            self.entered.set()
            await self.go_on.wait()
            return self.output

        self.store = SqliteStore(path, busy_timeout=0.2)
        self.runtime = Runtime(self.store, model=ScriptedModel(_script), tools=[work], allow=["*"])

    @asynccontextmanager
    async def in_tool(self) -> AsyncIterator[str]:
        async with self.runtime:
            turn = await self.runtime.send("work")
            await asyncio.wait_for(self.entered.wait(), PATIENCE)
            yield turn.id

    async def broke_off(self, turn: str) -> None:
        """Check that the fault occurred: the turn has not ended, and if it is retryable, no caller sees a
        failure (N4)."""
        waiting = asyncio.create_task(self.runtime.turn(turn).result())
        await asyncio.wait({waiting}, timeout=2.0)
        if waiting.done():
            assert isinstance(waiting.exception(), StoreUnavailable)
        waiting.cancel()

    async def goes_on(self, turn: str) -> None:
        """That one ends, new ones begin and end, and the watch, the writer and the upkeep still work."""
        async with asyncio.timeout(PATIENCE):
            await self._ended(turn)
            assert (await (await self.runtime.send("hello")).result()).text == "done"
            path = self.store.path
            async with Scene(path).runtime as other:  # sees requests of another process
                again = await other.conversation((await other.store.turn(turn)).conversation)
                assert (await (await again.send("hello")).result()).text == "done"
        with closing(sqlite3.connect(self.store.path)) as db:
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            assert db.execute("PRAGMA foreign_key_check").fetchall() == []
            assert db.execute("SELECT count(*) FROM turns WHERE live = 1").fetchone() == (0,)

    async def _ended(self, turn: str) -> None:
        while (row := await self.store.turn(turn)).live:  # noqa: ASYNC110 - the driver moves it
            await asyncio.sleep(0.05)
        assert row.state == "completed"


def _script(request: Request) -> Line:
    return calls("work") if len(request.messages) == 1 and "work" in str(request.messages) else says("done")


async def test_a_turn_outlives_a_disk_that_is_full_for_a_while(tmp_path: Path) -> None:
    """The turn fails where a write is impossible, and resumes when there is space (S3)."""
    with small_disk(tmp_path / "disk", megabytes=4) as disk:
        scene = Scene(disk / "chat.db")
        async with scene.in_tool() as turn:
            filler = _fill(disk)
            scene.output = "x" * 40_000
            scene.go_on.set()
            await scene.broke_off(turn)
            with pytest.raises(StoreUnavailable, match=r"free some space|has room"):
                await scene.runtime.send("y" * 200_000)
            filler.unlink()
            await scene.goes_on(turn)


def _fill(disk: Path) -> Path:
    """Leave no room for a write, not even in a log that a checkpoint emptied."""
    with closing(sqlite3.connect(disk / "chat.db")) as db:
        while db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            pass  # a write is under way
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4096)
        except OSError:
            return filler


@pytest.mark.long
async def test_a_turn_outlives_a_store_that_is_locked_for_longer_than_anybody_waits(tmp_path: Path) -> None:
    """S3: the watch fails again and again meanwhile, and lives."""
    scene = Scene(tmp_path / "chat.db")
    async with scene.in_tool() as turn:
        with closing(sqlite3.connect(tmp_path / "chat.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            scene.go_on.set()
            await scene.broke_off(turn)
            await asyncio.sleep(12)  # the subject of this test: several scans of the watcher, each refused
            other.execute("ROLLBACK")
        await scene.goes_on(turn)


@pytest.mark.long
async def test_a_turn_outlives_a_store_that_is_read_only_for_a_while(tmp_path: Path) -> None:
    """S3: as after an error of the disk, when the system allows no more writes."""
    scene = Scene(tmp_path / "chat.db")
    async with scene.in_tool() as turn:
        await scene.store._writer.submit(lambda db: db.execute("PRAGMA query_only = ON"))
        scene.go_on.set()
        await scene.broke_off(turn)
        with pytest.raises(StoreUnavailable, match="right to write"):
            await scene.runtime.send("hello")
        with pytest.raises(StoreUnavailable):
            await scene.store._writer.submit(lambda db: db.execute("DELETE FROM people"))
        writer = scene.store._writer
        writer._connection.execute("PRAGMA query_only = OFF")
        await scene.goes_on(turn)


@pytest.mark.skipif(os.name == "nt", reason="files are unlinked while they are open")
async def test_an_attachment_that_is_gone_or_altered_says_what_to_do(tmp_path: Path) -> None:
    """The rest of the conversation stays readable (S4)."""
    scene = Scene(tmp_path / "chat.db")
    async with scene.runtime:
        key = await scene.store.put_blob(b"as it was")
    async with Scene(tmp_path / "chat.db").runtime as again:
        store = again.store
        assert isinstance(store, SqliteStore)
        file = store._folder.path(key)
        file.write_bytes(b"altered")
        with pytest.raises(Unreadable, match="restore it from a copy"):
            await store.blob(key)
        file.unlink()
        with pytest.raises(NotFound, match="Restore its file from a copy"):
            await store.blob(key)
