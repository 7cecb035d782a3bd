"""Write the audit log: which user did what that affects the safety of others, from where, and when."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from pydantic import JsonValue

from dragoman.errors import DragomanError
from dragoman.store.store import AuditEntry, Store

_FAILURES = 60  # failed sign-ins a minute that are logged one by one; the rest is counted

_log = logging.getLogger("dragoman.audit")


async def audit(
    store: Store, action: str, *, person: str = "", address: str = "", object: str = "", **details: JsonValue
) -> None:
    """Add an entry to the audit log. If the store fails, write the entry to the server's log: the action has
    already happened."""
    entry = AuditEntry(time.time(), action, person, address, object, details)
    try:
        await store.add_audit(entry)
    except DragomanError as error:
        _log.error("not in the audit log (%s): %s", error, entry)


class FailedSignIns:
    """Audit entries for failed sign-ins. Unauthenticated clients cause them, so their number is limited."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._since = float("-inf")
        self._count = 0

    async def add(self, address: str, way: str, why: str) -> None:
        now = self._clock()
        if now - self._since >= 60:
            left_out, self._since, self._count = max(0, self._count - _FAILURES), now, 0
            if left_out:
                await audit(self._store, "sign_in.failed", object="not listed", count=left_out)
        self._count += 1
        if self._count <= _FAILURES:
            await audit(self._store, "sign_in.failed", address=address, object=way, why=why)
