"""Links that sign a browser in: each is good for one browser, and worthless afterwards."""

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

_UNUSED = 100  # links that nobody has used yet: the oldest goes
LIFETIME = 600.0  # seconds that a link holds which was asked for


@dataclass(slots=True, frozen=True)
class LinkOwner:
    """Whom a link signs in, and the hash of the key they had when they asked for it: with another, or none,
    it is worthless. Whoever runs the server needs none."""

    person: str
    key: str | None = None


class Links:
    """Tokens of links by their hash, with whom they sign in and until when. Only in memory."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._unused: dict[str, tuple[LinkOwner, float]] = {}

    def add(
        self, person: str, token: str | None = None, *, key: str | None = None, lifetime: float = math.inf
    ) -> str:
        """The token of a new link."""
        token = token or secrets.token_urlsafe(24)
        self._unused[_hash(token)] = LinkOwner(person, key), self._clock() + lifetime
        while len(self._unused) > _UNUSED:
            del self._unused[next(iter(self._unused))]
        return token

    def owner(self, token: str) -> LinkOwner | None:
        """Whom it would sign in, as long as no browser has used it."""
        owner, until = self._unused.get(_hash(token), (None, 0.0))
        return owner if self._clock() < until else None

    def use(self, token: str) -> LinkOwner | None:
        """Whom it signs in. The next one who comes with it is nobody."""
        owner = self.owner(token)
        self._unused.pop(_hash(token), None)
        return owner


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


# ── how `dragoman link` finds a server that runs ──────────────────────────────────────────────────


@dataclass(slots=True, frozen=True)
class RunningServer:
    """Where a server answers, and the key with which programs of its own user come in as `local`."""

    url: str
    key: str


_RUNNING: TypeAdapter[RunningServer] = TypeAdapter(RunningServer)


@contextmanager
def announce(folder: Path, server: RunningServer) -> Iterator[None]:
    """A file that only the user who runs the server can read, for as long as it runs."""
    file = folder / f"server-{os.getpid()}.json"
    file.unlink(missing_ok=True)
    with open(file, "x", encoding="utf-8", opener=open_private) as written:
        json.dump({"url": server.url, "key": server.key}, written)
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def running_servers(folder: Path) -> list[RunningServer]:
    """Those that were announced, the newest first. What one left behind that was killed is removed."""
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
        return True  # there, this would end it
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return False
    except OSError:  # it is there, and somebody else's
        return True
    return True
