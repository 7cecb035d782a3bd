"""The store in PostgreSQL: the suite every store must pass, and what is PostgreSQL's own (S2, N1)."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

from dragoman.store.conformance import Noun, StoreConformance
from dragoman.store.postgres import PostgresStore
from dragoman.store.store import Store
from tests.postgres import Server, schema_of

pytestmark = pytest.mark.slow

DAMAGE: dict[Noun, str] = {
    "conversation": "UPDATE conversations SET settings = '{\"mode\": ' WHERE id = $1",
    "message": "UPDATE messages SET body = substr(body, 1, 40) WHERE id = $1",
    "call": 'UPDATE calls SET body = \'{"type":"song"}\' WHERE id = $1',
    "question": "UPDATE questions SET body = '?' WHERE id = $1",
    "grant": "UPDATE grants SET action = 'allwo' WHERE id = $1",
    "fact": "UPDATE facts SET body = '{' WHERE turn = $1 AND seq = (SELECT facts FROM turns WHERE id = $1)",
    "signal": "UPDATE signals SET body = '[]' WHERE turn = $1",
    "queued turn": "UPDATE queue SET body = '{}' WHERE turn = $1",
}


class TestPostgres(StoreConformance):
    server: ClassVar[Server]

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _served(cls, postgres: Server) -> None:
        cls.server = postgres

    async def make(self, folder: Path) -> Store:
        return PostgresStore(self.server.url(schema_of(folder)))

    async def damage(self, folder: Path, noun: Noun, id: str) -> None:
        import asyncpg

        schema = schema_of(folder)
        url = self.server.url(schema).partition("&schema")[0]
        db = await asyncpg.connect(url, server_settings={"search_path": schema})
        try:
            assert await db.execute(DAMAGE[noun], id) == "UPDATE 1"
        finally:
            await db.close()
