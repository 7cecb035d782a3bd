"""N1: a store whose attachments are at a place that a person named, whichever engine and place."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dragoman import Runtime, ScriptedModel, tool
from dragoman.conversation.tree import Conversation
from dragoman.errors import ConfigError, NotFound, StoreUnavailable
from dragoman.messages.message import File, Message
from dragoman.parameters import store_at
from dragoman.store.address import StoreAddress, StoreFile, StoreServer
from dragoman.store.blobs.blobs import Blobs, FallbackBlobs, key_of
from dragoman.store.blobs.folder import FolderBlobs
from dragoman.store.blobs.objects import ObjectBlobs
from dragoman.store.blobs.place import check_place, named_blobs, shown_place
from dragoman.store.postgres import PostgresStore
from dragoman.store.postgres.store import TableBlobs
from dragoman.store.sql.deletion import SqlRetention
from dragoman.store.store import Store
from dragoman.wire.scripted import calls, says
from tests.cli.program import program
from tests.postgres import Server, schema_of
from tests.server.site import serving
from tests.store.conformance import BlobConformance
from tests.store.object_server import BUCKET, ObjectServer, refuses

pytestmark = pytest.mark.slow

UPLOAD = {"content-type": "application/octet-stream"}
DAY = 24 * 3600.0
URL = f"s3://{BUCKET}/chat"


class TestNamedFolder(BlobConformance):
    async def make(self, folder: Path) -> Blobs:
        blobs = named_blobs((folder / "new" / "a b").as_uri(), own="database")
        assert isinstance(blobs, FolderBlobs)
        await blobs.claim("store-1")
        return blobs

    async def alter(self, folder: Path, key: str) -> None:
        FolderBlobs(folder / "new" / "a b").path(key).write_bytes(b"as it is")


class TestFallback(BlobConformance):
    @pytest.fixture(autouse=True)
    def _at(self, s3: ObjectServer) -> None:
        self.server = s3

    async def make(self, folder: Path) -> Blobs:
        objects = ObjectBlobs(URL)
        await objects.claim("store-1")
        return FallbackBlobs(objects, FolderBlobs(folder / "before"))

    async def alter(self, folder: Path, key: str) -> None:
        for name in self.server.copies(key):
            self.server.objects[name].data = b"as it is"


class TestTable(BlobConformance):
    @pytest.fixture(autouse=True)
    async def _served(self, postgres: Server) -> AsyncIterator[None]:
        self.server, self.stores = postgres, list[PostgresStore]()
        yield
        for store in self.stores:
            await store.close()

    async def make(self, folder: Path) -> Blobs:
        store = PostgresStore(self.server.url(schema_of(folder)), connections=2)
        await store.open()
        self.stores.append(store)
        return TableBlobs(store._run, store._all)  # without the cache

    async def alter(self, folder: Path, key: str) -> None:
        store = self.stores[0]
        await store._write(
            lambda db: db.execute(
                "UPDATE blobs SET data = :data WHERE key = :key", {"data": b"x", "key": key}
            )
        )


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> StoreAddress:
    if request.param == "sqlite":
        return StoreFile(tmp_path / "chat.db", blobs=URL)
    server: Server = request.getfixturevalue("postgres")
    return StoreServer(server.url(schema_of(tmp_path)), blobs=URL)


@asynccontextmanager
async def opened(address: StoreAddress) -> AsyncIterator[Store]:
    store = store_at(address)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def mention(store: Store, id: str, *keys: str) -> None:
    parts = tuple(File("text/plain", blob=key) for key in keys)
    message = Message(f"msg_{id}", id, None, "user", parts)
    await store.add_conversation(Conversation(id, leaf=message.id), [message])


def before(address: StoreAddress) -> StoreAddress:
    """Return the address as it was before it named a blob location."""
    return type(address)(address.url) if isinstance(address, StoreServer) else StoreFile(address.path)


async def test_attachments_go_there_and_what_was_stored_before_is_still_read(
    address: StoreAddress, s3: ObjectServer
) -> None:
    """The setting changes, and existing blobs need not move (N1, S4)."""
    async with opened(before(address)) as store:
        old = await store.put_blob(b"from before")
    async with opened(address) as store:
        new = await store.put_blob(b"new")
        assert await store.blob(old) == b"from before"
    assert [bool(s3.copies(key)) for key in (old, new)] == [False, True]
    async with opened(address) as store:
        assert b"".join([piece async for piece in store.blob_pieces(old, 5)]) == b"before"
        assert (await store.blob(old), await store.blob(new)) == (b"from before", b"new")
        with pytest.raises(NotFound, match="bucket"):
            await store.blob(key_of(b"never"))
    async with opened(before(address)) as store:
        with pytest.raises(NotFound):
            await store.blob(new)


async def test_what_nothing_mentions_is_swept_there_too(address: StoreAddress, s3: ObjectServer) -> None:
    """Mentioned and recent blobs stay (N1, S4)."""
    async with opened(address) as store:
        unused, used = await store.put_blob(b"unused"), await store.put_blob(b"used")
        await mention(store, "conv_1", used)
    s3.grow_old(2 * DAY)  # while no sweep runs
    async with opened(address) as store:
        new = await store.put_blob(b"just now")
        assert isinstance(store, SqlRetention)
        await store._finish_deletions()
        assert s3.copies(unused), "it is older than the database: it may be another one's"
        older = "UPDATE schema_version SET applied = '2001-01-01'"
        await store._write(
            lambda db: db.execute("PRAGMA user_version = 1" if isinstance(address, StoreFile) else older)
        )
        await store._finish_deletions()
        assert [bool(s3.copies(key)) for key in (unused, used, new)] == [False, True, True]


async def test_a_conversation_is_deleted_also_while_the_place_is_out_of_reach(
    address: StoreAddress, s3: ObjectServer
) -> None:
    """Dragoman removes its files later (N1, S4)."""
    async with opened(address) as store:
        key = await store.put_blob(b"goes with it")
        await mention(store, "conv_1", key)
        s3.grow_old(2 * DAY)
        s3.refused = "AccessDenied"
        await store.delete_conversation("conv_1")
        assert await store.conversations() == []
        assert s3.copies(key)
        s3.refused = None
        assert isinstance(store, SqlRetention)
        await store._finish_deletions()
        assert not s3.copies(key)


async def test_another_store_does_not_take_the_place(
    address: StoreAddress, s3: ObjectServer, tmp_path: Path
) -> None:
    """Each store would sweep the other's blobs. A copy of the store file is the same store (N1)."""
    other = StoreFile(tmp_path / "other.db", blobs=URL)
    async with opened(other):
        pass  # opening without a write leaves the location free
    async with opened(address) as store:
        await store.put_blob(b"first")
    with pytest.raises(ConfigError, match=r"another store.*separate prefix"):
        async with opened(other):
            raise AssertionError
    async with opened(address) as store:
        assert await store.blob(key_of(b"first")) == b"first"


