"""The inbox: everything that waits, of all conversations and tasks, in one list, answered by keys (P6)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.browser.stage import MARKS, Person, Server, at_the_page, staged
from tests.browser.test_setup import violations

pytestmark = MARKS


@pytest_asyncio.fixture(loop_scope="session")
async def alone(browser: Browser, tmp_path: Path) -> AsyncIterator[Person]:
    """Yield a user without waiting requests: on other stages, requests that other tests left open are
    waiting."""
    async with staged(tmp_path) as server, at_the_page(browser, server) as person:
        yield person


# The title of the list stays in place, so content under it cannot be read.
UNCOVERED = """item => { const head = item.closest("dialog").querySelector("header").getBoundingClientRect();
  return item.getBoundingClientRect().top >= head.bottom - 1 }"""


async def asked(person: Person, play: str) -> None:
    await person.page.goto(f"{person.server.url}/")
    await person.say(play)
    await expect(person.question).to_be_visible(timeout=60_000)


@pytest.mark.long
async def test_what_waits_is_counted_listed_and_answered_by_keys(alone: Person) -> None:
    """The keys j and k move, a allows, r rejects with a reason, and s rejects and stops. The arguments are
    visible there (P6)."""
    for play in ("note", "plan", "diary"):
        await asked(alone, play)
    await expect(alone.page).to_have_title(re.compile(r"^\(3\) "))
    await alone.page.set_viewport_size({"width": 1200, "height": 480})
    assert "data:image" in str(await alone.page.locator("link[rel~=icon]").get_attribute("href"))
    await alone.page.keyboard.press("Alt+i")
    items = alone.by("inbox-item")
    await expect(items).to_have_count(3)
    await expect(items.nth(0)).to_contain_text("buy milk")
    assert await items.nth(0).evaluate(UNCOVERED)
    await alone.page.keyboard.press("j")
    assert await items.nth(1).evaluate(UNCOVERED)
    await alone.page.keyboard.press("k")
    await alone.page.keyboard.press("j")
    await alone.page.keyboard.press("a")
    await expect(items).to_have_count(2, timeout=60_000)
    await expect(items.filter(has_text="work/plan")).to_have_count(0)
    await alone.page.keyboard.press("k")
    await alone.page.keyboard.press("r")
    await expect(alone.by("reason")).to_be_focused()
    await alone.page.keyboard.type("not today")
    await alone.page.keyboard.press("Enter")
    await expect(items).to_have_count(1, timeout=60_000)
    await expect(alone.page.locator("[data-fresh]")).to_have_count(0)
    await alone.page.keyboard.press("s")
    await expect(items).to_have_count(0, timeout=60_000)
    await expect(alone.by("inbox")).to_contain_text("Nothing waits for you.")
    await expect(alone.page).to_have_title(re.compile(r"^[^(]"))
    said = await alone.told("/api/questions")
    assert said["items"] == []


# As soon as a request is gone: the quickest possible second key.
AGAIN = """() => { const list = document.querySelector("[data-testid=inbox]");
  const count = () => list.querySelectorAll("[data-inbox]").length, before = count();
  const watch = new MutationObserver(() => { if (count() === before) return; watch.disconnect();
    window.dispatchEvent(new KeyboardEvent("keydown", {key: "a"})) });
  watch.observe(list, {childList: true, subtree: true}) }"""


@pytest.mark.long
async def test_the_one_after_an_answered_question_is_selected(alone: Person) -> None:
    """No skipped request is selected, and a quick second key answers nothing (P6)."""
    await asked(alone, "two")
    await asked(alone, "pair")
    await alone.page.keyboard.press("Alt+i")
    items = alone.by("inbox-item")
    await expect(items).to_have_count(4)
    ids = [str(await items.nth(n).get_attribute("data-inbox")) for n in range(4)]
    chosen = alone.page.locator("[data-chosen]")
    await expect(chosen).to_have_attribute("data-inbox", ids[0])
    await alone.page.keyboard.press("j")
    await alone.page.keyboard.press("j")
    await expect(chosen).to_have_attribute("data-inbox", ids[2])
    await alone.page.evaluate(AGAIN)
    await alone.page.keyboard.press("a")
    await expect(items).to_have_count(3, timeout=60_000)
    await expect(chosen).to_have_attribute("data-inbox", ids[3])
    await expect(alone.page.locator("[data-fresh]")).to_have_count(0)
    await alone.page.keyboard.press("a")
    await expect(chosen).to_have_attribute("data-inbox", ids[1])
    assert [item["id"] for item in (await alone.told("/api/questions"))["items"]] == ids[:2]


@pytest.mark.long
async def test_all_of_a_kind_are_answered_at_once(alone: Person) -> None:
    """Only requests that were on screen at that moment are answered, and the list of keys is always visible
    (P6)."""
    await asked(alone, "two")
    await expect(alone.by("open-inbox")).to_contain_text("2")
    await alone.page.set_viewport_size({"width": 1200, "height": 420})
    await alone.by("open-inbox").click()
    await expect(alone.page.get_by_text("open the conversation")).to_be_in_viewport()
    await alone.page.locator("[data-testid=inbox-kind][data-tool=note]").click()
    await alone.by("allow-all").click()
    await expect(alone.by("unseen")).to_have_text("One of them has not been on the screen yet.")
    await expect(alone.by("inbox-item")).to_have_count(2)
    await alone.by("allow-all").click()
    await expect(alone.by("inbox-item")).to_have_count(0, timeout=60_000)
    await alone.page.keyboard.press("Escape")
    await alone.sees("Both are written.")


@pytest.mark.long
async def test_a_question_of_a_conversation_that_is_not_in_the_list_is_told_of(alone: Person) -> None:
    """P6: however many are newer."""
    await asked(alone, "note")
    await alone.page.evaluate(
        """async () => { for (let n = 0; n < 65; n++) await fetch("/api/conversations", {method: "POST",
        body: "{}", headers: {"content-type": "application/json"}}) }"""
    )
    await alone.page.goto(f"{alone.server.url}/")
    await expect(alone.by("open-inbox")).to_contain_text("1", timeout=60_000)
    await expect(alone.page).to_have_title(re.compile(r"^\(1\)"))
    await alone.by("open-inbox").click()
    await expect(alone.by("inbox-item")).to_contain_text("buy milk")
    await alone.by("inbox-shown").get_by_role("link").click()
    await alone.by("allow").click()
    await alone.sees("The note is written.")


@pytest.mark.long
async def test_the_question_of_a_task_is_answered_in_its_card(alone: Person) -> None:
    """The calls of the task are visible there, and the turn shows that it is waiting (P6)."""
    await alone.say("task")
    card = alone.page.locator("[data-testid=call][data-tool=task]")
    question = card.get_by_test_id("sub").get_by_test_id("question")
    await expect(question).to_contain_text("buy milk", timeout=60_000)
    await expect(alone.by("turn-state")).to_contain_text("Waiting for you")
    await question.get_by_test_id("allow").click()
    await alone.sees("The helper is done.")
    await expect(alone.by("open-inbox")).to_have_count(0)
    assert await alone.told("/api/questions") == {"items": []}


async def test_a_question_is_reached_and_answered_from_the_message_field(
    server: Server, person: Person
) -> None:
    """The keys are up and then a letter, and typed text can be the reason (U3)."""
    await person.say("note")
    await expect(person.question).to_be_visible(timeout=60_000)
    await person.by("composer-text").focus()
    await person.page.keyboard.press("ArrowUp")
    await expect(person.question).to_be_focused()
    await person.page.keyboard.press("a")
    await person.sees("The note is written.")
    await person.say("note")
    await expect(person.question).to_be_visible(timeout=60_000)
    await person.question.locator("p").first.click()
    await person.page.keyboard.press("a")  # a user who clicked there can intend to type elsewhere
    await expect(person.question).to_be_visible()
    await person.by("composer-text").fill("use the other list")
    await person.by("reject-saying").click()
    await person.sees_call("rejected")
    id = await person.call.get_attribute("data-call")
    assert "use the other list" in (await person.told(f"/api/calls/{id}"))["result"]["text"]
    await expect(person.by("composer-text")).to_have_value("")


@pytest.mark.long
async def test_keys_are_told_where_there_are_some(alone: Person, browser: Browser) -> None:
    """P6: on a phone the first question comes first."""
    await asked(alone, "note")
    await alone.page.keyboard.press("Alt+i")
    await expect(alone.by("inbox-keys")).to_be_visible()
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    async with at_the_page(browser, alone.server, **phone) as other:
        await other.page.keyboard.press("Alt+i")
        await expect(other.by("inbox-item")).to_have_count(1, timeout=60_000)
        await expect(other.by("inbox-keys")).to_be_hidden()
        await expect(other.by("question")).to_be_hidden()
        await other.by("inbox-item").click()
        await expect(other.by("inbox-item")).to_be_hidden()
        assert await violations(other, "inbox") == []
        await other.by("inbox-back").click()
        await expect(other.by("inbox-item")).to_be_focused()
        await other.by("inbox-item").click()
        await other.by("allow").click()
        await expect(other.by("inbox")).to_contain_text("Nothing waits for you.", timeout=60_000)


@pytest.mark.long
async def test_a_change_loads_what_waits_in_its_conversation_alone(alone: Person) -> None:
    """P6: the whole list comes in chunks, once. The header leads to it without the sidebar."""
    await asked(alone, "two")
    await alone.page.keyboard.press("Control+b")
    asked_for: list[str] = []
    alone.page.on("request", lambda sent: asked_for.append(sent.url))
    await alone.page.evaluate(
        """async () => { const headers = {"content-type": "application/json"};
        const post = (path, body) => fetch(path, {method: "POST", body: JSON.stringify(body), headers});
        const { id } = await (await post("/api/conversations", {})).json();
        await post(`/api/conversations/${id}/turns`, {text: "plan"}) }"""
    )
    await expect(alone.by("header-inbox")).to_have_text("3", timeout=60_000)
    loads = [url for url in asked_for if "/api/questions?" in url]
    assert loads
    assert all("conversation=" in url for url in loads), loads
    pages = [await alone.told("/api/questions?limit=2")]
    pages.append(await alone.told(f"/api/questions?limit=2&after={pages[0]['items'][-1]['id']}"))
    assert [len(page["items"]) for page in pages] == [2, 1]
    await alone.by("header-inbox").click()
    await expect(alone.by("inbox-item")).to_have_count(3)
    assert await violations(alone, "inbox") == []
