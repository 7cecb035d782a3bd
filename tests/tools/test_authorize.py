"""The one decision about a call: denials first, from wherever they come (P9)."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from dragoman import Rule, tool
from dragoman.messages.questions import (
    Answer,
    Kind,
    Question,
    allow_for_conversation,
    allow_once,
    reject,
    release,
    stop,
    withhold,
)
from dragoman.tools.approval import choices_for
from dragoman.tools.authorize import Ask, Authority, Refuse, Run, authorize, may_be_shown


@tool(pattern="path")
def look(path: str) -> str:
    """Look at a file."""
    return path


ALLOW, ALLOW_ALL, DENY = Rule("look", "a", "allow"), Rule("look", "*", "allow"), Rule("look", "a", "deny")


@pytest.mark.parametrize("grants", list(itertools.permutations([ALLOW, ALLOW_ALL, DENY])))
def test_a_denial_that_was_given_holds_whatever_was_allowed_after_it(grants: tuple[Rule, ...]) -> None:
    """The order of the grants does not matter: a denial overrides every grant (P9)."""
    assert isinstance(authorize(look, ("a",), Authority(grants=grants)), Refuse)
    assert isinstance(authorize(look, ("b",), Authority(grants=grants)), Run)


@pytest.mark.parametrize(
    ("fingerprint", "pinned", "asks"),
    [
        (None, None, False),
        (None, "old", False),
        ("new", None, False),
        ("new", "new", False),
        ("new", "old", True),
    ],
)
def test_a_tool_is_redefined_where_it_is_not_what_was_allowed(
    fingerprint: str | None, pinned: str | None, asks: bool
) -> None:
    """Only third-party tools have a fingerprint, and the first one seen is pinned (P9)."""
    verdict = authorize(
        replace(look, fingerprint=fingerprint), ("a",), Authority(rules=(ALLOW,), pinned=pinned)
    )
    causes = [reason.cause for reason in verdict.reasons] if isinstance(verdict, Ask) else []
    assert causes == (["redefined"] if asks else [])


@pytest.mark.parametrize("where", ["rules", "bounds", "outer", "grants"])
@pytest.mark.parametrize(
    ("rule", "shown"),
    [
        (Rule("look", "b", "deny"), True),
        (Rule("look", "a", "allow"), True),
        (Rule("look", "a", "ask"), False),
        (Rule("look", "a", "deny"), False),
    ],
)
def test_what_a_tool_finds_is_shown_unless_a_rule_covers_it(where: str, rule: Rule, shown: bool) -> None:
    """The call was allowed. A find that no rule names is part of it (P1)."""
    found: Any = {where: [[rule]] if where == "outer" else [rule]}
    if where == "grants" and rule.action == "ask":
        return  # nobody gives such a rule
    assert may_be_shown(look, "a", Authority(**found)) is shown


@pytest.mark.parametrize(
    ("kind", "answers"),
    [
        ("approve", {"once": allow_once(), "reject": reject(), "stop": stop()}),
        ("run", {"once": allow_once(), "reject": reject()}),
        ("interrupted", {"once": allow_once(), "reject": reject()}),
        ("loop", {"once": allow_once(), "conversation": allow_for_conversation(), "stop": stop()}),
        ("review", {"release": release(), "withhold": withhold()}),
        ("tool", {}),
    ],
)
def test_each_question_has_the_buttons_that_answer_it(kind: Kind, answers: dict[str, Answer]) -> None:
    """One that no rule would spare has none for always, and one that needs words has none."""
    question = Question("ask_1", "conv_1", "turn_1", "call_1", kind, "look", "May it?", {}, "hash")
    assert {id: choice.answer for id, choice in choices_for(question).items()} == answers
