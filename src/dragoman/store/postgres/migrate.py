"""Updates a database schema. If several servers start at the same time, one of them does it."""

from __future__ import annotations

import logging
from importlib.resources import files
from typing import Any

import asyncpg

from dragoman.store.sql.database import SchemaState, numbered, schema_state

_VERSIONS = """
CREATE TABLE IF NOT EXISTS schema_version (
  version  BIGINT PRIMARY KEY,
  applied  TIMESTAMPTZ NOT NULL DEFAULT now()
)"""
_VERSION = "SELECT coalesce(max(version), 0) FROM schema_version"
_INDEX = "CREATE INDEX IF NOT EXISTS texts_by_trigram ON texts USING gin (lower(text) gin_trgm_ops)"
_MIGRATIONS = files("dragoman.store.postgres") / "sql" / "migrations"
_log = logging.getLogger("dragoman.store")


async def look(db: asyncpg.Connection[Any], schema: str) -> SchemaState:
    """Return the pending steps without changing anything."""
    there = await db.fetchval(
        "SELECT 1 FROM pg_tables WHERE schemaname = $1 AND tablename = 'schema_version'", schema
    )
    version = await db.fetchval(_VERSION) if there else 0
    return schema_state(_MIGRATIONS, version)


async def migrate(db: asyncpg.Connection[Any], schema: str) -> None:
    """Run one step after another, each in a separate transaction."""
    lock = f"dragoman migration {schema}"
    await db.execute("SET statement_timeout = 0")  # A large table takes long.
    await db.execute("SELECT pg_advisory_lock(hashtextextended($1, 0))", lock)
    try:
        if not await db.fetchval("SELECT 1 FROM pg_namespace WHERE nspname = $1", schema):
            await db.execute(f'CREATE SCHEMA "{schema}"')
        # If a server looked up the path while another created the schema, it may have cached a path without
        # it, and would create the tables in `public`. Setting the path clears that cache.
        await db.execute("SELECT set_config('search_path', current_setting('search_path'), false)")
        await db.execute(_VERSIONS)
        version = schema_state(_MIGRATIONS, await db.fetchval(_VERSION)).version
        for number, script in numbered(_MIGRATIONS):
            if number > version:
                async with db.transaction():
                    await db.execute(script)
                    await db.execute("INSERT INTO schema_version (version) VALUES ($1)", number)
        await _index(db)
    finally:
        await db.execute("SELECT pg_advisory_unlock(hashtextextended($1, 0))", lock)


async def _index(db: asyncpg.Connection[Any]) -> None:
    """Create a search index if the server supports it. Without it, searches are slow but correct."""
    try:
        await db.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA public")
        await db.execute(_INDEX)
    except asyncpg.PostgresError as error:
        _log.warning("searches have no index, and are slow: %s", error)
