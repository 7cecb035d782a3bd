"""Parses the configured place of blobs: next to the database, in it, in a folder, or in an object store."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal, Protocol
from urllib.parse import unquote, urlsplit

from dragoman.errors import ConfigError
from dragoman.store.blobs.blobs import Blobs
from dragoman.store.blobs.folder import FolderBlobs
from dragoman.store.blobs.objects import ObjectBlobs

OBJECT_STORES = ("s3", "gs", "az")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_EXAMPLES = "s3://bucket/prefix, gs://bucket/prefix, az://container/prefix or file:///folder"


class NamedBlobs(Blobs, Protocol):
    """Blobs at a place that any store could name, but only one can use."""

    async def claim(self, store: str) -> None:
        """Claim the place before its use for this store, which removes blobs that it does not reference.

        Raise ConfigError if another store owns it, or access is refused. The first put records the owner, and
        every removal checks it.
        """

    async def check(self) -> None:
        """Raise StoreUnavailable if a test write, read or removal fails."""


def named_blobs(place: str | None, *, own: Literal["folder", "database"]) -> NamedBlobs | None:
    """Return the blobs at the named place. None for the database's `own`. Raise ConfigError for an invalid
    place."""
    if place is None or place == own:
        return None
    if place in ("folder", "database"):
        raise ConfigError(_unfit(place))
    scheme, bucket, path = _split(place)
    if scheme == "file":
        return FolderBlobs(Path(path))
    return ObjectBlobs(f"{scheme}://{bucket}{path.rstrip('/')}")


def check_place(place: str) -> None:
    """Raise ConfigError if no store could keep its blobs there."""
    if place not in ("folder", "database"):
        _split(place)


def folder_of(place: str | None) -> Path | None:
    """Return the local folder, if the place is one."""
    return Path(_split(place)[2]) if place is not None and place.startswith("file:") else None


def shown_place(place: str) -> str:
    """Return the place for display, without other parts of a URL."""
    if "://" not in place:
        return place
    scheme, _, rest = place.partition("://")
    where = re.split(r"[?#]", rest, maxsplit=1)[0]
    host, slash, path = where.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def _split(place: str) -> tuple[str, str, str]:
    """Return scheme, bucket and path. Errors show no part of the URL that could be a secret."""
    try:
        parts = urlsplit(place)
    except ValueError:
        raise ConfigError(
            f"The place for attachments is not a valid address. Examples: {_EXAMPLES}."
        ) from None
    if parts.scheme not in (*OBJECT_STORES, "file"):
        raise ConfigError(
            f"Invalid place for attachments {shown_place(place)!r}. Use {_EXAMPLES}, `folder` next to an "
            "SQLite file, or `database` in PostgreSQL."
        )
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ConfigError(
            f"{shown_place(place)!r} has more than a place. Set credentials, regions and endpoints in the "
            "environment."
        )
    if parts.scheme == "file":
        path = unquote(parts.path)
        if parts.netloc not in ("", "localhost") or len(path) < 2:
            raise ConfigError("Name a folder by its absolute path: file:///folder.")
        return "file", "", path
    if not _BUCKET.fullmatch(parts.netloc):
        raise ConfigError(f"{shown_place(place)!r} names no bucket. Write {parts.scheme}://bucket/prefix.")
    return parts.scheme, parts.netloc, parts.path


def _unfit(place: str) -> str:
    if place == "database":
        return "an SQLite file holds no attachments: they are in its folder, or at an address"
    return "a database server has no folder of its own: name one that every node sees, as file:///folder"
