"""Q1: cases as files, and cases of stored turns."""

from __future__ import annotations

from base64 import b64decode
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman import Runtime, ScriptedModel, tool
from dragoman.errors import ConfigError
from dragoman.evaluation import Case, Expected, ExpectedCall, Rubric, case_of_turn, cases, run, save_cases
from dragoman.evaluation.bfcl import bfcl_cases
from dragoman.evaluation.case import CaseMessage, case_from, toml_of, values_of
from dragoman.evaluation.expected import Answered, MadeCall, MostUsed
from dragoman.messages.message import File, Text
from dragoman.store.store import Rating
from dragoman.wire.scripted import calls, says
from tests.sweeps import examples

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = st.recursive(
    st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
CALLS = st.builds(MadeCall, TEXTS, st.dictionaries(TEXTS, VALUES, max_size=3), VALUES, st.booleans())
WANTED = st.builds(ExpectedCall, TEXTS, st.none() | st.dictionaries(TEXTS, VALUES, max_size=2))
EXPECTED = st.builds(
    Expected,
    equals=st.none() | TEXTS,
    contains=st.tuples(TEXTS),
    any_order=st.none() | st.lists(WANTED, max_size=2).map(tuple),
    most=st.none() | st.builds(MostUsed, rounds=st.integers(0, 9)),
    rubrics=st.lists(st.builds(Rubric, TEXTS), max_size=2).map(tuple),
)


@given(st.lists(CALLS, max_size=3), TEXTS, EXPECTED)
@settings(max_examples=examples(60), deadline=None)
def test_a_case_is_the_same_after_a_file(
    tmp_path_factory: pytest.TempPathFactory, made: list[MadeCall], text: str, expect: Expected
) -> None:
    """This holds for any content, over several lines or with quotes."""
    before = CaseMessage("assistant", text, tuple(made))
    question = (CaseMessage("user", f'"""{text}\n\\'), before, CaseMessage("user", "now"))
    case = Case("one", question, expect, recorded=Answered("m", text, tuple(made)))
    folder = tmp_path_factory.mktemp("cases")
    (file,) = save_cases([case], folder)
    assert cases(folder) == [case], file.read_text()


def test_a_file_that_was_edited_stays(tmp_path: Path) -> None:
    case = Case("one", (CaseMessage("user", "Hi"),))
    (file,) = save_cases([case], tmp_path)
    file.write_text(toml_of(case).replace("Hi", "Hello"))
    assert save_cases([case], tmp_path) == []
    (read,) = cases(file)
    assert read.messages[0].text == "Hello"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ('id = "a"\nmessages = []', "last message"),
        ('id = "a"\n[[messages]]\nrole = "user"\n[expect]\ncontain = ["x"]', "contain"),
        ('id = "a/../b\\n"\n[[messages]]\nrole = "user"', "an ID can have"),
        ("id = ", "Invalid value"),
        (
            'id = "a"\n[[messages]]\nrole = "user"\n[expect]\ncontains = "x"',
            "Input should be a list",
        ),
        (
            'id = "a"\n[[messages]]\nrole = "user"\n[expect.schema]\ntype = "banana"',
            "Invalid JSON schema",
        ),
    ],
)
def test_a_wrong_case_is_named_with_its_file(tmp_path: Path, text: str, wrong: str) -> None:
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(ConfigError, match=f"(?s)a.toml.*{wrong}"):
        cases(tmp_path)


def test_a_wrong_line_is_named_with_its_number(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": "a", "messages": [{"role": "user"}]}\n{"id"\n')
    with pytest.raises(ConfigError, match=r"a.jsonl:2"):
        cases(tmp_path)


def test_two_cases_with_one_id_and_a_place_without_cases_are_told(tmp_path: Path) -> None:
    line = '{"id": "a", "messages": [{"role": "user", "text": "Hi"}]}\n'
    (tmp_path / "a.jsonl").write_text(line * 2)
    with pytest.raises(ConfigError, match=r"a.jsonl:2: Another case"):
        cases(tmp_path)
    with pytest.raises(ConfigError, match="dragoman eval add"):
        cases(tmp_path / "none")


# ── of stored turns ───────────────────────────────────────────────────────────────────────────────


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}, token=sk-tool-0123456789"


