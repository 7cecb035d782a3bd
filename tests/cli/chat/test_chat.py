"""`dragoman chat`: a person, a pseudo-terminal, the real program, and a model over HTTP."""

from __future__ import annotations

import os
import shlex
import signal
import sqlite3
import termios
from contextlib import closing
from pathlib import Path

import pexpect
import pytest

from tests.browser.plays import POEM
from tests.cli.conftest import Cli
from tests.cli.person import (
    ALL_AWAY,
    CTRL_C,
    CTRL_D,
    CTRL_E,
    CTRL_S,
    CTRL_X,
    CTRL_Z,
    ENTER,
    TERMINAL,
    Person,
)
from tests.cli.program import PROGRAM, clean_environment
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow

EDITOR = """\
#!/bin/sh
trap 'printf " and more" >> "$1"; exit 0' INT
[ -e ready ] || exit 1
echo the editor is open
while :; do sleep 0.1; done
"""


def person(stage: Path, *arguments: str) -> Person:
    return Person("chat", *arguments, folder=stage)


def stored(stage: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(stage / "chat.db")) as db, db:
        found = db.execute(query).fetchall()
    db.close()
    return found


def test_an_answer_streams_as_markdown_and_the_conversation_can_be_found_again(stage: Path) -> None:
    somebody = person(stage)
    assert "stage/model (named by dragoman.toml" in somebody.sees("/help")
    somebody.says("markdown")
    shown = somebody.sees("two")
    assert "# A heading" not in shown
    assert "A heading" in shown
    assert "link (https://example.org/)" in shown
    assert somebody.leaves() == 0
    again = person(stage, "--last")
    assert "A heading" in again.sees("two")
    assert again.leaves() == 0


def test_thoughts_are_folded_until_they_are_wanted(stage: Path) -> None:
    somebody = person(stage)
    somebody.says("think")
    somebody.sees("∴ thought for ")
    somebody.sees("I have thought about it.")
    somebody.says("/reasoning")
    somebody.sees("shown whole")
    assert somebody.leaves() == 0


def test_an_approved_call_runs_and_always_is_listed_and_taken_back(stage: Path) -> None:
    somebody = person(stage)
    somebody.says("note")
    assert '{"text": "buy milk", "title": "list"}' in somebody.sees("1  allow notes.write for 'list'")
    somebody.answers("a")
    somebody.sees("note · completed")
    somebody.sees("wrote 'buy milk' under 'list'")
    somebody.sees("The note is written.")
    somebody.says("/new")
    somebody.says("note")  # and needs no approval the second time
    somebody.sees("note · completed")
    somebody.says("/grants")
    somebody.sees("1  allow notes.write for 'list', everywhere")
    somebody.says("/grants revoke 1")
    somebody.sees("undone")
    assert somebody.leaves() == 0


def test_arguments_are_edited_field_by_field(stage: Path) -> None:
    """An invalid value is reported, and the fields are shown again (P3)."""
    somebody = person(stage)
    somebody.says("note")
    somebody.answers("e")
    assert "1  text: buy milk" in somebody.sees("2  title: list")
    somebody.sees("which field")
    somebody.types("9")
    somebody.sees("a number from 1 to 2")
    somebody.sees("which field")
    somebody.types("text")
    somebody.sees("text: ")
    somebody.types(ALL_AWAY)  # an empty required field
    somebody.sees("which field")
    somebody.types("title")
    somebody.sees("title: ")
    somebody.types(ALL_AWAY)  # nothing in one that is not
    somebody.sees("2  title: (not given)")
    somebody.sees("which field")
    somebody.types("1")
    somebody.sees("text: ")
    somebody.types(ALL_AWAY + "buy bread")
    somebody.sees("1  text: buy bread")
    somebody.sees("which field")
    somebody.types("")
    somebody.sees("note · completed")
    somebody.sees('the model had asked for {"text": "buy milk"')
    somebody.sees("wrote 'buy bread' under 'note'")
    assert somebody.leaves() == 0


def test_a_long_text_is_edited_in_the_persons_editor(stage: Path) -> None:
    """P3, B2: and never as escaped JSON."""
    editor = stage / "editor.sh"
    editor.write_text("#!/bin/sh\nprintf 'third\\n' >> \"$1\"\n", "utf-8")
    editor.chmod(0o755)
    somebody = Person("chat", folder=stage, EDITOR=str(editor))
    somebody.says("draft")
    somebody.sees("+second")
    somebody.answers("e")
    somebody.sees("text: first second (2 lines, 13 characters)")
    somebody.sees("which field")
    somebody.types("text")
    somebody.sees("(3 lines, 19 characters)")
    somebody.sees("which field")
    somebody.types("")
    somebody.sees("It is written.")
    assert (stage / "draft.txt").read_text("utf-8") == "first\nsecond\nthird\n"
    assert somebody.leaves() == 0


