"""Publish changes by turns and users to the feeds that clients read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from itertools import count

from dragoman.conversation.sharing import Right
from dragoman.errors import NotFound, StoreUnavailable, Unreadable
from dragoman.messages import events as e
from dragoman.messages.events import EVENT, Event
from dragoman.messages.message import Message
from dragoman.messages.questions import Question
from dragoman.runtime import Runtime
from dragoman.server.event_stream import OpenStreams, Reader, Subject
from dragoman.server.feeds import ConversationFeed, Pace, drop_unread, is_named, publish_typed
from dragoman.server.list_feeds import Lists
from dragoman.server.presence import EVERY, Presence
from dragoman.server.snapshots import (
    QUEUE,
    QUEUED,
    FollowedTurn,
    Trees,
    TreeSnapshot,
    queue_of,
    state_of,
)
from dragoman.store.codecs import QUESTION
from dragoman.store.store import TurnRow
from dragoman.turn.live.event_log import QUARANTINED, owner_of
from dragoman.turn.live.log import TurnLog
from dragoman.turn.steps.family import root_of

_LATEST = 3  # number of turns whose events may be left, for clients that have not read them to the end
_GLANCE = 1.0  # seconds between checks of conversations in which another process can be active
_SELDOM = 10.0  # seconds between checks if nothing is active and nothing was written
_PAUSE = 0.1  # minimum seconds between two checks
_PIECES = (e.TextDelta, e.ReasoningDelta, e.CallInputDelta, e.CallProgress)
_CHANGES_LIST = (e.TurnStart, e.TurnEnd, e.CallAsked, e.CallAnswered)


class Publisher:
    """The feeds of conversations, which exist while they are read, and those of lists."""

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
        # conversations where a turn ended here since the last check of other processes
        self._moved: set[str] = set()
        self._queues: set[str] = set()  # conversations whose readers may show a queue
        self._changed_queues: set[str] = set()
        self._queue_being_read: str | None = None
        self._queues_published = 0  # number of published queues
        self._background = runtime.background  # It ends together with the runtime.
        self._publishing_queues: asyncio.Task[None] | None = None
        self._watches = False
        self._unsettled = True  # whether the next check comes soon
        self._followed: dict[str, FollowedTurn] = {}  # turns of other processes
        # conversations that are being read, with their followed turns
        self._reading: dict[int, tuple[str, dict[str, FollowedTurn]]] = {}
        self._numbers = count()
        self._stirred = asyncio.Event()  # set when another process has written something
        self._written = asyncio.Event()  # the same, for the check of access rights
        self._access = -1  # the revision of access rights at the last check
        self._rechecks = False
        runtime.bus.watchers.append(self._listen)
        runtime.bus.elsewhere.append(self._begin_elsewhere)
        runtime.bus.elsewhere.append(self._expect)
        runtime.bus.writes.append(self._stirred.set)
        runtime.bus.writes.append(self._note_write)
        for live in runtime.bus.turns():  # turns that were adopted when the store was opened
            self._listen(live.log)

    # ── access ────────────────────────────────────────────────────────────────────────────────────

    async def recheck(self) -> None:
        """End the streams of users who lost the right to read them. Other servers do so when they notice the
        write."""
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

    # ── readable objects ──────────────────────────────────────────────────────────────────────────

    async def conversation(self, id: str, after: str = "") -> Subject:
        """Return the subject of a conversation: a snapshot of the whole tree, or a resume after a place."""
        async with self._opening:
            feed = self._conversations.get(id)
            if feed is None or not feed.readers:  # Otherwise the feed already follows other processes.
                feed = await self._open(id, after)
        feed.unread_since = time.monotonic()  # The caller is about to read it.
        self._begin_watch()

        async def snapshot() -> tuple[TreeSnapshot, int]:
            tree = await self._read_tree(id)
            self._revisions[id] = tree.revision
            return tree, feed.last

        return Subject(feed, snapshot)

    async def _open(self, id: str, after: str) -> ConversationFeed:
        """Return the existing feed if nothing has happened since it was read. Otherwise return a new one.

        The new feed contains running turns from their beginning. It also contains turns that ended while a
        reader moved to this server.
        """
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
        self._follow_no_longer(id)  # Nothing is awaited from here on, so one feed receives all events again.
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
        self._stirred.set()  # This server now reads another conversation.
        if not self._watches:
            self._watches = True
            self._background.repeat("the watch for other processes", self._watch, every=_PAUSE)
            self._background.repeat("presence", self.presence.look, every=EVERY)

    # ── published events ──────────────────────────────────────────────────────────────────────────

    def changed(self, conversation: str, readers: Iterable[str] = ()) -> None:
        """Publish that the line of a conversation has changed, or was removed from the lists of these
        readers."""
        self._lists.changed(conversation, readers)

    async def removed(self, conversation: str, person: str) -> None:
        """End a user's streams of a conversation and remove its line, because it is not shared with them any
        longer."""
        for id in await self._shared_with(conversation):
            self.streams.end_reader(Reader(person, id))
            self._lists.changed(id, (person,))

    async def _shared_with(self, conversation: str) -> list[str]:
        """Return the conversations that are shared together: the user's, and those that its calls opened."""
        store = self._runtime.store
        with suppress(Unreadable):  # Readers of an unreadable conversation learn of it by themselves.
            conversation = await root_of(store, await store.conversation(conversation))
        return await store.within(conversation)

    async def shared(self, conversation: str, person: str) -> None:
        """Publish that a conversation is shared with a user, or that their role has changed."""
        for id in await self._shared_with(conversation):
            self._lists.changed(id, (person,))

    def deleted(self, conversation: str, readers: Iterable[str]) -> None:
        for reader in readers:
            self._lists.gone(conversation, reader)
        self.trees.forget(conversation)
        if (feed := self._conversations.pop(conversation, None)) is not None:
            feed.close()

    def queue_changed(self, conversation: str) -> None:
        """Publish that a queued message was added, changed, cancelled or taken by a turn."""
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
        """End all streams and feeds, because the server closes."""
        self.streams.close()
        for feed in self._conversations.values():
            feed.close()
        self._lists.close()

    def _listen(self, log: TurnLog) -> None:
        """Publish the events of a turn to the readers of its conversation. Called before the turn runs
        here."""
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
                self.queue_changed(conversation)  # The turn can have taken queued messages.
            if _changes_list(event):
                self.changed(conversation)

        return hear

    def _note_end(self, conversation: str) -> None:
        """Record that the changes of a turn have been published."""
        self._revisions.pop(conversation, None)
        self._moved.add(conversation)
        self._stirred.set()

    async def _publish_queues(self) -> None:
        """Publish one queue after the other, so that what was read first is published first."""
        while self._changed_queues:
            self._queue_being_read = id = self._changed_queues.pop()
            try:
                queue = await queue_of(self._runtime, id, await self._runtime.store.live_turns(id))
            except (NotFound, Unreadable):
                continue
            except StoreUnavailable:
                self._changed_queues.add(id)
                self._stirred.set()
                return  # The next check of other processes tries again.
            finally:
                self._queue_being_read = None
            if not queue.queued and not queue.steering:
                self._note_empty_queue(id)
            if (feed := self._conversations.get(id)) is not None:
                self._queues_published += 1
                publish_typed(feed, "queue.changed", QUEUE.dump(queue))

    def _note_empty_queue(self, id: str) -> None:
        """Record an empty queue, unless it is about to be read again: until then, changes to it must be
        published."""
        if id not in self._changed_queues and id != self._queue_being_read:
            self._queues.discard(id)

    async def _read_tree(self, id: str) -> TreeSnapshot:
        """Return the current tree. If its queue was published in the meantime, it is published again."""
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

    # ── changes of other processes ────────────────────────────────────────────────────────────────

    async def _watch(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_GLANCE if self._unsettled else _SELDOM):
                await self._stirred.wait()
        self._stirred.clear()
        self._unsettled = True  # Reset below if this check completes.
        await self._hear()
        await self._watch_others()
        self._unsettled = self._lists.unsettled or not self._is_settled()

    async def _hear(self) -> None:
        """Publish list changes of other processes, and end streams whose users may not read them any
        longer."""
        new, self.streams.new_readers = self.streams.new_readers, set()
        readers = self.streams.readers
        if not readers and not self._lists.is_read:
            await self._runtime.store.list_changes()  # Changes are tracked from here on.
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
            self.streams.new_readers.add(reader)  # The next check tries again.
            return
        if right is Right.NONE:
            self.streams.end_reader(reader)

    def _is_settled(self) -> bool:
        """Return whether this server receives every change of the conversations that are read here."""
        read = {id for id, feed in self._conversations.items() if feed.readers}
        followed = {turn.conversation for turn in self._followed.values()}
        return read <= self._revisions.keys() | followed

    async def _watch_others(self) -> None:
        """Follow turns of other processes in conversations that are read here, and publish other changes as
        snapshots."""
        self._moved.clear()
        for id in drop_unread(self._conversations):
            self._follow_no_longer(id)
        for known in (self._revisions, self._queue_marks):
            for id in known.keys() - self._conversations.keys():  # conversations that were dropped or deleted
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
                self.queue_changed(id)  # Possibly, another process changed it.
        # Revisions are read first: turns that begin here in the meantime are found below.
        revisions = await store.revisions(read)
        busy = set()
        for row in await store.live_turns_among(read):
            busy.add(row.conversation)
            if bus.here(row.id) is None:
                self._begin_elsewhere(row.id, row.conversation)
        ours = self._moved | {live.log.conversation.id for live in bus.turns()}
        ours |= {turn.conversation for turn in self._followed.values()}
        for id in read:
            if id not in revisions and (feed := self._conversations.pop(id, None)) is not None:
                feed.close()  # Another process has deleted it.
        for id, revision in revisions.items():
            before = self._revisions.get(id)
            if id in ours:
                self._revisions.pop(id, None)  # Published changes must not be published again.
            elif id not in busy:
                self._revisions[id] = revision
                if await self._has_missed(id) if before is None else before != revision:
                    await self._publish_snapshot(id)

    async def _has_missed(self, id: str) -> bool:
        """Return whether a turn began and ended in another process while changes were not tracked."""
        rows = await self._runtime.store.turns(id)
        feed = self._conversations.get(id)
        return feed is not None and any(not row.live and not feed.has_begun(row.id) for row in rows)

    def _begin_all_elsewhere(self, rows: Iterable[TurnRow]) -> None:
        for row in rows:
            if row.live and self._runtime.bus.here(row.id) is None:
                self._begin_elsewhere(row.id, row.conversation, shown=True)

    def _follow_no_longer(self, conversation: str) -> None:
        """Stop following turns of a conversation. A later reader receives them from their beginning."""
        for turn in [one.id for one in self._followed.values() if one.conversation == conversation]:
            del self._followed[turn]

    def _begin_elsewhere(self, turn: str, conversation: str, *, shown: bool = False) -> None:
        """Follow a turn of another process while its conversation is read here."""
        feed = self._conversations.get(conversation)
        if feed is None or feed.has_ended(turn):
            return  # This report is older than the turn's end.
        if turn not in self._followed:
            followed = FollowedTurn(turn, conversation, shown=shown, known=feed.last_of(turn))
            self._followed[turn] = followed
            for read, elsewhere in self._reading.values():
                # The snapshot must not show an interrupted state instead of this turn.
                if read == conversation:
                    elsewhere[turn] = followed
            self._background.run(f"following turn {turn}", partial(self._follow_other, followed))

    def _follow_shown(self, turn: str, conversation: str) -> FollowedTurn | None:
        """Follow a turn that a snapshot shows."""
        self._begin_elsewhere(turn, conversation, shown=True)
        return self._followed.get(turn)

    def _expect(self, turn: str, conversation: str) -> None:
        """Show readers if a turn that was requested here has to wait for a slot."""
        if conversation in self._conversations:
            self._background.run(f"waiting for turn {turn}", partial(self._show_waiting, turn, conversation))

    async def _show_waiting(self, turn: str, conversation: str) -> None:
        await asyncio.sleep(_GLANCE)
        if (feed := self._conversations.get(conversation)) is None or feed.has_begun(turn):
            return  # The turn has begun, or its conversation is not read any longer.
        with suppress(NotFound, StoreUnavailable):
            if await state_of(self._runtime, await self._runtime.store.turn(turn)) == QUEUED:
                await self._publish_snapshot(conversation)

    async def _follow_other(self, followed: FollowedTurn) -> None:
        """Publish the events of another process's turn as if it ran here."""
        turn, bus = followed.id, self._runtime.bus
        try:
            async for batch in bus.follow(turn):
                for event in batch:
                    if bus.here(turn) is not None:
                        return  # The turn was resumed here, where its events are published directly.
                    if not await self._hear_other(followed, event):
                        return  # The conversation is not read any longer.
            if bus.here(turn) is None and not followed.ended:
                await self._tell_end(followed)
        except NotFound:
            pass  # The turn was deleted in the meantime.
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
        """Publish one event of another process. All awaits come first, so that recording and publishing are
        one step."""
        turn, conversation = followed.id, followed.conversation
        if not event.seq and followed.shown:
            return True  # The snapshot contains the approval request.
        if event.seq and (epoch := owner_of(event.seq)) != followed.epoch:
            followed.begin(epoch, await self._begun_by(turn, epoch))
        said, question = await self._named_by(turn, event)
        feed = self._conversations.get(conversation)
        if feed is None or self._followed.get(turn) is not followed:
            return False
        followed.apply(event, question)
        if event.seq and feed.has(turn, event.seq):
            return True  # Readers have this event: the turn ran here then, or was followed before.
        _publish(feed, turn, event, said, question)
        if isinstance(event, e.TurnEnd):
            self._note_end(conversation)
        if conversation in self._queues and isinstance(event, e.TurnStart | e.MessageAdded):
            self.queue_changed(conversation)  # The turn can have taken queued messages.
        if _changes_list(event):
            self.changed(conversation)
        if isinstance(event, e.Notice) and event.kind == QUARANTINED:
            await self._publish_snapshot(conversation)  # The turn is now interrupted.
        return True

    async def _begun_by(self, turn: str, epoch: int) -> list[Message] | None:
        return [] if epoch == 1 else await self._runtime.bus.begun_by(turn, epoch)

    async def _named_by(self, turn: str, event: Event) -> tuple[list[Message], Question | None]:
        """Return what an event refers to: the messages at a start, or an approval request."""
        store = self._runtime.store
        if isinstance(event, e.TurnStart):
            begun = await self._begun_by(turn, owner_of(event.seq)) or []
            return _first(await store.message(event.message), begun), None
        return [], await store.question(event.question) if isinstance(event, e.CallAsked) else None

    async def _tell_end(self, followed: FollowedTurn) -> None:
        """Publish the end of a turn whose process died before it reported the end, and perhaps its last
        messages."""
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
            # The conversation was deleted or the store is unreachable. The next client that opens it learns
            # that.
            return
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
    """Publish an event as JSON that names its turn. An approval request is included whole.

    The messages at a start precede it: the user's, and those of an owner that perhaps died before it
    published them.
    """
    for message in said:
        if isinstance(event, e.TurnStart):
            feed.advance(turn, event.seq - 1)
        _publish(feed, turn, e.MessageAdded(message))
    data, head = EVENT.dump(event), f'{{"turn":"{turn}",'
    if isinstance(event, e.CallAsked):
        whole = QUESTION.dump(question) if question is not None else "null"
        data = f'{head}{data[1:-1]},"whole":{whole}}}'
    elif not isinstance(event, e.TurnStart):  # TurnStart names its turn itself.
        data = head + data[1:]
    if isinstance(event, e.TurnEnd):
        feed.end(turn)
    elif event.seq:
        feed.advance(turn, event.seq)
    feed.publish(event.type, data, piece=isinstance(event, _PIECES))


def _named_here(log: TurnLog, event: Event) -> tuple[list[Message], Question | None]:
    """Return the same for a turn that runs here."""
    if isinstance(event, e.TurnStart):
        person = next((one for one in log.path if one.id == log.turn.message), None)
        return _first(person, log.begun) if person is not None else [], None
    return [], log.questions.get(event.question) if isinstance(event, e.CallAsked) else None


def _first(person: Message, begun: Iterable[Message]) -> list[Message]:
    return [person, *(message for message in begun if message.id != person.id)]


def _changes_list(event: Event) -> bool:
    return isinstance(event, _CHANGES_LIST) or (isinstance(event, e.Notice) and event.kind == "title")
