"""Implements conversations: add, list, change. `deletion` removes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from pydantic import JsonValue

from dragoman.conversation.tree import Conversation
from dragoman.errors import NotFound
from dragoman.messages.message import Message, ToolCall, ToolResult
from dragoman.store.codecs import CALL, JSON, MESSAGE, RESULT
from dragoman.store.conversations import Busy
from dragoman.store.sql.database import Row, SqlConnection, SqlDatabase
from dragoman.store.sql.rows import (
    call_row,
    calls_of,
    conversation_of,
    conversation_row,
    inner_of,
    listed_conversation,
    load,
    message_of,
    message_row,
    tags_in,
)
from dragoman.store.sql.sharing import SqlSharing
from dragoman.store.sql.texts import text_of_call

# ── messages ──────────────────────────────────────────────────────────────────────────────────────
# Stores messages and calls. A call has a separate row, since it changes while its message does not.


class SqlMessages(SqlDatabase):
    async def messages(self, conversation: str) -> tuple[list[Message], int]:
        def read(db: SqlConnection) -> tuple[list[Message], int]:
            messages, revision = self._messages(db, conversation)
            return [*messages], revision

        return await self._read(read)

    async def message_texts(self, conversation: str) -> tuple[dict[str, str], int]:
        def read(db: SqlConnection) -> tuple[dict[str, str], int]:
            messages, revision = self._messages(db, conversation)
            return {message.id: MESSAGE.dump(message) for message in messages}, revision

        return await self._read(read)

    def _messages(self, db: SqlConnection, conversation: str) -> tuple[Iterator[Message], int]:
        key = {"conversation": conversation}
        with self._snapshot(db):
            info = db.execute(self._sql["conversation"], {"id": conversation}).fetchone()
            if info is None:
                raise NotFound("conversation", conversation)
            rows = db.execute(self._sql["messages"], key).fetchall()
            call_rows = db.execute(self._sql["calls_of_conversation"], key).fetchall()
        calls = calls_of(self._unhurried(call_rows))
        inner = inner_of(calls)
        return (message_of(row, calls, inner) for row in self._unhurried(rows)), info["revision"]

    async def revisions(self, conversations: Sequence[str]) -> dict[str, int]:
        rows = await self._all("revisions", ids=json.dumps(list(conversations)))
        return {row["id"]: row["revision"] for row in rows}

    async def message(self, id: str) -> Message:
        row = await self._one("message", "message", id=id)
        calls = calls_of(await self._all("calls_of_message", message=id))
        return message_of(row, calls, inner_of(calls))

    async def call(self, id: str) -> tuple[ToolCall, str, ToolResult | None]:
        row = await self._one("call", "call", id=id)
        held = load(RESULT, "call", id, row["held"]) if row["held"] else None
        return load(CALL, "call", id, row["body"]), row["conversation"], held

    # ── inside a write ────────────────────────────────────────────────────────────────────────────

    def _add_message(self, db: SqlConnection, message: Message) -> None:
        row = message_row(message)
        seq = db.execute(self._sql["add_message"], row).fetchone()["seq"]
        self._mention_blobs(db, "message", message.id, message.conversation, row["body"])
        self._add_text(db, seq, message.text)
        for call in message.all_calls:
            row = {**call_row(call), "message": message.id, "turn": message.turn}
            db.execute(self._sql["add_call"], row)
            self._mention_blobs(db, "call", call.id, message.conversation, row["body"])
            if call.state.settled:
                self._add_text(db, seq, text_of_call(call))

    def _add_inner_call(self, db: SqlConnection, conversation: str, call: ToolCall) -> None:
        assert call.made_in is not None
        row = {**call_row(call), "program": call.made_in.call}
        db.execute(self._sql["add_inner_call"], row)
        self._mention_blobs(db, "call", call.id, conversation, row["body"])
        if call.state.settled:
            self._add_text_of_call(db, call)

    def _change_call(
        self, db: SqlConnection, conversation: str, call: ToolCall, held: ToolResult | None
    ) -> None:
        row = call_row(call, held)
        if not db.execute(self._sql["change_call"], row).rowcount:
            raise NotFound("call", call.id)
        self._mention_blobs(db, "call", call.id, conversation, row["body"], row["held"])
        if call.state.settled:
            self._add_text_of_call(db, call)

    def _own_message(self, db: SqlConnection, conversation: str, id: str) -> None:
        row = db.execute(self._sql["message"], {"id": id}).fetchone()
        # Another conversation's message is treated like a missing one.
        if row is None or row["conversation"] != conversation:
            raise NotFound("message", id)


class SqlConversations(SqlMessages, SqlSharing):
    async def add_conversation(self, conversation: Conversation, messages: Sequence[Message] = ()) -> None:
        await self._write(lambda db: self._add_conversation(db, conversation, messages))

    def _add_conversation(
        self, db: SqlConnection, conversation: Conversation, messages: Sequence[Message]
    ) -> None:
        row = conversation_row(conversation)
        if conversation.parent is not None:  # Its owner and members are those of the outermost conversation.
            key = {"id": conversation.parent}
            if (root := db.execute(self._sql["lock_root_of"], key).fetchone()) is not None:
                row["user"] = root["user"]
        db.execute(self._sql["add_conversation"], row)
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
        shared: bool = False,
    ) -> list[Conversation]:
        updated, id = before or (None, None)
        key = {
            "user": user,
            "limit": limit,
            "updated": updated,
            "id": id,
            "pinned": int(pinned) if pinned is not None else None,
            "archived": int(archived) if archived is not None else None,
            "tag": json.dumps(tag) if tag is not None else None,
        }
        rows = await self._own_and(
            "shared_conversations", "conversations", key, shared=shared and user is not None
        )
        found = {one.id: one for one in map(listed_conversation, rows)}
        return (
            sorted(found.values(), key=lambda one: (-one.updated, one.id))[:limit]
            if shared
            else [*found.values()]
        )

    async def _own_and(self, others: str, own: str, key: Mapping[str, object], *, shared: bool) -> list[Row]:
        """Combine a query on a user's conversations with one on those shared with the user."""
        names = (own, others) if shared else (own,)

        def read(db: SqlConnection) -> list[Row]:
            with self._snapshot(db):
                return [row for one in names for row in db.execute(self._narrowed(one, key), key).fetchall()]

        return await self._read(read)

    async def tags(self, user: str | None = None, *, shared: bool = False) -> list[str]:
        rows = await self._own_and("shared_tags", "tags", {"user": user}, shared=shared and user is not None)
        return sorted({tag for row in rows for tag in tags_in(row["tags"])})

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
        """Return the row and lock it for a write."""
        row: Row | None = db.execute(self._sql["lock_conversation"], {"id": id}).fetchone()
        if row is None:
            raise NotFound("conversation", id)
        return row
