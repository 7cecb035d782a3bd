"""Signals: rows that anybody writes for a turn, from any process, and its owner reads."""

from __future__ import annotations

import json
from collections.abc import Collection

from pydantic import JsonValue

from dragoman.errors import AlreadyAnswered, NotFound
from dragoman.store.codecs import JSON
from dragoman.store.questions import Signal, SignalKind, Signalled
from dragoman.store.sql.database import Row, SqlConnection, SqlDatabase
from dragoman.store.sql.rows import load


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
        return bool(await self._run("withdraw_steering", turn=turn, seq=signal))

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
        """What comes after a cancel, also one that the turn has not heard of yet, moves nothing any more."""
        if self._has_unread(db, turn, "cancel"):
            raise AlreadyAnswered(asked, "its turn is cancelled")

    def _has_unread(self, db: SqlConnection, turn: str, *kinds: SignalKind) -> bool:
        """One that nobody can read does not count."""
        return any(one.kind in kinds for one in self._signals(db, turn))

    def _signals(self, db: SqlConnection, turn: str) -> list[Signal]:
        return self._readable(_signal_of, db.execute(self._sql["signals"], {"turn": turn}).fetchall())

    def _is_followed(self, db: SqlConnection, turn: str) -> bool:
        return db.execute(self._sql["followed"], {"turn": turn}).fetchone() is not None


def _signal_of(row: Row) -> Signal:
    return Signal(row["seq"], row["kind"], load(JSON, "signal", str(row["seq"]), row["body"]))
