"""Publishes what turns do and people change to the feeds that clients read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from typing import TypeVar

from dragoman.conversation.sharing import Right
from dragoman.errors import NotFound, StoreUnavailable, Unreadable
from dragoman.messages import events as e
from dragoman.messages.events import EVENT, Event
from dragoman.messages.message import Message
from dragoman.messages.questions import Question
from dragoman.runtime import Runtime
from dragoman.server.event_stream import LIST_RESET, OpenStreams, Reader, Subject
from dragoman.server.feeds import ConversationFeed, Feed, Pace, is_named
from dragoman.server.presence import EVERY, Presence
from dragoman.server.snapshots import (
    QUEUE,
    QUEUED,
    SUMMARY,
    FollowedTurn,
    Trees,
    TreeSnapshot,
    queue_of,
    state_of,
    summaries,
)
from dragoman.store.codecs import QUESTION
from dragoman.store.store import ListChange, TurnRow
from dragoman.turn.live.event_log import QUARANTINED, owner_of
from dragoman.turn.live.log import TurnLog
from dragoman.turn.steps.family import root_of

FeedT = TypeVar("FeedT", bound=Feed)

_UNREAD = 120.0  # seconds after which a feed that nobody reads is dropped
_DELETED = 1000  # deleted conversations


class Lists:
    """One feed for each person who looks at theirs. A line is published when it is not what it was there."""

    def __init__(self, runtime: Runtime, hear: Callable[[], Awaitable[None]]) -> None:
        self._runtime = runtime
        self._hear = hear  # what others have changed so far
        self._feeds: dict[str, Feed] = {}  # by person
        self._lines: dict[str, dict[str, int]] = {}  # by person and conversation: a hash of what was told
        self._changed: dict[
            str, set[str]
        ] = {}  # conversations, and who may have had them, as far as is known
        self._deleted: dict[tuple[str, str], None] = {}  # lines that went not long ago: that is told once
        self._publishing: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()

    async def feed_of(self, person: str) -> Feed:
        """Everything that changes from here on is published in it."""
        async with self._opening:
            if not self._feeds:
                await self._hear()  # so far nobody had to know
            feed = self._feeds.setdefault(person, Feed())
        feed.unread_since = time.monotonic()  # whoever asked for it is about to read it
        return feed

    def changed(self, conversation: str, readers: Iterable[str] = ()) -> None:
        """Its line is not what it was, or is gone. Published soon, once for all that happens until then."""
        if self._feeds:
            self._changed.setdefault(conversation, set()).update(readers)
            self._publish_soon()

    def gone(self, conversation: str, reader: str) -> None:
        """It was deleted, or is not shared with them any more. Told once, whoever is first to say so."""
        if (line := (conversation, reader)) in self._deleted:
            return
        self._deleted[line] = None
        while len(self._deleted) > _DELETED:
            self._deleted.pop(next(iter(self._deleted)))
        self._lines.get(reader, {}).pop(conversation, None)
        if (feed := self._feeds.get(reader)) is not None:
            publish_typed(feed, "conversation.deleted", f'{{"id":"{conversation}"}}')

    def take(self, changes: Sequence[ListChange] | None) -> None:
        """Publish what other processes have changed, and what could not be read when it was to be."""
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
                return  # it is tried again with the next look at what others do

    async def _publish_line(self, id: str, readers: set[str]) -> None:
        """To everybody who has it in a list here; that it is gone, to who may not read it any more."""
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
                continue  # since it was read
            self._deleted.pop((id, reader), None)  # it is there again
            text, lines = SUMMARY.dump(found[0]), self._lines.setdefault(reader, {})
            if lines.get(id) != hash(text):  # what was changed here is heard of once more
                lines[id] = hash(text)
                if (feed := self._feeds.get(reader)) is not None:
                    publish_typed(feed, "conversation.changed", text)


def publish_typed(feed: Feed, type: str, data: str) -> None:
    """With the type in the data too: whoever reads the data alone knows what it is."""
    feed.publish(type, f'{{"type":"{type}",{data[1:]}')


def drop_unread(feeds: dict[str, FeedT]) -> list[str]:
    """Those that nobody has read for a while; whose they were."""
    long_ago = time.monotonic() - _UNREAD
    unread = [name for name, feed in feeds.items() if not feed.readers and feed.unread_since < long_ago]
    for name in unread:
        del feeds[name]
    return unread


_LATEST = 3  # turns whose events may be left, for who has not heard them to their end
_GLANCE = 1.0  # seconds between looks at conversations in which another process may be at work
_SELDOM = 10.0  # seconds between them where nothing is at work, and nothing was written
_PAUSE = 0.1  # seconds between two such looks, whatever is written
_PIECES = (e.TextDelta, e.ReasoningDelta, e.CallInputDelta, e.CallProgress)
_CHANGES_LIST = (e.TurnStart, e.TurnEnd, e.CallAsked, e.CallAnswered)


class Publisher:
    """One feed for each conversation, there only while somebody reads it; and those of people's lists."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.trees = Trees(runtime, self._follow_shown)
        self.streams = OpenStreams(self._begin_watch)
        self.pace = Pace()
        self._conversations: dict[str, ConversationFeed] = {}
        self._opening = asyncio.Lock()
        self._lists = Lists(runtime, self._hear)
        self.presence = Presence(runtime.store, self.streams, runtime.services.clock, self._publish_presence)
        self._revisions: dict[str, int] = {}
        self._queue_marks: dict[str, str | None] = {}
        self._moved: set[str] = set()  # where a turn ended here since others were last looked at
        self._queues: set[str] = set()  # conversations of which readers may know that something is queued
        self._changed_queues: set[str] = set()
        self._queue_being_read: str | None = None
        self._queues_published = 0  # how often
        self._background = runtime.background  # ends with it
        self._publishing_queues: asyncio.Task[None] | None = None
        self._watches = False
        self._unsettled = True  # what is read here is to be looked at again in a moment
        self._followed: dict[str, FollowedTurn] = {}  # of other processes
        self._reading: dict[int, tuple[str, dict[str, FollowedTurn]]] = {}  # conversations, at this moment
        self._numbers = count()
        self._stirred = asyncio.Event()  # another process has written something
        self._written = asyncio.Event()  # the same, for the look at who may still read
        self._access = -1  # the revision that the open streams were last looked at with
        self._rechecks = False
        runtime.bus.watchers.append(self._listen)
        runtime.bus.elsewhere.append(self._begin_elsewhere)
        runtime.bus.elsewhere.append(self._expect)
        runtime.bus.writes.append(self._stirred.set)
        runtime.bus.writes.append(self._note_write)
        for live in runtime.bus.turns():  # adopted when the store was opened
            self._listen(live.log)

    # ── who may read it ───────────────────────────────────────────────────────────────────────────

    async def recheck(self) -> None:
        """End the streams of whoever lost the right to read them: here at once, at other nodes when they hear
        of the write."""
        await self.streams.recheck()

    def _note_write(self) -> None:
        self._written.set()
        if self.streams and not self._rechecks:
            self._rechecks = True
            self._background.repeat("looking who may still read", self._look_at_access, every=_PAUSE)

    async def _look_at_access(self) -> None:
        await self._written.wait()
        self._written.clear()
        if not self.streams:
            return
        try:
            revision = await self._runtime.store.access_revision()
            if revision != self._access:
                await self.streams.recheck()
                self._access = revision
        except StoreUnavailable:
            self._written.set()
            raise

    # ── what can be read ──────────────────────────────────────────────────────────────────────────

    async def conversation(self, id: str, after: str = "") -> Subject:
        """Begins with a snapshot of the whole tree, or at a place that is told here, or was elsewhere."""
        async with self._opening:
            feed = self._conversations.get(id)
            if feed is None or not feed.readers:  # else what others do is seen
                feed = await self._open(id, after)
        feed.unread_since = time.monotonic()  # whoever asked for it is about to read it
        self._begin_watch()

        async def snapshot() -> tuple[TreeSnapshot, int]:
            tree = await self._read_tree(id)
            self._revisions[id] = tree.revision
            return tree, feed.last

        return Subject(feed, snapshot)

    async def _open(self, id: str, after: str) -> ConversationFeed:
        """The feed that is left, if nothing has happened since it was read. Else one that tells what runs
        from its beginning, and again what ended while a reader moved here."""
        store, bus = self._runtime.store, self._runtime.bus
        rows = await store.turns(id)
        ended = [row.id for row in rows if not row.live]
        if (left := self._conversations.get(id)) is not None:
            moving = {live.log.id for live in bus.turns(id)} | self._followed.keys()
            if left.ended - moving == {*ended} - moving:
                self._begin_all_elsewhere(rows)
                return left
        again = {}
        for turn in ended if after else ():
            if is_named(turn, after) or turn in ended[-_LATEST:]:
                told = bus.rest(turn, 0) or [
                    EVENT.load(one.body) for one in await store.events({turn: 0}) if one.seq > 0
                ]
                if told and isinstance(told[-1], e.TurnEnd):
                    again[turn] = [(event, *await self._named_by(turn, event)) for event in told]
        if left is not None:
            left.close()
        self._follow_no_longer(id)  # with nothing awaited from here on: all is told again, in one feed
        feed = self._conversations[id] = ConversationFeed(id, {*ended} - again.keys())
        for turn, events in again.items():
            for event, said, question in events:
                _publish(feed, turn, event, said, question)
        for live in bus.turns(id):
            for event in live.log.events.since(0):
                _publish(feed, live.log.id, event, *_named_here(live.log, event))
        self._begin_all_elsewhere(rows)
        return feed

    async def list_of(self, person: str) -> Subject:
        feed = await self._lists.feed_of(person)
        self._begin_watch()
        return Subject(feed)

    def _begin_watch(self) -> None:
        self._stirred.set()  # something else is read here than before
        if not self._watches:
            self._watches = True
            self._background.repeat("the watch for other processes", self._watch, every=_PAUSE)
            self._background.repeat("presence", self.presence.look, every=EVERY)

    # ── what is published ─────────────────────────────────────────────────────────────────────────

    def changed(self, conversation: str, readers: Iterable[str] = ()) -> None:
        """Its line of the list is not what it was, or is gone from the lists of these."""
        self._lists.changed(conversation, readers)

    async def removed(self, conversation: str, person: str) -> None:
        """It is not shared with them any more: their streams of it end, and its line goes."""
        for id in await self._shared_with(conversation):
            self.streams.end_reader(Reader(person, id))
            self._lists.changed(id, (person,))

    async def _shared_with(self, conversation: str) -> list[str]:
        """Those that are shared together: the one of people, and those that its calls opened."""
        store = self._runtime.store
        with suppress(Unreadable):  # others find out by themselves
            conversation = await root_of(store, await store.conversation(conversation))
        return await store.within(conversation)

    async def shared(self, conversation: str, person: str) -> None:
        """It is shared with them now, or their role is another."""
        for id in await self._shared_with(conversation):
            self._lists.changed(id, (person,))

    def deleted(self, conversation: str, readers: Iterable[str]) -> None:
        for reader in readers:
            self._lists.gone(conversation, reader)
        self.trees.forget(conversation)
        if (feed := self._conversations.pop(conversation, None)) is not None:
            feed.close()

    def queue_changed(self, conversation: str) -> None:
        """Something was sent that no turn has taken yet, or was changed, called off or taken."""
        if conversation not in self._conversations:
            return
        self._queues.add(conversation)
        self._changed_queues.add(conversation)
        self._publish_queues_soon()

    def _publish_presence(self, conversation: str, data: str) -> None:
        if (feed := self._conversations.get(conversation)) is not None:
            publish_typed(feed, "presence", data)

    def _publish_queues_soon(self) -> None:
        if self._publishing_queues is None or self._publishing_queues.done():
            self._publishing_queues = self._background.run("publishing queues", self._publish_queues)

    def close(self) -> None:
        """The server closes: everybody may go."""
        self.streams.close()
        for feed in self._conversations.values():
            feed.close()
        self._lists.close()

    def _listen(self, log: TurnLog) -> None:
        """Before a turn runs here: whatever it publishes goes to the readers of its conversation."""
        log.events.watchers.append(self._listener(log))

    def _listener(self, log: TurnLog) -> Callable[[Event], None]:
        conversation, head = log.conversation.id, f'{{"turn":"{log.id}",'
        feeds, dump = self._conversations, EVENT.dump

        def hear(event: Event) -> None:
            feed = feeds.get(conversation)
            if isinstance(event, _PIECES):
                if feed is not None:
                    feed.advance(log.id, event.seq)
                    feed.publish(event.type, head + dump(event)[1:], piece=True)
                return
            if feed is not None:
                _publish(feed, log.id, event, *_named_here(log, event))
            if isinstance(event, e.TurnEnd):
                self._note_end(conversation)
            if conversation in self._queues and isinstance(event, e.TurnStart | e.MessageAdded):
                self.queue_changed(conversation)  # something of it may have been taken
            if _changes_list(event):
                self.changed(conversation)

        return hear

    def _note_end(self, conversation: str) -> None:
        """What a turn changed has been published."""
        self._revisions.pop(conversation, None)
        self._moved.add(conversation)
        self._stirred.set()

    async def _publish_queues(self) -> None:
        """One after the other, so that what was read first is published first."""
        while self._changed_queues:
            self._queue_being_read = id = self._changed_queues.pop()
            try:
                queue = await queue_of(self._runtime, id, await self._runtime.store.live_turns(id))
            except (NotFound, Unreadable):
                continue
            except StoreUnavailable:
                self._changed_queues.add(id)
                self._stirred.set()
                return  # it is tried again with the next look at what others do
            finally:
                self._queue_being_read = None
            if not queue.queued and not queue.steering:
                self._note_empty_queue(id)
            if (feed := self._conversations.get(id)) is not None:
                self._queues_published += 1
                publish_typed(feed, "queue.changed", QUEUE.dump(queue))

    def _note_empty_queue(self, id: str) -> None:
        """Unless it is about to be read again: whatever is taken from it until then has to be heard."""
        if id not in self._changed_queues and id != self._queue_being_read:
            self._queues.discard(id)

    async def _read_tree(self, id: str) -> TreeSnapshot:
        """As it is now. Its queue may have changed since that was read, and is published once more then."""
        published = self._queues_published
        self._queues.add(id)
        elsewhere = {turn.id: turn for turn in self._followed.values() if turn.conversation == id}
        reading = next(self._numbers)
        self._reading[reading] = id, elsewhere
        try:
            tree = await self.trees.read(id, elsewhere)
        finally:
            del self._reading[reading]
        if self._queues_published != published:
            self.queue_changed(id)
        elif tree.nothing_queued:
            self._note_empty_queue(id)
        return tree

    # ── what another process does ─────────────────────────────────────────────────────────────────

    async def _watch(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_GLANCE if self._unsettled else _SELDOM):
                await self._stirred.wait()
        self._stirred.clear()
        self._unsettled = True  # unless we come to the end of this
        await self._hear()
        await self._watch_others()
        self._unsettled = self._lists.unsettled or not self._is_settled()

    async def _hear(self) -> None:
        """What other processes have changed: lines of lists are published, and streams end whose readers may
        not read them any more."""
        new, self.streams.new_readers = self.streams.new_readers, set()
        readers = self.streams.readers
        if not readers and not self._lists.is_read:
            await self._runtime.store.list_changes()  # from here on it is known
            return
        changes = await self._runtime.store.list_changes()
        self._lists.take(changes)
        told = None if changes is None else {(reader, id) for id, reader in changes}
        for reader in readers:
            if told is None or reader in new or (reader.person, reader.conversation) in told:
                await self._end_if_removed(reader)

    async def _end_if_removed(self, reader: Reader) -> None:
        try:
            right = await self._runtime.store.right_of(reader.conversation, reader.person)
        except NotFound:
            right = Right.NONE
        except StoreUnavailable:
            self.streams.new_readers.add(reader)  # it is looked again
            return
        if right is Right.NONE:
            self.streams.end_reader(reader)

    def _is_settled(self) -> bool:
        """Whether nothing can change in a conversation that is read here without our being told."""
        if self._changed_queues:
            return False
        read = {id for id, feed in self._conversations.items() if feed.readers}
        followed = {turn.conversation for turn in self._followed.values()}
        return read <= self._revisions.keys() | followed

    async def _watch_others(self) -> None:
        """Conversations that somebody reads here: turns that another process runs in them are followed, and
        whatever else changes is published as a snapshot."""
        self._moved.clear()
        for id in drop_unread(self._conversations):
            self._follow_no_longer(id)
        for known in (self._revisions, self._queue_marks):
            for id in known.keys() - self._conversations.keys():  # dropped or deleted
                del known[id]
        self._queues &= self._conversations.keys()
        if self._changed_queues:
            self._publish_queues_soon()
        read = [id for id, feed in self._conversations.items() if feed.readers]
        if not read:
            return
        store, bus = self._runtime.store, self._runtime.bus
        queues = await store.queue_marks(read)
        for id in read:
            if self._queue_marks.get(id) != queues.get(id):
                self._queue_marks[id] = queues.get(id)
                self.queue_changed(id)  # perhaps by another process
        revisions = await store.revisions(read)  # first: what begins here meanwhile is seen below
        busy = set()
        for row in await store.live_turns_among(read):
            busy.add(row.conversation)
            if bus.here(row.id) is None:
                self._begin_elsewhere(row.id, row.conversation)
        ours = self._moved | {live.log.conversation.id for live in bus.turns()}
        ours |= {turn.conversation for turn in self._followed.values()}
        for id in read:
            if id not in revisions and (feed := self._conversations.pop(id, None)) is not None:
                feed.close()  # another process has deleted it
        for id, revision in revisions.items():
            before = self._revisions.get(id)
            if id in ours:
                self._revisions.pop(id, None)  # what has been published is not to be published again
            elif id not in busy:
                self._revisions[id] = revision
                if await self._has_missed(id) if before is None else before != revision:
                    await self._publish_snapshot(id)

    async def _has_missed(self, id: str) -> bool:
        """Whether a turn began and ended elsewhere, while it was not known what had changed."""
        rows = await self._runtime.store.turns(id)
        feed = self._conversations.get(id)
        return feed is not None and any(not row.live and not feed.has_begun(row.id) for row in rows)

    def _begin_all_elsewhere(self, rows: Iterable[TurnRow]) -> None:
        for row in rows:
            if row.live and self._runtime.bus.here(row.id) is None:
                self._begin_elsewhere(row.id, row.conversation, shown=True)

    def _follow_no_longer(self, conversation: str) -> None:
        """Who reads it again is told of its turns from their beginning."""
        for turn in [one.id for one in self._followed.values() if one.conversation == conversation]:
            del self._followed[turn]

    def _begin_elsewhere(self, turn: str, conversation: str, *, shown: bool = False) -> None:
        """Another process runs it, or will. It is followed as long as its conversation is read here."""
        feed = self._conversations.get(conversation)
        if feed is None or feed.has_ended(turn):
            return  # whoever says that it runs has read that before its end was heard
        if turn not in self._followed:
            followed = FollowedTurn(turn, conversation, shown=shown, known=feed.last_of(turn))
            self._followed[turn] = followed
            for read, elsewhere in self._reading.values():
                if read == conversation:  # what broke off is not to be shown in place of it
                    elsewhere[turn] = followed
            self._background.run(f"following turn {turn}", partial(self._follow_other, followed))

    def _follow_shown(self, turn: str, conversation: str) -> FollowedTurn | None:
        """The same for one that a snapshot shows."""
        self._begin_elsewhere(turn, conversation, shown=True)
        return self._followed.get(turn)

    def _expect(self, turn: str, conversation: str) -> None:
        """It was asked for here. Who reads its conversation is shown if it has to wait for a place."""
        if conversation in self._conversations:
            self._background.run(f"waiting for turn {turn}", partial(self._show_waiting, turn, conversation))

    async def _show_waiting(self, turn: str, conversation: str) -> None:
        await asyncio.sleep(_GLANCE)
        if (feed := self._conversations.get(conversation)) is None or feed.has_begun(turn):
            return  # it has begun, or nobody reads it any more
        with suppress(NotFound, StoreUnavailable):
            if await state_of(self._runtime, await self._runtime.store.turn(turn)) == QUEUED:
                await self._publish_snapshot(conversation)

    async def _follow_other(self, followed: FollowedTurn) -> None:
        """What a turn of another process publishes, as if it ran here."""
        turn, bus = followed.id, self._runtime.bus
        try:
            async for batch in bus.follow(turn):
                for event in batch:
                    if bus.here(turn) is not None:
                        return  # it was taken up here, and is heard without us
                    if not await self._hear_other(followed, event):
                        return  # nobody reads it any more
            if bus.here(turn) is None and not followed.ended:
                await self._tell_end(followed)
        except NotFound:
            pass  # deleted meanwhile
        except StoreUnavailable:
            await asyncio.sleep(_GLANCE)
            if self._followed.get(turn) is followed:
                del self._followed[turn]
                self._begin_elsewhere(turn, followed.conversation, shown=True)
        finally:
            followed.move()
            if self._followed.get(turn) is followed:
                del self._followed[turn]
            self._stirred.set()

    async def _hear_other(self, followed: FollowedTurn, event: Event) -> bool:
        """What is awaited is awaited first: that it was heard here, and what readers are told, is one."""
        turn, conversation = followed.id, followed.conversation
        if not event.seq and followed.shown:
            return True  # what it asks is in the snapshot
        if event.seq and (epoch := owner_of(event.seq)) != followed.epoch:
            followed.begin(epoch, await self._begun_by(turn, epoch))
        said, question = await self._named_by(turn, event)
        feed = self._conversations.get(conversation)
        if feed is None or self._followed.get(turn) is not followed:
            return False
        followed.apply(event, question)
        if event.seq and feed.has(turn, event.seq):
            return True  # they know: it ran here then, or was followed before
        _publish(feed, turn, event, said, question)
        if isinstance(event, e.TurnEnd):
            self._note_end(conversation)
        if conversation in self._queues and isinstance(event, e.TurnStart | e.MessageAdded):
            self.queue_changed(conversation)  # something of it may have been taken
        if _changes_list(event):
            self.changed(conversation)
        if isinstance(event, e.Notice) and event.kind == QUARANTINED:
            await self._publish_snapshot(conversation)  # it is interrupted
        return True

    async def _begun_by(self, turn: str, epoch: int) -> list[Message] | None:
        return [] if epoch == 1 else await self._runtime.bus.begun_by(turn, epoch)

    async def _named_by(self, turn: str, event: Event) -> tuple[list[Message], Question | None]:
        """What an event goes with: the messages that there were at a start, or a question."""
        store = self._runtime.store
        if isinstance(event, e.TurnStart):
            begun = await self._begun_by(turn, owner_of(event.seq)) or []
            return _first(await store.message(event.message), begun), None
        return [], await store.question(event.question) if isinstance(event, e.CallAsked) else None

    async def _tell_end(self, followed: FollowedTurn) -> None:
        """Whoever ran it did not live to tell that it is over, nor perhaps what it did at last."""
        end = await self._runtime.turn(followed.id).end()
        stored, _ = await self._runtime.store.messages(followed.conversation)
        said = [message for message in stored if message.turn == followed.id]
        if end is not None and (feed := self._conversations.get(followed.conversation)) is not None:
            followed.apply(end)
            _publish(feed, followed.id, end, said)
        await self._publish_snapshot(followed.conversation)

    async def _publish_snapshot(self, id: str) -> None:
        try:
            ended = [row.id for row in await self._runtime.store.turns(id) if not row.live]
            tree = await self._read_tree(id)
        except (NotFound, Unreadable, StoreUnavailable):
            return  # deleted meanwhile, or out of reach: who opens it again learns that
        if (feed := self._conversations.get(id)) is not None:
            feed.know(ended)
            feed.publish("snapshot", tree.text())
        self.changed(id)


