"""Replace `${NAME}` in settings with values from the environment or the keyring, to keep secrets out."""

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

SERVICE = "dragoman-mcp"  # the name under which the keyring stores logins, by address

Find: TypeAlias = Callable[[str], str | None]

_REFERENCE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_SECRET = re.compile(r"key|token|secret|passw|credential|authorization|cookie", re.IGNORECASE)


def look_up(name: str) -> str | None:
    """Return the value from the environment, otherwise from the secret store."""
    return os.environ[name] if name in os.environ else keys().read(name)


def resolve_references(texts: Mapping[str, str], find: Find = look_up) -> dict[str, str]:
    """Return each text with its references resolved: `${NAME}`, `${env:NAME}`, or `${NAME:-otherwise}`."""

    def value(match: re.Match[str]) -> str:
        found = find(match[1])
        if found is None and match[2] is None:
            raise ConfigError(sentence("mcp.not_set", name=match[1], service=KEYS))
        return found if found is not None else match[2]

    return {name: _REFERENCE.sub(value, text) for name, text in texts.items()}


def secret_name(server: str, name: str) -> str:
    """Return the name under which a server's secret is stored. `a` with `B_C` and `a_b` with `C` get
    different ones."""
    mark = sha256(f"{server}\0{name}".encode()).hexdigest()[:6].upper()
    return re.sub(r"[^A-Z0-9]", "_", f"MCP_{server}_{name}_{mark}".upper())


def looks_secret(name: str, value: str) -> bool:
    """Return whether a value looks like a secret that should be a reference instead."""
    return bool(value) and _SECRET.search(name) is not None and _REFERENCE.search(value) is None


# Remove what belongs to a server that is taken out of the settings.


def forget_server(name: str, table: Mapping[str, Any], addresses: Collection[str | None]) -> None:
    """Remove the secrets stored for this server, and its login, unless a remaining server has the same
    address.

    `table` is the server's settings as written.
    """
    for kind in ("env", "headers"):
        for key, value in table.get(kind, {}).items():
            if value == f"${{{secret_name(name, key)}}}":
                keys().forget(secret_name(name, key))
    url = table.get("url")
    if url and table.get("auth") and url not in addresses:
        Secrets(SERVICE, logins_file()).forget(url)


def logins_file() -> Path:
    return data_folder() / "mcp-logins.json"
