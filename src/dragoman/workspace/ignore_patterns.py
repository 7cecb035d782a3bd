"""Compile lines of ignore files to regular expressions that are fast on every name, even if untrusted."""

from __future__ import annotations

import re

from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

_FOLDERS = "(?:/.+)?/"  # the translation of `/**/`
_ANYWHERE = "^(?:.+/)?"  # the start of a line that applies in every folder
_SIGN = r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[^\\\[\](){}|*+?.^$/]"  # a letter, or one of several
_STAR_BEFORE_STAR = re.compile(rf"\[\^/\]\*((?:{_SIGN})*?)(?=\[\^/\]\*)", re.DOTALL)


class IgnorePattern(GitIgnoreSpecPattern):
    """A line as git reads it, without slow matching: folders can be untrusted, and `re` blocks all
    threads."""

    @classmethod
    def pattern_to_regex(cls, pattern: str | bytes) -> tuple[str | bytes | None, bool | None]:  # type: ignore[override]
        regex, include = super().pattern_to_regex(pattern)
        return without_retries(regex) if isinstance(regex, str) else regex, include


def without_retries(regex: str) -> str:
    """Return the expression without backtracking: only the first match is tried.

    For text between two stars, or between two `**`, a later match is never better.
    """
    text = _STAR_BEFORE_STAR.sub(r"(?>[^/]*?\1)", regex)
    *groups, last = text.split(_FOLDERS)
    if not groups:
        return text
    first, *others = groups
    if first.startswith(_ANYWHERE):
        first = f"^(?>(?:[^/]+/)*?{first.removeprefix(_ANYWHERE)}(?=/))"
    return "".join((first, *(f"(?>/(?:[^/]+/)*?{one}(?=/))" for one in others), _FOLDERS, last))
