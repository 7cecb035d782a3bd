"""Check the message field: its keys, and what happens to unsent text."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
from playwright.async_api import FilePayload, Route, expect

from tests.browser.stage import MARKS, Person
from tests.browser.test_setup import violations
from tests.media.media_server import png
from tests.patience import PATIENCE

pytestmark = MARKS


@pytest.mark.long
async def test_escape_does_not_stop_a_turn_that_waits(person: Person) -> None:
    """A user does not lose an approval request by pressing a key that means "away" (P3)."""
    await person.say("note")
    await expect(person.question).to_be_visible(timeout=60_000)
    await person.page.keyboard.press("Escape")
    await person.by("allow").click()
    await person.sees("The note is written.")


async def test_the_enter_of_an_input_method_does_not_send_and_what_is_sent_is_shown_at_once(
    person: Person,
) -> None:
    """In Safari only its code tells. Neither "Loading" nor "Untitled" stands where a conversation begins."""
    await person.by("composer-text").fill("你好")
    await person.by("composer-text").evaluate(
        """e => e.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", keyCode: 229, bubbles: true,
        cancelable: true}))"""
    )
    await expect(person.by("composer-text")).to_have_value("你好")
    await expect(person.by("message")).to_have_count(0)
    await person.page.evaluate(
        """() => { window.seen = new Set(); new MutationObserver(() => { for (const words of ["Loading…",
        "Untitled conversation"]) if (document.querySelector("main").innerText.includes(words))
        window.seen.add(words) }).observe(document.body, {childList: true, subtree: true}) }"""
    )
    await person.say("hello")
    await person.sees("How can I help?")
    assert await person.page.evaluate("[...window.seen]") == []
    await expect(person.by("title")).to_contain_text("hello")


PASTE = """() => {
  const data = new DataTransfer();
  data.setData("text/plain", "A\\tB");
  data.setData("text/html", "<table><tr><td>A<td>B</table>");
  data.items.add(new File(["a picture of it"], "image.png", {type: "image/png"}));
  const event = new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true});
  return document.getElementById("composer-text").dispatchEvent(event);
}"""


@pytest.mark.long
async def test_a_folder_is_told_from_a_file_and_cells_from_a_picture(person: Person, tmp_path: Path) -> None:
    """The UI used to report a dropped folder as a lost server, and to paste copied cells as an image (M5)."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "a.txt").write_text("a", "utf-8")
    await expect(person.by("microphone")).to_be_visible()  # appears together with the attachment button
    browser = await person.page.context.new_cdp_session(person.page)
    files = [str(tmp_path / name) for name in ("folder", "a.txt")]
    for kind in ("dragEnter", "dragOver", "drop"):
        data = {"items": [], "files": files, "dragOperationsMask": 1}
        await browser.send("Input.dispatchDragEvent", {"type": kind, "x": 700, "y": 300, "data": data})
    await expect(person.by("attachment")).to_contain_text("a.txt")
    await expect(person.by("toast")).to_contain_text("You cannot attach a folder.")
    await expect(person.by("toast")).to_have_count(1)
    assert await person.page.evaluate(PASTE)  # only the browser handles the paste
    await expect(person.by("attachment")).to_have_count(1)


@pytest.mark.long
async def test_what_is_to_steer_is_taken_back_into_the_field_and_what_waits_is_sent_now(
    person: Person,
) -> None:
    """T13"""
    await person.say("note")
    await expect(person.question).to_be_visible(timeout=60_000)
    await person.say("one moment", steer=True)
    await expect(person.by("steering")).to_have_count(1)
    await person.by("edit-steering").click()
    await expect(person.by("composer-text")).to_have_value("one moment")
    await expect(person.by("steering")).to_have_count(0)
    await person.by("queue").click()
    await expect(person.by("queued")).to_have_count(1)
    await person.by("send-now").click()
    await expect(person.by("steering")).to_contain_text("one moment")
    await expect(person.by("queued")).to_have_count(0)
    await person.by("withdraw").click()
    await person.by("allow").click()
    await person.sees("The note is written.")


