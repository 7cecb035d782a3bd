"""The dialects read every reply of the table in `replies` (D1, D3), cut in every place (D2)."""

from __future__ import annotations

import pytest

from dragoman.dialects.dialect import NAMES, dialect
from tests.dialects.calls import in_pieces
from tests.dialects.replies import REPLIES, TOOLS
from tests.sweeps import some


@pytest.mark.parametrize("name", NAMES)
def test_a_reply_is_read_as_the_table_says(name: str) -> None:
    for case in REPLIES[name]:
        parsed = dialect(name).parse(case.reply, TOOLS)

        assert [(call.name, call.arguments) for call in parsed.calls] == list(case.calls), case.about
        assert parsed.text == case.text, case.about
        assert len(parsed.errors) == len(case.errors), (case.about, parsed.errors)
        for error, words in zip(parsed.errors, case.errors, strict=True):
            assert words in error, case.about


@pytest.mark.parametrize("name", NAMES)
def test_d2_a_reply_reads_the_same_wherever_it_is_cut(name: str) -> None:
    for case in REPLIES[name]:
        whole = dialect(name).parse(case.reply, TOOLS)

        assert in_pieces(name, list(case.reply), TOOLS) == whole, case.about
        for cut in some(range(len(case.reply)), max(7, len(case.reply) // 50)):
            assert in_pieces(name, [case.reply[:cut], case.reply[cut:]], TOOLS) == whole, (case.about, cut)


def test_every_dialect_has_its_table() -> None:
    assert tuple(REPLIES) == NAMES
    for replies in REPLIES.values():
        assert len({case.about for case in replies}) == len(replies)
