"""Where blobs are, as a person names it: beside the database, in it, in a folder, or in an object store."""

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
    """Blobs at a place that any store could name, and one store uses."""

    async def claim(self, store: str) -> None:
        """Before they are used: they are to be this store's, which sweeps what it does not mention.

        ConfigError where they are another one's, or the place refuses us. Whose they are is written there
        with the first that is put, and looked at before any is removed.
        """

    async def check(self) -> None:
        """StoreUnavailable where something cannot be written there, read and removed again."""


def named_blobs(place: str | None, *, own: Literal["folder", "database"]) -> NamedBlobs | None:
    """Those at the place that is named; None where it is the database's `own`. ConfigError where it is
    neither."""
    if place is None or place == own:
        return None
    if place in ("folder", "database"):
        raise ConfigError(_unfit(place))
    scheme, bucket, path = _split(place)
    if scheme == "file":
        return FolderBlobs(Path(path))
    return ObjectBlobs(f"{scheme}://{bucket}{path.rstrip('/')}")


def check_place(place: str) -> None:
    """ConfigError where no store could have its blobs there."""
    if place not in ("folder", "database"):
        _split(place)


def folder_of(place: str | None) -> Path | None:
    """The folder of this machine that it is."""
    return Path(_split(place)[2]) if place is not None and place.startswith("file:") else None


def shown_place(place: str) -> str:
    """What a person may read of it: an address that holds more than a place is shown without."""
    if "://" not in place:
        return place
    scheme, _, rest = place.partition("://")
    where = re.split(r"[?#]", rest, maxsplit=1)[0]
    host, slash, path = where.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def _split(place: str) -> tuple[str, str, str]:
    """Scheme, bucket and path. Of an address that is refused, nothing is shown that could be a secret."""
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
