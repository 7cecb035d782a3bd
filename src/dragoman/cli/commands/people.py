"""Run `dragoman people …` and `audit`: add, list and remove users, and show the audit log."""

from __future__ import annotations

import re
import secrets
import sys
import time
from dataclasses import asdict
from datetime import datetime

from dragoman.cli.commands.usage import parse_since
from dragoman.cli.flags.inspection import AuditFlags
from dragoman.cli.flags.setup import AddPersonFlags, ListPeopleFlags, RemovePersonFlags
from dragoman.cli.folder_trust import settings_for
from dragoman.cli.lookup import open_store
from dragoman.cli.terminal.text import one_line, print_json
from dragoman.config.build import store_of
from dragoman.conversation.tree import LOCAL
from dragoman.errors import BadRequest
from dragoman.server.audit import audit
from dragoman.server.auth import key_hash
from dragoman.store.store import AuditEntry

_PAGE = 1000  # entries of the audit log that are read in one go


async def add_person(flags: AddPersonFlags) -> None:
    """Add a user and print the new key alone on standard output, so that a script can read it."""
    name = flags.name
    if name == LOCAL:
        raise BadRequest(f"{LOCAL!r} is the admin of this machine and needs no key.")
    if not re.fullmatch(r"[\w.@-]{1,60}", name):
        raise BadRequest(f"Invalid user name {name!r}. Use letters, digits, and . @ _ -.")
    key = f"dragoman-{secrets.token_urlsafe(24)}"
    async with open_store(settings_for(flags), create=True) as runtime:
        await runtime.store.add_person(name, key_hash(key), time.time(), restore=flags.restore)
        await audit(runtime.store, "user.added", person=LOCAL, object=name, restored=flags.restore)
    print(key)
    print(f"This is the key of {name}. It is not kept and cannot be shown again.", file=sys.stderr)


async def list_people(flags: ListPeopleFlags) -> None:
    settings, people = settings_for(flags), []
    if store_of(settings).is_there:
        async with open_store(settings) as runtime:
            people = await runtime.store.people()
    if flags.json:
        print_json([asdict(one) for one in people], indent=2)
        return
    if not people:
        print("No users yet: dragoman people add NAME adds one.", file=sys.stderr)
    for one in people:
        account = f"\t{one.account}" if one.account else ""
        print(f"{one.name}\t{datetime.fromtimestamp(one.created):%Y-%m-%d %H:%M}{account}")


async def remove_person(flags: RemovePersonFlags) -> None:
    async with open_store(settings_for(flags)) as runtime:
        stopped = await runtime.remove_person(flags.name)
        await audit(runtime.store, "user.removed", person=LOCAL, object=flags.name, cancelled=stopped)
    print(f"{flags.name} was removed. Cancelled turns: {stopped}. The conversations are kept.")


async def show_audit(flags: AuditFlags) -> None:
    """Print one line for each entry, or a list of objects."""
    settings, entries = settings_for(flags), list[AuditEntry]()
    since = parse_since(flags.since) if flags.since else 0.0
    if store_of(settings).is_there:
        async with open_store(settings) as runtime:
            page = await runtime.store.audit(since, limit=_PAGE)
            while page:
                entries += page
                page = await runtime.store.audit(since, before=page[-1].seq, limit=_PAGE)
    entries.reverse()
    if flags.json:
        print_json([asdict(one) for one in entries], indent=2)
        return
    for one in entries:
        at = f"{datetime.fromtimestamp(one.at):%Y-%m-%d %H:%M:%S}"
        details = " ".join(f"{name}={value}" for name, value in one.details.items())
        fields = (at, one.action, one.person or "-", one.address or "-", one.object, details)
        print("\t".join(one_line(field) for field in fields).rstrip())
