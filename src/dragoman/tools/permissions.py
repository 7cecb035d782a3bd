"""Permission rules: how one is written, what it matches, and which of many has the last word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from posixpath import normpath
from urllib.parse import unquote

from dragoman.errors import ConfigError
from dragoman.messages.questions import Action, Rule
from dragoman.sentences import sentence
from dragoman.tools.protected import spellings

_FETCH = "web.fetch"  # its patterns are pages: the site, then the path


@dataclass(slots=True, frozen=True)
class Ruling:
    """`rule` is what decided; None where no rule matched, which means ask."""

    action: Action
    rule: Rule | None = None


def decide(permission: str, patterns: Sequence[str], rules: Sequence[Rule]) -> Ruling:
    """Whether a call that touches these patterns may run. Each must be allowed; one denied is enough for no.

    All are looked at for a denial before any leads to a question, so that nobody is asked in vain.
    """
    rulings = [_last_match(permission, pattern, rules) for pattern in patterns or ("*",)]
    for action in ("deny", "ask"):
        for ruling in rulings:
            if ruling.action == action:
                return ruling
    return rulings[-1]


def hidden(permission: str, rules: Sequence[Rule]) -> bool:
    """True where rules deny everything of a permission: the tool is then not even offered. A rule behind
    these that denies some of it, as the bounds do, gives nothing back."""
    for rule in reversed(rules):
        if matches(rule.permission, permission) and (rule.action != "deny" or rule.pattern == "*"):
            return rule.action == "deny"
    return False


def is_known_later(permission: str) -> bool:
    """Whether a pattern is about tools that come with a server, a message or an editor: none is there yet."""
    return permission.startswith(("mcp.", "client.", "mcp_server"))


def parse_rule(text: str, action: Action, origin: str = "") -> Rule:
    """`"shell:git *"` or `"shell"` or `"*"` → a rule. What stands before the colon is the permission."""
    given: object = text
    permission, _, pattern = given.partition(":") if isinstance(given, str) else ("", "", "")
    if not permission.strip():
        raise ConfigError(sentence("rule.malformed", text=text))
    return Rule(permission.strip(), pattern.strip() or "*", action, origin)


def rules_in_words(rules: Iterable[Rule]) -> str:
    """What "always" would mean, as a person reads it."""
    return "; ".join(
        f"{rule.action} {rule.permission} for everything"
        if rule.pattern == "*"
        else f"{rule.action} {rule.permission} for {rule.pattern!r}"
        for rule in rules
    )


def concerns(rule: Rule, permission: str) -> bool:
    """Whether a rule says anything about a permission."""
    return matches(rule.permission, permission)


def _last_match(permission: str, pattern: str, rules: Sequence[Rule]) -> Ruling:
    other = _other_spellings(permission, pattern)
    for rule in reversed(rules):
        if matches(rule.permission, permission) and (
            (matches(rule.pattern, pattern) and _is_of_its_site(rule, permission, pattern))
            or (other and rule.action != "allow" and _means(rule, pattern, other))
        ):
            return Ruling(rule.action, rule)
    return Ruling("ask")


def _other_spellings(permission: str, pattern: str) -> tuple[str, ...]:
    """Of a file, what some file system takes for the same name; of a page, what some site does: encoded
    signs, doubled slashes, other case."""
    if permission.startswith("files."):
        return spellings(pattern)
    if permission != _FETCH:
        return ()
    address = unquote(pattern)
    plain = spellings(normpath(address))[0]
    return (f"{plain}/" if address.endswith("/") else plain,)


def _is_of_its_site(rule: Rule, permission: str, page: str) -> bool:
    """What `*.example.org/*` allows is on such a site: the path of another may look like one."""
    site, slash, _ = rule.pattern.partition("/")
    return (
        rule.action != "allow" or permission != _FETCH or not slash or matches(site, page.partition("/")[0])
    )


def _means(rule: Rule, path: str, others: tuple[str, ...]) -> bool:
    """Whether a rule that does not match a path is about another spelling of it, or would be if its own were
    another."""
    own = spellings(rule.pattern)[0]
    if own == rule.pattern and others == (path,):
        return False
    return any(matches(own, text) for text in others)


def matches(pattern: str, text: str) -> bool:
    """`*` is any text, `?` one character."""
    if pattern.endswith(" *"):
        text += " "  # so that `git *` matches `git`, too
    return pattern == "*" or _compiled(pattern).fullmatch(text) is not None


@lru_cache(1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    """`*` is any text, `?` one character; `[*]` and `[?]` are the characters themselves."""
    other_brackets = r"\[(?![*?]\])"
    return re.compile(translate(re.sub(other_brackets, "[[]", pattern)))


def literal(text: str) -> str:
    """The pattern that matches this text and nothing else."""
    return re.sub(r"[*?]", r"[\g<0>]", text)
