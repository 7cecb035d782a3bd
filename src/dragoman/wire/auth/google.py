"""Signing in to Google: a service account, or a person who ran `gcloud auth application-default login`."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json

from dragoman.errors import ConfigError
from dragoman.sentences import sentence
from dragoman.wire.auth.auth import TokenClient
from dragoman.wire.auth.google_identity import SCOPE, acting_as, external_account
from dragoman.wire.auth.token import AccessToken, TokenSource, check_token_address, fetch_token

TOKENS = "https://oauth2.googleapis.com/token"
ASSERTION = "urn:ietf:params:oauth:grant-type:jwt-bearer"
LIVES = 3600  # seconds: the longest that is granted


@dataclass(slots=True, frozen=True)
class ServiceAccount:
    """A program's account: it signs a statement with its private key, and gets a token for it."""

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
        """A JWT, signed with RS256."""
        head = {"alg": "RS256", "typ": "JWT", **({"kid": self.key_id} if self.key_id else {})}
        claims = {"iss": self.email, "scope": SCOPE, "aud": self.url, "iat": now, "exp": now + LIVES}
        signed = b".".join(_base64url(to_json(part)) for part in (head, claims))
        return b".".join((signed, _base64url(_sign(signed, self.private_key, self.name)))).decode()


@dataclass(slots=True, frozen=True)
class AuthorizedUser:
    """A person's own account, by the refresh token that gcloud wrote down."""

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
    """The account in a credentials file. ConfigError where it is none that we can use."""
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
