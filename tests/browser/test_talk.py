"""Check sending, streaming, stopping, versions and branches, and that a message stays in its conversation."""

from __future__ import annotations

import asyncio
import re
from functools import partial
from typing import Any

import pytest
from playwright.async_api import Browser, FilePayload, Route, expect

from tests.browser.plays import LONG, TORN
from tests.browser.stage import MARKS, Person, Server, at_the_page, new_context, signed_in

pytestmark = MARKS


async def test_what_comes_before_the_first_key_is_at_most_90_kb(browser: Browser, server: Server) -> None:
    """The limit covers everything that the browser receives, headers included. The rest loads on
    demand (U3)."""
    received: dict[str, float] = {}

    def note(loaded: dict[str, Any]) -> None:
        received[loaded["requestId"]] = loaded["encodedDataLength"]

    context = await new_context(browser)
    page = await context.new_page()
    network = await context.new_cdp_session(page)
    await network.send("Network.enable")
    network.on("Network.loadingFinished", note)
    async with signed_in(page, server) as person:
        await expect(person.by("composer-text")).to_be_focused()
        before = -1
        while before < len(received):  # nothing more came in half a second
            before = len(received)
            await asyncio.sleep(0.5)
    await context.close()
    assert len(received) > 10
    assert sum(received.values()) < 90_000


async def test_an_answer_streams_in_and_is_stopped_by_a_click_or_a_key_and_up_edits(person: Person) -> None:
    """The streamed text stays when the answer is stopped (T6)."""
    await person.say("slow")
    await person.sees("word word")
    await expect(person.by("stop")).to_be_visible()
    first = len(await person.answer.inner_text())
    await person.page.wait_for_function(
        "n => document.querySelectorAll('[data-testid=answer]')[0].innerText.length > n", arg=first
    )
    await person.by("stop").click()
    await expect(person.by("stopped")).to_be_visible()
    await expect(person.by("composer-text")).to_be_focused()  # the button is gone
    await person.say("slow")
    await expect(person.by("answer")).to_have_count(2)
    await person.sees("word word")
    await person.page.keyboard.press("Escape")
    await expect(person.by("stopped")).to_have_count(2)
    await expect(person.by("stop")).to_be_hidden()  # the turn is over a moment after its answer
    await person.by("rerun").last.click()
    await person.by("rerun-same").click()
    await expect(person.by("versions")).to_contain_text("2/2")
    # the previous version is visible while another one is written
    await person.by("compare-versions").click()
    await expect(person.by("compared").first).to_contain_text("word word")
    await person.page.keyboard.press("Escape")
    await person.by("stop").click()
    await expect(person.by("stop")).to_be_hidden()
    await person.by("composer-text").focus()
    await person.page.keyboard.press("ArrowUp")
    field = person.page.locator("[data-testid=message] textarea")
    await expect(field).to_be_focused()
    await expect(field).to_have_value("slow")
    await field.fill("hello")
    await person.by("edit-send").click()
    await person.sees("How can I help?")


@pytest.mark.long
async def test_what_arrived_is_not_given_back_where_its_answer_was_lost(person: Person) -> None:
    """The message would otherwise be sent twice (U2)."""

    async def lose(route: Route) -> None:
        await route.fetch()
        await route.abort()

    await person.say("hello")
    await person.sees("Hello")
    await person.page.route("**/turns", lose, times=1)
    await person.say("hello again")
    await expect(person.by("message")).to_have_count(2)
    await expect(person.by("composer-text")).to_have_value("")
    await expect(person.by("toast")).to_have_count(0)


async def test_a_turn_that_failed_says_so_under_what_was_said_last(person: Person) -> None:
    """T8 × T13: with a way to try again, also after a reload."""
    TORN.clear()
    await person.say("torn")
    await person.sees("Half of it")
    await person.say("hello", steer=True)
    await expect(person.by("steering")).to_have_count(1)
    TORN.set()
    for reloaded in (False, True):
        if reloaded:
            await person.page.reload()
        await expect(person.by("message")).to_have_count(2)
        await expect(person.by("answer")).to_have_count(2)
        await expect(person.answer.get_by_test_id("error")).to_be_visible()
        await expect(person.by("retry")).to_have_count(1)
    button = await person.by("retry").bounding_box()
    assert button
    assert button["height"] < 40
    await person.by("retry").click()
    await person.sees("How can I help?")


