"""Parses the address of a store: a file on this machine, or a schema of a database server."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from urllib.parse import parse_qsl, urlsplit

from dragoman.errors import ConfigError
from dragoman.store.blobs.place import named_blobs

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):/", re.IGNORECASE)  # At least two letters: C: is a drive.
_POSTGRES = ("postgresql", "postgres")
MEMORY = ":memory:"  # a store that exists only while it is open


@dataclass(slots=True, frozen=True)
class StoreFile:
    """An SQLite file, with a folder next to it for locks and, by default, attachments."""

    path: Path
    blobs: str | None = None  # The place of attachments, as read by `blobs/place.py`.
    migrates: bool = True  # Opening the store updates its tables.

    def __post_init__(self) -> None:
        named_blobs(self.blobs, own="folder")

    def __str__(self) -> str:
        return str(self.path)

    @property
    def is_there(self) -> bool:
        return self.path.exists()

    def folder(self, data: Path) -> Path:
        """Return the folder in which processes of this machine that use the store find each other."""
        return self.path.with_name(f"{self.path.name}.files")

    @property
    def shown_blobs(self) -> str:
        """Return the place of attachments for display."""
        return self.blobs if self.blobs not in (None, "folder") else f"{self.folder(self.path)}/blobs"


@dataclass(slots=True, frozen=True)
class StoreServer:
    """A PostgreSQL database. Its URL may contain a password, and is displayed without it."""

    url: str
    blobs: str | None = None
    migrates: bool = True

    def __post_init__(self) -> None:
        named_blobs(self.blobs, own="database")

    def __str__(self) -> str:
        return shown_address(self.url)

    __repr__ = __str__

    @property
    def is_there(self) -> bool:
        return True  # Opening the store reports a wrong address.

    def folder(self, data: Path) -> Path:
        return data / f"postgresql-{hashlib.sha256(self.url.encode()).hexdigest()[:16]}.files"

    @property
    def shown_blobs(self) -> str:
        return self.blobs if self.blobs not in (None, "database") else "in the database"


def shown_address(url: str) -> str:
    """Return a database URL for display: its location, without user and password."""
    try:
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query))
    except ValueError:
        return "postgresql://…"
    host = parts.netloc.rpartition("@")[2] or options.get("host", "localhost")
    schema = f"?schema={options['schema']}" if "schema" in options else ""
    return f"postgresql://{host}{parts.path}{schema}"


StoreAddress: TypeAlias = StoreFile | StoreServer


def is_url(text: str) -> bool:
    """Return whether it is a URL, and not a path that could be made absolute."""
    return _SCHEME.match(text) is not None


def absolute_place(text: str | None) -> str | None:
    """Return an absolute path for a relative one. The URL of a database stays unchanged."""
    return text if not text or is_url(text) else str(Path(text).absolute())


def store_address(place: str | Path) -> StoreAddress:
    """Parse a user's address of a store. Raise ConfigError for an unknown kind of URL."""
    found = _SCHEME.match(str(place))
    if found is None:
        return StoreFile(Path(place))
    if found[1].lower() in _POSTGRES and isinstance(place, str):
        return StoreServer(place)
    if found[1].lower() in _POSTGRES:
        raise ConfigError("Pass the address of a store as a string. A Path means an SQLite file.")
    raise ConfigError(
        f"Unknown kind of store {found[1]}://. Name a file, such as chat.db, or a database, such as postgresql://host/name."
    )
