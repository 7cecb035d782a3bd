"""Check that diagrams are drawn if possible, show their source otherwise, and cannot act or fetch (U3)."""

from __future__ import annotations

from urllib.parse import unquote

import pytest
from playwright.async_api import Browser, expect

from tests.browser.stage import MARKS, Person, Server, at_the_page
from tests.browser.test_reading import faults

pytestmark = MARKS

BLOCKS = 6
TO_VIEW = "e => e.scrollIntoView({block: 'center'})"  # an invisible diagram is not drawn


@pytest.mark.long
async def test_a_diagram_is_drawn_and_its_source_is_a_click_away(person: Person) -> None:
    """A diagram that cannot be parsed, or of an unsupported kind, stays code (U3)."""
    await person.say("diagrams")
    drawn = person.by("diagram")
    blocks = person.answer.locator(".code")
    await expect(blocks).to_have_count(BLOCKS, timeout=60_000)
    for n in range(2):
        await blocks.nth(n).evaluate(TO_VIEW)
        await expect(blocks.nth(n).get_by_test_id("diagram")).to_be_visible(timeout=60_000)
        box = await drawn.nth(n).bounding_box()
        assert box is not None
        assert box["width"] > 100
        assert box["height"] > 40
        await expect(blocks.nth(n).locator("pre")).to_be_hidden()
    await expect(blocks.nth(2).locator("pre")).to_contain_text("no diagram at all")
    await expect(blocks.nth(3).locator("pre")).to_contain_text("of a kind that is not drawn")
    await expect(blocks.nth(3).locator("pre")).to_be_visible()
    await blocks.first.get_by_test_id("diagram-switch").press("Enter")
    await expect(blocks.first.locator("pre")).to_contain_text("Person -->|asks| Model")
    await expect(drawn.first).to_be_hidden()
    await blocks.first.get_by_test_id("diagram-switch").press("Enter")
    await expect(drawn.first).to_be_visible()
    assert await faults(person) == []


async def test_nothing_in_a_diagram_acts_or_fetches(person: Person) -> None:
    """This holds while the diagram is drawn and when it is shown. The policy of the frame blocks its attempts
    (U3)."""
    asked: list[str] = []
    kept: list[str] = []
    person.page.on("request", lambda request: asked.append(request.url))
    person.page.on(
        "requestfailed", lambda request: kept.append(request.url) if request.failure == "csp" else None
    )
    await person.say("diagrams")
    blocks = person.answer.locator(".code")
    await expect(blocks).to_have_count(BLOCKS, timeout=60_000)
    for n in range(BLOCKS):
        await blocks.nth(n).evaluate(TO_VIEW)
        await person.page.wait_for_timeout(300)  # for what should not come
    # the diagram was drawn
    await expect(blocks.nth(4).get_by_test_id("diagram")).to_be_visible(timeout=60_000)
    assert await person.page.evaluate("window.hacked") is None
    ours = person.page.url.partition("/c/")[0]
    tried = [url for url in asked if not url.startswith((ours, "data:", "about:", "blob:"))]
    assert tried == kept
    assert await person.answer.locator("svg foreignObject, iframe, script, style").count() == 0


@pytest.mark.long
async def test_it_is_loaded_only_where_there_is_one(person: Person) -> None:
    asked: list[str] = []
    person.page.on("request", lambda request: asked.append(request.url))
    await person.say("markdown")
    await expect(person.answer.locator("pre code .hljs-keyword").first).to_be_visible(timeout=60_000)
    assert not [url for url in asked if "mermaid" in url]
    await person.say("diagrams")
    await expect(person.by("diagram").first).to_be_visible(timeout=60_000)
    assert [url for url in asked if "mermaid" in url]


@pytest.mark.long
async def test_it_follows_light_and_dark(browser: Browser, server: Server) -> None:
    async with at_the_page(browser, server) as person:
        await person.say("diagrams")
        drawn = person.by("diagram").first
        await expect(drawn).to_be_visible(timeout=60_000)
        light = await drawn.get_attribute("src") or ""
        await person.page.emulate_media(color_scheme="dark")
        await expect(drawn).not_to_have_attribute("src", light)
        dark = unquote(await drawn.get_attribute("src") or "")
        assert "rgba(185" not in dark  # a light shadow glows
