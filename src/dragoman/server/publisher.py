"""What turns tell, and what people change, in; feeds that readers follow out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from dragoman.errors import NotFound
from dragoman.messages import events as e
from dragoman.messages.events import EVENT, Event
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
        self._teller: asyncio.Task[None] | None = None
        self._glance: asyncio.Task[None] | None = None
        runtime.bus.watchers.append(self._watch)
        for live in runtime.bus.turns():  # adopted when the store was opened
            self._watch(live.log)

    # ── who reads ─────────────────────────────────────────────────────────────────────────────────

    def of_conversation(self, id: str) -> Subject:
        """Begins with a snapshot of the whole tree."""
        feed = _opened(self._conversations, id)
        if self._glance is None or self._glance.done():
            self._glance = asyncio.create_task(self._look_elsewhere())

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
            self._teller = asyncio.create_task(self._tell_changes())

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
        """The house closes: everybody may go."""
        self.closing.set()
        for feed in (*self._conversations.values(), *self._people.values()):
            feed.close()
        for task in (self._teller, self._glance):
            if task is not None:
                task.cancel()

    def _watch(self, log: TurnLog) -> None:
        """Before a turn runs here: whatever it tells goes to who reads its conversation."""
        log.events.watchers.append(self._listener(log))

    def _listener(self, log: TurnLog) -> Callable[[Event], None]:
        conversation = log.conversation.id

        def hear(event: Event) -> None:
            if (feed := self._conversations.get(conversation)) is not None:
                _tell(feed, log, event)
            if isinstance(event, e.TurnEnd):
                self._revisions.pop(conversation, None)  # what it changed has been told
            if isinstance(event, _MOVES_THE_LIST) or (isinstance(event, e.Notice) and event.kind == "title"):
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
        """Conversations that somebody reads and no turn of ours changes: if they change, tell it whole."""
        while self._conversations:
            await asyncio.sleep(_GLANCE)
            _forget(self._conversations)
            read = [id for id, feed in self._conversations.items() if feed.readers]
            ours = {live.log.conversation.id for live in self._runtime.bus.turns()}
            now = await self._runtime.store.revisions(read) if read else {}
            for id, revision in now.items():
                before = self._revisions.get(id)
                if id in ours:
                    self._revisions.pop(id, None)  # what has been told is not to be told again
                else:
                    self._revisions[id] = revision
                    if before not in (None, revision):
                        await self._tell_whole(id)

    async def _tell_whole(self, id: str) -> None:
        try:
            view = await tree_of(self._runtime, id)
        except NotFound:
            return  # deleted meanwhile
        if (feed := self._conversations.get(id)) is not None:
            feed.publish("snapshot", with_type("snapshot", TREE.dump(view)))
        self.changed(id)


def _tell(feed: Feed, log: TurnLog, event: Event) -> None:
    """As JSON that names its turn. A question is told whole, and before a turn what the person said in it."""
    data, mark = EVENT.dump(event), f'{{"turn":"{log.id}",'
    match event:
        case e.TurnStart():  # names its turn itself
            for message in log.path:
                if message.id == log.turn.message:
                    feed.publish("message.added", mark + EVENT.dump(e.MessageAdded(message))[1:])
        case e.CallAsked():
            asked = log.questions.get(event.question)
            whole = QUESTION.dump(asked) if asked is not None else "null"
            data = f'{mark}{data[1:-1]},"whole":{whole}}}'
        case _:
            data = mark + data[1:]
    feed.publish(event.type, data)


def _opened(feeds: dict[str, Feed], key: str) -> Feed:
    _forget(feeds)
    feed = feeds.setdefault(key, Feed())
    feed.left = time.monotonic()  # whoever asked for it is about to read it
    return feed


def _forget(feeds: dict[str, Feed]) -> None:
    long_ago = time.monotonic() - _FORGOTTEN
    for name in [name for name, feed in feeds.items() if not feed.readers and feed.left < long_ago]:
        del feeds[name]