def test_an_editor_that_fails_changes_nothing_and_an_interrupt_in_one_is_its_own(stage: Path) -> None:
    """A user who presses Ctrl-C in an editor has not stopped the turn or left the chat (T6)."""
    editor = stage / "editor.sh"
    editor.write_text(EDITOR, "utf-8")
    editor.chmod(0o755)
    somebody = Person("chat", folder=stage, EDITOR=str(editor))
    somebody.says("mail")
    somebody.answers("e")
    somebody.sees("which field")
    somebody.types("body")
    somebody.sees("body: The value stays as it was")
    somebody.sees("(60 lines, 1,369 characters)")
    somebody.sees("which field")
    (stage / "ready").touch()
    somebody.types("body")
    somebody.sees("the editor is open")
    somebody.types("", CTRL_C)
    somebody.sees("(60 lines, 1,378 characters)")  # exactly, since the program adds no line end
    somebody.sees("which field")
    somebody.types("")
    somebody.sees("It is sent.")
    somebody.says("hello", CTRL_X + CTRL_E)
    somebody.sees("the editor is open")
    somebody.types("", CTRL_C)
    somebody.sees("You said: hello and more")
    assert somebody.leaves() == 0


def test_of_a_change_some_hunks_are_made_and_one_is_edited(stage: Path) -> None:
    """The user decides hunk by hunk, as in `git add --patch`, and the model receives what was
    written (B2)."""
    (stage / "poem.txt").write_text(POEM, "utf-8")
    somebody = person(stage)
    somebody.says("revise")
    somebody.sees("line three")
    somebody.answers("p")
    for place, key in enumerate("yne", 1):
        somebody.sees(f"{place} of 3: ")
        somebody.types(key)
    somebody.sees("Ctrl-S when done")
    somebody.types(", and the end", CTRL_S)
    somebody.sees("It is revised.")
    made = POEM.replace("3\n", "three\n", 1).replace("27\n", "27\nmore\n")
    assert (stage / "poem.txt").read_text("utf-8") == made.replace("29\n", "29, and the end\n")
    assert somebody.leaves() == 0


def test_a_rejection_tells_the_model_why(stage: Path) -> None:
    somebody = person(stage)
    somebody.says("note")
    somebody.answers("N")
    somebody.sees("why")
    somebody.types("we have milk")
    somebody.sees("note · rejected")
    somebody.sees("They said: we have milk")
    assert somebody.leaves() == 0


def test_results_are_released_edited_or_withheld(stage: Path) -> None:
    somebody = person(stage)
    somebody.says("secret")
    somebody.sees("the password is swordfish")
    somebody.answers("W too private")
    somebody.sees("secret · withheld")
    somebody.sees("I have seen it.")
    somebody.says("/new")
    somebody.says("secret")
    somebody.answers("e")
    somebody.sees("result:")
    somebody.types(ALL_AWAY + "nothing to see", CTRL_S)
    somebody.sees("nothing to see")
    somebody.sees("A user edited this result.")
    assert somebody.leaves() == 0


def test_a_tools_own_question_offers_its_choices(stage: Path) -> None:
    somebody = person(stage)
    somebody.says("ask")
    somebody.sees("Which colour?")
    somebody.sees("2  blue")
    somebody.sees("which, or in your own words")
    somebody.types("7")
    somebody.sees("a number from 1 to 2")
    somebody.types("2")
    somebody.sees("ask_person · completed")
    somebody.sees("blue")
    somebody.says("ask")
    somebody.sees("which, or in your own words")
    somebody.types("a dark teal")
    somebody.sees("ask_person · completed")
    somebody.sees("a dark teal")
    assert somebody.leaves() == 0


@pytest.mark.long
def test_a_model_in_a_loop_is_stopped(stage: Path) -> None:
    somebody = person(stage)
    somebody.says("loop")
    somebody.sees("y once more")
    somebody.answers("S enough")
    somebody.sees("add · skipped")
    somebody.sees("Enough.")
    assert somebody.leaves() == 0


@pytest.mark.long
def test_in_manual_mode_the_person_runs_each_call(stage: Path) -> None:
    somebody = person(stage, "--mode", "manual")
    somebody.says("add")
    somebody.sees("y run it")
    somebody.answers("maybe")
    somebody.sees("Type one of y, e, n")
    somebody.answers("run")
    somebody.sees("add · completed")
    somebody.sees("It is 5.")
    assert somebody.leaves() == 0


@pytest.mark.long
def test_questions_of_another_agents_work_are_asked_here(stage: Path) -> None:
    somebody = person(stage)
    somebody.says("task")
    somebody.sees("note · called by helper")
    somebody.sees("May note run")
    somebody.answers("y")
    somebody.sees("task · completed")
    somebody.sees("The helper is done.")
    assert somebody.leaves() == 0


