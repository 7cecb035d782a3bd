"""`dragoman people …`: gives out, lists and withdraws the keys of those who may use a server."""

from __future__ import annotations

import re
import secrets
import sys
import time
from datetime import datetime

from dragoman.cli.flags.setup import AddPersonFlags, ListPeopleFlags, RemovePersonFlags
from dragoman.cli.folder_trust import settings_for
from dragoman.cli.lookup import open_store
from dragoman.cli.terminal.text import print_json
from dragoman.config.build import store_of
from dragoman.conversation.tree import LOCAL
from dragoman.errors import BadRequest
from dragoman.server.auth import key_hash


async def add_person(flags: AddPersonFlags) -> None:
    """Prints the new key, alone on standard output: a script can take it from there."""
    name = flags.name
    if name == LOCAL:
        raise BadRequest(f"{LOCAL} is who sits at this machine, and needs no key")
    if not re.fullmatch(r"[\w.@-]{1,60}", name):
        raise BadRequest(f"{name!r} is not a name here: letters, digits, and . @ _ - will do")
    key = f"dragoman-{secrets.token_urlsafe(24)}"
    async with open_store(settings_for(flags), create=True) as runtime:
        await runtime.store.add_person(name, key_hash(key), time.time())
    print(key)
    print(f"This is the key of {name}. It is not kept and cannot be shown again.", file=sys.stderr)


async def list_people(flags: ListPeopleFlags) -> None:
    settings, people = settings_for(flags), []
    if store_of(settings).is_there:
        async with open_store(settings) as runtime:
            people = await runtime.store.people()
    if flags.json:
        print_json([{"name": one.name, "created": one.created} for one in people], indent=2)
        return
    if not people:
        print("No users yet: dragoman people add NAME adds one.", file=sys.stderr)
    for one in people:
        print(f"{one.name}\t{datetime.fromtimestamp(one.created):%Y-%m-%d %H:%M}")


async def remove_person(flags: RemovePersonFlags) -> None:
    async with open_store(settings_for(flags)) as runtime:
        await runtime.store.remove_person(flags.name)
    print(f"{flags.name} no longer has a key")
