"""The interface of this room: a `ProviderAuth` gives a request the headers that say who asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from dragoman.errors import ConfigError
from dragoman.sentences import sentence
from dragoman.wire.http_client.payload import Payload


@dataclass(slots=True, frozen=True)
class Outgoing:
    """A request as it will be sent, for those who have to sign it."""

    url: str
    body: bytes = field(default=b"", repr=False)
    method: str = "POST"
    digest: str | None = None  # the SHA-256 of a body that is not at hand as a whole


class TokenClient(Protocol):
    """What a `ProviderAuth` may use of the HTTP client: the time, and a way to ask for an access token."""

    @property
    def clock(self) -> Callable[[], float]: ...

    async def post_form(self, url: str, form: Mapping[str, str]) -> tuple[int, bytes]:
        """Send a form. The status and the body of the answer; ProviderError where there is none."""

    async def ask(
        self, url: str, *, method: str = "GET", headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> tuple[int, bytes]:
        """The same with another verb, and for the servers that tell a machine who it is."""


class ProviderAuth(Protocol):
    """One person's way to sign in to one provider. It never prints a secret."""

    @property
    def name(self) -> str | None:
        """Where the person keeps what is used, for hints: OPENAI_API_KEY."""

    @property
    def exact(self) -> bool:
        """The address is signed: it goes out byte for byte as it was signed."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not appear in any message."""

    @property
    def hint(self) -> str | None:
        """What a person may do when the provider does not let them in."""

    def refused(self) -> None:
        """The provider did not let us in: what was only held is not used again."""

    async def headers(self, request: Outgoing, client: TokenClient) -> dict[str, str]:
        """What goes into the request. ProviderError where an access token cannot be had."""


async def outgoing_to(
    url: str, body: bytes | Payload, auth: ProviderAuth, *, method: str = "POST"
) -> Outgoing:
    """A request that is about to be sent. A large body is read only for those who have to sign it."""
    if not isinstance(body, Payload):
        return Outgoing(url, body, method)
    return Outgoing(url, method=method, digest=await body.sha256() if auth.exact else None)


# Signing in with a key, or with any token that is ready: it stands in a header.


@dataclass(slots=True, frozen=True)
class KeyAuth:
    """A key in a header. Without a key nothing is sent: servers on this machine want none."""

    key: str | None = field(default=None, repr=False)
    name: str | None = None  # where the person keeps it, for hints: OPENAI_API_KEY
    header: str = "Authorization"
    prefix: str = "Bearer "

    exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.key is not None:
            check_key(self.key, self.name or "the API key")

    @property
    def secrets(self) -> tuple[str, ...]:
        return (self.key,) if self.key and len(self.key) >= 6 else ()

    @property
    def hint(self) -> str | None:
        if self.name is None:
            return None
        return sentence("hint.check", name=self.name) if self.key else f"Set {self.name} to your API key"

    def refused(self) -> None:
        pass

    async def headers(self, request: Outgoing, client: TokenClient) -> dict[str, str]:
        return {self.header: f"{self.prefix}{self.key}"} if self.key else {}


def check_key(key: str, name: str) -> None:
    """ConfigError where it cannot stand in a header. The key itself is not repeated."""
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(sentence("key.characters", name=name))


NO_KEY = KeyAuth()
