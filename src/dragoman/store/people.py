"""What a store knows of people: their keys, their prompts, what they spent, which tools they pinned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from dragoman.messages.spending import Spending


@dataclass(slots=True, frozen=True)
class Person:
    """Somebody who may use a server."""

    name: str
    created: float


class PeopleStore(Protocol):
    """People who may use a server, and what belongs to one of them."""

    async def add_person(self, name: str, key: str, created: float) -> None:
        """`key` is a hash: the key itself is nowhere."""

    async def person_with_key(self, key: str) -> str | None: ...

    async def key_of(self, person: str) -> str | None:
        """The hash of their key, as long as they may come in."""

    async def end_session(self, id: str, expires: float, now: float) -> None:
        """A sign-in is void from now on, at every node. It is remembered until its cookie expires."""

    async def is_session_ended(self, id: str) -> bool: ...

    async def people(self) -> list[Person]: ...

    async def remove_person(self, name: str) -> None: ...

    async def prompts(self, user: str) -> dict[str, str]:
        """A person's own texts, by name."""

    async def set_prompt(self, user: str, name: str, text: str) -> None: ...

    async def remove_prompt(self, user: str, name: str) -> None: ...

    async def pin(self, user: str, tool: str) -> str | None:
        """The fingerprint of a foreign tool's definition when this person last let it run."""

    async def set_pin(self, user: str, tool: str, fingerprint: str) -> None: ...

    async def spending(self, since: float = 0.0, user: str | None = None) -> list[Spending]:
        """What was answered, and which tools were called, since then, by one person or by all: by day,
        person, model and agent, or tool. Of what was deleted, by whole days."""
