"""Check that users see everything before they decide, and that decisions and results stay visible
(P3, P9)."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import expect

from tests.browser.stage import MARKS, Person, Server

pytestmark = MARKS

UNSEEN = re.compile("[\u200b\u202e\U000e0041]")


@pytest.mark.long
async def test_the_first_card_that_asks_is_seen_from_its_head(person: Person) -> None:
    """P9: not the buttons of a question whose arguments are above."""
    await person.say("long")
    await person.sees("Paragraph 19")
    await person.say("two")
    await expect(person.by("question")).to_have_count(2, timeout=60_000)
    first = person.page.locator("[data-call]:has([data-testid=question])").first
    await expect(first.get_by_role("button").first).to_be_in_viewport()
    await expect(first.get_by_test_id("arguments")).to_be_in_viewport()
    await person.by("next-question").first.click()
    await expect(person.by("arguments").last).to_be_in_viewport()
    for _ in range(2):
        left = await person.by("reject").count()
        await person.by("reject").first.click()
        await expect(person.by("reject")).to_have_count(left - 1)


async def test_no_argument_is_hidden_and_hidden_characters_are_written_out_in_every_place(
    person: Person,
) -> None:
    """Short arguments come first, long ones show a count, and nothing scrolls. This covers requests, rules,
    the editor, folded cards, grants, titles and the inbox (P3)."""
    await person.say("mail")
    shown = person.question.get_by_test_id("arguments").locator("dl")
    await expect(shown).to_be_visible(timeout=60_000)
    names = await shown.locator("dt").all_inner_texts()
    assert names == ["to", "subject", "urgent", "cc", "priority", "body"]
    assert await shown.evaluate("e => e.scrollHeight <= e.clientHeight + 1")
    await expect(shown.get_by_test_id("show-all")).to_contain_text("+44 lines")
    await expect(person.by("allow")).to_be_disabled()  # disabled until all of it has been opened (P14)
    await expect(person.by("hidden")).to_contain_text("You have not seen all of this")
    await person.question.focus()
    await person.page.keyboard.press("a")
    await person.by("show-hidden").click()
    await expect(shown).to_contain_text("line 59 of the minutes")
    await expect(person.by("hidden")).to_have_count(0)
    await expect(person.by("allow")).to_be_enabled()
    await person.by("reject").click()
    await person.say("overridden")
    await expect(person.question).to_contain_text(r"\u202e", timeout=60_000)
    await person.by("remember").click()
    await expect(person.by("rule")).to_contain_text(r"\u202e")
    await person.by("edit-arguments").click()
    await expect(person.by("hidden-characters")).to_contain_text(r"\u202e")
    await person.by("value-editor").get_by_role("button", name="JSON").click()
    assert not UNSEEN.search(await person.by("json-editor").input_value())
    await person.by("edit-arguments").click()
    await person.page.evaluate(
        """id => fetch(`/api/conversations/${id}`, {method: "PATCH", body: '{"title": "a\\u202eb"}',
        headers: {"content-type": "application/json"}})""",
        person.page.url.rpartition("/")[2],
    )
    await expect(person.by("title")).to_contain_text(r"a\u202eb")
    await expect(person.by("conversation").filter(has_text=r"a\u202eb")).to_have_count(1)
    assert not UNSEEN.search(await person.page.title())
    await expect(person.page.get_by_role("log")).to_have_accessible_name(r"a\u202eb")
    await person.page.keyboard.press("Alt+i")
    await expect(person.by("inbox-item").filter(has_text=r"a\u202eb")).to_be_visible()
    assert not UNSEEN.search(await person.page.inner_text("body"))
    await person.page.keyboard.press("Escape")
    await person.by("allow-always").click()
    await person.sees("Begun.")
    await person.by("open-settings").first.click()
    await person.by("tab-permissions").click()
    grant = person.by("grant").filter(has_text=r"\u202e")
    await expect(grant).to_have_count(1)
    assert not UNSEEN.search(await person.page.inner_text("body"))
    await grant.get_by_test_id("revoke").click()
    await expect(grant).to_have_count(0)


@pytest.mark.long
async def test_what_was_decided_stays_on_the_card(person: Person) -> None:
    """The card names the user or the rule that decided, also after a reload (P9)."""
    await person.say("note")
    await person.by("allow").click()
    await person.sees("The note is written.")
    await person.say("add")
    await person.sees("It is 5.")
    await person.page.reload()
    await person.sees("It is 5.")
    await expect(person.by("call")).to_have_count(2)
    for card in await person.by("call").all():
        await card.get_by_role("button").first.click()
    await expect(person.by("decided").first).to_contain_text("Allowed by you", timeout=60_000)
    await expect(person.by("decided").last).to_contain_text(
        re.compile(r"Ran by a rule: allow add \(.*dragoman\.toml:4\)")
    )


@pytest.mark.long
async def test_the_original_of_an_edited_result_can_be_seen(person: Person) -> None:
    """P5"""
    await person.say("secret")
    await person.by("edit-result").click()
    await person.by("result-editor").fill("the password is gone")
    await person.by("release").click()
    await person.sees("I have seen it.")
    await person.call.get_by_role("button").first.click()
    await expect(person.by("result")).to_contain_text("gone")
    await expect(person.by("original-result")).to_contain_text("swordfish", timeout=60_000)


@pytest.mark.long
async def test_many_calls_are_one_line_and_errors_are_read_on_the_card(person: Person) -> None:
    """C5"""
    await person.say("batch")
    await person.sees("The batch is done.")
    group = person.by("call-group")
    await expect(group).to_contain_text("12 calls")
    await expect(group).to_contain_text("1 failed")
    await expect(person.by("call")).to_have_count(0)
    await group.get_by_role("button").first.click()
    await expect(person.by("call")).to_have_count(12)
    await expect(person.by("call-error")).to_contain_text("the disk is full")


@pytest.mark.long
async def test_results_are_tables_trees_markdown_or_text(person: Person) -> None:
    """C9"""
    await person.say("people")
    await person.sees("These are they.")
    await person.call.get_by_role("button").first.click()
    await expect(person.by("result-table").get_by_role("columnheader")).to_have_text(["name", "age", "city"])
    await person.by("as-tree").click()
    await expect(person.by("result-tree")).to_contain_text("Ada")
    await person.by("as-text").click()
    await expect(person.by("result").locator("pre")).to_contain_text('"name"')
    await person.by("full-screen").click()
    await expect(person.by("full-screen-result")).to_contain_text("Lin")
    await person.page.keyboard.press("Escape")
    await person.say("page")
    await person.sees("That is the page.")
    await person.call.get_by_role("button").first.click()
    await expect(person.call.get_by_role("heading", name="A title")).to_be_visible(timeout=60_000)


@pytest.mark.long
async def test_a_picture_is_seen_without_a_click(person: Person) -> None:
    """C6"""
    await person.say("picture")
    await person.sees("Here it is.")
    await expect(person.call.locator("img")).to_be_visible()


@pytest.mark.long
async def test_each_report_of_a_tool_is_a_line(person: Person, server: Server) -> None:
    """C6"""
    seen = server.config.with_name("seen.txt")
    seen.unlink(missing_ok=True)
    await person.say("steps")
    progress = person.by("progress")
    await expect(progress).to_contain_text(re.compile("step 1 of 4\nstep 2 of 4"), timeout=60_000)
    seen.touch()
    await person.sees("All steps are done.")


@pytest.mark.long
async def test_an_answer_that_went_on_is_one_answer(person: Person) -> None:
    """The request to continue is neither shown nor copied (T8)."""
    await person.say("cut")
    await person.sees("The first half of the sentence, and its end.")
    await expect(person.answer).not_to_contain_text("cut off")
    await person.page.reload()
    await person.sees("The first half of the sentence, and its end.")
    await expect(person.answer).not_to_contain_text("cut off")


@pytest.mark.long
async def test_the_list_of_tasks_stays_in_view_and_ticks(person: Person) -> None:
    """C5"""
    await person.say("tasks")
    await person.sees("Begun.")
    await expect(person.by("todo")).to_contain_text("1 of 2 tasks done")
    await person.say("tasks done")
    await person.sees("All done.")
    await expect(person.by("todo")).to_have_count(0)


@pytest.mark.long
async def test_a_tool_of_the_browser_asks_once(person: Person) -> None:
    """A user who allows it here has made the click (U4)."""
    await person.say("hello")
    await person.sees("How can I help?")
    await person.set(mode="ask")
    await person.say("js")
    await person.by("allow").click()
    await person.sees_call("completed")
    await expect(person.by("run-here")).to_have_count(0)
