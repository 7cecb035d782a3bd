"""Attachments: their bytes are with the blobs; who brought them, and what mentions them, is in rows."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator

from dragoman.store.blobs.blobs import LARGE_AFAR, LARGE_HERE, Blobs, CachedBlobs, FallbackBlobs
from dragoman.store.blobs.folder import FolderBlobs
from dragoman.store.blobs.place import NamedBlobs
from dragoman.store.sql.database import SqlDatabase
from dragoman.store.store import Mention


class SqlAttachments(SqlDatabase):
    def _place_blobs(self, own: Blobs, named: NamedBlobs | None) -> None:
        """Where they are named to be; what was stored before that is still among the database's own."""
        self._named_blobs = named
        large = LARGE_HERE if isinstance(named or own, FolderBlobs) else LARGE_AFAR
        self._blobs = CachedBlobs(own if named is None else FallbackBlobs(named, own), large=large)

    async def check_blobs(self) -> None:
        """StoreUnavailable where the place that is named for them cannot be used."""
        if self._named_blobs is not None:
            await self._named_blobs.check()

    async def list_named_blobs(self) -> set[str]:
        """The keys of those at the place that is named for them."""
        if self._named_blobs is None:
            return set()
        keys = self._named_blobs.keys()
        return {key async for key in keys}

    async def put_blob(self, data: bytes) -> str:
        return await self._blobs.put(data)

    async def put_blob_pieces(self, pieces: AsyncIterable[bytes]) -> tuple[str, int]:
        return await self._blobs.put_pieces(pieces)

    async def add_upload(self, blob: str, user: str, now: float) -> None:
        await self._run("add_upload", blob=blob, user=user, created=now)

    async def mentions(self, blob: str, user: str) -> list[Mention]:
        rows = await self._all("mentions", blob=blob, user=user)
        return [Mention(row["noun"], row["owner"]) for row in rows]

    async def blob(self, key: str) -> bytes:
        return await self._blobs.read(key)

    async def blob_size(self, key: str) -> int:
        return await self._blobs.size(key)

    def blob_pieces(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        return self._blobs.pieces(key, start, end)
