"""Replaces `${NAME}` in settings by what the environment or the keyring holds: no secrets in settings."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from importlib import import_module
from typing import TypeAlias

from dragoman.errors import ConfigError
from dragoman.sentences import sentence
from dragoman.stored_keys import SERVICE, in_file

Find: TypeAlias = Callable[[str], str | None]

_REFERENCE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_SECRET = re.compile(r"key|token|secret|passw|credential|authorization|cookie", re.IGNORECASE)


def look_up(name: str) -> str | None:
    """From the environment, else from where secrets are stored."""
    if name in os.environ:
        return os.environ[name]
    found = read_keyring(SERVICE, name)
    return found if found is not None else in_file(name)


def read_keyring(service: str, name: str) -> str | None:
    """What the system's keyring holds under this name, if there is a keyring."""
    try:
        value: str | None = import_module("keyring").get_password(service, name)
    except Exception:  # not installed, locked, no desktop: each of its backends has errors of its own
        return None
    return value


def resolve_references(texts: Mapping[str, str], find: Find = look_up) -> dict[str, str]:
    """Each text with its references followed: `${NAME}`, `${env:NAME}`, or `${NAME:-otherwise}`."""

    def value(match: re.Match[str]) -> str:
        found = find(match[1])
        if found is None and match[2] is None:
            raise ConfigError(sentence("mcp.not_set", name=match[1], service=SERVICE))
        return found if found is not None else match[2]

    return {name: _REFERENCE.sub(value, text) for name, text in texts.items()}


def secret_name(server: str, name: str) -> str:
    """What a secret of one server is stored as: `a` with `B_C` and `a_b` with `C` are not to share one."""
    mark = sha256(f"{server}\0{name}".encode()).hexdigest()[:6].upper()
    return re.sub(r"[^A-Z0-9]", "_", f"MCP_{server}_{name}_{mark}".upper())


def looks_secret(name: str, value: str) -> bool:
    """Whether a value stands here that should be referred to instead."""
    return bool(value) and _SECRET.search(name) is not None and _REFERENCE.search(value) is None
