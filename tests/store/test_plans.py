"""A statement for one user, one turn or an idle node reads no rows of other users (N1)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, closing
from typing import Any

import asyncpg
import pytest

from dragoman.store.postgres import PostgresStore
from dragoman.store.postgres.bridge import prepared
from dragoman.store.postgres.database import queries as postgres_queries
from dragoman.store.sql.database import narrowed
from dragoman.store.sqlite.readers import queries as sqlite_queries
from dragoman.store.sqlite.readers import schema
from tests.postgres import Server

COUNT, PEOPLE = 20_000, 2_000
FILL = [
    """INSERT INTO conversations (id, title, "user", created, updated)
       SELECT 'conv_' || n, 'the ' || n, 'p' || (n % {people}), n, n FROM {numbers}""",
    """INSERT INTO messages (id, conversation, turn, role, body)
       SELECT 'msg_' || n, 'conv_' || n, 'turn_' || n, 'user', '{{}}' FROM {numbers}""",
    "INSERT INTO texts (message, text) SELECT seq, 'the words of ' || id FROM messages",
    """INSERT INTO turns (id, conversation, message, state, live, created)
       SELECT 'turn_' || n, 'conv_' || n, 'msg_' || n, 'waiting', 1, n FROM {numbers}""",
    "INSERT INTO facts (turn, seq, epoch, body) SELECT id, 1, 1, '{{}}' FROM turns",
    "INSERT INTO events (turn, seq, body) SELECT id, 1, '{{}}' FROM turns",
    """INSERT INTO calls (id, message, turn, tool, state, body)
       SELECT 'call_' || n, 'msg_' || n, 'turn_' || n, 'note', 'asked', '{{}}' FROM {numbers}""",
    """INSERT INTO questions (id, conversation, turn, call, body)
       SELECT 'ask_' || n, 'conv_' || n, 'turn_' || n, 'call_' || n, '{{}}' FROM {numbers}""",
    "INSERT INTO signals (turn, kind, body) SELECT id, 'follow', '{{}}' FROM turns",
    """INSERT INTO grants (id, permission, pattern, action, created, "user")
       SELECT 'grant_' || n, 'shell', '*', 'allow', n, 'p' || (n % {people}) FROM {numbers}""",
    """INSERT INTO members (conversation, "user", role, added_by, added)
       SELECT 'conv_' || n, 'p' || ((n + 1) % {people}), 3, 'p', n FROM {numbers}""",
]
TABLES = {
    "conversations",
    "messages",
    "turns",
    "facts",
    "events",
    "calls",
    "questions",
    "signals",
    "texts",
    "grants",
    "members",
}
PAGE = {"updated": None, "id": None, "pinned": None, "archived": 0, "tag": None, "limit": 50}
ONE = {"id": "conv_7"}
SHARED: list[tuple[str, Mapping[str, Any]]] = [
    ("conversations", {**PAGE, "user": "p7"}),
    ("conversations", {**PAGE, "user": "p7", "updated": 9.0, "id": "conv_9", "tag": '"a"'}),
    ("conversations", {**PAGE, "user": None}),
    ("tags", {"user": "p7"}),
    ("own_messages", {"user": "p7", "limit": 5000}),
    ("conversation", ONE),
    ("messages", {"conversation": "conv_7"}),
    ("calls_of_conversation", {"conversation": "conv_7"}),
    ("live_turns_in", {"conversation": "conv_7"}),
    ("ratings_of_conversation", {"conversation": "conv_7"}),
    ("live_turns_among", {"ids": '["conv_7", "conv_8"]'}),
    ("busy_conversations", {"ids": '["conv_7", "conv_8"]'}),
    ("revisions", {"ids": '["conv_7", "conv_8"]'}),
    ("open_questions", {"conversation": "conv_7", "user": None, "after": None, "limit": 30}),
    ("open_questions", {"conversation": None, "user": "p7", "after": "q_7", "limit": 30}),
    ("grants", {"conversation": "conv_7", "user": None, "sender": "p8"}),
    ("grants", {"conversation": None, "user": "p7", "sender": None}),
    ("right_of", {**ONE, "user": "p8"}),
    ("members", ONE),
    ("shared_conversations", {**PAGE, "user": "p8"}),
    ("shared_tags", {"user": "p8"}),
    ("shared_questions", {"conversation": None, "user": "p8", "after": "q_7", "limit": 30}),
    ("turns_sent_by", {"conversation": "conv_7", "user": "p8"}),
    ("removed_sender", {"conversation": "conv_7", "sender": "p8"}),
    ("is_name_free", {"id": "p7"}),
    ("members_of_team", {"name": "g7"}),
    ("leave_teams", {"id": "p7"}),
    ("live_turns_of_person", {"id": "p7"}),
    ("identity", {"issuer": "https://id.example", "subject": "7"}),
    ("epoch_of_identity", {"id": "p7"}),
    ("claim_turn", {"id": "turn_7", "owner": "me", "epoch": 1}),
    ("moving_turns", {}),
    ("moving_turns_of_people", {}),
    ("events", {"after": '{"turn_7": 0}', "limit": 10}),
    ("epochs", {"turns": '["turn_7"]'}),
    ("within", ONE),
    ("mark_deleted", ONE),
    ("delete_live_turns", ONE),
    ("delete_questions", ONE),
    ("delete_some_turns", {**ONE, "limit": 100}),
    ("take_off_some_messages", {**ONE, "limit": 100}),
    ("delete_turns_at_some_messages", {**ONE, "limit": 100}),
    ("delete_some_messages", {**ONE, "limit": 100}),
    ("deleted_conversations", {}),
    ("spending", {"since": 0.0, "user": None, "conversation": "conv_7"}),
    ("spending_on_tools", {"since": 0.0, "user": None, "conversation": "conv_7"}),
]
AT_REST: dict[str, Mapping[str, Any]] = {
    **{"moving_turns": {}, "moving_turns_of_people": {}, "calls_that_go_on": {}},
    **{"live_turns_of": {"owner": "me"}, "turns_with_signals_for": {"own": '["turn_7"]'}},
}
POSTGRES = [
    *SHARED,
    *AT_REST.items(),
    ("search_titles", {"user": "p7", "part": "%the%", "limit": 100}),
    ("search_own_texts", {"user": "p7", "part": "%the%", "others": None, "before": 2**62, "limit": 200}),
    ("search_own", {"user": "p7", "part": "%the%", "others": '["%of%"]', "each": 1, "limit": 20}),
]
HOLD_NO_MORE = (  # what is wanted is all there is: rows of an index, or what a part of the statement gave
    *(
        "conversations_by_update",
        "conversations_deleted",
        "turns_moving",
        "signals_that_move",
        "calls_running",
    ),
    *("ROW", "SCAN nested", "SCAN above", "SCAN s", "SCAN own", "SCAN (subquery-1)", "SCAN (subquery-3)"),
)
SQLITE = [
    *SHARED,
    ("titles", {"user": "p7", "scanned": 100}),
    ("scan_own_texts", {"user": "p7", "part": "the"}),
]


def statement_of(queries: Mapping[str, str], name: str, key: Mapping[str, Any]) -> str:
    return narrowed(queries[name], frozenset(one for one, value in key.items() if value is None))


@asynccontextmanager
async def filled(server: Server) -> AsyncIterator[asyncpg.Connection[Any]]:
    """Fill the store with waiting, followed turns of many users."""
    store = PostgresStore(server.url("plans"))
    await store.open()
    await store.close()
    url = server.url("plans").partition("&schema")[0]
    db = await asyncpg.connect(url, server_settings={"search_path": "plans, public"})
    try:
        await db.execute("SET session_replication_role = replica")  # sends no notification
        for fill in FILL:
            numbers = f"generate_series(1, {COUNT}) AS numbers (n)"
            await db.execute(fill.format(numbers=numbers, people=PEOPLE))
        await db.execute("ANALYZE")
        yield db
        await db.execute("DROP SCHEMA plans CASCADE")
    finally:
        await db.close()


async def plan_of(db: asyncpg.Connection[Any], name: str, key: Mapping[str, Any], how: str) -> Any:
    text, names, _ = prepared(statement_of(postgres_queries(), name, key))
    plan = await db.fetchval(f"EXPLAIN ({how}, FORMAT JSON) {text}", *(key[one] for one in names))
    return json.loads(plan)[0]["Plan"]


@pytest.mark.slow
async def test_postgresql_reads_nobody_elses_rows(postgres: Server) -> None:
    """The list, search and deletion of one user, and an idle node, do not slow down as other users add data.
    Queries that nodes repeat read a few pages, with 20,000 waiting turns in the store (N1)."""
    scanned, pages = {}, {}
    async with filled(postgres) as db:
        for mode in ("force_custom_plan", "force_generic_plan"):
            await db.execute(f"SET plan_cache_mode = {mode}")
            for name, key in POSTGRES:
                nodes = nodes_of(await plan_of(db, name, key, "COSTS OFF"))
                found = [node["Relation Name"] for node in nodes if node["Node Type"] == "Seq Scan"]
                if TABLES & {*found}:
                    scanned[mode, name, str(key)] = found
        for name, key in AT_REST.items():
            plan = await plan_of(db, name, key, "ANALYZE, BUFFERS")
            pages[name] = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
        await check_search(postgres)
    assert scanned == {}
    assert {name: count for name, count in pages.items() if count > 20} == {}


async def check_search(server: Server) -> None:
    """S1: the newest first, for a word that all texts contain, for one of a single text, and for both."""
    store = PostgresStore(server.url("plans"))
    await store.open()
    try:
        for words, user, found in (
            ("words", None, [f"msg_{COUNT - n}" for n in range(5)]),
            ("words msg_1234", None, ["msg_12349", "msg_12348", "msg_12347", "msg_12346", "msg_12345"]),
            ("of ord", "p7", [f"msg_{COUNT - PEOPLE * n + 7 - PEOPLE}" for n in range(5)]),
            ("msg_2007", "p7", ["msg_2007"]),
            ("msg_2007 other", None, []),
        ):
            hits = await store.search(words, user=user, limit=5)
            assert [hit.message for hit in hits] == found, words
    finally:
        await store.close()


def nodes_of(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield plan
    for inner in plan.get("Plans", ()):
        yield from nodes_of(inner)


def test_sqlite_reads_nobody_elses_rows() -> None:
    """The same applies to SQLite, also without row statistics (N1)."""
    scanned = {}
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(schema())
        for name, key in SQLITE:
            statement = statement_of(sqlite_queries(), name, key)
            plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {statement}", key)]
            tables = [step for step in plan if step.startswith("SCAN") and "VIRTUAL TABLE" not in step]
            if found := [step for step in tables if not step.endswith(HOLD_NO_MORE)]:
                scanned[name, str(key)] = found
    assert scanned == {}
