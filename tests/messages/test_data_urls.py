"""Addresses that hold a file themselves."""

from __future__ import annotations

from base64 import b64encode
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.messages.media import DataUrl, data_in, parse_data_url

LONG = f"data:{'x' * 2000},"


@given(st.binary(max_size=200), st.booleans(), st.sampled_from(["data:", "DATA:", "Data:text/plain"]))
def test_what_was_put_into_an_address_comes_out_of_it(data: bytes, coded: bool, head: str) -> None:
    """M3"""
    written = f"{head};charset=utf-8;base64,{b64encode(data).decode()}" if coded else f"{head},{quote(data)}"
    assert data_in(written) == data


def test_what_stands_before_the_comma_is_told() -> None:
    """M3"""
    assert parse_data_url("data:Image/PNG;x=1;BASE64,AA==") == DataUrl("image/png", True, 26)
    assert parse_data_url("data:;base64,") == DataUrl("", True, 13)
    assert parse_data_url("data:text/base64,a") == DataUrl("text/base64", False, 17)


@pytest.mark.parametrize(
    "url", ["", "data:", "data:text/plain", "https://a.example/,", f"data:{'x' * 2000},"]
)
def test_other_addresses_hold_nothing(url: str) -> None:
    """M3"""
    assert parse_data_url(url) is None
    assert data_in(url) is None
