"""Finds the key of a provider: given by the caller, from the environment, or where keys are stored."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from dragoman.providers.catalog import Provider
from dragoman.stored_keys import SERVICE, in_file, in_keyring

__all__ = ["SERVICE", "Key", "KeySource", "Keys"]

KeySource: TypeAlias = Literal["given", "environment", "keyring", "file"]


@dataclass(slots=True, frozen=True)
class Key:
    """A key that was found. It is never printed; `name` says where the person keeps it."""

    value: str = field(repr=False)
    name: str
    source: KeySource


class Keys:
    """Looks for keys, each time anew: a key that is set later is found later.

    `given` holds keys by provider. The keyring is asked only if its package is there and nothing else has
    the key; a keyring that is locked or broken has none. The file that holds keys where there is no keyring
    comes last.
    """

    def __init__(
        self,
        given: Mapping[str, str] | None = None,
        *,
        environment: Mapping[str, str] = os.environ,
        use_keyring: bool = True,
        use_file: bool | None = None,
    ) -> None:
        """Without a keyring there is no file either, unless it is asked for."""
        self._given = dict(given or {})
        self.environment = environment
        self._use_keyring = use_keyring
        self._use_file = use_keyring if use_file is None else use_file

    def __repr__(self) -> str:
        return f"Keys(given for {', '.join(self._given) or 'nobody'})"

    def at_hand(self) -> Keys:
        """The same without the keyring, which may be slow, or locked and ask the person."""
        return Keys(self._given, environment=self.environment, use_keyring=False, use_file=self._use_file)

    def find(self, provider: Provider) -> Key | None:
        if given := self._given.get(provider.name):
            return Key(given, "the API key", "given")
        for name in provider.keys:
            if value := self.environment.get(name):
                return Key(value, name, "environment")
        for name in provider.keys if self._use_keyring else ():
            if value := in_keyring(name):
                return Key(value, name, "keyring")
        for name in provider.keys if self._use_file else ():
            if value := in_file(name):
                return Key(value, name, "file")
        return None
