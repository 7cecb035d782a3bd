"""Conversations: added, listed, changed. `deletion` removes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence

from pydantic import JsonValue

from dragoman.conversation.tree import Conversation
from dragoman.errors import NotFound
from dragoman.messages.message import Message
from dragoman.store.codecs import JSON
from dragoman.store.conversations import Busy
from dragoman.store.sql.database import Row, SqlConnection
from dragoman.store.sql.messages import SqlMessages
from dragoman.store.sql.rows import conversation_of, conversation_row, listed_conversation, load, tags_in


class SqlConversations(SqlMessages):
    async def add_conversation(self, conversation: Conversation, messages: Sequence[Message] = ()) -> None:
        await self._write(lambda db: self._add_conversation(db, conversation, messages))

    def _add_conversation(
        self, db: SqlConnection, conversation: Conversation, messages: Sequence[Message]
    ) -> None:
        db.execute(self._sql["add_conversation"], conversation_row(conversation))
        for message in messages:
            self._add_message(db, message)

    async def conversation(self, id: str) -> Conversation:
        return conversation_of(await self._one("conversation", "conversation", id=id))

    async def owner_of(self, conversation: str) -> str:
        return str((await self._one("owner_of", "conversation", id=conversation))["owner"])

    async def conversations(
        self,
        *,
        user: str | None = None,
        limit: int = 50,
        before: tuple[float, str] | None = None,
        pinned: bool | None = None,
        archived: bool | None = None,
        tag: str | None = None,
    ) -> list[Conversation]:
        updated, id = before or (None, None)
        rows = await self._all(
            "conversations",
            user=user,
            limit=limit,
            updated=updated,
            id=id,
            pinned=int(pinned) if pinned is not None else None,
            archived=int(archived) if archived is not None else None,
            tag=json.dumps(tag) if tag is not None else None,
        )
        return [listed_conversation(row) for row in rows]

    async def tags(self, user: str | None = None) -> list[str]:
        return sorted({tag for row in await self._all("tags", user=user) for tag in tags_in(row["tags"])})

    async def label_conversation(
        self,
        conversation: str,
        *,
        pinned: bool | None = None,
        archived: bool | None = None,
        tags: Sequence[str] | None = None,
    ) -> None:
        await self._change(
            "conversation",
            conversation,
            "set_labels",
            pinned=int(pinned) if pinned is not None else None,
            archived=int(archived) if archived is not None else None,
            tags=json.dumps(list(tags)) if tags is not None else None,
        )

    async def within(self, conversation: str) -> list[str]:
        return [row["id"] for row in await self._all("within", id=conversation)]

    async def opened_by(self, conversation: str, calls: Collection[str]) -> list[Conversation]:
        found: dict[str | None, Conversation] = {}
        for one in self._readable(conversation_of, await self._all("opened_in", id=conversation)):
            if one.parent in found or (one.parent == conversation and one.call in calls):
                found[one.id] = one
        return list(found.values())

    async def busy(self, conversations: Sequence[str]) -> dict[str, Busy]:
        rows = await self._all("busy_conversations", ids=json.dumps(list(conversations)))
        return {row["id"]: Busy(bool(row["live"]), row["waiting"]) for row in rows}

    async def set_title(self, conversation: str, title: str) -> None:
        await self._change("conversation", conversation, "set_title", title=title)

    async def replace_title(self, conversation: str, before: str | None, title: str) -> bool:
        return bool(await self._run("replace_title", id=conversation, before=before, title=title))

    async def change_settings(
        self, conversation: str, change: Callable[[dict[str, JsonValue]], dict[str, JsonValue]]
    ) -> None:
        def write(db: SqlConnection) -> None:
            row = self._conversation_row(db, conversation)
            settings = change(load(JSON, "conversation", conversation, row["settings"]))
            db.execute(self._sql["set_settings"], {"id": conversation, "settings": JSON.dump(settings)})

        await self._write(write)

    async def set_leaf(self, conversation: str, leaf: str, at: float, *, before: str | None = None) -> bool:
        def write(db: SqlConnection) -> bool:
            self._own_message(db, conversation, leaf)
            values = {"id": conversation, "leaf": leaf, "at": at, "from": before}
            return bool(db.execute(self._sql["set_leaf"], values).rowcount)

        return await self._write(write)

    def _conversation_row(self, db: SqlConnection, id: str) -> Row:
        """For who is about to write: nobody else changes it before that."""
        row: Row | None = db.execute(self._sql["lock_conversation"], {"id": id}).fetchone()
        if row is None:
            raise NotFound("conversation", id)
        return row
