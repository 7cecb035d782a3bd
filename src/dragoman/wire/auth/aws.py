"""Authenticate at Amazon: sign each request with an access key (Signature Version 4)."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, Protocol
from urllib.parse import quote, urlsplit

from pydantic import JsonValue

from dragoman.errors import ProviderError
from dragoman.sentences import sentence
from dragoman.wire.auth.auth import Outgoing, TokenClient, check_key

ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(slots=True, frozen=True)
class AwsAuth:
    """An access key, and the region and service for which it signs."""

    access_key: str
    secret_key: str = field(repr=False)
    region: str
    session_token: str | None = field(default=None, repr=False)  # of a temporary key
    service: str = "bedrock"
    name: str = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"

    exact: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for value in (self.access_key, self.secret_key, self.session_token or "", self.region):
            check_key(value, self.name)

    @property
    def secrets(self) -> tuple[str, ...]:
        token = (self.session_token,) if self.session_token else ()
        return (self.secret_key, self.access_key, *token)

    @property
    def hint(self) -> str | None:
        return sentence("hint.aws_keys", name=self.name, region=self.region)

    def refused(self) -> None:
        pass

    async def headers(self, request: Outgoing, client: TokenClient) -> dict[str, str]:
        return sign(self, request, datetime.fromtimestamp(client.clock(), UTC))


def sign(auth: AwsAuth, request: Outgoing, at: datetime) -> dict[str, str]:
    """Return the headers that sign a request at a time."""
    stamp = at.strftime("%Y%m%dT%H%M%SZ")
    added = {"X-Amz-Date": stamp}
    if auth.session_token is not None:
        added["X-Amz-Security-Token"] = auth.session_token
    signed = {"host": _host(request.url), **{name.lower(): value for name, value in added.items()}}
    names = ";".join(sorted(signed))
    scope = f"{stamp[:8]}/{auth.region}/{auth.service}/aws4_request"
    canonical = _hash(_canonical(request, signed, names).encode())
    text = "\n".join((ALGORITHM, stamp, scope, canonical))
    key = f"AWS4{auth.secret_key}".encode()
    for step in (*scope.split("/"), text):
        key = hmac.digest(key, step.encode(), "sha256")
    credential = f"{ALGORITHM} Credential={auth.access_key}/{scope}"
    return {**added, "Authorization": f"{credential}, SignedHeaders={names}, Signature={key.hex()}"}


def _canonical(request: Outgoing, signed: dict[str, str], names: str) -> str:
    """Return the canonical form of the request, which both sides hash.

    The path is encoded once more than in the request, as required by every service but S3.
    """
    parts = urlsplit(request.url)
    query = "&".join(sorted(pair if "=" in pair else f"{pair}=" for pair in parts.query.split("&") if pair))
    headers = "".join(f"{name}:{' '.join(signed[name].split())}\n" for name in sorted(signed))
    path = quote(parts.path or "/", safe="/-_.~")
    return "\n".join((request.method, path, query, headers, names, request.digest or _hash(request.body)))


def _host(url: str) -> str:
    """Return the host as the client writes it: without a default port."""
    parts = urlsplit(url)
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    return host if parts.port in (None, usual) else f"{host}:{parts.port}"


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# Authenticate at Amazon with the identity of this machine, container or user: temporary keys.
#
# They are fetched from a source (`aws_sources.py`), cached, and fetched again before they expire.


EARLY = 300.0  # seconds before their expiry from which keys are not used
LONGEST = 12 * 3600.0  # the maximum assumed lifetime in seconds; without a stated expiry, one hour
UNTOLD = 3600.0


@dataclass(slots=True, frozen=True)
class AwsKeys:
    """An access key with its session, and the time at which it expires."""

    access_key: str
    secret_key: str = field(repr=False)
    session_token: str | None = field(repr=False)
    expires: float


class AwsSource(Protocol):
    """A source of keys: a frozen value, which identifies users of the same source."""

    @property
    def name(self) -> str:
        """The user's setting, for hints."""

    @property
    def secrets(self) -> tuple[str, ...]: ...

    async def fetch(self, client: TokenClient) -> AwsKeys:
        """Fetch keys. Raises ProviderError with the problem and a hint."""


class AwsIdentity:
    """Signs requests with the keys of a source. Concurrent requests fetch them once."""

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
        """The key by which identities share their keys."""
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
    """Return the keys in an answer, in any spelling of their names.

    Raises ProviderError if they are missing.
    """
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
    """Return an expiry as AWS writes it: in milliseconds, or as a date."""
    if isinstance(value, int | float):
        return value / 1000 if value > 10_000_000_000 else float(value)
    try:
        return datetime.fromisoformat(str(value).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None
