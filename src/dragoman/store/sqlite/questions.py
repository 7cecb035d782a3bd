"""Questions, the signals that answer them, and what an answer grants: their part of the SQLite store."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from pydantic import JsonValue

from dragoman.errors import AlreadyAnswered, NotFound
from dragoman.messages.questions import Answer, Grant, Question
from dragoman.store.sqlite.database import Database
from dragoman.store.sqlite.rows import JSON, QUESTION, grant_of
from dragoman.store.store import Signal, SignalKind


class Questions(Database):
    async def question(self, id: str) -> Question:
        return QUESTION.load((await self._one("question", "question", id=id))["body"])

    async def questions(self, *, conversation: str | None = None, user: str | None = None) -> list[Question]:
        rows = await self._all("open_questions", conversation=conversation, user=user)
        return [QUESTION.load(body) for (body,) in rows]

    async def questions_of(self, turn: str) -> list[Question]:
        return [QUESTION.load(body) for (body,) in await self._all("questions_of_turn", turn=turn)]

    async def answer(self, question: str, answer: Answer, grants: Sequence[Grant] = ()) -> Question:
        def write(db: sqlite3.Connection) -> Question:
            row = db.execute(self._sql["question"], {"id": question}).fetchone()
            if row is None:
                raise NotFound("question", question)
            asked = QUESTION.load(row["body"])
            if asked.answer is not None or asked.closed is not None:
                how = asked.answer.verdict if asked.answer else asked.closed
                raise AlreadyAnswered(question, str(how))
            settled = replace(asked, answer=answer)
            body = QUESTION.dump(settled)
            db.execute(self._sql["settle_question"], {"id": question, "body": body})
            signal = JSON.dump({"question": question})
            db.execute(self._sql["add_signal"], {"turn": asked.turn, "kind": "answer", "body": signal})
            for grant in grants:
                self._add_grant(db, grant)
            return settled

        return await self._writer.submit(write)

    async def post(self, turn: str, kind: SignalKind, body: dict[str, JsonValue]) -> bool:
        def write(db: sqlite3.Connection) -> bool:
            row = db.execute(self._sql["turn"], {"id": turn}).fetchone()
            if row is None:
                raise NotFound("turn", turn)
            if not row["live"] or (kind == "steer" and not row["steerable"]):
                return False
            if kind == "result":
                self._first_result(db, turn, body["call"])
            text = JSON.dump(body)
            db.execute(self._sql["add_signal"], {"turn": turn, "kind": kind, "body": text})
            return True

        return await self._writer.submit(write)

    async def signals(self, turn: str) -> list[Signal]:
        rows = await self._all("signals", turn=turn)
        return [Signal(row["seq"], row["kind"], JSON.load(row["body"])) for row in rows]

    async def turns_with_signals(self) -> list[str]:
        return [turn for (turn,) in await self._all("turns_with_signals")]

    async def grants(self, conversation: str | None = None, *, user: str | None = None) -> list[Grant]:
        rows = await self._all("grants", conversation=conversation, user=user)
        return [grant_of(row) for row in rows]

    async def revoke(self, grant: str) -> None:
        await self._change("grant", grant, "revoke_grant")

    # ── what runs in the writer's thread ──────────────────────────────────────────────────────────

    def _first_result(self, db: sqlite3.Connection, turn: str, call: JsonValue) -> None:
        if db.execute(self._sql["delivered"], {"turn": turn, "call": call}).fetchone() is not None:
            raise AlreadyAnswered(str(call), "there is a result already")

    def _add_question(self, db: sqlite3.Connection, question: Question) -> None:
        row = {
            "id": question.id,
            "conversation": question.conversation,
            "turn": question.turn,
            "call": question.call,
            "body": QUESTION.dump(question),
        }
        db.execute(self._sql["add_question"], row)

    def _close_question(self, db: sqlite3.Connection, id: str, why: str) -> None:
        row = db.execute(self._sql["question"], {"id": id}).fetchone()
        if row is None:
            raise NotFound("question", id)
        question = QUESTION.load(row["body"])
        if question.answer is None:
            body = QUESTION.dump(replace(question, closed=why))
            db.execute(self._sql["settle_question"], {"id": id, "body": body})

    def _add_grant(self, db: sqlite3.Connection, grant: Grant) -> None:
        row = {
            "id": grant.id,
            "conversation": grant.conversation,
            "permission": grant.rule.permission,
            "pattern": grant.rule.pattern,
            "action": grant.rule.action,
            "created": grant.created,
            "user": grant.user,
            "workspace": grant.workspace,
        }
        db.execute(self._sql["add_grant"], row)