async def test_a_server_answers_503_and_says_why_without_any_secret(tmp_path: Path, s3: ObjectServer) -> None:
    """An upload that cannot be stored is not reported as a bug in Dragoman (N1)."""
    address = StoreFile(tmp_path / "chat.db", blobs=URL)
    async with (
        Runtime(address, model=ScriptedModel([says("x")])) as runtime,
        serving(tmp_path, runtime) as site,
    ):
        s3.refused = "AccessDenied"
        refused = await site.ask("POST", "/api/files", b"hello", headers=UPLOAD)
        assert (refused.status, refused.headers["retry-after"]) == (503, "30")
        assert "does not let us in (AccessDenied)" in refused.body["detail"]
        s3.refused = None
        s3.fail("PUT", *[refuses(503, "SlowDown")] * 5)
        refused = await site.ask("POST", "/api/files", b"hello", headers=UPLOAD)
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        s3.faults.clear()
        stored = await site.ask("POST", "/api/files", b"hello", headers=UPLOAD)
        assert stored.status == 201
        got = await site.ask("GET", f"/api/files/{stored.body['blob']}")
        assert (got.status, got.body) == (200, b"hello")


async def test_a_call_that_did_its_work_keeps_what_the_model_is_shown_of_its_result(
    tmp_path: Path, s3: ObjectServer, caplog: pytest.LogCaptureFixture
) -> None:
    """The store cannot keep the long output, and the call is neither lost nor repeated (N1, S4, C9)."""
    ran: list[str] = []

    @tool
    def count() -> str:
        """Count."""
        ran.append("once")
        return "\n".join(map(str, range(100_000)))

    address = StoreFile(tmp_path / "chat.db", blobs=URL)
    script = [calls("count"), says("done")]
    async with Runtime(address, model=ScriptedModel(script), tools=[count], allow=["*"]) as runtime:
        s3.refused = "AccessDenied"
        turn = await runtime.send("count")
        assert (await turn.result()).text == "done"
        (call,) = [call for message in (await turn.snapshot()).messages for call in message.calls]
    assert (call.state, ran) == ("completed", ["once"])
    assert call.result is not None
    assert call.result.text.startswith("0\n1\n")
    assert call.result.text.endswith(
        "99999\n[The whole output could not be stored: read_output has no more of it than this.]"
    )
    assert "AccessDenied" in caplog.text


# ── what a person may name ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("ftp://host/x", "Invalid place for attachments"),
        ("s3://", "names no bucket"),
        ("s3:///prefix", "names no bucket"),
        ("s3://AKIA:secret@bucket/x", "credentials.*environment"),
        ("s3://bucket/x?secret=hidden", "credentials.*environment"),
        ("file://relative/x", "absolute path"),
        ("file:///", "absolute path"),
        ("Folder", "Invalid place for attachments"),
        ("memory:", "Invalid place for attachments"),
        ("s3://[bucket/x", "not a valid address"),
    ],
)
def test_what_is_no_place_is_refused_without_its_secrets(place: str, words: str) -> None:
    """N1"""
    with pytest.raises(ConfigError, match=words) as caught:
        check_place(place)
    assert "secret" not in str(caught.value)
    assert "hidden" not in str(caught.value)
    assert "secret" not in shown_place(place)


