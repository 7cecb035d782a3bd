"""Implements turns and their facts: started, written by one owner, claimed by the next."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import asdict, replace

from dragoman.conversation.sharing import Right
from dragoman.errors import Fenced, KeyReused, NotFound, StoreUnavailable, TurnBusy, Unreadable
from dragoman.messages.message import Message, Part
from dragoman.store.codecs import JSON, MESSAGE
from dragoman.store.sql.conversations import SqlConversations
from dragoman.store.sql.database import Row, SqlConnection
from dragoman.store.sql.questions import SqlQuestions
from dragoman.store.sql.rows import added_usage, conversation_of, is_json, load, number_in, turn_of
from dragoman.store.turns import Change, Queued, Rating, SendKey, SentBefore, Start, Started, TurnRow, Unread

_RATED = ("user", "value", "note", "at")


class SqlTurns(SqlConversations, SqlQuestions):
    async def start(self, start: Start) -> Started | None:
        return await self._write(lambda db: self._start(db, start))

    async def turn_of_key(self, user: str, key: SendKey) -> str | None:
        return await self._read(lambda db: self._turn_of_key(db, user, key))

    def append(
        self, turn: str, epoch: int, seq: int, change: Change, *, sync: bool = False
    ) -> asyncio.Future[None]:
        return self._write(lambda db: self._append(db, turn, epoch, seq, change), sync=sync, line=turn)

    async def turn(self, id: str) -> TurnRow:
        return turn_of(await self._one("turn", "turn", id=id))

    async def turn_of_call(self, call: str) -> TurnRow:
        return turn_of(await self._one("turn_of_call", "running call", id=call))

    async def turns(self, conversation: str) -> list[TurnRow]:
        return [turn_of(row) for row in await self._all("turns_of_conversation", conversation=conversation)]

    async def rate(self, rating: Rating) -> None:
        await self.turn(rating.turn)
        await self._run("rate", id=rating.turn, **{name: getattr(rating, name) for name in _RATED})

    async def remove_rating(self, turn: str, user: str) -> None:
        await self._run("remove_rating", id=turn, user=user)

    async def ratings(self, conversation: str | None = None) -> list[Rating]:
        rows = (
            await self._all("ratings")
            if conversation is None
            else await self._all("ratings_of_conversation", conversation=conversation)
        )
        return [Rating(row["turn"], *(row[name] for name in _RATED)) for row in rows]

    async def live_turns(self, conversation: str | None = None) -> list[TurnRow]:
        if conversation is None:
            return [turn_of(row) for row in await self._all("live_turns")]
        return [turn_of(row) for row in await self._all("live_turns_in", conversation=conversation)]

    async def live_turns_among(self, conversations: Collection[str]) -> list[TurnRow]:
        rows = await self._all("live_turns_among", ids=json.dumps(list(conversations)))
        return [turn_of(row) for row in rows]

    async def live_turns_named(self, turns: Collection[str]) -> list[TurnRow]:
        rows = await self._all("live_turns_named", ids=json.dumps(list(turns)))
        return [turn_of(row) for row in rows]

    async def facts(self, turn: str) -> list[str]:
        rows = await self._all("facts", turn=turn)
        for place, row in enumerate(rows, 1):
            if row["seq"] != place:
                raise Unreadable("turn", turn, f"its fact {place} is missing")
            if not is_json(row["body"]):
                raise Unreadable("turn", turn, f"its fact {place} is not valid JSON")
        if rows and len(rows) != rows[0]["count"]:
            raise Unreadable("turn", turn, f"it has {len(rows)} facts of {rows[0]['count']}")
        return [row["body"] for row in rows]

    async def claim(self, turn: str) -> int | None:
        if (epoch := await self._read(lambda db: self._abandoned_epoch(db, turn))) is None:
            return None
        key = {"id": turn, "owner": self._owner_name, "epoch": epoch}
        claimed = await self._write(lambda db: db.execute(self._sql["claim_turn"], key).fetchone(), sync=True)
        return claimed["epoch"] if claimed else None

    async def is_abandoned(self, turn: str) -> bool:
        return await self._read(lambda db: self._abandoned_epoch(db, turn)) is not None

    def _abandoned_epoch(self, db: SqlConnection, turn: str) -> int | None:
        """Return the epoch of an unfinished turn without a living owner."""
        row = db.execute(self._sql["turn"], {"id": turn}).fetchone()
        if row is None:
            raise NotFound("turn", turn)
        owned = row["owner"] is not None and self._is_alive(db, row["owner"])
        return row["epoch"] if row["live"] and not owned else None

    async def abandoned_turns(self, *, waiting: bool = True) -> list[TurnRow]:
        rows = await self._live_turns_with_owners("live_turns" if waiting else "moving_turns")
        return [turn for turn, alive in rows if not alive]

    async def own_turns(self) -> list[TurnRow]:
        return [turn_of(row) for row in await self._all("live_turns_of", owner=self._owner_name)]

    async def running_turns(self) -> list[TurnRow]:
        rows = await self._live_turns_with_owners("moving_turns_of_people")
        # the tasks of each unfinished call, None for a call without a task
        tasks: dict[str, list[tuple[str | None, str]]] = {}
        for row in await self._all("calls_that_go_on"):
            tasks.setdefault(row["turn"], []).append((row["task"], row["task_state"]))

        def waits(turn: str | None, state: str) -> bool:
            given = tasks.get(turn, []) if turn is not None else []
            return state == "waiting" or (bool(given) and all(waits(*task) for task in given))

        return [turn for turn, alive in rows if alive and not waits(turn.id, turn.state)]

    async def _live_turns_with_owners(self, query: str) -> list[tuple[TurnRow, bool]]:
        """Return each turn with whether its owner is alive. Each owner is checked once."""

        def read(db: SqlConnection) -> list[tuple[TurnRow, bool]]:
            alive: dict[str | None, bool] = {None: False}
            found = []
            for row in db.execute(self._sql[query]).fetchall():
                turn = turn_of(row)
                if turn.owner not in alive:
                    alive[turn.owner] = self._is_alive(db, str(turn.owner))
                found.append((turn, alive[turn.owner]))
            return found

        return await self._read(read)

    async def nodes(self) -> list[str]:
        return sorted(await self._read(self._other_owners))

    async def close_turn(self, turn: str) -> None:
        def write(db: SqlConnection) -> None:
            db.execute(self._sql["close_turn"], {"id": turn})
            db.execute(self._sql["close_questions_of"], {"turn": turn})
            db.execute(self._sql["drop_signals"], {"turn": turn})

        await self._write(write)

    async def release(self, turn: str, epoch: int) -> None:
        await self._run("release_turn", id=turn, epoch=epoch)

    # ── inside a write ────────────────────────────────────────────────────────────────────────────

    def _start(self, db: SqlConnection, start: Start) -> Started | None:
        if start.opens is not None:
            self._add_conversation(db, start.opens, start.history)
        sender = self._sender(db, start)
        if start.key is not None:
            self._take_key(db, start.key, start)
        row = self._conversation_row(db, start.conversation)
        conversation = conversation_of(row)
        if db.execute(self._sql["is_removed"], {"id": start.by or conversation.owner}).fetchone() is not None:
            # The user was removed after the request was admitted.
            raise NotFound("person", start.by or conversation.owner)
        message = start.message
        if message is not None and message.parent is None and not start.root:
            message = replace(message, parent=conversation.leaf)
        at = start.again if message is None else message.parent
        leaf = message.id if message is not None else start.again
        if at is not None:
            self._own_message(db, start.conversation, at)
            key = {"conversation": start.conversation, "message": at}
            busy = db.execute(self._sql["live_turn_at"], key).fetchone()
            if start.queue and message is not None:
                # A new message must not overtake queued ones.
                line = busy or db.execute(self._sql["line_at"], key).fetchone()
                if line is not None:
                    self._enqueue(db, start, message, line["id"], sender)
                    return None
            elif busy is not None and not start.parallel:
                raise TurnBusy(busy["id"])
            elif busy is not None:
                leaf = conversation.leaf  # The leaf stays, and moves to the first version that answers.
        if message is not None:
            self._add_message(db, message)
        turn = {
            "id": start.turn,
            "conversation": start.conversation,
            "message": message.id if message is not None else start.again,
            "state": "preparing",
            "owner": self._owner_name,
            "created": start.at,
            "sender": sender,
        }
        db.execute(self._sql["add_turn"], turn)
        db.execute(self._sql["take_out_of_archive"], {"id": start.conversation})
        db.execute(self._sql["add_fact"], {"turn": start.turn, "seq": 1, "epoch": 1, "body": start.fact})
        grown = {"id": start.conversation, "at": start.at, "from": conversation.leaf, "to": leaf}
        db.execute(self._sql["grow_conversation"], grown)
        begun = turn_of(db.execute(self._sql["turn"], {"id": start.turn}).fetchone())
        return Started(begun, conversation, message, int(number_in(row["revision"])) + 1)

    def _sender(self, db: SqlConnection, start: Start) -> str | None:
        """Return the user who sends it, None for the owner. A user who was just removed can start nothing."""
        if start.by is None:
            return None
        self._root(db, start.conversation)
        right = self._right_of(db, start.conversation, start.by)
        if right < Right.TAKE_PART:
            raise NotFound("conversation", start.conversation)
        return None if right is Right.OWN else start.by

    def _take_key(self, db: SqlConnection, key: SendKey, start: Start) -> None:
        """Take the key. If two sends arrive at the same time, the database lets one of them take it."""
        owner = db.execute(self._sql["owner_of"], {"id": start.conversation}).fetchone()
        if owner is None:
            raise NotFound("conversation", start.conversation)
        user = start.by or owner["owner"]
        taken = {"user": user, **asdict(key), "turn": start.turn, "at": start.at}
        if db.execute(self._sql["take_send_key"], taken).fetchone() is None:
            turn = self._turn_of_key(db, user, key)
            assert turn is not None  # Otherwise the key could have been taken.
            raise SentBefore(turn)

    def _turn_of_key(self, db: SqlConnection, user: str, key: SendKey) -> str | None:
        row = db.execute(self._sql["send_key"], {"user": user, "name": key.name}).fetchone()
        if row is None or row["created"] < key.since:
            return None
        if row["sum"] != key.sum:
            raise KeyReused(key.name)
        return str(row["turn"])

    def _enqueue(
        self, db: SqlConnection, start: Start, message: Message, after: str, sender: str | None
    ) -> None:
        body = JSON.dump({"message": MESSAGE.to_json(replace(message, parent=None)), "fact": start.fact})
        row = {"turn": start.turn, "after": after, "conversation": start.conversation, "body": body}
        db.execute(self._sql["enqueue"], {**row, "sender": sender})
        self._mention_blobs(db, "queue", start.turn, start.conversation, body)

    def _append(self, db: SqlConnection, turn: str, epoch: int, seq: int, change: Change) -> None:
        count = len(change.facts)
        moved = {"id": turn, "epoch": epoch, "before": seq - 1, "count": count, "state": change.state}
        if not db.execute(self._sql["move_turn"], moved).rowcount:
            row = db.execute(self._sql["turn"], {"id": turn}).fetchone()
            if row is None or row["epoch"] != epoch:
                raise Fenced(turn, epoch)
            what = f"turn {turn}: what it wrote before this could not be stored"
            raise StoreUnavailable(
                what, "it continues from there when the store is available again", retryable=True
            )
        fact = {"turn": turn, "epoch": epoch}
        facts = [{**fact, "seq": place, "body": body} for place, body in enumerate(change.facts, seq)]
        db.executemany(self._sql["add_fact"], facts)
        for message in change.messages:
            self._add_message(db, message)
        for call in change.made:
            self._add_inner_call(db, change.conversation, call)
        for call in change.calls:
            self._change_call(db, change.conversation, call, change.held.get(call.id))
        for question in change.questions:
            self._add_question(db, question)
        for question_id, why in change.closed.items():
            self._close_question(db, question_id, why)
        for signal in change.signals:
            db.execute(self._sql["drop_signal"], {"seq": signal})
        if not change.steerable:
            if self._has_unread(db, turn, "steer"):
                raise Unread
            db.execute(self._sql["shut_turn"], {"id": turn})
        if not change.live:
            if change.state == "completed" and self._has_unread(db, turn, "cancel"):
                raise Unread
            db.execute(self._sql["end_turn"], {"id": turn})
            db.execute(self._sql["drop_signals"], {"turn": turn})
        self._touch(db, change)

    def _touch(self, db: SqlConnection, change: Change) -> None:
        """Update the conversation's row: its revision, its leaf, its usage."""
        key: dict[str, object] = {"id": change.conversation}
        if change.messages or change.calls or change.made:
            at = max((message.created for message in change.messages), default=0)
            before, to = change.leaf or (None, None)
            db.execute(self._sql["grow_conversation"], {**key, "at": at, "from": before, "to": to})
        if change.usage is not None:
            before = db.execute(self._sql["lock_usage_of"], key).fetchone()["usage"]
            if (usage := added_usage(before, change.usage)) is not None:
                db.execute(self._sql["set_usage"], {**key, "usage": usage})


