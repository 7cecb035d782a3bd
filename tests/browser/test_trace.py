"""The trace of a turn in the page: a waterfall that opens from an answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.browser.plays import furnish, obey
from tests.browser.stage import MARKS, Person, Server, at_the_page, free_port
from tests.browser.test_setup import violations
from tests.loopback import loopback

pytestmark = MARKS


async def test_a_turn_of_forty_calls_and_two_waits_is_shown_as_a_waterfall(person: Person) -> None:
    """The waterfall shows steps, requests, calls and waits, and for each call the rule and the answer that
    let it run (O3)."""
    await person.say("forty")
    for _ in range(2):
        await expect(person.by("allow").first).to_be_visible()
        before = await person.by("allow").count()
        await person.by("allow").first.click()
        await expect(person.by("allow")).to_have_count(before - 1)
    await person.sees("All forty are done.")
    await person.by("open-trace").last.click()
    rows = person.by("trace-row")
    await expect(rows).to_have_count(2 + 2 + 40 + 2)  # steps, requests, calls, waits
    call = rows.and_(person.page.locator("[data-kind=call]"))
    await expect(call).to_have_count(40)
    why = person.page.locator("[data-kind=call][title*='dragoman.toml:4']")
    await expect(why).to_have_count(38)  # the line of `allow`, told once
    await expect(call.filter(has_text="dragoman.toml:4")).to_have_count(1)
    await expect(person.page.locator("[data-kind=call][title*='ran by an answer']")).to_have_count(2)
    await expect(call.filter(has_text="buy milk").or_(call.filter(has_text="one"))).not_to_have_count(0)
    await expect(rows.filter(has_text="allowed by")).to_have_count(2)
    await expect(person.by("trace-totals")).to_contain_text("Waited for a person")
    await person.by("cut-waits").click()
    await expect(rows).to_have_count(2 + 2 + 40)
    await person.page.keyboard.press("Escape")
    await person.say("add")
    await person.sees("It is 5.")
    await expect(person.by("open-trace")).to_have_count(2)  # the second appears when its turn has ended
    await person.by("open-trace").last.click()
    await person.by("compare-trace").select_option(label="forty")
    await expect(person.by("trace-totals")).to_have_count(2)
    await expect(rows).to_have_count(2 + 2 + 1 + 2 + 2 + 40 + 2)


@pytest.mark.long
async def test_the_waterfall_fits_on_a_phone_in_either_light(person: Person) -> None:
    """Nothing is cut off at the side, and every bar differs from the background (O3, U8)."""
    await person.say("add")
    await person.sees("It is 5.")
    await person.page.set_viewport_size({"width": 360, "height": 640})
    await person.by("open-trace").last.click()
    await expect(person.by("trace-row").first).to_be_visible()
    for scheme in ("light", "dark"):
        await person.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        wide = await person.by("trace").evaluate("dialog => dialog.scrollWidth - dialog.clientWidth")
        assert wide <= 0
        assert await person.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await person.page.keyboard.press("Escape")
    await expect(person.by("trace")).to_have_count(0)


@pytest.mark.long
async def test_what_fills_the_context_is_told(browser: Browser, tmp_path: Path) -> None:
    """The parts are grouped by source, largest first, if the model's context size is known (O3)."""
    async with loopback(obey) as model:
        config = furnish(tmp_path, model.url)
        known = config.read_text("utf-8") + "\n[providers.stage.models.model]\ncontext = 20_000\n"
        config.write_text(known, "utf-8")
        server = Server(config, free_port())
        await server.start()
        try:
            async with at_the_page(browser, server) as person:
                await person.say("big")
                await person.sees("That was much.")
                await person.by("context").click()
                use = person.by("context-use")
                await expect(use.get_by_test_id("context-share").first).to_contain_text("big")
                await expect(use).to_contain_text("System prompts")
                await expect(use).to_contain_text("Your messages")
                assert await violations(person) == []
        finally:
            await server.stop()
