"""Calls: asked about, edited, rejected, reviewed, and run by hand."""

from __future__ import annotations

import json
import re

import pytest
from playwright.async_api import expect

from tests.browser.stage import MARKS, Person

pytestmark = MARKS


async def test_a_call_is_allowed_once_or_rejected_with_a_reason(person: Person) -> None:
    """P3"""
    await person.say("note")
    await expect(person.question).to_contain_text("May note run", timeout=60_000)
    await person.by("allow").click()
    await person.sees("The note is written.")
    await person.sees_call("completed")
    await person.say("note")
    await person.by("more").click()
    await expect(person.by("because")).to_have_text("Asked because no rule allows it.")
    await person.by("reject-with").click()
    await person.by("reason").fill("not today")
    await person.by("send-reason").click()
    await person.sees_call("rejected")
    id = await person.call.get_attribute("data-call")
    assert "not today" in (await person.told(f"/api/calls/{id}"))["result"]["text"]


@pytest.mark.long
async def test_a_call_is_allowed_for_the_conversation_and_the_rule_can_be_revoked(person: Person) -> None:
    """P3"""
    await person.say("note")
    await person.by("remember").first.click()
    await person.by("allow-conversation").first.click()
    await person.sees("The note is written.")
    await person.say("note")
    await expect(person.by("answer")).to_have_count(2)
    await person.sees("The note is written.")
    await person.by("open-settings").first.click()
    await person.by("tab-permissions").click()
    grant = person.by("grant").filter(has_text="notes.write")
    await expect(grant.first).to_be_visible()
    before = await grant.count()
    await grant.first.get_by_test_id("revoke").click()
    await expect(grant).to_have_count(before - 1)


async def test_arguments_are_edited_and_checked_and_in_manual_mode_the_person_runs_each_call(
    person: Person,
) -> None:
    """P3, P8"""
    await person.say("note")
    await person.by("edit-arguments").click()
    await person.by("value-editor").get_by_role("button", name="JSON").click()
    editor = person.by("json-editor")
    await editor.fill(json.dumps({"text": 5}))
    await expect(person.by("misfits")).to_be_visible()
    await editor.fill(json.dumps({"text": "buy bread", "title": "list"}))
    await (
        person.page.get_by_test_id("question")
        .get_by_role("button", name=re.compile("Run|Allow"))
        .first.click()
    )
    await person.sees("The note is written.")
    id = await person.call.get_attribute("data-call")
    call = await person.told(f"/api/calls/{id}")
    assert call["arguments"]["text"] == "buy bread"
    assert call["original"]["text"] == "buy milk"
    await person.set(mode="manual")
    await person.say("add")
    await expect(person.question).to_have_attribute("data-kind", "run", timeout=60_000)
    await person.question.get_by_role("button", name=re.compile("^Run")).first.click()
    await person.sees("It is 5.")


@pytest.mark.long
async def test_only_what_was_changed_in_the_arguments_is_sent(person: Person) -> None:
    """Arguments that the model omitted stay omitted, and an edit that changes nothing does not count as one
    (P3)."""
    await person.say("pair")
    await expect(person.by("question")).to_have_count(2, timeout=60_000)
    one, other = person.by("call").first, person.by("call").last
    for card in (one, other):
        await card.get_by_test_id("edit-arguments").click()
        field = card.get_by_test_id("value-editor").get_by_label("text")
        await expect(field).to_be_focused()
        await expect(field).to_be_in_viewport()
    await field.fill("x" * 80)
    await field.press("y")
    await expect(field).to_be_focused()  # it stays the same one, however long its text gets
    await field.fill("three")
    for card in (one, other):
        await card.get_by_test_id("allow").click()
    await person.sees("Then without.")
    calls = [
        await person.told(f"/api/calls/{await card.get_attribute('data-call')}") for card in (one, other)
    ]
    assert [(call["arguments"], call["original"]) for call in calls] == [
        ({"text": "one"}, None),
        ({"text": "three"}, {"text": "two"}),
    ]


async def test_a_result_is_reviewed_and_withheld_or_edited_before_the_model_sees_it(person: Person) -> None:
    """P5"""
    await person.say("secret")
    await expect(person.question).to_contain_text("swordfish", timeout=60_000)
    await person.by("withhold").click()
    await person.sees_call("withheld")
    await expect(person.page.get_by_text("swordfish")).to_have_count(0)
    await person.say("secret")
    await person.by("edit-result").click()
    await person.by("result-editor").fill("the password is gone")
    await person.by("release").click()
    await person.sees_call("completed")
    id = await person.call.get_attribute("data-call")
    assert (await person.told(f"/api/calls/{id}"))["result"]["text"] == "the password is gone"


@pytest.mark.long
async def test_a_model_that_repeats_itself_is_asked_about(person: Person) -> None:
    """C10"""
    await person.say("loop")
    await expect(person.question).to_have_attribute("data-kind", "loop", timeout=60_000)
    await person.by("more").click()
    await person.by("stop-calls").click()
    await person.sees("Enough.")


@pytest.mark.long
async def test_a_tool_that_reports_comes_to_its_end_and_a_picture_is_shown(person: Person) -> None:
    """C6"""
    await person.say("count")
    await person.sees("Counted.")
    await person.say("picture")
    await person.sees("Here it is.")
    await person.call.get_by_role("button").first.click()
    picture = person.call.locator("img").first
    await expect(picture).to_be_visible()
    assert await picture.evaluate("image => image.decode().then(() => image.naturalWidth)") == 10


async def test_the_trail_of_a_task_is_opened_and_its_question_answered(person: Person) -> None:
    """P6"""
    await person.say("task")
    await expect(person.by("open-sub")).to_be_visible()
    outer = person.page.url
    await person.by("open-sub").click()
    await person.page.wait_for_url(lambda url: url != outer)
    await person.by("allow").click()
    await person.sees("The note is written.")
    await person.page.goto(outer)
    await person.sees("The helper is done.")
