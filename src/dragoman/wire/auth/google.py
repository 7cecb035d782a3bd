"""Authenticate at Google: as a service account, or a user who ran `gcloud auth application-default login`."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json

from dragoman.errors import ConfigError, ProviderError
from dragoman.sentences import sentence
from dragoman.wire.auth.auth import TokenClient
from dragoman.wire.auth.token import (
    LONGEST,
    AccessToken,
    TokenSource,
    ask_token,
    check_token_address,
    fetch_token,
    read_secret,
)
from dragoman.wire.transport_errors import host_of

# Authenticate at Google without a key: with another identity's token, another account, or as this machine.


SCOPE = "https://www.googleapis.com/auth/cloud-platform"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS = "urn:ietf:params:oauth:token-type:access_token"
METADATA = "http://metadata.google.internal"


@dataclass(slots=True, frozen=True)
class GoogleMachine:
    """The account of a machine, a job or a service in Google's cloud, from its metadata server."""

    server: str = METADATA
    name: str = "the account of this machine"

    @property
    def secrets(self) -> tuple[str, ...]:
        return ()

    async def fetch(self, client: TokenClient) -> AccessToken:
        path = f"computeMetadata/v1/instance/service-accounts/default/token?scopes={SCOPE}"
        url = f"{self.server.rstrip('/')}/{path}"
        return await ask_token(client, url, {"Metadata-Flavor": "Google"}, name=self.name)


@dataclass(slots=True, frozen=True)
class SubjectToken:
    """The token of another identity: in a file or at a URL, as plain text or as a JSON field."""

    file: Path | None
    url: str
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    json_field: str

    async def read(self, client: TokenClient, name: str) -> str:
        if self.file is not None:
            text = await read_secret(self.file, name)
        else:
            status, body = await client.ask(self.url, headers=dict(self.headers))
            if status != 200:
                raise _no_token(f"{host_of(self.url)} answers {status} without a token", name, status)
            text = body.decode("utf-8", "replace").strip()
        if not self.json_field:
            return text
        try:
            return str(from_json(text)[self.json_field])
        except (ValueError, LookupError, TypeError):
            raise _no_token(f"the token of the other identity has no {self.json_field!r}", name) from None


@dataclass(slots=True, frozen=True)
class ExternalAccount:
    """Workload identity: exchanges the token of another identity for one of Google's."""

    audience: str
    token_type: str
    url: str
    subject: SubjectToken
    name: str = "GOOGLE_APPLICATION_CREDENTIALS"

    @property
    def secrets(self) -> tuple[str, ...]:
        return ()

    async def fetch(self, client: TokenClient) -> AccessToken:
        form = {
            "grant_type": EXCHANGE,
            "audience": self.audience,
            "scope": SCOPE,
            "requested_token_type": ACCESS,
            "subject_token": await self.subject.read(client, self.name),
            "subject_token_type": self.token_type,
        }
        return await fetch_token(client, self.url, form, name=self.name)


@dataclass(slots=True, frozen=True)
class Impersonated:
    """A service account that another account can impersonate."""

    source: TokenSource
    url: str
    name: str

    @property
    def secrets(self) -> tuple[str, ...]:
        return self.source.secrets

    async def fetch(self, client: TokenClient) -> AccessToken:
        token = await self.source.fetch(client)
        headers = {"Authorization": f"Bearer {token.value}", "Content-Type": "application/json"}
        body = to_json({"scope": [SCOPE], "lifetime": "3600s"})
        status, answer = await client.ask(self.url, method="POST", headers=headers, body=body)
        try:
            found = from_json(answer)
            value, ends = found["accessToken"], datetime.fromisoformat(found["expireTime"])
        except (ValueError, LookupError, TypeError):
            raise _no_token(
                f"{self.name}: this account has no permission to impersonate the other one", self.name, status
            ) from None
        return AccessToken(str(value), min(ends.timestamp(), client.clock() + LONGEST))


def external_account(found: dict[str, Any], *, name: str) -> TokenSource:
    """Return the account that such a file describes. Raises KeyError if a field is missing."""
    described = found["credential_source"]
    if not isinstance(described, dict) or not ("file" in described or "url" in described):
        raise ConfigError(sentence("google.other", name=name))
    form = described.get("format") or {}
    url = str(described.get("url") or "")
    if url and not url.startswith(("http://", "https://")):
        raise ConfigError(sentence("google.no_address", name=name, url=url))
    subject = SubjectToken(
        Path(described["file"]).expanduser() if "file" in described else None,
        url,
        tuple((str(key), str(value)) for key, value in (described.get("headers") or {}).items()),
        str(form.get("subject_token_field_name") or "access_token") if form.get("type") == "json" else "",
    )
    exchanged = ExternalAccount(
        found["audience"],
        found["subject_token_type"],
        check_token_address(str(found["token_url"]), name=name),
        subject,
        name,
    )
    return acting_as(exchanged, found.get("service_account_impersonation_url"), name=name)


