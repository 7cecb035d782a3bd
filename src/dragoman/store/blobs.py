"""Bytes in, their SHA-256 out, and back again: large outputs and attachments, each stored once."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from dragoman.errors import NotFound
from dragoman.messages.ids import new_id

_KEY = re.compile(r"[0-9a-f]{64}")


class Blobs:
    """Files named after what is in them. A file is complete or not there, also after a crash."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise NotFound("blob", key)
        return self._folder / key[:2] / key[2:]

    def put(self, data: bytes) -> str:
        key = hashlib.sha256(data).hexdigest()
        target = self.path(key)
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            partial = target.with_suffix(f".{new_id('part')}")  # nobody else's, also for the same bytes
            try:
                with partial.open("wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                partial.replace(target)
            finally:
                partial.unlink(missing_ok=True)
        return key

    def get(self, key: str) -> bytes:
        try:
            return self.path(key).read_bytes()
        except FileNotFoundError:
            raise NotFound("blob", key) from None
