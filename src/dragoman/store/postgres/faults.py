"""What PostgreSQL and the way to it raise, as an error that says what happened and what to do."""

from __future__ import annotations

import asyncio

import asyncpg

from dragoman.errors import StoreUnavailable
from dragoman.messages.boundary import half_a_character

_AGAIN = "it is tried again; see that the server runs and can be reached"
_FAULTS: dict[str, tuple[str, str, bool]] = {  # by the beginning of SQLSTATE: what, what to do, again?
    "08": ("the connection broke", _AGAIN, True),
    "53100": ("the server's disk is full", "make room, and try again", True),
    "53300": ("the server takes no more connections", "raise max_connections, or start fewer nodes", True),
    "53": ("the server lacks room or memory", "see its log", True),
    "57014": ("a statement took too long", "see what else the server does", True),
    "57P": ("the server is shutting down or starting", _AGAIN, True),
    "25006": ("the database is read-only", "see whether it is a replica: name the primary", False),
    "28": ("the server does not let this user in", "see the name and the password in the address", False),
    "3D": ("there is no such database", "create it, or name another one", False),
    "42501": ("the user lacks a right", "let the user create and change tables in the schema", False),
    "58": ("the server's disk reports an error", "see its log", True),
    "XX": ("the server reports damage or a fault of its own", "see its log; restore it from a copy", False),
}
CONFLICTS = ("40001", "40P01")  # two writes that cannot both be first: the later one is run again


def translate(error: BaseException, name: str) -> BaseException:
    """StoreUnavailable for a fault of the server or of the way to it, BadRequest for what no text can hold;
    any other error as it is."""
    if isinstance(error, UnicodeEncodeError) or isinstance(error.__cause__, UnicodeEncodeError):
        return half_a_character("a text")
    state: object = getattr(error, "sqlstate", None)
    if isinstance(state, str):
        for length in (5, 3, 2):
            if (fault := _FAULTS.get(state[:length])) is not None:
                what, hint, retryable = fault
                return StoreUnavailable(f"the store {name}: {what} ({error})", hint, retryable=retryable)
        return error
    lost = OSError | asyncio.TimeoutError | asyncpg.InterfaceError | asyncpg.InternalClientError
    if isinstance(error, lost):
        what = f"the store {name} cannot be reached ({error or type(error).__name__})"
        return StoreUnavailable(what, _AGAIN, retryable=True)
    return error
