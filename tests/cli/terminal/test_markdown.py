"""Check Markdown at a terminal: it prints finished blocks during streaming, and loses no model output."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from dragoman.cli.terminal.screen import Blocks, Tail, TerminalMarkdown
from tests.browser.plays import ATTACKS, LONG, MARKDOWN

LISTS = "- one\n\n  more of it\n- two\n\nText\n===\n\n1. a\n2. b\n\n> said\nlazily\n\n    code\n\nend"


def rendered(text: str) -> str:
    out = io.StringIO()
    Console(file=out, width=60).print(TerminalMarkdown(text))
    return out.getvalue()


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
