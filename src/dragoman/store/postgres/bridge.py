"""Runs the store's operations, which are plain functions, on asynchronous connections.

The function runs in a greenlet on the event loop's thread. Each statement hands out an awaitable, which is
awaited here and its result passed back.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, TypeVar

import asyncpg
from greenlet import getcurrent, greenlet

from dragoman.store.sql.texts import without_nul

T = TypeVar("T")

_PARAMETER = re.compile(r"(?<!:):([a-z_]+)")  # excludes the type in `::json`
# On its own, it does not tell the server the type of the parameter.
_MAYBE = re.compile(r"(:[a-z_]+)(?= IS (?:NOT )?NULL)")
_GIVES_ROWS = re.compile(r"\s*(?:SELECT|WITH)\b|.*\bRETURNING\b", re.IGNORECASE | re.DOTALL)


async def run(operation: Callable[[BridgedConnection], T], connection: asyncpg.Connection[Any]) -> T:
    """Return what the operation returns, or raise its exception."""
    work = greenlet(operation)
    awaited = work.switch(BridgedConnection(connection))
    while not work.dead:
        try:
            result = await awaited
        except BaseException as error:
            awaited = work.throw(error)
        else:
            awaited = work.switch(result)
    returned: T = awaited
    return returned


def wait(work: Awaitable[T]) -> T:
    """Return the result of an awaitable, from within an operation."""
    outside = getcurrent().parent
    assert outside is not None, "only an operation waits like this"
    result: T = outside.switch(work)
    return result


class BridgedConnection:
    """Satisfies `SqlConnection` within an operation."""

    def __init__(self, connection: asyncpg.Connection[Any]) -> None:
        self._connection = connection

    def execute(self, statement: str, key: Mapping[str, object] | None = None, /) -> StatementResult:
        text, names, gives_rows = prepared(statement)
        values = [without_nul(key[name]) for name in names] if key is not None else []
        if gives_rows:
            rows = wait(self._connection.fetch(text, *values))
            return StatementResult(rows, len(rows))
        return StatementResult([], _count(wait(self._connection.execute(text, *values))))

    def executemany(self, statement: str, rows: Iterable[Mapping[str, object]], /) -> StatementResult:
        text, names, _ = prepared(statement)
        values = [[without_nul(row[name]) for name in names] for row in rows]
        wait(self._connection.executemany(text, values))
        return StatementResult([], len(values))


class StatementResult:
    """Satisfies `SqlCursor`."""

    def __init__(self, rows: list[Any], rowcount: int) -> None:
        self._rows = iter(rows)
        self.rowcount = rowcount

    def fetchone(self) -> Any:
        return next(self._rows, None)

    def fetchall(self) -> list[Any]:
        return list(self._rows)

    def __iter__(self) -> Iterator[Any]:
        return self._rows


@cache
def prepared(statement: str) -> tuple[str, tuple[str, ...], bool]:
    """Return the statement with numbered parameters, their names in order, and whether it returns rows."""
    statement = _MAYBE.sub(r"\1::text", statement)
    names = tuple(dict.fromkeys(_PARAMETER.findall(statement)))
    places = {name: f"${place}" for place, name in enumerate(names, 1)}
    text = _PARAMETER.sub(lambda match: places[match[1]], statement)
    return text, names, _GIVES_ROWS.match(statement) is not None


def _count(status: str) -> int:
    """Return the number at the end of a status such as `UPDATE 3`."""
    last = status.rpartition(" ")[2]
    return int(last) if last.isdecimal() else 0
