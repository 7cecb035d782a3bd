"""People: their keys and prompts, what they spent, and the tools they pinned."""

from __future__ import annotations

from dragoman.errors import BadRequest
from dragoman.messages.spending import Spending
from dragoman.store.codecs import USAGE
from dragoman.store.people import Person, Spent
from dragoman.store.sql.database import Row, SqlDatabase
from dragoman.store.sql.rows import load


class SqlPeople(SqlDatabase):
    async def pin(self, user: str, tool: str) -> str | None:
        rows = await self._all("pin", user=user, tool=tool)
        return rows[0]["fingerprint"] if rows else None

    async def set_pin(self, user: str, tool: str, fingerprint: str) -> None:
        await self._run("set_pin", user=user, tool=tool, fingerprint=fingerprint)

    async def add_person(self, name: str, key: str, created: float) -> None:
        if not await self._run("add_person", id=name, key=key, created=created):
            raise BadRequest(f"there is somebody called {name} already")

    async def person_with_key(self, key: str) -> str | None:
        rows = await self._all("person_with_key", key=key)
        return rows[0]["name"] if rows else None

    async def key_of(self, person: str) -> str | None:
        rows = await self._all("key_of_person", id=person)
        return rows[0]["key"] if rows else None

    async def people(self) -> list[Person]:
        return [Person(row["name"], row["created"]) for row in await self._all("people")]

    async def remove_person(self, name: str) -> None:
        await self._change("person", name, "remove_person")

    async def prompts(self, user: str) -> dict[str, str]:
        return {row["name"]: row["text"] for row in await self._all("prompts", user=user)}

    async def set_prompt(self, user: str, name: str, text: str) -> None:
        await self._run("set_prompt", user=user, name=name, text=text)

    async def remove_prompt(self, user: str, name: str) -> None:
        await self._change("prompt", name, "remove_prompt", user=user)

    async def spending(self, since: float = 0.0, user: str | None = None) -> list[Spending]:
        replies = await self._all("spending", since=since, user=user)
        calls = await self._all("spending_on_tools", since=since, user=user)
        return [*map(_reply_spending, replies), *map(_tool_spending, calls)]

    async def spent(self, user: str) -> list[Spent]:
        return self._readable(_spent_of, await self._all("replies", user=user))


def _reply_spending(row: Row) -> Spending:
    return Spending(
        row["day"],
        row["person"],
        row["model"],
        row["agent"],
        replies=int(row["replies"]),
        input=int(row["input"] or 0),
        output=int(row["output"] or 0),
        cached=int(row["cached"] or 0),
        reasoning=int(row["reasoning"] or 0),
        cost=float(row["cost"] or 0),
        unpriced=int(row["unpriced"] or 0),
    )


def _tool_spending(row: Row) -> Spending:
    return Spending(
        row["day"],
        row["person"],
        row["model"],
        row["agent"],
        row["tool"],
        calls=int(row["calls"]),
        failed=int(row["failed"] or 0),
    )


def _spent_of(row: Row) -> Spent:
    return Spent(row["model"], row["day"], load(USAGE, "usage of message", row["id"], row["usage"]))
