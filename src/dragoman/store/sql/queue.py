"""The queue: turns that begin when the one before them on their branch is over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from dragoman.errors import Unreadable
from dragoman.messages.message import Message
from dragoman.messages.parts import Part
from dragoman.store.codecs import JSON, MESSAGE
from dragoman.store.sql.database import Row, SqlConnection
from dragoman.store.sql.rows import load
from dragoman.store.sql.turns import SqlTurns
from dragoman.store.turns import Queued, Start, Started


class SqlQueue(SqlTurns):
    async def begin_queued(self, turn: str) -> Started | None:
        def write(db: SqlConnection) -> Started | None:
            key = {"turn": turn, "conversation": None}
            if (row := db.execute(self._sql["queued"], key).fetchone()) is None:
                return None
            conversation = row["conversation"]
            self._conversation_row(db, conversation)  # before the queue, as everybody who locks both does
            if (row := db.execute(self._sql["lock_queued"], key).fetchone()) is None:
                return None
            message, fact = _read(row)
            place = {"conversation": conversation, "after": row["after"]}
            parent = db.execute(self._sql["place_in_line"], place).fetchone()["id"]
            at = {"conversation": conversation, "message": parent}
            if (busy := db.execute(self._sql["live_turn_at"], at).fetchone()) is not None:
                db.execute(self._sql["requeue"], {"turn": busy["id"], "after": row["after"]})
                return None
            if self._first_in_line(db, conversation, row["after"]) != turn:
                return None  # the one before it has a later look: this one's was at an older line
            db.execute(self._sql["dequeue"], {"turn": turn})
            message = replace(message, parent=parent)
            started = self._start(db, Start(turn, conversation, fact, message.created, message))
            assert started is not None  # it does not queue again
            db.execute(self._sql["requeue"], {"turn": turn, "after": row["after"]})
            if (leaf := started.conversation.leaf) != parent:  # the person looks at another branch now
                db.execute(self._sql["set_leaf"], {"id": conversation, "leaf": leaf, "at": 0, "from": None})
            return started

        return await self._write(write)

    def _first_in_line(self, db: SqlConnection, conversation: str, after: str) -> str | None:
        rows = db.execute(self._sql["queued"], {"turn": None, "conversation": conversation}).fetchall()
        line = self._readable(_queued_of, [row for row in rows if row["after"] == after])
        return line[0].turn if line else None

    async def is_queued(self, turn: str) -> bool:
        return bool(await self._all("queued", turn=turn, conversation=None))

    async def queued(self, *, turn: str | None = None, conversation: str | None = None) -> list[Queued]:
        return self._readable(_queued_of, await self._all("queued", turn=turn, conversation=conversation))

    async def unqueue(self, turn: str) -> bool:
        return bool(await self._run("dequeue", turn=turn))

    async def change_queued(self, turn: str, parts: Sequence[Part]) -> bool:
        def write(db: SqlConnection) -> bool:
            row = db.execute(self._sql["lock_queued"], {"turn": turn, "conversation": None}).fetchone()
            if row is None:
                return False
            message, fact = _read(row)
            changed = replace(message, parts=tuple(parts))
            body = JSON.dump({"message": MESSAGE.to_json(changed), "fact": fact})
            db.execute(self._sql["change_queued"], {"turn": turn, "body": body})
            self._mention_blobs(db, "queue", turn, row["conversation"], body)
            return True

        return await self._write(write)

    async def renew_queued(self, conversation: str, renew: Callable[[str], str]) -> None:
        def write(db: SqlConnection) -> None:
            self._conversation_row(db, conversation)  # before the queue, as everybody who locks both does
            key = {"turn": None, "conversation": conversation}
            for row in db.execute(self._sql["lock_queued"], key).fetchall():
                with suppress(Unreadable):  # it never begins
                    message, fact = _read(row)
                    body = JSON.dump({"message": MESSAGE.to_json(message), "fact": renew(fact)})
                    db.execute(self._sql["change_queued"], {"turn": row["turn"], "body": body})

        if await self.queued(conversation=conversation):
            await self._write(write)

    async def reorder_queue(self, conversation: str, turns: Sequence[str]) -> None:
        def write(db: SqlConnection) -> None:
            rows = db.execute(
                self._sql["lock_queued"], {"turn": None, "conversation": conversation}
            ).fetchall()
            wanted = {turn: place for place, turn in enumerate(turns)}
            ordered = sorted(rows, key=lambda row: wanted.get(row["turn"], len(wanted)))  # the rest as it was
            for row in ordered:
                db.execute(self._sql["dequeue"], {"turn": row["turn"]})
                db.execute(self._sql["enqueue"], dict(row))

        await self._write(write)

    async def queue(self) -> list[str]:
        return [one.turn for one in self._readable(_queued_of, await self._all("queue"))]


def _queued_of(row: Row) -> Queued:
    return Queued(row["turn"], row["conversation"], *_read(row))


def _read(row: Row) -> tuple[Message, str]:
    """What it begins with: its message, and its first fact."""
    body = load(JSON, "queued turn", row["turn"], row["body"])
    try:
        return MESSAGE.from_json(body["message"]), str(body["fact"])
    except (KeyError, ValueError) as error:
        raise Unreadable("queued turn", row["turn"], "there is no message in it") from error
