"""Publish the changed lines of conversation lists."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence

from dragoman.errors import NotFound, StoreUnavailable, Unreadable
from dragoman.runtime import Runtime
from dragoman.server.event_stream import LIST_RESET
from dragoman.server.feeds import Feed, drop_unread, publish_typed
from dragoman.server.snapshots import SUMMARY, summaries
from dragoman.store.store import ListChange

_DELETED = 1000  # maximum number of remembered deletions


class Lists:
    """The feeds of conversation lists, one for each user who reads theirs. Only lines that changed are
    published."""

    def __init__(self, runtime: Runtime, hear: Callable[[], Awaitable[None]]) -> None:
        self._runtime = runtime
        self._hear = hear  # applies the changes of other processes so far
        self._feeds: dict[str, Feed] = {}  # by user
        self._lines: dict[str, dict[str, int]] = {}  # by user and conversation: a hash of the published line
        # changed conversations, with users who could have them in their list
        self._changed: dict[str, set[str]] = {}
        # lines that were recently removed: each removal is published once
        self._deleted: dict[tuple[str, str], None] = {}
        self._publishing: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()

    async def feed_of(self, person: str) -> Feed:
        """Return the user's feed. It contains all changes from now on."""
        async with self._opening:
            if not self._feeds:
                await self._hear()  # Without feeds, changes were not tracked.
            feed = self._feeds.setdefault(person, Feed())
        feed.unread_since = time.monotonic()  # The caller is about to read it.
        return feed

    def changed(self, conversation: str, readers: Iterable[str] = ()) -> None:
        """Publish the conversation's line soon, once for all changes until then."""
        if self._feeds:
            self._changed.setdefault(conversation, set()).update(readers)
            self._publish_soon()

    def gone(self, conversation: str, reader: str) -> None:
        """Publish that a conversation was deleted or is not shared with this reader any longer. It is
        published only once."""
        if (line := (conversation, reader)) in self._deleted:
            return
        self._deleted[line] = None
        while len(self._deleted) > _DELETED:
            self._deleted.pop(next(iter(self._deleted)))
        self._lines.get(reader, {}).pop(conversation, None)
        if (feed := self._feeds.get(reader)) is not None:
            publish_typed(feed, "conversation.deleted", f'{{"id":"{conversation}"}}')

    def take(self, changes: Sequence[ListChange] | None) -> None:
        """Publish the changes of other processes, and those that could not be read before."""
        for person in drop_unread(self._feeds):
            self._lines.pop(person, None)
        if not self._feeds:
            return
        if changes is None:
            for feed in self._feeds.values():
                feed.publish("list.reset", LIST_RESET)
        for id, reader in changes or ():
            if reader in self._feeds:
                self.changed(id, (reader,))
        if self._changed:
            self._publish_soon()

    @property
    def is_read(self) -> bool:
        return bool(self._feeds)

    @property
    def unsettled(self) -> bool:
        """Whether something is still to be published."""
        return bool(self._changed)

    def close(self) -> None:
        for feed in self._feeds.values():
            feed.close()

    def _publish_soon(self) -> None:
        if self._publishing is None or self._publishing.done():
            background = self._runtime.background
            self._publishing = background.run("publishing changes of the list", self._publish_changes)

    async def _publish_changes(self) -> None:
        while self._changed:
            id = next(iter(self._changed))
            readers = self._changed.pop(id)
            try:
                await self._publish_line(id, readers)
            except StoreUnavailable:
                self._changed.setdefault(id, set()).update(readers)
                return  # The next check of other processes tries again.

    async def _publish_line(self, id: str, readers: set[str]) -> None:
        """Publish a line to all its readers on this server, and its removal to users who may not read it any
        longer."""
        before = set(self._deleted)
        store = self._runtime.store
        try:
            info = await store.conversation(id)
            members = {member.user for member in await store.members(id)}
        except Unreadable:
            return
        except NotFound:
            for reader in readers:
                self.gone(id, reader)
            return
        for reader in self._feeds.keys() & (readers | members | {info.owner}):
            found = await summaries(self._runtime, [info], reader)
            if not found:
                self.gone(id, reader)
                continue
            if (id, reader) in self._deleted and (id, reader) not in before:
                continue  # The line was removed after it was read.
            self._deleted.pop((id, reader), None)  # The line exists again.
            text, lines = SUMMARY.dump(found[0]), self._lines.setdefault(reader, {})
            # The same change can arrive twice: made here, and from the store.
            if lines.get(id) != hash(text):
                lines[id] = hash(text)
                if (feed := self._feeds.get(reader)) is not None:
                    publish_typed(feed, "conversation.changed", text)
