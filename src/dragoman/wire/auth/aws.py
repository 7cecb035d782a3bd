"""Signing in to Amazon: each request is signed with an access key (Signature Version 4)."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ClassVar
from urllib.parse import quote, urlsplit

from dragoman.sentences import sentence
from dragoman.wire.auth.auth import Outgoing, TokenClient
from dragoman.wire.auth.key import check_key

ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(slots=True, frozen=True)
class AwsAuth:
    """An access key, and what it signs for: a region and a service."""

    access_key: str
    secret_key: str = field(repr=False)
    region: str
    session_token: str | None = field(default=None, repr=False)  # of a key that lives for hours
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
    """The headers that sign a request at a time."""
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
    """The request in the one form of which both sides take the hash.

    The path is encoded once more than it is sent: that is the rule for every service but S3.
    """
    parts = urlsplit(request.url)
    query = "&".join(sorted(pair if "=" in pair else f"{pair}=" for pair in parts.query.split("&") if pair))
    headers = "".join(f"{name}:{' '.join(signed[name].split())}\n" for name in sorted(signed))
    path = quote(parts.path or "/", safe="/-_.~")
    return "\n".join((request.method, path, query, headers, names, request.digest or _hash(request.body)))


def _host(url: str) -> str:
    """As the client writes it: without a port that goes without saying."""
    parts = urlsplit(url)
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    return host if parts.port in (None, usual) else f"{host}:{parts.port}"


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
