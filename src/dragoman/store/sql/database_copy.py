"""Copy a whole database to another, row by row, between any engines."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from pydantic import JsonValue

from dragoman.errors import BadRequest, ConfigError, NotFound, Unreadable
from dragoman.store.sql.database import Row, SqlConnection, SqlDatabase
from dragoman.store.sql.texts import without_nul

Values = dict[str, Any]
Progress = Callable[[str, int], None]  # called with the item being copied and its count so far

# Tables in the order of their references, each with the key that identifies and orders its rows.
_TABLES: dict[str, tuple[str, ...]] = {
    "conversations": ("created", "id"),
    "messages": ("seq",),
    "turns": ("created", "id"),
    "calls": ("id",),
    "facts": ("turn", "seq"),
    "ratings": ("turn", "user"),
    "questions": ("place",),
    "signals": ("seq",),
    "queue": ("seq",),
    "grants": ("id",),
    "members": ("conversation", "user"),
    "shares": ("id",),
    "pins": ("user", "tool"),
    "people": ("name",),
    "identities": ("issuer", "subject"),
    "removed_people": ("name",),
    "team_members": ("name", "person"),
    "audit": ("seq",),
    "prompts": ("user", "name"),
    "blob_references": ("blob", "noun", "owner"),
    "uploads": ("blob", "user"),
    "files": ("id",),
    "past_spending": ("day", "person", "model", "agent", "tool"),
    "provider_files": ("account", "id"),
    "ended_sessions": ("id",),
    "send_keys": ("user", "name"),
    "native_models": ("model",),
    "unwanted_blobs": ("blob",),
    "texts": ("id",),
}
_QUESTION = "id, conversation, turn, call, open, body"  # Each engine numbers them separately.
_COUNTED = ("messages", "signals", "queue", "texts", "audit")  # tables with numbers given out by the database
_AT_ONCE = 500  # rows per batch


async def copy_store(
    source: SqlDatabase, target: SqlDatabase, progress: Progress = lambda *_: None
) -> list[str]:
    """Copy everything, including queued turns. Running turns have no owner in the copy and are resumed there.

    Existing rows in the target stay, so an interrupted copy can be repeated. At the end, each row is
    compared. Raise ConfigError if one is missing or differs. Return the unreadable attachments, which are not
    copied: earlier damage must not stop the rest.
    """
    for database in (source, target):
        await refuse_running(database)
    await _refuse_others(source, target)
    for table, key in _TABLES.items():
        count = 0
        async for rows in _pages(source, table, key):
            await _add(target, table, [_alone(table, _fresh(table, row)) for row in rows])
            count += len(rows)
            progress(table, count)
    await _join_conversations(source, target)
    lost = await copy_blobs(source, target, progress)
    await target._write(lambda db: target._advance_sequences(db, _COUNTED))
    await _compare(source, target, progress)
    return lost


async def refuse_running(database: SqlDatabase) -> None:
    """Raise BadRequest if another process has the database open and could write meanwhile."""
    if await database._read(database._other_owners):
        raise BadRequest("Another program has the store open. Stop it, then copy the store.")


async def copy_blobs(
    source: SqlDatabase, target: SqlDatabase, progress: Progress = lambda *_: None
) -> list[str]:
    """Copy only the attachments and check each. Return those that are unreadable or missing."""
    lost, copied = list[str](), set[str]()
    async for blob in source._blobs.keys():
        try:
            await target._blobs.put(await source._blobs.read(blob))
            copied.add(blob)
        except (NotFound, Unreadable):
            lost.append(blob)
        progress("attachments", len(copied))
    async for rows in _pages(source, "blob_references", _TABLES["blob_references"]):
        mentioned = dict.fromkeys(row["blob"] for row in rows)
        lost += [blob for blob in mentioned if blob not in copied and blob not in lost]
    return lost


def _alone(table: str, row: Values) -> Values:
    """Return a conversation without its parent, which may be copied later."""
    return {**row, "parent": None} if table == "conversations" else row


async def _join_conversations(source: SqlDatabase, target: SqlDatabase) -> None:
    text = "UPDATE conversations SET parent = :parent WHERE id = :id"
    async for rows in _pages(source, "conversations", _TABLES["conversations"]):
        inner = [{"id": row["id"], "parent": row["parent"]} for row in rows if row["parent"] is not None]
        if inner:
            await target._write(partial(_run_many, text, inner))


def _run_many(text: str, rows: Sequence[Values], db: SqlConnection) -> int:
    return db.executemany(text, rows).rowcount


async def _refuse_others(source: SqlDatabase, target: SqlDatabase) -> None:
    """Refuse a target with rows from anything except an earlier copy: numbers would collide."""
    for table, key in (("conversations", ("created", "id")), ("people", ("name",))):
        ours, theirs = [await _hashes(database, table, key) for database in (source, target)]
        if theirs.keys() - ours.keys():
            raise BadRequest(f"The target has {table} that are not in the source. Name an empty one.")


async def _pages(database: SqlDatabase, table: str, key: Sequence[str]) -> AsyncIterator[list[Values]]:
    """Yield all rows in order, in batches."""
    places = [database._question_order] if table == "questions" else [f'"{name}"' for name in key]
    what = f"{_QUESTION}, {places[0]} AS place" if table == "questions" else "*"
    where = "message IS NOT NULL" if table == "texts" else "1 = 1"  # Skip leftovers of deleted messages.
    order, after = ", ".join(places), dict[str, object]()
    while True:
        beyond = f" AND ({order}) > ({', '.join(f':{name}' for name in key)})" if after else ""
        text = f"SELECT {what} FROM {table} WHERE {where}{beyond} ORDER BY {order} LIMIT {_AT_ONCE}"
        found = await database._read(partial(_fetch, text, after))
        if not found:
            return
        rows = [{name: row[name] for name in row.keys()} for row in found]  # noqa: SIM118 - by name
        yield rows
        after = {name: rows[-1][name] for name in key}


def _fetch(text: str, key: Mapping[str, object], db: SqlConnection) -> list[Any]:
    return db.execute(text, key).fetchall()


async def _add(database: SqlDatabase, table: str, rows: Sequence[Values]) -> None:
    columns = [name for name in rows[0] if name != "place"]
    names, values = ", ".join(f'"{name}"' for name in columns), ", ".join(f":{name}" for name in columns)
    text = f"INSERT INTO {table} ({names}){database._explicit_ids} VALUES ({values}) ON CONFLICT DO NOTHING"
    await database._write(partial(_run_many, text, rows))


def _fresh(table: str, row: Values) -> Values:
    """Return a row for the copy: damaged bytes become text, and turns have no owner."""
    text = {
        name: value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        for name, value in row.items()
    }
    return {**text, "owner": None} if table == "turns" else text


async def _compare(source: SqlDatabase, target: SqlDatabase, progress: Progress) -> None:
    for table, key in _TABLES.items():
        progress(f"checking {table}", 0)
        wanted, there = [await _hashes(database, table, key) for database in (source, target)]
        wrong = [known for known, hash in wanted.items() if there.get(known) != hash]
        if wrong:
            raise ConfigError(
                f"The copy differs in {len(wrong)} rows of {table}, such as {wrong[0]}. "
                "If a process wrote meanwhile, copy again, into an empty database."
            )


async def _hashes(database: SqlDatabase, table: str, key: Sequence[str]) -> dict[tuple[str, ...], bytes]:
    hashes: dict[tuple[str, ...], bytes] = {}
    known_by = ("id",) if table == "questions" else key
    async for rows in _pages(database, table, key):
        for row in rows:
            values = sorted(_fresh(table, row).items())
            text = "\0".join(f"{name}={without_nul(value)}" for name, value in values if name != "place")
            hash = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
            hashes[tuple(str(row[name]) for name in known_by)] = hash[:16]
    return hashes


# Exports a conversation's stored rows, in order to rescue a damaged conversation.


_FORMAT = "dragoman.rows/1"
_OF_A_CONVERSATION = (
    "conversations",
    "messages",
    "calls",
    "turns",
    "facts",
    "questions",
    "signals",
    "queue",
    "grants",
    "members",
)


class SqlRaw(SqlDatabase):
    async def export_raw(self, conversation: str) -> dict[str, JsonValue]:
        def read(db: SqlConnection) -> dict[str, JsonValue]:
            key = {"id": conversation}
            with self._snapshot(db):
                rows = {
                    table: db.execute(self._sql[f"raw_{table}"], key).fetchall()
                    for table in _OF_A_CONVERSATION
                }
            return {table: [_columns(row) for row in found] for table, found in rows.items()}

        tables = await self._read(read, slow=True)
        if not tables["conversations"]:
            raise NotFound("conversation", conversation)
        return {"format": _FORMAT, "tables": tables}


def _columns(row: Row) -> dict[str, JsonValue]:
    return {name: _json(row[name]) for name in row.keys()}  # noqa: SIM118 - a row iterates over its values


def _json(value: str | int | float | bytes | None) -> JsonValue:
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value