async def test_a_case_of_a_turn_has_all_that_was_said_before_and_no_secrets(tmp_path: Path) -> None:
    """Private values are masked as they were for the model, and attachments are included (Q1)."""
    script = [says("Hi."), calls("weather", city="Rome"), says("Sunny, +43 660 1234.")]
    model = ScriptedModel(script)
    private = {"phone": "+43 660 1234"}
    async with Runtime(
        tmp_path / "chat.db", model=model, tools=[weather, "basics"], allow=["*"], private=private
    ) as runtime:
        blob = await runtime.store.put_blob(b"a note: sk-0123456789abc")
        chat = await runtime.conversation(system="Be brief.")
        await (await chat.send([Text("Hello"), File("text/plain", blob=blob, name="a.txt")])).result()
        turn = await chat.send("Call +43 660 1234 from Rome, my key is sk-0123456789abc")
        await turn.result()
        case = await case_of_turn(runtime, turn.id)
        (answer,) = (await run([case], models=["scripted/model"], like=_again(tmp_path, private))).runs
        rating = Rating(turn.id, "local", "bad", "You told +43 660 1234 and sk-0123456789abc.")
        noted = toml_of(await case_of_turn(runtime, turn.id, rating=rating))
        judge = ScriptedModel([says('{"passed": true, "reason": "Only [[phone]]."}')], name="judge")
        judged = replace(case, expect=Expected(rubrics=(Rubric("It has [[phone]]."),)))
        like = _again(tmp_path, private)
        (verdict,) = (await run([judged], models=["scripted/model"], like=like, judge=judge)).runs
    text = toml_of(case)
    assert "0123456789" not in text + noted
    assert "660" not in text + noted
    assert "Call [[phone]] from Rome" in text
    assert [message.text for message in case.messages[:2]] == ["Hello", "Hi."]
    assert b64decode(case.messages[0].files[0].url.partition(",")[2]).decode() == "a note: ‹hidden›"
    assert (case.system, case.tools) == ("Be brief.", ("tools", "basics"))
    assert case.recorded is not None
    assert case.recorded.rounds == 2
    assert case.expect.any_order == (ExpectedCall("weather", {"city": "Rome"}),)
    assert answer.passed, answer.reasons
    assert "660 1234" not in str(answer)
    assert verdict.passed
    assert "660 1234" not in str(verdict) + str(judge.requests)


def _again(folder: Path, private: dict[str, str]) -> Runtime:
    model = ScriptedModel([calls("weather", city="Rome"), says("Sunny, [[phone]].")])
    return Runtime(folder / "again.db", model=model, tools=[weather], private=private)


@tool
def look_up(key: str) -> str:
    """The value of a key."""
    return f"the value of {key}"


async def test_what_was_hidden_in_a_case_fits_what_it_was(tmp_path: Path) -> None:
    """The argument `key` is hidden, its recorded result is found, and an unchanged answer counts as the same
    (Q1)."""
    script = [calls("look_up", key="name"), says("password=hunter2hunter2")]
    models = {name: ScriptedModel([*script], name=name) for name in ("first", "again")}
    path = tmp_path / "chat.db"
    async with Runtime(path, model=models["first"], tools=[look_up], allow=["*"]) as runtime:
        turn = await runtime.send("Look it up")
        await turn.result()
        case = await case_of_turn(runtime, turn.id)
        unchanged = replace(case, expect=replace(case.expect, changed=True))
        report = await run([unchanged], models={"again": models["again"]}, like=runtime)
    assert 'arguments = { "key" = "‹hidden›" }' in toml_of(case)
    assert "hunter2" not in toml_of(case)
    (answer,) = report.runs
    assert answer.answered.calls[0].result == "the value of name"
    assert answer.reasons == ["changed: the answer is as it was recorded"]
    assert report.divergence(answer) is None


async def test_a_bad_answer_has_to_change_and_to_lose_its_fault(tmp_path: Path) -> None:
    """Q1: a thumb down is enough."""
    models = {
        "same": ScriptedModel([says("It is 400.")]),
        "other": ScriptedModel([says("It is 391.")]),
        "judge": ScriptedModel([says('{"passed": true, "reason": "It is right."}')], name="judge"),
    }
    async with Runtime(tmp_path / "chat.db", model=ScriptedModel([says("It is 400.")])) as runtime:
        turn = await runtime.send("Größe 日本 17?")
        await turn.result()
        case = await case_of_turn(runtime, turn.id, rating=Rating(turn.id, "local", "bad"))
        noted = await case_of_turn(runtime, turn.id, rating=Rating(turn.id, "local", "bad", "wrong sum"))
    (file,) = save_cases([case], tmp_path / "evals")
    assert file.name == f"größe-日本-17-{turn.id[-6:]}.toml"
    assert (case.expect.changed, case.expect.rubrics) == (True, ())
    assert "wrong sum" in noted.expect.rubrics[0].text
    report = await run([case], models={name: models[name] for name in ("same", "other")})
    assert [one.passed for one in report.runs] == [False, True]
    assert [(one.variant.model, one.better) for one in report.changes()] == [("other", True)]
    assert report.recorded[case.id].passed is False


# ── of the Berkeley leaderboard ───────────────────────────────────────────────────────────────────


async def test_questions_of_the_leaderboard_are_judged_as_its_checker_does() -> None:
    question = {
        "id": "simple_0",
        "question": [[{"role": "user", "content": "The area of a triangle, 10 by 5"}]],
        "function": [
            {
                "name": "math.area",
                "description": "Area",
                "parameters": {
                    "type": "dict",
                    "properties": {"base": {"type": "integer"}, "unit": {"type": "string"}},
                },
            }
        ],
    }
    truth = {"id": "simple_0", "ground_truth": [{"math.area": {"base": [10], "unit": ["", "Square Meters"]}}]}
    (case,) = bfcl_cases([question], [truth])
    (none,) = bfcl_cases([question])
    assert case_from(values_of(case), "") == case
    wanted = {
        "right": calls("math_area", base=10, unit="square-meters"),
        "left out": calls("math_area", base=10),
        "wrong": calls("math_area", base=11),
        "none": says("50"),
    }
    models = {name: ScriptedModel([line]) for name, line in wanted.items()}
    report = await run([case], models=models)
    assert [one.passed for one in report.runs] == [True, True, False, False]
    models = {name: ScriptedModel([line]) for name, line in wanted.items()}
    report = await run([none], models=models)
    assert [one.passed for one in report.runs] == [False, False, False, True]
