"""No sequence of answers runs a call that a rule denies or that no rule or user allowed (P1, P9)."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
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
words = st.sampled_from(["go", "*", "other", "g*", "loop", "format"])
actions: st.SearchStrategy[Action] = st.sampled_from(get_args(Action))
rules = st.lists(st.builds(Rule, words, patterns, actions), max_size=4)
most_of_all_allowed = rules | rules.map(lambda some: [Rule("*", "*", "allow"), *some])
granted: st.SearchStrategy[Action] = st.sampled_from(["allow", "deny"])  # no grant has the action "ask"
given_rules = st.lists(st.builds(Rule, words, patterns, granted), max_size=4)
modes: st.SearchStrategy[Mode] = st.sampled_from(["auto", "ask", "manual"])
wishes = st.lists(st.sampled_from([Reason("plugin", "Really?"), Reason("loop", "Again?")]), max_size=2)


@tool(pattern="places")
def go(places: list[str]) -> str:
    """Go."""
    return "gone"


FORMAT = "hermes my/model"
many = settings(max_examples=500)  # a pure function; 30 examples found neither of two intentional holes
# Half of the authorities let the call run. Otherwise other reasons would decide nearly every call.
authorities = st.builds(
    Authority,
    rules=most_of_all_allowed,
    bounds=st.just([]) | rules,
    outer=st.just([]) | st.lists(most_of_all_allowed, max_size=2),
    grants=st.just([]) | given_rules,
    mode=st.just("auto") | modes,
    pinned=st.sampled_from([None, "old", "new"]),
    wishes=st.just([]) | wishes,
    format=st.sampled_from(["", FORMAT]),
)
touched = st.lists(st.sampled_from(PLACES), min_size=1, max_size=3)


def denied(place: str, authority: Authority) -> bool:
    given = [rule for rule in authority.grants if rule.action == "deny"]  # despite later allow rules
    layers = [authority.rules, authority.bounds, given, *authority.outer]
    return any(decide("go", (place,), layer).action == "deny" for layer in layers)


def named(permission: str, pattern: str, authority: Authority) -> Action:
    """Return what the rules on loops or formats decide. Rules on everything do not apply to these. The
    strictest layer counts, and a grant removes no denial."""

    def say(rules: Sequence[Rule]) -> Action:
        return decide(
            permission, (pattern,), [rule for rule in rules if rule.permission == permission]
        ).action

    layers = [authority.rules, *authority.outer]
    denials = [rule for rule in authority.grants if rule.action == "deny"]
    if any(say(layer) == "deny" for layer in (*layers, authority.bounds, denials)):
        return "deny"
    asked = any(say([*layer, *authority.grants]) == "ask" and say(layer) == "ask" for layer in layers)
    return "ask" if asked else "allow"


def loops(authority: Authority) -> bool:
    return any(wish.cause == "loop" for wish in authority.wishes)


@many
@given(touched, authorities, st.sampled_from([None, "new"]))
def test_what_any_layer_denies_is_refused(
    places: list[str], authority: Authority, fingerprint: str | None
) -> None:
    """P1, P9, D7: and nothing else is."""
    verdict = authorize(replace(go, fingerprint=fingerprint), places, authority)
    forbidden = any(denied(place, authority) for place in places)
    again = loops(authority) and named("loop", "go", authority) == "deny"
    text = authority.format != "" and named("format", authority.format, authority) == "deny"
    assert isinstance(verdict, Refuse) == (forbidden or again or text)


@many
@given(touched, authorities, st.sampled_from([None, "new"]))
def test_what_runs_was_allowed_by_a_rule_or_a_person(
    places: list[str], authority: Authority, fingerprint: str | None
) -> None:
    """P1, P8, P9, P13, D7: each place by itself, by every layer, and with no other reason to ask."""
    verdict = authorize(replace(go, fingerprint=fingerprint), places, authority)
    settled = all(
        decide("go", (place,), [*layer, *authority.grants]).action == "allow"
        if decide("go", (place,), layer).action == "ask"
        else decide("go", (place,), layer).action == "allow"
        for place in places
        for layer in (authority.rules, *authority.outer)
    )
    unbound = all(
        decide("go", (place,), authority.bounds).action == "allow"
        or decide("go", (place,), authority.bounds).rule is None
        for place in places
    )
    plain = all(
        wish.cause == "loop" and named("loop", "go", authority) == "allow" for wish in authority.wishes
    )
    known = authority.format == "" or named("format", authority.format, authority) == "allow"
    same = fingerprint is None or authority.pinned in (None, fingerprint)
    forbidden = any(denied(place, authority) for place in places)
    may_run = settled and unbound and plain and known and same and authority.mode == "auto" and not forbidden
    assert isinstance(verdict, Run) == may_run


@many
@given(touched, authorities, rules, st.sampled_from([None, "new"]))
def test_a_grant_takes_away_only_the_rules_own_reason(
    places: list[str], authority: Authority, more: list[Rule], fingerprint: str | None
) -> None:
    """P9: of loops and of formats, one that names them."""
    foreign = replace(go, fingerprint=fingerprint)
    before = authorize(foreign, places, authority)
    allowed = [replace(rule, action="allow") for rule in more]
    after = authorize(foreign, places, replace(authority, grants=[*authority.grants, *allowed]))
    named_too = {rule.permission for rule in allowed if rule.permission in ("loop", "format")}
    if isinstance(before, Refuse) and not named_too:
        assert isinstance(after, Refuse)  # in either order
    if isinstance(before, Ask) and not isinstance(after, Refuse):
        kept = [reason for reason in before.reasons if reason.cause not in ("rule", *named_too)]
        left = after.reasons if isinstance(after, Ask) else ()
        assert [reason for reason in left if reason.cause not in ("rule", *named_too)] == kept


# ── pairs ─────────────────────────────────────────────────────────────────────────────────────────


@many
@given(touched, authorities, given_rules, st.randoms(use_true_random=False))
def test_no_allow_beats_a_denial_of_a_person(
    places: list[str], authority: Authority, more: list[Rule], order: Random
) -> None:
    """A denial by a user wins in either order (deny × grant: P9, P13)."""
    grants = [*authority.grants, Rule("go", places[0], "deny"), *more, Rule("go", "*", "allow")]
    order.shuffle(grants)
    assert isinstance(authorize(go, places, replace(authority, grants=grants)), Refuse)


@many
@given(touched, authorities, st.sampled_from(["ask", "manual"]))
def test_in_a_mode_that_asks_nothing_runs_by_itself(
    places: list[str], authority: Authority, mode: Mode
) -> None:
    """mode × everything (P8)"""
    verdict = authorize(go, places, replace(authority, mode=mode))
    assert isinstance(verdict, Refuse) or Reason("mode") in verdict.reasons  # type: ignore[union-attr]


@many
@given(touched, authorities, rules)
def test_a_task_is_asked_about_what_its_giver_is_asked_about(
    places: list[str], authority: Authority, giver: list[Rule]
) -> None:
    """Rules of the task's agent cannot allow it, and a grant settles both (task × ask: P13)."""
    freely = replace(authority, rules=[Rule("*", "*", "allow")], outer=[giver], grants=[])
    asks = any(decide("go", (place,), giver).action == "ask" for place in places)
    verdict = authorize(go, places, freely)
    if asks and not isinstance(verdict, Refuse):
        assert isinstance(verdict, Ask)
        assert Reason("rule") in verdict.reasons
        given_to_it = replace(freely, grants=[Rule("go", "*", "allow")])
        settled = authorize(go, places, given_to_it)
        assert isinstance(settled, Run) or Reason("rule") not in settled.reasons  # type: ignore[union-attr]


