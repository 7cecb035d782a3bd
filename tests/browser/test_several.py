"""One question to several models: a version of the answer each, seen side by side."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, expect

from tests.browser.stage import MARKS, Person, Server, at_the_page
from tests.browser.test_reading import faults

pytestmark = MARKS


async def asked(person: Person) -> None:
    """An answer is there, and one sees which models could make another."""
    await person.say("hello")
    await person.sees("How can I help?")
    await person.by("rerun").last.click()
    await person.by("rerun-several").click()


async def choose(person: Person, *models: str) -> None:
    for model in models:
        await person.page.locator(f"[data-model='stage/{model}'] input").check()
    await person.by("ask-several").click()


@pytest.mark.long
async def test_any_name_of_a_provider_may_be_asked(person: Person) -> None:
    """No catalog lists all models (T10)."""
    await asked(person)
    await person.by("several-search").fill("stage/unlisted")
    await person.page.keyboard.press("Enter")
    await expect(person.page.locator("[data-model='stage/unlisted'] input")).to_be_checked()
    await choose(person, "alpha")
    await expect(person.by("compared").nth(0)).to_contain_text("I am unlisted.", timeout=60_000)
    await expect(person.by("compared").nth(1)).to_contain_text("I am alpha.", timeout=60_000)


async def test_one_is_compared_with_the_answer_that_is_there(person: Person) -> None:
    """The existing answer is not generated again (T10)."""
    await asked(person)
    await choose(person, "alpha")
    sides = person.by("compared")
    await expect(sides).to_have_count(2)
    await expect(sides.nth(0)).to_contain_text("How can I help?")
    await expect(sides.nth(1)).to_contain_text("I am alpha.", timeout=60_000)


async def test_each_makes_a_version_and_they_are_compared(person: Person) -> None:
    """The comparison shows the calls and usage of each, and a failure does not keep the others from answering
    (T10)."""
    await asked(person)
    await expect(person.by("ask-several")).to_be_disabled()
    await choose(person, "alpha", "broken", "beta")
    sides = person.by("compared")
    await expect(sides).to_have_count(3)
    await expect(sides.nth(0)).to_contain_text("I am alpha.", timeout=60_000)
    await expect(sides.nth(1).get_by_role("alert")).to_contain_text("out of order", timeout=60_000)
    await expect(sides.nth(2)).to_contain_text("I am beta.", timeout=60_000)
    await expect(sides.nth(2)).to_contain_text("1 call")
    await expect(sides.nth(2)).to_contain_text("tokens")
    await expect(person.by("compare-state")).to_have_count(0)
    assert await faults(person, "compare") == []
    await sides.nth(1).get_by_role("combobox").select_option("Version 1 of 4 · stage/model")
    await expect(sides.nth(1)).to_contain_text("How can I help?")
    await sides.nth(1).get_by_test_id("use-version").click()
    await expect(person.by("compare")).to_have_count(0)
    await expect(person.by("versions")).to_contain_text("1/4")


@pytest.mark.long
async def test_they_answer_at_once_and_each_can_be_stopped(person: Person) -> None:
    """A slow model delays no other, and is stopped separately (T6 × T10)."""
    await asked(person)
    await choose(person, "slow", "alpha")
    sides = person.by("compared")
    await expect(sides.last).to_contain_text("I am alpha.", timeout=60_000)
    await expect(sides.first).to_contain_text("word word", timeout=60_000)
    await expect(sides.first).to_have_attribute("data-live", "true")
    await person.by("stop-one").click()
    await expect(sides.first).to_have_attribute("data-live", "false")
    await person.page.keyboard.press("Escape")
    await expect(person.by("versions")).to_contain_text("/3")


@pytest.mark.long
async def test_a_stop_is_for_all(person: Person) -> None:
    """T6 × T10"""
    await asked(person)
    await choose(person, "slow", "slower")
    sides = person.by("compared")
    for side in (sides.first, sides.last):
        await expect(side).to_contain_text("word word", timeout=60_000)
    await person.page.keyboard.press("Escape")
    await person.by("stop").click()
    await expect(person.by("stop")).to_be_hidden()
    await expect(person.by("stopped")).to_be_visible()
    await person.by("compare-versions").click()
    for side in (sides.first, sides.last):
        await expect(side).to_have_attribute("data-live", "false")


@pytest.mark.long
async def test_the_choice_is_chinese_and_fits_a_phone(browser: Browser, server: Server) -> None:
    phone = {"viewport": {"width": 380, "height": 740}, "locale": "zh-CN"}
    async with at_the_page(browser, server, **phone) as person:
        await asked(person)
        await expect(person.by("several")).to_contain_text("同时作答")
        assert await faults(person) == []
        await choose(person, "alpha", "beta")
        await expect(person.by("compared").last).to_contain_text("I am beta.", timeout=60_000)
        assert await faults(person) == []
        assert await person.page.evaluate("document.documentElement.scrollWidth") <= 380
