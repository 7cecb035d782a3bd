"""Retention: conversations in which nothing has happened for long are found, and deleted like any other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

from dragoman.conversation.tree import Conversation
from dragoman.store.sql.database import SqlConnection
from dragoman.store.sql.deletion import SqlDeletion
from dragoman.store.sql.rows import listed_conversation

_PAGE = 100
_CHORE = "retention"


class SqlRetention(SqlDeletion):
    async def untouched(self, before: float) -> AsyncIterator[Conversation]:
        updated: float | None = None
        id: str | None = None
        while rows := await self._all(
            "untouched_conversations", before=before, updated=updated, id=id, limit=_PAGE
        ):
            for row in rows:
                conversation = listed_conversation(row)
                if await self._read(partial(self._is_untouched, conversation.id, before)):
                    yield conversation
            updated, id = rows[-1]["updated"], rows[-1]["id"]

    async def delete_untouched(self, before: float) -> list[str]:
        deleted: list[str] = []
        async with self._chore(_CHORE) as ours:
            if not ours:
                return deleted
            async for conversation in self.untouched(before):
                still = partial(self._is_untouched, conversation.id, before)
                deleted += await self._delete(conversation.id, only_if=still)
        return deleted

    def _is_untouched(self, id: str, before: float, db: SqlConnection) -> bool:
        """Also those that its calls opened: a person may talk there, too, or want to keep one of them."""
        for row in db.execute(self._sql["within"], {"id": id}).fetchall():
            key = {"id": row["id"]}
            locked = db.execute(self._sql["lock_conversation"], key).fetchone()
            if locked is None or locked["pinned"] or locked["updated"] >= before:
                return False
            if db.execute(self._sql["is_at_work"], key).fetchone() is not None:
                return False
        return True
