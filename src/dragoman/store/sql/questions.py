"""Implements questions and grants: written with a turn's facts, answered once, with a signal to the turn."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from pydantic import JsonValue

from dragoman.conversation.sharing import Right
from dragoman.errors import AlreadyAnswered, Forbidden, NotFound, Unreadable
from dragoman.messages.questions import Answer, Grant, Question, Rule
from dragoman.sentences import sentence
from dragoman.store.codecs import JSON, QUESTION
from dragoman.store.sql.database import Row, SqlConnection, SqlDatabase
from dragoman.store.sql.rows import grant_of, grant_row, load, question_of
from dragoman.store.sql.sharing import SqlSharing
from dragoman.store.turns import Signal, SignalKind, Signalled, StoredEvent

# ── signals ───────────────────────────────────────────────────────────────────────────────────────
# Signals are rows for a turn that any process can write and its owner reads.


class SqlSignals(SqlDatabase):
    async def post(self, turn: str, kind: SignalKind, body: dict[str, JsonValue]) -> bool:
        def write(db: SqlConnection) -> bool:
            row = db.execute(self._sql["lock_turn"], {"id": turn}).fetchone()
            if row is None:
                raise NotFound("turn", turn)
            if not row["live"] or (kind == "steer" and not row["steerable"]):
                return False
            if kind == "result":
                self._first_result(db, turn, body["call"])
            if kind != "follow" or not self._is_followed(db, turn):
                self._add_signal(db, turn, row["conversation"], kind, body)
            return True

        return await self._write(write)

    async def signals(self, turn: str) -> list[Signal]:
        return self._readable(_signal_of, await self._all("signals", turn=turn))

    async def withdraw_steering(self, turn: str, signal: int) -> bool:
        return await self._take_back("withdraw_steering", turn=turn, seq=signal)

    async def turns_with_signals(self, *, own: Collection[str] | None = None) -> list[Signalled]:
        if own is None:
            rows = await self._all("turns_with_signals")
        else:
            rows = await self._all("turns_with_signals_for", own=json.dumps(list(own)))
        return [Signalled(row["turn"], row["newest"], bool(row["only_followed"])) for row in rows]

    # ── inside a write ────────────────────────────────────────────────────────────────────────────

    def _add_signal(
        self,
        db: SqlConnection,
        turn: str,
        conversation: str,
        kind: SignalKind,
        body: dict[str, JsonValue],
    ) -> None:
        row = {"turn": turn, "kind": kind, "body": JSON.dump(body)}
        db.execute(self._sql["add_signal"], row)
        self._mention_blobs(db, "signal", turn, conversation, row["body"])

    def _first_result(self, db: SqlConnection, turn: str, call: JsonValue) -> None:
        self._refuse_if_cancelled(db, turn, str(call))
        waiting = (one for one in self._signals(db, turn) if one.kind == "result")
        taken = db.execute(self._sql["call_not_running"], {"id": call}).fetchone() is not None
        if taken or any(one.body.get("call") == call for one in waiting):
            raise AlreadyAnswered(str(call), "there is a result already")

    def _refuse_if_cancelled(self, db: SqlConnection, turn: str, asked: str) -> None:
        """Raise AlreadyAnswered after a cancel, even one the turn has not read yet: nothing later has an
        effect."""
        if self._has_unread(db, turn, "cancel"):
            raise AlreadyAnswered(asked, "its turn is cancelled")

    def _has_unread(self, db: SqlConnection, turn: str, *kinds: SignalKind) -> bool:
        """Return whether such a signal is unread. Unreadable signals do not count."""
        return any(one.kind in kinds for one in self._signals(db, turn))

    def _signals(self, db: SqlConnection, turn: str) -> list[Signal]:
        return self._readable(_signal_of, db.execute(self._sql["signals"], {"turn": turn}).fetchall())

    def _is_followed(self, db: SqlConnection, turn: str) -> bool:
        return db.execute(self._sql["followed"], {"turn": turn}).fetchone() is not None


def _how(asked: Question) -> str:
    """Describe the decision and its author."""
    if asked.answer is None:
        return str(asked.closed)
    by = asked.answer.by
    return sentence("question.how", verdict=asked.answer.verdict, user=by) if by else asked.answer.verdict


def _signal_of(row: Row) -> Signal:
    return Signal(row["seq"], row["kind"], load(JSON, "signal", str(row["seq"]), row["body"]))


class SqlQuestions(SqlSignals, SqlSharing):
    async def question(self, id: str) -> Question:
        return question_of(await self._one("question", "question", id=id))

    async def conversation_of_question(self, id: str) -> str:
        return str((await self._one("conversation_of_question", "question", id=id))["conversation"])

    async def questions(
        self,
        *,
        conversation: str | None = None,
        user: str | None = None,
        after: str | None = None,
        limit: int = 2**31,
        shared: bool = False,
    ) -> list[Question]:
        key = {"conversation": conversation, "user": user, "after": after, "limit": limit}
        rows = await self._all("open_questions", **key)
        if shared and user is not None and conversation is None:
            rows += await self._all("shared_questions", **key)
            rows = sorted(rows, key=lambda row: int(row["place"]))[:limit]
        return self._readable(question_of, rows)

    async def questions_of(self, turn: str) -> list[Question]:
        return self._readable(question_of, await self._all("questions_of_turn", turn=turn))

    async def answer(
        self, question: str, answer: Answer, grants: Sequence[Grant] = (), *, by: str | None = None
    ) -> Question:
        def write(db: SqlConnection) -> Question:
            asked = self._question(db, question)
            if by is not None and self._right_of(db, asked.conversation, by) < Right.ANSWER:
                raise Forbidden(sentence("share.answer"))
            if asked.answer is not None or asked.closed is not None:
                raise AlreadyAnswered(question, _how(asked))
            self._refuse_if_cancelled(db, asked.turn, question)
            settled = replace(asked, answer=answer)
            if answer.verdict == "withhold":
                settled = replace(settled, result=None)  # The result must not be accessible afterwards.
            db.execute(self._sql["settle_question"], {"id": question, "body": QUESTION.dump(settled)})
            self._add_signal(db, asked.turn, asked.conversation, "answer", {"question": question})
            for grant in grants:
                db.execute(self._sql["add_grant"], grant_row(grant))
            return settled

        return await self._write(write)

    async def grants(self, conversation: str | None = None, *, user: str | None = None) -> list[Grant]:
        sender, user = (user, None) if conversation is not None else (None, user)
        key = {"conversation": conversation, "user": user, "sender": sender}

        def read(db: SqlConnection) -> list[Grant]:
            held = db.execute(self._narrowed("grants", key), key).fetchall()
            # Last, so that nothing overrides it.
            denied = db.execute(self._sql["removed_sender"], key).fetchall()
            return [*self._readable(grant_of, held), *(_denial(row) for row in denied)]

        return await self._read(read)

    async def add_grant(self, grant: Grant) -> None:
        def write(db: SqlConnection) -> None:
            db.execute(self._sql["add_grant"], grant_row(grant))

        await self._write(write)

    async def revoke(self, grant: str) -> None:
        await self._change("grant", grant, "revoke_grant")

    # ── inside a write ────────────────────────────────────────────────────────────────────────────

    def _question(self, db: SqlConnection, id: str) -> Question:
        row = db.execute(self._sql["lock_question"], {"id": id}).fetchone()
        if row is None:
            raise NotFound("question", id)
        return question_of(row)

    def _add_question(self, db: SqlConnection, question: Question) -> None:
        row = {
            "id": question.id,
            "conversation": question.conversation,
            "turn": question.turn,
            "call": question.call,
            "body": QUESTION.dump(question),
        }
        db.execute(self._sql["add_question"], row)
        self._mention_blobs(db, "question", question.id, question.conversation, row["body"])

    def _close_question(self, db: SqlConnection, id: str, why: str) -> None:
        try:
            question = self._question(db, id)
        except Unreadable:  # It must not keep its turn from ending.
            db.execute(self._sql["close_unreadable_question"], {"id": id})
            return
        if question.answer is None:
            body = QUESTION.dump(replace(question, closed=why))
            db.execute(self._sql["settle_question"], {"id": id, "body": body})


# ── events ────────────────────────────────────────────────────────────────────────────────────────
# Live events are rows that owners of turns write while another process follows them.


class SqlEvents(SqlDatabase):
    async def put_events(self, events: Sequence[StoredEvent], epochs: Mapping[str, int]) -> None:
        def write(db: SqlConnection) -> None:
            turns = json.dumps(sorted(epochs))
            found = {row["id"]: row["epoch"] for row in db.execute(self._sql["epochs"], {"turns": turns})}
            ours = [event._asdict() for event in events if found.get(event.turn) == epochs[event.turn]]
            db.execute(self._sql["put_events"], {"events": json.dumps(ours)})
            self._announce_events(db)

        if events:
            await self._write(write)

    async def events(self, after: Mapping[str, int], limit: int = 1000) -> list[StoredEvent]:
        if not after:
            return []
        rows = await self._all("events", after=json.dumps(dict(after)), limit=limit)
        return [StoredEvent(row["turn"], row["seq"], row["body"]) for row in rows]

    async def drop_events(self, turn: str) -> None:
        await self._run("drop_events", turn=turn)

    async def _drop_ended_events(self) -> None:
        """Delete events whose turns have no live owner left to delete them.

        One turn at a time, so that other writers need not wait for all of them.
        """

        def left_behind(db: SqlConnection) -> list[str]:
            rows = db.execute(self._sql["turns_with_ended_events"]).fetchall()
            return [row["id"] for row in rows if not row["owner"] or not self._is_alive(db, row["owner"])]

        for turn in await self._read(left_behind):
            await self.drop_events(turn)


def _denial(row: Row) -> Grant:
    """Return the denial of everything for a removed user in the remaining conversation."""
    return Grant("removed", Rule("*", "*", "deny"), row["id"], user=row["user"])
