"""Check that each error documents when it is raised and what to do, and that the docs agree."""

from __future__ import annotations

import inspect
import runpy
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman import errors
from dragoman.errors import DragomanError

ROOT = Path(__file__).parent.parent
SCRIPT: dict[str, Any] = runpy.run_path(str(ROOT / "scripts" / "errors_reference.py"))
PAGE = (ROOT / "docs" / "reference" / "errors.md").read_text("utf-8")
ERRORS = [one for one in vars(errors).values() if inspect.isclass(one) and issubclass(one, DragomanError)]


def test_the_docs_say_of_every_error_what_the_code_says() -> None:
    assert SCRIPT["rewrite"](PAGE) == PAGE, "run: python scripts/errors_reference.py docs/reference/errors.md"


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_every_error_is_in_the_docs_and_in_the_tree_at_the_top_of_its_file(
    error: type[DragomanError],
) -> None:
    assert f"## `{error.__name__}`\n" in PAGE
    assert error.__name__ in (errors.__doc__ or "")


def test_every_public_error_is_one_of_these() -> None:
    public = [getattr(dragoman, name) for name in dragoman.__all__]
    assert {one for one in public if inspect.isclass(one) and issubclass(one, Exception)} <= set(ERRORS)


def test_statuses_that_follow_each_other_are_a_range() -> None:
    assert SCRIPT["_ranges"]([409, 500, 501, 502]) == "409, 500–502"
