"""How many connections there may be, and which one is hung up on to make room; without sockets or clock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any, Protocol

SESSION = "dragoman.session"  # where the scope of a request has the sign-in that it came with
ADMIN = "dragoman.admin"  # where it has whether who sent it is an admin
STILL_IN = "dragoman.still_in"  # where it has what tells whether who sent it may still read the answer
CONNECTION = "connection"  # where the state of a request's scope has its connection


@dataclass(slots=True, frozen=True, kw_only=True)
class ConnectionLimits:
    """What connections may take. A stranger is one over which nobody has signed in yet."""

    most: int = 2000  # connections at a time
    strangers: int = 1000  # strangers among them: the rest is for people who signed in
    per_address: int = 100  # strangers of one address
    head: float = 10.0  # seconds until the head of a request is there, from the start or the last answer
    head_size: int = 65_536  # bytes of a head
    stranger: float = 60.0  # seconds until a stranger's request is answered, and the answer read
    idle: int = 5  # seconds between an answer and the next request
    unread: float = 60.0  # seconds in which somebody, whoever it is, reads nothing of what waits for them

    @classmethod
    def for_files(cls, files: int) -> ConnectionLimits:
        """With so many open files: a quarter is left for the store, the tools and the providers."""
        usual = cls()
        most = max(8, min(usual.most, files * 3 // 4))
        strangers = max(4, min(usual.strangers, most // 2))
        return cls(most=most, strangers=strangers, per_address=min(usual.per_address, strangers))


class Peer(Protocol):
    """One connection, as far as it is counted."""

    @property
    def address(self) -> str:
        """Who counts as one; empty for a proxy, which many share."""

    def recognise(self) -> None:
        """Somebody has signed in over it."""

    def hang_up(self) -> None:
        """End it now, whatever is still to be sent."""


class Connections:
    """All connections there are. Strangers are in the order in which they last asked for something."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._strangers: dict[str, dict[Peer, None]] = {}  # by address
        self._stranger_count = 0
        self._known: set[Peer] = set()

    def __len__(self) -> int:
        return self._stranger_count + len(self._known)

    @property
    def strangers(self) -> int:
        return self._stranger_count

    @property
    def full(self) -> bool:
        """Whether there is no room, and nobody who could make any."""
        return len(self) >= self._limits.most and not self._stranger_count

    def add(self, peer: Peer) -> list[Peer]:
        """A new stranger. Returns those that have to go for it."""
        same_address = self._strangers.get(peer.address, {})
        going: list[Peer] = []
        if peer.address and len(same_address) >= self._limits.per_address:
            going.append(next(iter(same_address)))
        elif self._stranger_count >= self._limits.strangers or len(self) >= self._limits.most:
            going += self.longest_idle(1)
        for gone in going:
            self.remove(gone)
        self._strangers.setdefault(peer.address, {})[peer] = None
        self._stranger_count += 1
        return going

    def longest_idle(self, count: int) -> list[Peer]:
        """Strangers to hang up on: of the address that has the most, those silent longest."""
        if not self._strangers:
            return []
        address = max(self._strangers, key=lambda address: len(self._strangers[address]))
        return [peer for peer, _ in zip(self._strangers[address], range(count), strict=False)]

    def touch(self, peer: Peer) -> None:
        """It has asked for something, and is the last one to go now."""
        same_address = self._strangers.get(peer.address, {})
        if peer in same_address:
            del same_address[peer]
            same_address[peer] = None

    def recognise(self, peer: Peer) -> None:
        """Somebody has signed in over it: it takes no stranger's room any more."""
        if self._drop_stranger(peer):
            self._known.add(peer)

    def remove(self, peer: Peer) -> None:
        self._known.discard(peer)
        self._drop_stranger(peer)

    def __iter__(self) -> Iterator[Peer]:
        yield from self._known
        for same_address in self._strangers.values():
            yield from same_address

    def _drop_stranger(self, peer: Peer) -> bool:
        same_address = self._strangers.get(peer.address, {})
        if peer not in same_address:
            return False
        del same_address[peer]
        self._stranger_count -= 1
        if not same_address:
            del self._strangers[peer.address]
        return True


def connection_of(scope: MutableMapping[str, Any]) -> Peer | None:
    """The connection that a request came over, where it is one of ours."""
    connection: Peer | None = (scope.get("state") or {}).get(CONNECTION)
    return connection


def session_in(scope: MutableMapping[str, Any]) -> str | None:
    """The sign-in that a request came with; None where it came with a key."""
    session: str | None = scope.get(SESSION)
    return session


def is_admin_in(scope: MutableMapping[str, Any]) -> bool:
    """Whether the middleware found a request to be from an admin."""
    return bool(scope.get(ADMIN))


def still_in(scope: MutableMapping[str, Any]) -> Callable[[], Awaitable[bool]] | None:
    """Tells whether who sent a request may still read its answer. None where the app around us knows that."""
    ask: Callable[[], Awaitable[bool]] | None = scope.get(STILL_IN)
    return ask


def recognise(scope: MutableMapping[str, Any]) -> None:
    """Tell the connection of a request that somebody has signed in."""
    if (connection := connection_of(scope)) is not None:
        connection.recognise()
