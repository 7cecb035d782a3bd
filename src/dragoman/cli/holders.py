"""Names in, keys out: the people of a store, who hold one each."""

from __future__ import annotations

import asyncio
import re
import secrets
import time

from dragoman.cli.looking import looking
from dragoman.config.build import store_of
from dragoman.config.settings import Settings
from dragoman.conversation.tree import LOCAL
from dragoman.errors import BadRequest
from dragoman.server.auth import key_hash
from dragoman.store.store import Person


def add(name: str, settings: Settings) -> str:
    """The new key."""
    if name == LOCAL:
        raise BadRequest(f"{LOCAL} is who sits at this machine, and needs no key")
    if not re.fullmatch(r"[\w.@-]{1,60}", name):
        raise BadRequest(f"{name!r} is no name here: letters, digits, and . @ _ - will do")
    key = f"dragoman-{secrets.token_urlsafe(24)}"

    async def store() -> None:
        async with looking(settings, new=True) as runtime:
            await runtime.store.add_person(name, key_hash(key), time.time())

    asyncio.run(store())
    return key


def people(settings: Settings) -> list[Person]:
    async def read() -> list[Person]:
        async with looking(settings) as runtime:
            return await runtime.store.people()

    return asyncio.run(read()) if store_of(settings).exists() else []


def remove(name: str, settings: Settings) -> None:
    async def away() -> None:
        async with looking(settings) as runtime:
            await runtime.store.remove_person(name)

    asyncio.run(away())
