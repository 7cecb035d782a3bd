"""Regenerate an answer from one of its calls: with other arguments, or with another result."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import pytest
from playwright.async_api import Browser, Locator, expect
from pydantic import Field

from dragoman import tool
from dragoman.tools.builtin import files_group, shell_group
from dragoman.tools.cage.policy import CageSettings
from dragoman.wire.scripted import calls, says
from tests.browser.stage import MARKS, Person, Server, at_the_page
from tests.browser.test_reading import faults
from tests.server.site import served
from tests.tools.cage.test_escapes import needs_cage

pytestmark = MARKS

RAN: list[tuple[int, str]] = []


@tool(pattern="city")
def forecast(days: Annotated[int, Field(gt=0)], city: str, notes: list[str] | None = None) -> str:
    """The weather of the next days."""
    RAN.append((days, city))
    return f"{days} days of rain in {city}"


SCRIPT = [calls("forecast", days=2, city="Oslo"), says("It rains in Oslo.")]


@asynccontextmanager
async def rained(browser: Browser, folder: Path, *later: Any, **page: Any) -> AsyncIterator[Person]:
    """Yield a user who has an answer about the rain in Oslo, with the card of the call open."""
    RAN.clear()
    rules: dict[str, Any] = {"allow": ["forecast"], "ask": ["forecast:B*"], "tools": [forecast]}
    async with served(folder, [*SCRIPT, *later], **rules) as site:
        server = Server(folder, port=0, link=f"{site.url}/?token={site.auth.token}")
        async with at_the_page(browser, server, **page) as person:
            await person.say("How is the weather?")
            await person.sees("It rains in Oslo.")
            await person.call.get_by_role("button").first.click()
            yield person


async def fill(person: Person, **values: str) -> Locator:
    """Open the form and fill in its fields."""
    await person.by("rerun-call").click()
    form = person.by("rerun-form")
    for label, value in values.items():
        await form.get_by_label(label).fill(value)
    return form


async def test_with_other_arguments_which_are_asked_about(browser: Browser, tmp_path: Path) -> None:
    """The new answer is a version next to the old one, which the user can return to (T10 × P10)."""
    async with rained(browser, tmp_path, says("It rains in Bergen.")) as person:
        await fill(person, days="3", city="Bergen")
        await person.page.reload()  # the typed text is in the form again
        await person.call.get_by_role("button").first.click()
        form = await fill(person)
        await expect(form.get_by_label("days")).to_have_value("3")
        await form.get_by_label("city").press("Control+Enter")
        await expect(person.question).to_contain_text("May forecast run", timeout=60_000)
        await expect(person.by("rerun-call")).to_have_count(0)  # it is not over yet
        await expect(person.call).not_to_contain_text("Ran with")
        await person.by("allow").click()
        await person.sees("It rains in Bergen.")
        assert RAN == [(2, "Oslo"), (3, "Bergen")]
        await expect(person.by("versions")).to_contain_text("2/2")
        await person.call.get_by_role("button").first.click()
        await expect(person.by("original")).to_contain_text("Oslo")
        await person.by("versions").get_by_role("button").first.click()
        await person.sees("It rains in Oslo.")
        await expect(person.by("versions")).to_contain_text("1/2")
        await person.page.reload()
        await person.sees("It rains in Oslo.")


@pytest.mark.long
async def test_with_another_result_nothing_runs(browser: Browser, tmp_path: Path) -> None:
    """T10"""
    async with rained(browser, tmp_path, says("Then the sun shines.")) as person:
        await person.by("rerun-call").click()
        await person.by("rerun-result").click()
        await expect(person.by("other-result")).to_have_value("2 days of rain in Oslo")
        await person.by("other-result").fill("sun")
        await person.by("rerun-start").click()
        await person.sees("Then the sun shines.")
        assert RAN == [(2, "Oslo")]
        await person.call.get_by_role("button").first.click()
        await expect(person.call.get_by_test_id("result")).to_contain_text("sun")
        await person.by("compare-versions").click()
        await expect(person.by("compared").first).to_contain_text("It rains in Oslo.")
        await expect(person.by("compared").last).to_contain_text("Then the sun shines.")


@pytest.mark.long
async def test_as_it_was_it_runs_once_more_by_keyboard(browser: Browser, tmp_path: Path) -> None:
    """Defaults that the form adds do not count as changed arguments (T10)."""
    async with rained(browser, tmp_path, says("Still.")) as person:
        await person.by("rerun-call").focus()
        await person.page.keyboard.press("Enter")
        await expect(person.by("rerun-arguments")).to_be_focused()
        await person.by("rerun-cancel").press("Enter")
        await expect(person.by("rerun-call")).to_be_focused()
        await person.page.keyboard.press("Enter")
        await expect(person.by("rerun-arguments")).to_be_focused()
        await person.page.keyboard.press("Escape")
        await expect(person.by("rerun-call")).to_be_focused()
        await person.page.keyboard.press("Enter")
        await person.by("rerun-start").press("Enter")
        await person.sees("Still.")
        assert RAN == [(2, "Oslo"), (2, "Oslo")]
        await person.call.get_by_role("button").first.click()
        await expect(person.by("arguments")).to_have_count(1)
        await expect(person.by("original")).to_have_count(0)


@pytest.mark.long
async def test_what_does_not_fit_is_told_at_the_form_and_stays(browser: Browser, tmp_path: Path) -> None:
    """The page checks if it can, otherwise the server does, and the typed text is not lost (T10)."""
    async with rained(browser, tmp_path, says("One day.")) as person:
        form = await fill(person, days="many", city="Narvik")
        await expect(form.get_by_test_id("misfits")).to_contain_text("days: should be integer")
        await expect(person.by("rerun-start")).to_be_disabled()
        await form.get_by_label("days").fill("-1")
        await person.by("rerun-start").click()
        await expect(person.by("rerun-problem")).to_contain_text("the arguments do not fit", timeout=60_000)
        await expect(form.get_by_label("city")).to_have_value("Narvik")
        assert RAN == [(2, "Oslo")]
        await expect(person.by("versions")).to_have_count(0)
        await form.get_by_label("days").fill("1")
        await person.by("rerun-start").click()
        await person.sees("One day.")
        assert RAN[1:] == [(1, "Narvik")]


@pytest.mark.long
async def test_it_is_chinese_fits_a_phone_and_has_no_faults(browser: Browser, tmp_path: Path) -> None:
    phone = {"viewport": {"width": 380, "height": 740}, "locale": "zh-CN"}
    async with rained(browser, tmp_path, **phone) as person:
        form = await fill(person, days="-1")
        await expect(form).to_contain_text("换结果")
        await person.by("rerun-start").click()
        await expect(person.by("rerun-problem")).to_contain_text("参数不符合要求", timeout=60_000)
        assert await faults(person) == []
        width = await person.page.evaluate("document.documentElement.scrollWidth")
        assert width <= 380


@pytest.mark.long
@pytest.mark.parametrize("back", [True, False], ids=["taken back", "left"])
async def test_what_it_did_to_the_files_is_taken_back_first(
    browser: Browser, tmp_path: Path, back: bool
) -> None:
    """T10 × B2: unless the person says otherwise."""
    work = tmp_path / "work"
    work.mkdir()
    script = [calls("write_file", path="a.txt", text="first\n"), says("Written."), says("Once more.")]
    rules: dict[str, Any] = {"allow": ["files.write"], "tools": [files_group()], "workspace": work}
    async with served(tmp_path, script, **rules) as site:
        server = Server(tmp_path, port=0, link=f"{site.url}/?token={site.auth.token}")
        async with at_the_page(browser, server) as person:
            await person.say("Write it.")
            await person.sees("Written.")
            await person.call.get_by_role("button").first.click()
            await fill(person, text="other\n")
            await expect(person.by("revert-files")).to_contain_text("1 file")
            if not back:
                await person.by("revert-files").get_by_role("checkbox").uncheck()
            await person.by("rerun-start").click()
            await person.sees("Once more.")
            await expect(person.call).to_contain_text("done" if back else "read it first")
    assert (work / "a.txt").read_text() == ("other\n" if back else "first\n")


@needs_cage
async def test_what_the_cage_refused_is_allowed_from_the_result(browser: Browser, tmp_path: Path) -> None:
    """The result names the refused path, one click requests exactly that, and the request states for how long
    (K3)."""
    (tmp_path / "work/.vscode").mkdir(parents=True)
    line = "echo x > .vscode/tasks.json && echo done"
    rules: dict[str, Any] = {"tools": [shell_group()], "workspace": tmp_path / "work", "allow": []}
    script = [calls("shell", command=line), says("Refused."), says("Written."), calls("shell", command=line)]
    cage = CageSettings(unasked=True)
    async with served(tmp_path, [*script, says("Again.")], cage=cage, **rules) as site:
        server = Server(tmp_path, port=0, link=f"{site.url}/?token={site.auth.token}")
        async with at_the_page(browser, server) as person:
            await person.say("Write the tasks")
            await person.sees("Refused.")
            await person.call.get_by_role("button").first.click()
            await expect(person.by("refused")).to_contain_text("refused write: .vscode/tasks.json")
            await expect(person.by("run-outside")).to_be_visible()
            await person.by("allow-refused").click()
            await expect(person.question).to_contain_text(
                "The command asks to write .vscode/*.", timeout=60_000
            )
            await person.by("remember").click()
            await person.by("allow-conversation").click()
            await person.sees("Written.")
            assert (tmp_path / "work/.vscode/tasks.json").read_text() == "x\n"
            await person.say("And again")
            await person.sees("Again.")
            await expect(person.by("question")).to_have_count(0)
            assert not await faults(person)
