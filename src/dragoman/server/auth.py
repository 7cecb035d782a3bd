"""Authenticate requests by a signed cookie, a key, a password or a link, and slow down guessing."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import math
import re
import secrets
import time
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import Response

from dragoman.conversation.tree import LOCAL
from dragoman.errors import BadRequest, ConfigError
from dragoman.sentences import sentence
from dragoman.server.audit import FailedSignIns
from dragoman.server.links import LinkOwner, Links
from dragoman.server.oidc import Account, LogoutNotice, OidcProvider, PendingSignIn, SignInRefused
from dragoman.server.proxies import counted_address
from dragoman.store.store import Identity, Store
from dragoman.stored_keys import open_private

SIGN_IN_FIRST = sentence("sign_in.first")
_LIFETIME = 30 * 24 * 3600  # seconds that a sign-in lasts
_OIDC = "oidc"  # marks a cookie whose sign-in was made at the provider
_REMEMBERED = 365 * 24 * 3600  # seconds that the server recognizes a browser that has signed in
_LONGEST_NAME = 50  # characters, before a number is added
_SLOWLY = 1.0  # seconds that a wrong password takes


@dataclass(slots=True, frozen=True)
class SignedIn:
    """The user of a request. `session` is the hash of the sign-in's cookie, empty for a key."""

    person: str
    is_admin: bool = False
    session: str = ""
    at_provider: bool = False  # whether the user signed in at the provider


