"""Kill and restart the server, and check that the web UI recovers by itself (S3, E2, P6)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.browser.plays import LONG
from tests.browser.stage import MARKS, Person, Server, at_the_page, staged

pytestmark = MARKS


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def second(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    async with staged(tmp_path_factory.mktemp("mortal")) as server:
        yield server


@pytest_asyncio.fixture(loop_scope="session")
async def mortal(second: Server) -> Server:
    """Yield a server for users with separate browsers, or for tests that change its settings."""
    if not second.is_alive:
        await second.start()
    return second


HEIGHTS = """() => {
  window.heights = [];
  const banner = () => document.querySelector("[data-testid=reconnecting]");
  const note = () => { if (banner()) window.heights.push(banner().offsetHeight) };
  new MutationObserver(note).observe(document.body, {childList: true, subtree: true});
}"""


@asynccontextmanager
async def unloadable(person: Person, piece: str) -> AsyncIterator[None]:
    """A piece of the page that the browser has not kept."""
    pattern = f"**/assets/{piece}*"
    await person.page.route(pattern, lambda route: route.abort())
    yield
    await person.page.unroute(pattern)


async def test_a_stream_goes_on_after_the_server_was_killed(person: Person) -> None:
    """The interrupted step is requested again, and nothing appears twice (S3)."""
    await person.say("long")
    await person.sees("Paragraph 2")
    await person.page.evaluate(HEIGHTS)
    await person.server.kill()
    await expect(person.by("reconnecting")).to_be_visible(timeout=60_000)
    # content that returns immediately moves nothing
    assert await person.page.evaluate("window.heights[0]") == 0
    async with unloadable(person, "SaidEditor"):
        await person.by("message").hover()
        await person.by("edit").click()
        await expect(person.by("toast")).to_contain_text("does not answer")
    await person.server.start()
    await expect(person.by("edit-send")).to_be_visible()  # the page requests again what it could not load
    await expect(person.answer).to_contain_text("Paragraph 19", timeout=60_000)
    await expect(person.by("stop")).to_be_hidden(timeout=60_000)
    shown = await person.answer.inner_text()
    found = [int(n) for n in re.findall(r"Paragraph (\d+)", shown)]
    assert found == list(range(LONG.count("Paragraph")))


async def test_a_dialog_that_could_not_be_loaded_is_opened_by_another_click(person: Person) -> None:
    """U3"""
    async with unloadable(person, "FilesDialog"):
        for _ in range(2):
            await person.by("open-files").click()
        await expect(person.by("toast")).to_contain_text("newer version")
        await expect(person.by("toast")).to_have_count(1)
    await person.by("open-files").click()
    await expect(person.by("files")).to_be_visible()


async def test_a_question_is_still_there_after_the_server_was_killed(person: Person) -> None:
    """P6"""
    await person.say("note")
    await expect(person.question).to_be_visible()
    await person.by("open-settings").click()
    for tab in ("permissions", "help"):
        await person.by(f"tab-{tab}").click()
    await expect(person.by("grants")).to_be_hidden()
    await person.server.kill()
    await person.by("tab-permissions").click()
    await expect(person.by("toast")).to_contain_text("does not answer")
    await expect(person.by("grants")).to_be_hidden()  # the page cannot know that there are none
    await person.server.start()
    await expect(person.by("grants")).to_be_visible()
    await person.page.keyboard.press("Escape")
    await expect(person.by("question")).to_have_count(1)
    await person.by("allow").click()
    await person.sees("The note is written.")


@pytest.mark.long
async def test_a_call_that_ran_when_the_server_was_killed_is_marked(browser: Browser, mortal: Server) -> None:
    """The server cannot know how far the call got, and it does not repeat the call by itself (S3)."""
    async with at_the_page(browser, mortal) as person:
        await person.say("nap")
        await person.sees_call("running")
        await mortal.kill()
        await mortal.start()
        await expect(person.call).to_have_attribute("data-state", "interrupted", timeout=60_000)
        await person.sees("I have slept.")


@pytest.mark.long
async def test_an_orderly_stop_stores_what_runs_and_the_next_start_goes_on(
    browser: Browser, mortal: Server
) -> None:
    """S3"""
    async with at_the_page(browser, mortal) as person:
        await person.say("long")
        await person.sees("Paragraph 2")
        said = await mortal.stop()
        assert mortal.process is not None
        assert mortal.process.exitcode == 0
        assert "Traceback" not in said
        await mortal.start()
        await expect(person.answer).to_contain_text("Paragraph 19", timeout=60_000)


@pytest.mark.long
async def test_a_sign_in_holds_after_a_restart(browser: Browser, mortal: Server) -> None:
    """U2"""
    async with at_the_page(browser, mortal) as person:
        await mortal.kill()
        await mortal.start()
        await expect(person.by("reconnecting")).to_be_hidden(timeout=60_000)
        await person.page.goto(mortal.url)
        await expect(person.by("composer-text")).to_be_visible()
        stranger = Person(await (await browser.new_context()).new_page(), mortal)
        await stranger.page.goto(mortal.url)
        await expect(stranger.page.get_by_role("main").get_by_test_id("sign-in")).to_be_visible()
        await stranger.page.context.close()
        await person.say("hello")
        await person.sees("How can I help?")
        tab = Person(await person.page.context.new_page(), mortal)
        await tab.page.goto(person.page.url)
        await tab.by("composer-text").fill("nobody else's")
        await person.by("header-menu").click()
        await person.page.get_by_role("menuitem", name="Delete").click()
        await person.by("open-settings").first.click()
        async with person.page.expect_request_finished(lambda request: request.method == "DELETE") as deleted:
            await person.by("sign-out").click()
        assert (response := await (await deleted.value).response())
        assert response.status == 204  # a conversation that was just deleted is gone, too
        for one in (person, tab):
            await expect(one.by("sign-in")).to_be_visible()
        assert "nobody else's" not in await tab.page.evaluate("JSON.stringify(sessionStorage)")
        await person.page.reload()
        await expect(person.by("sign-in")).to_be_visible()
        async with unloadable(person, "SignIn"):
            await person.page.reload()
            await expect(person.by("toast")).to_contain_text("newer version")


@pytest.mark.long
async def test_who_is_not_signed_in_any_more_is_told_when_the_connection_was_lost(
    browser: Browser, mortal: Server
) -> None:
    """An idle page sends no requests, and would otherwise show its last state forever (U2)."""
    async with at_the_page(browser, mortal) as person:
        await person.page.context.clear_cookies()
        await mortal.kill()
        await mortal.start()
        await expect(person.by("sign-in")).to_be_visible()


@pytest.mark.long
async def test_a_turn_that_nobody_can_go_on_with_is_shown_and_closed(
    browser: Browser, mortal: Server
) -> None:
    """The model no longer exists, and no other model answers in its place (T14)."""
    config = mortal.config.read_text("utf-8")
    async with at_the_page(browser, mortal) as person:
        await person.say("long")
        await person.sees("Paragraph 2")
        await mortal.kill()
        mortal.config.write_text(config.replace("stage", "scene"), "utf-8")
        await mortal.start()
        await expect(person.by("interrupted")).to_be_visible(timeout=60_000)
        await person.by("continue-turn").click()
        await expect(person.by("toast")).to_contain_text("Unknown provider 'stage'")
        await person.by("close-turn").click()
        await expect(person.by("interrupted")).to_be_hidden(timeout=60_000)
        await expect(person.by("answer")).to_have_count(0)
        await person.say("and again")  # the branch is free
        await person.sees("Paragraph 19")
    await mortal.stop()
    mortal.config.write_text(config, "utf-8")
