"""Creates IDs: a short noun and eighty random bits, easy to read aloud and safe in URLs and file names."""

from __future__ import annotations

import hashlib
import secrets

from dragoman.errors import BadRequest

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's alphabet: no i, l, o, u.


def new_id(noun: str) -> str:
    """Return a random ID: `new_id("turn")` → `turn_9x3k…`, sixteen characters after the noun."""
    return f"{noun}_{_spell(secrets.token_bytes(10))}"


def derived_id(noun: str, *origin: object) -> str:
    """Return the same ID for the same origin, so that work repeated after a crash keeps its IDs."""
    digest = hashlib.sha256("\0".join(map(str, origin)).encode("utf-8", "surrogatepass")).digest()
    return f"{noun}_{_spell(digest[:10])}"


def check_ids(**given: object) -> None:
    """Raise BadRequest if an ID or a user is not a string. SQLite binds NaN as NULL, which matches every
    user."""
    for name, value in given.items():
        if value is not None and not isinstance(value, str):
            raise BadRequest(f"{name} must be a string, not {value!r:.80}.")


def _spell(data: bytes) -> str:
    number = int.from_bytes(data, "big")
    return "".join(_ALPHABET[(number >> shift) & 31] for shift in range(75, -5, -5))
