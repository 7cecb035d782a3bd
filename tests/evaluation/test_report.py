"""Q3: what a report states about answers, and how other programs read it."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from dragoman import ScriptedModel
from dragoman.errors import ConfigError
from dragoman.evaluation import Case, Expected, ExpectedCall, Report, Rubric, run
from dragoman.evaluation.case import CaseMessage
from dragoman.evaluation.expected import Answered, MadeCall, Met, MostUsed, compare_with, diverges
from dragoman.evaluation.report import CaseRun, ReportCase, Variant
from dragoman.messages.request import Request
from dragoman.wire.scripted import Line, says
from tests.loopback import loopback

ADD, MUL, DEL = (MadeCall(tool, {"a": 1, "b": 2}) for tool in ("add", "mul", "delete"))
ONE, TWO = Variant("one"), Variant("two")


def _wanted(*tools: str) -> tuple[ExpectedCall, ...]:
    return tuple(ExpectedCall(tool) for tool in tools)


@pytest.mark.parametrize(
    ("expected", "calls", "met"),
    [
        (Expected(exactly=_wanted("add", "mul")), (ADD, MUL), True),
        (Expected(exactly=_wanted("add", "mul")), (MUL, ADD), False),
        (Expected(any_order=_wanted("add", "mul")), (MUL, ADD), True),
        (Expected(any_order=_wanted("add")), (ADD, ADD), False),
        (Expected(any_order=()), (), True),
        (Expected(exactly=()), (ADD,), False),
        (Expected(at_least=_wanted("mul")), (ADD, MUL), True),
        (Expected(at_least=(ExpectedCall("add", {"a": 1}),)), (ADD,), True),
        (Expected(exactly=(ExpectedCall("add", {"a": 1}),)), (ADD,), False),
        (Expected(at_least=(ExpectedCall("add"), ExpectedCall("add", {"b": 2}))), (ADD,), False),
        (Expected(at_least=(ExpectedCall("add", {"a": 2}),)), (ADD,), False),
        (
            Expected(at_least=(ExpectedCall("add", schema={"properties": {"a": {"maximum": 1}}}),)),
            (ADD,),
            True,
        ),
        (
            Expected(at_least=(ExpectedCall("add", schema={"properties": {"a": {"maximum": 0}}}),)),
            (ADD,),
            False,
        ),
        (Expected(never=_wanted("delete")), (ADD,), True),
        (Expected(never=_wanted("delete")), (ADD, DEL), False),
        (Expected(never=(ExpectedCall("delete", {"a": 5}),)), (DEL,), True),
    ],
)
def test_calls_are_expected_exactly_in_any_order_at_least_or_never(
    expected: Expected, calls: tuple[MadeCall, ...], met: bool
) -> None:
    """Q1"""
    assert all(one.passed for one in compare_with(expected, Answered(calls=calls), None)) is met


@pytest.mark.parametrize(
    ("expected", "met"),
    [
        (Expected(equals=' {"n": 3}\n'), True),
        (Expected(contains=('"n"', "3")), True),
        (Expected(contains=("4",)), False),
        (Expected(lacks=("3",)), False),
        (Expected(schema={"required": ["n"]}), True),
        (Expected(schema={"required": ["m"]}), False),
        (Expected(most=MostUsed(rounds=1, tokens=15, cost=0.1, seconds=2.0)), True),
        (Expected(most=MostUsed(tokens=14)), False),
        (Expected(changed=True), False),
    ],
)
def test_answers_and_limits_are_expected(expected: Expected, met: bool) -> None:
    """Q1"""
    answered = Answered("m", '{"n": 3}', rounds=1, input=10, output=5, cost=0.1, seconds=2.0)
    assert all(one.passed for one in compare_with(expected, answered, answered)) is met


@pytest.mark.parametrize("at", ["{file}", "http://{loopback}", "#/$defs/none", "#"])
async def test_a_schema_is_followed_nowhere_else(tmp_path: Path, at: str) -> None:
    """K1: a case file opens no file and no connection."""
    (tmp_path / "schema.json").write_text("{}")
    async with loopback(says("{}")) as server:
        ref = at.format(file=(tmp_path / "schema.json").as_uri(), loopback=server.url.partition("://")[2])
        (met,) = compare_with(Expected(schema={"$ref": ref}), Answered("m", "{}"), None)
        assert not server.bodies
    assert not met.passed
    assert "cannot be followed" in met.reason


def test_an_unknown_cost_is_above_every_limit() -> None:
    """T11: unknown is not free."""
    (met,) = compare_with(Expected(most=MostUsed(cost=1.0)), Answered(), None)
    assert not met.passed


def test_two_answers_diverge_at_the_first_call_that_differs() -> None:
    before, after = Answered(calls=(ADD, MUL)), Answered(calls=(ADD, DEL, MUL))
    parts = diverges(before, after)
    assert parts is not None
    assert (parts.at, parts.before, parts.after) == (1, MUL, DEL)
    assert diverges(before, before) is None
    end = diverges(before, Answered(calls=(ADD,)))
    assert end is not None
    assert "mul" in str(end)
    assert "no call" in str(end)


# ── many answers ──────────────────────────────────────────────────────────────────────────────────


def _report(passed: dict[str, dict[str, list[bool]]], name: str = "run") -> Report:
    """By variant and case."""
    runs = [
        CaseRun(
            case,
            Variant(variant),
            number,
            Answered(text="<b>|no|</b>\x07"),
            (Met("contains", good, "why | not"),),
        )
        for variant, found in passed.items()
        for case, results in found.items()
        for number, good in enumerate(results)
    ]
    names = dict.fromkeys(case for found in passed.values() for case in found)
    recorded = {
        case: CaseRun(case, Variant("old"), 0, Answered(), (Met("contains", True),)) for case in names
    }
    return Report(name, 1.0, tuple(ReportCase(case, f"{case}?") for case in names), tuple(runs), recorded)


def test_a_rate_comes_with_an_interval_and_with_how_often_all_repeats_pass() -> None:
    """Answers to one case are alike: a hundred of them are worth less than a hundred cases."""
    report = _report({"one": {"a": [True, True, True], "b": [True, False, True], "c": [False] * 3}})
    rate = report.pass_rate(ONE)
    assert (rate.passed, rate.total) == (5, 9)
    assert rate.every_time == pytest.approx(1 / 3)
    assert 0 < rate.low < rate.rate < rate.high < 1
    alike = _report({"one": {f"{n}": [n % 2 == 0] * 50 for n in range(4)}}).pass_rate(ONE)
    apart = _report({"one": {f"{n}": [n % 2 == 0] for n in range(200)}}).pass_rate(ONE)
    assert alike.rate == apart.rate
    assert alike.high - alike.low > 3 * (apart.high - apart.low)
    sure = _report({"one": {f"{n}": [True] for n in range(30)}}).pass_rate(ONE)
    assert sure.high == 1.0
    assert 0.8 < sure.low < 1


def test_better_and_worse_than_the_recording_and_an_earlier_run() -> None:
    now = _report({"one": {"a": [True], "b": [False, False, True]}, "two": {"a": [False], "b": [True]}})
    earlier = _report({"one": {"a": [False], "b": [True]}}, "earlier")
    assert {(one.case, one.variant, one.better) for one in now.changes()} == {
        ("b", ONE, False),
        ("a", TWO, False),
    }
    found = {(one.case, one.variant, one.better) for one in now.changes(earlier)}
    assert found == {("a", ONE, True), ("b", ONE, False)}


def test_a_threshold_is_met_by_every_variant_or_not_at_all() -> None:
    report = _report({"one": {"a": [True]}, "two": {"a": [True, False]}})
    assert report.meets(0.5)
    assert not report.meets(0.6)


def test_other_programs_read_it_whatever_a_model_wrote(tmp_path: Path) -> None:
    report = _report({"one": {"a": [True], "b": [False]}})
    root = ElementTree.fromstring(report.junit())
    assert [suite.attrib["failures"] for suite in root] == ["1"]
    (failure,) = root.iter("failure")
    assert failure.attrib["message"] == "contains: why | not"
    assert failure.text == "<b>|no|</b>�"
    assert "- `b`, one, 1 of 1: contains: why \\| not." in report.markdown()
    assert Report.load(report.save(tmp_path)) == report
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(ConfigError, match="Run the cases again"):
        Report.load(tmp_path / "run.json")


# ── judgments ─────────────────────────────────────────────────────────────────────────────────────


async def test_the_majority_of_a_judges_votes_counts_and_all_are_kept(tmp_path: Path) -> None:
    """The report keeps the prompt and the model, and no request is repeated (Q1)."""
    votes = iter(["true", "false", "false"])

    def judge(_: Request) -> Line:
        return says(f'{{"passed": {next(votes)}, "reason": "Because."}}')

    case = Case("one", (CaseMessage("user", "Hi"),), Expected(rubrics=(Rubric("Is it polite?", votes=3),)))

    async def again(model: ScriptedModel) -> CaseRun:
        one = ScriptedModel([says("Go away.")])
        (answer,) = (await run([case], models={"one": one}, judge=model, folder=tmp_path)).runs
        return answer

    for model in (ScriptedModel(judge, name="judge"), ScriptedModel([], name="judge")):
        (met,) = (await again(model)).met
        assert (met.passed, met.model, [vote.passed for vote in met.votes]) == (
            False,
            "judge",
            [True, False, False],
        )
        assert "Is it polite?" in met.prompt
        assert "Go away." in met.prompt


async def test_a_function_judges_and_an_unknown_one_is_told_before_anything_is_asked() -> None:
    case = Case("one", (CaseMessage("user", "Hi"),), Expected(checks=("short",)))
    model = ScriptedModel(lambda _: says("Hello."))

    async def short(of: Case, answered: Answered) -> str | None:
        return None if len(answered.text) < 5 else f"{len(answered.text)} characters for {of.id}"

    with pytest.raises(ConfigError, match="short"):
        await run([case], models={"one": model})
    assert model.requests == []
    (answer,) = (await run([case], models={"one": model}, checks={"short": short})).runs
    assert answer.reasons == ["short: 6 characters for one"]
