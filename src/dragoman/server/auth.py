"""Tells who a request is from, by a signed cookie, a key, a password or a link; slows down guessing."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import math
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import Response

from dragoman.conversation.tree import LOCAL
from dragoman.errors import ConfigError
from dragoman.sentences import sentence
from dragoman.server.links import LinkOwner, Links
from dragoman.server.proxies import counted_address
from dragoman.store.store import Store
from dragoman.stored_keys import open_private

SIGN_IN_FIRST = sentence("sign_in.first")
_LIFETIME = 30 * 24 * 3600  # seconds a sign-in holds
_REMEMBERED = 365 * 24 * 3600  # seconds a browser is known as one that has signed in
_SLOWLY = 1.0  # seconds that a wrong password takes


class Auth:
    """Who may use the server. Sign-ins outlive the process: cookies are signed with a secret from a file."""

    def __init__(
        self,
        store: Store,
        secret: bytes,
        *,
        token: str | None = None,
        key: str | None = None,
        password: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`token` is that of the first link; `key` is for programs of whoever runs the server."""
        self.links = Links()
        self.token = self.links.add(LOCAL, token)
        self.key = key or secrets.token_urlsafe(24)
        self.needs_password = password is not None
        self._store = store
        self._secret = secret
        self._password = password
        self._clock = clock
        self._guesses = Guesses()
        self.cookie = f"dragoman_{hashlib.sha256(secret).hexdigest()[:8]}"  # two servers, two names

    async def person(self, request: HTTPConnection) -> str | None:
        """The name of the person, or None for a stranger."""
        if (key := _bearer(request)) is not None:
            return await self._person_with_key(key)
        return await self._person_in_cookie(request.cookies.get(self.cookie, ""))

    async def sign_in(self, password: str, request: HTTPConnection) -> str | None:
        """Who this password, key or link belongs to. A wrong one takes a second, and slows down who tries.

        A link is used up, as it is where it is opened.
        """
        address = request.client.host if request.client else ""
        try:
            known = await self._person_in_cookie(request.cookies.get(f"{self.cookie}_browser", ""), "browser")
            attempt = self._guesses.begin(address, known)
        except TooManyTries as error:
            wait = {"retry-after": str(math.ceil(error.seconds))}
            raise HTTPException(429, sentence("sign_in.too_often"), headers=wait) from error
        await asyncio.sleep(attempt.wait)
        person = await self.use_link(password) or await self._person_with_password(password)
        if person is None:
            await asyncio.sleep(_SLOWLY)
        else:
            attempt.was_right()
        return person

    async def add_link(self, person: str, lifetime: float) -> str:
        """The token of a new link, which is worth as much as the key they have now."""
        key = None if person == LOCAL else await self._store.key_of(person) or ""
        return self.links.add(person, key=key, lifetime=lifetime)

    async def use_link(self, token: str) -> str | None:
        """Whom it signs in, once."""
        return await self._person_of_link(self.links.use(token))

    async def _person_of_link(self, owner: LinkOwner | None) -> str | None:
        if owner is None or (owner.key is not None and owner.key != await self._store.key_of(owner.person)):
            return None
        return owner.person

    async def set_cookie(self, response: Response, person: str, request: HTTPConnection) -> None:
        """Two of them: who this is, and for a long time, that this browser has signed in as them before."""
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

    def _set(
        self, response: Response, name: str, value: str, *, path: str, seconds: int, secure: bool
    ) -> None:
        response.set_cookie(
            name, value, max_age=seconds, path=path, httponly=True, samesite="strict", secure=secure
        )

    def session(self, request: HTTPConnection) -> str | None:
        """The sign-in by which a request comes in, by the hash of its cookie. None for a key."""
        cookie = request.cookies.get(self.cookie, "")
        return key_hash(cookie) if cookie and _bearer(request) is None else None

    async def sign_out(self, response: Response, request: HTTPConnection) -> None:
        """The browser forgets the cookie, and no server of this store takes it again."""
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

    async def _person_in_cookie(self, cookie: str, purpose: str = "") -> str | None:
        body, _, signature = cookie.rpartition(".")
        try:
            person, *_, until = base64.urlsafe_b64decode(body).decode().split("\n")
            credential = await self._credential(person)
            if credential is None or not _same(signature, self._sign(body, credential, purpose)):
                return None
            if int(until) <= self._clock() or await self._store.is_session_ended(key_hash(cookie)):
                return None
            return person
        except ValueError:
            return None

    async def _credential(self, person: str) -> str | None:
        """The hash of what they signed in with: with another password or key the sign-in is void."""
        return key_hash(self._password or "") if person == LOCAL else await self._store.key_of(person)

    async def _signed(self, person: str, seconds: int, purpose: str = "") -> str:
        """Two sign-ins of a second are two: signing one out leaves the other."""
        text = f"{person}\n{secrets.token_urlsafe(9)}\n{int(self._clock()) + seconds}"
        body = base64.urlsafe_b64encode(text.encode()).decode()
        return f"{body}.{self._sign(body, await self._credential(person) or '', purpose)}"

    def _sign(self, body: str, credential: str, purpose: str) -> str:
        """A cookie of one purpose is none of another."""
        text = f"{body}.{credential}{purpose and '.'}{purpose}".encode("utf-8", "surrogateescape")
        return hmac.new(self._secret, text, hashlib.sha256).hexdigest()


def key_hash(key: str) -> str:
    """What is stored of a key. Keys are long and random, so that a plain hash is enough."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def load_secret(file: Path) -> bytes:
    """The secret in this file, made if there is none. Only its owner can read it."""
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
        raise ConfigError(f"{file} is damaged: delete it; everybody will have to sign in again")
    return secret


def _bearer(request: HTTPConnection) -> str | None:
    """The key that a request brings. None where it has none, whatever a proxy puts into the same header."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else None


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


# ── how often passwords may be tried ──────────────────────────────────────────────────────────────


_COUNTED = 10_000  # addresses and people of which wrong tries are remembered


@dataclass(slots=True, frozen=True)
class TryRate:
    """So many at once, then so many a second."""

    burst: float
    rate: float


ONE = TryRate(5, 1 / 5)  # one address, or one person
GUESSERS = TryRate(20, 5)  # all addresses that have guessed wrong, together
NEWCOMERS = TryRate(100, 20)  # all others together
LONGEST = 5.0  # seconds that a try waits for its turn; who would wait longer is sent away


class TooManyTries(Exception):
    def __init__(self, seconds: float) -> None:
        super().__init__(f"wait {seconds:.0f} seconds")
        self.seconds = seconds


class Guesses:
    """Wrong tries cost; right ones cost nothing.

    Who guesses wrong is slowed, and shares what is left with others who do. So a person who comes from
    another address, or with a browser that has signed in before, gets in while somebody guesses.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ones: dict[str, _Bucket] = {}  # the longest unused first
        self._guessers = _Bucket(GUESSERS, clock())
        self._newcomers = _Bucket(NEWCOMERS, clock())

    def begin(self, address: str, known: str | None = None) -> Try:
        """A try. It may be looked at after `wait` seconds; TooManyTries where that is too long.

        `known` is who has signed in with this browser before: they have a count of their own, whatever others
        guess at the same address. It is the person's and not the browser's: nobody can collect browsers.
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
    """One try that may be made."""

    def __init__(self, wait: float, buckets: tuple[_Bucket, ...]) -> None:
        self.wait = wait
        self._buckets = buckets

    def was_right(self) -> None:
        for bucket in self._buckets:
            bucket.give_back()


class _Bucket:
    """Tokens that come back with time. Below nought are those that are promised already."""

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
