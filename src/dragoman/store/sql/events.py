"""Live events: rows that a turn's owner writes while another process follows it."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.errors import NotFound
from dragoman.store.sql.database import SqlConnection, SqlDatabase


class SqlEvents(SqlDatabase):
    async def put_events(self, turn: str, events: Sequence[tuple[int, str]]) -> None:
        rows = [{"turn": turn, "seq": seq, "body": body} for seq, body in events]

        def write(db: SqlConnection) -> None:
            if db.execute(self._sql["turn"], {"id": turn}).fetchone() is None:
                raise NotFound("turn", turn)
            db.executemany(self._sql["put_event"], rows)

        await self._write(write)

    async def events(self, turn: str, after: int = 0, limit: int = 1000) -> list[tuple[int, str]]:
        rows = await self._all("events", turn=turn, after=after, limit=limit)
        return [(row["seq"], row["body"]) for row in rows]

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
