"""Confirmations: what a person has just been shown, and may be done once, as it was shown."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from hashlib import sha256

from pydantic import JsonValue
from pydantic_core import to_json

LIFETIME = 300.0  # seconds from being shown to being confirmed
_MOST = 100


class Confirmations:
    """Each is for one exact value and one use: nothing runs that the person has not seen as it is."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._shown: dict[str, tuple[bytes, float]] = {}

    def issue(self, value: JsonValue) -> str:
        token = secrets.token_urlsafe(24)
        while len(self._shown) >= _MOST:
            self._shown.pop(next(iter(self._shown)))  # the oldest
        self._shown[token] = (_written(value), self._clock() + LIFETIME)
        return token

    def use(self, token: str, value: JsonValue) -> bool:
        """Whether it was issued for this value, lately, and never used: a wrong use uses it up, too."""
        shown, until = self._shown.pop(token, (b"", 0.0))
        return shown == _written(value) and self._clock() < until


def _written(value: JsonValue) -> bytes:
    """By its hash: there may be a secret in it."""
    return sha256(to_json(value)).digest()
