"""A request in, who it is from out: a cookie, a key, or the token that was printed at the start."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import os
import secrets
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import Response

from dragoman.conversation.tree import LOCAL
from dragoman.errors import ConfigError
from dragoman.store.store import Store

STRANGER = "sign in first: open the link that the server printed, or send a key"
_AT_ONCE = 5  # sign-ins from one address
_LASTS = 30 * 24 * 3600  # seconds a sign-in holds


class Auth:
    """Who may come in. Sign-ins outlive the process: they are signed with a secret that is kept in a file."""

    def __init__(
        self,
        store: Store,
        secret: bytes,
        *,
        token: str | None = None,
        password: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.token = token or secrets.token_urlsafe(24)
        self.needs_password = password is not None
        self._store = store
        self._secret = secret
        self._password = password
        self._clock = clock
        self._trying: Counter[str] = Counter()  # sign-ins under way, by address
        self.cookie = f"dragoman_{hashlib.sha256(secret).hexdigest()[:8]}"  # two servers, two names

    async def who(self, request: HTTPConnection) -> str | None:
        """The name of the person, or None for a stranger."""
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return await self._holder(key.strip())
        return await self._signed_in(request.cookies.get(self.cookie, ""))

    def launched(self, token: str) -> bool:
        """Whether this is the token of the link that was printed."""
        return _same(token, self.token)

    async def sign_in(self, password: str, address: str) -> str | None:
        """Who this password or key belongs to. A wrong one takes a second; so does whoever guesses many."""
        if self._trying[address] >= _AT_ONCE:
            raise HTTPException(429, "too many tries at once: wait a moment")
        self._trying[address] += 1
        try:
            if self._password is not None and _same(password, self._password):
                return LOCAL
            person = await self._holder(password)
            if person is None:
                await asyncio.sleep(1)
            return person
        finally:
            self._trying[address] -= 1
            self._trying += Counter()  # those at nought are forgotten

    async def welcome(self, response: Response, person: str, *, secure: bool) -> None:
        until = int(self._clock()) + _LASTS
        body = base64.urlsafe_b64encode(f"{person}\n{until}".encode()).decode()
        mark = self._mark(body, await self._right(person) or "")
        response.set_cookie(
            self.cookie,
            f"{body}.{mark}",
            max_age=_LASTS,
            httponly=True,
            samesite="strict",
            secure=secure,
        )

    def farewell(self, response: Response) -> None:
        response.delete_cookie(self.cookie, httponly=True, samesite="strict")

    async def _holder(self, key: str) -> str | None:
        if _same(key, self.token):
            return LOCAL
        return await self._store.person_with_key(key_hash(key))

    async def _signed_in(self, cookie: str) -> str | None:
        body, _, mark = cookie.rpartition(".")
        try:
            person, _, until = base64.urlsafe_b64decode(body).decode().rpartition("\n")
            right = await self._right(person)
            if right is None or not _same(mark, self._mark(body, right)):
                return None
            return person if int(until) > self._clock() else None
        except ValueError:
            return None

    async def _right(self, person: str) -> str | None:
        """What gave them the right to come in: another password or key, and the sign-in is void."""
        return key_hash(self._password or "") if person == LOCAL else await self._store.key_of(person)

    def _mark(self, body: str, right: str) -> str:
        said = f"{body}.{right}".encode("utf-8", "surrogateescape")
        return hmac.new(self._secret, said, hashlib.sha256).hexdigest()


def key_hash(key: str) -> str:
    """What is kept of a key. Keys are long and random, so that a plain hash is enough."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def kept_secret(file: Path) -> bytes:
    """The secret in this file, made if there is none. Only its owner can read it."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with open(file, "xb", opener=_private) as new:
            new.write(secrets.token_bytes(32))
    except FileExistsError:
        pass
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}") from error
    secret = file.read_bytes()
    if len(secret) < 32:
        raise ConfigError(f"{file} is damaged: delete it; everybody will have to sign in again")
    return secret


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))
