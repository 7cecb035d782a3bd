"""Attachments: their bytes are with the blobs; who brought them, and what mentions them, is in rows."""

from __future__ import annotations

from dragoman.store.sql.database import SqlDatabase
from dragoman.store.store import Mention


class SqlAttachments(SqlDatabase):
    async def put_blob(self, data: bytes) -> str:
        return await self._blobs.put(data)

    async def add_upload(self, blob: str, user: str, now: float) -> None:
        await self._run("add_upload", blob=blob, user=user, created=now)

    async def mentions(self, blob: str, user: str) -> list[Mention]:
        rows = await self._all("mentions", blob=blob, user=user)
        return [Mention(row["noun"], row["owner"]) for row in rows]

    async def blob(self, key: str) -> bytes:
        return await self._blobs.read(key)
