"""People: their keys and prompts, what they spent, and the tools they pinned."""

from __future__ import annotations

import time
from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import Any

from dragoman.errors import BadRequest, NotFound
from dragoman.messages.boundary import LATEST_TIME
from dragoman.messages.usage import DIMENSIONS, Spending
from dragoman.store.sql.database import Row, SqlConnection, SqlDatabase
from dragoman.store.sql.rows import number_in, text_in
from dragoman.store.store import Person

_DAY = 86_400.0  # seconds
_NUMBERS = tuple(one.name for one in fields(Spending) if one.name not in DIMENSIONS)


class SqlPeople(SqlDatabase):
    async def pin(self, user: str, tool: str) -> str | None:
        rows = await self._all("pin", user=user, tool=tool)
        return rows[0]["fingerprint"] if rows else None

    async def set_pin(self, user: str, tool: str, fingerprint: str) -> None:
        await self._run("set_pin", user=user, tool=tool, fingerprint=fingerprint)

    async def add_native_model(self, model: str) -> None:
        await self._run("add_native_model", model=model)

    async def native_models(self) -> set[str]:
        return {row["model"] for row in await self._all("native_models")}

    async def add_person(self, name: str, key: str, created: float) -> None:
        if not await self._run("add_person", id=name, key=key, created=created):
            raise BadRequest(f"there is somebody called {name} already")

    async def person_with_key(self, key: str) -> str | None:
        rows = await self._all("person_with_key", key=key)
        return rows[0]["name"] if rows else None

    async def key_of(self, person: str) -> str | None:
        rows = await self._all("key_of_person", id=person)
        return rows[0]["key"] if rows else None

    async def end_session(self, id: str, expires: float, now: float) -> None:
        await self._run("end_session", id=id, expires=expires)
        await self._run("forget_sessions", now=now)

    async def is_session_ended(self, id: str) -> bool:
        return bool(await self._all("ended_session", id=id))

    async def people(self) -> list[Person]:
        return [Person(row["name"], row["created"]) for row in await self._all("people")]

    async def remove_person(self, name: str) -> None:
        def write(db: SqlConnection) -> int:
            db.execute(self._sql["remove_memberships"], {"id": name})
            return db.execute(self._sql["remove_person"], {"id": name}).rowcount

        if not await self._write(write):
            raise NotFound("person", name)

    async def prompts(self, user: str) -> dict[str, str]:
        return {row["name"]: row["text"] for row in await self._all("prompts", user=user)}

    async def set_prompt(self, user: str, name: str, text: str) -> None:
        await self._run("set_prompt", user=user, name=name, text=text)

    async def remove_prompt(self, user: str, name: str) -> None:
        await self._change("prompt", name, "remove_prompt", user=user)

    async def spending(self, since: float = 0.0, user: str | None = None) -> list[Spending]:
        day = datetime.fromtimestamp(min(since, LATEST_TIME), UTC).date().isoformat()

        def read(db: SqlConnection) -> list[Spending]:
            with self._snapshot(db):  # what is deleted meanwhile counts once
                past = db.execute(self._sql["past_spending"], {"day": day, "user": user}).fetchall()
                return [*self._present_spending(db, since=since, user=user), *map(_past_spending, past)]

        return await self._read(read, slow=since < time.time() - _DAY)  # for that of a day, turns wait

    def _present_spending(
        self,
        db: SqlConnection,
        *,
        since: float = 0.0,
        user: str | None = None,
        conversation: str | None = None,
    ) -> list[Spending]:
        """In conversations that are there."""
        key = {"since": since, "user": user, "conversation": conversation}
        replies = db.execute(self._narrowed("spending", key), key).fetchall()
        asked = db.execute(self._narrowed("spending_on_models", key), key).fetchall()
        calls = db.execute(self._narrowed("spending_on_tools", key), key).fetchall()
        return [*map(_reply_spending, [*replies, *asked]), *map(_tool_spending, calls)]


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


def _past_spending(row: Row) -> Spending:
    values: dict[str, Any] = {name: text_in(row[name]) or None for name in DIMENSIONS}
    values |= {name: number_in(row[name]) for name in _NUMBERS}
    return Spending(**values)


def past_values(spending: Spending) -> dict[str, Any]:
    """As the table has it, in which nothing is unknown."""
    return {name: value if value is not None else "" for name, value in asdict(spending).items()}