class Auth:
    """Authentication of the server's users. Sign-ins outlive the process: a secret from a file signs the
    cookies."""

    def __init__(
        self,
        store: Store,
        secret: bytes,
        *,
        token: str | None = None,
        key: str | None = None,
        password: str | None = None,
        oidc: OidcProvider | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`token` is the token of the first link. `key` is for programs of the user who runs the server."""
        self.oidc = oidc
        self.links = Links()
        self.token = self.links.add(LOCAL, token)
        self.key = key or secrets.token_urlsafe(24)
        self.needs_password = password is not None
        self._store = store
        self._secret = secret
        self._password = password
        self._clock = clock
        self._guesses = Guesses()
        self.failed = FailedSignIns(store)
        # Two servers on one host use different cookie names.
        self.cookie = f"dragoman_{hashlib.sha256(secret).hexdigest()[:8]}"

    async def person(self, request: HTTPConnection) -> str | None:
        """Return the user's name, or None for an unauthenticated client."""
        found = await self.signed_in(request)
        return found.person if found is not None else None

    async def signed_in(self, request: HTTPConnection) -> SignedIn | None:
        """Return the user and the sign-in of a request, or None for an unauthenticated client."""
        if (key := _bearer(request)) is not None:
            person = await self._person_with_key(key)
            return SignedIn(person, person == LOCAL) if person is not None else None
        return await self._in_cookie(request.cookies.get(self.cookie, ""))

    async def sign_in(self, password: str, request: HTTPConnection) -> str | None:
        """Return the user of this password, key or link, or None.

        A wrong one takes a second and slows down further tries. A link is used up, as when it is opened.
        """
        attempt = await self.attempt(request)
        person = await self.use_link(password) or await self._person_with_password(password)
        if person is None:
            await self.failed.add(request.client.host if request.client else "", "password", "wrong")
            await asyncio.sleep(_SLOWLY)
        else:
            attempt.was_right()
        return person

    async def attempt(self, request: HTTPConnection) -> Try:
        """Wait until this client may try to sign in. Raises HTTPException 429 after too many wrong tries."""
        address = request.client.host if request.client else ""
        try:
            known = await self._in_cookie(request.cookies.get(f"{self.cookie}_browser", ""), "browser")
            attempt = self._guesses.begin(address, known.person if known is not None else None)
        except TooManyTries as error:
            wait = {"retry-after": str(math.ceil(error.seconds))}
            raise HTTPException(429, sentence("sign_in.too_often"), headers=wait) from error
        await asyncio.sleep(attempt.wait)
        return attempt

    async def add_link(self, person: str, lifetime: float) -> str:
        """Return the token of a new link, which is valid only as long as the user's current key.

        Raises BadRequest for users of the identity provider: they sign in there with each browser, so that
        the provider can end every sign-in that it began.
        """
        if await self._store.epoch_of_identity(person) is not None:
            raise BadRequest(sentence("sign_in.no_link"))
        key = None if person == LOCAL else await self._store.key_of(person) or ""
        return self.links.add(person, key=key, lifetime=lifetime)

    async def use_link(self, token: str) -> str | None:
        """Use a link up and return its user, or None if it is invalid."""
        return await self._person_of_link(self.links.use(token))

    async def _person_of_link(self, owner: LinkOwner | None) -> str | None:
        if owner is None or (owner.key is not None and owner.key != await self._store.key_of(owner.person)):
            return None
        return owner.person

    async def set_cookie(self, response: Response, person: str, request: HTTPConnection) -> None:
        """Set two cookies: one for the sign-in, and a long-lived one that recognizes this user's browser."""
        secure, below = request.url.scheme == "https", str(request.scope.get("root_path", ""))
        self._set(
            response,
            f"{self.cookie}_browser",
            await self._signed(person, _REMEMBERED, "browser"),
            path=f"{below}/api/login",
            seconds=_REMEMBERED,
            secure=secure,
        )
        value = await self._signed(person, _LIFETIME)
        self._set(response, self.cookie, value, path=below or "/", seconds=_LIFETIME, secure=secure)

    async def set_oidc_cookie(
        self, response: Response, person: str, account: Account, request: HTTPConnection
    ) -> None:
        """Set the cookie of a user of the provider. It lasts until the provider ends the session, or for the
        configured time."""
        assert self.oidc is not None
        settings = self.oidc.settings
        admin = key_hash(settings.admin_group) if settings.admin_group in account.groups else ""
        session = self._provider_session(account.session) if account.session else ""
        seconds = int(settings.session)
        value = await self._signed(person, seconds, _OIDC, _OIDC, session, admin)
        secure, below = request.url.scheme == "https", str(request.scope.get("root_path", ""))
        self._set(response, self.cookie, value, path=below or "/", seconds=seconds, secure=secure)

    def _provider_session(self, session: str) -> str:
        """Return the hash that identifies a session of the provider in the store."""
        assert self.oidc is not None
        return key_hash(f"session {self.oidc.settings.issuer} {session}")

    async def identify(self, account: Account) -> Identity | None:
        """Return the user of an account. The first sign-in adds the user."""
        assert self.oidc is not None
        return await self._store.identify(
            self.oidc.settings.issuer,
            account.subject,
            name=_user_name(account.name),
            key=key_hash(secrets.token_urlsafe(24)),
            epoch=secrets.token_urlsafe(9),
            created=self._clock(),
        )

    async def end_at_provider(self, notice: LogoutNotice) -> str | None:
        """End the sign-ins that the provider has ended, on every server of this store.

        Returns the user if all of their sign-ins ended. Raises SignInRefused if the notice was used before.
        """
        assert self.oidc is not None
        now = self._clock()
        issuer = self.oidc.settings.issuer
        if not await self._store.use_once(key_hash(f"notice {issuer} {notice.id}"), now + _LIFETIME, now):
            raise SignInRefused("the logout token was used before")
        if notice.session:
            await self._store.end_session(self._provider_session(notice.session), now + _LIFETIME, now)
            return None
        return await self._store.end_sessions_of_identity(issuer, notice.subject, secrets.token_urlsafe(9))

    def keep(self, response: Response, begun: PendingSignIn, request: HTTPConnection) -> None:
        """Keep the state of a pending sign-in in a cookie. The provider redirects from another site, so the
        cookie is `lax`. Its path covers only the sign-in."""
        body = base64.urlsafe_b64encode(begun.dump().encode()).decode()
        below = str(request.scope.get("root_path", ""))
        response.set_cookie(
            self._begun_cookie(begun.state),
            f"{body}.{self._sign(body, '', 'begun')}",
            max_age=int(begun.until - self._clock()),
            path=f"{below}/oidc",
            httponly=True,
            samesite="lax",
            secure=request.url.scheme == "https",
        )

    async def take(self, response: Response, state: str, request: HTTPConnection) -> PendingSignIn | None:
        """Return the pending sign-in that this browser began with this state, or None. Only one server of
        this store can take it, and only once."""
        name, below = self._begun_cookie(state), str(request.scope.get("root_path", ""))
        body, _, signature = request.cookies.get(name, "").rpartition(".")
        if not body or not _same(signature, self._sign(body, "", "begun")):
            return None
        response.delete_cookie(name, path=f"{below}/oidc", httponly=True, samesite="lax")
        begun, now = PendingSignIn.load(base64.urlsafe_b64decode(body).decode()), self._clock()
        if not _same(begun.state, state) or begun.until <= now:
            return None
        return begun if await self._store.use_once(key_hash(f"state {state}"), begun.until, now) else None

    def _begun_cookie(self, state: str) -> str:
        """Return the name of the cookie of one sign-in: two tabs can sign in at the same time."""
        return f"{self.cookie}_{key_hash(state)[:12]}"

    def _set(
        self, response: Response, name: str, value: str, *, path: str, seconds: int, secure: bool
    ) -> None:
        response.set_cookie(
            name, value, max_age=seconds, path=path, httponly=True, samesite="strict", secure=secure
        )

    def session(self, request: HTTPConnection) -> str | None:
        """Return the hash of the cookie that a request signs in with, or None for a key."""
        cookie = request.cookies.get(self.cookie, "")
        return key_hash(cookie) if cookie and _bearer(request) is None else None

    async def sign_out(self, response: Response, request: HTTPConnection) -> None:
        """Delete the cookie, and end its sign-in on every server of this store."""
        if (session := self.session(request)) is not None:
            now = self._clock()
            await self._store.end_session(session, now + _LIFETIME, now)
        below = str(request.scope.get("root_path", ""))
        response.delete_cookie(self.cookie, path=below or "/", httponly=True, samesite="strict")

    async def _person_with_password(self, password: str) -> str | None:
        if self._password is not None and _same(password, self._password):
            return LOCAL
        return await self._person_with_key(password)

    async def _person_with_key(self, key: str) -> str | None:
        if _same(key, self.key):
            return LOCAL
        of_link = await self._person_of_link(self.links.owner(key))
        return of_link or await self._store.person_with_key(key_hash(key))

    async def _in_cookie(self, cookie: str, purpose: str = "") -> SignedIn | None:
        body, _, signature = cookie.rpartition(".")
        try:
            person, _, *at_provider, until = base64.urlsafe_b64decode(body).decode().split("\n")
            if at_provider and (purpose or at_provider[0] != _OIDC):
                return None
            _, session, admin = at_provider or ("", "", "")
            credential = await self._credential(person, at_provider=bool(at_provider))
            purpose = _OIDC if at_provider else purpose
            if credential is None or not _same(signature, self._sign(body, credential, purpose)):
                return None
            if int(until) <= self._clock() or await self._store.is_session_ended(key_hash(cookie), session):
                return None
            is_admin = self._is_admin_group(admin) if at_provider else person == LOCAL
            return SignedIn(person, is_admin, key_hash(cookie), bool(at_provider))
        except ValueError:
            return None

    def _is_admin_group(self, hash: str) -> bool:
        """Return whether this is the hash of the current admin group."""
        group = self.oidc.settings.admin_group if self.oidc is not None else None
        return group is not None and hash == key_hash(group)

    async def _credential(self, person: str, *, at_provider: bool = False) -> str | None:
        """Return a value that changes with the user's password or key, so that a change ends their sign-ins.

        A sign-in at the provider also ends when the provider ends all of the user's sign-ins, or when the
        server uses another provider. None if the user or the provider is unknown.
        """
        if person == LOCAL:
            return None if at_provider else key_hash(self._password or "")
        key = await self._store.key_of(person)
        if not at_provider or key is None:
            return key
        epoch = await self._store.epoch_of_identity(person) if self.oidc is not None else None
        return f"{key}.{epoch}.{self.oidc.settings.issuer}" if epoch and self.oidc is not None else None

    async def _signed(self, person: str, seconds: int, purpose: str = "", *at_provider: str) -> str:
        """Return a signed cookie. Two sign-ins within a second differ, so signing one out leaves the
        other."""
        until = str(int(self._clock()) + seconds)
        text = "\n".join((person, secrets.token_urlsafe(9), *at_provider, until))
        body = base64.urlsafe_b64encode(text.encode()).decode()
        credential = await self._credential(person, at_provider=bool(at_provider)) or ""
        return f"{body}.{self._sign(body, credential, purpose)}"

    def _sign(self, body: str, credential: str, purpose: str) -> str:
        """Return the signature of a cookie. A cookie for one purpose is invalid for another."""
        text = f"{body}.{credential}{purpose and '.'}{purpose}".encode("utf-8", "surrogateescape")
        return hmac.new(self._secret, text, hashlib.sha256).hexdigest()


def key_hash(key: str) -> str:
    """Return the hash that the store keeps of a key. Keys are long and random, so a plain hash is enough."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def load_secret(file: Path) -> bytes:
    """Return the secret in this file, and create the file if it is missing. Only its owner can read it.

    Raises ConfigError if the file cannot be written or is damaged.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with open(file, "xb", opener=open_private) as new:
            new.write(secrets.token_bytes(32))
    except FileExistsError:
        pass
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}") from error
    secret = file.read_bytes()
    if len(secret) < 32:
        raise ConfigError(f"{file} is damaged. Delete it. All users must then sign in again.")
    return secret


