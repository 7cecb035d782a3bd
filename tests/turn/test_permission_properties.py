"""No sequence of answers lets a call run that a rule denies, or that nobody allowed (P1, P9)."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman import Plugin, Runtime, ScriptedModel, TurnView, tool
from dragoman.errors import AlreadyAnswered, BadRequest
from dragoman.messages.questions import Action, Answer, Cause, Grant, Mode, Question, Rule, Scope
from dragoman.tools.authorize import Ask, Authority, Reason, Refuse, Run, authorize
from dragoman.tools.permissions import decide
from dragoman.turn.plugin import PlannedCall
from dragoman.wire.scripted import calls, says
from tests.patience import PATIENCE
from tests.runtimes import with_tables
from tests.sweeps import examples

PLACES = ["a", "b", "c/x", "c/y", "secrets/k"]
patterns = st.sampled_from([*PLACES, "*", "c/*", "secrets/*", "?"])
words = st.sampled_from(["go", "*", "other", "g*"])
actions: st.SearchStrategy[Action] = st.sampled_from(get_args(Action))
rules = st.lists(st.builds(Rule, words, patterns, actions), max_size=4)
granted: st.SearchStrategy[Action] = st.sampled_from(["allow", "deny"])  # nobody grants that they are asked
given_rules = st.lists(st.builds(Rule, words, patterns, granted), max_size=4)
modes: st.SearchStrategy[Mode] = st.sampled_from(["auto", "ask", "manual"])
wishes = st.lists(st.sampled_from([Reason("plugin", "Really?"), Reason("loop", "Again?")]), max_size=2)


@tool(pattern="places")
def go(places: list[str]) -> str:
    """Go."""
    return "gone"


authorities = st.builds(
    Authority,
    rules=rules,
    bounds=rules,
    outer=st.lists(rules, max_size=2),
    grants=given_rules,
    mode=modes,
    pinned=st.sampled_from([None, "old", "new"]),
    wishes=wishes,
)
touched = st.lists(st.sampled_from(PLACES), min_size=1, max_size=3)


def denied(place: str, authority: Authority) -> bool:
    given = [rule for rule in authority.grants if rule.action == "deny"]  # whatever was allowed later
    layers = [authority.rules, authority.bounds, given, *authority.outer]
    return any(decide("go", (place,), layer).action == "deny" for layer in layers)


@given(touched, authorities, st.sampled_from([None, "new"]))
def test_what_any_layer_denies_is_refused(
    places: list[str], authority: Authority, fingerprint: str | None
) -> None:
    """P1, P9: and nothing else is."""
    verdict = authorize(replace(go, fingerprint=fingerprint), places, authority)
    loop = any(rule.permission == "loop" for rule in authority.rules)
    assert isinstance(verdict, Refuse) == any(denied(place, authority) for place in places) or loop


@given(touched, authorities, st.sampled_from([None, "new"]))
def test_what_runs_was_allowed_by_a_rule_or_a_person(
    places: list[str], authority: Authority, fingerprint: str | None
) -> None:
    """P1, P8, P9: each place by itself, in mode auto, with no plugin's wish and no new definition."""
    if not isinstance(authorize(replace(go, fingerprint=fingerprint), places, authority), Run):
        return
    everything = [*authority.rules, *authority.grants]
    assert all(decide("go", (place,), everything).action == "allow" for place in places)
    assert authority.mode == "auto"
    assert not authority.wishes
    assert fingerprint is None or authority.pinned in (None, fingerprint)
    assert all(
        decide("go", (place,), authority.bounds).rule is None or not denied(place, authority)
        for place in places
    )


