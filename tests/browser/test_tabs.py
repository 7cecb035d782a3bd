"""Check that text and reading position survive two tabs, a slow network and navigation (S2, T13, E2)."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import Route, expect

from tests.browser.stage import MARKS, Person
from tests.browser.test_finding import bring
from tests.browser.test_queue import queue

pytestmark = MARKS


# A hidden tab and its notifications.
HIDDEN = """
window.told = [];
window.Notification = class extends EventTarget {
  static permission = "granted";
  constructor(words) { super(); told.push(words); }
  close() {}
};
Object.defineProperty(document, "visibilityState", {get: () => "hidden"});
const kept = JSON.parse(localStorage.getItem("dragoman.settings") ?? "{}");
localStorage.setItem("dragoman.settings", JSON.stringify({...kept, notify: true}));
"""


async def another_tab(person: Person) -> Person:
    tab = Person(await person.page.context.new_page(), person.server)
    await tab.page.goto(person.page.url)
    await expect(tab.by("composer-text")).to_be_visible()
    return tab


@pytest.mark.long
async def test_what_is_edited_in_the_queue_is_not_lost_when_its_turn_begins(person: Person) -> None:
    """T13: also not where one looks at another conversation."""
    await person.say("note")
    await expect(person.question).to_be_visible()
    await queue(person, "later")
    await person.by("edit-queued").click()
    await person.by("queued-text").fill("later, and more")
    await person.by("new-conversation").click()
    await expect(person.by("welcome")).to_be_visible()
    await person.page.go_back()
    await expect(person.by("queued-text")).to_have_value("later, and more")
    await (await another_tab(person)).by("allow").click()
    await person.sees("You said: later")
    await expect(person.by("composer-text")).to_have_value("later, and more")


@pytest.mark.long
async def test_what_is_edited_in_the_queue_stays_open_when_another_one_is_kept(person: Person) -> None:
    """T13: the answer comes late."""
    go = asyncio.Event()

    async def hold(route: Route) -> None:
        await go.wait()
        await route.continue_()

    await person.page.route("**/api/turns/*", hold)
    await person.say("note")
    await expect(person.question).to_be_visible()
    for text in ("first", "second"):
        await queue(person, text)
    await person.by("edit-queued").first.click()
    await person.by("queued-text").fill("changed")
    await person.by("queued-text").press("Enter")
    await person.by("edit-queued").last.click()
    await person.by("queued-text").fill("second, and more")
    async with person.page.expect_request_finished(lambda request: request.method == "PATCH"):
        go.set()
    await person.told("/api/me")  # by then the page has read the answer
    await expect(person.by("queued").first).to_contain_text("changed")
    await expect(person.by("queued-text")).to_have_value("second, and more")


@pytest.mark.long
async def test_what_was_being_written_outlives_its_conversation(person: Person) -> None:
    """Another tab deletes it, and the page receives the event or finds it gone at its next request (S2)."""
    await person.say("hello")
    await person.sees("How can I help?")
    await person.by("composer-text").fill("and another thing")
    tab = await another_tab(person)
    id = person.page.url.rpartition("/")[2]
    await tab.page.evaluate(
        """id => fetch(`/api/conversations/${id}`, {method: "DELETE", body: "{}",
        headers: {"content-type": "application/json"}})""",
        id,
    )
    told = person.page.get_by_text("This conversation is not here")
    await expect(told).to_be_visible()
    if await person.by("gone-new").is_visible():
        await person.by("gone-new").click()
    await expect(person.by("welcome")).to_be_visible()
    await expect(person.by("composer-text")).to_have_value("and another thing")


@pytest.mark.long
async def test_what_is_typed_and_attached_meanwhile_is_there_when_the_network_is_slow(person: Person) -> None:
    """This holds while a conversation is created, and while a file uploads and the user is elsewhere (S2)."""
    go = asyncio.Event()

    async def hold(route: Route) -> None:
        await go.wait()
        await route.continue_()

    await person.page.route("**/api/conversations", hold)
    await person.say("hello")
    await person.by("composer-text").press_sequentially("and then")
    leave = "dispatchEvent(new Event('beforeunload', {cancelable: true}))"
    assert not await person.page.evaluate(leave)  # a reload now asks for confirmation
    go.set()
    await person.sees("How can I help?")
    await expect(person.by("send")).to_be_enabled()
    assert await person.page.evaluate(leave)
    await expect(person.by("composer-text")).to_have_value("and then")
    go.clear()
    await person.page.route("**/api/files?*", hold)
    file = {"name": "list.txt", "mimeType": "text/plain", "buffer": b"milk"}
    await person.by("attach-file").set_input_files(file)  # type: ignore[arg-type]
    await expect(person.by("attachment")).to_be_visible()
    await person.by("new-conversation").click()
    await expect(person.by("welcome")).to_be_visible()
    await expect(person.by("composer-text")).to_have_value("")
    go.set()
    await person.page.go_back()
    await expect(person.by("attachment")).to_contain_text("list.txt")
    await expect(person.by("composer-text")).to_have_value("and then")
    await expect(person.by("send")).to_be_enabled()


@pytest.mark.long
async def test_a_reader_stays_where_they_read(person: Person) -> None:
    """Another tab sends a message, and this one shows another version (E2)."""
    id = await bring(person, 20)
    await person.page.goto(f"{person.server.url}/c/{id}")
    await expect(person.page.get_by_text("Message 19.")).to_be_in_viewport()
    tab = await another_tab(person)
    await person.page.mouse.move(700, 300)
    await person.page.mouse.wheel(0, -10_000)
    await expect(person.page.get_by_text("Message 0.")).to_be_in_viewport()
    await tab.say("hello")
    await tab.sees("How can I help?")
    await person.sees("How can I help?")
    await expect(person.page.get_by_text("Message 0.")).to_be_in_viewport()
    await person.by("edit").first.click()
    await person.page.locator("[data-testid=message] textarea").fill("think")
    await person.by("edit-send").click()
    await person.sees("I have thought about it.")
    await person.by("versions").first.get_by_role("button").first.click()
    await person.sees("How can I help?")
    await expect(person.by("versions").first).to_be_in_viewport()
    await person.say("hello")  # a user who sends a message wants to see the result
    await expect(person.by("message").last).to_be_in_viewport()


@pytest.mark.long
async def test_an_answer_and_a_setting_hold_in_every_tab_and_none_undoes_anothers(person: Person) -> None:
    """This matters most for what can run without a click (P6, P3)."""
    await person.say("note")
    await expect(person.question).to_be_visible(timeout=60_000)
    tab = await another_tab(person)
    await expect(tab.question).to_be_visible(timeout=60_000)
    await person.by("allow").click()
    await expect(tab.by("question")).to_have_count(0, timeout=60_000)
    await tab.sees("The note is written.")
    await person.by("open-settings").click()
    await person.by("settings").get_by_text("Dark", exact=True).click()
    await expect(tab.page.locator("html")).to_have_attribute("data-theme", "dark")
    await tab.page.keyboard.press("Control+b")
    await expect(person.by("sidebar")).to_be_hidden()
    await expect(person.page.locator("html")).to_have_attribute("data-theme", "dark")
    kept = await tab.page.evaluate("JSON.parse(localStorage['dragoman.settings'])")
    assert (kept["theme"], kept["sidebar"]) == ("dark", False)


@pytest.mark.long
async def test_the_branch_that_was_chosen_last_is_shown_whatever_answer_comes_last(person: Person) -> None:
    """A user who continues there must not answer a message that is not shown (T10)."""
    await person.say("hello")
    await person.sees("How can I help?")
    shown = person.by("versions")
    for count in (2, 3):
        await person.by("rerun").last.click()
        await person.by("rerun-same").click()
        await expect(shown).to_contain_text(f"{count}/{count}")
        await expect(person.by("stop")).to_be_hidden()
    late = asyncio.Event()

    async def hold(route: Route) -> None:
        answer = await route.fetch()
        await late.wait()
        await route.fulfill(response=answer)

    await person.page.route("**/api/conversations/conv_*", hold, times=1)
    await shown.get_by_role("button").first.click()
    await expect(shown).to_contain_text("2/3")  # the stream has told of it
    await shown.get_by_role("button").first.click()
    await expect(shown).to_contain_text("1/3")
    async with person.page.expect_request_finished(lambda request: request.method == "PATCH"):
        late.set()
    await person.told("/api/me")  # by then the page has read the answer
    await expect(shown).to_contain_text("1/3")


async def test_what_two_tabs_send_at_the_same_time_queues_and_an_end_is_notified(person: Person) -> None:
    """The second message causes no error, and a notification reports the end while the tab is hidden (T4,
    T13)."""
    await person.say("hello")
    await person.sees("How can I help?")
    tab = Person(await person.page.context.new_page(), person.server)
    await tab.page.add_init_script(HIDDEN)
    await tab.page.goto(person.page.url)
    await expect(tab.by("composer-text")).to_be_visible()
    both = asyncio.Barrier(2)

    async def together(route: Route) -> None:
        if "queue" not in (route.request.post_data or ""):
            await both.wait()
        await route.continue_()

    for one in (person, tab):
        await one.page.route("**/turns", together)
    await asyncio.gather(person.say("add"), tab.say("think"))
    for words in ("It is 5.", "I have thought about it."):
        await expect(person.by("answer").filter(has_text=words)).to_have_count(1)
    for one in (person, tab):
        await expect(one.by("toast")).to_have_count(0)
    await tab.until("() => told.length > 0")
    assert "A new answer is here." in await tab.page.evaluate("told")
