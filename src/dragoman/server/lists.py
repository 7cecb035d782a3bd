"""Publishes what becomes of people's lists of conversations, whichever process changes them."""

from __future__ import annotations

import asyncio
import time

from dragoman.errors import NotFound, StoreUnavailable, Unreadable
from dragoman.runtime import Runtime
from dragoman.server.feed import Feed
from dragoman.server.stream import LIST_RESET
from dragoman.server.views import SUMMARY, summaries

_UNREAD = 120.0  # seconds after which a feed that nobody reads is dropped
_REMEMBERED = 1000  # deleted conversations


class Lists:
    """One feed for each person who looks at theirs. A line is published when it is not what it was there."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._feeds: dict[str, Feed] = {}  # by person
        self._lines: dict[str, dict[str, int]] = {}  # by person and conversation: a hash of what was told
        self._changed: dict[str, str | None] = {}  # conversations, and whose they are, if that is known
        self._deleted: dict[str, None] = {}  # not long ago: that is told once, and nothing after it
        self._publishing: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()

    async def feed_of(self, person: str) -> Feed:
        """Everything that changes from here on is published in it."""
        async with self._opening:
            if not self._feeds:
                await self._runtime.store.list_changes()  # so far nobody had to know
            feed = self._feeds.setdefault(person, Feed())
        feed.unread_since = time.monotonic()  # whoever asked for it is about to read it
        return feed

    def changed(self, conversation: str, owner: str | None = None) -> None:
        """Its line is not what it was, or is gone. Published soon, once for all that happens until then."""
        if self._feeds:
            self._changed[conversation] = owner or self._changed.get(conversation)
            self._publish_soon()

    def deleted(self, conversation: str, owner: str) -> None:
        """Told once, whoever is first to say so: who deletes it here, or the look at what others do."""
        if conversation in self._deleted:
            return
        self._deleted[conversation] = None
        while len(self._deleted) > _REMEMBERED:
            self._deleted.pop(next(iter(self._deleted)))
        self._lines.get(owner, {}).pop(conversation, None)
        if (feed := self._feeds.get(owner)) is not None:
            publish_typed(feed, "conversation.deleted", f'{{"id":"{conversation}"}}')

    async def watch_others(self) -> None:
        """Publish what other processes have changed, and what could not be read when it was to be."""
        for person in drop_unread(self._feeds):
            self._lines.pop(person, None)
        if not self._feeds:
            return
        changes = await self._runtime.store.list_changes()
        if changes is None:
            for feed in self._feeds.values():
                feed.publish("list.reset", LIST_RESET)
        for id, owner in changes or ():
            if owner in self._feeds:
                self.changed(id, owner)
        if self._changed:
            self._publish_soon()

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
            owner = self._changed.pop(id)
            try:
                await self._publish_line(id, owner)
            except StoreUnavailable:
                self._changed.setdefault(id, owner)
                return  # it is tried again with the next look at what others do

    async def _publish_line(self, id: str, owner: str | None) -> None:
        was_deleted = id in self._deleted
        try:
            info = await self._runtime.store.conversation(id)
            (line,) = await summaries(self._runtime, [info])
        except Unreadable:
            return
        except NotFound:
            if owner is not None:
                self.deleted(id, owner)
            return
        if id in self._deleted and not was_deleted:
            return  # since it was read
        self._deleted.pop(id, None)  # somebody has begun it anew under its old name
        if (feed := self._feeds.get(info.owner)) is None:
            return
        text = SUMMARY.dump(line)
        lines = self._lines.setdefault(info.owner, {})
        if lines.get(id) != hash(text):  # what was changed here is heard of once more
            lines[id] = hash(text)
            publish_typed(feed, "conversation.changed", text)


def publish_typed(feed: Feed, type: str, data: str) -> None:
    """With the type in the data too: whoever reads the data alone knows what it is."""
    feed.publish(type, f'{{"type":"{type}",{data[1:]}')


def drop_unread(feeds: dict[str, Feed]) -> list[str]:
    """Those that nobody has read for a while; whose they were."""
    long_ago = time.monotonic() - _UNREAD
    unread = [name for name, feed in feeds.items() if not feed.readers and feed.unread_since < long_ago]
    for name in unread:
        del feeds[name]
    return unread