def acting_as(source: TokenSource, url: str | None, *, name: str) -> TokenSource:
    return source if not url else Impersonated(source, check_token_address(str(url), name=name), name)


def _no_token(message: str, name: str, status: int | None = None) -> ProviderError:
    again = status is not None and (status == 429 or status >= 500)
    return ProviderError(
        message, kind="auth", status=status, retryable=again, hint=sentence("hint.check", name=name)
    )


TOKENS = "https://oauth2.googleapis.com/token"
ASSERTION = "urn:ietf:params:oauth:grant-type:jwt-bearer"
LIVES = 3600  # seconds: the maximum


@dataclass(slots=True, frozen=True)
class ServiceAccount:
    """A service account: it signs a statement with its private key, and gets a token for it."""

    email: str
    private_key: str = field(repr=False)  # PEM
    key_id: str | None = None
    url: str = TOKENS
    name: str = "GOOGLE_APPLICATION_CREDENTIALS"

    @property
    def secrets(self) -> tuple[str, ...]:
        return (self.private_key,)

    async def fetch(self, client: TokenClient) -> AccessToken:
        statement = await asyncio.to_thread(self._statement, int(client.clock()))
        form = {"grant_type": ASSERTION, "assertion": statement}
        return await fetch_token(client, self.url, form, name=self.name)

    def _statement(self, now: int) -> str:
        """Return a JWT, signed with RS256."""
        head = {"alg": "RS256", "typ": "JWT", **({"kid": self.key_id} if self.key_id else {})}
        claims = {"iss": self.email, "scope": SCOPE, "aud": self.url, "iat": now, "exp": now + LIVES}
        signed = b".".join(_base64url(to_json(part)) for part in (head, claims))
        return b".".join((signed, _base64url(_sign(signed, self.private_key, self.name)))).decode()


@dataclass(slots=True, frozen=True)
class AuthorizedUser:
    """A user's own account, with the refresh token that gcloud saved."""

    client_id: str
    client_secret: str = field(repr=False)
    refresh_token: str = field(repr=False)
    url: str = TOKENS
    name: str = "gcloud auth application-default login"

    @property
    def secrets(self) -> tuple[str, ...]:
        return (self.client_secret, self.refresh_token)

    async def fetch(self, client: TokenClient) -> AccessToken:
        form = {
            "grant_type": "refresh_token",
            "client_id": self.client_id,
            "client_secret": self.client_secret,
            "refresh_token": self.refresh_token,
        }
        return await fetch_token(client, self.url, form, name=self.name)


def read_google_credentials(file: Path, *, name: str) -> TokenSource:
    """Return the account in a credentials file. Raises ConfigError if it is not usable."""
    try:
        found = from_json(file.read_bytes())
    except OSError as error:
        raise ConfigError(sentence("google.not_read", name=name, file=file, error=error.strerror)) from error
    except ValueError:
        raise ConfigError(sentence("google.file_no_json", name=name, file=file)) from None
    return google_credentials(found, name=name)


def google_credentials(found: Any, *, name: str) -> TokenSource:
    kind = found.get("type") if isinstance(found, dict) else None
    try:
        if kind == "service_account":
            url = check_token_address(str(found.get("token_uri") or TOKENS), name=name)
            key_id = found.get("private_key_id")
            return ServiceAccount(found["client_email"], found["private_key"], key_id, url, name)
        if kind == "authorized_user":
            url = check_token_address(str(found.get("token_uri") or TOKENS), name=name)
            return AuthorizedUser(
                found["client_id"], found["client_secret"], found["refresh_token"], url, name
            )
        if kind == "external_account":
            return external_account(found, name=name)
        if kind == "impersonated_service_account":
            own = google_credentials(found["source_credentials"], name=name)
            return acting_as(own, found["service_account_impersonation_url"], name=name)
    except KeyError as error:
        raise ConfigError(sentence("google.lacks", name=name, field=error.args[0])) from None
    raise ConfigError(sentence("google.kind", name=name, kind=kind))


def _sign(data: bytes, key: str, name: str) -> bytes:
    try:
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import padding, rsa
    except ImportError:
        raise ConfigError(sentence("google.package")) from None
    try:
        private = serialization.load_pem_private_key(key.encode(), password=None)
    except (ValueError, TypeError):
        private = None
    if not isinstance(private, rsa.RSAPrivateKey):
        raise ConfigError(sentence("google.key", name=name))
    return private.sign(data, padding.PKCS1v15(), hashes.SHA256())


def _base64url(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")
