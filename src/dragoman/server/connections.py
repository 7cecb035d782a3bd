"""Count connections and choose which to close when the limits are reached, without sockets or a clock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any, Protocol

SESSION = "dragoman.session"  # scope key: the sign-in of the request
ADMIN = "dragoman.admin"  # scope key: whether the request is from an admin
STILL_IN = "dragoman.still_in"  # scope key: a check whether the user may still read the answer
CONNECTION = "connection"  # key in the scope's state: the connection of the request


@dataclass(slots=True, frozen=True, kw_only=True)
class ConnectionLimits:
    """Limits for connections. On an unauthenticated connection, no user has signed in yet."""

    most: int = 2000  # maximum number of connections
    unauthenticated: int = (
        1000  # maximum number of unauthenticated connections among them: the rest is for signed-in users
    )
    per_address: int = 100  # maximum number of unauthenticated ones from one address
    # seconds until the head of a request is complete, counted from the start or the last answer
    head: float = 10.0
    head_size: int = 65_536  # bytes of a head
    # seconds until an unauthenticated request is answered and the client has read the answer
    unauthenticated_seconds: float = 60.0
    idle: int = 5  # seconds between an answer and the next request
    unread: float = 60.0  # seconds that any client may leave waiting data unread

    @classmethod
    def for_files(cls, files: int) -> ConnectionLimits:
        """Return the limits for this number of open files. A quarter of them is left for the store, the tools
        and the providers."""
        usual = cls()
        most = max(8, min(usual.most, files * 3 // 4))
        unauthenticated = max(4, min(usual.unauthenticated, most // 2))
        return cls(
            most=most, unauthenticated=unauthenticated, per_address=min(usual.per_address, unauthenticated)
        )


class Peer(Protocol):
    """A connection, as the limits see it."""

    @property
    def address(self) -> str:
        """The address that the connection counts for. It is empty for a proxy, which many clients share."""

    def recognise(self) -> None:
        """Record that a user has signed in over this connection."""

    def disconnect(self) -> None:
        """Close the connection immediately, even if data is still to be sent."""


class Connections:
    """All open connections. Unauthenticated ones are in the order of their last request."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._unauthenticated: dict[str, dict[Peer, None]] = {}  # by address
        self._unauthenticated_count = 0
        self._known: set[Peer] = set()

    def __len__(self) -> int:
        return self._unauthenticated_count + len(self._known)

    @property
    def unauthenticated(self) -> int:
        return self._unauthenticated_count

    @property
    def full(self) -> bool:
        """Whether the limit is reached and no unauthenticated one could be disconnected."""
        return len(self) >= self._limits.most and not self._unauthenticated_count

    def add(self, peer: Peer) -> list[Peer]:
        """Add an unauthenticated connection. Returns those that must be disconnected to make room."""
        same_address = self._unauthenticated.get(peer.address, {})
        going: list[Peer] = []
        if peer.address and len(same_address) >= self._limits.per_address:
            going.append(next(iter(same_address)))
        elif self._unauthenticated_count >= self._limits.unauthenticated or len(self) >= self._limits.most:
            going += self.longest_idle(1)
        for gone in going:
            self.remove(gone)
        self._unauthenticated.setdefault(peer.address, {})[peer] = None
        self._unauthenticated_count += 1
        return going

    def longest_idle(self, count: int) -> list[Peer]:
        """Return connections to disconnect: the longest silent ones of the address with the most."""
        if not self._unauthenticated:
            return []
        address = max(self._unauthenticated, key=lambda address: len(self._unauthenticated[address]))
        return [peer for peer, _ in zip(self._unauthenticated[address], range(count), strict=False)]

    def touch(self, peer: Peer) -> None:
        """Record a request: this one is now the last one to be disconnected."""
        same_address = self._unauthenticated.get(peer.address, {})
        if peer in same_address:
            del same_address[peer]
            same_address[peer] = None

    def recognise(self, peer: Peer) -> None:
        """Record that a user has signed in over this connection.

        It does not count as unauthenticated from then on.
        """
        if self._drop_unauthenticated(peer):
            self._known.add(peer)

    def remove(self, peer: Peer) -> None:
        self._known.discard(peer)
        self._drop_unauthenticated(peer)

    def __iter__(self) -> Iterator[Peer]:
        yield from self._known
        for same_address in self._unauthenticated.values():
            yield from same_address

    def _drop_unauthenticated(self, peer: Peer) -> bool:
        same_address = self._unauthenticated.get(peer.address, {})
        if peer not in same_address:
            return False
        del same_address[peer]
        self._unauthenticated_count -= 1
        if not same_address:
            del self._unauthenticated[peer.address]
        return True


def connection_of(scope: MutableMapping[str, Any]) -> Peer | None:
    """Return the connection of a request, or None if another server accepted it."""
    connection: Peer | None = (scope.get("state") or {}).get(CONNECTION)
    return connection


def session_in(scope: MutableMapping[str, Any]) -> str | None:
    """Return the sign-in of a request, or None if it came with a key."""
    session: str | None = scope.get(SESSION)
    return session


def is_admin_in(scope: MutableMapping[str, Any]) -> bool:
    """Return whether the middleware found that the request is from an admin."""
    return bool(scope.get(ADMIN))


def still_in(scope: MutableMapping[str, Any]) -> Callable[[], Awaitable[bool]] | None:
    """Return a check whether the user may still read the answer. None if the surrounding app decides that."""
    ask: Callable[[], Awaitable[bool]] | None = scope.get(STILL_IN)
    return ask


def recognise(scope: MutableMapping[str, Any]) -> None:
    """Tell the connection of a request that a user has signed in."""
    if (connection := connection_of(scope)) is not None:
        connection.recognise()
