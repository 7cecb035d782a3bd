"""Stores keys and other secrets by name: in the system's keyring, else in a file only its owner can read."""

from __future__ import annotations

import json
import os
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeAlias

from dragoman.errors import ConfigError
from dragoman.sentences import sentence

# The folders of a person's own settings and data, as their system has them.


def user_folder() -> Path:
    """Where a person's own files are, as the system has it."""
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming") / "dragoman"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "dragoman"
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "dragoman"


def data_folder() -> Path:
    """Where conversations are stored, unless the settings name another place."""
    if sys.platform in ("win32", "darwin"):
        return user_folder()
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "dragoman"


SERVICE = "dragoman"  # the name under which the keyring holds them: `keyring set dragoman OPENAI_API_KEY`

KeyPlace: TypeAlias = Literal["keyring", "file"]

_writing = threading.Lock()


def keys_file() -> Path:
    return data_folder() / "keys.json"


def _keyring() -> Any:
    """Without its part for macOS where that is not: to learn this it starts a compiler and a linker."""
    if sys.platform != "darwin":
        sys.modules.setdefault("keyring.backends.macOS.api", None)  # type: ignore[arg-type]  # cannot be imported
    return import_module("keyring")


def in_keyring(name: str) -> str | None:
    """A keyring that is locked or broken, or not installed, has nothing."""
    try:
        value: str | None = _keyring().get_password(SERVICE, name)
    except Exception:  # each of its backends has errors of its own
        return None
    return value


def in_file(name: str) -> str | None:
    return _read().get(name)


def store_key(name: str, value: str) -> KeyPlace:
    """Where it is stored now. A keyring that takes it leaves nothing in the file."""
    try:
        keyring = _keyring()
        keyring.set_password(SERVICE, name, value)
        kept = keyring.get_password(SERVICE, name) == value  # one of them takes everything, and keeps nothing
    except Exception:  # as when it is read
        kept = False
    if not kept:
        with _writing:
            _write({**_read_to_change(), name: value})
        return "file"
    _forget_in_file(name)
    return "keyring"


def forget_key(name: str) -> None:
    """From both places. What is not there stays away."""
    try:
        _keyring().delete_password(SERVICE, name)
    except Exception:  # nothing there, or no keyring
        pass
    _forget_in_file(name)


def next_place() -> KeyPlace:
    """Where a key would be stored, as far as that can be said before."""
    try:
        keyring = _keyring()
        return "keyring" if keyring.get_keyring().priority > 0 else "file"
    except Exception:
        return "file"


def _forget_in_file(name: str) -> None:
    with _writing:
        held = _read_to_change()
        if name in held:
            _write({other: value for other, value in held.items() if other != name})


def _read() -> dict[str, str]:
    try:
        read = json.loads(keys_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return (
        {name: value for name, value in read.items() if isinstance(value, str)}
        if isinstance(read, dict)
        else {}
    )


def _read_to_change() -> dict[str, str]:
    """ConfigError where it cannot be read: what is written in its place would be all that is left."""
    file = keys_file()
    try:
        read = json.loads(file.read_text(encoding="utf-8") or "{}")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigError(sentence("keys.unreadable", file=file, error=error)) from error
    if not isinstance(read, dict):
        raise ConfigError(sentence("keys.damaged", file=file))
    return {name: value for name, value in read.items() if isinstance(value, str)}


def _write(keys: dict[str, str]) -> None:
    """Beside the file first, readable for nobody else from its first byte on."""
    file = keys_file()
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = file.with_suffix(f".{os.getpid()}.new")
    fresh.unlink(missing_ok=True)  # one that was left behind might be readable for others
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
        json.dump(keys, out, indent=1)
    fresh.replace(file)


# Opens files that only the user who runs the program can read.


def open_private(path: str, flags: int) -> int:
    """For `open(…, opener=open_private)`: nobody else can read the file, not even while it is made."""
    return os.open(path, flags, 0o600)
