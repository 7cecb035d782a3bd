"""Collect all tools, in groups and from sources, and decide which a request offers and under which names."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import count
from typing import Protocol, runtime_checkable

from dragoman.errors import BadRequest, ConfigError
from dragoman.messages.questions import Rule
from dragoman.messages.request import ToolSpec
from dragoman.sentences import sentence
from dragoman.tools.permissions import hidden
from dragoman.tools.repair import repair_name
from dragoman.tools.tool import Tool


@dataclass(slots=True, frozen=True)
class Group:
    """Tools that belong together, with the rules of their use for the system prompt."""

    name: str
    tools: tuple[Tool, ...]
    rules: str = ""
    helps: bool = False  # useless if no other group is on
    named: bool = False  # on only if a switch or an agent names it
    close: Callable[[], Awaitable[None]] | None = None  # closes what its tools keep open
    seen_by: Callable[[Collection[str]], Group] | None = None  # the group as members of these teams see it

    def __post_init__(self) -> None:
        if twice := _twice(tool.name for tool in self.tools):
            raise ConfigError(f"Group {self.name!r} has two tools named {twice!r}. Rename one.")


@runtime_checkable
class Source(Protocol):
    """A source of tools that come and go, such as another program."""

    name: str

    def group(self) -> Group:
        """Return the tools that are known now."""

    async def ready(self) -> None:
        """Called before each request: check for changes. Be quick, and raise nothing."""

    async def close(self) -> None: ...


@runtime_checkable
class Starting(Protocol):
    """A source that is slow to start."""

    async def started(self) -> None:
        """Wait until a start in progress has succeeded or failed. Bounded. Raises nothing."""


@runtime_checkable
class Reopening(Protocol):
    """A source that stays closed until it is reopened."""

    def reopen(self) -> None:
        """Called when the runtime that closed it opens again."""


@runtime_checkable
class TeamSource(Protocol):
    """A source that can be shared with teams, whole or in part. `teams` are those it is shared with."""

    @property
    def teams(self) -> Collection[str]: ...

    def seen_by(self, teams: Collection[str]) -> Source | None:
        """Return the part of it that members of these teams see."""


def open_to(given: Collection[str], teams: Collection[str]) -> bool:
    """Return whether a member of `teams` sees what is shared with `given`.

    An empty `given` means everybody.
    """
    return not given or not set(given).isdisjoint(teams)


class Toolbox:
    """All available tools. Groups given first keep their names. The order never changes by itself."""

    def __init__(self, groups: Iterable[Group] = (), sources: Iterable[Source] = ()) -> None:
        self._groups = tuple(groups)
        self.sources: tuple[Source, ...] = tuple(sources)
        self._check()

    def _check(self) -> None:
        names = [*(group.name for group in self._groups), *(source.name for source in self.sources)]
        if twice := _twice(names):
            raise ConfigError(sentence("group.twice", twice=twice))
        self.offer()  # Find ambiguous names now, not in the middle of a turn.

    def _names(self) -> set[str]:
        """Return the names by which switches and agents refer to groups and tools."""
        names = {one for group in self.groups for tool in group.tools for one in _names_of(group, tool)}
        return names | {group.name for group in self.groups}

    def knows(self, name: str) -> bool:
        """Return whether a group or tool has this name. A server's tools are known only when it runs."""
        return name in self._names() or name.partition(".")[0] in {source.name for source in self.sources}

    def check_name(self, name: str) -> None:
        """Raise BadRequest, with the nearest name, if no group or tool has this name."""
        if not self.knows(name):
            near = get_close_matches(name, self._names(), n=1)
            hint = sentence("hint.did_you_mean", near=near[0]) if near else sentence("agent.listed_tools")
            raise BadRequest(sentence("agent.unknown_tool", name=name, hint=hint))

    def check_switches(self, switches: object, before: object = None) -> None:
        """Check the name of each switch. None removes one.

        Skip an unchanged switch: its tool can be gone, or belong to another user.
        """
        old = before if isinstance(before, Mapping) else {}
        for name, on in switches.items() if isinstance(switches, Mapping) else ():
            if isinstance(on, bool) and old.get(name) is not on:
                self.check_name(name)

    @property
    def teams(self) -> set[str]:
        """Return the teams with which any source is shared."""
        return {team for one in self.sources if isinstance(one, TeamSource) for team in one.teams}

    def seen_by(self, teams: Collection[str]) -> Toolbox:
        """Return the toolbox that members of these teams see now."""
        groups = (group if group.seen_by is None else group.seen_by(teams) for group in self._groups)
        seen = (one.seen_by(teams) if isinstance(one, TeamSource) else one for one in self.sources)
        return Toolbox((group for group in groups if group.tools), (one for one in seen if one is not None))

    def add(self, source: Source) -> None:
        """Add a source from the next request on. Raises ConfigError if a group has its name."""
        before = self.sources
        self.sources = (*before, source)
        try:
            self._check()
        except ConfigError:
            self.sources = before
            raise

    def exchange(self, before: Group, after: Group) -> None:
        """Replace a group from the next request on. A group without tools is only removed."""
        known = self._groups
        at = next((place for place, one in enumerate(known) if one is before), len(known))
        self._groups = (*known[:at], *([after] if after.tools else []), *known[at + 1 :])
        try:
            self._check()
        except ConfigError:
            self._groups = known
            raise

    async def remove(self, source: Source) -> None:
        """Remove a source. Its calls under way fail like those to a server that has ended."""
        self.sources = tuple(one for one in self.sources if one is not source)
        await source.close()

    @property
    def groups(self) -> tuple[Group, ...]:
        """Return the fixed groups, then what the sources have now."""
        return (*self._groups, *(source.group() for source in self.sources))

    async def ready(self) -> None:
        if self.sources:
            await asyncio.gather(*(source.ready() for source in self.sources))

    async def started(self) -> None:
        """Wait for the sources that are starting and can report it, longer than a request would."""
        waits = [source.started() for source in self.sources if isinstance(source, Starting)]
        await asyncio.gather(*waits)

    def lasting(self) -> dict[str, Group]:
        """Return the groups that a turn keeps until its end: those of sources that declare it."""
        return {one.name: one.group() for one in self.sources if getattr(one, "lasts_a_turn", False)}

    def open(self) -> None:
        for source in self.sources:
            if isinstance(source, Reopening):
                source.reopen()

    async def close(self) -> None:
        groups = (group.close() for group in self._groups if group.close is not None)
        await asyncio.gather(*groups, *(source.close() for source in self.sources))

    def offer(
        self,
        rules: Sequence[Rule] = (),
        switches: Mapping[str, bool] | None = None,
        only: Sequence[str] | None = None,
        kept: Mapping[str, Group] | None = None,
    ) -> Offer:
        """Return the tools that are on.

        `switches` turns off a group (`files`) or one of its tools (`files.write_file`, or just `write_file`).
        It turns on a group that is on only by name. Without switches, that group is on, too. `only` limits
        the offer to the names it lists. Groups that are `kept` replace what their sources have now.
        """
        off = {name for name, on in (switches or {}).items() if not on}
        on = {*(switches or {})} - off
        tools: dict[str, Tool] = {}
        sources: dict[str, str] = {}
        texts: dict[str, str] = {}
        any_but_helpers = False
        for place, known in enumerate(self.groups):
            group = (kept or {}).get(known.name, known)
            wanted = {*(only or ()), *(on if group.named else ())}
            chosen = [
                tool
                for tool in group.tools
                if not _names_of(group, tool) & off
                and (
                    _names_of(group, tool) & wanted
                    or (only is None and (switches is None or not group.named))
                )
                and not hidden(tool.permission, rules)
            ]
            for tool in chosen:
                name = tool.name if tool.name not in tools else _with_group(group.name, tool.name)
                if name in tools and place < len(self._groups):
                    raise ConfigError(f"Two tools have the name {name!r}. Rename one of them.")
                name = name if name not in tools else _numbered(name, tools)
                tools[name] = tool
                if place >= len(self._groups):
                    sources[name] = group.name
            any_but_helpers = any_but_helpers or (bool(chosen) and not group.helps)
            if chosen and group.rules:
                texts[group.name] = group.rules.strip()
        if not any_but_helpers:
            return Offer({})
        return Offer(tools, texts, sources)


