"""Provide the settings of the start, the file in which the web UI changes them, and confirmations."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import JsonValue
from pydantic_core import to_json

from dragoman.config.build import servers_of, store_of
from dragoman.config.edits import parse_text, read_text, with_key, with_table, without_table, write_text
from dragoman.config.settings import Settings, user_file, user_folder
from dragoman.config.sources import catalog_from
from dragoman.config.trust.contents import hash_of
from dragoman.errors import ConfigError, NotFound
from dragoman.providers.catalog import Catalog
from dragoman.sentences import sentence
from dragoman.server.setup.mcp_sign_in import ServerLogins
from dragoman.server.setup.setup_models import Download
from dragoman.store.address import StoreFile
from dragoman.tools.builtin import BUILTIN
from dragoman.tools.mcp.servers import McpServer, parse_server

LIFETIME = 300.0  # seconds between showing and confirming
_MOST = 100


class Confirmations:
    """One-time tokens for exact values: only what the admin has seen is run."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._shown: dict[str, tuple[bytes, float]] = {}

    def issue(self, value: JsonValue) -> str:
        token = secrets.token_urlsafe(24)
        while len(self._shown) >= _MOST:
            self._shown.pop(next(iter(self._shown)))  # the oldest
        self._shown[token] = (_written(value), self._clock() + LIFETIME)
        return token

    def use(self, token: str, value: JsonValue) -> bool:
        """Return whether the token is valid for this value and unused. A wrong use also uses it up."""
        shown, until = self._shown.pop(token, (b"", 0.0))
        return shown == _written(value) and self._clock() < until


def _written(value: JsonValue) -> bytes:
    """Return a hash of the value, which can contain a secret."""
    return sha256(to_json(value)).digest()


_TAKEN = (*BUILTIN, "tools", "agents", "skills", "output")  # group names that no server can have


@dataclass(slots=True, frozen=True)
class OwnSettings:
    """The settings of the start, and the file that the web UI writes: the admin's file, or the one named at
    the start. A folder's file is never written (P11)."""

    settings: Settings
    confirmations: Confirmations = field(default_factory=Confirmations)
    logins: ServerLogins = field(default_factory=ServerLogins)
    downloads: dict[str, Download] = field(default_factory=dict)  # downloads of this process, by name
    download_tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict, repr=False)
    changing_agents: asyncio.Lock = field(default_factory=asyncio.Lock)
    changing_skills: asyncio.Lock = field(default_factory=asyncio.Lock)
    _writing: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def file(self) -> Path:
        return self.settings.sources.named or user_file()

    @property
    def skills(self) -> Path:
        """The folder for skills from the web UI. It is never in a working folder."""
        return user_folder() / "skills"

    @property
    def is_shared(self) -> bool:
        """Whether other servers use the same store. They apply a change only after a restart."""
        return not isinstance(store_of(self.settings), StoreFile)

    def tables(self, section: str) -> dict[str, Any]:
        """Return the current tables of the file."""
        found = parse_text(read_text(self.file), self.file).get(section, {})
        return found if isinstance(found, dict) else {}

    def add(self, section: str, name: str, table: Mapping[str, Any]) -> None:
        with self._writing:
            self._write(with_table(read_text(self.file), section, name, table, self.file))

    def put(self, section: str, name: str, table: Mapping[str, Any]) -> None:
        """Write a table, and replace an existing one of this name."""
        with self._writing:
            text = read_text(self.file)
            if name in self.tables(section):
                text = without_table(text, section, name, self.file)
            self._write(with_table(text, section, name, table, self.file))

    def has(self, section: str, name: str) -> bool:
        """Return whether this name comes from the file and no other file overrides it."""
        found = self.settings.origins.get(f"{section}.{name}")
        return name in self.tables(section) and (found is None or found.startswith(f"{self.file}:"))

    def may_set_key(self, section: str, name: str, key: str, value: Any) -> bool:
        """Return whether the form of the file allows this change."""
        try:
            with_key(read_text(self.file), section, name, (key, value), self.file)
        except ConfigError:
            return False
        return True

    def set_key(self, section: str, name: str, key: str, value: Any) -> None:
        """Set a key of a table in the file."""
        with self._writing:
            self._write(with_key(read_text(self.file), section, name, (key, value), self.file))

    def remove(self, section: str, name: str) -> None:
        """Remove a table from the file. Raises NotFound if it is in another file, which the admin must edit,
        or missing."""
        with self._writing:
            if name not in self.tables(section):
                raise NotFound(section, name, sentence("hint.not_in_file", file=self.file.name))
            self._write(without_table(read_text(self.file), section, name, self.file))

    def catalog(self) -> Catalog:
        """Return the catalog of the current files. Raises ConfigError if they are invalid."""
        files = self.settings.files
        if self.file not in files and self.file.exists():
            files = (self.file, *files)
        return catalog_from([one for one in files if one.exists()], self.settings.sources.check)

    def servers(self) -> dict[str, McpServer]:
        """Return the servers of the start and of the current file."""
        found = servers_of(self.settings)
        gone = {name for name in found if self._was_here(name)} - {*self.tables("mcp")}
        added = {name: parse_server(table, f"mcp.{name}", name) for name, table in self.tables("mcp").items()}
        return {name: server for name, server in {**added, **found}.items() if name not in gone}

    def origin(self, path: str) -> str | None:
        """Return the file and line that set `mcp.files`, `agents.coder` or the like, in short form. None if
        unknown."""
        section, _, name = path.partition(".")
        found = self.settings.origins.get(path)
        if found is None and name in self.tables(section):
            found = str(self.file)
        return None if found is None else self.short(found)

    @staticmethod
    def short(path: Path | str) -> str:
        return re.sub(rf"^{re.escape(str(Path.home()))}(?=/)", "~", str(path))

    def check_server(self, name: str, table: Mapping[str, Any]) -> McpServer:
        """Return the server that a table describes. Raises ConfigError if it is invalid or its name is
        taken."""
        server = parse_server(dict(table), f"mcp.{name}", name)
        if name in _TAKEN:
            raise ConfigError(sentence("server.group_name", name=name))
        if name in self.servers():
            raise ConfigError(sentence("server.taken", name=name))
        return server

    def _was_here(self, name: str) -> bool:
        return self.settings.origins.get(f"mcp.{name}", "").startswith(f"{self.file}:")

    def _write(self, text: str) -> None:
        """Write the file. Its content counts as reviewed, because the admin has just confirmed it."""
        write_text(self.file, text)
        self.settings.sources.accepted[os.path.realpath(self.file)] = hash_of(text.encode())
