"""Defines an agent: a named set of prompt, model, tools, permissions and limits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from pydantic import JsonValue

from dragoman.errors import ConfigError
from dragoman.messages.questions import Action, Mode, Rule
from dragoman.tools.deferred import ToolBudget
from dragoman.tools.permissions import parse_rule


@dataclass(slots=True, frozen=True, kw_only=True)
class Limits:
    """The limits of a turn. None means the limit from the settings."""

    max_rounds: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    max_seconds: float | None = None
    max_calls: int | None = None

    def __post_init__(self) -> None:
        rounds = self.max_rounds
        if rounds is not None and (type(rounds) is not int or rounds < 0):
            raise ConfigError(f"'max_rounds' must be a whole number of 0 or more, not {rounds!r}.")
        for name in ("max_tokens", "max_cost", "max_seconds", "max_calls"):
            value = getattr(self, name)
            whole = name in ("max_tokens", "max_calls")
            if value is not None and not _is_limit(value, whole=whole):
                kind = "whole number" if whole else "number"
                raise ConfigError(f"{name} is a {kind} above 0 or None, not {value!r}")

    def over(self, other: Limits) -> Limits:
        """Return these limits, with those of `other` for each that is None."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}
        return replace(other, **own)


def _is_limit(value: object, *, whole: bool) -> bool:
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        return False
    return value > 0 and math.isfinite(value)


NO_LIMITS = Limits()


@dataclass(slots=True, frozen=True, kw_only=True)
class Agent:
    """A named set of prompt, model, tools, permissions and limits.

    `tools` names groups (`files`) and tools (`files.read_file`). None means all of them. An agent's rules
    come after the runtime's, so they win. `allow`, `ask` and `deny` are rules in the runtime's format, such
    as "shell:git *". They become part of `rules`. `handoffs` are the agents it may hand a conversation over
    to. Only users in one of its `teams` see and use it. Without teams, every user does.
    """

    name: str = ""
    description: str = ""
    prompt: str = ""
    model: str | None = None
    mode: Mode | None = None
    options: Mapping[str, JsonValue] = field(default_factory=dict)
    tools: tuple[str, ...] | None = None
    allow: Sequence[str] = ()
    ask: Sequence[str] = ()
    deny: Sequence[str] = ()
    rules: tuple[Rule, ...] = ()
    limits: Limits = NO_LIMITS
    tool_budget: ToolBudget | None = None
    handoffs: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        listed: dict[str, object] = {
            "tools": self.tools or (),
            "handoffs": self.handoffs,
            "teams": self.teams,
        }
        for name, given in listed.items():
            if not isinstance(given, tuple | list) or not all(isinstance(one, str) for one in given):
                raise ConfigError(f"Agent {self.name!r}: {name} must be a tuple of names, not {given!r}.")
        if not isinstance(self.limits, Limits):
            raise ConfigError(
                f"Agent {self.name!r}: limits must be Limits(max_rounds=…), not {self.limits!r}."
            )
        if not isinstance(self.model, str | None):
            raise ConfigError(
                f"Agent {self.name!r}: its model must be a name, not {type(self.model).__name__}."
            )
        rules: Sequence[object] = self.rules
        if wrong := [rule for rule in rules if not isinstance(rule, Rule)]:
            raise ConfigError(f"Agent {self.name!r}: rules must be Rule(…) objects, not {wrong[0]!r}.")
        actions: tuple[Action, ...] = ("allow", "ask", "deny")
        for action in actions:
            texts = getattr(self, action)
            if isinstance(texts, str):
                raise ConfigError(f"Agent {self.name!r}: {action} must be a list of rules, not {texts!r}.")
            added = tuple(parse_rule(text, action, f"agent {self.name}") for text in texts)
            object.__setattr__(self, "rules", (*self.rules, *added))
            object.__setattr__(self, action, ())  # `replace` builds an agent from these fields.


NOBODY_IN_PARTICULAR = Agent()
