"""Ids may be shortened."""

from __future__ import annotations

import pytest

from dragoman.cli.lookup import match_id
from dragoman.errors import BadRequest, NotFound


def test_ids_may_be_shortened_as_long_as_one_is_meant() -> None:
    ids = ["conv_abc", "conv_abd", "conv_x"]
    assert match_id("conversation", "conv_x", ids) == match_id("conversation", "x", ids) == "conv_x"
    with pytest.raises(BadRequest, match="2 ids: conv_abc, conv_abd"):
        match_id("conversation", "ab", ids)
    with pytest.raises(NotFound):
        match_id("conversation", "", ids)
