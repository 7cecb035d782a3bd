"""The store in one SQLite file: conversations, messages and turns, with files beside it for blobs."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import JsonValue

from dragoman.conversation.tree import Conversation
from dragoman.errors import BadRequest, Fenced, NotFound, TurnBusy
from dragoman.messages.message import Message
from dragoman.messages.parts import ToolCall, ToolResult
from dragoman.store.blobs.folder import Blobs
from dragoman.store.sqlite.people import People
from dragoman.store.sqlite.questions import Questions
from dragoman.store.sqlite.rows import (
    CALL,
    JSON,
    MESSAGE,
    RESULT,
    USAGE,
    call_row,
    calls_by_id,
    conversation_of,
    conversation_row,
    message_body,
    turn_of,
    whole_message,
)
from dragoman.store.store import Busy, Change, Found, Queued, Start, Started, TurnRow, Unread

_BLOB = re.compile(r'"blob":"([0-9a-f]{64})"')


class SqliteStore(Questions, People):
    """Implements `store.Store`."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        self._blobs = Blobs(self.files / "blobs")

    # ── conversations ─────────────────────────────────────────────────────────────────────────────

    async def add_conversation(self, conversation: Conversation, messages: Sequence[Message] = ()) -> None:
        def write(db: sqlite3.Connection) -> None:
            db.execute(self._sql["add_conversation"], conversation_row(conversation))
            for message in messages:
                self._add_message(db, message)

        await self._writer.submit(write)

    async def conversation(self, id: str) -> Conversation:
        return conversation_of(await self._one("conversation", "conversation", id=id))

    async def conversations(
        self, *, user: str | None = None, limit: int = 50, before: tuple[float, str] | None = None
    ) -> list[Conversation]:
        updated, id = before or (None, None)
        rows = await self._all("conversations", user=user, limit=limit, updated=updated, id=id)
        return [conversation_of(row) for row in rows]

    async def within(self, conversation: str) -> list[str]:
        return [row["id"] for row in await self._all("within", id=conversation)]

    async def busy(self, conversations: Sequence[str]) -> dict[str, Busy]:
        rows = await self._all("busy_conversations", ids=json.dumps(list(conversations)))
        return {row["id"]: Busy(bool(row["live"]), row["waiting"]) for row in rows}

    async def set_title(self, conversation: str, title: str) -> None:
        await self._change("conversation", conversation, "set_title", title=title)

    async def change_settings(
        self, conversation: str, change: Callable[[dict[str, JsonValue]], dict[str, JsonValue]]
    ) -> None:
        def write(db: sqlite3.Connection) -> None:
            row = db.execute(self._sql["conversation"], {"id": conversation}).fetchone()
            if row is None:
                raise NotFound("conversation", conversation)
            settings = JSON.dump(change(JSON.load(row["settings"])))
            db.execute(self._sql["set_settings"], {"id": conversation, "settings": settings})

        await self._writer.submit(write)

    async def set_leaf(self, conversation: str, leaf: str, at: float) -> None:
        def write(db: sqlite3.Connection) -> None:
            self._own_message(db, conversation, leaf)
            db.execute(self._sql["set_leaf"], {"id": conversation, "leaf": leaf, "at": at})

        await self._writer.submit(write)

    async def delete_conversation(self, id: str) -> None:
        def write(db: sqlite3.Connection) -> set[str]:
            inner = [row["id"] for row in db.execute(self._sql["within"], {"id": id}).fetchall()]
            mentioned: set[str] = set()
            for each in inner:
                for row in db.execute(self._sql["bodies"], {"id": each}):
                    mentioned.update(_BLOB.findall(row["body"]))
                for name in ("forget_text", "forget_turns", "forget_parents"):
                    db.execute(self._sql[name], {"id": each})
                if not db.execute(self._sql["delete_conversation"], {"id": each}).rowcount:
                    raise NotFound("conversation", id)
            return {
                key for key in mentioned if not db.execute(self._sql["mentions"], {"key": key}).fetchone()
            }

        unwanted = await self._writer.submit(write)
        await asyncio.to_thread(self._blobs.sweep, unwanted)

    # ── messages ──────────────────────────────────────────────────────────────────────────────────

    async def messages(self, conversation: str) -> tuple[list[Message], int]:
        def read(db: sqlite3.Connection) -> tuple[list[Message], int]:
            row = db.execute(self._sql["conversation"], {"id": conversation}).fetchone()
            if row is None:
                raise NotFound("conversation", conversation)
            key = {"conversation": conversation}
            bodies = [body for (body,) in db.execute(self._sql["messages"], key)]
            calls = calls_by_id(body for (body,) in db.execute(self._sql["calls_of_conversation"], key))
            return [whole_message(body, calls) for body in bodies], row["revision"]

        return await self._read(read)

    async def revision(self, conversation: str) -> int:
        row = await self._one("conversation", "conversation", id=conversation)
        revision: int = row["revision"]
        return revision

    async def revisions(self, conversations: Sequence[str]) -> dict[str, int]:
        rows = await self._all("revisions", ids=json.dumps(list(conversations)))
        return {row["id"]: row["revision"] for row in rows}

    async def message(self, id: str) -> Message:
        row = await self._one("message", "message", id=id)
        calls = calls_by_id(body for (body,) in await self._all("calls_of_message", message=id))
        return whole_message(row["body"], calls)

    async def call(self, id: str) -> tuple[ToolCall, str, ToolResult | None]:
        row = await self._one("call", "call", id=id)
        held = RESULT.load(row["held"]) if row["held"] else None
        return CALL.load(row["body"]), row["conversation"], held

    async def search(self, query: str, *, user: str | None = None, limit: int = 20) -> list[Found]:
        def write(db: sqlite3.Connection) -> list[Found]:
            for seq, body in db.execute(self._sql["unindexed"]).fetchall():
                text = MESSAGE.load(body).text
                db.execute(self._sql["index_text"], {"seq": seq, "text": text})
            key: dict[str, object] = {"user": user, "limit": limit}
            if min(map(len, words)) < 3:  # the index knows no fewer than three letters
                rows = db.execute(self._sql["search_short"], {**key, "words": json.dumps(words)})
            else:
                wanted = " ".join('"' + word.replace('"', '""') + '"' for word in words)
                rows = db.execute(self._sql["search"], {**key, "query": wanted})
            return [Found(row["id"], row["conversation"], row["title"], row["snippet"]) for row in rows]

        words = query.replace("\0", " ").split()
        return await self._writer.submit(write) if words else []

    # ── turns ─────────────────────────────────────────────────────────────────────────────────────

    async def start(self, start: Start) -> Started | None:
        return await self._writer.submit(lambda db: self._start(db, start))

    async def begin_queued(self, turn: str) -> Started | None:
        def write(db: sqlite3.Connection) -> Started | None:
            row = db.execute(self._sql["queued"], {"turn": turn, "conversation": None}).fetchone()
            if row is None:
                return None
            body = JSON.load(row["body"])
            place = {"conversation": row["conversation"], "after": row["after"]}
            parent = db.execute(self._sql["place_in_line"], place).fetchone()["id"]
            message = replace(MESSAGE.from_json(body["message"]), parent=parent)
            db.execute(self._sql["dequeue"], {"turn": turn})
            fact, at = str(body["fact"]), message.created
            started = self._start(db, Start(turn, row["conversation"], fact, at, message, queue=True))
            if started is not None:
                db.execute(self._sql["requeue"], {"turn": turn, "after": row["after"]})
                if (leaf := started.conversation.leaf) != parent:  # the person looks at another branch now
                    db.execute(self._sql["set_leaf"], {"id": row["conversation"], "leaf": leaf, "at": 0})
            return started

        return await self._writer.submit(write)

    async def is_queued(self, turn: str) -> bool:
        return bool(await self.queued(turn=turn))

    async def queued(self, *, turn: str | None = None, conversation: str | None = None) -> list[Queued]:
        rows = await self._all("queued", turn=turn, conversation=conversation)
        return [
            Queued(row["turn"], row["conversation"], MESSAGE.from_json(JSON.load(row["body"])["message"]))
            for row in rows
        ]

    async def unqueue(self, turn: str) -> bool:
        def write(db: sqlite3.Connection) -> bool:
            row = db.execute(self._sql["queued"], {"turn": turn, "conversation": None}).fetchone()
            if row is not None:
                db.execute(self._sql["dequeue"], {"turn": turn})
            return row is not None

        return await self._writer.submit(write)

    async def queue(self) -> list[str]:
        return [row["turn"] for row in await self._all("queue")]

    def append(
        self, turn: str, epoch: int, seq: int, change: Change, *, sync: bool = False
    ) -> asyncio.Future[None]:
        return self._writer.submit(lambda db: self._append(db, turn, epoch, seq, change), sync=sync)

    async def turn(self, id: str) -> TurnRow:
        return turn_of(await self._one("turn", "turn", id=id))

    async def turn_of_call(self, call: str) -> TurnRow:
        return turn_of(await self._one("turn_of_call", "running call", id=call))

    async def turns(self, conversation: str) -> list[TurnRow]:
        return [turn_of(row) for row in await self._all("turns_of_conversation", conversation=conversation)]

    async def live_turns(self) -> list[TurnRow]:
        return [turn_of(row) for row in await self._all("live_turns")]

    async def facts(self, turn: str) -> list[str]:
        return [body for (body,) in await self._all("facts", turn=turn)]

    async def claim(self, turn: str) -> int | None:
        row = await self.turn(turn)
        if not row.live or (row.owner is not None and self._owner.alive(row.owner)):
            return None
        key = {"id": turn, "owner": self._owner.name, "epoch": row.epoch}
        taken = await self._writer.submit(
            lambda db: db.execute(self._sql["take_turn"], key).fetchone(), sync=True
        )
        return taken["epoch"] if taken else None

    async def release(self, turn: str, epoch: int) -> None:
        key = {"id": turn, "epoch": epoch}
        await self._writer.submit(lambda db: db.execute(self._sql["leave_turn"], key).rowcount)

    # ── blobs ─────────────────────────────────────────────────────────────────────────────────────

    async def put_blob(self, data: bytes) -> str:
        return await asyncio.to_thread(self._blobs.put, data)

    def read_blob(self, key: str) -> bytes:
        return self._blobs.get(key)

    async def blob(self, key: str) -> bytes:
        return await asyncio.to_thread(self._blobs.get, key)

    # ── what the operations above are made of; these run in the writer's thread ───────────────────

    def _start(self, db: sqlite3.Connection, start: Start) -> Started | None:
        row = db.execute(self._sql["conversation"], {"id": start.conversation}).fetchone()
        if row is None:
            raise NotFound("conversation", start.conversation)
        message = start.message
        if message is not None and message.parent is None and not start.root:
            message = replace(message, parent=row["leaf"])
        at = start.again if message is None else message.parent
        if at is not None:
            self._own_message(db, start.conversation, at)
            key = {"conversation": start.conversation, "message": at}
            if (busy := db.execute(self._sql["live_turn_at"], key).fetchone()) is not None:
                if not start.queue or message is None:
                    raise TurnBusy(busy["id"])
                self._enqueue(db, start, busy["id"])
                return None
        if message is not None:
            self._add_message(db, message)
        first = message.id if message is not None else start.again
        turn = {
            "id": start.turn,
            "conversation": start.conversation,
            "message": first,
            "state": "preparing",
            "owner": self._owner.name,
            "created": start.at,
        }
        db.execute(self._sql["add_turn"], turn)
        db.execute(self._sql["add_fact"], {"turn": start.turn, "seq": 1, "epoch": 1, "body": start.fact})
        touched: dict[str, object] = {"id": start.conversation, "at": start.at}
        db.execute(self._sql["set_leaf"], {**touched, "leaf": first})
        db.execute(self._sql["touch_conversation"], touched)
        begun = turn_of(db.execute(self._sql["turn"], {"id": start.turn}).fetchone())
        return Started(begun, conversation_of(row), message, row["revision"] + 1)

    def _enqueue(self, db: sqlite3.Connection, start: Start, busy: str) -> None:
        assert start.message is not None
        body = {"message": MESSAGE.to_json(replace(start.message, parent=None)), "fact": start.fact}
        row = {"turn": start.turn, "after": busy, "conversation": start.conversation}
        db.execute(self._sql["enqueue"], {**row, "body": JSON.dump(body)})

    def _append(self, db: sqlite3.Connection, turn: str, epoch: int, seq: int, change: Change) -> None:
        moved = db.execute(
            self._sql["move_turn"],
            {
                "id": turn,
                "epoch": epoch,
                "before": seq - 1,
                "count": len(change.facts),
                "state": change.state,
            },
        )
        if not moved.rowcount:
            raise Fenced(turn, epoch)
        for place, fact in enumerate(change.facts):
            row = {"turn": turn, "seq": seq + place, "epoch": epoch, "body": fact}
            db.execute(self._sql["add_fact"], row)
        for message in change.messages:
            self._add_message(db, message)
        for call in change.calls:
            row = call_row(call, change.held.get(call.id))
            if not db.execute(self._sql["change_call"], row).rowcount:
                raise NotFound("call", call.id)
        for question in change.questions:
            self._add_question(db, question)
        for question_id, why in change.closed.items():
            self._close_question(db, question_id, why)
        for signal in change.signals:
            db.execute(self._sql["drop_signal"], {"seq": signal})
        if not change.steerable:
            if db.execute(self._sql["steering"], {"turn": turn}).fetchone()[0]:
                raise Unread
            db.execute(self._sql["shut_turn"], {"id": turn})
        if not change.live:
            db.execute(self._sql["end_turn"], {"id": turn})
            db.execute(self._sql["drop_signals"], {"turn": turn})
        self._touch(db, change)

    def _touch(self, db: sqlite3.Connection, change: Change) -> None:
        """The conversation's own row: its revision, its leaf, its usage."""
        key: dict[str, object] = {"id": change.conversation}
        if change.messages or change.calls:
            at = max((message.created for message in change.messages), default=0)
            db.execute(self._sql["touch_conversation"], {**key, "at": at})
        if change.leaf is not None:
            before, to = change.leaf
            db.execute(self._sql["move_leaf"], {**key, "from": before, "to": to})
        if change.usage is not None:
            spent = db.execute(self._sql["usage_of"], key).fetchone()["usage"]
            usage = USAGE.dump(USAGE.load(spent) + change.usage)
            db.execute(self._sql["set_usage"], {**key, "usage": usage})

    def _own_message(self, db: sqlite3.Connection, conversation: str, id: str) -> None:
        row = db.execute(self._sql["message"], {"id": id}).fetchone()
        if row is None:
            raise NotFound("message", id)
        if row["conversation"] != conversation:
            raise BadRequest(f"message {id} belongs to another conversation, not to {conversation}")

    def _add_message(self, db: sqlite3.Connection, message: Message) -> None:
        row = {
            "id": message.id,
            "conversation": message.conversation,
            "parent": message.parent,
            "turn": message.turn,
            "role": message.role,
            "body": message_body(message),
        }
        db.execute(self._sql["add_message"], row)
        for call in message.calls:
            place = {"message": message.id, "turn": message.turn}
            db.execute(self._sql["add_call"], {**call_row(call), **place})
