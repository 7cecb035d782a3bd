"""Represents this process as an owner of turns, with a separate connection for its lock and notifications.

The owner is alive while that connection holds the lock and its lease is renewed. The server frees the lock as
soon as the process is gone. The lease covers a process that is stopped or cut off.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import asyncpg

from dragoman.messages.ids import new_id
from dragoman.store.conversations import ListChange

_RENEWALS = 4  # Number of renewals per lease.
_TRIES = 100  # Maximum number of attempts to take this process's lock at the start.
_AGAIN = 0.5  # Seconds before reconnecting after a failure.
_UNASKED = 1000  # Maximum number of list changes kept for the next query.
_FORGOTTEN = 24 * 3600.0  # Seconds after which a dead owner's row is removed.
_log = logging.getLogger("dragoman.store")


class OwnerSession:
    """Reconnects after a failure. Until then, or after a pause, other processes may take its turns."""

    def __init__(
        self,
        connect: Callable[[], Awaitable[asyncpg.Connection[Any]]],
        sql: Callable[..., Awaitable[Any]],
        *,
        channel: str,
        lease: float,
    ) -> None:
        self.name = f"{new_id('run')}_{os.getpid()}_{socket.gethostname()}"
        self.lease = lease
        self._patience = lease / _RENEWALS  # seconds for the answer to a query
        self._connect = connect
        self._run = sql
        self._channel = channel
        self.event_channel = f"{channel}_events"
        self._lock = int.from_bytes(hashlib.sha256(self.name.encode()).digest()[:8], "big", signed=True)
        self._connection: asyncpg.Connection[Any] | None = None
        self._locked = False
        self._in_use = asyncio.Lock()
        self._written = True
        self._writes = asyncio.Event()  # set by writes since the last wait
        self._events = asyncio.Event()
        self._list_changes: dict[ListChange, None] = {}  # changes received since the last query
        self._missed_list_changes = False
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        await self._run("remove_dead_owners", silent=_FORGOTTEN)
        await self._run("add_owner", name=self.name, lock=self._lock)
        for _ in range(_TRIES):  # A process that checks this owner may hold the lock briefly.
            await self._listen()
            if self._locked:
                break
            await asyncio.sleep(0.05)
        self._missed_list_changes = False
        self._task = asyncio.create_task(self._renew_regularly(), name="dragoman-lease")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._connection is not None:
            await self._connection.close()

    def terminate(self) -> None:
        if self._connection is not None:
            self._connection.terminate()

    async def has_new_writes(self) -> bool:
        """Return whether there are new writes. All earlier commits have been received by then.

        The server sends notifications before it answers. No query is needed if one has arrived already.
        """
        if self._written:
            self._written = False
            return True
        async with self._in_use:
            if self._connection is None or self._connection.is_closed():
                return True  # Without a connection, assume new writes.
            await self._use(self._connection.execute("SELECT 1", timeout=self._patience))
        written, self._written = self._written, False
        return written

    async def wait_for_writes(self, seconds: float) -> None:
        await _heard_within(self._writes, seconds)

    async def wait_for_events(self, seconds: float) -> None:
        await _heard_within(self._events, seconds)

    def list_changes(self) -> list[ListChange] | None:
        """Return the changes since the last query. None if some were missed or the last query is too old."""
        changes, self._list_changes = self._list_changes, {}
        missed, self._missed_list_changes = self._missed_list_changes, False
        return None if missed else list(changes)

    async def try_lock(self, name: str) -> bool:
        """Take the lock unless another process has it, until `unlock` or the end of the connection."""
        async with self._in_use:
            if self._connection is None or self._connection.is_closed():
                return False
            query = "SELECT pg_try_advisory_lock(hashtextextended($1, 0))"
            return bool(await self._use(self._connection.fetchval(query, name, timeout=self._patience)))

    async def unlock(self, name: str) -> None:
        async with self._in_use:
            if self._connection is not None:
                query = "SELECT pg_advisory_unlock(hashtextextended($1, 0))"
                with suppress(Exception):  # Then the connection is gone, and the lock with it.
                    await self._use(self._connection.fetchval(query, name, timeout=self._patience))

    async def _listen(self) -> None:
        """Connect and take the lock, which is free once the server has noticed the end of an earlier
        connection."""
        async with self._in_use:
            if self._connection is None or self._connection.is_closed():
                self._connection, self._locked = await self._connect(), False
                for channel, heard in (
                    (self._channel, self._heard),
                    (self.event_channel, self._heard_of_events),
                    (f"{self._channel}_lists", self._heard_of_list),
                ):
                    await self._use(self._connection.add_listener(channel, heard))
                self._heard()  # Writes may have been missed.
                self._heard_of_events()
                self._missed_list_changes = True
            if not self._locked:
                taken = self._connection.fetchval("SELECT pg_try_advisory_lock($1)", self._lock)
                self._locked = await self._use(taken)

    async def _use(self, work: Awaitable[Any]) -> Any:
        """Use the connection, and give it up if it does not answer in time: it may be dead unnoticed."""
        try:
            return await work
        except Exception:
            self.terminate()
            raise

    def _heard(self, *_: object) -> None:
        self._written = True
        self._writes.set()

    def _heard_of_events(self, *_: object) -> None:
        self._events.set()

    def _heard_of_list(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        conversation, _, owner = str(payload).partition(" ")
        self._list_changes[ListChange(conversation, owner)] = None
        if len(self._list_changes) > _UNASKED:
            self._list_changes.clear()
            self._missed_list_changes = True
        self._heard()

    async def _renew_regularly(self) -> None:
        last = ""
        while True:
            await asyncio.sleep(self.lease / _RENEWALS)
            try:
                await self._listen()
                if not await self._run("renew_owner", name=self.name):
                    await self._run("add_owner", name=self.name, lock=self._lock)
                if last:
                    _log.warning("the lease of this process is renewed again")
                last = ""
            except Exception as error:
                if (text := str(error) or type(error).__name__) != last:  # Log the same failure once.
                    _log.warning("cannot renew the lease of this process: %s", text)
                    last = text
                await asyncio.sleep(_AGAIN)


async def _heard_within(heard: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):  # `wait_for` of Python 3.11 may swallow a cancel.
            await heard.wait()
    heard.clear()
