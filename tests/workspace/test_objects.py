"""The file of a workspace's history stores bytes once, and returns what it was given (B1)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from dragoman.errors import StoreUnavailable
from dragoman.workspace.objects import SnapshotFile, Status
from dragoman.workspace.packs import add_pack, compress_together, drop_from_packs, next_batch
from dragoman.workspace.records import Records
from dragoman.workspace.states import FileChange, FileState, compose
from tests.workspace.folders import history_of, record

STATUS: Status = (1, 2, 3)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[SnapshotFile]:
    file = SnapshotFile(tmp_path / "snapshots" / "x.db", tmp_path / "work")
    yield file
    file.close()


def state(data: bytes | str) -> FileState:
    whole = data.encode() if isinstance(data, str) else data
    return FileState("file", 0o644, sha256(whole).hexdigest(), len(whole))


def test_bytes_are_stored_once_and_compressed_where_it_is_worth_it(file: SnapshotFile) -> None:
    random = b"".join(sha256(bytes([n])).digest() for n in range(4))
    for data, packed in ((b"", 0), (b"a" * 64, 0), (b"a" * 65, 1), (random, 0)):
        name = file.put(data)
        assert name == file.put(data) == sha256(data).hexdigest()
        assert file.db.execute("SELECT packed FROM objects WHERE hash = ?", (name,)).fetchall() == [(packed,)]
        assert (file.read_object(name), file.read(state(data))) == (data, data)
        assert file.read(FileState("folder", object=name)) is None
    assert file.read_object("none") is None


def test_facts_are_kept_and_dropped_by_name(file: SnapshotFile) -> None:
    assert (file.get("workspace"), file.get("none")) == (str(file.path.parent.parent / "work"), None)
    for key in ("rules of a", "rules of b", "rules", "other"):
        file.set(key, key)
    file.drop_all("rules of ", but=["b", "other"])
    file.drop("other")
    kept = [file.get(key) for key in ("rules of a", "rules of b", "rules", "other")]
    assert kept == [None, "rules of b", "rules", None]
    with pytest.raises(sqlite3.OperationalError), file.transaction():
        file.db.execute("UPDATE about SET value = 'changed'").execute("no SQL")
    assert file.get("rules") == "rules"


def test_what_is_known_of_a_path_is_that_of_the_folders_above_and_of_all_below(file: SnapshotFile) -> None:
    paths = ["a", "a/b", "a/b/c", "a/b/c/d", "a/b.c", "a/bc", "a/c", "a0", "b"]
    file.save_files((path, state(path), STATUS) for path in paths)
    assert [*file.load_files()] == [(path, state(path), STATUS) for path in sorted(paths)]
    for path, found in (
        ("a/b", paths[:4]),
        ("a/b/c", paths[:4]),
        ("a", paths[:7]),
        ("x/y", []),
        ("b", ["b"]),
    ):
        assert sorted(one for one, _, _ in file.load_files(path)) == sorted(found)
    file.forget_files(["a", "a0"])
    assert len([*file.load_files()]) == len(paths) - 2


def test_changes_have_positions(file: SnapshotFile) -> None:
    changes = [FileChange("a", None, state("1")), FileChange("a", state("1"), None)]
    assert file.position() == 0
    file.add_deltas(changes)
    assert file.position() == 2
    assert [*file.deltas(0)] == [(1, changes[0]), (2, changes[1])]
    assert [*file.deltas(1)] == [(2, changes[1])]
    records = Records(file)
    opened = records.open("conv", "turn", 1, 1.0)
    file.add_deltas([FileChange("b", None, state("2"))])
    file.drop_deltas()
    assert [position for position, _ in file.deltas(0)] == [3]  # which the open record needs
    opened.wide = 3
    assert [opened.covers(position, "x") for position in (3, 4)] == [False, True]
    opened.wide, opened.paths = None, {"a/b": 1}
    seen = [opened.covers(*one) for one in ((1, "a/b"), (2, "a/b"), (2, "a"), (2, "a/b/c"), (2, "a/"))]
    assert seen == [False, True, True, False, False]
    records.close(opened)
    file.drop_deltas()
    assert ([*file.deltas(0)], file.position()) == ([], 3)


def test_several_changes_of_a_path_are_one_and_those_that_cancel_out_are_none() -> None:
    one, two = state("1"), state("2")
    changes = [FileChange("b", None, one), FileChange("a", one, two), FileChange("b", one, two)]
    changes += [FileChange("c", one, two), FileChange("a", two, None), FileChange("c", two, one)]
    assert compose(changes) == [FileChange("a", one, None), FileChange("b", None, two)]


def test_a_pack_returns_every_object_and_loses_those_that_are_deleted(file: SnapshotFile) -> None:
    """A pack is not made if one of its objects was deleted meanwhile."""
    records = Records(file)
    texts = [b"one" * 50, b"two" * 60, b"three" * 70, b"x" * 1_000_001]
    opened = records.open("conv", "turn", 1, 1.0)
    opened.wide = 0
    file.add_deltas(FileChange(f"{n}", None, state(text)) for n, text in enumerate(texts))
    names = [file.put(text) for text in texts]
    records.close(opened)
    batch = next_batch(file)
    assert batch == [*zip(names[:3], texts[:3], strict=True)]  # the last is too long
    packed = compress_together(text for _, text in batch)
    assert not add_pack(file, [*batch, ("gone", b"x")], packed)
    assert add_pack(file, batch, packed)
    assert not add_pack(file, batch, packed)
    assert next_batch(file) == []
    statements = list[str]()
    file.db.set_trace_callback(statements.append)
    assert [file.read_object(name) for name in names] == texts
    assert sum("FROM packs" in one for one in statements) == 1  # and unpacked once
    file.db.execute("DELETE FROM objects WHERE hash = ?", (names[1],))
    drop_from_packs(file, [1])
    assert [file.read_object(name) for name in names] == [texts[0], None, *texts[2:]]
    assert file.db.execute("SELECT id FROM packs").fetchall() == [(2,)]
    assert file.sweep() == (0, frozenset())
    file.db.execute("DELETE FROM changes")
    assert file.sweep() == (3, frozenset({2}))
    drop_from_packs(file, [2])
    assert file.db.execute("SELECT count(*) FROM packs").fetchone() == (0,)


def test_a_pack_has_a_few_megabytes(file: SnapshotFile) -> None:
    """The rest is for the next one: reading one object reads its pack (B1)."""
    texts = [bytes([n]) * 900_000 for n in range(6)]
    records = Records(file)
    opened = records.open("conv", "turn", 1, 1.0)
    opened.wide = 0
    file.add_deltas(FileChange(f"{n}", None, state(text)) for n, text in enumerate(texts))
    names = [file.put(text) for text in texts]
    records.close(opened)
    assert [name for name, _ in next_batch(file)] == names[:5]


def test_a_record_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    """S4"""
    (root := tmp_path / "work").mkdir()
    history = history_of(root)
    record(history, lambda: (root / "a").write_text("x"))
    history.close()
    with closing(sqlite3.connect(history.file)) as db:
        db.execute("PRAGMA user_version = 3")
    with pytest.raises(StoreUnavailable, match="newer version"):
        history_of(root).of_path("a")
