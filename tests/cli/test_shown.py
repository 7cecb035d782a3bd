"""Text on its way to a terminal: what would steer it, what is cut, and Markdown as it streams in."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from dragoman.cli.chat.markdown import Blocks, Rendered, Tail
from dragoman.cli.ids import only
from dragoman.cli.plain import head, one_line, plain, shown_json
from dragoman.errors import BadRequest, NotFound
from tests.browser.plays import ATTACKS, LONG, MARKDOWN

LISTS = "- one\n\n  more of it\n- two\n\nText\n===\n\n1. a\n2. b\n\n> said\nlazily\n\n    code\n\nend"


def rendered(text: str) -> str:
    out = io.StringIO()
    Console(file=out, width=60).print(Rendered(text))
    return out.getvalue()


@pytest.mark.parametrize(
    ("said", "safe"),
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
def test_what_would_steer_a_terminal_is_left_out(said: str, safe: str) -> None:
    assert plain(said) == safe


@given(st.text())
def test_no_text_keeps_an_escape(text: str) -> None:
    assert not set(plain(text)) & set("\x1b\x9b\x07\x08\r\u202e")
    assert "\n" not in one_line(text)
    assert "\x1b" not in shown_json(text)


def test_in_arguments_what_cannot_be_seen_is_written_out() -> None:
    assert shown_json({"path": "a\u202eb"}) == '{"path": "a\\u202eb"}'
    assert shown_json({"a": "x" * 100}).count("\n") == 2


def test_long_texts_are_cut_and_say_so() -> None:
    assert head("a\nb\nc", 2) == "a\nb\n… 1 more lines"
    assert head("a\nb", 2) == "a\nb"


@given(st.data())
def test_however_a_text_is_cut_no_letter_of_it_is_lost(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([MARKDOWN, LISTS, ATTACKS]))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=20)))
    blocks, done = Blocks(), []
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        if finished := blocks.feed(text[start:end]):
            done.append(finished)
    assert "\n".join([*done, blocks.end()]) == text


def test_blocks_look_as_they_would_in_one_piece() -> None:
    for text in (MARKDOWN, LISTS, LONG):
        blocks, done = Blocks(), []
        for line in text.splitlines(keepends=True):
            if finished := blocks.feed(line):
                done.append(finished)
        done.append(blocks.end())
        assert len(done) > 2
        apart = [line for block in done for line in rendered(block).split("\n") if line.strip()]
        assert apart == [line for line in rendered(text).split("\n") if line.strip()]


def test_html_images_and_addresses_are_text() -> None:
    shown = rendered("<b>x</b> ![me](http://evil/x.png) [y](http://z)")
    assert shown.strip() == "<b>x</b> !me (http://evil/x.png) y (http://z)"


def test_what_is_live_is_not_taller_than_the_screen() -> None:
    out = io.StringIO()
    Console(file=out, width=60).print(Tail(LONG, 5))
    assert len(out.getvalue().rstrip("\n").split("\n")) <= 5


def test_ids_may_be_shortened_as_long_as_one_is_meant() -> None:
    ids = ["conv_abc", "conv_abd", "conv_x"]
    assert only("conversation", "conv_x", ids) == only("conversation", "x", ids) == "conv_x"
    with pytest.raises(BadRequest, match="2 ids: conv_abc, conv_abd"):
        only("conversation", "ab", ids)
    with pytest.raises(NotFound):
        only("conversation", "", ids)
