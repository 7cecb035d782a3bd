"""Live events: rows that the owners of turns write while another process follows them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from dragoman.store.sql.database import SqlConnection, SqlDatabase
from dragoman.store.turns import StoredEvent


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
        """Those that nobody else will drop: who ran the turn is gone. A turn at a time, so that whoever else
        writes need not wait for all of them."""

        def left_behind(db: SqlConnection) -> list[str]:
            rows = db.execute(self._sql["turns_with_ended_events"]).fetchall()
            return [row["id"] for row in rows if not row["owner"] or not self._is_alive(db, row["owner"])]

        for turn in await self._read(left_behind):
            await self.drop_events(turn)
