"""Rate an answer down, and evaluate models on that case later."""

from __future__ import annotations

from playwright.async_api import expect

from dragoman import ScriptedModel
from dragoman.evaluation import Case, Expected, ExpectedCall, run
from dragoman.evaluation.case import CaseMessage
from dragoman.evaluation.expected import Answered, MadeCall
from dragoman.wire.scripted import calls, says
from tests.browser.stage import MARKS, Person
from tests.browser.test_setup import violations

pytestmark = MARKS


async def test_an_answer_is_rated_and_the_rating_is_there_after_a_reload(person: Person) -> None:
    """A thumb down is enough, and a note gives the reason (Q1)."""
    await person.say("hello")
    await person.sees("How can I help?")
    bad, good = person.by("rate-bad").last, person.by("rate-good").last
    await bad.click()
    await expect(bad).to_have_attribute("aria-pressed", "true")
    await person.by("rating-note").fill("too polite")
    await person.by("save-rating").click()
    await expect(bad).to_have_attribute("title", "too polite")
    await person.page.reload()
    await expect(bad).to_have_attribute("title", "too polite")
    assert await violations(person) == []
    await good.click()
    await expect(bad).to_have_attribute("aria-pressed", "false")
    await good.click()
    await expect(good).to_have_attribute("aria-pressed", "false")
    await person.page.reload()
    await expect(good).to_have_attribute("aria-pressed", "false")


async def test_a_run_is_a_matrix_and_one_case_is_seen_side_by_side(person: Person) -> None:
    """The matrix can be filtered by failures, and model output is shown as text (Q3)."""
    recorded = Answered("old", "About 400.", (MadeCall("calculator", {"expression": "17 * 23"}, "391"),))
    found = [
        Case(
            name,
            (CaseMessage("user", f"{name}: 17 * 23?"),),
            Expected(contains=(wanted,), any_order=(ExpectedCall("calculator"),)),
            tools=("basics",),
            recorded=recorded,
        )
        for name, wanted in (("sum", "391"), ("product", "<b>391</b>"))
    ]
    line = calls("calculator", expression="17 * 23")
    models = {
        "right": ScriptedModel([line, says("It is <b>391</b>.")] * 2),
        "wrong": ScriptedModel([line, says("It is 391."), calls("calculator", expression="1"), says("391")]),
    }
    runs = person.server.config.parent / "evals" / "runs"
    await run(found, models=models, folder=runs, name="morning", concurrency=1)
    await person.page.keyboard.press("Control+k")
    await person.by("palette").get_by_role("combobox").fill("eval")
    await person.page.keyboard.press("Enter")
    await expect(person.by("evaluation-variant")).to_have_count(2)
    await expect(person.by("evaluation-variant").first).to_contain_text("2 of 2 passed")
    await expect(person.by("evaluation-case")).to_have_count(2)
    await expect(person.by("evaluation-cell").first).to_contain_text("better")
    await person.by("only-failed").check()
    await expect(person.by("evaluation-case")).to_have_count(1)
    assert await violations(person) == []
    await person.by("evaluation-case").get_by_role("button").click()
    answers = person.by("evaluated-answer")
    await expect(answers).to_have_count(3)
    await expect(answers.nth(1)).to_contain_text("It is <b>391</b>.")
    await expect(answers.nth(2).locator(".differs")).to_have_count(1)
    assert await violations(person) == []
    await person.by("evaluation-back").click()
    await expect(person.by("evaluation-case")).to_have_count(1)
