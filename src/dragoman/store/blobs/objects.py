"""Stores blobs in an object store: S3, Google Cloud Storage, Azure, and compatible services.

The bytes of a blob are at `KEY/TIME`, where TIME is that of the put, in steps of ten minutes. A removal
deletes only the old names of a blob: a server that puts the same bytes meanwhile writes another name. Object
stores have no request to remove an object only if it was not touched.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeVar

from dragoman.errors import ConfigError, EngineError, NotFound, StoreUnavailable, Unreadable
from dragoman.messages.ids import new_id
from dragoman.sentences import sentence
from dragoman.store.blobs.blobs import (
    checked_data,
    checked_key,
    fetched_in_pieces,
    in_pieces,
    joined,
    key_of,
)

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ObjectStore


# ── faults ────────────────────────────────────────────────────────────────────────────────────────
# Converts errors of an object store into errors that explain what happened and what to do.
#
# The original messages are hidden: a refusal repeats the access key, and a URL may contain a token.


_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>([A-Za-z]{1,60})</Code>")
_CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and AWS_REGION",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}
_NOBODY = ("169.254.169.254", "169.254.170.2", "must be specified", "metadata.google.internal")
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound", "bucket does not exist")
_DENIED = ("PermissionDeniedError", "UnauthenticatedError")


def translate(error: Exception, place: str, doing: str) -> StoreUnavailable:
    """Convert an error. `doing` names the attempted action, such as "Cannot read an attachment"."""
    text = str(error).partition("Debug source")[0]
    found, code = _STATUS.search(text), _CODE.search(text)
    status = int(found[1]) if found else 404 if isinstance(error, FileNotFoundError) else 0
    status = 403 if type(error).__name__ in _DENIED else status
    what, hint, retryable = _explain(status, code[1] if code else "", str(error), place)
    return StoreUnavailable(f"{doing}: {place} {what}", hint, retryable=retryable)


def names_no_bucket(error: FileNotFoundError) -> bool:
    """Return whether the bucket is missing, and not just one object in it."""
    return any(sign in str(error) for sign in _NO_BUCKET)


def _explain(status: int, code: str, text: str, place: str) -> tuple[str, str, bool]:
    scheme = place.partition(":")[0]
    known = f" ({code})" if code else ""
    if any(sign in text for sign in _NOBODY):
        return "was asked without credentials", f"set {_CREDENTIALS[scheme]} in the environment", False
    if code == "RequestTimeTooSkewed":
        return f"refuses the time of this machine{known}", "set its clock", False
    if status in (401, 403):
        hint = (
            f"see the credentials in the environment ({_CREDENTIALS[scheme]}), and that they may list, read, "
            "write and delete there"
        )
        return f"does not let us in{known}", hint, False
    if status == 404:
        return f"is not there{known}", "create the bucket, or name another one: blobs = …", False
    if status in (301, 307, 400) or "redirect" in text:
        hint = "see whether it is in another region, or at another endpoint"
        return f"refuses the request{known}", hint, False
    if status == 429 or status >= 500:
        return f"cannot answer now (HTTP {status}{', ' + code if code else ''})", "try again later", True
    if "BadScheme" in text:
        hint = "name an https endpoint, or set AWS_ALLOW_HTTP=true"
        return "is reached by http, without encryption", hint, False
    if "HTTP error" in text:
        return "cannot be reached", "see the network, the endpoint and the proxy; try again later", True
    return "gave an answer that cannot be understood", "see whether its endpoint is one of this kind", True


T = TypeVar("T")

_OPENING = 5.0  # Maximum seconds to wait for an answer when the store opens.
_PERIOD = 600  # Seconds in which puts of the same bytes write the same name.
_PIECE = 1 << 20  # Bytes that are read and hashed per step.
_PART = 8 << 20  # Bytes per part of a long upload.
_OWNER = "owner"  # the object that names the owner of the blobs
_NAME = re.compile(r"([0-9a-f]{2})/([0-9a-f]{62})/(\d{1,12})")
_GONE = sentence("blob.from_bucket")
_log = logging.getLogger("dragoman.store")


@dataclass(slots=True, frozen=True, order=True)
class _Copy:
    """One name under which a blob is stored."""

    at: float  # Time of the put: the later of the writer's clock and the object store's.
    key: str
    name: str
    size: int


class ObjectBlobs:
    """Implements `NamedBlobs` for a URL such as `s3://bucket/prefix`.

    `obstore` reads credentials, regions and endpoints from the environment.

    A request that gets no answer within `timeout` seconds, or a temporary refusal, is retried a few times.
    """

    def __init__(
        self, url: str, *, timeout: float = 60.0, retries: int = 4, clock: Callable[[], float] = time.time
    ) -> None:
        self._url = url
        self._timeout = timeout
        self._retries = retries
        self._clock = clock
        self._store_id: str | None = None
        self._claimed = False

    def __str__(self) -> str:
        return self._url

    async def put(self, data: bytes) -> str:
        await self._make_ours()
        key = await asyncio.to_thread(key_of, data)
        now = int(self._clock())
        name = f"{key[:2]}/{key[2:]}/{now - now % _PERIOD}"
        await self._do(
            "Cannot store an attachment", lambda store: store.put_async(name, data, chunk_size=_PART)
        )
        older = [copy.name for copy in await self._copies(key) if _put_at(copy.name) < _put_at(name)]
        await self._remove(older)  # One copy is enough.
        return key

    async def put_pieces(self, pieces: AsyncIterable[bytes]) -> tuple[str, int]:
        # Objects are named after their content and cannot be renamed, so collect all bytes first.
        data = await joined(pieces)
        return await self.put(data), len(data)

    async def read(self, key: str) -> bytes:
        """Return the bytes of the newest intact copy.

        A later put removes older copies, so a missing copy is looked up once more.
        """
        for _ in range(2):
            damaged: Unreadable | None = None
            copies = sorted(await self._copies(checked_key(key)), reverse=True)
            for copy in copies:
                try:
                    return await asyncio.to_thread(checked_data, key, await self._read(copy.name))
                except Unreadable as error:
                    damaged = damaged or error
                except FileNotFoundError:
                    continue
            if damaged is not None:
                raise damaged
            if not copies:
                break
        raise NotFound("blob", key, _GONE)

    async def size(self, key: str) -> int:
        copies = await self._copies(checked_key(key))
        if not copies:
            raise NotFound("blob", key, _GONE)
        return max(copies).size

    async def pieces(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Yield the bytes of a single copy in parts, each with a short request.

        With several copies, each is read to find the newest intact one.
        """
        copies = await self._copies(checked_key(key))
        if len(copies) != 1:
            found = in_pieces(await self.read(key), start, end)
        else:
            fetch = partial(self._read_part, key, copies[0].name)
            found = fetched_in_pieces(key, copies[0].size, start, end, fetch)
        async for piece in found:
            yield piece

    async def delete(self, key: str, *, unused_for: float = 0.0) -> bool:
        ours = await self._is_ours()
        copies = await self._copies(checked_key(key))
        before = self._clock() - unused_for
        old = [copy.name for copy in copies if ours and (not unused_for or copy.at <= before)]
        await self._remove(old)
        return len(old) == len(copies)

    async def keys(self, *, since: float = 0.0) -> AsyncIterator[str]:
        last = ""
        async for copy in self._list(""):
            if copy.at >= since and copy.key != last:  # Names arrive in order, so copies are adjacent.
                last = copy.key
                yield copy.key

    # ── owner and availability ────────────────────────────────────────────────────────────────────

    async def claim(self, store: str) -> None:
        self._store_id = store
        try:
            async with asyncio.timeout(_OPENING):
                await self._is_ours()
        except TimeoutError:
            _log.warning("%s does not answer: attachments are unavailable until it does", self)
        except StoreUnavailable as error:
            if not error.retryable:
                raise ConfigError(str(error)) from None
            _log.warning("%s", error)

    async def check(self) -> None:
        name = f"check/{new_id('check')}"
        await self._do("Cannot store attachments", lambda store: store.put_async(name, b"check"))
        await self._read(name)
        await self._remove([name])
        async for _ in self._list(f"{'0' * 2}/{'0' * 62}"):
            break

    async def _is_ours(self) -> bool:
        """Return whether this store owns the place, False if unclaimed.

        Raise StoreUnavailable for another owner: two stores at one place would remove each other's blobs.
        """
        if self._claimed:
            return True
        if self._store_id is None:
            raise EngineError(f"The owner of the blobs in {self} is unknown. Claim them first.")
        owner = await self._owner()
        if owner not in (None, self._store_id.encode()):
            raise StoreUnavailable(
                f"{self} has the attachments of another store",
                f"name a separate prefix, or, if that store is gone, delete the object {self}/{_OWNER}",
            )
        self._claimed = owner is not None
        return self._claimed

    async def _make_ours(self) -> None:
        if not await self._is_ours():
            ours = (self._store_id or "").encode()
            await self._do("Cannot store attachments", lambda store: _create(store, _OWNER, ours))
            await self._is_ours()  # Another process may have been faster.

    async def _owner(self) -> bytes | None:
        try:
            return await self._read(_OWNER, "Cannot use attachments")
        except FileNotFoundError:
            return None

    # ── requests ──────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def _objects(self) -> ObjectStore:
        try:
            from obstore.store import from_url
        except ImportError:
            raise ConfigError(f"{self} needs an extra. Run `pip install 'dragoman[objects]'`.") from None
        return from_url(
            self._url,
            client_options={
                "timeout": timedelta(seconds=self._timeout),
                "connect_timeout": timedelta(seconds=min(5.0, self._timeout)),
                "allow_http": _may_use_http(),
            },
            retry_config={
                "max_retries": self._retries,
                "retry_timeout": timedelta(seconds=self._timeout / 2),  # No retry starts after this time.
                "backoff": {"init_backoff": timedelta(milliseconds=100)},
            },
        )

    async def _do(self, what: str, request: Callable[[ObjectStore], Awaitable[T]]) -> T:
        """Send a request. Raise StoreUnavailable for any failure, with a message free of secrets."""
        try:
            return await request(await asyncio.to_thread(lambda: self._objects))
        except (ConfigError, NotFound):
            raise
        except Exception as error:
            raise translate(error, str(self), what) from None

    async def _read(self, name: str, what: str = "Cannot read an attachment") -> bytes:
        """Read an object. Raise FileNotFoundError if it does not exist."""

        async def read(store: ObjectStore) -> bytes | None:
            try:
                found = await store.get_async(name)
            except FileNotFoundError as error:
                if names_no_bucket(error):
                    raise
                return None
            pieces = bytearray()
            async for piece in found.stream(min_chunk_size=_PIECE):
                pieces += piece
            return bytes(pieces)

        data = await self._do(what, read)
        if data is None:
            raise FileNotFoundError(name)
        return data

    async def _read_part(self, key: str, name: str, start: int, end: int) -> bytes:
        """Read part of the known copy, or of the newest one if a later put removed it."""

        async def read(store: ObjectStore) -> bytes | None:
            try:
                return bytes(await store.get_range_async(name, start=start, end=end))
            except FileNotFoundError as error:
                if names_no_bucket(error):
                    raise
                return None

        data = await self._do("Cannot read an attachment", read)
        if data is None:
            copies = await self._copies(key)
            if not copies or max(copies).name == name:
                raise NotFound("blob", key, _GONE)
            return await self._read_part(key, max(copies).name, start, end)
        return data

    async def _remove(self, names: list[str]) -> None:
        async def remove(store: ObjectStore) -> None:
            for name in names:
                try:
                    await store.delete_async(name)
                except FileNotFoundError as error:
                    if names_no_bucket(error):
                        raise
                    # Otherwise another server was faster.

        if names:
            await self._do("Cannot remove unused attachments", remove)

    async def _copies(self, key: str) -> list[_Copy]:
        return [copy async for copy in self._list(f"{key[:2]}/{key[2:]}")]

    async def _list(self, prefix: str) -> AsyncIterator[_Copy]:
        listing = await self._do("Cannot list attachments", lambda store: _begin(store, prefix))
        while True:
            page = await self._do("Cannot list attachments", lambda _: anext(listing, None))
            if page is None:
                return
            for found in page:
                if (name := _NAME.fullmatch(found["path"])) is not None:
                    at = max(float(name[3]) + _PERIOD, found["last_modified"].timestamp())
                    yield _Copy(at, name[1] + name[2], found["path"], found["size"])


async def _begin(store: ObjectStore, prefix: str) -> AsyncIterator[Sequence[ObjectMeta]]:
    return store.list(prefix or None, chunk_size=1000)


async def _create(store: ObjectStore, name: str, data: bytes) -> None:
    """Create an object unless it exists. Where the condition is not supported, the last writer wins."""
    from obstore.exceptions import AlreadyExistsError, NotSupportedError

    try:
        await store.put_async(name, data, mode="create")
    except AlreadyExistsError:
        pass
    except NotSupportedError:
        await store.put_async(name, data)


def _put_at(name: str) -> int:
    return int(name.rpartition("/")[2])


def _may_use_http() -> bool:
    """Return whether HTTP is allowed, like `obstore` without explicit options."""
    named = (os.environ.get(f"{cloud}_ALLOW_HTTP", "") for cloud in ("AWS", "AZURE", "GOOGLE"))
    return any(value.lower() in ("true", "1") for value in named)
