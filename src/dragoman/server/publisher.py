"""Brings what turns publish, and what people change, to the feeds that clients read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial

from dragoman.errors import NotFound
from dragoman.messages import events as e
from dragoman.messages.events import EVENT, Event
from dragoman.messages.message import Message
from dragoman.messages.questions import Question
from dragoman.runtime import Runtime
from dragoman.server.feed import Feed, with_type
from dragoman.server.stream import Subject
from dragoman.server.views import SUMMARY, TREE, summaries, tree_of
from dragoman.store.codecs import QUESTION
from dragoman.turn.live.log import TurnLog

_FORGOTTEN = 120.0  # seconds after which a feed that nobody reads is dropped
_REMEMBERED = 1000  # deleted conversations
_GLANCE = 1.0  # seconds between looks at conversations in which another process may be at work
_MOVES_THE_LIST = (e.TurnStart, e.TurnEnd, e.CallAsked, e.CallAnswered)


class Publisher:
    """One feed a conversation, one a person; there only while somebody reads them."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._conversations: dict[str, Feed] = {}
        self._people: dict[str, Feed] = {}
        self._revisions: dict[str, int] = {}
        self._changed: set[str] = set()
        self._gone: dict[str, None] = {}  # deleted not long ago: nothing more is told of them
        self.closing = asyncio.Event()
        self._background = runtime.background  # ends with it
        self._teller: asyncio.Task[None] | None = None
        self._looks = False
        self._followed: set[str] = set()  # turns of other processes
        runtime.bus.watchers.append(self._watch)
        for live in runtime.bus.turns():  # adopted when the store was opened
            self._watch(live.log)

    # ── who reads ─────────────────────────────────────────────────────────────────────────────────

    def of_conversation(self, id: str) -> Subject:
        """Begins with a snapshot of the whole tree."""
        feed = _opened(self._conversations, id)
        if not self._looks:
            self._looks = True
            self._background.repeat("the look at other processes", self._look_elsewhere, every=_GLANCE)

        async def snapshot() -> tuple[str, int]:
            view = await tree_of(self._runtime, id)
            self._revisions[id] = view.revision
            return TREE.dump(view), feed.last

        return Subject(feed, snapshot)

    def of_person(self, name: str) -> Subject:
        return Subject(_opened(self._people, name))

    # ── what is told ──────────────────────────────────────────────────────────────────────────────

    def changed(self, conversation: str) -> None:
        """Its line of the list is not what it was. Told soon, once for everything that happens until then."""
        self._changed.add(conversation)
        if self._teller is None or self._teller.done():
            self._teller = self._background.run("telling what changed in the list", self._tell_changes)

    def deleted(self, conversation: str, owner: str) -> None:
        self._gone[conversation] = None
        while len(self._gone) > _REMEMBERED:
            self._gone.pop(next(iter(self._gone)))
        if (of_owner := self._people.get(owner)) is not None:
            of_owner.publish(
                "conversation.deleted", with_type("conversation.deleted", f'{{"id":"{conversation}"}}')
            )
        if (feed := self._conversations.pop(conversation, None)) is not None:
            feed.close()

    def close(self) -> None:
        """The server closes: everybody may go."""
        self.closing.set()
        for feed in (*self._conversations.values(), *self._people.values()):
            feed.close()

    def _watch(self, log: TurnLog) -> None:
        """Before a turn runs here: whatever it tells goes to who reads its conversation."""
        log.events.watchers.append(self._listener(log))

    def _listener(self, log: TurnLog) -> Callable[[Event], None]:
        conversation = log.conversation.id

        def hear(event: Event) -> None:
            if (feed := self._conversations.get(conversation)) is not None:
                if isinstance(event, e.TurnStart):
                    for message in log.path:
                        if message.id == log.turn.message:
                            _publish_message(feed, log.id, message)
                question = log.questions.get(event.question) if isinstance(event, e.CallAsked) else None
                _publish(feed, log.id, event, question)
            if isinstance(event, e.TurnEnd):
                self._revisions.pop(conversation, None)  # what it changed has been told
            if _moves_the_list(event):
                self.changed(conversation)

        return hear

    async def _tell_changes(self) -> None:
        while self._changed:
            id = self._changed.pop()
            try:
                info = await self._runtime.store.conversation(id)
                (line,) = await summaries(self._runtime, [info])
            except NotFound:
                continue
            if (feed := self._people.get(info.owner)) is not None and id not in self._gone:
                feed.publish("conversation.changed", with_type("conversation.changed", SUMMARY.dump(line)))

    # ── what another process does ─────────────────────────────────────────────────────────────────

    async def _look_elsewhere(self) -> None:
        """Conversations that somebody reads here: turns that another process runs in them are followed, and
        whatever else changes is told whole."""
        _forget(self._conversations)
        read = [id for id, feed in self._conversations.items() if feed.readers]
        if not read:
            return
        store, bus = self._runtime.store, self._runtime.bus
        busy = {id for id, state in (await store.busy(read)).items() if state.live}
        for id in busy:
            for row in await store.turns(id):
                if row.live and bus.here(row.id) is None and row.id not in self._followed:
                    self._followed.add(row.id)
                    follow = partial(self._follow_elsewhere, row.id, id)
                    self._background.run(f"following turn {row.id}", follow)
        ours = {live.log.conversation.id for live in bus.turns()}
        for id, revision in (await store.revisions(read)).items():
            before = self._revisions.get(id)
            if id in ours:
                self._revisions.pop(id, None)  # what has been told is not to be told again
            elif id not in busy:
                self._revisions[id] = revision
                if before not in (None, revision):
                    await self._tell_whole(id)

    async def _follow_elsewhere(self, turn: str, conversation: str) -> None:
        """What a turn of another process publishes, as if it ran here."""
        store = self._runtime.store
        try:
            async for event in self._runtime.bus.follow(turn):
                if self._runtime.bus.here(turn) is not None:
                    return  # it was taken up here, and is heard without us
                feed = self._conversations.get(conversation)
                if feed is None:
                    return  # nobody reads it any more
                if isinstance(event, e.TurnStart):
                    _publish_message(feed, turn, await store.message(event.message))
                question = await store.question(event.question) if isinstance(event, e.CallAsked) else None
                _publish(feed, turn, event, question)
                if _moves_the_list(event):
                    self.changed(conversation)
        finally:
            self._followed.discard(turn)
        await self._tell_whole(conversation)  # and whatever it did not live to tell

    async def _tell_whole(self, id: str) -> None:
        try:
            view = await tree_of(self._runtime, id)
        except NotFound:
            return  # deleted meanwhile
        if (feed := self._conversations.get(id)) is not None:
            feed.publish("snapshot", with_type("snapshot", TREE.dump(view)))
        self.changed(id)


