"""Reads what settings files deny by now: a denial that is added while turns run binds their next decision."""

from __future__ import annotations

import logging
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dragoman.errors import ConfigError
from dragoman.messages.questions import Rule
from dragoman.tools.permissions import parse_rule

_log = logging.getLogger("dragoman.config")


class LaterDenials:
    """The denials of these files that were not in them at first (P13). Everything else in them waits for the
    next start. While a file cannot be read, what it denied last applies."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._seen = {file: _state(file) for file in files}
        self._first = {file: _denials(file, ()) for file in files}
        self._now = dict(self._first)

    def __call__(self, agents: Sequence[str]) -> list[Rule]:
        """For everybody, and for these agents."""
        for file, before in self._seen.items():
            if (state := _state(file)) != before:
                self._seen[file] = state
                self._now[file] = _denials(file, self._now[file])
        return [
            rule
            for file, denials in self._now.items()
            for agent, rule in denials
            if (agent, rule) not in self._first[file] and agent in ("", *agents)
        ]


def _state(file: Path) -> tuple[int, ...]:
    try:
        found = file.stat()
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_size, found.st_ino


def _denials(file: Path, before: Sequence[tuple[str, Rule]]) -> Sequence[tuple[str, Rule]]:
    """With the agent that each is for; "" is everybody."""
    try:
        tables: dict[str, Any] = tomllib.loads(file.read_bytes().decode("utf-8-sig"))
        agents = tables.get("agents", {}).items()
        named = [("", tables.get("deny", [])), *((name, one.get("deny", [])) for name, one in agents)]
        return [(name, parse_rule(text, "deny", str(file))) for name, texts in named for text in texts]
    except (OSError, ValueError, AttributeError, TypeError, ConfigError) as error:
        _log.warning("%s cannot be read now: its last denials apply (%s)", file, error)
        return before
