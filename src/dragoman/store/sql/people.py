"""Implements users: their keys, prompts, spending and pinned tools."""

from __future__ import annotations

import json
import time
from collections.abc import Collection
from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import Any

from dragoman.conversation.tree import LOCAL
from dragoman.errors import BadRequest, NotFound
from dragoman.messages.boundary import LATEST_TIME
from dragoman.messages.usage import DIMENSIONS, Spending
from dragoman.store.sql.database import Row, SqlConnection, SqlDatabase
from dragoman.store.sql.rows import number_in, text_in
from dragoman.store.store import AuditEntry, Identity, Person

_DAY = 86_400.0  # seconds
_NAMES = 1000  # Maximum number of users with the same name, which a number tells apart.
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

    async def add_person(self, name: str, key: str, created: float, *, restore: bool = False) -> None:
        def write(db: SqlConnection) -> None:
            row = {"id": name, "key": key, "created": created}
            had = db.execute(self._sql["key_of_person"], row).fetchone() is not None
            if not had and not restore and db.execute(self._sql["is_name_free"], row).fetchone() is None:
                raise BadRequest(
                    f"The name {name!r} was used before, and its conversations are kept. Choose another "
                    "name, or pass --restore to give them to the new user."
                )
            if had or not db.execute(self._sql["add_person"], row).rowcount:
                raise BadRequest(f"User {name!r} exists already.")
            db.execute(self._sql["forget_removed"], row)

        await self._write(write)

    async def person_with_key(self, key: str) -> str | None:
        rows = await self._all("person_with_key", key=key)
        return rows[0]["name"] if rows else None

    async def key_of(self, person: str) -> str | None:
        rows = await self._all("key_of_person", id=person)
        return rows[0]["key"] if rows else None

    async def identify(
        self, issuer: str, subject: str, *, name: str, key: str, epoch: str, created: float
    ) -> Identity | None:
        def write(db: SqlConnection) -> Identity | None:
            account = {"issuer": issuer, "subject": subject, "epoch": epoch}
            if (row := db.execute(self._sql["identity"], account).fetchone()) is not None:
                return Identity(row["person"], row["epoch"]) if row["name"] is not None else None
            person = self._add_named(db, name, {"key": key, "created": created})
            if not db.execute(self._sql["add_identity"], {**account, "person": person}).rowcount:
                db.execute(self._sql["remove_person"], {"id": person})  # Another server was faster.
                row = db.execute(self._sql["identity"], account).fetchone()
                return Identity(row["person"], row["epoch"])
            return Identity(person, epoch, new=True)

        return await self._write(write)

    def _add_named(self, db: SqlConnection, name: str, row: dict[str, Any]) -> str:
        """Add a user with this name, or with a number after it.

        The check of a name may be outdated, so only an inserted row takes the name.
        """
        for person in (name, *(f"{name}-{number}" for number in range(2, _NAMES))):
            key = {**row, "id": person}
            if person == LOCAL or db.execute(self._sql["is_name_free"], key).fetchone() is None:
                continue
            if db.execute(self._sql["add_person"], key).rowcount:
                return person
        raise BadRequest(f"Too many users are named {name!r}.")

    async def set_teams(self, person: str, teams: Collection[str]) -> None:
        def write(db: SqlConnection) -> None:
            db.execute(self._sql["leave_teams"], {"id": person})
            for name in sorted(teams):
                db.execute(self._sql["join_team"], {"name": name, "id": person})

        await self._write(write)

    async def members_of(self, team: str) -> set[str]:
        return {row["person"] for row in await self._all("members_of_team", name=team)}

    async def epoch_of_identity(self, person: str) -> str | None:
        rows = await self._all("epoch_of_identity", id=person)
        return rows[0]["epoch"] if rows else None

    async def end_sessions_of_identity(self, issuer: str, subject: str, epoch: str) -> str | None:
        def write(db: SqlConnection) -> str | None:
            account = {"issuer": issuer, "subject": subject, "epoch": epoch}
            if not db.execute(self._sql["renew_identity"], account).rowcount:
                return None
            self._change_access(db)
            return str(db.execute(self._sql["identity"], account).fetchone()["person"])

        return await self._write(write)

    async def end_session(self, id: str, expires: float, now: float) -> None:
        def write(db: SqlConnection) -> None:
            self._use_up(db, id, expires, now)
            self._change_access(db)

        await self._write(write)

    async def use_once(self, id: str, expires: float, now: float) -> bool:
        return await self._write(lambda db: self._use_up(db, id, expires, now))

    def _use_up(self, db: SqlConnection, id: str, expires: float, now: float) -> bool:
        new = bool(db.execute(self._sql["end_session"], {"id": id, "expires": expires}).rowcount)
        db.execute(self._sql["forget_sessions"], {"now": now})
        return new

    async def is_session_ended(self, id: str, other: str = "") -> bool:
        return bool(await self._all("ended_session", id=id, other=other))

    async def access_revision(self) -> int:
        rows = await self._all("access_revision")
        return int(rows[0]["revision"]) if rows else 0

    def _change_access(self, db: SqlConnection) -> None:
        """Note that a user lost a right: servers check their open streams again."""
        db.execute(self._sql["change_access"])
        self._announce_write(db)

    async def people(self) -> list[Person]:
        return [
            Person(row["name"], row["created"], row["subject"] and f"{row['issuer']} {row['subject']}")
            for row in await self._all("people")
        ]

    async def remove_person(self, name: str) -> None:
        def write(db: SqlConnection) -> None:
            if not db.execute(self._sql["remove_person"], {"id": name}).rowcount:
                raise NotFound("person", name)
            for statement in ("remove_memberships", "remove_shares"):
                db.execute(self._sql[statement], {"id": name})
            db.execute(self._sql["note_removed"], {"id": name})
            db.execute(self._sql["remove_memberships"], {"id": name})
            self._change_access(db)

        await self._write(write)

    async def turns_of_person(self, name: str) -> list[str]:
        queued = await self._all("queued_turns_of_person", id=name)
        return [row["turn"] for row in [*queued, *await self._all("live_turns_of_person", id=name)]]

    async def is_removed(self, name: str) -> bool:
        return bool(await self._all("is_removed", id=name))

    async def add_audit(self, entry: AuditEntry) -> None:
        row = {field.name: getattr(entry, field.name) for field in fields(entry) if field.name != "seq"}
        await self._run("add_audit", **{**row, "details": json.dumps(entry.details, ensure_ascii=False)})

    async def audit(
        self, since: float = 0.0, *, before: int | None = None, limit: int = 1000
    ) -> list[AuditEntry]:
        return [
            AuditEntry(
                row["at"],
                row["action"],
                row["person"],
                row["address"],
                row["object"],
                json.loads(row["details"]),
                row["seq"],
            )
            for row in await self._all("audit", since=since, before=before, limit=limit)
        ]

    async def forget_audit(self, before: float) -> int:
        return await self._run("forget_audit", before=before)

    async def prompts(self, user: str) -> dict[str, str]:
        return {row["name"]: row["text"] for row in await self._all("prompts", user=user)}

    async def set_prompt(self, user: str, name: str, text: str) -> None:
        await self._run("set_prompt", user=user, name=name, text=text)

    async def remove_prompt(self, user: str, name: str) -> None:
        await self._change("prompt", name, "remove_prompt", user=user)

    async def spending(self, since: float = 0.0, user: str | None = None) -> list[Spending]:
        day = datetime.fromtimestamp(min(since, LATEST_TIME), UTC).date().isoformat()

        def read(db: SqlConnection) -> list[Spending]:
            with self._snapshot(db):  # A snapshot counts conversations deleted meanwhile only once.
                past = db.execute(self._sql["past_spending"], {"day": day, "user": user}).fetchall()
                return [*self._present_spending(db, since=since, user=user), *map(_past_spending, past)]

        # Turns wait for the spending of one day, so it counts as fast.
        return await self._read(read, slow=since < time.time() - _DAY)

    def _present_spending(
        self,
        db: SqlConnection,
        *,
        since: float = 0.0,
        user: str | None = None,
        conversation: str | None = None,
    ) -> list[Spending]:
        """Return the spending in existing conversations."""
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
    """Return the values for the table, which has no NULL."""
    return {name: value if value is not None else "" for name, value in asdict(spending).items()}
