"""The doctor checks a store that no process has opened meanwhile (S2, S4)."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dragoman.store.sqlite import SqliteStore
from dragoman.store.sqlite.checkup import check_store
from tests.store.conformance import scene


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
    """The report names its conversation and the remedy (S1)."""
    store = SqliteStore(tmp_path / "chat.db")
    await store.open()
    await scene.asked(store)
    await store.close()
    assert check_store(store.path) == []
    with closing(sqlite3.connect(store.path)) as db, db:
        db.execute(damage)
    assert [str(found) for found in check_store(store.path) if noun in str(found) and "conv_1" in str(found)]
