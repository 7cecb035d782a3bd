"""Checks the rules of settings: those that match no tool, and denials added since the start."""

from __future__ import annotations

import logging
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from dragoman.errors import ConfigError
from dragoman.messages.questions import Rule
from dragoman.runtime import Runtime
from dragoman.tools.authorize import concerns_tool
from dragoman.tools.builtin import BUILTIN
from dragoman.tools.cage.policy import PERMISSIONS
from dragoman.tools.deferred import FIND_PERMISSION
from dragoman.tools.permissions import concerns, is_known_later, parse_rule
from dragoman.tools.program import PERMISSION as PROGRAMS
from dragoman.tools.tool import Tool
from dragoman.tools.toolbox import Group


def check_misspelled(runtime: Runtime) -> None:
    """Raise ConfigError for misspelled denials and review patterns, which would have no effect.

    Rules for tools of other folders may have no effect here. They only cause a warning.
    """
    known = _permissions(runtime)
    for rule in _rules(runtime):
        if rule.action == "deny" and not is_known_later(rule.permission) and not _is_about(rule, known):
            said = f"{rule.origin or 'settings'}: deny: no tool has the permission"
            _refuse_if_near(said, rule.permission, known)
    names = known | {tool.name for tool in _tools(runtime)}
    for pattern in _idle_reviews(runtime):
        _refuse_if_near("settings: review: no tool has the name or permission", pattern, names)


def _refuse_if_near(said: str, pattern: str, known: Iterable[str]) -> None:
    words = {word for one in known for word in (one, one.partition(".")[0])}
    bare = pattern.rstrip(".*")
    if near := get_close_matches(bare, words, n=1, cutoff=0.7):
        meant = near[0] + pattern[len(bare) :]
        raise ConfigError(f"{said} {pattern!r}, so it would hold nothing back. Did you mean {meant!r}?")


def near_permissions(runtime: Runtime, rule: Rule) -> str | None:
    """Suggest corrections for a rule that matches no tool. None if it matches, or may match later.

    The tools of servers in other programs are not known yet.
    """
    known = _permissions(runtime)
    if is_known_later(rule.permission) or _is_about(rule, known):
        return None
    near = get_close_matches(rule.permission, known, n=3, cutoff=0.5)
    return f"Did you mean {' or '.join(near)}?" if near else f"Choose one of {', '.join(sorted(known))}."


def _rules(runtime: Runtime) -> list[Rule]:
    """Return the rules of the settings and of all agents."""
    agents = runtime.services.agents.values()
    return [*runtime.services.rules, *(rule for agent in agents for rule in agent.rules)]


def _groups(runtime: Runtime) -> list[Group]:
    """Return the active and the available groups."""
    return [*runtime.services.toolbox.groups, *(make() for make in BUILTIN.values())]


def _tools(runtime: Runtime) -> list[Tool]:
    return [tool for group in _groups(runtime) for tool in group.tools]


def _permissions(runtime: Runtime) -> set[str]:
    return {tool.permission for tool in _tools(runtime)} | {
        "skills",
        "loop",
        "format",
        PROGRAMS,
        FIND_PERMISSION,
        *PERMISSIONS,
    }


def _idle_reviews(runtime: Runtime) -> list[str]:
    """Return patterns of `review` that match no tool."""
    policy = runtime.services.review
    patterns = () if isinstance(policy, str) else policy
    offered = runtime.services.toolbox.offer().tools
    named = [
        *((tool, tool.name) for tool in _tools(runtime)),
        *((tool, name) for name, tool in offered.items()),
    ]
    idle = [one for one in patterns if not any(concerns_tool(one, tool, name) for tool, name in named)]
    return [pattern for pattern in idle if not is_known_later(pattern)]


def _is_about(rule: Rule, permissions: Iterable[str]) -> bool:
    return any(concerns(rule, one) for one in permissions)


def find_idle_rules(runtime: Runtime) -> Iterator[str]:
    """Yield rules and tools that match nothing: a misspelled name protects nothing.

    Names of tools on servers are left out, since they are not known yet.
    """
    groups = _groups(runtime)
    permissions = _permissions(runtime)
    tools = {f"{group.name}.{tool.name}" for group in groups for tool in group.tools}
    names = {group.name for group in groups} | tools
    for rule in dict.fromkeys(_rules(runtime)):
        if not is_known_later(rule.permission) and not _is_about(rule, permissions):
            yield f"no tool has the permission of the rule {str(rule)!r}: `dragoman tools` shows their words"
    for pattern in _idle_reviews(runtime):
        yield f"review: no tool has the name or permission {pattern!r}: `dragoman tools` shows their words"
    servers = tuple(f"{source.name}." for source in runtime.services.toolbox.sources)
    for agent in runtime.services.agents.values():
        for name in agent.tools or ():
            if name not in names and not name.startswith(servers):
                yield f"agent {agent.name}: unknown group or tool {name!r}"


# ── denials that are added while turns run ────────────────────────────────────────────────────────


_log = logging.getLogger("dragoman.config")


class LaterDenials:
    """Denials added to these files since the start (P13). All other changes wait for the next start.

    While a file is unreadable, its last denials stay in force.
    """

    def __init__(self, files: Sequence[Path]) -> None:
        self._seen = {file: _state(file) for file in files}
        self._first = {file: _denials(file, ()) for file in files}
        self._now = dict(self._first)

    def __call__(self, agents: Sequence[str]) -> list[Rule]:
        """Return the denials for all agents, and for these."""
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
    """Return the denials, each with its agent. "" means all agents."""
    try:
        tables: dict[str, Any] = tomllib.loads(file.read_bytes().decode("utf-8-sig"))
        agents = tables.get("agents", {}).items()
        named = [("", tables.get("deny", [])), *((name, one.get("deny", [])) for name, one in agents)]
        return [(name, parse_rule(text, "deny", str(file))) for name, texts in named for text in texts]
    except (OSError, ValueError, AttributeError, TypeError, ConfigError) as error:
        _log.warning("cannot read %s now, so its last denials apply (%s)", file, error)
        return before
