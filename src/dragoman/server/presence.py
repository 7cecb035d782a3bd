"""Publish in the stream of a shared conversation, on every server, which users have it open or are typing."""

from __future__ import annotations

from collections.abc import Callable

from dragoman.conversation.sharing import Present
from dragoman.messages.codec import Codec
from dragoman.server.event_stream import OpenStreams
from dragoman.server.shapes import PresenceView, PresentUser
from dragoman.store.store import Store

EVERY = 2.0  # seconds between checks
_NOTED = 10.0  # seconds after which a user's presence is stored again
_GONE = 25.0  # seconds after the last note until a user counts as gone
TYPES = 6.0  # seconds that a user counts as typing after the last keystroke


_PAUSE = 1.0  # seconds in which typing is stored only once

PRESENCE: Codec[PresenceView] = Codec(PresenceView)


class Presence:
    """Tracks the users who read shared conversations on this server."""

    def __init__(
        self,
        store: Store,
        streams: OpenStreams,
        clock: Callable[[], float],
        publish: Callable[[str, str], None],
    ) -> None:
        self._store = store
        self._streams = streams
        self._clock = clock
        self._publish = publish  # publishes in the stream of a conversation
        self._noted: dict[tuple[str, str], float] = {}
        self._told: dict[str, list[PresentUser]] = {}
        self._typed: dict[tuple[str, str], float] = {}

    async def look(self) -> None:
        """Store which users read on this server, and publish changes of all servers."""
        readers = {(one.conversation, one.person) for one in self._streams.readers}
        shared = await self._store.shared_among(sorted({id for id, _ in readers})) if readers else set()
        now = self._clock()
        self._noted = {reader: at for reader, at in self._noted.items() if reader in readers}
        for id, user in readers:
            if id in shared and now - self._noted.get((id, user), 0.0) >= _NOTED:
                self._noted[id, user] = now
                await self._store.note_presence(id, user, now)
        found = await self.of(sorted(shared)) if shared else {}
        for id, users in found.items():
            if self._told.get(id) != users:
                self._publish(id, PRESENCE.dump(PresenceView(id, users)))
        self._told = found

    async def of(self, conversations: list[str]) -> dict[str, list[PresentUser]]:
        now = self._clock()
        found: dict[str, list[PresentUser]] = {id: [] for id in conversations}
        for one in await self._store.presence(conversations, now - _GONE):
            found[one.conversation].append(_shown(one, now))
        return found

    async def typing(self, conversation: str, user: str, *, on: bool) -> None:
        now = self._clock()
        if on and now - self._typed.get((conversation, user), 0.0) < _PAUSE:
            return
        self._typed = {key: at for key, at in self._typed.items() if now - at < _PAUSE}
        self._typed[conversation, user] = now
        await self._store.note_presence(conversation, user, now, now if on else 0.0)
        await self.look()


def _shown(one: Present, now: float) -> PresentUser:
    return PresentUser(one.user, one.typing > now - TYPES)
