"""The one decision about a call: denials first, from wherever they come (P9)."""

from __future__ import annotations

import itertools

import pytest

from dragoman import Rule, tool
from dragoman.tools.authorize import Authority, Refuse, Run, authorize


@tool(pattern="path")
def look(path: str) -> str:
    """Look at a file."""
    return path


ALLOW, ALLOW_ALL, DENY = Rule("look", "a", "allow"), Rule("look", "*", "allow"), Rule("look", "a", "deny")


@pytest.mark.parametrize("grants", list(itertools.permutations([ALLOW, ALLOW_ALL, DENY])))
def test_a_denial_that_was_given_holds_whatever_was_allowed_after_it(grants: tuple[Rule, ...]) -> None:
    """P9: the grants of a conversation come behind those that hold everywhere, whichever was given first."""
    assert isinstance(authorize(look, ("a",), Authority(grants=grants)), Refuse)
    assert isinstance(authorize(look, ("b",), Authority(grants=grants)), Run)
