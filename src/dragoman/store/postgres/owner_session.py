"""This process as an owner of turns: one connection of its own, which holds its lock and hears of writes.

It is alive as long as that connection holds the lock and has renewed its lease. The lock is the server's,
which frees it as soon as the process is gone; the lease is for one that is stopped, or cut off.
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

_RENEWALS = 4  # in the time of one lease
_TRIES = 100  # to take our own lock at the start
_AGAIN = 0.5  # seconds before a connection that broke is tried again
_UNASKED = 1000  # changes of lists that are kept for who may ask for them
_FORGOTTEN = 24 * 3600.0  # seconds after which nobody asks for a dead owner any more
_log = logging.getLogger("dragoman.store")


class OwnerSession:
    """Connects again when the connection breaks: until then, and after a pause, others may take its turns."""

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
        self._connect = connect
        self._run = sql
        self._channel = channel
        self.event_channel = f"{channel}_events"
        self._lock = int.from_bytes(hashlib.sha256(self.name.encode()).digest()[:8], "big", signed=True)
        self._connection: asyncpg.Connection[Any] | None = None
        self._locked = False
        self._in_use = asyncio.Lock()
        self._written = True
        self._writes = asyncio.Event()  # heard of since somebody last waited for them
        self._events = asyncio.Event()
        self._list_changes: dict[ListChange, None] = {}  # heard of since somebody last asked
        self._missed_list_changes = False
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        await self._run("remove_dead_owners", silent=_FORGOTTEN)
        await self._run("add_owner", name=self.name, lock=self._lock)
        for _ in range(_TRIES):  # who looks whether we live may hold it for a moment
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

    async def has_new_writes(self) -> bool:
        """What was committed before this has been heard: the server tells it before it answers, and need not
        be asked where something was heard already."""
        if self._written:
            self._written = False
            return True
        async with self._in_use:
            if self._connection is None or self._connection.is_closed():
                return True  # nobody can tell us: there may be
            await self._use(self._connection.execute("SELECT 1"))
        written, self._written = self._written, False
        return written

    async def wait_for_writes(self, seconds: float) -> None:
        await _heard_within(self._writes, seconds)

    async def wait_for_events(self, seconds: float) -> None:
        await _heard_within(self._events, seconds)

    def list_changes(self) -> list[ListChange] | None:
        """Since this was last asked. None where some were not heard, or nobody asked for too long."""
        changes, self._list_changes = self._list_changes, {}
        missed, self._missed_list_changes = self._missed_list_changes, False
        return None if missed else list(changes)

    async def try_lock(self, name: str) -> bool:
        """Hold it, unless another process does, until `unlock` or the end of the connection."""
        async with self._in_use:
            if self._connection is None or self._connection.is_closed():
                return False
            query = "SELECT pg_try_advisory_lock(hashtextextended($1, 0))"
            return bool(await self._use(self._connection.fetchval(query, name)))

    async def unlock(self, name: str) -> None:
        async with self._in_use:
            if self._connection is not None and not self._connection.is_closed():
                query = "SELECT pg_advisory_unlock(hashtextextended($1, 0))"
                with suppress(Exception):  # then the connection is gone, and the lock with it
                    await self._use(self._connection.fetchval(query, name))

    async def _listen(self) -> None:
        """Be connected, and hold the lock: it is free when the server has noticed that an earlier connection
        of ours is gone."""
        async with self._in_use:
            if self._connection is None or self._connection.is_closed():
                connection = await self._connect()
                await connection.add_listener(self._channel, self._heard)
                await connection.add_listener(self.event_channel, self._heard_of_events)
                await connection.add_listener(f"{self._channel}_lists", self._heard_of_list)
                self._connection, self._locked = connection, False
                self._heard()  # nobody knows what was missed
                self._heard_of_events()
                self._missed_list_changes = True
            if not self._locked:
                taken = self._connection.fetchval("SELECT pg_try_advisory_lock($1)", self._lock)
                self._locked = await self._use(taken)

    async def _use(self, work: Awaitable[Any]) -> Any:
        """A connection that does not answer in time is given up: it may be dead without anybody knowing."""
        try:
            return await work
        except Exception:
            if self._connection is not None:
                self._connection.terminate()
                self._connection = None
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
                if (text := str(error) or type(error).__name__) != last:  # the same failure is told once
                    _log.warning("cannot renew the lease of this process: %s", text)
                    last = text
                await asyncio.sleep(_AGAIN)


async def _heard_within(heard: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):  # `wait_for` of Python 3.11 may swallow a cancel
            await heard.wait()
    heard.clear()
