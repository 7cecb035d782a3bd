"""Signing in to Amazon as whoever this machine, container or person is: keys that live for hours.

They are fetched from a source (`aws_sources.py`), held, and fetched anew before they end.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, Protocol

from pydantic import JsonValue

from dragoman.errors import ProviderError
from dragoman.sentences import sentence
from dragoman.wire.auth.auth import Outgoing, TokenClient
from dragoman.wire.auth.aws import AwsAuth, sign

EARLY = 300.0  # seconds before their end that keys are not used any more
LONGEST = 12 * 3600.0  # seconds that keys are believed to live; without an end of their own, an hour
UNTOLD = 3600.0


@dataclass(slots=True, frozen=True)
class AwsKeys:
    """An access key with its session, and the time at which it ends."""

    access_key: str
    secret_key: str = field(repr=False)
    session_token: str | None = field(repr=False)
    expires: float


class AwsSource(Protocol):
    """Where keys come from: each a frozen value, by which those who share one are known."""

    @property
    def name(self) -> str:
        """What the person set, for hints."""

    @property
    def secrets(self) -> tuple[str, ...]: ...

    async def fetch(self, client: TokenClient) -> AwsKeys:
        """ProviderError says what is wrong, and what may be done."""


class AwsIdentity:
    """Signs requests with the keys of a source. Many requests at once fetch them once."""

    exact: ClassVar[bool] = True

    def __init__(self, source: AwsSource, region: str, service: str = "bedrock") -> None:
        self.source = source
        self.region = region
        self.service = service
        self._keys: AwsKeys | None = None
        self._lock = asyncio.Lock()

    def __repr__(self) -> str:
        return f"AwsIdentity({type(self.source).__name__}, {self.name})"

    @property
    def key(self) -> object:
        """Those who have the same share their keys."""
        return self.source, self.region, self.service

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def secrets(self) -> tuple[str, ...]:
        keys = self._keys
        held = (keys.secret_key, keys.access_key, keys.session_token) if keys is not None else ()
        return (*(one for one in held if one), *self.source.secrets)

    @property
    def hint(self) -> str | None:
        return sentence("hint.aws_identity", name=self.name, region=self.region)

    def refused(self) -> None:
        self._keys = None

    async def headers(self, request: Outgoing, client: TokenClient) -> dict[str, str]:
        async with self._lock:
            keys = self._keys
            if keys is None or keys.expires - EARLY <= client.clock():
                keys = self._keys = await self.source.fetch(client)
        signing = AwsAuth(
            keys.access_key, keys.secret_key, self.region, keys.session_token, self.service, self.name
        )
        return sign(signing, request, datetime.fromtimestamp(client.clock(), UTC))


def keys_in(found: Any, now: float, *, name: str) -> AwsKeys:
    """The keys in an answer, whichever way it spells their names. ProviderError where there are none."""
    fields: dict[str, JsonValue] = found if isinstance(found, dict) else {}
    known = {str(key).lower().replace("_", ""): value for key, value in fields.items()}
    access, secret = known.get("accesskeyid"), known.get("secretaccesskey")
    token = known.get("sessiontoken") or known.get("token")
    if not isinstance(access, str) or not isinstance(secret, str) or not access or not secret:
        why = known.get("message") or known.get("code") or "there are none in its answer"
        raise no_keys(sentence("aws.no_keys", name=name, why=str(why).splitlines()[0]), name)
    ends = _time(known.get("expiration"))
    expires = now + UNTOLD if ends is None else min(ends, now + LONGEST)
    return AwsKeys(access, secret, str(token) if token else None, expires)


def no_keys(message: str, name: str, *, status: int | None = None, hint: str = "") -> ProviderError:
    return ProviderError(
        message,
        kind="auth",
        status=status,
        retryable=status is not None and (status == 429 or status >= 500),
        hint=hint or sentence("hint.check", name=name),
    )


def _time(value: JsonValue) -> float | None:
    """An end as they write it: in milliseconds, or as a date."""
    if isinstance(value, int | float):
        return value / 1000 if value > 10_000_000_000 else float(value)
    try:
        return datetime.fromisoformat(str(value).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None