async def test_what_is_not_sent_outlives_a_reload_and_goes_with_its_message(person: Person) -> None:
    """Text, files and choices survive here and in the conversation that the user left, and are gone once sent
    (S2, S4)."""
    file = {"name": "list.txt", "mimeType": "text/plain", "buffer": b"milk"}
    await person.by("mode").click()
    await person.by("mode-ask").click()
    await person.by("composer-text").fill("hello")
    await person.page.locator("input[type=file][multiple]").set_input_files(file)  # type: ignore[arg-type]
    await expect(person.by("send")).to_be_enabled()
    await person.page.reload()
    await expect(person.by("mode")).to_contain_text("Ask")
    await expect(person.by("attachment")).to_contain_text("list.txt")
    await expect(person.by("composer-text")).to_have_value("hello")
    await person.by("composer-text").press("Enter")
    await person.sees("Hello! How can I help?")
    await expect(person.by("message").last).to_contain_text("list.txt")
    await expect(person.by("mode")).to_contain_text("Ask")
    await person.by("new-conversation").click()
    await expect(person.by("welcome")).to_be_visible()
    await expect(person.by("mode")).to_contain_text("Auto")
    await expect(person.by("attachment")).to_have_count(0)


@pytest.mark.long
async def test_words_from_right_to_left_are_set_so(person: Person) -> None:
    """This holds in answers, in lists and tables, and in the message field."""
    await person.by("composer-text").fill("שלום")
    direction = "e => getComputedStyle(e).direction"
    assert await person.by("composer-text").evaluate(direction) == "rtl"
    await person.by("composer-text").fill("word " * 50_000)  # each letter more took seconds
    await expect(person.by("composer-text")).not_to_have_attribute("dir", "auto")
    await person.by("composer-text").fill("")
    await person.say("rtl")
    await expect(person.answer.locator("table")).to_be_visible(timeout=60_000)
    for name in ("p", "li", "table"):
        assert await person.answer.locator(name).first.evaluate(direction) == "rtl"


@pytest.mark.long
async def test_footnotes_alerts_and_details_are_shown_as_meant(person: Person) -> None:
    await person.say("marks")
    await expect(person.by("footnotes").locator("li")).to_have_count(2, timeout=60_000)
    await expect(person.answer.locator("blockquote.alert.warning")).to_contain_text("Mind the gap.")
    await expect(person.page.get_by_text("Hidden words here.")).to_be_hidden()
    await person.answer.locator("summary").click()
    await expect(person.page.get_by_text("Hidden words here.")).to_be_visible()


async def refuse(route: Route) -> None:
    problem = {"title": "Unprocessable", "status": 422, "detail": "notes.bin cannot be sent to this model"}
    await route.fulfill(status=422, content_type="application/problem+json", body=json.dumps(problem))


async def listed(person: Person) -> set[str]:
    return {one["id"] for one in (await person.told("/api/conversations"))["items"]}


async def test_a_message_that_is_refused_stands_in_the_field_again(person: Person) -> None:
    """Its files return too, and a conversation that never began is missing from the list (U3)."""
    await person.page.route("**/turns", refuse)
    await person.by("mode").click()
    await person.by("mode-ask").click()
    await person.by("attach-file").set_input_files(
        {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"read me"}
    )
    before = await listed(person)  # of which those of others may still go
    await person.say("hello")
    await expect(person.by("toast")).to_contain_text("cannot be sent")
    await expect(person.by("welcome")).to_be_visible()
    await expect(person.by("composer-text")).to_have_value("hello")
    await expect(person.by("attachment")).to_contain_text("notes.txt")
    await expect(person.by("mode")).to_contain_text("Ask")
    async with asyncio.timeout(PATIENCE):
        while not await listed(person) <= before:  # noqa: ASYNC110 - the page says nothing when it is gone
            await asyncio.sleep(0.05)
    await person.page.unroute("**/turns")
    await person.by("composer-text").press("Enter")
    await expect(person.by("message").last).to_contain_text("notes.txt", timeout=60_000)
    await expect(person.by("stop")).to_be_hidden()

    await person.page.route("**/turns", refuse)
    await person.say("and then")
    await expect(person.by("composer-text")).to_have_value("and then")
    await expect(person.by("message")).to_have_count(1)
    await person.page.unroute("**/turns")


# Buttons of the field that overlap or whose labels are cut off, except names that end in an ellipsis.
COLLISIONS = """form => { const all = [...form.querySelectorAll("button")].filter(one => one.offsetParent);
  const boxes = all.map(one => [one, one.getBoundingClientRect()]);
  const found = [];
  for (const [one, a] of boxes) {
    if (a.right > innerWidth || a.left < 0) found.push(`${one.dataset.testid} is outside`);
    if (one.closest(".ways") && one.scrollWidth > one.clientWidth + 1)
      found.push(`${one.dataset.testid} is cut`);
    for (const icon of one.querySelectorAll("svg")) { const b = icon.getBoundingClientRect();
      if (b.right > a.right + 1 || b.left < a.left - 1) found.push(`${one.dataset.testid} is too small`) }
    for (const [other, b] of boxes) if (one !== other && !one.contains(other) && !other.contains(one)
      && a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1)
      found.push(`${one.dataset.testid} over ${other.dataset.testid}`)
  }
  return found }"""


