"""Import a package when a test first uses it.

Every process that runs tests reads all their files, and few processes run those of one SDK.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Later:
    """Stands for the package."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # pytest looks whether it is a test, or a fixture
            raise AttributeError(name)
        return getattr(import_module(self._name), name)