# ── queued turns ──────────────────────────────────────────────────────────────────────────────────
# The queue holds turns that start when the previous one on their branch is over.


class SqlQueue(SqlTurns):
    async def start_queued(self, turn: str) -> Started | None:
        def write(db: SqlConnection) -> Started | None:
            key = {"turn": turn, "conversation": None}
            if (row := db.execute(self._narrowed("queued", key), key).fetchone()) is None:
                return None
            conversation = row["conversation"]
            # Lock it before the queue, as every writer that locks both does.
            self._conversation_row(db, conversation)
            if (row := db.execute(self._narrowed("lock_queued", key), key).fetchone()) is None:
                return None
            message, fact = _read(row)
            place = {"conversation": conversation, "after": row["after"]}
            parent = db.execute(self._sql["place_in_line"], place).fetchone()["id"]
            at = {"conversation": conversation, "message": parent}
            if (busy := db.execute(self._sql["live_turn_at"], at).fetchone()) is not None:
                db.execute(self._sql["requeue"], {"turn": busy["id"], "after": row["after"]})
                return None
            if self._first_in_line(db, conversation, row["after"]) != turn:
                return None  # A later check starts the turn ahead of this one. This check saw an older queue.
            db.execute(self._sql["dequeue"], {"turn": turn})
            message, by = replace(message, parent=parent), row["sender"]
            if by is not None and self._right_of(db, conversation, by) < Right.TAKE_PART:
                return None  # The sender was removed.
            started = self._start(db, Start(turn, conversation, fact, message.created, message, by=by))
            assert started is not None  # This start does not queue.
            db.execute(self._sql["requeue"], {"turn": turn, "after": row["after"]})
            if (leaf := started.conversation.leaf) != parent:  # The user has switched to another branch.
                db.execute(self._sql["set_leaf"], {"id": conversation, "leaf": leaf, "at": 0, "from": None})
            return started

        return await self._write(write)

    def _first_in_line(self, db: SqlConnection, conversation: str, after: str) -> str | None:
        key = {"turn": None, "conversation": conversation}
        rows = db.execute(self._narrowed("queued", key), key).fetchall()
        line = self._readable(_queued_of, [row for row in rows if row["after"] == after])
        return line[0].turn if line else None

    async def is_queued(self, turn: str) -> bool:
        return bool(await self._all("queued", turn=turn, conversation=None))

    async def queued(self, *, turn: str | None = None, conversation: str | None = None) -> list[Queued]:
        return self._readable(_queued_of, await self._all("queued", turn=turn, conversation=conversation))

    async def unqueue(self, turn: str) -> bool:
        return await self._take_back("dequeue", turn=turn)

    async def change_queued(self, turn: str, parts: Sequence[Part]) -> bool:
        def write(db: SqlConnection) -> bool:
            key = {"turn": turn, "conversation": None}
            if (row := db.execute(self._narrowed("lock_queued", key), key).fetchone()) is None:
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
            # Lock it before the queue, as every writer that locks both does.
            self._conversation_row(db, conversation)
            key = {"turn": None, "conversation": conversation}
            for row in db.execute(self._narrowed("lock_queued", key), key).fetchall():
                with suppress(Unreadable):  # An unreadable turn never starts.
                    message, fact = _read(row)
                    body = JSON.dump({"message": MESSAGE.to_json(message), "fact": renew(fact)})
                    db.execute(self._sql["change_queued"], {"turn": row["turn"], "body": body})

        if await self.queued(conversation=conversation):
            await self._write(write)

    async def reorder_queue(self, conversation: str, turns: Sequence[str]) -> None:
        def write(db: SqlConnection) -> None:
            key = {"turn": None, "conversation": conversation}
            rows = db.execute(self._narrowed("lock_queued", key), key).fetchall()
            wanted = {turn: place for place, turn in enumerate(turns)}
            # The others keep their order.
            ordered = sorted(rows, key=lambda row: wanted.get(row["turn"], len(wanted)))
            for row in ordered:
                db.execute(self._sql["dequeue"], {"turn": row["turn"]})
                db.execute(self._sql["enqueue"], dict(row))

        await self._write(write)

    async def queue_marks(self, conversations: Sequence[str]) -> dict[str, str]:
        rows = await self._all("queue_marks", ids=json.dumps(list(conversations)))
        return {row["conversation"]: f"{row['count']} {row['places']} {row['size']}" for row in rows}

    async def queue(self, conversation: str | None = None) -> list[str]:
        rows = await self._all("queue", conversation=conversation)
        return [one.turn for one in self._readable(_queued_of, rows)]


def _queued_of(row: Row) -> Queued:
    return Queued(row["turn"], row["conversation"], *_read(row), row["sender"])


def _read(row: Row) -> tuple[Message, str]:
    """Return the message and the first fact of a queued turn."""
    body = load(JSON, "queued turn", row["turn"], row["body"])
    try:
        return MESSAGE.from_json(body["message"]), str(body["fact"])
    except (KeyError, ValueError) as error:
        raise Unreadable("queued turn", row["turn"], "it has no message") from error
