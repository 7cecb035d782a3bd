"""Authenticate with an access token that is fetched, cached, and fetched again before it expires."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Protocol

from pydantic import JsonValue
from pydantic_core import from_json

from dragoman.errors import ConfigError, ProviderError
from dragoman.sentences import sentence
from dragoman.web_address import split_uri
from dragoman.wire.auth.auth import Outgoing, TokenClient
from dragoman.wire.http_client.network import is_loopback
from dragoman.wire.transport_errors import excerpt, host_of

EARLY = 120.0  # seconds before its expiry from which a token is not used, because requests take time
LONGEST = 24 * 3600.0  # maximum assumed lifetime of a token, in seconds


@dataclass(slots=True, frozen=True)
class AccessToken:
    """A token, and the time at which it expires."""

    value: str = field(repr=False)
    expires: float


class TokenSource(Protocol):
    """A source of access tokens: one file for each."""

    @property
    def name(self) -> str:
        """The user's setting, for hints: GOOGLE_APPLICATION_CREDENTIALS."""

    @property
    def secrets(self) -> tuple[str, ...]: ...

    async def fetch(self, client: TokenClient) -> AccessToken: ...


class TokenAuth:
    """The access token of a source, as a bearer token. Concurrent requests fetch it once."""

    exact: ClassVar[bool] = False

    def __init__(self, source: TokenSource) -> None:
        self.source = source
        self._token: AccessToken | None = None
        self._lock = asyncio.Lock()

    def __repr__(self) -> str:
        return f"TokenAuth({type(self.source).__name__}, {self.name})"

    @property
    def key(self) -> object:
        """The key by which instances share their token."""
        return self.source

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def secrets(self) -> tuple[str, ...]:
        held = (self._token.value,) if self._token is not None else ()
        return (*held, *self.source.secrets)

    @property
    def hint(self) -> str | None:
        return sentence("hint.token", name=self.name)

    def refused(self) -> None:
        self._token = None

    async def headers(self, request: Outgoing, client: TokenClient) -> dict[str, str]:
        async with self._lock:
            token = self._token
            if token is None or token.expires - EARLY <= client.clock():
                token = self._token = await self.source.fetch(client)
        return {"Authorization": f"Bearer {token.value}"}


async def fetch_token(client: TokenClient, url: str, form: Mapping[str, str], *, name: str) -> AccessToken:
    """Request a token from an OAuth server. ProviderError repeats its message, and names what was used:
    `name`."""
    asked_at = client.clock()
    status, body = await client.post_form(url, form)
    return read_token(status, body, asked_at, url=url, name=name)


async def ask_token(client: TokenClient, url: str, headers: Mapping[str, str], *, name: str) -> AccessToken:
    """Request a token from a server that identifies the client by its machine."""
    asked_at = client.clock()
    status, body = await client.ask(url, headers=headers)
    return read_token(status, body, asked_at, url=url, name=name)


def read_token(status: int, body: bytes, asked_at: float, *, url: str, name: str) -> AccessToken:
    """Return the token in an answer, and its expiry, which is a number of seconds or a time."""
    try:
        answer: JsonValue = from_json(body)
    except ValueError:
        answer = None
    found = answer if isinstance(answer, dict) else {}
    value, seconds, ends = found.get("access_token"), found.get("expires_in"), found.get("expires_on")
    if status == 200 and isinstance(value, str) and value.isascii() and value.isprintable():
        lives = float(str(seconds)) if _is_number(seconds) else 0.0
        if not _is_number(seconds) and _is_number(ends):
            lives = float(str(ends)) - asked_at
        return AccessToken(value, asked_at + min(max(lives, 0.0), LONGEST))
    words = found.get("error_description") or found.get("error") or excerpt(body)
    raise ProviderError(
        sentence("token.none", host=host_of(url), why=str(words).splitlines()[0] if words else status),
        kind="auth",
        status=status,
        retryable=status in (429, 500, 502, 503, 504),
        hint=sentence("hint.check", name=name),
    )


def check_token_address(url: str, *, name: str) -> str:
    """Return the URL. Raises ConfigError if a secret would be sent unencrypted to another machine."""
    parts = split_uri(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname)):
        raise ConfigError(sentence("token.insecure", name=name))
    return url


def _is_number(value: object) -> bool:
    if not isinstance(value, int | float | str):
        return False
    try:
        return math.isfinite(float(str(value)))
    except ValueError:
        return False


# Read tokens that other programs write into files, and rewrite before they expire.


LARGEST = 64 * 1024  # bytes: no token is larger


async def read_secret(file: Path, name: str) -> str:
    """Return the content of a file that a variable names.

    Raises ProviderError if it is unreadable or empty.
    """
    try:
        text = await asyncio.to_thread(_read, file)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "it is not a text"
        raise _unreadable(sentence("secret.not_read", name=name, file=file, why=why), name) from None
    if not text or not text.isprintable():
        raise _unreadable(f"{name}: '{file}' has no token", name)
    return text


def _read(file: Path) -> str:
    with file.open("rb") as opened:
        return opened.read(LARGEST).decode().strip()


def _unreadable(message: str, name: str) -> ProviderError:
    return ProviderError(message, kind="auth", retryable=False, hint=sentence("hint.check", name=name))
