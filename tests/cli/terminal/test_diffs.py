"""B2: a diff at a terminal: in colours, word by word, and nothing in it can hide."""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console

from dragoman.cli.terminal.cards import question_card, render_diff
from dragoman.messages.message import Arguments
from dragoman.messages.questions import Question
from dragoman.workspace.diff import diff_texts


def _printed(renderable: object) -> str:
    console = Console(force_terminal=True, width=80, color_system="standard", legacy_windows=False)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


def test_words_that_differ_stand_out() -> None:
    """B2"""
    text = render_diff(diff_texts("f", b"the old cat\n", b"the new cat\n").text)
    loud = {str(text.plain[span.start : span.end]) for span in text.spans if "reverse" in str(span.style)}
    assert loud == {"old", "new"}


def test_a_question_about_a_write_shows_the_diff_and_no_escaped_text() -> None:
    """B2"""
    diff = diff_texts("a.txt", b"one\n", b"one\ntwo\n").text
    arguments: Arguments = {"text": "one\ntwo\n"}
    question = Question("ask_1", "c", "t", "call", "approve", "write_file", "May it?", arguments, "h")
    printed = _printed(question_card(replace(question, diff=diff, told=("text",))))
    assert "+two" in printed
    assert "\\n" not in printed


def test_what_would_control_the_terminal_is_shown_as_its_number() -> None:
    """The user who decides sees every character (B2 × P1)."""
    diff = diff_texts("f", b"", "x\x1b[2K\u202ey\n".encode()).text
    printed = render_diff(diff).plain
    assert "\\u001b[2K\\u202ey" in printed


def test_a_long_diff_says_what_is_left_out() -> None:
    """B2"""
    diff = diff_texts("f", b"", b"line\n" * 100).text
    assert "… 94 more lines" in render_diff(diff, 10).plain
