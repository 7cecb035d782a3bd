"""S2, S4: what the doctor finds in a store that nobody has opened meanwhile."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from dragoman.store.sqlite import SqliteStore
from dragoman.store.sqlite.checkup import check_store
from tests.store.conformance import scene

DAY = 24 * 3600.0


async def test_a_file_that_nothing_mentions_is_removed_only_when_it_is_asked_for(tmp_path: Path) -> None:
    """S4: and not one that came today, for which a message may still come."""
    path = tmp_path / "chat.db"
    store = SqliteStore(path)
    await store.open()
    unused, new = store._folder.path(await store.put_blob(b"unused")), await store.put_blob(b"new")
    await store.close()
    os.utime(unused, (time.time() - 2 * DAY, time.time() - 2 * DAY))
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {int(time.time() - 7 * DAY) // 60}")
    (found,) = check_store(path)
    assert (found.mended, found.harmless) == (False, True)
    assert unused.exists()
    (found,) = check_store(path, mend=True)
    assert found.mended
    assert not unused.exists()
    assert store._folder.path(new).exists()
    assert check_store(path) == []


@pytest.mark.parametrize(
    ("damage", "noun"),
    [
        ("UPDATE conversations SET settings = '{'", "conversation conv_1"),
        ("UPDATE conversations SET usage = '[]'", "conversation conv_1"),
        ("UPDATE messages SET body = '{' WHERE id = 'msg_1'", "message msg_1"),
        ("UPDATE questions SET body = '{'", "question "),
    ],
)
async def test_a_row_that_cannot_be_read_is_named(tmp_path: Path, damage: str, noun: str) -> None:
    """S1: with its conversation, and what can be done."""
    store = SqliteStore(tmp_path / "chat.db")
    await store.open()
    await scene.asked(store)
    await store.close()
    assert check_store(store.path) == []
    with closing(sqlite3.connect(store.path)) as db, db:
        db.execute(damage)
    assert [str(found) for found in check_store(store.path) if noun in str(found) and "conv_1" in str(found)]
