"""The reference of the settings: made from the code, and the same in the docs."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from dragoman.cli.listening import HOST, PORT
from dragoman.config.build import DEFAULT_TOOLS
from dragoman.errors import ConfigError
from dragoman.server.app import UPLOAD_LIMIT

SCRIPT: dict[str, Any] = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "settings_reference.py"))
describe_type, reference, rewrite, rows_of, sections = (
    SCRIPT[name] for name in ("describe_type", "reference", "rewrite", "rows_of", "sections")
)

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "configuration.md"


def test_the_docs_say_what_the_code_says() -> None:
    text = PAGE.read_text("utf-8")
    assert text == rewrite(text), "run: python scripts/settings_reference.py docs/reference/configuration.md"


@pytest.mark.parametrize("section", sections(), ids=lambda section: section.table.__name__)
def test_every_setting_is_explained_and_nothing_else_is(section: Any) -> None:
    rows = list(rows_of(section))
    assert [key for key, _, words, _ in rows if not words] == []
    assert set(section.words) <= {key for key, *_ in rows}


def test_defaults_from_other_rooms_are_those_that_hold_there() -> None:
    shown = {
        (section.heading, key): default for section in sections() for key, _, _, default in rows_of(section)
    }
    assert shown["At the top of the file", "tools"] == f"`{list(DEFAULT_TOOLS)}`".replace("'", '"')
    assert shown["`[server]`", "host"] == f'`"{HOST}"`'
    assert shown["`[server]`", "port"] == f"`{PORT}`"
    assert shown["`[server]`", "upload_limit"] == f"`{UPLOAD_LIMIT}`"
    assert shown["`[limits]`", "max_rounds"] == "`10`"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (str, "string"),
        (bool, "`true` or `false`"),
        (str | None, "string"),
        (float | Literal[False], "number or `false`"),
        (Literal["a", "b"], "`a`, `b`"),
        (list[str], "list of strings"),
        (list[Literal["a", "b"]], "list: `a`, `b`"),
        (dict[str, str], "table"),
        (Annotated[int, Field(gt=0)], "whole number above 0"),
        (Annotated[int, Field(ge=0, le=9)], "whole number from 0 to 9"),
    ],
)
def test_a_type_is_said_in_words(kind: Any, words: str) -> None:
    assert describe_type(kind) == words


def test_what_stands_around_the_reference_stays() -> None:
    text = PAGE.read_text("utf-8")
    spoiled = text.replace(reference(), "old")
    assert spoiled != text
    assert rewrite(spoiled) == text


def test_a_file_without_a_place_for_it_is_left_alone() -> None:
    with pytest.raises(ConfigError, match="no place"):
        rewrite("# Settings")
