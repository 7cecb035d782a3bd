"""What every turn works with: store, models, tools, plugins, rules. Made once, by the runtime."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from pydantic import JsonValue

from dragoman.conversation.tree import LOCAL
from dragoman.errors import ConfigError, NotFound
from dragoman.messages.questions import MODES, Mode, Rule
from dragoman.sentences import sentence
from dragoman.store.store import Store
from dragoman.tools.authorize import ReviewPolicy, wrong_with
from dragoman.tools.cage.policy import CAGE_OFF, CageSettings
from dragoman.tools.deferred import DEFAULT_BUDGET, ToolBudget
from dragoman.tools.toolbox import Toolbox, open_to
from dragoman.turn.agent import NOBODY_IN_PARTICULAR, Agent
from dragoman.turn.facts import TurnOptions
from dragoman.turn.plugin import Plugin
from dragoman.turn.send import TurnInputs
from dragoman.turn.settings import changed
from dragoman.turn.view import TurnView
from dragoman.wire.wire import Model
from dragoman.workspace.workspaces import Workspace, Workspaces

MakeDeps: TypeAlias = Callable[[TurnView], object | Awaitable[object]]

LaterDenials: TypeAlias = Callable[[Sequence[str]], Sequence[Rule]]
"""What settings deny by now that they did not deny when the runtime was built, for any of these agents."""


def no_later_denials(agents: Sequence[str]) -> Sequence[Rule]:
    return ()


@dataclass(slots=True, frozen=True)
class SharedPrompt:
    """A text of the settings that users use again and again; of all of them, or of these teams."""

    text: str
    teams: tuple[str, ...] = ()


@dataclass(slots=True, frozen=True, kw_only=True)
class Services:
    """Never changed by a turn."""

    store: Store
    model: Callable[[str | None], Model]  # by name; None means the one that is set
    small_model: str | None = None  # for titles and summaries
    toolbox: Toolbox = field(default_factory=Toolbox)
    plugins: Sequence[Plugin] = ()
    agents: Mapping[str, Agent] = field(default_factory=dict)  # of a turn: as they were when it began (T14)
    agents_now: Mapping[str, Agent] = field(default_factory=dict)
    hidden_agents: frozenset[str] = frozenset()  # for teams that the user is not in, whose services these are
    prompts: Mapping[str, SharedPrompt] = field(default_factory=dict)
    teams: Mapping[str, Collection[str]] = field(default_factory=dict)  # their members, by the settings
    rules: Sequence[Rule] = ()
    later_denials: LaterDenials = no_later_denials
    bounds: Sequence[Rule] = ()  # come last: no agent gets around them
    system: str = ""
    options: dict[str, JsonValue] = field(default_factory=dict)
    mode: Mode = "auto"
    on_reject: Literal["continue", "stop"] = "continue"
    review: ReviewPolicy = "never"  # which results a person sees first
    concurrency: int = 16  # calls of one turn that run at the same time
    tool_budget: ToolBudget = DEFAULT_BUDGET  # above which tools of sources are deferred
    always_tools: frozenset[str] = frozenset()  # of sources, that are offered all the same
    cage: CageSettings = CAGE_OFF  # that programs of tools run in
    workspaces: Workspaces = field(default_factory=Workspaces)
    deps: object = None  # what tools and plugins get where a send brings none
    make_deps: MakeDeps | None = None  # the same, made anew for each turn
    inputs: dict[str, TurnInputs] = field(default_factory=dict)  # by turn
    seen_tools: set[tuple[str, str]] = field(default_factory=set)  # foreign ones, by person and permission
    told_sources: set[tuple[str, str, str]] = field(default_factory=set)  # by conversation, name and fault
    native_models: set[str] = field(default_factory=set)  # that have made native calls, as far as known here
    clock: Callable[[], float]
    today: Callable[[], str]

    def workspace_of(self, options: TurnOptions) -> Workspace | None:
        """The one that a stored turn works in. NotFound where it is none of ours."""
        name = (options.settings or {}).get("workspace")
        return self.workspaces.again(name if isinstance(name, str) else None, options.workspace)

    def agent(self, name: str | None) -> Agent:
        """The agent of this name; without one, a plain one that adds nothing to the settings."""
        if name is None:
            return NOBODY_IN_PARTICULAR
        if name not in self.agents:
            names = ", ".join(each for each, agent in self.agents.items() if not agent.teams)  # of everybody
            raise NotFound("agent", name, sentence("hint.there_are", names=names) if names else "")
        return self.agents[name]

    async def seen_by(self, user: str) -> Services:
        """What this user sees and can use: what was given to no team, or to one of the user's. The only place
        where this is decided (V2). The admin sees everything. What comes for a team later is not in it: a
        skill, or an agent, that nobody was given when a turn began."""
        if user == LOCAL:
            return self
        given = self.teams_given()
        teams = {name for name in given if user in self.teams.get(name, ())}
        teams |= {name for name in given - teams if user in await self.store.members_of(name)}
        agents = {name: one for name, one in self.agents.items() if open_to(one.teams, teams)}
        return replace(
            self,
            agents=agents,
            hidden_agents=frozenset(self.agents.keys() - agents),
            prompts={name: one for name, one in self.prompts.items() if open_to(one.teams, teams)},
            toolbox=self.toolbox.seen_by(teams),
        )

    def settings_seen(self, settings: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
        """Those of a conversation, without an agent that the user cannot have: it answers others alone."""
        return changed(settings, {"agent": None}) if settings.get("agent") in self.hidden_agents else settings

    def teams_given(self) -> set[str]:
        """That something here is for."""
        agents, prompts = self.agents.values(), self.prompts.values()
        return self.toolbox.teams.union(*(one.teams for one in agents), *(one.teams for one in prompts))

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ConfigError(f"Unknown mode {self.mode!r}. Choose one of {', '.join(MODES)}.")
        if self.on_reject not in ("continue", "stop"):
            raise ConfigError(f"Unknown on_reject {self.on_reject!r}. Choose 'continue' or 'stop'.")
        if wrong := wrong_with(self.review):
            raise ConfigError(wrong)
        if self.concurrency < 1:
            raise ConfigError(f"'concurrency' must be at least 1, not {self.concurrency}.")
