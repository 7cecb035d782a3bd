"""Store keys and other secrets by name: in the system's keyring, otherwise in a file that only its owner can
read."""

from __future__ import annotations

import json
import os
import sys
import threading
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeAlias

from dragoman.errors import ConfigError
from dragoman.sentences import sentence

# These are the folders of the user's settings and data, as the operating system defines them.


def user_folder() -> Path:
    """Return the folder of the user's settings, as the operating system defines it."""
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming") / "dragoman"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "dragoman"
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "dragoman"


def data_folder() -> Path:
    """Return the folder of conversations, unless the settings name another place."""
    if sys.platform in ("win32", "darwin"):
        return user_folder()
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "dragoman"


SERVICE = "dragoman"  # the keyring's name for these keys: `keyring set dragoman OPENAI_API_KEY`

KeyPlace: TypeAlias = Literal["keyring", "file"]

_writing = threading.Lock()


def keys_file() -> Path:
    return data_folder() / "keys.json"


class Secrets:
    """Secrets by name, in the system's keyring under a service name, otherwise in a file."""

    def __init__(self, service: str, file: Path, *, use_keyring: bool = True) -> None:
        self._service = service
        self._file = file
        self._use_keyring = use_keyring

    def read(self, name: str) -> str | None:
        found = self.in_keyring(name)
        return found if found is not None else self.in_file(name)

    def in_keyring(self, name: str) -> str | None:
        """Return a secret of the keyring, or None. A locked, broken or missing keyring has none."""
        if not self._use_keyring:
            return None
        try:
            value: str | None = _keyring().get_password(self._service, name)
        except Exception:  # Each keyring backend raises different errors.
            return None
        return value

    def in_file(self, name: str) -> str | None:
        try:
            return self._read().get(name)
        except ConfigError:
            return None

    def store(self, name: str, value: str) -> KeyPlace:
        """Store a secret and return where. If the keyring accepts it, it is removed from the file."""
        if self._use_keyring and self._take_to_keyring(name, value):
            self._forget_in_file(name)
            return "keyring"
        with _writing:
            self._write({**self._read(), name: value})
        return "file"

    def forget(self, name: str) -> None:
        """Delete a secret from the keyring and the file, if it exists."""
        if self._use_keyring:
            with suppress(Exception):  # no such entry, or no keyring
                _keyring().delete_password(self._service, name)
        self._forget_in_file(name)

    def _take_to_keyring(self, name: str, value: str) -> bool:
        try:
            keyring = _keyring()
            keyring.set_password(self._service, name, value)
            # One keyring backend accepts everything and stores nothing.
            return bool(keyring.get_password(self._service, name) == value)
        except Exception:  # Backends raise different errors, as above.
            return False

    def _forget_in_file(self, name: str) -> None:
        with _writing:
            held = self._read()
            if name in held:
                self._write({other: value for other, value in held.items() if other != name})

    def _read(self) -> dict[str, str]:
        """Return the secrets in the file. Raises ConfigError if it is unreadable: overwriting it would lose
        them."""
        try:
            read = json.loads(self._file.read_text(encoding="utf-8") or "{}")
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise ConfigError(sentence("keys.unreadable", file=self._file, error=error)) from error
        if not isinstance(read, dict):
            raise ConfigError(sentence("keys.damaged", file=self._file))
        texts = (
            (name, json.dumps(value) if isinstance(value, dict) else value) for name, value in read.items()
        )
        return {name: text for name, text in texts if isinstance(text, str)}

    def _write(self, secrets: dict[str, str]) -> None:
        """Write a new file and rename it. Only its owner can read it, from its first byte on."""
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = self._file.with_suffix(f".{os.getpid()}.new")
        fresh.unlink(missing_ok=True)  # Other users could possibly read a leftover file.
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as out:
            json.dump(secrets, out, indent=1)
        fresh.replace(self._file)


def keys() -> Secrets:
    """Return the user's keys for providers and MCP servers."""
    return Secrets(SERVICE, keys_file())


def next_place() -> KeyPlace:
    """Return where a key would be stored, as far as that is known beforehand."""
    try:
        keyring = _keyring()
        return "keyring" if keyring.get_keyring().priority > 0 else "file"
    except Exception:
        return "file"


def _keyring() -> Any:
    """Import the keyring without its macOS backend on other systems: to detect the system, that starts a
    compiler and a linker."""
    if sys.platform != "darwin":
        sys.modules.setdefault("keyring.backends.macOS.api", None)  # type: ignore[arg-type]  # cannot be imported
    return import_module("keyring")


# This opens files that only the user who runs the program can read.


def open_private(path: str, flags: int) -> int:
    """Open a file that no other user can read, even while it is created. Use it as `open(…,
    opener=open_private)`."""
    return os.open(path, flags, 0o600)
