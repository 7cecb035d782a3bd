"""B2, B3 in the web UI: a write is shown before and after approval, undone and redone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser.plays import POEM
from tests.browser.stage import MARKS, Person, Server
from tests.patience import eventually

pytestmark = MARKS


def nothing_at(file: Path) -> Path:
    """Remove this file: all tests of a process share a folder, and a file of another test would not be
    overwritten unread."""
    file.unlink(missing_ok=True)
    return file


async def test_a_write_is_seen_allowed_taken_back_and_done_again(person: Person, server: Server) -> None:
    """B2, B3"""
    file = nothing_at(server.config.with_name("draft.txt"))
    await person.say("draft")
    await expect(person.by("question-diff")).to_contain_text("+second")
    assert not file.exists()
    await person.by("allow").click()
    await person.sees("It is written.")
    assert file.read_text("utf-8") == "first\nsecond\n"
    head = person.call.get_by_role("button").first
    for _ in range(2):  # closed, and open
        await expect(head).to_contain_text("draft.txt")
        await expect(head).to_contain_text("+2 −0")
        await head.click()
    await expect(head).to_have_attribute("aria-expanded", "false")
    await head.click()
    await expect(person.call.get_by_test_id("arguments")).to_contain_text("draft.txt")

    await expect(person.by("changed-files")).to_contain_text("1 file changed +2 −0")
    await person.by("review-changes").click()
    await expect(person.by("turn-diff")).to_contain_text("+first")
    await person.by("comment-line").first.click()
    await person.by("line-comment").fill("Why first?")
    await person.by("send-comments").click()
    await expect(person.by("message").last).to_contain_text("draft.txt, line 1: Why first?")
    await expect(person.by("message").last).to_contain_text("> first")
    await expect(person.by("answer")).to_have_count(2)
    file.write_text("mine")
    await person.by("revert").click()
    await expect(person.by("conflict")).to_contain_text("draft.txt")
    assert file.read_text("utf-8") == "mine"
    await person.by("force-revert").click()
    await eventually(lambda: not file.exists())
    await person.by("redo").click()
    await eventually(lambda: file.exists() and file.read_text("utf-8") == "mine")


@pytest.mark.long
async def test_the_steps_of_a_turn_are_looked_at_one_by_one(person: Person, server: Server) -> None:
    """B2"""
    for name in ("one.txt", "two.txt"):
        nothing_at(server.config.with_name(name))
    await person.say("two drafts")
    for _ in range(2):
        await person.by("allow").click()
    await person.sees("Both are written.")
    await person.by("review-changes").click()
    diff = person.by("turn-diff")
    await expect(diff).to_contain_text("+first")
    await expect(diff).to_contain_text("+second")
    await person.by("step").select_option(label="Step 2 of 2")
    await expect(diff).not_to_contain_text("+first")
    await expect(diff).to_contain_text("+second")


async def test_one_file_of_two_is_undone(person: Person, server: Server) -> None:
    """The undo starts from the review, the other file stays, and the answer still offers to undo
    both (B3)."""
    one, two = (nothing_at(server.config.with_name(name)) for name in ("one.txt", "two.txt"))
    await person.say("two drafts")
    for _ in range(2):
        await person.by("allow").click()
    await person.sees("Both are written.")
    await person.by("review-changes").click()
    file = person.by("review-file").filter(has_text="two.txt")
    await file.get_by_test_id("revert").click()
    await expect(file).to_contain_text("Undone")
    assert one.exists()
    assert not two.exists()
    await file.get_by_test_id("redo").click()
    await eventually(two.exists)
    await file.get_by_test_id("revert").click()
    await eventually(lambda: not two.exists())
    await person.page.keyboard.press("Escape")
    await person.by("changed-files").get_by_test_id("revert").click()
    await eventually(lambda: not one.exists())
    await expect(person.by("changed-files")).to_contain_text("Undone")


@pytest.mark.long
async def test_a_fork_gets_a_folder_of_its_own(person: Person, server: Server) -> None:
    """The option is offered if files were written, and later writes go to the copy (B3)."""
    file = nothing_at(server.config.with_name("draft.txt"))
    await person.say("draft")
    await person.by("allow").click()
    await person.sees("It is written.")
    await person.answer.get_by_test_id("fork").click()
    await person.by("fork-folder").click()
    await expect(person.page.get_by_text("Back to the original")).to_be_visible()
    file.write_text("mine")
    (copy,) = server.config.parent.glob("**/snapshots/copies/conv_*/draft.txt")
    assert copy.read_text("utf-8") == "first\nsecond\n"
    await person.by("open-tools").click()
    await person.by("conversation-options").locator("summary").click()
    await expect(person.by("setting-workspace")).to_have_value("@")
    await expect(person.by("setting-workspace")).to_contain_text("its own copy")


@pytest.mark.long
async def test_one_change_of_three_is_refused_and_another_edited(person: Person, server: Server) -> None:
    """This works in both layouts. The written text is the chosen one, and can be undone and redone
    (B2 × P3)."""
    file = server.config.with_name("poem.txt")
    file.write_text(POEM, "utf-8")
    await person.say("revise")
    diff = person.by("question-diff")
    await expect(diff.get_by_test_id("hunk")).to_have_count(3)
    await expect(diff.locator(".removed .differs").first).to_have_text("3")
    await person.by("side-by-side").click()
    await expect(diff.locator(".pair").first).to_be_visible()
    await expect(diff.locator(".pair .number").first).to_have_text("1")
    counts = person.question.locator(".counts")
    await expect(counts).to_have_text("+2 −2")
    await diff.get_by_test_id("hunk-made").nth(1).uncheck()
    await expect(counts).to_have_text("+2 −1")
    await expect(person.by("allow")).to_have_accessible_name("Allow 2 of 3 changes")
    await diff.get_by_test_id("hunk-edit").nth(1).click()
    text = diff.get_by_test_id("hunk-text")
    await expect(text).to_be_focused()
    place = diff.get_by_test_id("hunk-place").last
    before = await place.inner_text()
    await text.fill((await text.input_value()).replace("more", "more of mine\nand more"))
    await expect(counts).to_have_text("+3 −1")
    assert await place.inner_text() != before
    await text.fill((await text.input_value()).replace("\nand more", ""))
    await expect(counts).to_have_text("+2 −1")
    await person.page.reload()  # choices and typed text are restored
    await expect(diff.get_by_test_id("hunk-made").nth(1)).not_to_be_checked()
    await expect(text).to_have_value(re.compile("more of mine"))
    await person.by("allow").click()
    await person.sees("It is revised.")
    made = POEM.replace("3\n", "three\n", 1).replace("27\n", "27\nmore of mine\n")
    assert file.read_text("utf-8") == made

    await person.by("revert").click()
    await eventually(lambda: file.read_text("utf-8") == POEM)
    await person.by("redo").click()
    await eventually(lambda: file.read_text("utf-8") == made)


@pytest.mark.long
async def test_a_diff_is_said_to_be_the_models_while_the_arguments_are_others(
    person: Person, server: Server
) -> None:
    """A write that changes nothing is reported as such (B2 × P3)."""
    file = nothing_at(server.config.with_name("draft.txt"))
    await person.say("draft")
    await person.by("edit-arguments").click()
    await expect(person.by("stale-diff")).to_have_count(0)
    field = person.by("value-editor").get_by_label("path")
    await field.fill("other.txt")
    await expect(person.by("stale-diff")).to_contain_text("what the model asked for")
    await field.fill("draft.txt")
    await expect(person.by("stale-diff")).to_have_count(0)
    await person.by("allow").click()
    await person.sees("It is written.")
    await person.say("draft")
    await expect(person.by("question-diff")).to_contain_text("draft.txt")
    await expect(person.by("question-diff")).to_contain_text("changes nothing")
    await expect(person.by("question-diff")).not_to_contain_text("diff --git")
    await person.by("reject").click()
    await person.sees_call("rejected")
    file.unlink()
