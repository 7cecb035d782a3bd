"""Sign users in at an OpenID Connect provider: discovery, authorization code with PKCE, ID tokens, sign-out.

PyJWT verifies signatures and times. This module checks all other requirements for tokens and decides which
party must meet them. It does not know cookies, users or the store.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, cast
from urllib.parse import quote, urlencode

from dragoman.errors import DragomanError, ProviderError
from dragoman.installed import require
from dragoman.web_address import web_address
from dragoman.wire.http_client.client import HttpClient
from dragoman.wire.http_client.network import is_loopback

# Only asymmetric algorithms, with the key type and curve that each needs: with a symmetric one, the key that
# verifies could also sign.
_ALGORITHMS = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), ("RSA", None)),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
}
ANY = "*"  # an allowed group that stands for every account of the provider
_LARGEST = 512_000  # maximum bytes of a document
_FRESH = 3600.0  # seconds that a document of the provider stays cached
_FAILED = 5.0  # seconds after a failure before the next request
_COOLDOWN = 30.0  # seconds between two requests for a key that a client's token named
_LEEWAY = 60  # seconds by which clocks can differ
_RECENT = 600  # maximum seconds since a token was issued
_PATIENCE = 600.0  # seconds that a user has to sign in
_LOGOUT = "http://schemas.openid.net/event/backchannel-logout"


class SignInRefused(DragomanError):
    """A refused sign-in. The text is for the log only, because a client must not learn the reason."""


@dataclass(slots=True, frozen=True, kw_only=True)
class OidcSettings:
    """A provider and the requirements for its users. The groups are values of the groups claim.

    Without an allowed group, no user can sign in: at some providers, anybody can create an account.
    """

    issuer: str
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    name: str = "OpenID Connect"
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    groups_claim: str = "groups"
    name_claim: str = "preferred_username"
    allowed_groups: frozenset[str] = frozenset()
    admin_group: str | None = None
    session: float = 12 * 3600.0  # seconds that a sign-in lasts


@dataclass(slots=True, frozen=True)
class PendingSignIn:
    """A sign-in that waits for the browser to return. The browser keeps it, signed."""

    state: str
    nonce: str
    verifier: str = field(repr=False)
    redirect: str
    to: str
    until: float

    def dump(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def load(cls, text: str) -> PendingSignIn:
        return cls(**json.loads(text))


@dataclass(slots=True, frozen=True)
class Account:
    """A signed-in account, as the provider describes it."""

    subject: str
    name: str
    session: str  # The provider's session. It is empty if the provider names none.
    groups: frozenset[str]


@dataclass(slots=True, frozen=True)
class LogoutNotice:
    """A notice that the provider has ended one session, or all sessions of an account."""

    id: str
    subject: str
    session: str


class OidcProvider:
    """A client of one provider. It caches the provider's metadata for an hour."""

    def __init__(
        self, settings: OidcSettings, http: HttpClient, *, clock: Callable[[], float] = time.time
    ) -> None:
        require("jwt")
        self.settings = settings
        self._http = http
        self._clock = clock
        self._metadata = _Document(http, clock, self._check_metadata)
        self._keys = _Document(http, clock, lambda _: None)

    # ── signing in ────────────────────────────────────────────────────────────────────────────────

    async def begin(self, redirect: str, to: str) -> tuple[str, PendingSignIn]:
        """Start a sign-in. Returns the address for the browser, and the state to keep until it returns to
        `redirect`."""
        metadata = await self._discover()
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=")
        query = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": redirect,
            "scope": " ".join(self.settings.scopes),
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge.decode(),
            "code_challenge_method": "S256",
        }
        address = _with_query(self._endpoint(metadata, "authorization_endpoint"), query)
        return address, PendingSignIn(state, nonce, verifier, redirect, to, self._clock() + _PATIENCE)

    async def finish(self, begun: PendingSignIn, returned: Mapping[str, str]) -> Account:
        """Return the account of a browser that returned with these parameters and this pending sign-in's
        state. Raises SignInRefused otherwise."""
        metadata = await self._discover()
        self._check_issuer(metadata, returned)
        if (error := returned.get("error")) is not None:
            raise SignInRefused(f"the provider answered {error[:100]!r}")
        if not (code := returned.get("code")):
            raise SignInRefused("the provider sent no code")
        tokens = await self._redeem(metadata, begun, code)
        claims = await self._verify(metadata, tokens.get("id_token"), issued_to_us=True)
        if not _same(_text(claims.get("nonce")), begun.nonce):
            raise SignInRefused("the nonce is not that of this sign-in")
        return self._account(claims, await self._user_info(metadata, claims, tokens.get("access_token")))

    def _check_issuer(self, metadata: Mapping[str, Any], returned: Mapping[str, str]) -> None:
        """Raise SignInRefused for an answer of another issuer, whose code must not be sent to this one (RFC
        9207)."""
        issuer = returned.get("iss")
        promised = metadata.get("authorization_response_iss_parameter_supported") is True
        if (issuer is None and promised) or issuer not in (None, self.settings.issuer):
            raise SignInRefused("the answer is of another issuer")

    async def _redeem(self, metadata: Mapping[str, Any], begun: PendingSignIn, code: str) -> dict[str, Any]:
        client, secret = self.settings.client_id, self.settings.client_secret
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": begun.redirect,
            "code_verifier": begun.verifier,
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        ways = metadata.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        if secret is not None and "client_secret_basic" in ways:
            pair = f"{quote(client, safe='')}:{quote(secret, safe='')}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        else:
            form |= {"client_id": client} | ({} if secret is None else {"client_secret": secret})
        address = self._endpoint(metadata, "token_endpoint")
        status, body = await self._http.ask(
            address, method="POST", headers=headers, body=urlencode(form).encode(), largest=_LARGEST
        )
        if status != 200:
            raise SignInRefused(f"the provider refused the code with status {status}")
        return _object(body, "the answer with the tokens")

    async def _user_info(
        self, metadata: Mapping[str, Any], claims: dict[str, Any], token: object
    ) -> dict[str, Any]:
        """Return the claims, with missing ones added from the provider's user info endpoint."""
        settings = self.settings
        wanted = [settings.name_claim]
        wanted += (
            [settings.groups_claim] if settings.admin_group or ANY not in settings.allowed_groups else []
        )
        lacks = any(_claim(claims, name) is None for name in wanted)
        if not lacks or "userinfo_endpoint" not in metadata or not isinstance(token, str):
            return claims
        headers = {"Authorization": f"Bearer {token}"}
        address = self._endpoint(metadata, "userinfo_endpoint")
        status, body = await self._http.ask(address, headers=headers, largest=_LARGEST)
        if status != 200:
            raise SignInRefused(f"the provider does not name the user: status {status}")
        more = _object(body, "what the provider says of the user")
        if not _same(_text(more.get("sub")), claims["sub"]):
            raise SignInRefused("the provider describes another user")
        return {**more, **claims}

    def _account(self, claims: Mapping[str, Any], described: Mapping[str, Any]) -> Account:
        groups = _claim(described, self.settings.groups_claim)
        named = [groups] if isinstance(groups, str) else groups if isinstance(groups, list) else []
        return Account(
            claims["sub"],
            _text(_claim(described, self.settings.name_claim)),
            _text(claims.get("sid")),
            frozenset(one for one in named if isinstance(one, str)),
        )

    # ── signing out ───────────────────────────────────────────────────────────────────────────────

    async def logout_notice(self, token: str) -> LogoutNotice:
        """Return the content of a back-channel logout. Raises SignInRefused if the token is not this
        provider's."""
        claims = await self._verify(await self._discover(), token, issued_to_us=False)
        events = claims.get("events")
        is_logout = isinstance(events, dict) and isinstance(events.get(_LOGOUT), dict)
        subject, session, id = (_text(claims.get(name)) for name in ("sub", "sid", "jti"))
        if not is_logout or "nonce" in claims or not id or not (subject or session):
            raise SignInRefused("this is not a logout token")
        return LogoutNotice(id, subject, session)

    async def logout_address(self, back: str) -> str | None:
        """Return the address that also signs a browser out at the provider, or None if the provider
        has none."""
        try:
            metadata = await self._discover()
            query = {"client_id": self.settings.client_id, "post_logout_redirect_uri": back}
            return _with_query(self._endpoint(metadata, "end_session_endpoint"), query)
        except (SignInRefused, ProviderError):
            return None

    # ── metadata of the provider ──────────────────────────────────────────────────────────────────

    async def _discover(self) -> Mapping[str, Any]:
        address = f"{self.settings.issuer.rstrip('/')}/.well-known/openid-configuration"
        return await self._metadata.read(address)

    def _check_metadata(self, metadata: Mapping[str, Any]) -> None:
        if metadata.get("issuer") != self.settings.issuer:
            raise SignInRefused(f"the provider calls itself {str(metadata.get('issuer'))[:200]!r}")

    def _endpoint(self, metadata: Mapping[str, Any], name: str) -> str:
        """Return an endpoint of the provider. Plain HTTP is only accepted on this machine, for an issuer on
        it."""
        address = _text(metadata.get(name))
        parts = web_address(address)
        plain = parts is not None and parts.scheme == "http"
        here = plain and parts is not None and is_loopback(parts.hostname)
        if parts is None or parts.fragment or plain != (here and self.settings.issuer.startswith("http:")):
            raise SignInRefused(f"the provider has no usable {name}")
        return address

    # ── tokens ────────────────────────────────────────────────────────────────────────────────────

    async def _verify(
        self, metadata: Mapping[str, Any], token: object, *, issued_to_us: bool
    ) -> dict[str, Any]:
        """Return the claims of a token that this provider recently signed for this client.

        `issued_to_us` marks an ID token that came directly from the provider. Other tokens can come from any
        client.
        """
        import jwt

        if not isinstance(token, str):
            raise SignInRefused("the provider sent no ID token")
        try:
            header = jwt.get_unverified_header(token)
            algorithm = self._algorithm(metadata, header)
            if str(header.get("typ", "JWT")).lower() not in ("jwt", "jwt" if issued_to_us else "logout+jwt"):
                raise SignInRefused("the token is of another kind")
            key = await self._key(metadata, header, algorithm, look_again=issued_to_us)
            claims = jwt.decode(
                token,
                jwt.PyJWK.from_dict(key, algorithm),
                algorithms=[algorithm],
                audience=self.settings.client_id,
                issuer=self.settings.issuer,
                leeway=_LEEWAY,
                options={
                    "require": ["iss", "aud", "iat", "exp", *(["sub"] if issued_to_us else [])],
                    "enforce_minimum_key_length": True,
                },
            )
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise SignInRefused(f"the token is not valid: {error}") from None
        if claims.get("sub") == "" or self._clock() - int(claims["iat"]) > _RECENT:
            raise SignInRefused("the token names no user, or it is too old")
        several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
        if (several or "azp" in claims) and claims.get("azp") != self.settings.client_id:
            raise SignInRefused("the token was given to another client")
        return claims

    def _algorithm(self, metadata: Mapping[str, Any], header: Mapping[str, Any]) -> str:
        advertised = metadata.get("id_token_signing_alg_values_supported") or ["RS256"]
        algorithm = header.get("alg")
        advertised = advertised if isinstance(advertised, list) else []
        if algorithm not in _ALGORITHMS or algorithm not in advertised:
            raise SignInRefused(f"the token is signed with {str(algorithm)[:20]!r}")
        return str(algorithm)

    async def _key(
        self, metadata: Mapping[str, Any], header: Mapping[str, Any], algorithm: str, *, look_again: bool
    ) -> dict[str, Any]:
        """Return the provider's key that a token names. For an unknown key, the documents are read again."""
        address = self._endpoint(metadata, "jwks_uri")
        for older in (_FRESH, 0.0 if look_again else _COOLDOWN):
            found = await self._keys.read(address, older=older)
            listed = found.get("keys")
            fitting = [
                one
                for one in (listed if isinstance(listed, list) else [])
                if isinstance(one, dict) and _fits(one, header.get("kid"), algorithm)
            ]
            if len(fitting) == 1:
                return fitting[0]
        raise SignInRefused("the provider has no such key, or several")


