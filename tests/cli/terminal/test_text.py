"""Check text for a terminal: control characters are removed, and long text is cut."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.cli.terminal.text import format_json, head, near_home, one_line, parse_json, plain, rows


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://evil\x1b\\click", "click"),
        ("over\rwritten", "overwritten"),
        ("a\r\nb\tc", "a\nb\tc"),
        ("\x9b31mred", "31mred"),
        ("gnp.\u202eexe", "gnp.exe"),
        ("👩\u200d💻 grüß", "👩\u200d💻 grüß"),
    ],
)
def test_what_would_steer_a_terminal_is_left_out(text: str, safe: str) -> None:
    assert plain(text) == safe


@given(st.text())
def test_no_text_keeps_an_escape(text: str) -> None:
    assert not set(plain(text)) & set("\x1b\x9b\x07\x08\r\u202e")
    assert "\n" not in one_line(text)
    assert "\x1b" not in format_json(text)


def test_in_arguments_what_cannot_be_seen_is_written_out() -> None:
    assert format_json({"path": "a\u202eb"}) == '{"path": "a\\u202eb"}'
    assert format_json({"a": "x" * 100}).count("\n") == 2


@given(st.text())
def test_json_with_nothing_hidden_is_the_same_json(text: str) -> None:
    assert json.loads(format_json(text)) == text


def test_json_that_is_too_deep_to_be_read_is_none() -> None:
    for broken in ("[" * 100_000, '{"a":' * 5000 + "1" + "}" * 5000):
        with pytest.raises(ValueError, match=r".+"):
            parse_json(broken)


def test_long_texts_are_cut_and_say_so() -> None:
    assert head("a\nb\nc", 2) == "a\nb\n… 1 more line"
    assert head("a\nb", 2) == "a\nb"


def test_paths_are_shown_from_the_folder_of_the_person() -> None:
    home = Path.home().resolve()
    assert near_home(home) == "~"
    assert near_home(home / "a" / "b.db") == "~/a/b.db"
    assert near_home(home.parent / "elsewhere.db") == str(home.parent / "elsewhere.db")


def test_p14_a_long_line_counts_as_many() -> None:
    """An argument in one line folds like one in many lines, and is complete when opened (P14)."""
    line = "x" * 600_000 + "the end"
    assert rows(line) > 3_000
    assert "the end" not in head(line, 200)
    assert head(line, 200).endswith("more lines")
    assert len(head(line, 200)) < 41_000
    assert head(line, None) == line
    assert head("a\nb\nc", 2) == "a\nb\n… 1 more line"
