"""Define the interface of this package: a `ProviderAuth` gives a request its authentication headers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from dragoman.errors import ConfigError
from dragoman.sentences import sentence
from dragoman.wire.http_client.payload import Payload


@dataclass(slots=True, frozen=True)
class Outgoing:
    """A request as it will be sent, for methods that sign it."""

    url: str
    body: bytes = field(default=b"", repr=False)
    method: str = "POST"
    digest: str | None = None  # the SHA-256 of a body that is not in memory as a whole


class TokenClient(Protocol):
    """The part of the HTTP client that a `ProviderAuth` can use: the time, and requests for an
    access token."""

    @property
    def clock(self) -> Callable[[], float]: ...

    async def post_form(self, url: str, form: Mapping[str, str]) -> tuple[int, bytes]:
        """Send a form.

        Return the status and the body of the answer. Raises ProviderError without an answer.
        """

    async def ask(
        self, url: str, *, method: str = "GET", headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> tuple[int, bytes]:
        """Send a request with another method, such as to the metadata servers of machines."""


class ProviderAuth(Protocol):
    """One user's authentication at one provider. It never prints a secret."""

    @property
    def name(self) -> str | None:
        """Where the user keeps the credential, for hints: OPENAI_API_KEY."""

    @property
    def exact(self) -> bool:
        """Whether the URL is signed and must be sent byte for byte."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """Strings that must not appear in any message."""

    @property
    def hint(self) -> str | None:
        """The user's next step if the provider refuses the credential."""

    def refused(self) -> None:
        """Called when the provider refused the credential: a cached one is not used again."""

    async def headers(self, request: Outgoing, client: TokenClient) -> dict[str, str]:
        """Return the headers for the request. Raises ProviderError if no access token can be obtained."""


async def outgoing_to(
    url: str, body: bytes | Payload, auth: ProviderAuth, *, method: str = "POST"
) -> Outgoing:
    """Describe a request that is about to be sent. A large body is read only if it must be signed."""
    if not isinstance(body, Payload):
        return Outgoing(url, body, method)
    return Outgoing(url, method=method, digest=await body.sha256() if auth.exact else None)


# Authenticate with a key, or with any existing token, in a header.


@dataclass(slots=True, frozen=True)
class KeyAuth:
    """A key in a header. Without a key nothing is sent, because local servers need none."""

    key: str | None = field(default=None, repr=False)
    name: str | None = None  # where the user keeps it, for hints: OPENAI_API_KEY
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
    """Raise ConfigError if a header cannot contain the key. The message does not repeat the key."""
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(sentence("key.characters", name=name))


NO_KEY = KeyAuth()
