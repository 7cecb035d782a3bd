"""Describe a text attachment to a model."""

from __future__ import annotations

from base64 import b64encode

import pytest

from dragoman.messages.media import text_inside, text_of


@pytest.mark.parametrize("written", ["utf-8", "utf-16", "utf-16-le", "utf-16-be"])
def test_m3_a_text_is_read_as_its_first_bytes_say(written: str) -> None:
    """M3: much of what Windows writes is UTF-16, with a mark at its beginning."""
    text = "\ufeff" * (written[-2:] in ("le", "be")) + "Grüße, 你好 🎉\r\n"
    data = text.encode(written)
    assert text_of(data) == "Grüße, 你好 🎉\r\n"
    assert text_inside(f"data:text/plain;base64,{b64encode(data).decode()}") == "Grüße, 你好 🎉\r\n"


def test_m3_what_is_no_text_is_told_as_well_as_it_can_be() -> None:
    assert text_of(b"Gr\xfc\xdfe") == "Gr\ufffd\ufffde"
    assert text_of(b"\xff\xfeG\x00r") == "G\ufffd"
