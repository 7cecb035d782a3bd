"""Signing in at a provider, in a browser (V4)."""

from __future__ import annotations

from pathlib import Path

from playwright.async_api import Browser, expect

from dragoman.wire.scripted import says
from tests.browser.stage import MARKS, new_context
from tests.server.oidc_scene import provider
from tests.server.site import served

pytestmark = MARKS


async def test_a_user_signs_in_with_the_button_and_out_again(browser: Browser, tmp_path: Path) -> None:
    """V4: the strict cookie reaches the web UI though the browser came from
    another site."""
    async with (
        provider("localhost") as there,  # to a browser, another site than 127.0.0.1
        served(tmp_path, [says("Hello.")], oidc=there.settings(name="Acme")) as site,
    ):
        context = await new_context(browser)
        page = await context.new_page()
        await page.goto(f"{site.url}/")
        button = page.get_by_test_id("sign-in-provider")
        await expect(button).to_have_text("Sign in with Acme")
        await button.click()
        await expect(page.get_by_test_id("composer-text")).to_be_visible(timeout=60_000)
        assert page.url.startswith(f"{site.url}/")
        await page.get_by_test_id("composer-text").fill("hello")
        await page.get_by_test_id("composer-text").press("Enter")
        await expect(page.get_by_test_id("answer").last).to_contain_text("Hello.", timeout=60_000)
        assert [one.name for one in await site.runtime.store.people()] == ["ada"]
        await page.get_by_test_id("open-settings").first.click()
        await page.get_by_test_id("sign-out").click()
        await expect(button).to_be_visible(timeout=60_000)
        assert page.url == f"{site.url}/"  # by way of the provider
        await context.close()
