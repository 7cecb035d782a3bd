"""B1: lines of ignore files mean what git says, and none of them takes long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from dragoman.workspace.ignore_patterns import IgnorePattern

SIGNS = ("a", "b", "*", "**", "?", "[ab]", "/", "/**/", "\\*", ".")
LINES = st.lists(st.sampled_from(SIGNS), min_size=1, max_size=9).map("".join)
PATHS = st.lists(st.text("ab.*", min_size=1, max_size=3), min_size=1, max_size=6).map("/".join)


def spec(*lines: str) -> GitIgnoreSpec:
    return GitIgnoreSpec.from_lines(lines, IgnorePattern, backend="simple")


@given(LINES, PATHS, st.sampled_from(["", "/"]))
def test_a_line_means_what_it_meant(line: str, path: str, end: str) -> None:
    try:
        meant = GitIgnoreSpec.from_lines([line], backend="simple")
    except ValueError:  # no line of an ignore file
        return
    assert spec(line).check_file(path + end).include == meant.check_file(path + end).include


@pytest.mark.parametrize(
    "line",
    [
        *("*a" * 60 + "b", "*?" * 60 + "b", "[a]*" * 60 + "b", "*a*/" * 20 + "b", "*" * 80 + "b"),
        *("**/" + "a/**/" * 30 + "b", "**/" + "*a*a*a/**/" * 15 + "*b*b"),
    ],
)
def test_no_line_takes_long_whatever_a_file_is_called(line: str) -> None:
    """An untrusted project can hold patterns that take years to test, and they would block the program
    (B1)."""
    rules = spec(line)
    for path in ("a" * 250, "/".join("a" * 100), "/".join(["a" * 60] * 50)):
        assert rules.check_file(path).include is None