@pytest.mark.long
async def test_a_request_that_is_tried_again_tells_when_and_why(person: Person) -> None:
    """A client that connects during the wait sees it too, and can stop the turn (R6)."""
    await person.say("hello")
    await person.sees("How can I help?")
    await person.say("busy")
    words = re.compile(r"Trying again in \d+ s: .*too many people ask")
    await expect(person.by("retrying")).to_have_text(words, timeout=60_000)
    await person.page.reload()
    await expect(person.by("retrying")).to_have_text(re.compile("Trying again: .*too many people ask"))
    await person.by("stop").click()
    await expect(person.by("turn-state")).to_have_count(0, timeout=60_000)


@pytest.mark.long
async def test_thoughts_are_folded(person: Person) -> None:
    """W4"""
    await person.say("think")
    await person.sees("I have thought about it.")
    await expect(person.by("reasoning")).to_be_visible()
    await expect(person.page.get_by_text("The person wants me to think.")).to_be_hidden()
    await person.by("reasoning").get_by_role("button").first.click()
    await expect(person.page.get_by_text("The person wants me to think.")).to_be_visible()


@pytest.mark.long
async def test_a_reload_in_the_middle_of_a_stream_loses_and_doubles_nothing(person: Person) -> None:
    """E2"""
    await person.say("long")
    await person.sees("Paragraph 3")
    await person.page.reload()
    await person.sees("Paragraph 19")
    await expect(person.by("stop")).to_be_hidden(timeout=60_000)
    shown = await person.answer.inner_text()
    assert [int(n) for n in re.findall(r"Paragraph (\d+)", shown)] == list(range(LONG.count("Paragraph")))


@pytest.mark.long
async def test_two_tabs_show_the_same(person: Person) -> None:
    """E2"""
    await person.say("hello")
    await person.sees("How can I help?")
    other = await person.page.context.new_page()
    await other.goto(person.page.url)
    tab = Person(other, person.server)
    await tab.sees("How can I help?")
    await tab.say("think")
    await person.sees("I have thought about it.")


async def test_an_answer_is_run_again_and_both_versions_stay_and_a_fork_is_another_conversation(
    person: Person,
) -> None:
    """T10, S1"""
    await person.say("hello")
    await person.sees("How can I help?")
    await person.answer.hover()
    await person.by("rerun").last.click()
    await person.by("rerun-same").click()
    await expect(person.by("versions").last).to_contain_text("2/2", timeout=60_000)
    # the pressed button disappeared with the previous version
    await expect(person.by("composer-text")).to_be_focused()
    await person.by("versions").last.get_by_role("button").first.click()
    await expect(person.by("versions").last).to_contain_text("1/2")
    await person.by("compare-versions").last.click()
    await expect(person.by("compared")).to_have_count(2)
    for side in await person.by("compared").all():
        await expect(side).to_contain_text("How can I help?")
        await expect(side).to_contain_text("stage/model")
    await person.page.keyboard.press("Escape")
    before = person.page.url
    await person.answer.hover()
    await person.by("fork").last.click()
    await person.page.wait_for_url(lambda url: url != before)
    await person.sees("How can I help?")


@pytest.mark.long
async def test_what_was_said_is_edited_and_the_old_version_stays(person: Person) -> None:
    """T10"""
    await person.say("hello")
    await person.sees("How can I help?")
    await person.by("message").first.hover()
    await person.by("edit").first.click()
    await person.page.locator("[data-testid=message] textarea").fill("think")
    await person.by("edit-send").click()
    await person.sees("I have thought about it.")
    await expect(person.by("versions").first).to_contain_text("2/2")
    await expect(person.by("composer-text")).to_be_focused()
    await person.by("versions").first.get_by_role("button").first.press("Enter")
    await person.sees("How can I help?")
    await expect(person.by("versions").first.get_by_role("button").last).to_be_focused()  # the first is off
    await person.by("edit").first.press("Enter")
    await person.page.locator("[data-testid=message] textarea").press("Escape")
    await expect(person.by("edit").first).to_be_focused()


@pytest.mark.long
async def test_a_message_waits_for_a_running_turn_which_is_steered_and_stopped(person: Person) -> None:
    """The running tool is stopped, and the steering message stays (T4, T13, T6)."""
    await person.say("nap")
    await person.sees_call("running")
    id = person.page.url.rpartition("/")[2]
    send = """id => fetch(`/api/conversations/${id}/turns`, {method: "POST",
        headers: {"content-type": "application/json"}, body: '{"text":"think","queue":true}'})"""
    await person.page.evaluate(send, id)
    await person.by("stop").click()
    await person.sees("I have thought about it.")
    await person.say("nap")
    await expect(person.by("call")).to_have_count(2)
    await person.sees_call("running")
    await person.say("hurry up", steer=True)
    await person.by("stop").click()
    await person.sees_call("cancelled")
    await expect(person.by("messages").get_by_text("hurry up")).to_be_visible()