@many
@given(
    st.sampled_from(
        [".git/config", "sub/.git/hooks/x", "dragoman.toml", ".VSCODE/tasks.json", "a/.mcp.json"]
    ),
    touched,
    authorities,
    st.sampled_from(["files.write", "files.delete", "files.move"]),
)
def test_nothing_writes_a_protected_file_unasked(
    protected: str, places: list[str], authority: Authority, permission: str
) -> None:
    """Edited arguments are checked like a new call, in the same place (edit × protected: P12)."""
    everything = [Rule("*", "*", "allow")]
    for rules, grants in ((everything, everything), (authority.rules, [*authority.grants, *everything])):
        free = replace(authority, rules=rules, grants=grants)
        verdict = authorize(replace(go, permission=permission), [*places, protected], free)
        assert isinstance(verdict, Refuse) or Reason("bounds") in verdict.reasons  # type: ignore[union-attr]


@many
@given(touched, authorities, given_rules)
def test_only_a_grant_that_names_the_format_reads_text_as_a_call(
    places: list[str], authority: Authority, grants: list[Rule]
) -> None:
    """grant × format (D7)"""
    others = [rule for rule in [*grants, Rule("*", "*", "allow")] if rule.permission != "format"]
    guessed = replace(authority, format=FORMAT, rules=[Rule("*", "*", "allow")], grants=others)
    verdict = authorize(go, places, guessed)
    assert isinstance(verdict, Refuse) or verdict.reasons[0].cause == "format"  # type: ignore[union-attr]
    read = authorize(go, places, replace(guessed, grants=[*others, Rule("format", FORMAT, "allow")]))
    assert isinstance(read, Run | Refuse) or "format" not in {reason.cause for reason in read.reasons}
    text = authorize(go, places, replace(guessed, grants=[*others, Rule("format", FORMAT, "deny")]))
    assert isinstance(text, Refuse)


@many
@given(touched, authorities, given_rules)
def test_only_a_grant_that_names_the_loop_lets_a_tool_repeat_itself(
    places: list[str], authority: Authority, grants: list[Rule]
) -> None:
    """grant × loop (C10)"""
    others = [rule for rule in [*grants, Rule("*", "*", "allow")] if rule.permission != "loop"]
    again = Reason("loop", "Again?")
    repeats = replace(authority, wishes=[again], rules=[Rule("*", "*", "allow")], grants=others)
    verdict = authorize(go, places, repeats)
    assert isinstance(verdict, Refuse) or again in verdict.reasons  # type: ignore[union-attr]
    lets = authorize(go, places, replace(repeats, grants=[*others, Rule("loop", "go", "allow")]))
    assert isinstance(lets, Run | Refuse) or again not in lets.reasons


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
    """Run one turn whose calls get these answers. Return the calls that ran, every question, and the
    grants."""
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
    for question in questions:  # a yes counts only from a user who received the question
        if question.because in ("mode", "plugin") and question.answer is not None:
            assert question.answer.scope == "once"
    assert {grant.rule.permission for grant in grants} <= {"go", "loop"}
