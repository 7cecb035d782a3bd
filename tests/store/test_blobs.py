"""S4: bytes in files that are named after them; each is whole, or not there."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path

import pytest

from dragoman.conversation.tree import Conversation
from dragoman.errors import NotFound
from dragoman.messages.message import Message
from dragoman.messages.parts import File
from dragoman.store.blobs.folder import Blobs
from dragoman.store.sqlite.store import SqliteStore


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    return Blobs(tmp_path / "blobs")


def test_a_blob_is_named_after_what_is_in_it(blobs: Blobs) -> None:
    """S4"""
    for data in (b"", b"hello", b"\0" * 1_000_000):
        key = blobs.put(data)
        assert key == hashlib.sha256(data).hexdigest()
        assert blobs.get(key) == data


def test_the_same_bytes_are_stored_once(blobs: Blobs, tmp_path: Path) -> None:
    """S4"""
    key = blobs.put(b"hello")
    written = blobs.path(key).stat().st_ino
    assert blobs.put(b"hello") == key
    assert blobs.path(key).stat().st_ino == written
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [blobs.path(key)]


def test_many_may_store_the_same_bytes_at_once(blobs: Blobs, tmp_path: Path) -> None:
    """S4"""
    data, ready, failed = b"the same", threading.Barrier(8), []

    def put() -> None:
        ready.wait()
        try:
            blobs.put(data)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=put) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1


def test_a_blob_that_is_not_there_is_missed(blobs: Blobs) -> None:
    """S4"""
    with pytest.raises(NotFound, match="there is no blob '000"):
        blobs.get("0" * 64)


@pytest.mark.parametrize(
    "key", ["", "abc", "../../../etc/passwd", "0" * 63 + "g", "A" * 64, "0" * 65, "0" * 64 + "\n"]
)
def test_what_is_no_key_names_no_file(blobs: Blobs, key: str) -> None:
    """S4: whoever sends it."""
    with pytest.raises(NotFound, match="blob"):
        blobs.path(key)


def test_a_file_that_was_not_finished_is_no_blob(blobs: Blobs) -> None:
    """S4: what a crash leaves behind is written again."""
    key = blobs.put(b"whole")
    blobs.path(key).rename(blobs.path(key).with_suffix(".part_1"))
    with pytest.raises(NotFound):
        blobs.get(key)
    assert blobs.get(blobs.put(b"whole")) == b"whole"


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    """S4"""
    (tmp_path / "blobs").write_text("a file where the folder should be")
    with pytest.raises(OSError, match="blobs"):
        Blobs(tmp_path / "blobs").put(b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["blobs"]


async def test_files_go_with_the_last_conversation_that_mentions_them(tmp_path: Path) -> None:
    """S4: what another one mentions stays, and so does what came just now."""
    store = SqliteStore(tmp_path / "chat.db")
    await store.open()
    try:
        only, shared, new = [await store.put_blob(data) for data in (b"only", b"shared", b"new")]
        for key in (only, shared):
            file = tmp_path / "chat.db.files" / "blobs" / key[:2] / key[2:]
            os.utime(file, (1, 1))
        for id, keys in (("conv_1", (only, shared, new)), ("conv_2", (shared,))):
            parts = tuple(File("text/plain", blob=key) for key in keys)
            message = Message(f"msg_{id}", id, None, "user", parts)
            await store.add_conversation(Conversation(id, leaf=message.id), [message])
        await store.delete_conversation("conv_1")
        assert (await store.blob(shared), await store.blob(new)) == (b"shared", b"new")
        with pytest.raises(NotFound):
            await store.blob(only)
    finally:
        await store.close()
