"""Signatures that programs of a model see."""

from __future__ import annotations

from dragoman.tools.signatures import function_names


def test_each_tool_is_a_function_with_a_separate_valid_name() -> None:
    """Names that Python does not allow get underscores, and no two tools share one."""
    assert function_names(["a-b", "a.b", "class", "1st", "plain"]) == {
        "a_b": "a-b",
        "a_b_": "a.b",
        "class_": "class",
        "_1st": "1st",
        "plain": "plain",
    }
