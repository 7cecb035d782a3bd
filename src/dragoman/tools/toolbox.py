"""All tools there are, in groups and from sources, and which of them a request offers under which names."""

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
    helps: bool = False  # of no use where no other group is on
    named: bool = False  # on only where a switch or an agent names it
    close: Callable[[], Awaitable[None]] | None = None  # ends what its tools keep open
    seen_by: Callable[[Collection[str]], Group] | None = None  # what members of these teams see of it

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
    """A source that takes its time to start."""

    async def started(self) -> None:
        """Waits until it is there, or has failed, if it is on its way. Bounded; raises nothing."""


@runtime_checkable
class Reopening(Protocol):
    """A source that stays closed until it is told otherwise."""

    def reopen(self) -> None:
        """The runtime that closed it is opened again."""


@runtime_checkable
class TeamSource(Protocol):
    """A source that can be given to teams, whole or in part. `teams` are those it was given to."""

    @property
    def teams(self) -> Collection[str]: ...

    def seen_by(self, teams: Collection[str]) -> Source | None:
        """What members of these teams see of it."""


def open_to(given: Collection[str], teams: Collection[str]) -> bool:
    """Whether a member of `teams` sees what was given to some. What was given to none is for everybody."""
    return not given or not set(given).isdisjoint(teams)


class Toolbox:
    """All tools there are. Groups given first keep their names; the order never changes by itself."""

    def __init__(self, groups: Iterable[Group] = (), sources: Iterable[Source] = ()) -> None:
        self._groups = tuple(groups)
        self.sources: tuple[Source, ...] = tuple(sources)
        self._check()

    def _check(self) -> None:
        names = [*(group.name for group in self._groups), *(source.name for source in self.sources)]
        if twice := _twice(names):
            raise ConfigError(sentence("group.twice", twice=twice))
        self.offer()  # names that cannot be told apart are found now, not in the middle of a turn

    def _names(self) -> set[str]:
        """By which switches and agents mean groups and tools."""
        names = {one for group in self.groups for tool in group.tools for one in _names_of(group, tool)}
        return names | {group.name for group in self.groups}

    def knows(self, name: str) -> bool:
        """Whether a group or tool has this name. What a server brings is known when it runs."""
        return name in self._names() or name.partition(".")[0] in {source.name for source in self.sources}

    def check_name(self, name: str) -> None:
        """BadRequest where no group or tool has this name, with the nearest."""
        if not self.knows(name):
            near = get_close_matches(name, self._names(), n=1)
            hint = sentence("hint.did_you_mean", near=near[0]) if near else sentence("agent.listed_tools")
            raise BadRequest(sentence("agent.unknown_tool", name=name, hint=hint))

    def check_switches(self, switches: Mapping[str, bool | None] | None) -> None:
        """The same for each that is set; None takes one away."""
        for name, on in switches.items() if isinstance(switches, Mapping) else ():
            if isinstance(on, bool):
                self.check_name(name)

    @property
    def teams(self) -> set[str]:
        """That something of it was given to."""
        return {team for one in self.sources if isinstance(one, TeamSource) for team in one.teams}

    def seen_by(self, teams: Collection[str]) -> Toolbox:
        """What members of these teams see of it now."""
        groups = (group if group.seen_by is None else group.seen_by(teams) for group in self._groups)
        seen = (one.seen_by(teams) if isinstance(one, TeamSource) else one for one in self.sources)
        return Toolbox((group for group in groups if group.tools), (one for one in seen if one is not None))

    def add(self, source: Source) -> None:
        """From the next request on. ConfigError where there is a group of its name."""
        before = self.sources
        self.sources = (*before, source)
        try:
            self._check()
        except ConfigError:
            self.sources = before
            raise

    def exchange(self, before: Group, after: Group) -> None:
        """From the next request on. One without tools is as good as none."""
        known = self._groups
        at = next((place for place, one in enumerate(known) if one is before), len(known))
        self._groups = (*known[:at], *([after] if after.tools else []), *known[at + 1 :])
        try:
            self._check()
        except ConfigError:
            self._groups = known
            raise

    async def remove(self, source: Source) -> None:
        """Calls to its tools that are under way fail as those to a server that went away do."""
        self.sources = tuple(one for one in self.sources if one is not source)
        await source.close()

    @property
    def groups(self) -> tuple[Group, ...]:
        """Those that are always there, then what the sources have now."""
        return (*self._groups, *(source.group() for source in self.sources))

    async def ready(self) -> None:
        if self.sources:
            await asyncio.gather(*(source.ready() for source in self.sources))

    async def started(self) -> None:
        """Wait for the sources that are on their way and can tell, longer than a request would."""
        waits = [source.started() for source in self.sources if isinstance(source, Starting)]
        await asyncio.gather(*waits)

    def lasting(self) -> dict[str, Group]:
        """What a turn keeps as it is until its end: the groups of sources that say so of themselves."""
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
        """What is on. `switches` says no to a group (`files`) or to one of its tools (`files.write_file`, or
        just `write_file`), and yes to one that is on only by its name; without switches that is on, too.
        `only` names those that are meant in the same way, if not all are; groups that are `kept` take the
        place of what their sources have by now."""
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
    sources: Mapping[str, str] = field(default_factory=dict)  # of tools that came from one: its name
    deferred: Mapping[str, Tool] = field(default_factory=dict)  # that a model finds, or calls by their names

    @property
    def rules(self) -> str:
        """For the system prompt."""
        return "\n\n".join(self.texts.values())

    def specs(self) -> tuple[ToolSpec, ...]:
        specs = (tool.spec(name) for name, tool in self.tools.items())
        return tuple(replace(spec, found=True) if spec.name in self.deferred else spec for spec in specs)

    def find(self, name: str) -> tuple[str, Tool] | None:
        """The tool a model means, by its exact name or a spelling of it; a deferred one by its exact name
        (L4)."""
        meant = repair_name(name, self.tools)
        if meant is not None:
            return meant, self.tools[meant]
        return (name, self.deferred[name]) if name in self.deferred else None


def _names_of(group: Group, tool: Tool) -> set[str]:
    """By which switches and agents mean a tool."""
    return {group.name, tool.name, f"{group.name}.{tool.name}"}


def _twice(names: Iterable[str]) -> str:
    return ", ".join(name for name, count in Counter(names).items() if count > 1)


def _with_group(group: str, tool: str) -> str:
    """A name that every provider takes."""
    return f"{re.sub(r'[^A-Za-z0-9_-]', '_', group)[: 63 - len(tool)]}_{tool}"[-64:]


def _numbered(name: str, taken: Container[str]) -> str:
    """For a tool of a source, which may bring any at any time: it must not end everybody's turns."""
    names = (f"{name[: 63 - len(str(number))]}_{number}" for number in count(2))
    return next(one for one in names if one not in taken)
