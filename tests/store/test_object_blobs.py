"""N1: blobs in an object store, over real HTTP and with real signatures: streamed, checked, swept."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import ConfigError, EngineError, NotFound, StoreUnavailable, Unreadable
from dragoman.store.blobs.blobs import Blobs, key_of
from dragoman.store.blobs.objects import ObjectBlobs
from tests.patience import PATIENCE
from tests.store.conformance import BlobConformance
from tests.store.conformance.blobs import all_of, keys_in
from tests.store.object_server import (
    ACCESS,
    BUCKET,
    SECRET,
    Fault,
    ObjectServer,
    cuts_the_body,
    never_answers,
    refuses,
    waits_for,
)

HOUR, DAY = 3600.0, 24 * 3600.0
URL = f"s3://{BUCKET}/team/chat"


@pytest.fixture
def server(s3: ObjectServer) -> ObjectServer:
    return s3


async def objects(**options: Any) -> ObjectBlobs:
    """As a node of the store that has claimed the place has them."""
    blobs = ObjectBlobs(URL, **options)
    await blobs.claim("store-1")
    return blobs


@pytest.fixture
async def blobs(server: ObjectServer) -> ObjectBlobs:
    return await objects(retries=2)


class TestS3(BlobConformance):
    @pytest.fixture(autouse=True)
    def _at(self, server: ObjectServer) -> None:
        self.server = server

    async def make(self, folder: Path) -> Blobs:
        return await objects()

    async def alter(self, folder: Path, key: str) -> None:
        for name in self.server.copies(key):
            self.server.objects[name].data = b"as it is"


async def test_a_long_one_is_sent_in_parts(server: ObjectServer, blobs: ObjectBlobs) -> None:
    """N1: whole or not at all."""
    data = bytes(range(256)) * 80_000
    key = await blobs.put(data)
    assert sum("partNumber" in request for request in server.requests) == 3
    assert await blobs.read(key) == data


async def test_a_long_one_is_fetched_in_parts(server: ObjectServer, blobs: ObjectBlobs) -> None:
    """A reader that streams a blob holds one part at a time, and a range read fetches no more than the range
    (N1)."""
    data = bytes(range(250)) * 40_000
    key = await blobs.put(data)
    server.requests.clear()
    assert await all_of(blobs.pieces(key)) == data
    assert sum("list-type" not in request for request in server.requests) == 3
    server.requests.clear()
    assert await all_of(blobs.pieces(key, 5_000_000, 5_000_010)) == data[5_000_000:5_000_010]
    assert sum("list-type" not in request for request in server.requests) == 1


async def test_a_copy_that_is_removed_while_it_is_read_is_read_on_elsewhere(
    server: ObjectServer, blobs: ObjectBlobs
) -> None:
    """Putting the same bytes again removes the older copy (N1)."""
    data = bytes(range(250)) * 40_000
    key = await blobs.put(data)
    server.grow_old(HOUR)
    readers = [blobs.pieces(key) for _ in range(2)]
    got = [await anext(reader) for reader in readers][:1]
    await blobs.put(data)
    got += [piece async for piece in readers[0]]
    assert b"".join(got) == data
    server.grow_old(HOUR)
    readers.append(blobs.pieces(key))
    await anext(readers[2])
    await blobs.delete(key)
    for reader in readers[1:]:
        with pytest.raises(NotFound, match="copy of the bucket"):
            await all_of(reader)


async def test_what_fails_for_a_moment_is_tried_again(server: ObjectServer, blobs: ObjectBlobs) -> None:
    """N1: writing, listing and reading."""
    server.fail("PUT", refuses(500, "InternalError"))
    server.fail("GET", refuses(503, "SlowDown"))
    key = await blobs.put(b"hello")
    server.fail("GET", refuses(500, "InternalError"), refuses(503, "SlowDown"))
    assert await blobs.read(key) == b"hello"
    assert not server.faults


async def test_bytes_that_break_off_are_no_blob(server: ObjectServer, blobs: ObjectBlobs) -> None:
    """A read returns the complete bytes, also after a pause, or fails with a retryable error (N1)."""
    key = await blobs.put(b"a long one " * 100_000)

    async def lists(server: ObjectServer, request: object) -> None:
        return None

    server.fail("GET", lists, cuts_the_body)
    assert await blobs.read(key) == b"a long one " * 100_000
    server.fail("GET", lists, *[cuts_the_body] * 10)
    with pytest.raises(StoreUnavailable, match="Cannot read") as caught:
        await blobs.read(key)
    assert caught.value.retryable
    server.faults.clear()
    assert await blobs.read(key) == b"a long one " * 100_000


async def test_who_does_not_answer_is_not_waited_for_for_ever(server: ObjectServer) -> None:
    """N1"""
    blobs = await objects(timeout=0.3, retries=1)
    server.fail("PUT", *[never_answers] * 5)
    with pytest.raises(StoreUnavailable, match="cannot be reached") as caught:
        await blobs.put(b"hello")
    assert caught.value.retryable


@pytest.mark.parametrize(
    ("fault", "words", "retryable"),
    [
        (refuses(401, "Unauthorized"), r"does not let us in \(Unauthorized\)", False),
        (refuses(403, "AccessDenied"), r"does not let us in \(AccessDenied\).*may list, read", False),
        (refuses(404, "NoSuchBucket"), r"is not there \(NoSuchBucket\).*create the bucket", False),
        (refuses(400, "AuthorizationHeaderMalformed"), "refuses the request.*another region", False),
        (refuses(403, "RequestTimeTooSkewed"), "the time of this machine.*clock", False),
        (refuses(503, "SlowDown"), r"cannot answer now \(HTTP 503, SlowDown\).*later", True),
    ],
)
@pytest.mark.parametrize("method", ["PUT", "GET", "POST"])
async def test_a_refusal_says_what_to_do(  # noqa: PLR0917 - pytest calls it by name
    server: ObjectServer, blobs: ObjectBlobs, fault: Fault, words: str, retryable: bool, method: str
) -> None:
    """The error for each refused operation says whether it is retryable (N1)."""
    key = await blobs.put(b"before")
    does: Callable[[], object] = {
        "PUT": lambda: blobs.put(b"hello"),
        "GET": lambda: blobs.read(key),
        "POST": lambda: blobs.delete(key),
    }[method]
    server.fail(method, *[fault] * 3)
    with pytest.raises(StoreUnavailable, match=words) as caught:
        await does()  # type: ignore[misc]
    assert caught.value.retryable is retryable
    assert URL in str(caught.value)


async def test_no_secret_is_in_what_is_said(server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's error text repeats the access key (N1)."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong/but/secret")
    with pytest.raises(ConfigError, match="SignatureDoesNotMatch") as caught:
        await objects()
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    for secret in (ACCESS, SECRET, "wrong/but/secret"):
        assert secret not in str(caught.value)


async def test_nobody_there_is_said(monkeypatch: pytest.MonkeyPatch, server: ObjectServer) -> None:
    """N1"""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(StoreUnavailable, match=r"cannot be reached.*network"):
        await ObjectBlobs(URL, retries=0).read(key_of(b"x"))


async def test_http_is_used_only_by_who_allows_it(
    monkeypatch: pytest.MonkeyPatch, server: ObjectServer
) -> None:
    """N1"""
    monkeypatch.delenv("AWS_ALLOW_HTTP")
    with pytest.raises(ConfigError, match=r"without encryption.*AWS_ALLOW_HTTP"):
        await objects()
    assert server.requests == []


async def test_without_the_extra_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """N1"""
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(ConfigError, match=r"s3://attachments/team/chat needs an extra.*dragoman\[objects\]"):
        await ObjectBlobs(URL).read(key_of(b"x"))


# ── sweeping ──────────────────────────────────────────────────────────────────────────────────────


async def test_what_is_old_is_removed_by_however_many(server: ObjectServer, blobs: ObjectBlobs) -> None:
    """N1, S4"""
    old, young = await blobs.put(b"old"), b"young"
    server.grow_old(2 * HOUR)
    kept = await blobs.put(young)
    others = [await objects() for _ in range(3)]
    assert all(await asyncio.gather(*(one.delete(old, unused_for=HOUR) for one in others)))
    assert not any(await asyncio.gather(*(one.delete(kept, unused_for=HOUR) for one in others)))
    assert await keys_in(blobs) == [kept]


async def test_what_is_put_again_while_it_is_removed_survives(
    server: ObjectServer, blobs: ObjectBlobs
) -> None:
    """Another node decided to remove the blob before the put, and its removal arrives after it (N1, S4)."""
    key = await blobs.put(b"wanted again")
    server.grow_old(2 * DAY)
    arrived, goes_on = asyncio.Event(), asyncio.Event()
    sweeper = await objects()
    server.fail("POST", waits_for(goes_on, arrived))
    sweeping = asyncio.create_task(sweeper.delete(key, unused_for=HOUR))
    await arrived.wait()
    await blobs.put(b"wanted again")
    goes_on.set()
    await sweeping
    assert await sweeper.read(key) == b"wanted again"
    assert not await sweeper.delete(key, unused_for=HOUR)


async def test_a_clock_that_is_behind_loses_nothing(server: ObjectServer) -> None:
    """N1, S4: the node that put it believes it is yesterday."""
    slow = await objects(clock=lambda: time.time() - DAY)
    key = await slow.put(b"hello")
    assert not await (await objects()).delete(key, unused_for=HOUR)


async def test_one_copy_is_left_of_what_is_put_every_day(server: ObjectServer, blobs: ObjectBlobs) -> None:
    """A process that was about to read an older copy finds the new one (N1)."""
    for _ in range(3):
        key = await blobs.put(b"again and again")
        server.grow_old(DAY)
    assert len(server.copies(key)) == 1

    async def removed_meanwhile(server: ObjectServer, request: object) -> None:
        server.fail("GET", put_again)

    async def put_again(server: ObjectServer, request: object) -> None:
        (old,) = server.copies(key)
        held = server.objects.pop(old)
        stem, _, when = old.rpartition("/")
        server.objects[f"{stem}/{int(when) + 600}"] = held

    server.fail("GET", removed_meanwhile)
    assert await blobs.read(key) == b"again and again"


async def test_an_altered_copy_is_passed_over_for_a_sound_one(
    server: ObjectServer, blobs: ObjectBlobs
) -> None:
    """N1, S4"""
    key = await blobs.put(b"sound")
    (name,) = server.copies(key)
    newer = f"{name.rpartition('/')[0]}/{int(time.time()) + 600}"
    server.put(newer, b"altered")
    assert await blobs.read(key) == b"sound"
    server.put(name, b"altered, too")
    with pytest.raises(Unreadable, match="changed"):
        await blobs.read(key)


async def test_what_is_not_ours_is_neither_listed_nor_removed(
    server: ObjectServer, blobs: ObjectBlobs
) -> None:
    """N1: other objects under the same prefix."""
    key = await blobs.put(b"ours")
    server.put("team/chat/notes.txt", b"somebody's")
    server.put(f"team/chat/{key[:2]}/{key[2:]}/notes", b"somebody's")
    server.put("team/chatter/x", b"somebody's")
    assert await keys_in(blobs) == [key]
    await blobs.delete(key)
    assert len(server.objects) == 4  # the fourth says whose they are


# ── whose they are ────────────────────────────────────────────────────────────────────────────────


async def test_two_stores_do_not_share_a_place(server: ObjectServer) -> None:
    """N1: each would sweep what the other mentions."""
    stores = [ObjectBlobs(URL) for _ in range(5)]
    for number, store in enumerate(stores):
        await store.claim(f"store-{1 + (number > 2)}")
    done = await asyncio.gather(*(store.put(b"hello") for store in stores), return_exceptions=True)
    assert len({type(one) for one in done[:3]} | {type(done[3])}) == 2, "those of one store, or of the other"
    assert {type(one) for one in done} == {str, StoreUnavailable}
    first, second = ("store-1", "store-2") if isinstance(done[0], str) else ("store-2", "store-1")
    with pytest.raises(ConfigError, match=r"another store.*separate prefix.*chat/owner"):
        await ObjectBlobs(URL).claim(second)
    await ObjectBlobs(f"{URL}/two").claim(second)
    await ObjectBlobs(URL).claim(first)


async def test_a_place_that_does_not_answer_now_is_claimed_later(
    server: ObjectServer, caplog: pytest.LogCaptureFixture
) -> None:
    """N1: a node starts without it, and sweeps nothing until it knows whose it is."""
    key = await (await objects()).put(b"of the first")
    late = ObjectBlobs(URL, retries=0)
    server.fail("GET", refuses(503, "SlowDown"))
    await late.claim("store-2")
    assert "SlowDown" in caplog.text
    with pytest.raises(EngineError, match="Claim them first"):
        await ObjectBlobs(URL).put(b"x")
    for use in (late.put(b"x"), late.delete(key)):
        with pytest.raises(StoreUnavailable, match="another store"):
            await use
    assert await late.read(key) == b"of the first"


@pytest.mark.parametrize("code", ["AccessDenied", "InvalidAccessKeyId"])
async def test_a_place_that_refuses_us_is_told_at_once(server: ObjectServer, code: str) -> None:
    """N1: a wrong key does not repair itself."""
    server.refused = code
    with pytest.raises(ConfigError, match=f"does not let us in .{code}"):
        await objects()


async def test_a_bucket_that_is_not_there_is_told_at_once(server: ObjectServer) -> None:
    """N1"""
    with pytest.raises(ConfigError, match=r"s3://atachments/team is not there.*create the bucket"):
        await ObjectBlobs("s3://atachments/team").claim("store-1")


async def test_a_bucket_that_is_gone_is_no_missing_attachment(
    server: ObjectServer, blobs: ObjectBlobs
) -> None:
    """N1: it can come back."""
    key = await blobs.put(b"hello")

    async def lists(server: ObjectServer, request: object) -> None:
        return None

    for reading in (blobs.read(key), all_of(blobs.pieces(key))):
        server.fail("GET", lists, refuses(404, "NoSuchBucket"))
        with pytest.raises(StoreUnavailable, match=r"is not there \(NoSuchBucket\)"):
            await reading
    server.fail("POST", refuses(404, "NoSuchBucket"))
    with pytest.raises(StoreUnavailable, match=r"is not there \(NoSuchBucket\)"):
        await blobs.delete(key)
    assert await blobs.read(key) == b"hello"


async def test_a_check_tries_everything_and_leaves_nothing(server: ObjectServer, blobs: ObjectBlobs) -> None:
    """N1"""
    await blobs.check()
    assert server.objects == {}
    server.fail("POST", refuses(403, "AccessDenied"))
    with pytest.raises(StoreUnavailable, match="Cannot remove"):
        await blobs.check()


async def test_what_is_missing_stays_missing(server: ObjectServer, blobs: ObjectBlobs) -> None:
    """N1"""
    with pytest.raises(NotFound, match="copy of the bucket"):
        await blobs.read(key_of(b"never put"))


async def test_who_only_looks_claims_nothing_and_removes_nothing(server: ObjectServer) -> None:
    """Naming a wrong database by mistake takes no blob location away from the right one (N1)."""
    looking = ObjectBlobs(URL)
    await looking.claim("store-2")
    key = await (await objects()).put(b"hello")
    server.grow_old(2 * DAY)
    with pytest.raises(StoreUnavailable, match="another store"):
        await looking.delete(key, unused_for=HOUR)
    del server.objects["team/chat/owner"]
    assert not await looking.delete(key, unused_for=HOUR)
    assert await looking.read(key) == b"hello"


@pytest.mark.slow
async def test_a_place_that_says_nothing_keeps_nobody_from_starting(
    server: ObjectServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Dragoman waits for the location for a moment, and no longer (N1)."""
    server.fail("GET", *[never_answers] * 20)
    before = time.monotonic()
    await ObjectBlobs(URL).claim("store-1")
    assert time.monotonic() - before < PATIENCE / 2
    assert f"{URL} does not answer" in caplog.text
