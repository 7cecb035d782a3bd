"""Finding: conversations and messages by a word, models by name, commands by what they do."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, FilePayload, Route, expect

from tests.browser.stage import MARKS, Person, at_the_page, staged
from tests.browser.test_reading import long_conversation
from tests.browser.test_setup import violations

pytestmark = MARKS


async def bring(person: Person, messages: int) -> str:
    made = await person.page.evaluate(
        """data => fetch("/api/import", {method: "POST", body: data,
        headers: {"content-type": "application/json"}}).then(a => a.json())""",
        json.dumps(long_conversation(messages)),
    )
    return str(made["id"])


async def test_a_search_leads_to_the_message(person: Person) -> None:
    """A search by title or by words leads to the hit, and the hit is in view rather than the end (S1)."""
    id = await bring(person, 60)
    await person.page.reload()
    await person.by("search").fill("Message 20")
    row = person.page.locator(f"[data-testid=conversation][data-conversation='{id}']")
    await expect(row.locator("mark").first).to_be_visible()
    await row.get_by_role("link").click()
    messages = person.by("messages")
    await expect(messages.get_by_text("Message 20.")).to_be_in_viewport(timeout=60_000)
    await expect(messages.get_by_text("Message 59.")).not_to_be_in_viewport()
    await person.by("new-conversation").click()
    await expect(messages.get_by_text("Message 20.")).to_have_count(0)
    await row.get_by_role("link").click()  # news of it have come meanwhile, which know of no search
    await expect(messages.get_by_text("Message 20.")).to_be_in_viewport(timeout=60_000)
    await person.by("search").fill("Long")
    await expect(row).to_be_visible()


@pytest.mark.long
async def test_a_long_conversation_opens_at_its_end_with_what_is_seen(person: Person) -> None:
    """U3: the rest comes when one goes up."""
    id = await bring(person, 1000)
    await person.page.goto(f"{person.server.url}/c/{id}")
    await expect(person.page.get_by_text("Message 999.")).to_be_in_viewport(timeout=60_000)
    pane = person.by("messages")
    at_end = await pane.evaluate(
        """async e => {
          const far = () => e.scrollHeight - e.scrollTop - e.clientHeight;
          let frames = 0;  // in a row: while messages are measured the end moves, and is followed
          for (let tried = 0; tried < 3000 && frames < 20; tried++) {
            await new Promise(requestAnimationFrame);
            frames = far() < 2 ? frames + 1 : 0;
          }
          return frames;
        }"""
    )
    assert at_end == 20
    shown = await person.page.locator("[data-message]").count()
    assert shown <= 30
    await pane.evaluate("e => { e.scrollTop = 0 }")
    await expect(person.page.locator("[data-message]").nth(40)).to_be_attached(timeout=60_000)
    assert await pane.evaluate("e => e.scrollTop") > 0  # the reader's position is kept


@pytest.mark.long
async def test_what_grows_while_the_end_is_followed_does_not_take_the_reader_away_from_it(
    person: Person,
) -> None:
    """U3: the browser tells of a scroll a frame later, and by then there may be more below."""
    id = await bring(person, 100)
    await person.page.goto(f"{person.server.url}/c/{id}")
    await expect(person.page.get_by_text("Message 99.")).to_be_in_viewport(timeout=60_000)
    await person.by("messages").evaluate(
        """async e => {
          const added = document.createElement("p");
          added.textContent = "Added below.";
          added.style.height = "300px";
          e.append(added);
          await null;  // the page has followed it, and is not told of that yet
          added.style.height = "1500px";
          added.style.paddingTop = "1200px";
        }"""
    )
    await person.page.wait_for_function(
        "() => { const e = document.querySelector('[data-testid=messages]'); return e.scrollHeight - "
        "e.scrollTop - e.clientHeight < 2 }"
    )


@pytest.mark.long
async def test_a_model_is_found_named_and_kept_for_the_next_conversation(person: Person) -> None:
    """R1"""
    await person.by("model").click()
    await person.by("model-search").fill("stage")
    await expect(person.page.locator("[data-testid=model-choice][data-model='stage/model']")).to_be_visible()
    await person.by("model-search").fill("no such model")
    await expect(person.by("models")).to_contain_text("Nothing found.")
    await person.by("model-search").fill("stage/other")
    await person.page.keyboard.press("Enter")
    await expect(person.by("model")).to_contain_text("stage/other")
    await person.say("hello")
    await person.sees("stage/other")
    await person.by("new-conversation").click()
    await expect(person.by("model")).to_contain_text("stage/other")


@pytest.mark.long
async def test_a_setting_names_the_model_of_new_conversations(person: Person) -> None:
    """The setting holds whatever model was chosen last elsewhere, and after a reload. The chosen mode stays
    (R1)."""

    async def choose(name: str) -> None:
        await person.by("model").click()
        await person.by("model-search").fill(name)
        await person.page.keyboard.press("Enter")

    await person.by("mode").click()
    await person.by("mode-ask").click()
    await choose("stage/other")
    await expect(person.by("model")).to_contain_text("stage/other")
    await person.by("open-settings").click()
    await person.by("begins").select_option("stage/model")
    await person.page.keyboard.press("Escape")
    await expect(person.by("model")).not_to_contain_text("stage/other")
    await expect(person.by("mode")).to_contain_text("Ask")
    await person.say("hello")
    await person.sees("stage/model")
    await person.by("new-conversation").click()
    await person.page.reload()
    await expect(person.by("model")).to_contain_text("model")
    await expect(person.by("model")).not_to_contain_text("other")
    await person.by("open-settings").click()
    await expect(person.by("begins")).to_have_value("stage/model")
    await person.by("begins").select_option("last")
    await person.page.keyboard.press("Escape")
    await expect(person.by("model")).to_contain_text("stage/other")
    await person.by("mode").click()
    await person.by("mode-ask").click()
    await person.by("conversation").get_by_role("link").click()
    await person.sees("How can I help?")
    await choose("stage/model")
    await person.page.wait_for_function(
        "() => localStorage['dragoman.settings'].includes('\"model\":\"stage/model')"
    )
    await person.by("new-conversation").click()
    await expect(person.by("mode")).to_contain_text("Ask")
    await expect(person.by("model")).not_to_contain_text("other")  # that one was not chosen with the mode


@pytest.mark.long
async def test_commands_are_found_by_what_they_do(person: Person) -> None:
    await person.say("hello")
    await person.sees("How can I help?")
    for words, found in (
        ("theme", "light and dark"),
        ("language", "中文"),
        ("export", "Export as Markdown"),
        ("model", "Choose a model"),
        ("mode", "Mode: Ask"),
        ("trace", "Timeline"),
        ("mcp", "Set-up"),
    ):
        await person.page.keyboard.press("Control+k")
        await person.by("palette").get_by_role("combobox").fill(words)
        await expect(person.by("palette")).to_contain_text(found)
        await person.page.keyboard.press("Escape")
    await person.page.keyboard.press("Control+k")
    await person.by("palette").get_by_role("combobox").fill("zzzzzz")
    await expect(person.by("palette-none")).to_be_visible()


@pytest.mark.long
async def test_enter_opens_what_was_looked_for_however_late_it_is_found(person: Person) -> None:
    """U3"""
    keys, page = person.page.keyboard, person.page
    for words in ("a trip to Kyoto", "a trip to Lisbon"):
        await person.by("new-conversation").click()
        await person.say(words)
        await person.sees(f"You said: {words}")
    typed = asyncio.Event()

    async def late(route: Route) -> None:
        await typed.wait()
        await route.continue_()

    await page.route(re.compile("search=Kyoto"), late)
    await keys.press("Control+k")
    await person.by("palette").get_by_role("combobox").fill("Kyoto")
    await keys.press("Enter")
    typed.set()
    await person.sees("You said: a trip to Kyoto")

    await page.route(re.compile("search=Lisbon"), lambda route: route.abort())
    await keys.press("Control+k")
    await person.by("palette").get_by_role("combobox").fill("Lisbon")
    await expect(person.by("palette").get_by_role("alert")).to_contain_text("does not answer")
    await keys.press("Enter")  # opens no earlier hit
    await expect(person.by("palette")).to_be_visible()
    await keys.press("Escape")
    await page.unroute_all()

    await person.by("open-tools").click()  # those of this conversation
    await expect(page.locator("dialog[open]")).to_have_count(1)
    await page.go_back()
    await person.sees("You said: a trip to Lisbon")
    await expect(page.locator("dialog[open]")).to_have_count(0)
    await expect(person.by("composer-text")).to_be_focused()

    await person.by("search").fill("no such words" * 100)
    await expect(person.by("conversation")).to_have_count(0)
    await expect(person.by("toast")).to_have_count(0)


@pytest.mark.long
async def test_rules_are_listed_with_their_place_and_tried(person: Person) -> None:
    """P11"""
    await person.by("open-settings").first.click()
    await person.by("tab-permissions").click()
    await expect(person.by("rule-line").filter(has_text="nap for everything")).to_contain_text(
        "dragoman.toml:4", timeout=60_000
    )
    await person.by("try-permission").fill("nap")
    await person.by("try-rules").click()
    await expect(person.by("tried")).to_contain_text(re.compile("allowed.*nap for everything"))
    await person.by("try-permission").fill("notes.write")
    await person.by("try-rules").click()
    await expect(person.by("tried")).to_contain_text("no rule fits")
    await expect(person.by("tried")).to_be_in_viewport(ratio=1)
    await person.by("tab-help").click()  # the tab opens at its beginning
    await expect(person.page.get_by_role("tabpanel").get_by_role("heading").first).to_be_in_viewport()


@pytest.mark.long
async def test_a_rule_is_tried_given_and_taken_back(person: Person) -> None:
    """This works in the list of rules, without an approval request, and an unknown permission is reported
    (P11)."""
    await person.by("open-settings").first.click()
    await person.by("tab-permissions").click()
    await person.by("try-permission").fill("notes.wrote")
    await person.by("try-rules").click()
    await expect(person.by("no-such-permission")).to_be_visible()
    await person.by("try-permission").fill("notes.*")
    await person.by("try-rules").click()
    await expect(person.by("no-such-permission")).to_have_count(0)
    await person.by("give-allow").click()
    grant = person.by("grant").filter(has_text="allowed notes.* for everything")
    await expect(grant).to_contain_text("in the folder")
    await person.page.keyboard.press("Escape")
    await person.say("note")
    await person.sees("The note is written.")
    await expect(person.by("question")).to_have_count(0)
    await person.by("open-settings").first.click()
    await person.by("tab-permissions").click()
    await grant.get_by_test_id("revoke").click()
    await expect(grant).to_have_count(0)
    await person.page.keyboard.press("Escape")
    await person.say("note")
    await expect(person.question).to_be_visible()
    await person.by("reject").click()


@pytest.mark.long
async def test_tools_are_found_with_what_the_rules_say_of_them(person: Person) -> None:
    """The count excludes tools that are switched off for a conversation that has not begun (P11)."""
    await expect(person.by("open-tools")).to_contain_text(re.compile("[1-9]"))
    count = int((await person.by("open-tools").inner_text()).split()[0])
    await person.by("open-tools").click()
    await person.by("tools-filter").fill("nap")
    await expect(person.by("ruled")).to_have_count(1)
    await expect(person.by("ruled")).to_contain_text("allowed (dragoman.toml:4)")
    await person.by("tools-filter").fill("write a note")
    await expect(person.by("ruled")).to_have_text("asks first")
    await person.by("tools").get_by_role("checkbox").last.uncheck()
    await person.page.keyboard.press("Escape")
    await person.page.reload()
    await expect(person.by("open-tools")).to_have_text(f"{count - 1} tools")


@pytest.mark.long
async def test_an_export_is_named_after_its_conversation_and_a_wrong_file_is_told(person: Person) -> None:
    """S7"""
    await person.say("hello")
    await person.sees("How can I help?")
    await person.by("header-menu").click()
    async with person.page.expect_download() as download:
        await person.by("export-markdown").click()
    assert (await download.value).suggested_filename == "hello.md"
    wrong: FilePayload = {"name": "a.json", "mimeType": "application/json", "buffer": b"Some words"}
    await person.by("import-file").set_input_files(files=wrong)
    await expect(person.by("toast")).to_contain_text("is not an export of a conversation")


@pytest.mark.long
async def test_the_page_of_a_conversation_that_is_gone_leads_on(person: Person) -> None:
    await person.page.goto(f"{person.server.url}/c/conv_nowhere")
    await person.by("gone-new").click()
    await expect(person.by("welcome")).to_be_visible()
    await expect(person.by("examples").get_by_role("button").first).to_be_visible()
    await person.by("examples").get_by_role("button").first.click()
    await expect(person.by("composer-text")).not_to_have_value("")


@pytest.mark.long
async def test_conversations_are_pinned_tagged_and_put_away(person: Person) -> None:
    """The state survives a reload, and a message to an archived conversation unarchives it (S1)."""
    await person.say("hello")
    await person.sees("Hello! How can I help?")
    id = person.page.url.rpartition("/")[2]
    row = person.page.locator(f"[data-testid=conversation][data-conversation='{id}']")

    async def choose(entry: str) -> None:
        await row.hover()
        await row.get_by_test_id("conversation-menu").click()
        await person.by(entry).click()

    async def choose_above(entry: str) -> None:
        await person.by("header-menu").click()
        await person.by(entry).click()

    await choose_above("this-conversation")
    await expect(person.by("conversation-options")).to_be_visible()
    await person.page.keyboard.press("Escape")
    await choose("pin")
    await expect(person.by("conversation-list").locator("h3").first).to_have_text("Pinned")
    await choose_above("header-pin")
    await expect(person.by("conversation-list").locator("h3").first).not_to_have_text("Pinned")
    await choose_above("header-tags")
    await person.page.locator("main header").get_by_role("textbox").fill("away")
    await person.page.keyboard.press("Enter")
    await expect(row).to_contain_text("#away")
    await choose_above("header-archive")
    await expect(row).to_have_count(0)
    await choose_above("header-archive")
    await choose("pin")
    await choose("tags")
    await person.by("conversation-list").get_by_role("textbox").fill("work, at home")
    await person.page.keyboard.press("Enter")
    await expect(row).to_contain_text("#at home")
    await choose("archive")
    await expect(row).to_have_count(0)
    await person.by("toast").get_by_role("button", name="Undo").last.click()
    await expect(row).to_have_count(1)
    await choose("archive")
    await expect(person.by("take-out")).to_be_visible()
    await person.page.goto(person.server.url)  # at an address without other context
    await expect(person.by("filter").filter(has_text="#at home")).to_be_visible()
    await expect(row).to_have_count(0)
    await person.by("filter").filter(has_text="Archive").click()
    await row.get_by_role("link").click()
    await person.say("hello")
    await expect(row).to_have_count(0)  # it has left the archive
    await expect(person.by("take-out")).to_have_count(0)
    await person.by("leave-archive").click()
    await expect(person.by("in-archive")).to_have_count(0)
    await expect(row).to_contain_text("#work")
    await person.by("filter").filter(has_text="#work").click()
    await expect(row).to_have_count(1)


MANY = """async (count) => {
  const method = "POST", headers = {"content-type": "application/json"};
  for (let n = 0; n < count; n++)
    await fetch("/api/conversations", {method, headers, body: JSON.stringify({title: `number ${n}`})});
}"""
FOCUSED = "document.activeElement?.closest('[data-testid=conversation]')?.textContent.trim() ?? ''"


@pytest.mark.long
async def test_the_list_is_one_stop_of_the_tab_key_however_long_it_is(
    browser: Browser, tmp_path: Path
) -> None:
    """U3: arrows lead through it, Enter opens, an arrow to the side reaches the menu, Tab leaves."""
    async with staged(tmp_path) as server, at_the_page(browser, server) as person:
        keys, page = person.page.keyboard, person.page
        await page.evaluate(MANY, 150)
        await page.reload()
        rows = person.by("conversation")
        await expect(rows.first).to_contain_text("number 149")
        await person.by("search").focus()
        await keys.press("Tab")
        assert "number 149" in await page.evaluate(FOCUSED)
        await keys.press("ArrowDown")
        await keys.press("ArrowDown")
        assert "number 147" in await page.evaluate(FOCUSED)
        await keys.press("ArrowUp")
        await keys.press("ArrowRight")
        await expect(rows.nth(1).get_by_test_id("conversation-menu")).to_be_focused()
        await keys.press("Enter")
        await expect(page.get_by_role("menuitem").first).to_be_focused()
        assert await violations(person) == []
        await keys.press("Escape")
        await keys.press("ArrowLeft")
        await keys.press("End")
        assert await page.evaluate(FOCUSED) == (await rows.last.inner_text()).strip()
        await keys.press("Tab")
        assert await page.evaluate(FOCUSED) == ""  # it is past the list
        await keys.press("Shift+Tab")
        assert await page.evaluate(FOCUSED) == (await rows.last.inner_text()).strip()
        await keys.press("Home")
        await keys.press("ArrowDown")
        id = await rows.nth(1).get_attribute("data-conversation")
        await keys.press("Enter")
        await page.wait_for_url(f"**/c/{id}")
        await expect(rows.nth(1).get_by_role("link")).to_have_attribute("aria-current", "page")
        await expect(
            page.get_by_role("heading", name="What can I do for you?")
        ).to_be_visible()  # it is there
        assert await violations(person) == []


@pytest.mark.long
async def test_from_the_search_field_the_keyboard_leads_to_what_was_found(
    browser: Browser, tmp_path: Path
) -> None:
    """U3: an arrow goes to the first one, Enter opens it, also before the list has followed the words."""
    async with staged(tmp_path) as server, at_the_page(browser, server) as person:
        keys, page = person.page.keyboard, person.page
        await page.evaluate(MANY, 12)
        await page.reload()
        rows = person.by("conversation")
        await expect(rows).to_have_count(12)
        id = await rows.filter(has_text="number 7").get_attribute("data-conversation")
        await person.by("search").fill("number 5")
        await keys.press("ArrowDown")
        await expect(rows.filter(has_text="number 5").get_by_role("link")).to_be_focused()
        await person.by("search").fill("number 7")
        await keys.press("Enter")
        await page.wait_for_url(f"**/c/{id}")
        await expect(rows).to_have_count(1)
