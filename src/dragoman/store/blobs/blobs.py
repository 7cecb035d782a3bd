"""The bytes of attachments and long outputs, addressed by their content: equal bytes are stored once."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator
from typing import Protocol

from dragoman.errors import NotFound, Unreadable

_KEY = re.compile(r"[0-9a-f]{64}")


class Blobs(Protocol):
    """Bytes under the SHA-256 of their content. Any implementation passes `conformance.BlobConformance`."""

    async def put(self, data: bytes) -> str:
        """Store them, whole or not at all, and return their key. Putting them again keeps them fresh."""

    async def read(self, key: str) -> bytes:
        """NotFound where there are none; Unreadable where they are not those that were put there."""

    async def delete(self, key: str, *, unused_for: float = 0.0) -> bool:
        """Remove them, unless somebody put them within so many seconds. Whether they are gone."""

    def keys(self, *, since: float = 0.0) -> AsyncIterator[str]:
        """The key of everything that was put there since then, in no order."""


def key_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def checked_key(key: str) -> str:
    """The key itself. What is none names nothing: it may come from anywhere, and is used in paths."""
    if not _KEY.fullmatch(key):
        raise NotFound("blob", key)
    return key


def checked_data(key: str, data: bytes) -> bytes:
    """The bytes themselves, if they are still those that were put there under this key."""
    if key_of(data) != key:
        raise Unreadable("blob", key, "its bytes have changed since it was stored; restore it from a copy")
    return data
