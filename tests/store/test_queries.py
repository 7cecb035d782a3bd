"""The SQL has one schema, the sum of its migrations. Every statement has a name, is valid, and is used
(S2)."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dragoman.store import sql, sqlite
from dragoman.store.sql.texts import chunks, snippet_of
from dragoman.store.sqlite.readers import migrations, queries, schema


def dump(*scripts: str) -> list[tuple[str, str, str]]:
    """Everything these scripts make, spaces and comments aside."""
    with closing(sqlite3.connect(":memory:")) as db:
        for script in scripts:
            db.executescript(script)
        made = db.execute(
            "SELECT type, name, coalesce(sql, '') FROM sqlite_master ORDER BY type, name"
        ).fetchall()
    return [
        (type, name, re.sub(r"--.*|\s+", " ", sql).replace(" ", "").replace(chr(34), ""))
        for type, name, sql in made
    ]


def test_the_schema_is_the_sum_of_the_migrations() -> None:
    """S2"""
    assert dump(schema()) == dump(*(script for _, script in migrations()))


def test_migrations_are_numbered_without_a_gap() -> None:
    """S2"""
    numbers = [number for number, _ in migrations()]
    assert numbers == list(range(1, len(numbers) + 1))


def test_every_foreign_key_has_an_index() -> None:
    """S2: else deleting one row looks through the whole table that refers to it."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(schema())
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        lists = {table: db.execute(f"PRAGMA foreign_key_list({table})").fetchall() for table in tables}
        keys = [(table, row[3]) for table, rows in lists.items() for row in rows]
        assert len(keys) > 12
        for table, column in keys:
            plan = db.execute(f"EXPLAIN QUERY PLAN SELECT 1 FROM {table} WHERE {column} = ?", ("x",))
            assert [f"({column}=" in row[3] for row in plan] == [True], (table, column)


@pytest.mark.parametrize("name", sorted(queries()))
def test_every_query_can_be_prepared(name: str) -> None:
    """S2"""
    statement = queries()[name]
    parameters = dict.fromkeys(re.findall(r":(\w+)", statement))
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(schema())
        assert db.execute(f"EXPLAIN {statement}", parameters).fetchone() is not None


FOLDERS = [Path(room.__path__[0]) for room in (sql, sqlite)]
CODE = "".join(file.read_text("utf-8") for folder in FOLDERS for file in folder.glob("*.py"))


def test_every_query_is_used_and_every_query_that_is_used_is_there() -> None:
    """S2"""
    raw = {name for name in queries() if name.startswith("raw_")}  # named after their tables
    used = set(re.findall(r'"(\w+)"', CODE))
    locked = {name.removeprefix("lock_") for name in used}
    assert sorted(queries().keys() - raw - used - locked) == []
    looked_up = re.findall(r'(?:_sql\[|_all\(|_one\(|_run\(|_step\(db, )"(\w+)"', CODE)
    assert sorted(set(looked_up) - queries().keys()) == []


def test_no_name_stands_for_two_queries() -> None:
    """S2"""
    text = "\n".join(file.read_text("utf-8") for folder in FOLDERS for file in folder.rglob("queries/*.sql"))
    names = re.findall(r"^-- name: (\w+)$", text, re.MULTILINE)
    made = {name for name in queries() if name.startswith("lock_")}
    assert len(names) == len(set(names)) == len(queries()) - len(made)


@pytest.mark.parametrize(
    "name",
    [
        "messages",
        "calls_of_message",
        "change_call",
        "live_turns",
        "facts",
        "events",
        "signals",
        "move_turn",
        "delete_some_turns",
        "delete_some_messages",
        "take_off_some_messages",
        "delete_turns_at_some_messages",
        "give_up_blobs",
        "texts_to_index",
        "texts_to_forget",
        "forget_texts",
    ],
)
def test_what_is_often_looked_up_is_found_by_an_index(name: str) -> None:
    """S2: a long history makes neither the next step slow nor a deletion."""
    statement = queries()[name]
    parameters = dict.fromkeys(re.findall(r":(\w+)", statement), "x")
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(schema())
        plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)]
    scans = [step for step in plan if step.startswith("SCAN") and "USING INDEX" not in step]
    scans = [step for step in scans if "VIRTUAL TABLE" not in step]  # the caller's list of values
    assert [step for step in scans if step != "SCAN texts_indexed"] == []  # it has one row


@pytest.mark.parametrize(
    "sizes", [[], [1], [20_000], [20_000, 201], [20_000, 20_000], [20_000, 20_000, 201]], ids=str
)
def test_a_long_text_is_in_rows_that_overlap_and_none_is_inside_another(sizes: list[int]) -> None:
    """A search finds text on the border of two rows, and finds no text twice (S1)."""
    text = "".join(chr(0x4E00 + n % 19_997) for n in range(sum(sizes) - 200 * max(0, len(sizes) - 1)))
    rows = [*chunks(text)]
    assert [len(row) for row in rows] == sizes
    assert "".join([*rows[:1], *(row[200:] for row in rows[1:])]) == text


def test_where_only_folded_words_match_a_snippet_is_the_beginning() -> None:
    """S1"""
    assert snippet_of(f"Straße {'x' * 200}", ["STRASSE"]) == f"Straße {'x' * 113}…"


def test_a_snippet_after_a_long_word_begins_within_it() -> None:
    """S1: the word after the match's first character is part of the match."""
    assert snippet_of(f"{'a' * 20}(sure)", ["(sure)"]) == f"…{'a' * 16}«(sure)»"
