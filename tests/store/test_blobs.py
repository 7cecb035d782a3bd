"""Bytes are in files named after their hash, and each file is complete or missing (S4)."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from dragoman.conversation.tree import Conversation
from dragoman.errors import ConfigError, NotFound, StoreUnavailable, Unreadable
from dragoman.messages.message import File, Message
from dragoman.store.blobs.blobs import Blobs, CachedBlobs, key_of
from dragoman.store.blobs.folder import FolderBlobs
from dragoman.store.sqlite import SqliteStore
from tests.patience import eventually
from tests.store.conformance import BlobConformance
from tests.store.conformance.blobs import arriving


class TestFolder(BlobConformance):
    async def make(self, folder: Path) -> Blobs:
        return FolderBlobs(folder / "blobs")

    async def alter(self, folder: Path, key: str) -> None:
        FolderBlobs(folder / "blobs").path(key).write_bytes(b"as it is")


class TestCached(TestFolder):
    async def make(self, folder: Path) -> Blobs:
        return CachedBlobs(FolderBlobs(folder / "blobs"))


@pytest.fixture
def blobs(tmp_path: Path) -> FolderBlobs:
    return FolderBlobs(tmp_path / "blobs")


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def open_at(file: Path) -> list[str]:
    """The descriptors of this process that have it open."""
    found = []
    for descriptor in Path("/dev/fd").iterdir():
        with suppress(OSError):
            if os.path.samestat(os.fstat(int(descriptor.name)), file.stat()):
                found.append(descriptor.name)
    return found


async def test_the_same_bytes_are_stored_once(blobs: FolderBlobs, tmp_path: Path) -> None:
    """S4"""
    key = await blobs.put(b"hello")
    written = blobs.path(key).stat().st_ino
    assert await blobs.put(b"hello") == key
    assert blobs.path(key).stat().st_ino == written
    assert files_in(tmp_path) == [blobs.path(key)]
    neighbour = next(data for n in count() if key_of(data := str(n).encode())[:2] == key[:2])
    assert blobs.path(await blobs.put(neighbour)).parent == blobs.path(key).parent


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a file that takes its time to open needs mkfifo")
async def test_what_is_opened_for_nobody_any_more_is_closed(blobs: FolderBlobs) -> None:
    """A caller that opens a file in a thread cannot stop that thread (S4 × T6)."""
    slow = blobs.path("0" * 64)
    slow.parent.mkdir(parents=True)
    os.mkfifo(slow)
    before = asyncio.all_tasks()
    reading = asyncio.ensure_future(anext(aiter(blobs.pieces("0" * 64))))
    await asyncio.sleep(0)  # the thread has started, and waits for a writer
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    writing = await asyncio.to_thread(os.open, slow, os.O_WRONLY)
    await eventually(lambda: asyncio.all_tasks() <= before)  # the thread has it open by now, and said so
    os.close(writing)
    await eventually(lambda: not open_at(slow))


@pytest.mark.parametrize(
    "key", ["", "abc", "../../../etc/passwd", "0" * 63 + "g", "A" * 64, "0" * 65, "0" * 64 + "\n"]
)
def test_what_is_no_key_names_no_file(blobs: FolderBlobs, key: str) -> None:
    """An invalid key from any source names no file (S4)."""
    with pytest.raises(NotFound, match="blob"):
        blobs.path(key)


async def test_a_file_that_was_not_finished_is_no_blob(blobs: FolderBlobs) -> None:
    """A put overwrites the incomplete file that a crash left (S4)."""
    key = await blobs.put(b"whole")
    blobs.path(key).rename(blobs.path(key).with_suffix(".part_1"))
    with pytest.raises(NotFound):
        await blobs.read(key)
    listed = blobs.keys()
    assert [key async for key in listed] == []
    assert await blobs.read(await blobs.put(b"whole")) == b"whole"


async def test_a_write_that_fails_leaves_nothing_and_says_what_to_do(tmp_path: Path) -> None:
    """S4"""
    (tmp_path / "blobs").write_text("a file where the folder should be")
    folder = FolderBlobs(tmp_path / "blobs")
    for put in (folder.put(b"x"), folder.put_pieces(arriving(b"x"))):
        with pytest.raises(StoreUnavailable, match=r"Cannot store.*has room"):
            await put
    with pytest.raises(ConfigError, match=r"Cannot use .* for attachments"):
        await folder.claim("store-1")
    assert files_in(tmp_path) == [tmp_path / "blobs"]
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    named = FolderBlobs(tmp_path / "link")
    await named.claim("store-1")
    with pytest.raises(StoreUnavailable, match="Cannot store an attachment: File exists"):
        await named.put(b"x")


async def test_a_file_that_cannot_be_read_says_why(blobs: FolderBlobs) -> None:
    """S4"""
    key = key_of(b"x")
    blobs.path(key).mkdir(parents=True)
    with pytest.raises(StoreUnavailable, match=f"Cannot read blob {key}.*Is a directory"):
        await blobs.read(key)


async def test_the_cache_holds_what_was_used_last_and_no_more(blobs: FolderBlobs) -> None:
    """The cache answers without the disk (S4)."""
    cached = CachedBlobs(blobs, room=10)
    first, second, large = [await cached.put(data) for data in (b"12345", b"67890", b"x" * 11)]
    for key in (first, second, large):
        blobs.path(key).unlink()
    with pytest.raises(NotFound):
        await cached.read(large)
    cached = CachedBlobs(blobs, room=10)
    first, second = [await cached.put(data) for data in (b"12345", b"67890")]
    await cached.read(first)
    third = await cached.put(b"abcde")
    for key in (first, second, third):
        blobs.path(key).unlink()
    assert (await cached.read(first), await cached.read(third)) == (b"12345", b"abcde")
    with pytest.raises(NotFound):
        await cached.read(second)


async def test_an_attachment_that_was_altered_is_not_given_out(tmp_path: Path) -> None:
    """Dragoman never returns other bytes than those that were attached (S4)."""
    store = SqliteStore(tmp_path / "chat.db")
    await store.open()
    key = await store.put_blob(b"as it was")
    await store.close()
    FolderBlobs(tmp_path / "chat.db.files" / "blobs").path(key).write_bytes(b"as it is")
    await store.open()
    try:
        store._blobs = CachedBlobs(store._folder)  # as in another process
        with pytest.raises(Unreadable, match=f"cannot read blob {key}"):
            await store.blob(key)
    finally:
        await store.close()


# ── with the conversations that mention them ──────────────────────────────────────────────────────


async def add(store: SqliteStore, id: str, *keys: str) -> None:
    parts = tuple(File("text/plain", blob=key) for key in keys)
    message = Message(f"msg_{id}", id, None, "user", parts)
    await store.add_conversation(Conversation(id, leaf=message.id), [message])


def grow_old(store: SqliteStore, *keys: str) -> None:
    for key in keys:
        os.utime(store._folder.path(key), (1, 1))


async def test_files_go_with_the_last_conversation_that_mentions_them(tmp_path: Path) -> None:
    """Files that another conversation mentions stay, and so do recent ones (S4)."""
    store = SqliteStore(tmp_path / "chat.db")
    await store.open()
    try:
        only, shared, new = [await store.put_blob(data) for data in (b"only", b"shared", b"new")]
        await add(store, "conv_1", only, shared, new)
        await add(store, "conv_2", shared)
        await store.close()
        grow_old(store, only, shared)  # while no sweep runs
        await store.open()
        await store.delete_conversation("conv_1")
        assert (await store.blob(shared), await store.blob(new)) == (b"shared", b"new")
        with pytest.raises(NotFound):
            await store.blob(only)
        await store.delete_conversation("conv_2")
        with pytest.raises(NotFound):
            await store.blob(shared)
    finally:
        await store.close()


async def test_a_file_that_came_just_now_goes_later(tmp_path: Path) -> None:
    """Opening a store removes the file, unless a message mentions it again (S4)."""
    store = SqliteStore(tmp_path / "chat.db")
    await store.open()
    gone, wanted = await store.put_blob(b"gone"), await store.put_blob(b"wanted")
    await add(store, "conv_1", gone, wanted)
    await store.delete_conversation("conv_1")
    await add(store, "conv_2", wanted)
    grow_old(store, gone, wanted)
    await store.close()
    await store.open()
    try:
        await store._finish_deletions()
        assert files_in(tmp_path / "chat.db.files" / "blobs") == [store._folder.path(wanted)]
        assert await store._all("unwanted_blobs") == []
    finally:
        await store.close()