def _publish(
    feed: ConversationFeed,
    turn: str,
    event: Event,
    said: Iterable[Message] = (),
    question: Question | None = None,
) -> None:
    """As JSON that names its turn. A question comes whole. Before a start come the messages that there were:
    the person's, and those of an owner that may have died before it told of them."""
    for message in said:
        if isinstance(event, e.TurnStart):
            feed.advance(turn, event.seq - 1)
        _publish(feed, turn, e.MessageAdded(message))
    data, head = EVENT.dump(event), f'{{"turn":"{turn}",'
    if isinstance(event, e.CallAsked):
        whole = QUESTION.dump(question) if question is not None else "null"
        data = f'{head}{data[1:-1]},"whole":{whole}}}'
    elif not isinstance(event, e.TurnStart):  # which names its turn itself
        data = head + data[1:]
    if isinstance(event, e.TurnEnd):
        feed.end(turn)
    elif event.seq:
        feed.advance(turn, event.seq)
    feed.publish(event.type, data, piece=isinstance(event, _PIECES))


def _named_here(log: TurnLog, event: Event) -> tuple[list[Message], Question | None]:
    """The same of a turn that runs here."""
    if isinstance(event, e.TurnStart):
        person = next((one for one in log.path if one.id == log.turn.message), None)
        return _first(person, log.begun) if person is not None else [], None
    return [], log.questions.get(event.question) if isinstance(event, e.CallAsked) else None


def _first(person: Message, begun: Iterable[Message]) -> list[Message]:
    return [person, *(message for message in begun if message.id != person.id)]


def _changes_list(event: Event) -> bool:
    return isinstance(event, _CHANGES_LIST) or (isinstance(event, e.Notice) and event.kind == "title")
