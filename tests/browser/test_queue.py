"""Check messages sent during a turn: they are shown, edited, moved forward and cancelled (T13)."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.browser.stage import MARKS, Person

pytestmark = MARKS


async def queue(person: Person, text: str) -> None:
    await person.by("composer-text").fill(text)
    await person.by("queue").click()
    await expect(person.by("queued").filter(has_text=text)).to_be_visible(timeout=60_000)


async def test_what_waits_is_edited_brought_forward_and_called_off(person: Person) -> None:
    """T13"""
    await person.say("note")
    await expect(person.question).to_be_visible(timeout=60_000)
    for text in ("first", "second", "third"):
        await queue(person, text)
    waiting = person.by("queued")
    await waiting.nth(1).get_by_test_id("sooner").click()
    await expect(waiting.nth(0)).to_contain_text("second")
    await waiting.nth(2).get_by_test_id("call-off").click()
    await expect(waiting).to_have_count(2)
    await waiting.nth(0).get_by_test_id("edit-queued").click()
    await person.by("queued-text").fill("changed")
    await person.by("queued-text").press("Enter")
    await expect(waiting.nth(0)).to_contain_text("changed")
    await expect(person.by("waiting")).to_be_focused()  # keyboard users continue from here
    await person.page.reload()
    await expect(waiting).to_have_count(2, timeout=60_000)
    await person.by("allow").click()
    await person.sees("You said: first")
    await expect(waiting).to_have_count(0)
    said = [await one.inner_text() for one in await person.by("message").all()]
    assert [text.split("\n")[0] for text in said] == ["note", "changed", "first"]


@pytest.mark.long
async def test_what_is_to_steer_a_turn_is_called_off(person: Person) -> None:
    """T13, T9"""
    await person.say("note")
    await expect(person.question).to_be_visible(timeout=60_000)
    await person.say("hello", steer=True)
    steering = person.by("steering")
    await expect(steering).to_have_count(1)
    await steering.get_by_test_id("withdraw").press("Enter")
    await expect(steering).to_have_count(0)
    await expect(person.by("composer-text")).to_be_focused()
    await person.by("allow").click()
    await person.sees("The note is written.")


@pytest.mark.long
async def test_what_a_stop_left_without_an_answer_is_answered(person: Person) -> None:
    """A message that was to steer a turn stays when the turn is stopped, and a click gets it answered (T13,
    T6)."""
    await person.say("note")
    await expect(person.question).to_be_visible(timeout=60_000)
    await person.say("and this", steer=True)
    await expect(person.by("steering")).to_have_count(1)
    await person.by("stop").click()
    await expect(person.by("message").last).to_contain_text("and this", timeout=60_000)
    await person.page.reload()
    await person.by("answer-it").click()
    await person.sees("You said: and this")
    await expect(person.by("unanswered")).to_have_count(0)
