"""Replaces `${NAME}` in settings by what the environment or the keyring holds: no secrets in settings."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

from dragoman.errors import ConfigError
from dragoman.sentences import sentence
from dragoman.stored_keys import SERVICE as KEYS
from dragoman.stored_keys import Secrets, data_folder, keys

SERVICE = "dragoman-mcp"  # the name under which the keyring holds logins, by address

Find: TypeAlias = Callable[[str], str | None]

_REFERENCE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_SECRET = re.compile(r"key|token|secret|passw|credential|authorization|cookie", re.IGNORECASE)


def look_up(name: str) -> str | None:
    """From the environment, else from where secrets are stored."""
    return os.environ[name] if name in os.environ else keys().read(name)


def resolve_references(texts: Mapping[str, str], find: Find = look_up) -> dict[str, str]:
    """Each text with its references followed: `${NAME}`, `${env:NAME}`, or `${NAME:-otherwise}`."""

    def value(match: re.Match[str]) -> str:
        found = find(match[1])
        if found is None and match[2] is None:
            raise ConfigError(sentence("mcp.not_set", name=match[1], service=KEYS))
        return found if found is not None else match[2]

    return {name: _REFERENCE.sub(value, text) for name, text in texts.items()}


def secret_name(server: str, name: str) -> str:
    """What a secret of one server is stored as: `a` with `B_C` and `a_b` with `C` are not to share one."""
    mark = sha256(f"{server}\0{name}".encode()).hexdigest()[:6].upper()
    return re.sub(r"[^A-Z0-9]", "_", f"MCP_{server}_{name}_{mark}".upper())


def looks_secret(name: str, value: str) -> bool:
    """Whether a value stands here that should be referred to instead."""
    return bool(value) and _SECRET.search(name) is not None and _REFERENCE.search(value) is None


# What goes with a server that is taken out of the settings.


def forget_server(name: str, table: Mapping[str, Any], addresses: Collection[str | None]) -> None:
    """The secrets that were stored for it alone, and its login, unless a server that is left is at the same
    address. `table` is how its settings were written."""
    for kind in ("env", "headers"):
        for key, value in table.get(kind, {}).items():
            if value == f"${{{secret_name(name, key)}}}":
                keys().forget(secret_name(name, key))
    url = table.get("url")
    if url and table.get("auth") and url not in addresses:
        Secrets(SERVICE, logins_file()).forget(url)


def logins_file() -> Path:
    return data_folder() / "mcp-logins.json"
