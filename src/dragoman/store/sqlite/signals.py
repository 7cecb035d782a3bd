"""Signals in SQLite: rows that anybody writes for a turn, from any process, and its owner reads."""

from __future__ import annotations

import sqlite3

from pydantic import JsonValue

from dragoman.errors import AlreadyAnswered, NotFound
from dragoman.store.codecs import JSON
from dragoman.store.questions import Signal, SignalKind
from dragoman.store.sqlite.database import Database
from dragoman.store.sqlite.rows import load


class SqliteSignals(Database):
    async def post(self, turn: str, kind: SignalKind, body: dict[str, JsonValue]) -> bool:
        def write(db: sqlite3.Connection) -> bool:
            row = db.execute(self._sql["turn"], {"id": turn}).fetchone()
            if row is None:
                raise NotFound("turn", turn)
            if not row["live"] or (kind == "steer" and not row["steerable"]):
                return False
            if kind == "result":
                self._first_result(db, turn, body["call"])
            if kind != "follow" or not self._is_followed(db, turn):
                self._add_signal(db, turn, row["conversation"], kind, body)
            return True

        return await self._writer.submit(write)

    async def signals(self, turn: str) -> list[Signal]:
        return self._readable(_signal_of, await self._all("signals", turn=turn))

    async def withdraw_steering(self, turn: str, signal: int) -> bool:
        key = {"turn": turn, "seq": signal}
        return bool(
            await self._writer.submit(lambda db: db.execute(self._sql["withdraw_steering"], key).rowcount)
        )

    async def turns_with_signals(self) -> list[str]:
        return [turn for (turn,) in await self._all("turns_with_signals")]

    # ── what runs in the writer's thread ──────────────────────────────────────────────────────────

    def _add_signal(
        self,
        db: sqlite3.Connection,
        turn: str,
        conversation: str,
        kind: SignalKind,
        body: dict[str, JsonValue],
    ) -> None:
        row = {"turn": turn, "kind": kind, "body": JSON.dump(body)}
        db.execute(self._sql["add_signal"], row)
        self._mention_blobs(db, "signal", turn, conversation, row["body"])

    def _first_result(self, db: sqlite3.Connection, turn: str, call: JsonValue) -> None:
        if db.execute(self._sql["delivered"], {"turn": turn, "call": call}).fetchone() is not None:
            raise AlreadyAnswered(str(call), "there is a result already")

    def _is_followed(self, db: sqlite3.Connection, turn: str) -> bool:
        return db.execute(self._sql["followed"], {"turn": turn}).fetchone() is not None


def _signal_of(row: sqlite3.Row) -> Signal:
    return Signal(row["seq"], row["kind"], load(JSON, "signal", str(row["seq"]), row["body"]))
