"""Live events: rows that a turn's owner writes while another process follows it."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.errors import NotFound
from dragoman.store.sql.database import Connection, SqlDatabase


class SqlEvents(SqlDatabase):
    async def put_events(self, turn: str, events: Sequence[tuple[int, str]]) -> None:
        rows = [{"turn": turn, "seq": seq, "body": body} for seq, body in events]

        def write(db: Connection) -> None:
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
        """A turn at a time: whoever else writes need not wait for all of them."""
        for row in await self._all("turns_with_ended_events"):
            await self.drop_events(row["turn"])
