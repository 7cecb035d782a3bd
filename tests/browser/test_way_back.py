"""B2, B3 in the page: a write is seen before it is allowed and after, taken back, and done again."""

from __future__ import annotations

from playwright.async_api import expect

from tests.browser.stage import MARKS, Person, Server
from tests.patience import eventually

pytestmark = MARKS


async def test_a_write_is_seen_allowed_taken_back_and_done_again(person: Person, server: Server) -> None:
    """B2, B3"""
    file = server.config.with_name("draft.txt")
    await person.say("draft")
    await expect(person.by("question-diff")).to_contain_text("+second")
    assert not file.exists()
    await person.by("allow").click()
    await person.sees("It is written.")
    assert file.read_text("utf-8") == "first\nsecond\n"

    await person.by("changes-button").click()
    await expect(person.by("turn-diff")).to_contain_text("+first")
    file.write_text("mine")
    await person.by("revert").click()
    await expect(person.by("conflict")).to_contain_text("draft.txt")
    assert file.read_text("utf-8") == "mine"
    await person.by("force-revert").click()
    await eventually(lambda: not file.exists())
    await person.by("redo").click()
    await eventually(lambda: file.exists() and file.read_text("utf-8") == "mine")
