"""Stores the tokens of logins at MCP servers: in the keyring, else in a file that only its owner can read."""

from __future__ import annotations

import json
import os
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken, ProtectedResourceMetadata
from pydantic import BaseModel, ValidationError

from dragoman.tools.mcp.references import read_keyring
from dragoman.tools.thread import in_thread

SERVICE = "dragoman-mcp"  # the name under which the keyring holds logins, by address
EARLY = 30  # seconds before a token's end in which it counts as over


class StoredLogin(BaseModel):
    """All that is known of one login. `expires` is a time, while a token only says how long it lasts."""

    tokens: OAuthToken | None = None
    expires: float | None = None
    client: OAuthClientInformationFull | None = None
    issuer: OAuthMetadata | None = None  # where a token is made new
    resource: ProtectedResourceMetadata | None = None


class TokenStore:
    """The login at one address. It is what the SDK calls a token storage.

    A keyring may wait until somebody unlocks it, so it is asked in a thread while a connection is made.
    """

    def __init__(self, url: str, file: Path | None = None, *, use_keyring: bool = True) -> None:
        self._url = url
        self._file = file or data_folder() / "mcp-logins.json"
        self._use_keyring = use_keyring
        self.where = ""  # for people, once something was saved

    def login(self) -> StoredLogin:
        """What is stored; an empty one where there is nothing, or nothing that can be read."""
        try:
            return StoredLogin.model_validate_json(self._read() or "{}")
        except ValidationError:
            return StoredLogin()

    def save(self, **known: Any) -> None:
        text = self.login().model_copy(update=known).model_dump_json(exclude_none=True)
        if self._use_keyring and _set_in_keyring(self._url, text):
            self.where = "the system's keyring"
            return
        _write(self._file, {**_read(self._file), self._url: json.loads(text)})
        self.where = f"{self._file}, which only you can read, as there is no keyring"

    def forget(self) -> None:
        if self._use_keyring:
            _set_in_keyring(self._url, "")
        others = {url: login for url, login in _read(self._file).items() if url != self._url}
        if self._file.exists():
            _write(self._file, others)

    async def get_tokens(self) -> OAuthToken | None:
        """Without the access token once that is over: then it is made new before it is refused."""
        login = await in_thread(self.login)
        if login.tokens is not None and login.expires is not None and time.time() > login.expires - EARLY:
            return login.tokens.model_copy(update={"access_token": ""})
        return login.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        lasts = tokens.expires_in
        expires = time.time() + lasts if lasts is not None else None
        await in_thread(lambda: self.save(tokens=tokens, expires=expires))

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return (await in_thread(self.login)).client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        await in_thread(lambda: self.save(client=client_info))

    def _read(self) -> str | None:
        found = read_keyring(SERVICE, self._url) if self._use_keyring else None
        if found:
            return found
        login = _read(self._file).get(self._url)
        return json.dumps(login) if login is not None else None


class NewTokens(TokenStore):
    """A login that is being made: in memory until `keep` stores it whole, so that one that comes to nothing
    takes nothing away. Who we are there is known already if the browser comes back to the same address."""

    def __init__(self, store: TokenStore, redirect: str) -> None:
        self._store = store
        client = store.login().client
        known = client is not None and redirect in map(str, client.redirect_uris or ())
        self._made = StoredLogin(client=client if known else None)

    def login(self) -> StoredLogin:
        return self._made

    def save(self, **known: Any) -> None:
        self._made = self._made.model_copy(update=known)

    def keep(self) -> None:
        self._store.save(**{name: getattr(self._made, name) for name in StoredLogin.model_fields})


def data_folder() -> Path:
    """Where programs keep what is the user's and not to be lost."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "dragoman"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "dragoman"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "dragoman"


def _set_in_keyring(name: str, value: str) -> bool:
    try:
        keyring = import_module("keyring")
        if value:
            keyring.set_password(SERVICE, name, value)
        else:
            keyring.delete_password(SERVICE, name)
    except Exception:  # as when it is read
        return False
    return True


def _read(file: Path) -> dict[str, Any]:
    try:
        read = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return read if isinstance(read, dict) else {}


def _write(file: Path, logins: dict[str, Any]) -> None:
    """Beside the file first, readable for nobody else from its first byte on."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = file.with_suffix(f".{os.getpid()}.new")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        json.dump(logins, out, indent=1)
    fresh.replace(file)
