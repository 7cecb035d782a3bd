"""A conversation's rows as the database has them: how a damaged one is taken out of the store."""

from __future__ import annotations

import base64

from pydantic import JsonValue

from dragoman.errors import NotFound
from dragoman.store.sql.database import Row, SqlConnection, SqlDatabase

_FORMAT = "dragoman.rows/1"
_TABLES = ("conversations", "messages", "calls", "turns", "facts", "questions", "signals", "queue", "grants")


class SqlRaw(SqlDatabase):
    async def export_raw(self, conversation: str) -> dict[str, JsonValue]:
        def read(db: SqlConnection) -> dict[str, JsonValue]:
            key = {"id": conversation}
            with self._snapshot(db):
                rows = {table: db.execute(self._sql[f"raw_{table}"], key).fetchall() for table in _TABLES}
            return {table: [_columns(row) for row in found] for table, found in rows.items()}

        tables = await self._read(read, slow=True)
        if not tables["conversations"]:
            raise NotFound("conversation", conversation)
        return {"format": _FORMAT, "tables": tables}


def _columns(row: Row) -> dict[str, JsonValue]:
    return {name: _json(row[name]) for name in row.keys()}  # noqa: SIM118 - a row iterates over its values


def _json(value: str | int | float | bytes | None) -> JsonValue:
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value
