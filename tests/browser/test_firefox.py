"""The main way in Firefox: sign in, ask, be asked, allow, read, come back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.firefox import FIREFOX, FirefoxPage, firefox
from tests.browser.stage import MARKS, Server

pytestmark = [
    *MARKS[:2],
    pytest.mark.skipif(FIREFOX is None, reason="no Firefox here: as root, `make test` installs it"),
]
ENTER = "\ue007"


async def say(page: FirefoxPage, text: str) -> None:
    await page.click("composer-text")
    await page.type(text + ENTER)


@pytest.mark.long
async def test_the_main_way(server: Server, tmp_path: Path) -> None:
    """U3, U4: with real keys and clicks; no script of the page complains."""
    async with firefox(tmp_path / "profile") as page:
        await page.open(await server.new_link())
        await page.sees("New conversation")
        await say(page, "hello")
        await page.sees("How can I help?")
        await say(page, "note")
        await page.sees("May note run")
        await page.click("allow")
        await page.sees("The note is written.")
        await say(page, "markdown")
        await page.sees("A heading")
        assert await page.evaluate("document.querySelectorAll('.markdown table').length") == 1
        await page.finds(".katex")
        await page.reload()
        await page.sees("The note is written.")
        await page.sees("A heading")
        await page.click("open-settings")
        await page.sees("Settings")
        assert page.complaints == []
