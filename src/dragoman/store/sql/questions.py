"""Questions and grants: written with a turn's facts, answered once, with a signal to the turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dragoman.errors import AlreadyAnswered, NotFound, Unreadable
from dragoman.messages.questions import Answer, Grant, Question
from dragoman.store.codecs import QUESTION
from dragoman.store.sql.database import SqlConnection
from dragoman.store.sql.rows import grant_of, grant_row, question_of
from dragoman.store.sql.signals import SqlSignals


class SqlQuestions(SqlSignals):
    async def question(self, id: str) -> Question:
        return question_of(await self._one("question", "question", id=id))

    async def conversation_of_question(self, id: str) -> str:
        return str((await self._one("conversation_of_question", "question", id=id))["conversation"])

    async def questions(self, *, conversation: str | None = None, user: str | None = None) -> list[Question]:
        rows = await self._all("open_questions", conversation=conversation, user=user)
        return self._readable(question_of, rows)

    async def questions_of(self, turn: str) -> list[Question]:
        return self._readable(question_of, await self._all("questions_of_turn", turn=turn))

    async def answer(self, question: str, answer: Answer, grants: Sequence[Grant] = ()) -> Question:
        def write(db: SqlConnection) -> Question:
            asked = self._question(db, question)
            if asked.answer is not None or asked.closed is not None:
                how = asked.answer.verdict if asked.answer else asked.closed
                raise AlreadyAnswered(question, str(how))
            self._refuse_if_cancelled(db, asked.turn, question)
            settled = replace(asked, answer=answer)
            if answer.verdict == "withhold":
                settled = replace(settled, result=None)  # nobody is to reach it any more
            db.execute(self._sql["settle_question"], {"id": question, "body": QUESTION.dump(settled)})
            self._add_signal(db, asked.turn, asked.conversation, "answer", {"question": question})
            for grant in grants:
                db.execute(self._sql["add_grant"], grant_row(grant))
            return settled

        return await self._write(write)

    async def grants(self, conversation: str | None = None, *, user: str | None = None) -> list[Grant]:
        return self._readable(grant_of, await self._all("grants", conversation=conversation, user=user))

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
        except Unreadable:  # it must not stop its turn from ending
            db.execute(self._sql["close_unreadable_question"], {"id": id})
            return
        if question.answer is None:
            body = QUESTION.dump(replace(question, closed=why))
            db.execute(self._sql["settle_question"], {"id": id, "body": body})
