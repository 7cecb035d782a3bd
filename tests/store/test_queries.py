"""The SQL: one schema, the sum of its migrations; every statement named, sound and in use (S2)."""

from __future__ import annotations

import inspect
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dragoman.store.sqlite import database, people, questions, store
from dragoman.store.sqlite.queries import migrations, queries, schema


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


@pytest.mark.parametrize("name", sorted(queries()))
def test_every_query_can_be_prepared(name: str) -> None:
    """S2"""
    statement = queries()[name]
    parameters = dict.fromkeys(re.findall(r":(\w+)", statement))
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(schema())
        assert db.execute(f"EXPLAIN {statement}", parameters).fetchone() is not None


CODE = "".join(inspect.getsource(module) for module in (store, database, people, questions))


def test_every_query_is_used_and_every_query_that_is_used_is_there() -> None:
    """S2"""
    assert sorted(queries().keys() - set(re.findall(r'"(\w+)"', CODE))) == []
    looked_up = re.findall(r'(?:_sql\[|_all\(|_one\()"(\w+)"', CODE)
    assert sorted(set(looked_up) - queries().keys()) == []


def test_no_name_stands_for_two_queries() -> None:
    text = (Path(store.__file__).parent / "sql" / "queries.sql").read_text("utf-8")
    names = re.findall(r"^-- name: (\w+)$", text, re.MULTILINE)
    assert len(names) == len(set(names)) == len(queries())


@pytest.mark.parametrize(
    "name", ["messages", "calls_of_message", "change_call", "live_turns", "facts", "signals", "move_turn"]
)
def test_what_every_step_looks_up_is_found_by_an_index(name: str) -> None:
    """S2: a long history does not make the next step slow."""
    statement = queries()[name]
    parameters = dict.fromkeys(re.findall(r":(\w+)", statement), "x")
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(schema())
        plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)]
    assert [step for step in plan if step.startswith("SCAN") and "USING INDEX" not in step] == []
