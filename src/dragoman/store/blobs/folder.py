"""Bytes in, their SHA-256 out, and back again: large outputs and attachments, each stored once."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterable
from pathlib import Path

from dragoman.errors import NotFound
from dragoman.messages.ids import new_id

_KEY = re.compile(r"[0-9a-f]{64}")
_JUST_NOW = 3600.0  # seconds in which a message that mentions it may still be on its way


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
        try:
            os.utime(target)  # somebody wants it now: it is not to be swept away meanwhile
        except (FileNotFoundError, NotADirectoryError):
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

    def sweep(self, keys: Iterable[str]) -> None:
        """Remove what nobody mentions any more, unless it was put here just now."""
        for key in keys:
            target = self.path(key)
            try:
                if target.stat().st_mtime < time.time() - _JUST_NOW:
                    target.unlink()
            except OSError:
                continue  # gone already, or not ours to remove: it costs room and no more

    def get(self, key: str) -> bytes:
        try:
            return self.path(key).read_bytes()
        except FileNotFoundError:
            raise NotFound("blob", key) from None
