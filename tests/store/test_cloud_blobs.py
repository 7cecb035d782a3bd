"""N1: blobs at Google and at Azure, over real HTTP, by the same promises as everywhere."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dragoman.conversation.tree import Conversation
from dragoman.errors import ConfigError, StoreUnavailable
from dragoman.messages.message import File, Message
from dragoman.store.blobs.blobs import Blobs
from dragoman.store.blobs.objects import ObjectBlobs
from dragoman.store.sqlite import SqliteStore
from tests.store.cloud_servers import KEY, TOKEN, AzureServer, GoogleServer
from tests.store.conformance import BlobConformance
from tests.store.conformance.blobs import all_of
from tests.store.object_server import BUCKET, ObjectServer, object_server, refuses

HOUR, DAY = 3600.0, 24 * 3600.0
CLOUDS: dict[str, type[ObjectServer]] = {"gs": GoogleServer, "az": AzureServer}


@pytest.fixture(params=list(CLOUDS))
def scheme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def url(scheme: str) -> str:
    return f"{scheme}://{BUCKET}/team/chat"


@pytest.fixture
async def server(scheme: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ObjectServer]:
    async with object_server(CLOUDS[scheme]()) as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        yield server


async def objects(url: str) -> ObjectBlobs:
    blobs = ObjectBlobs(url, retries=1)
    await blobs.claim("store-1")
    return blobs


class TestClouds(BlobConformance):
    @pytest.fixture(autouse=True)
    def _at(self, server: ObjectServer, url: str) -> None:
        self.server, self.url = server, url

    async def make(self, folder: Path) -> Blobs:
        return await objects(self.url)

    async def alter(self, folder: Path, key: str) -> None:
        for name in self.server.copies(key):
            self.server.objects[name].data = b"as it is"


async def test_a_long_one_goes_and_comes_in_parts(server: ObjectServer, url: str) -> None:
    """N1: each cloud has its own way to say so."""
    data = bytes(range(256)) * 80_000
    blobs = await objects(url)
    key = await blobs.put(data)
    assert sum("partNumber" in one or "comp=block&" in one for one in server.requests) == 3
    assert server.parts == {}
    assert await all_of(blobs.pieces(key)) == data
    assert await blobs.read(key) == data


async def test_what_is_deleted_with_its_conversation_is_swept_away(
    server: ObjectServer, url: str, tmp_path: Path
) -> None:
    """A blob that another conversation mentions stays (N1, S4)."""
    store = SqliteStore(tmp_path / "chat.db", blobs=url)
    await store.open()
    try:
        kept, gone = await store.put_blob(b"kept"), await store.put_blob(b"gone")
        for id, keys in (("conv_1", (kept, gone)), ("conv_2", (kept,))):
            parts = tuple(File("text/plain", blob=key) for key in keys)
            message = Message(f"msg_{id}", id, None, "user", parts)
            await store.add_conversation(Conversation(id, leaf=message.id), [message])
        server.grow_old(2 * HOUR)
        await store.delete_conversation("conv_1")
        assert (len(server.copies(kept)), len(server.copies(gone))) == (1, 0)
        assert await store.blob(kept) == b"kept"
        await store.check_blobs()
    finally:
        await store.close()


async def test_two_stores_do_not_share_a_place(server: ObjectServer, url: str) -> None:
    """A second store does not overwrite the name of the first (N1)."""
    await (await objects(url)).put(b"of the first")
    with pytest.raises(ConfigError, match="another store"):
        await ObjectBlobs(url).claim("store-2")
    assert server.objects["team/chat/owner"].data == b"store-1"


async def test_a_wrong_key_is_told_at_once_and_never_shown(
    server: ObjectServer, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the place where the key is set (N1)."""
    monkeypatch.setenv("GOOGLE_BEARER_TOKEN", "another-token")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", KEY[::-1].strip("=") + "=")
    with pytest.raises(ConfigError, match=r"does not let us in.*in the environment") as caught:
        await objects(url)
    assert not any(secret in str(caught.value) for secret in (TOKEN, KEY, "another-token"))


async def test_a_bucket_that_is_not_there_is_told_at_once(server: ObjectServer, scheme: str) -> None:
    """N1"""
    with pytest.raises(ConfigError, match=r"is not there.*create the bucket"):
        await objects(f"{scheme}://atachments/team")


async def test_a_place_that_is_busy_may_answer_later(server: ObjectServer, url: str) -> None:
    """N1"""
    blobs = await objects(url)
    server.fail("PUT", *[refuses(503, "ServerBusy")] * 4)
    with pytest.raises(StoreUnavailable, match="cannot answer now") as caught:
        await blobs.put(b"hello")
    assert caught.value.retryable
