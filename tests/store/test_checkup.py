"""The doctor checks a store that no process has opened meanwhile (S2, S4)."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from dragoman.conversation.tree import Conversation
from dragoman.messages.message import File
from dragoman.store.blobs.blobs import key_of
from dragoman.store.blobs.folder import FolderBlobs
from dragoman.store.sqlite import SqliteStore
from dragoman.store.sqlite.checkup import Defect, check_store
from tests.store.conformance import scene

DAY = 24 * 3600.0
KEY = key_of(b"a picture")
REPAIR = "dragoman doctor --repair"
RECOVER = "restore it from a copy, or save what can be saved with `sqlite3 FILE .recover`"


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """A store with a call that needs approval and a message with an attachment. Its file."""
    store = SqliteStore(tmp_path / "chat.db")
    await store.open()
    await store.put_blob(b"a picture")
    await scene.asked(store)
    await store.start(scene.start(2, parent="msg_r1", queue=True))
    shown = scene.user("msg_9", None, "conv_2", parts=(File("image/png", blob=KEY),))
    await store.add_conversation(Conversation("conv_2"), [shown])
    await store.close()
    assert check_store(store.path) == []
    return store.path


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        for statement in statements:
            db.execute(statement)


@pytest.mark.parametrize(
    ("damage", "noun"),
    [
        ("UPDATE conversations SET settings = '{' WHERE id = 'conv_1'", "conversation conv_1"),
        ("UPDATE conversations SET usage = '[]' WHERE id = 'conv_1'", "conversation conv_1"),
        ("UPDATE messages SET body = '{' WHERE id = 'msg_1'", "message msg_1"),
        ("UPDATE questions SET body = '{'", "question ask_1"),
        ("UPDATE calls SET body = '{'", "call call_1"),
        ("UPDATE queue SET body = '{'", "queued turn turn_2"),
        ("UPDATE facts SET body = '{' WHERE seq = 2", "fact of turn turn_1"),
    ],
)
def test_a_row_that_cannot_be_read_is_named(path: Path, damage: str, noun: str) -> None:
    """The report names its conversation and the remedy (S1)."""
    change(path, damage)
    remedy = "dragoman export conv_1 --format raw -o conv_1.json, then: dragoman rm conv_1"
    assert check_store(path, repair=True) == [Defect(f"{noun} of conv_1 cannot be read", remedy)]


def test_of_many_rows_that_cannot_be_read_some_are_named(path: Path) -> None:
    """S1"""
    rows = "SELECT ?, conversation, turn, call, 0, '{' FROM questions WHERE id = 'ask_1'"
    with closing(sqlite3.connect(path)) as db, db:
        db.executemany(f"INSERT INTO questions {rows}", [(f"ask_{n}",) for n in range(2, 30)])
    assert len(check_store(path)) == 20


def test_rows_without_their_parent_are_removed_only_if_nothing_can_reach_them(path: Path) -> None:
    """A repair keeps messages, since they may be rescued (S2)."""
    change(path, "DELETE FROM turns", "UPDATE messages SET parent = 'msg_x' WHERE parent = 'msg_1'")
    lost = Defect("1 of the table messages belong to messages that are not there", RECOVER)
    found = check_store(path)
    leftovers = {one.text.split()[4]: one for one in found if one != lost}
    assert found.count(lost) == 1
    assert leftovers.keys() == {"facts", "questions", "queue"}
    assert {(one.hint, one.repaired, one.harmless) for one in leftovers.values()} == {
        (f"{REPAIR} removes them: nothing can reach them", False, True)
    }
    assert len(check_store(path)) == 4
    assert {*check_store(path, repair=True)} == {
        lost,
        *(Defect(one.text, "", repaired=True) for one in leftovers.values()),
    }
    assert check_store(path, repair=True) == [lost]


def test_a_missing_index_is_made_again(path: Path) -> None:
    """S2"""
    change(path, "DROP INDEX messages_by_parent")
    missing = "the index messages_by_parent is missing"
    assert check_store(path) == [Defect(missing, REPAIR)]
    assert check_store(path, repair=True) == [Defect(missing, REPAIR, repaired=True)]
    assert check_store(path) == []


def overwrite(path: Path, name: str, content: bytes) -> None:
    """Damage the first page of a table or an index."""
    with closing(sqlite3.connect(path)) as db:
        (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(content)


def test_a_damaged_index_is_made_again_and_a_damaged_table_is_left_alone(path: Path) -> None:
    """S2: a repair of a table could only lose more."""
    overwrite(path, "turns_of_message", bytes([10, 0, 0, 0, 0, 16, 0, 0]))  # an index without entries
    (found, *_) = check_store(path)
    assert (found.text[:21], found.hint, found.repaired) == ("the file is damaged: ", REPAIR, False)
    assert "index turns_of_message" in found.text
    problem = found.text.partition(": ")[2]
    assert check_store(path, repair=True) == [Defect(f"an index was damaged: {problem}", "", repaired=True)]
    assert check_store(path) == []
    overwrite(path, "facts", b"\xff" * 4096)
    before = path.read_bytes()
    found = check_store(path, repair=True)[0]
    assert (found.text[:21], found.hint, found.repaired) == ("the file is damaged: ", RECOVER, False)
    assert path.read_bytes() == before


def test_a_lost_attachment_is_named_unless_another_place_has_it(path: Path) -> None:
    """S4"""
    file = FolderBlobs(path.with_name("chat.db.files") / "blobs").path(KEY)
    file.unlink()
    (lost,) = check_store(path, repair=True)
    assert lost.text.startswith(f"an attachment or output of conv_2: Unknown blob '{KEY}'")
    assert lost.hint.startswith("restore that file")
    assert not lost.harmless
    assert check_store(path, other_blobs={KEY}) == []


def test_old_files_that_nothing_mentions_are_counted_and_left(path: Path) -> None:
    """Another database may mention those that are older than this one (S4)."""
    folder = path.with_name("chat.db.files") / "blobs" / KEY[:2]
    old, new = folder / ("d" * 62), folder / ("e" * 62)
    for file, age in ((old, 9), (new, 5), (folder / KEY[2:], 9)):
        file.write_bytes(b"x" * 2**20 if file != folder / KEY[2:] else b"a picture")
        os.utime(file, (time.time() - age * DAY,) * 2)
    change(path, f"PRAGMA user_version = {int(time.time() - 7 * DAY) // 60}")
    (unused,) = check_store(path, repair=True)
    assert unused.text == "1 files (1.0 MiB) that nothing mentions, older than this database"
    assert unused.harmless
    assert old.exists()
    (folder / ("f" * 62)).touch()
    change(path, "PRAGMA user_version = 0")  # as an older version left it: a day of grace
    assert check_store(path)[0].text.startswith("2 files (2.0 MiB)")
