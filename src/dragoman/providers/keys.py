"""Finds the key of a provider: given by the caller, from the environment, or from the keyring."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Literal

from dragoman.providers.catalog import Provider

SERVICE = "dragoman"  # the name under which the keyring holds keys: `keyring set dragoman OPENAI_API_KEY`


@dataclass(slots=True, frozen=True)
class Key:
    """A key that was found. It is never printed; `name` says where the person keeps it."""

    value: str = field(repr=False)
    name: str
    source: Literal["given", "environment", "keyring"]


class Keys:
    """Looks for keys, each time anew: a key that is set later is found later.

    `given` holds keys by provider. The keyring is asked only if its package is there and nothing else has
    the key; a keyring that is locked or broken has none.
    """

    def __init__(
        self,
        given: Mapping[str, str] | None = None,
        *,
        environment: Mapping[str, str] = os.environ,
        use_keyring: bool = True,
    ) -> None:
        self._given = dict(given or {})
        self.environment = environment
        self._use_keyring = use_keyring

    def __repr__(self) -> str:
        return f"Keys(given for {', '.join(self._given) or 'nobody'})"

    def at_hand(self) -> Keys:
        """The same without the keyring, which may be slow, or locked and ask the person."""
        return Keys(self._given, environment=self.environment, use_keyring=False)

    def find(self, provider: Provider) -> Key | None:
        if given := self._given.get(provider.name):
            return Key(given, "the API key", "given")
        for name in provider.keys:
            if value := self.environment.get(name):
                return Key(value, name, "environment")
        for name in provider.keys if self._use_keyring else ():
            if value := _in_keyring(name):
                return Key(value, name, "keyring")
        return None


def _in_keyring(name: str) -> str | None:
    try:
        value: str | None = import_module("keyring").get_password(SERVICE, name)
    except Exception:  # not installed, locked, no desktop: each of its backends has errors of its own
        return None
    return value