@dataclass(slots=True, frozen=True)
class Offer:
    """The tools of one request by the names a model calls them."""

    tools: Mapping[str, Tool]
    texts: Mapping[str, str] = field(default_factory=dict)  # rules of their use, by group
    # the name of the source, for tools that came from one
    sources: Mapping[str, str] = field(default_factory=dict)
    deferred: Mapping[str, Tool] = field(default_factory=dict)  # that a model finds, or calls by their names

    @property
    def rules(self) -> str:
        """The rules of use for the system prompt."""
        return "\n\n".join(self.texts.values())

    def specs(self) -> tuple[ToolSpec, ...]:
        specs = (tool.spec(name) for name, tool in self.tools.items())
        return tuple(replace(spec, found=True) if spec.name in self.deferred else spec for spec in specs)

    def find(self, name: str) -> tuple[str, Tool] | None:
        """Return the tool a model means, by its exact name or a spelling of it. A deferred one only by its
        exact name (L4)."""
        meant = repair_name(name, self.tools)
        if meant is not None:
            return meant, self.tools[meant]
        return (name, self.deferred[name]) if name in self.deferred else None


def _names_of(group: Group, tool: Tool) -> set[str]:
    """Return the names by which switches and agents refer to a tool."""
    return {group.name, tool.name, f"{group.name}.{tool.name}"}


def _twice(names: Iterable[str]) -> str:
    return ", ".join(name for name, count in Counter(names).items() if count > 1)


def _with_group(group: str, tool: str) -> str:
    """Return a name that every provider accepts."""
    return f"{re.sub(r'[^A-Za-z0-9_-]', '_', group)[: 63 - len(tool)]}_{tool}"[-64:]


def _numbered(name: str, taken: Container[str]) -> str:
    """Return a free name for a tool of a source. A source can add any tool at any time, and must not end
    turns."""
    names = (f"{name[: 63 - len(str(number))]}_{number}" for number in count(2))
    return next(one for one in names if one not in taken)
