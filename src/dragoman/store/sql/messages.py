"""Messages and calls: a call is a row of its own, since it changes while its message does not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from dragoman.errors import NotFound
from dragoman.messages.message import Message
from dragoman.messages.parts import ToolCall, ToolResult
from dragoman.store.codecs import CALL, MESSAGE, RESULT
from dragoman.store.sql.database import SqlConnection, SqlDatabase
from dragoman.store.sql.rows import call_row, calls_of, load, message_of, message_row
from dragoman.store.sql.texts import text_of_call


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
        return (message_of(row, calls) for row in self._unhurried(rows)), info["revision"]

    async def revisions(self, conversations: Sequence[str]) -> dict[str, int]:
        rows = await self._all("revisions", ids=json.dumps(list(conversations)))
        return {row["id"]: row["revision"] for row in rows}

    async def message(self, id: str) -> Message:
        row = await self._one("message", "message", id=id)
        return message_of(row, calls_of(await self._all("calls_of_message", message=id)))

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
        for call in message.calls:
            row = {**call_row(call), "message": message.id, "turn": message.turn}
            db.execute(self._sql["add_call"], row)
            self._mention_blobs(db, "call", call.id, message.conversation, row["body"])
            if call.state.settled:
                self._add_text(db, seq, text_of_call(call))

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
        # Another's is answered like one that is nowhere.
        if row is None or row["conversation"] != conversation:
            raise NotFound("message", id)