def test_a_place_has_to_fit_the_database(tmp_path: Path) -> None:
    """N1"""
    with pytest.raises(ConfigError, match="in its folder, or at an address"):
        StoreFile(tmp_path / "chat.db", blobs="database")
    with pytest.raises(ConfigError, match="file:///folder"):
        StoreServer("postgresql://host/x", blobs="folder")
    assert StoreFile(tmp_path / "chat.db", blobs="folder").shown_blobs == f"{tmp_path}/chat.db.files/blobs"
    assert StoreServer("postgresql://host/x", blobs="database").shown_blobs == "in the database"


@pytest.mark.parametrize("place", ["gs://bucket/a/b", "az://container/a"])
async def test_other_clouds_say_what_they_miss(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """N1: the same code, with another builder behind it."""
    for name in [name for name in os.environ if name.startswith(("AZURE", "GOOGLE"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", "/no/such/file")
    blobs = named_blobs(place, own="folder")
    assert isinstance(blobs, ObjectBlobs)
    with pytest.raises(StoreUnavailable, match=place):
        await blobs.read(key_of(b"x"))


async def test_a_folder_that_another_store_uses_is_refused(tmp_path: Path) -> None:
    """N1"""
    place = (tmp_path / "shared").as_uri()
    async with opened(StoreFile(tmp_path / "one.db", blobs=place)) as store:
        await store.put_blob(b"first")
    with pytest.raises(ConfigError, match="another store"):
        async with opened(StoreFile(tmp_path / "two.db", blobs=place)):
            raise AssertionError
    (tmp_path / "one.db").rename(tmp_path / "moved.db")  # it is the same one wherever it is
    async with opened(StoreFile(tmp_path / "moved.db", blobs=place)) as store:
        assert await store.blob(key_of(b"first")) == b"first"


# ── the commands ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.long
async def test_attachments_are_copied_between_places(tmp_path: Path, s3: ObjectServer) -> None:
    """Blobs are copied with the store or alone, and the settings name their location (N1)."""
    (tmp_path / "dragoman.toml").write_text(f'store = "chat.db"\nblobs = "{URL}"\n')
    async with opened(StoreFile(tmp_path / "chat.db", blobs=URL)) as store:
        key = await store.put_blob(b"picture")
        await mention(store, "conv_1", key)
    done = await program("store", "copy", "chat.db", "new.db", folder=tmp_path, **s3.environment())
    assert (done.status, "left out" in done.err) == (0, False), done.err
    async with opened(StoreFile(tmp_path / "new.db")) as store:
        assert await store.blob(key) == b"picture"

    done = await program(
        "store",
        "copy",
        "new.db",
        "new.db",
        "--blobs-to",
        f"s3://{BUCKET}/new",
        folder=tmp_path,
        **s3.environment(),
    )
    assert f"s3://{BUCKET}/new: set blobs in the settings" in done.out, done.err
    assert {name.partition("/")[0] for name in s3.copies(key)} == {"chat", "new"}

    (tmp_path / "dragoman.toml").unlink()
    done = await program("store", "copy", "chat.db", "third.db", folder=tmp_path, **s3.environment())
    assert f"attachment {key}" in done.err
    assert "--blobs-from" in done.err
    done = await program(
        "store", "copy", "chat.db", "third.db", "--blobs-from", URL, folder=tmp_path, **s3.environment()
    )
    assert "attachment" not in done.err.replace("attachments 1", "")
    assert "are the same store" in (await program("store", "copy", "chat.db", "chat.db", folder=tmp_path)).err


async def test_the_doctor_says_where_they_are_and_whether_they_can_be_reached(
    tmp_path: Path, s3: ObjectServer
) -> None:
    """The doctor does not report existing blobs as lost (N1)."""
    (tmp_path / "dragoman.toml").write_text(f'store = "chat.db"\nblobs = "{URL}"\n')
    async with opened(StoreFile(tmp_path / "chat.db", blobs=URL)) as store:
        await mention(store, "conv_1", await store.put_blob(b"picture"))
    well = await program("doctor", folder=tmp_path, **s3.environment())
    assert f"✓ blobs      {URL}" in well.out
    assert "an attachment or output of" not in well.out
    s3.refused = "InvalidAccessKeyId"
    ill = await program("doctor", folder=tmp_path, **s3.environment())
    assert "does not let us in (InvalidAccessKeyId)" in ill.out
    assert ill.status == 1
    assert "AKIDEXAMPLE" not in ill.out + ill.err
