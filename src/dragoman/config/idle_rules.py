"""Rules that concern no tool: a misspelled denial is an error, everything else is told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from dragoman.errors import ConfigError
from dragoman.messages.questions import Rule
from dragoman.runtime import Runtime
from dragoman.tools.builtin import BUILTIN
from dragoman.tools.permissions import concerns, is_known_later


def check_denials(runtime: Runtime) -> None:
    """A denial that is misspelled holds nothing back: ConfigError. One of another folder's tool may be idle
    here, and is only told of."""
    known = _permissions(runtime)
    words = {word for one in known for word in (one, one.partition(".")[0])}
    agents = runtime.services.agents.values()
    for rule in (*runtime.services.rules, *(rule for agent in agents for rule in agent.rules)):
        if rule.action != "deny" or is_known_later(rule) or _is_about(rule, known):
            continue
        if near := get_close_matches(rule.permission.rstrip(".*"), words, n=1, cutoff=0.7):
            tail = rule.permission[len(rule.permission.rstrip(".*")) :]
            raise ConfigError(
                f"{rule.origin or 'settings'}: deny: no tool has the permission {rule.permission!r}, so it "
                f"would hold nothing back: did you mean {near[0] + tail!r}?"
            )


def near_permissions(runtime: Runtime, rule: Rule) -> str | None:
    """What may have been meant by a rule that concerns no tool; None where it concerns one, or may do so:
    what servers of other programs have is not known yet."""
    known = _permissions(runtime)
    if is_known_later(rule) or _is_about(rule, known):
        return None
    near = get_close_matches(rule.permission, known, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(sorted(known))}"


def _permissions(runtime: Runtime) -> set[str]:
    groups = [*runtime.services.toolbox.groups, *(make() for make in BUILTIN.values())]
    return {tool.permission for group in groups for tool in group.tools} | {"skills", "loop"}


def _is_about(rule: Rule, permissions: Iterable[str]) -> bool:
    return any(concerns(rule, one) for one in permissions)


def find_idle_rules(runtime: Runtime) -> Iterator[str]:
    """Rules and tools that were named and are not there: a word that is misspelled protects nobody.

    What servers of other programs have is not known yet, and is left out.
    """
    groups = [*runtime.services.toolbox.groups, *(make() for make in BUILTIN.values())]
    permissions = _permissions(runtime)
    tools = {f"{group.name}.{tool.name}" for group in groups for tool in group.tools}
    names = {group.name for group in groups} | tools
    agents = runtime.services.agents.values()
    for rule in dict.fromkeys([*runtime.services.rules, *(rule for agent in agents for rule in agent.rules)]):
        if not is_known_later(rule) and not _is_about(rule, permissions):
            yield f"no tool has the permission of the rule {str(rule)!r}: `dragoman tools` shows their words"
    servers = tuple(f"{source.name}." for source in runtime.services.toolbox.sources)
    for agent in agents:
        for name in agent.tools or ():
            if name not in names and not name.startswith(servers):
                yield f"agent {agent.name}: there is no group or tool {name!r}"