def _publish(feed: Feed, turn: str, event: Event, question: Question | None = None) -> None:
    """As JSON that names its turn; what is asked is told whole."""
    data, mark = EVENT.dump(event), f'{{"turn":"{turn}",'
    if isinstance(event, e.CallAsked):
        whole = QUESTION.dump(question) if question is not None else "null"
        data = f'{mark}{data[1:-1]},"whole":{whole}}}'
    elif not isinstance(event, e.TurnStart):  # which names its turn itself
        data = mark + data[1:]
    feed.publish(event.type, data)


def _publish_message(feed: Feed, turn: str, message: Message) -> None:
    """What the person said, before the turn that answers it."""
    _publish(feed, turn, e.MessageAdded(message))


def _moves_the_list(event: Event) -> bool:
    return isinstance(event, _MOVES_THE_LIST) or (isinstance(event, e.Notice) and event.kind == "title")


def _opened(feeds: dict[str, Feed], key: str) -> Feed:
    _forget(feeds)
    feed = feeds.setdefault(key, Feed())
    feed.left = time.monotonic()  # whoever asked for it is about to read it
    return feed


def _forget(feeds: dict[str, Feed]) -> None:
    long_ago = time.monotonic() - _FORGOTTEN
    for name in [name for name, feed in feeds.items() if not feed.readers and feed.left < long_ago]:
        del feeds[name]
