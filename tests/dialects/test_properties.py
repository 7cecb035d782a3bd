"""Properties that every dialect has for any input (D1, D2, D3)."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dragoman.dialects.dialect import NAMES, TextCall, dialect
from dragoman.wire.thinking import CLOSING, END_TOKENS, OPENING
from tests.dialects.calls import (
    ShownText,
    calls,
    in_pieces,
    is_whole_reply,
    prose,
    replies,
    tools_of,
)
from tests.dialects.replies import TOOLS
from tests.sweeps import examples, some

pytestmark = pytest.mark.slow

quick = settings(max_examples=examples(5, 80))
some_dialects = pytest.mark.parametrize("name", some(NAMES, 2))


@some_dialects
@quick
@given(written=calls, before=prose, behind=prose)
def test_d1_what_a_dialect_writes_it_reads_and_the_prose_around_stays(
    name: str, written: list[TextCall], before: str, behind: str
) -> None:
    language = dialect(name)
    assume(not re.search(r"^[ \t]*[>|]", before, re.MULTILINE))  # a quotation or table, which can continue
    reply = f"{before}\n{language.calls(written)}\n{behind}"
    parsed = language.parse(reply, tools_of(written))

    if behind or (before and (is_whole_reply(name) or language.bare)):  # D8
        assert not behind or not parsed.found
        return
    assert [(call.name, call.arguments) for call in parsed.calls] == [
        (call.name, call.arguments) for call in written
    ]
    assert parsed.errors == ()
    assert parsed.text == before


@some_dialects
@quick
@given(data=st.data())
def test_d2_any_cut_shows_the_same_text_and_finds_the_same_calls(name: str, data: st.DataObject) -> None:
    reply = data.draw(replies(name))
    places = data.draw(st.lists(st.integers(0, len(reply)), max_size=20))
    pieces = [reply[start:end] for start, end in pairwise(sorted([0, *places, len(reply)]))]
    whole = dialect(name).parse(reply, TOOLS)

    assert in_pieces(name, pieces, TOOLS) == whole
    assert in_pieces(name, list(reply), TOOLS) == whole

    shown_text = ShownText(dialect(name), TOOLS)
    for piece in pieces:
        shown_text.feed(piece)
    shown_text.end()
    assert shown_text.text == whole.text


@some_dialects
@quick
@given(reply=st.text(max_size=200))
def test_d3_text_that_is_no_protocol_stays_as_it_is(name: str, reply: str) -> None:
    language = dialect(name)
    parsed = language.parse(reply, TOOLS)
    protocol = (*language.opens, *language.drops, *END_TOKENS, *OPENING, *CLOSING)
    assume(not parsed.found and not any(mark in reply for mark in protocol))

    assert parsed.text == reply


@some_dialects
@quick
@given(written=calls, before=prose)
def test_d2_protocol_is_never_shown_and_prose_is_not_kept_waiting(
    name: str, written: list[TextCall], before: str
) -> None:
    language = dialect(name)
    call = language.calls(written)
    assume(not before or not (is_whole_reply(name) or dialect(name).bare))
    assume(not re.search(r"^[ \t]*[>|]", before, re.MULTILINE))
    shown_text = ShownText(language, tools_of(written))

    shown = "".join(map(shown_text.feed, f"{before}\n"))
    assert shown == before
    shown = "".join(map(shown_text.feed, call))
    assert shown == ""
    assert shown_text.end() == ""


@pytest.mark.parametrize("name", NAMES)
def test_g6_every_dialect_carries_a_program_to_the_letter(name: str) -> None:
    """Lines, indents, quotes, braces and brackets of Python code stay as written."""
    code = (
        "import asyncio, json\nfound = {}\nfor n in range(3):\n    if n < 2 and n > -1:\n"
        '        found[f"file{n}"] = json.loads(await read_file(path=\'a\\tb\' + "c"))\n'
        'print(len(found), [*found], "<done/>")\nfound\n'
    )
    written = [TextCall("run_program", {"code": code}, "call_1")]
    language = dialect(name)
    parsed = language.parse(language.calls(written), tools_of(written))
    assert [(call.name, call.arguments) for call in parsed.calls] == [("run_program", {"code": code})]
    assert parsed.errors == ()