class _Document:
    """A document of the provider. Requests for it never overlap, and pause briefly after a failure."""

    def __init__(
        self, http: HttpClient, clock: Callable[[], float], check: Callable[[Mapping[str, Any]], None]
    ) -> None:
        self._http = http
        self._clock = clock
        self._check = check
        self._lock = asyncio.Lock()
        self._found: dict[str, Any] = {}
        self._read_at = self._failed_at = float("-inf")
        self._address = ""

    async def read(self, address: str, *, older: float = _FRESH) -> dict[str, Any]:
        """Return the document, and read it again if the cached one is `older`. Raises SignInRefused or
        ProviderError."""
        asked = self._clock()
        async with self._lock:
            now = self._clock()
            known = address == self._address
            if known and (now - self._read_at < older or self._read_at >= asked):
                return self._found
            if now - self._failed_at < _FAILED:
                raise SignInRefused("a request to the provider failed a moment ago")
            try:
                status, body = await self._http.ask(address, largest=_LARGEST)
                if status != 200:
                    raise SignInRefused(f"{address} answers with status {status}")
                found = _object(body, address)
                self._check(found)
            except (ProviderError, SignInRefused):
                self._failed_at = self._clock()
                raise
            self._found, self._read_at, self._address = found, self._clock(), address
            return found


def _fits(key: Mapping[str, Any], kid: object, algorithm: str) -> bool:
    kind, curve = _ALGORITHMS[algorithm]
    return (
        (kid is None or key.get("kid") == kid)
        and key.get("kty") == kind
        and (curve is None or key.get("crv") == curve)
        and key.get("use", "sig") == "sig"
        and key.get("alg", algorithm) == algorithm
    )


def _claim(claims: Mapping[str, Any], name: str) -> object:
    """Return a claim by its name, or by a path of names such as `realm_access.roles`."""
    if name in claims:
        return cast("object", claims[name])
    found: object = claims
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _object(body: bytes, what: str) -> dict[str, Any]:
    try:
        found = json.loads(body) if len(body) <= _LARGEST else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise SignInRefused(f"{what} is not a JSON object of up to {_LARGEST} bytes")
    return found


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


def _with_query(address: str, query: Mapping[str, str]) -> str:
    return f"{address}{'&' if '?' in address else '?'}{urlencode(query)}"
