"""Lines of ignore files as regular expressions that are quick on every name, whoever wrote them."""

from __future__ import annotations

import re

from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

_FOLDERS = "(?:/.+)?/"  # what `/**/` becomes
_ANYWHERE = "^(?:.+/)?"  # what a line begins with that holds in every folder
_SIGN = r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[^\\\[\](){}|*+?.^$/]"  # a letter, or one of several
_STAR_BEFORE_STAR = re.compile(rf"\[\^/\]\*((?:{_SIGN})*?)(?=\[\^/\]\*)", re.DOTALL)


class IgnorePattern(GitIgnoreSpecPattern):
    """As git reads the line. A folder may be anybody's, and `re` lets nobody else run while it tries."""

    @classmethod
    def pattern_to_regex(cls, pattern: str | bytes) -> tuple[str | bytes | None, bool | None]:  # type: ignore[override]
        regex, include = super().pattern_to_regex(pattern)
        return without_retries(regex) if isinstance(regex, str) else regex, include


def without_retries(regex: str) -> str:
    """The same, with the first place that fits as the only one that is tried: what stands between two stars,
    and between two `**`, fits nowhere better later on."""
    text = _STAR_BEFORE_STAR.sub(r"(?>[^/]*?\1)", regex)
    *groups, last = text.split(_FOLDERS)
    if not groups:
        return text
    first, *others = groups
    if first.startswith(_ANYWHERE):
        first = f"^(?>(?:[^/]+/)*?{first.removeprefix(_ANYWHERE)}(?=/))"
    return "".join((first, *(f"(?>/(?:[^/]+/)*?{one}(?=/))" for one in others), _FOLDERS, last))