@pytest.mark.long
async def test_conversations_are_found_by_what_was_said(browser: Browser, server: Server) -> None:
    """S1"""
    async with at_the_page(browser, server) as person:
        await person.say("hello")
        await person.sees("How can I help?")
        id = person.page.url.rpartition("/")[2]
        row = person.page.locator(f"[data-testid=conversation][data-conversation='{id}']")
        await expect(row).to_be_visible()
        await person.by("search").fill("How can I help")
        await expect(row).to_be_visible()
        await person.by("search").fill("no such words anywhere")
        await expect(row).to_be_hidden()
        await person.by("search").fill("")
        await expect(row).to_be_visible()


@pytest.mark.long
async def test_an_attachment_goes_with_the_message(person: Person) -> None:
    """A user who removes an attachment by keyboard continues from the next one, or from the field (S4)."""
    note: FilePayload = {"name": "a.txt", "mimeType": "text/plain", "buffer": b"hello"}
    other: FilePayload = {"name": "b.txt", "mimeType": "text/plain", "buffer": b"bye"}
    await person.by("attach-file").set_input_files(files=[other, note])
    await person.page.get_by_role("button", name="Remove b.txt").press("Enter")
    await expect(person.page.get_by_role("button", name="Remove a.txt")).to_be_focused()
    await person.page.keyboard.press("Enter")
    await expect(person.by("composer-text")).to_be_focused()
    await person.by("attach-file").set_input_files(files=note)
    await expect(person.by("attachment").first).to_contain_text("a.txt")
    await person.say("hello")
    await person.sees("How can I help?")
    await expect(person.by("message").first).to_contain_text("a.txt")


@pytest.mark.long
async def test_however_much_is_attached_the_field_stays_in_view(person: Person) -> None:
    """S4"""
    await person.page.set_viewport_size({"width": 800, "height": 300})
    notes: list[FilePayload] = [
        {"name": f"{n}.txt", "mimeType": "text/plain", "buffer": b"hello"} for n in range(30)
    ]
    await person.by("attach-file").set_input_files(files=notes)
    await expect(person.by("attachment")).to_have_count(30)
    await expect(person.by("composer-text")).to_be_in_viewport()
    await expect(person.by("send")).to_be_in_viewport()


async def test_a_conversation_is_renamed_and_deleted(person: Person) -> None:
    """A deletion can be undone for a moment before the server receives it, and the keyboard focus stays (S1,
    U5)."""
    await person.say("hello")
    await person.sees("How can I help?")
    id = person.page.url.rpartition("/")[2]
    row = person.page.locator(f"[data-testid=conversation][data-conversation='{id}']")
    await row.hover()
    await row.get_by_test_id("conversation-menu").click()
    await person.by("rename").click()
    await row.get_by_role("textbox").fill("Greetings")
    await row.get_by_role("textbox").evaluate(  # an input method's own Escape takes nothing back
        """e => e.dispatchEvent(new KeyboardEvent("keydown", {key: "Escape", isComposing: true,
        bubbles: true}))"""
    )
    await row.get_by_role("textbox").press("Enter")
    await expect(row).to_contain_text("Greetings")
    await expect(row.get_by_role("link")).to_be_focused()
    await person.by("title").get_by_role("button").press("Enter")
    await person.page.locator("main header").get_by_role("textbox").fill("Regards")
    await person.page.keyboard.press("Enter")
    await expect(person.by("title").get_by_role("button")).to_be_focused()  # and not pressed by that Enter
    await expect(row).to_contain_text("Regards")
    async with person.page.expect_request_finished(lambda request: request.method == "DELETE"):
        for undo in (person.page.go_back, partial(person.page.keyboard.press, "Control+z"), None):
            await row.hover()
            await row.get_by_test_id("conversation-menu").click()
            await person.by("delete").click()
            await expect(row).to_have_count(0)
            if undo:
                await undo()  # a user who returns to it can send a message there
                await expect(row).to_be_visible()
        await person.page.keyboard.press("Control+k")
        await person.by("palette").get_by_role("combobox").fill("Regards")
        await expect(person.by("palette-none")).to_be_visible()
        await person.page.keyboard.press("Escape")
    assert (await person.told(f"/api/conversations/{id}"))["status"] == 404
