"""Who a request is from: by a signed cookie, a key, or the token that is printed at the start."""

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

SIGN_IN_FIRST = "sign in first: open the link that the server printed, or send a key"
_ATTEMPTS = 5  # sign-ins under way from one address
_LIFETIME = 30 * 24 * 3600  # seconds a sign-in holds


class Auth:
    """Who may use the server. Sign-ins outlive the process: cookies are signed with a secret from a file."""

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
        self._attempts: Counter[str] = Counter()  # sign-ins under way, by address
        self.cookie = f"dragoman_{hashlib.sha256(secret).hexdigest()[:8]}"  # two servers, two names

    async def person(self, request: HTTPConnection) -> str | None:
        """The name of the person, or None for a stranger."""
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return await self._person_with_key(key.strip())
        return await self._person_in_cookie(request.cookies.get(self.cookie, ""))

    def is_launch_token(self, token: str) -> bool:
        """Whether this is the token of the link that was printed."""
        return _same(token, self.token)

    async def sign_in(self, password: str, address: str) -> str | None:
        """Who this password or key belongs to. A wrong one takes a second; so does whoever guesses many."""
        if self._attempts[address] >= _ATTEMPTS:
            raise HTTPException(429, "too many tries at once: wait a moment")
        self._attempts[address] += 1
        try:
            if self._password is not None and _same(password, self._password):
                return LOCAL
            person = await self._person_with_key(password)
            if person is None:
                await asyncio.sleep(1)
            return person
        finally:
            self._attempts[address] -= 1
            self._attempts += Counter()  # those at nought are forgotten

    async def set_cookie(self, response: Response, person: str, *, secure: bool) -> None:
        until = int(self._clock()) + _LIFETIME
        body = base64.urlsafe_b64encode(f"{person}\n{until}".encode()).decode()
        signature = self._sign(body, await self._credential(person) or "")
        response.set_cookie(
            self.cookie,
            f"{body}.{signature}",
            max_age=_LIFETIME,
            httponly=True,
            samesite="strict",
            secure=secure,
        )

    def clear_cookie(self, response: Response) -> None:
        response.delete_cookie(self.cookie, httponly=True, samesite="strict")

    async def _person_with_key(self, key: str) -> str | None:
        if _same(key, self.token):
            return LOCAL
        return await self._store.person_with_key(key_hash(key))

    async def _person_in_cookie(self, cookie: str) -> str | None:
        body, _, signature = cookie.rpartition(".")
        try:
            person, _, until = base64.urlsafe_b64decode(body).decode().rpartition("\n")
            credential = await self._credential(person)
            if credential is None or not _same(signature, self._sign(body, credential)):
                return None
            return person if int(until) > self._clock() else None
        except ValueError:
            return None

    async def _credential(self, person: str) -> str | None:
        """The hash of what they signed in with: with another password or key the sign-in is void."""
        return key_hash(self._password or "") if person == LOCAL else await self._store.key_of(person)

    def _sign(self, body: str, credential: str) -> str:
        text = f"{body}.{credential}".encode("utf-8", "surrogateescape")
        return hmac.new(self._secret, text, hashlib.sha256).hexdigest()


def key_hash(key: str) -> str:
    """What is stored of a key. Keys are long and random, so that a plain hash is enough."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def load_secret(file: Path) -> bytes:
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
