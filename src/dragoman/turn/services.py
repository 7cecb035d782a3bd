"""Holds what every turn uses: store, models, tools, plugins, rules. The runtime creates it once."""

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
"""Returns rules that settings deny now, for any of these agents, and did not when the runtime was built."""


def no_later_denials(agents: Sequence[str]) -> Sequence[Rule]:
    return ()


@dataclass(slots=True, frozen=True)
class SharedPrompt:
    """A reusable prompt from the settings, for all users or for these teams."""

    text: str
    teams: tuple[str, ...] = ()


@dataclass(slots=True, frozen=True, kw_only=True)
class Services:
    """The shared services. A turn never changes them."""

    store: Store
    model: Callable[[str | None], Model]  # By name. None means the configured model.
    small_model: str | None = None  # for titles and summaries
    toolbox: Toolbox = field(default_factory=Toolbox)
    plugins: Sequence[Plugin] = ()
    agents: Mapping[str, Agent] = field(default_factory=dict)  # as they were when the turn started (T14)
    agents_now: Mapping[str, Agent] = field(default_factory=dict)
    hidden_agents: frozenset[str] = frozenset()  # agents of teams that the user of these services is not in
    prompts: Mapping[str, SharedPrompt] = field(default_factory=dict)
    teams: Mapping[str, Collection[str]] = field(default_factory=dict)  # their members, from the settings
    rules: Sequence[Rule] = ()
    later_denials: LaterDenials = no_later_denials
    bounds: Sequence[Rule] = ()  # applied last, so that no agent can override them
    system: str = ""
    options: dict[str, JsonValue] = field(default_factory=dict)
    mode: Mode = "auto"
    on_reject: Literal["continue", "stop"] = "continue"
    review: ReviewPolicy = "never"  # which results a user sees first
    concurrency: int = 16  # Maximum number of parallel calls per turn.
    tool_budget: ToolBudget = DEFAULT_BUDGET  # The number of source tools above which they are deferred.
    always_tools: frozenset[str] = frozenset()  # source tools that are offered anyway
    cage: CageSettings = CAGE_OFF  # sandbox for programs of tools
    workspaces: Workspaces = field(default_factory=Workspaces)
    deps: object = None  # default dependencies of tools and plugins
    make_deps: MakeDeps | None = None  # creates the dependencies for each turn
    inputs: dict[str, TurnInputs] = field(default_factory=dict)  # by turn
    # tools of external sources, by user and permission
    seen_tools: set[tuple[str, str]] = field(default_factory=set)
    # reported faults, by conversation, name and fault
    told_sources: set[tuple[str, str, str]] = field(default_factory=set)
    native_models: set[str] = field(default_factory=set)  # models known here to make native calls
    clock: Callable[[], float]
    today: Callable[[], str]

    def workspace_of(self, options: TurnOptions) -> Workspace | None:
        """Return the workspace of a stored turn. Raise NotFound if this runtime does not have it."""
        name = (options.settings or {}).get("workspace")
        return self.workspaces.again(name if isinstance(name, str) else None, options.workspace)

    def agent(self, name: str | None) -> Agent:
        """Return the agent of this name. Without a name, a plain one that adds nothing to the settings."""
        if name is None:
            return NOBODY_IN_PARTICULAR
        if name not in self.agents:
            # without agents of teams
            names = ", ".join(each for each, agent in self.agents.items() if not agent.teams)
            raise NotFound("agent", name, sentence("hint.there_are", names=names) if names else "")
        return self.agents[name]

    async def seen_by(self, user: str) -> Services:
        """Return the services that this user can see and use: items without teams, and those of the user's
        teams.

        This is the only place that decides it (V2). The admin sees everything. A skill or an agent
        assigned to a team after the turn started is not included.
        """
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
        """Return a conversation's settings without an agent that the user cannot use."""
        return changed(settings, {"agent": None}) if settings.get("agent") in self.hidden_agents else settings

    def teams_given(self) -> set[str]:
        """Return the teams that any tool, agent or prompt is limited to."""
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