@given(touched, authorities, rules, st.sampled_from([None, "new"]))
def test_a_grant_takes_away_only_the_rules_own_reason(
    places: list[str], authority: Authority, more: list[Rule], fingerprint: str | None
) -> None:
    """P9"""
    before = authorize(replace(go, fingerprint=fingerprint), places, authority)
    allowed = [replace(rule, action="allow") for rule in more]
    later = replace(authority, grants=[*authority.grants, *allowed])
    after = authorize(replace(go, fingerprint=fingerprint), places, later)
    granted: list[Rule] = [*authority.grants]
    if isinstance(before, Refuse):
        only_by_grant = not any(
            decide("go", (place,), layer).action == "deny"
            for place in places
            for layer in (authority.rules, authority.bounds, *authority.outer)
        )
        assert isinstance(after, Refuse) or (only_by_grant and granted)
    if isinstance(before, Ask):
        kept = [reason for reason in before.reasons if reason.cause != "rule"]
        left = (
            [reason for reason in after.reasons if reason.cause != "rule"] if isinstance(after, Ask) else []
        )
        assert left == kept


# ── the same through a runtime ────────────────────────────────────────────────────────────────────

scopes: st.SearchStrategy[Scope] = st.sampled_from(get_args(Scope))
answers = st.builds(
    Answer,
    st.sampled_from(["allow", "allow", "allow", "reject"]),
    scope=scopes,
    arguments=st.none() | st.builds(dict, places=touched),
)
steps = st.lists(st.tuples(st.integers(0, 5), answers, st.booleans()), max_size=8)


class Careful(Plugin):
    """Asks about b, wherever it stands."""

    async def before_tool(self, call: PlannedCall, turn: TurnView) -> None:
        if "b" in str(call.arguments["places"]):
            call.ask("To b? Really?")


async def answered(
    batch: list[list[str]], given_rules: list[Rule], mode: Mode, todo: list[tuple[int, Answer, bool]]
) -> tuple[list[list[str]], list[Question], list[Grant]]:
    """One turn whose calls are answered like that. → what ran, every question, what was granted"""
    ran: list[list[str]] = []

    @tool(pattern="places", name="go", permission="go")
    async def goes(places: list[str]) -> str:
        """Go."""
        ran.append(places)
        return "gone"

    with tempfile.TemporaryDirectory() as folder:
        script = [
            sum((calls("go", places=list(one)) for one in batch[1:]), calls("go", places=list(batch[0]))),
            says("x"),
        ]
        async with Runtime(
            with_tables(Path(folder) / "chat.db"),
            model=ScriptedModel(script),
            tools=[goes],
            rules=given_rules,
            mode=mode,
            plugins=[Careful()],
        ) as runtime:
            turn = await runtime.send("go")
            for place, answer, wider in todo:
                if not await asyncio.wait_for(turn.reached("waiting"), PATIENCE):
                    break
                open = turn.questions
                if not open:
                    break
                question = open[place % len(open)]
                chosen = question.wider if wider and answer.arguments is None else ()
                try:
                    await turn.answer(question, replace(answer, rules=chosen))
                except (BadRequest, AlreadyAnswered):
                    continue
            if not (await turn.snapshot()).state.ended:
                await turn.cancel()
            await asyncio.wait_for(turn.result(), PATIENCE)
            return ran, await runtime.store.questions_of(turn.id), await runtime.grants()


@pytest.mark.slow
@settings(max_examples=examples(25))
@given(st.lists(touched, min_size=1, max_size=4), rules, modes, steps)
def test_no_sequence_of_answers_runs_what_is_denied_or_what_nobody_allowed(
    batch: list[list[str]], given_rules: list[Rule], mode: Mode, todo: list[tuple[int, Answer, bool]]
) -> None:
    """P1, P6, P9"""
    ran, questions, grants = asyncio.run(answered(batch, given_rules, mode, todo))
    said_yes = [question for question in questions if question.answer and question.answer.verdict == "allow"]
    for places in ran:
        assert decide("go", places, given_rules).action != "deny"
        by_answer = any(
            places
            == ((question.answer.arguments if question.answer else None) or question.arguments)["places"]
            for question in said_yes
        )
        by_rule = mode == "auto" and decide("go", places, given_rules).action == "allow"
        assert by_answer or (by_rule and "b" not in str(places))
    causes: set[Cause] = {question.because for question in questions}
    assert causes <= {"rule", "mode", "plugin", "loop"}
    for question in questions:  # nobody said yes to it but somebody who was asked it
        if question.because in ("mode", "plugin") and question.answer is not None:
            assert question.answer.scope == "once"
    assert {grant.rule.permission for grant in grants} <= {"go", "loop"}
