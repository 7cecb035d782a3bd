"""Create sign-in links, each of which works for one browser only."""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from dragoman.stored_keys import open_private

_UNUSED = 100  # maximum number of unused links: the oldest is dropped
LIFETIME = 600.0  # seconds that a requested link is valid


@dataclass(slots=True, frozen=True)
class LinkOwner:
    """The user that a link signs in, and the hash of their key when the link was made. The link is void once
    that key changes or is revoked. The user who runs the server has no such key."""

    person: str
    key: str | None = None


class Links:
    """Unused links by the hash of their token, with their user and expiry. They are only in memory."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._unused: dict[str, tuple[LinkOwner, float]] = {}

    def add(
        self, person: str, token: str | None = None, *, key: str | None = None, lifetime: float = math.inf
    ) -> str:
        """Add a link and return its token."""
        token = token or secrets.token_urlsafe(24)
        self._unused[_hash(token)] = LinkOwner(person, key), self._clock() + lifetime
        while len(self._unused) > _UNUSED:
            del self._unused[next(iter(self._unused))]
        return token

    def owner(self, token: str) -> LinkOwner | None:
        """Return the owner of an unused link, or None."""
        owner, until = self._unused.get(_hash(token), (None, 0.0))
        return owner if self._clock() < until else None

    def use(self, token: str) -> LinkOwner | None:
        """Use a link up and return its owner, or None. A second use finds no owner."""
        owner = self.owner(token)
        self._unused.pop(_hash(token), None)
        return owner


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


# ── how `dragoman link` finds a server that runs ──────────────────────────────────────────────────


@dataclass(slots=True, frozen=True)
class RunningServer:
    """The address of a running server, and the key that signs programs of the same OS user in as `local`."""

    url: str
    key: str


_RUNNING: TypeAdapter[RunningServer] = TypeAdapter(RunningServer)


@contextmanager
def announce(folder: Path, server: RunningServer) -> Iterator[None]:
    """Keep a file that describes the server while it runs. Only the user who runs the server can read it."""
    file = folder / f"server-{os.getpid()}.json"
    file.unlink(missing_ok=True)
    with open(file, "x", encoding="utf-8", opener=open_private) as written:
        json.dump({"url": server.url, "key": server.key}, written)
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def running_servers(folder: Path) -> list[RunningServer]:
    """Return the announced servers, newest first. Files of servers that were killed are removed."""
    found: list[tuple[float, RunningServer]] = []
    for file in folder.glob("server-*.json"):
        if not _is_running(file.stem.removeprefix("server-")):
            file.unlink(missing_ok=True)
            continue
        with suppress(OSError, ValidationError):
            found.append((file.stat().st_mtime, _RUNNING.validate_json(file.read_bytes())))
    return [server for _, server in sorted(found, key=lambda each: -each[0])]


def _is_running(process: str) -> bool:
    if sys.platform == "win32":
        return True  # On Windows, this signal would end the process.
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return False
    except OSError:  # The process exists but belongs to another user.
        return True
    return True
