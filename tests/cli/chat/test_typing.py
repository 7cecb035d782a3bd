"""Check input typed during a turn: it is sent, queued or kept, and never lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.person import CTRL_C, ENTER, Person

pytestmark = pytest.mark.slow

TAB, ESCAPE = "\t", "\x1b"


@pytest.fixture
def somebody(stage: Path) -> Person:
    """In a chat whose model writes for some seconds."""
    person = Person("chat", folder=stage)
    person.says("long")
    person.sees("Paragraph 1")
    return person


def test_enter_says_it_before_the_next_step(somebody: Person) -> None:
    """The message is shown, and answered in the same turn (T13)."""
    somebody.types("hello", "")
    somebody.sees("» hello")
    somebody.sees("Enter: before the next step")
    somebody.types("", ENTER)
    somebody.sees("↳ before the next step: hello")
    somebody.sees("you: hello")
    somebody.sees("How can I help?")
    assert somebody.leaves() == 0


@pytest.mark.long
def test_tab_lets_it_wait_for_the_end_of_the_turn(somebody: Person) -> None:
    """T13"""
    somebody.types("hello", TAB)
    somebody.sees("↳ after this turn: hello")
    somebody.sees("you: hello")
    somebody.sees("How can I help?")
    somebody.says("/queue")
    somebody.sees("nothing waits")
    assert somebody.leaves() == 0


def test_what_was_typed_and_not_sent_stands_in_the_prompt(somebody: Person) -> None:
    """T13, T6: so does what was to wait for a turn that the person stops: it does not begin."""
    somebody.types("second", TAB)
    somebody.sees("↳ after this turn: second")
    somebody.types("first", "")
    somebody.sees("» first")
    somebody.types("", CTRL_C)
    somebody.sees("the turn was cancelled")
    somebody.sees("› first")
    somebody.sees("second")
    somebody.types("", ENTER)
    somebody.sees("You said: first")
    assert somebody.leaves() == 0


def test_what_was_said_to_a_turn_that_is_cancelled_is_kept_in_the_conversation(somebody: Person) -> None:
    """T13 with T6: the next answer knows of it."""
    somebody.types("in French", ENTER)
    somebody.sees("↳ before the next step: in French")
    somebody.types("", CTRL_C)
    somebody.sees("you: in French")
    somebody.sees("the turn was cancelled")
    assert somebody.leaves() == 0


def test_escape_clears_the_line_then_stops_the_turn(somebody: Person) -> None:
    """T6: keys that begin with the same sign, such as arrows, do neither."""
    somebody.types("never said\x1b[D\x1b[A", "")
    somebody.sees("» never said")
    somebody.types("", ESCAPE)
    somebody.types("/he", "")
    assert "the turn was" not in somebody.sees("» /he")
    somebody.types("lp", ENTER)
    somebody.sees("commands work when the turn is over")
    somebody.types("", ESCAPE)
    somebody.types("x", "")
    somebody.sees("» x")
    somebody.types("\x7f", "")
    somebody.types("", ESCAPE)
    somebody.sees("the turn was cancelled")
    assert somebody.leaves() == 0


@pytest.mark.long
def test_a_pasted_text_comes_in_whole(somebody: Person) -> None:
    """Its lines are not sent separately (T13)."""
    somebody.types("\x1b[200~hello\rworld\x1b[201~", "")
    somebody.sees("» hello world")
    somebody.types("", ENTER)
    somebody.sees("you: hello")
    somebody.sees("world")
    somebody.kill()


def test_a_wait_is_said_with_seconds_and_attempt_and_the_line_below_says_who_answers(stage: Path) -> None:
    """R6, heart 14: a provider that is busy is not a silence."""
    person = Person("chat", folder=stage)
    person.says("busy")
    person.sees("attempt 2 of ")
    person.sees(" s")
    person.sees("stage/model · mode ")
    person.types("", CTRL_C)
    person.sees("the turn was cancelled")
    assert person.leaves() == 0