def _bearer(request: HTTPConnection) -> str | None:
    """Return the key of a request, or None. Other schemes that a proxy puts into this header are ignored."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else None


def _user_name(name: str) -> str:
    """Return the name of a new user, derived from the name at their provider. It is for display: only the
    account identifies the user."""
    plain = re.sub(r"[^\w.@-]+", "-", unicodedata.normalize("NFKC", name).lower()).strip("-.")
    return plain[:_LONGEST_NAME] or "user"


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


# ── how often passwords may be tried ──────────────────────────────────────────────────────────────


_COUNTED = 10_000  # maximum number of addresses and users whose wrong tries are counted


@dataclass(slots=True, frozen=True)
class TryRate:
    """A number of tries at the same time, and then a number a second."""

    burst: float
    rate: float


ONE = TryRate(5, 1 / 5)  # one address, or one user
GUESSERS = TryRate(20, 5)  # all addresses that have guessed wrong, together
NEWCOMERS = TryRate(100, 20)  # all other addresses together
LONGEST = 5.0  # maximum seconds that a try waits for its turn before it is rejected


class TooManyTries(Exception):
    def __init__(self, seconds: float) -> None:
        super().__init__(f"wait {seconds:.0f} seconds")
        self.seconds = seconds


class Guesses:
    """Rate limits for passwords: wrong tries use them up, right ones do not.

    A client that guesses wrong is slowed, and shares a limit with all others that do. So a user with another
    address, or with a browser that has signed in before, can sign in during an attack.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ones: dict[str, _Bucket] = {}  # least recently used first
        self._guessers = _Bucket(GUESSERS, clock())
        self._newcomers = _Bucket(NEWCOMERS, clock())

    def begin(self, address: str, known: str | None = None) -> Try:
        """Return a try that may be checked after `wait` seconds. Raises TooManyTries if that is too long.

        `known` is the user who has signed in with this browser before. They have a separate limit, whatever
        others guess from the same address. The limit belongs to the user, so that collecting browsers gains
        nothing.
        """
        now = self._clock()
        who = f"person {known}" if known is not None else counted_address(address)
        one = self._ones.pop(who, None)
        slowed = one is not None and one.level(now) < ONE.burst
        one = one if one is not None and slowed else _Bucket(ONE, now)
        self._ones[who] = one
        while len(self._ones) > _COUNTED:
            del self._ones[next(iter(self._ones))]
        if (wait := one.wait(now)) > 0:
            raise TooManyTries(wait)
        shared = [] if known is not None else [self._guessers if slowed else self._newcomers]
        wait = max((bucket.wait(now) for bucket in shared), default=0.0)
        if wait > LONGEST:
            raise TooManyTries(wait)
        buckets = [one, *shared]
        for bucket in buckets:
            bucket.take(now)
        return Try(wait, tuple(buckets))


class Try:
    """One permitted try."""

    def __init__(self, wait: float, buckets: tuple[_Bucket, ...]) -> None:
        self.wait = wait
        self._buckets = buckets

    def was_right(self) -> None:
        for bucket in self._buckets:
            bucket.give_back()


class _Bucket:
    """A token bucket. A level below zero is the number of tokens that are already promised."""

    def __init__(self, pace: TryRate, now: float) -> None:
        self._pace = pace
        self._level, self._at = pace.burst, now

    def level(self, now: float) -> float:
        grown = (now - self._at) * self._pace.rate
        self._level, self._at = min(self._pace.burst, self._level + max(0.0, grown)), now
        return self._level

    def wait(self, now: float) -> float:
        return max(0.0, (1 - self.level(now)) / self._pace.rate)

    def take(self, now: float) -> None:
        self._level = self.level(now) - 1

    def give_back(self) -> None:
        self._level = min(self._pace.burst, self._level + 1)