@pytest.mark.long
async def test_the_buttons_of_the_field_do_not_collide(person: Person) -> None:
    """This holds with an open approval request and typed text, at all window widths (U6)."""
    await person.say("note")
    await expect(person.question).to_be_visible(timeout=60_000)
    await person.by("composer-text").fill("not now")
    await expect(person.by("reject-saying")).to_be_visible()
    await expect(person.by("microphone")).to_be_visible()
    for width in (1280, 800, 640, 390):
        await person.page.set_viewport_size({"width": width, "height": 700})
        assert await person.by("composer").evaluate(COLLISIONS) == [], width
    await person.page.set_viewport_size({"width": 1200, "height": 800})
    await person.by("reject-saying").click()
    await person.sees(re.compile("written"))


async def test_a_picture_goes_to_a_model_of_which_nobody_knows_what_it_takes(person: Person) -> None:
    """The user decides once, the UI remembers the choice for this model, and the list starts with recent
    models (M2)."""
    await person.by("model").click()
    await person.by("model-search").fill("alpha")
    await expect(person.by("model-choice").first).to_contain_text("Free")
    await person.by("model-search").press("Enter")
    file: FilePayload = {"name": "a.png", "mimeType": "image/png", "buffer": png(9, 9)}
    for sent in (1, 2):
        await person.by("attach-file").set_input_files(file)
        await expect(person.by("attachment")).to_contain_text("a.png")
        await person.by("composer-text").fill("what is it?")
        await expect(person.by("send")).to_be_enabled(timeout=60_000)  # the file has arrived
        if sent == 1:
            await expect(person.by("modality")).to_contain_text("alpha may not take images")
            await person.page.locator("[data-offer=anyway]").click()
        else:
            await person.by("composer-text").press("Enter")
        await expect(person.by("answer")).to_have_count(sent, timeout=60_000)
        await person.sees("I am alpha.")
    await person.by("model").click()
    groups = person.by("model-group")
    await expect(groups.nth(1)).to_have_attribute("data-group", "recent")
    await expect(groups.nth(1)).to_contain_text("alpha")
    await expect(groups.nth(2)).to_have_attribute("data-group", "custom")
    assert await violations(person, "models") == []


async def test_a_slash_lists_prompts_with_variables_and_commands(person: Person) -> None:
    """The UI asks for a prompt's variables, and a command does the same as in the terminal (U3)."""
    await person.say("hello")
    await person.sees("How can I help?")
    await person.page.evaluate(
        """() => fetch("/api/prompts/trip", {method: "PUT", headers: {"content-type": "application/json"},
        body: JSON.stringify({text: "Plan a day in {{city}}. Only {{city}}."})})"""
    )
    await person.by("open-settings").first.click()
    await person.by("tab-prompts").click()
    await expect(person.by("prompt")).to_contain_text("/trip")
    await person.page.keyboard.press("Escape")
    await person.by("composer-text").fill("/")
    options = person.by("prompt-list").get_by_role("option")
    await expect(options.filter(has_text="/context")).to_be_visible()
    assert await violations(person) == []
    await person.by("composer-text").press("Enter")  # your own prompts come first
    await person.page.locator("[data-testid=prompt-argument][data-name=city]").fill("Rome")
    await person.by("insert-prompt").click()
    await expect(person.by("composer-text")).to_have_value("Plan a day in Rome. Only Rome.")
    for name, view in (("/diff", "changes"), ("/model", "models")):
        await person.by("composer-text").fill(name)
        await person.by("composer-text").press("Enter")
        await expect(person.by(view)).to_be_visible()
        await expect(person.by("composer-text")).to_have_value("")
        await person.page.keyboard.press("Escape")
    await person.by("composer-text").fill("/fork")
    await person.by("composer-text").press("Enter")
    await expect(person.by("title")).to_contain_text("copy", timeout=60_000)


async def test_a_list_of_models_that_fails_is_told_once_and_asked_for_again(person: Person) -> None:
    """U3: not shown as if there were none."""

    async def fail(route: Route) -> None:
        await route.fulfill(status=503, json={"detail": "too busy"})

    await person.page.route("**/api/models*", fail)
    await person.page.reload()
    toast = person.by("toast")
    await expect(toast).to_have_count(1)
    await expect(toast).to_contain_text("Could not load the list of models: too busy")
    await person.by("model").click()
    await expect(person.by("models")).to_be_visible()
    await expect(toast).to_have_count(1)
    await person.page.unroute("**/api/models*")
    await toast.get_by_role("button", name="Try again").click()
    await expect(person.by("model-choice").filter(has_text="alpha")).to_be_visible()