def test_t6_an_interrupt_cancels_a_running_tool_and_not_the_program(stage: Path) -> None:
    somebody = person(stage)
    somebody.says("nap")
    somebody.sees('nap {"seconds"')
    somebody.types("", CTRL_C)
    somebody.sees("nap · cancelled")
    somebody.sees("the turn was cancelled")
    somebody.says("hello")
    somebody.sees("Hello! How can I help?")
    somebody.sees("› ")
    somebody.types("", CTRL_C)  # at an empty prompt it leaves
    assert somebody.ended() == 0


def test_an_interrupt_at_a_question_cancels_the_turn(stage: Path) -> None:
    somebody = person(stage)
    somebody.says("note")
    somebody.sees("your choice:")
    somebody.types("", CTRL_C)
    somebody.sees("the turn was cancelled")
    assert somebody.leaves() == 0


def test_p6_a_question_outlives_a_killed_program_and_its_answer_goes_on(stage: Path) -> None:
    somebody = person(stage)
    somebody.says("note")
    somebody.sees("your choice:")
    somebody.kill()
    ((conversation,),) = stored(stage, "SELECT id FROM conversations")
    again = person(stage, str(conversation)[:12])
    again.sees("May note run")
    again.answers("y")
    again.sees("note · completed")
    again.sees("The note is written.")
    assert again.leaves() == 0
    assert stored(stage, "SELECT state FROM turns") == [("completed",)]


def test_who_is_told_to_end_leaves_the_terminal_as_it_was_and_the_turn_to_go_on(stage: Path) -> None:
    """The cursor that hid behind the answer is there again, and so are the letters one types."""
    somebody = person(stage)
    somebody.says("slow")
    somebody.sees("word word")
    assert somebody.process.pid is not None
    os.kill(somebody.process.pid, signal.SIGTERM)
    somebody.sees("\x1b[?25h")
    somebody.program.expect(pexpect.EOF)
    assert "\x1b[?25l" not in (somebody.program.before or "")
    assert termios.tcgetattr(somebody.program.fileno())[3] & termios.ECHO
    assert somebody.ended() == 130
    assert stored(stage, "SELECT state FROM turns") == [("streaming",)]


def test_a_chat_that_is_put_aside_leaves_the_terminal_as_it_was_and_takes_it_again(stage: Path) -> None:
    """After Ctrl-Z and `fg`, the shell has its cursor, and later input is not lost."""
    surroundings = {**clean_environment(stage), **TERMINAL, "PS1": "shell> "}
    shell = pexpect.spawn(
        "sh", ["-i"], cwd=str(stage), env=surroundings, encoding="utf-8", timeout=PATIENCE, echo=False
    )
    shell.sendline(shlex.join([*PROGRAM, "chat"]))
    shell.expect("› ")
    shell.send(f"slow{ENTER}")
    shell.expect("word word")
    shell.send(CTRL_Z)
    shell.expect("Stopped")
    assert "\x1b[?25h" in (shell.before or "").rpartition("\x1b[?25l")[2]
    shell.expect("shell> ")
    shell.sendline("fg")
    shell.expect("word word")
    shell.send("typed")
    shell.expect("» typed")
    shell.send(CTRL_C)
    shell.expect("the turn was cancelled")
    shell.expect("typed")
    shell.close(force=True)


def test_a_conversation_that_is_deleted_elsewhere_is_told_once_and_another_begins(
    stage: Path, cli: Cli
) -> None:
    somebody = person(stage)
    somebody.says("hello")
    somebody.sees("How can I help?")
    somebody.sees("› ")
    cli("rm", "--yes", "last")
    somebody.types("hello")
    somebody.sees("Unknown conversation")
    assert "begins a new one" in somebody.sees("› ")
    somebody.sees("hello")  # the unsent message is in the field again
    somebody.types("")
    somebody.sees("How can I help?")
    assert somebody.leaves() == 0
    assert stored(stage, "SELECT count(*) FROM conversations") == [(1,)]


@pytest.mark.long
def test_a_question_that_is_left_waits(stage: Path) -> None:
    somebody = person(stage)
    somebody.says("note")
    somebody.sees("your choice:")
    somebody.types("", CTRL_D)
    somebody.sees("goes on here")
    assert somebody.ended() == 0
    assert stored(stage, "SELECT state FROM turns") == [("waiting",)]


def test_pasted_lines_are_one_message(stage: Path) -> None:
    somebody = person(stage)
    somebody.sees("› ")
    somebody.types("\x1b[200~first line\nsecond line\n\x1b[201~", "")
    somebody.sees("second line")
    somebody.types("")
    somebody.sees("You said: first line")
    assert somebody.leaves() == 0
    (message,) = stored(stage, "SELECT body FROM messages WHERE role = 'user'")
    assert "first line\\nsecond line" in str(message[0])
