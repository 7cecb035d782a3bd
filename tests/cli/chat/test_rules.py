"""Rules that a person gives in a chat: at a question, by a command, on the command line (P3, P11)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.person import CTRL_C, Person
from tests.tools.cage.test_escapes import needs_cage

pytestmark = pytest.mark.slow


def test_a_wider_rule_covers_the_next_call_and_is_listed(stage: Path) -> None:
    """P11: named by the tool, each with a number."""
    somebody = Person("chat", folder=stage)
    somebody.says("plan")
    assert "1  allow memos.write for 'work/plan'" in somebody.sees("2  allow memos.write for 'work/*'")
    somebody.answers("9a")
    somebody.sees("Unknown rule 9")
    somebody.answers("2h")
    somebody.sees("Planned.")
    somebody.says("report")  # and needs no approval the second time
    somebody.sees("Reported.")
    somebody.says("diary")
    somebody.answers("N not now")
    somebody.sees("memo · rejected")
    somebody.says("/grants")
    somebody.sees("1  allow memos.write for 'work/*', everywhere, for an hour")
    assert somebody.leaves() == 0


def test_a_denial_at_a_question_holds_for_the_next_call(stage: Path) -> None:
    """P11"""
    somebody = Person("chat", folder=stage)
    somebody.says("plan")
    somebody.answers("d2")
    somebody.sees("memo · rejected")
    somebody.says("report")
    assert "your choice" not in somebody.sees("memo · rejected")
    somebody.says("/grants")
    somebody.sees("1  deny memos.write for 'work/*', in conv_")
    assert somebody.leaves() == 0


def test_rules_are_given_by_commands(stage: Path) -> None:
    """An unknown word is reported with the nearest known one (P11)."""
    somebody = Person("chat", folder=stage)
    somebody.says("/allow memos.writ")
    somebody.sees("Did you mean memos.write")
    somebody.says("/allow memos.write:work/*")
    somebody.sees("allow memos.write for 'work/*', in conv_")
    somebody.says("plan")
    assert "your choice" not in somebody.sees("Planned.")
    somebody.says("/deny memos.write:work/* always")  # denials come first, wherever they hold
    somebody.sees("deny memos.write for 'work/*', everywhere")
    somebody.says("report")
    somebody.sees("memo · rejected")
    somebody.says("/allow memos.write:work/*")  # and the opposite takes it back
    somebody.sees("allow memos.write for 'work/*', in conv_")
    somebody.says("plan")
    assert "your choice" not in somebody.sees("Planned.")
    assert somebody.leaves() == 0


@pytest.mark.long
def test_rules_of_the_command_line_hold_in_a_chat(stage: Path) -> None:
    """P1"""
    somebody = Person("chat", "--allow", "memos.write:work/*", folder=stage)
    somebody.says("plan")
    assert "your choice" not in somebody.sees("Planned.")
    somebody.says("diary")
    somebody.sees("your choice:")
    somebody.types("", CTRL_C)
    somebody.sees("the turn was cancelled")
    assert somebody.leaves() == 0
    misspelled = Person("chat", "--deny", "memos.writ", folder=stage)
    misspelled.sees("Did you mean 'memos.write'?")
    assert misspelled.ended() == 2


def test_what_is_folded_is_opened_before_a_yes_counts(stage: Path) -> None:
    """The request states how much is hidden, and a rejection needs nothing opened (P14)."""
    settings = stage / "dragoman.toml"
    settings.write_text(f'{settings.read_text("utf-8")}\n[review]\nbig = "always"\n', "utf-8")
    somebody = Person("chat", folder=stage)
    somebody.says("big")
    somebody.sees("… 19,800 more lines")
    somebody.sees("m show everything: 19,800 more lines")
    somebody.answers("r")
    somebody.sees("You have not seen 19,800 lines. Type m")
    somebody.answers("m")
    somebody.sees("line 19999: ")
    assert "more lines" not in somebody.sees("r release")
    somebody.answers("r")
    somebody.sees("That was much.")
    assert somebody.leaves() == 0


@needs_cage
def test_what_the_cage_refused_is_allowed_by_one_command(stage: Path) -> None:
    """The card shows the shield and the refused path, and `/allow` requests exactly that (K3)."""
    settings = stage / "dragoman.toml"
    settings.write_text(settings.read_text().replace('"files", ', '"files", "shell", '))
    somebody = Person("chat", folder=stage, DRAGOMAN_SHELL_CAGE="auto")
    somebody.says("/allow")
    somebody.sees("No messages in this conversation yet.")
    somebody.says("touch")
    somebody.sees("1 refused")
    somebody.sees("⛨ refused write: tools/new. To allow it, ask for cage.write:tools/*")
    somebody.sees("Touched.")
    somebody.says("/allow")
    somebody.sees("The command asks to write tools/*.")
    somebody.answers("y")
    somebody.sees("Touched.")
    assert (stage / "tools/new").exists()
    assert somebody.leaves() == 0
