"""Check the main flows in Firefox: sign in, send, approve, read, review, preview, return."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.browser.firefox import FIREFOX, FirefoxPage, firefox
from tests.browser.stage import MARKS, Server
from tests.patience import eventually

pytestmark = [
    *MARKS[:2],
    pytest.mark.skipif(FIREFOX is None, reason="no Firefox here: as root, `make test` installs it"),
]
ENTER = "\ue007"
ESCAPE = "\ue00c"


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def window(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[FirefoxPage]:
    """One Firefox for all: it takes seconds to start."""
    async with firefox(tmp_path_factory.mktemp("firefox") / "profile") as page:
        yield page


@pytest_asyncio.fixture(loop_scope="session")
async def page(window: FirefoxPage, server: Server) -> AsyncIterator[FirefoxPage]:
    await window.open(await server.new_link())
    await window.sees("New conversation")
    yield window
    complaints, window.complaints = window.complaints, []
    assert complaints == []


async def say(page: FirefoxPage, text: str) -> None:
    await page.click("composer-text")
    await page.type(text + ENTER)


@pytest.mark.long
async def test_the_main_way(page: FirefoxPage) -> None:
    """The test uses real keys and clicks, and no script of the page reports an error (U3, U4)."""
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


async def test_a_call_is_edited_and_another_rejected_with_a_reason(page: FirefoxPage) -> None:
    """P3, U3"""
    await say(page, "note")
    await page.click("edit-arguments")
    await page.soon("document.activeElement.matches('[data-testid=value-editor] textarea')")
    await page.type("Do not ")
    await page.click("allow")
    await page.sees("The note is written.")
    await page.sees("Do not")  # next to the tool, as one of its arguments
    await say(page, "mail")
    await page.click("reject-with")
    await page.type("not today" + ENTER)
    await page.finds("[data-testid=call][data-tool=send_mail][data-state=rejected]")


async def test_a_change_is_reviewed_and_undone_and_a_page_is_previewed(
    page: FirefoxPage, server: Server
) -> None:
    """B3, U3"""
    file = server.config.with_name("chart.html")
    file.unlink(missing_ok=True)
    await say(page, "chart")
    await page.click("allow")
    await eventually(file.exists)
    await page.finds("[data-testid=call][data-tool=write_file][data-state=completed]")  # its button is gone
    await page.click("allow")
    await page.sees("Drawn.")
    await page.click("open-preview")
    await page.sees_inside("/preview", "Second chart, drawn by a script")
    await page.click("close-preview")
    await page.click("review-changes")
    await page.finds("[data-testid=changes] [data-testid=file-diff]")
    await page.type(ESCAPE)
    await page.click("revert")
    await eventually(lambda: not file.exists())


async def test_an_answer_resumes_after_a_reload_and_the_inbox_answers(
    page: FirefoxPage, tmp_path: Path
) -> None:
    """A file is attached, a stream resumes after a reload, and keys answer an approval request (U4, P6)."""
    note = tmp_path / "a.txt"
    note.write_text("hello")
    await page.attach("attach-file", note)
    await page.finds("[data-testid=attachment]")
    await page.finds("[data-testid=send]:not([disabled])")
    await say(page, "slow")
    await page.sees("word word word")
    await page.reload()
    await page.sees("a.txt")
    before = await page.evaluate("document.querySelector('[data-testid=answer]').innerText.length")
    await page.soon(f"document.querySelector('[data-testid=answer]')?.innerText.length > {before}")
    await page.click("stop")
    await page.finds("[data-testid=stopped]")
    await page.click("new-conversation")
    await say(page, "plan")
    await page.click("open-inbox")
    await page.finds("[data-testid=inbox-item][data-chosen]:not([data-fresh])")
    await page.type("a")
    await page.sees("Nothing waits for you.")
    await page.type(ESCAPE)
    await page.sees("Planned.")
