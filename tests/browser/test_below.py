"""Check the web UI below a path of a reverse proxy (U1)."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from dragoman.wire.scripted import calls, says
from tests.browser.stage import MARKS, new_context
from tests.runtimes import add
from tests.server.proxy import shown_below
from tests.server.site import served

pytestmark = MARKS


@pytest.mark.long
async def test_a_conversation_is_held_below_a_path(browser: Browser, tmp_path: Path) -> None:
    """U1: loaded, asked, answered, reloaded at its own address, and nothing asked for outside."""
    script = [calls("add", a=1, b=2), says("It is **noted**: ![x](/api/files/none)")]
    outside: list[str] = []
    async with (
        served(tmp_path, script, tools=[add], allow=[], path="/chat") as site,
        shown_below("/chat", site.url) as url,
    ):
        context = await new_context(browser)
        page = await context.new_page()
        page.on("request", lambda asked: outside.append(asked.url) if not asked.url.startswith(url) else None)
        await page.goto(f"{url}/?token=launch")
        await page.get_by_test_id("composer-text").fill("add them")
        await page.get_by_test_id("composer-text").press("Enter")
        await page.get_by_test_id("allow").click()
        await expect(page.get_by_test_id("answer").last).to_contain_text("It is noted", timeout=60_000)
        assert page.url.startswith(f"{url}/c/")
        await page.reload()
        await expect(page.get_by_test_id("answer").last).to_contain_text("It is noted", timeout=60_000)
        await expect(page.get_by_test_id("conversation").locator("a").first).to_have_attribute(
            "href", page.url.removeprefix(url.removesuffix("/chat"))
        )
        await page.go_back()
        await expect(page.get_by_test_id("welcome")).to_be_visible(timeout=60_000)
        assert not [address for address in outside if address.startswith("http")], outside
        await page.get_by_test_id("composer-text").fill("still here")
        other = await context.new_page()  # of another server, at the root of the same address
        await other.goto(url.removesuffix("/chat"))
        await other.evaluate("localStorage['dragoman.left'] = 'now'")
        await other.evaluate("""localStorage['dragoman.settings'] = '{"theme": "dark"}'""")
        await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        await expect(page.get_by_test_id("composer-text")).to_have_value("still here")
        await context.close()
