"""Signing in with a key, or with any token that is ready: it stands in a header."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from dragoman.errors import ConfigError
from dragoman.sentences import sentence
from dragoman.wire.auth.auth import Outgoing, TokenClient


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
