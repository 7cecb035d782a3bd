"""Check skill files as they are written and edited: unedited parts keep every byte."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.tools.skills import Skill, edit_skill, parse_skill, write_skill

BAKE = Skill("bake", "How to bake.", "bread is wanted", False, "Do it so.", Path())
BY_HAND = """\
---
# mine, since 2019
license: "MIT"   # theirs
version: 1.10
description: >-
  How to
  bake.
# when it is cold
when: bread is wanted
allowed-tools: [shell, web]
metadata: |
  # no comment
  author: me
---

Do it so.

---
And so.
"""


def test_what_is_not_edited_keeps_every_byte() -> None:
    """Unknown keys, comments and the notation of numbers survive (C12)."""
    found = parse_skill(BY_HAND.encode(), "bake")
    assert edit_skill(BY_HAND.encode(), found).decode() == BY_HAND
    told = edit_skill(BY_HAND.encode(), replace(found, description="How to: bake", always=True)).decode()
    assert told == BY_HAND.replace(
        "description: >-\n  How to\n  bake.\n", "description: 'How to: bake'\n"
    ).replace("author: me\n", "author: me\nalways: true\n")
    gone = edit_skill(BY_HAND.encode(), replace(found, when="", text="Otherwise.")).decode()
    head = BY_HAND.replace("when: bread is wanted\n", "")
    assert gone == head[: head.index("\n\nDo it so.")] + "\n\nOtherwise.\n"


def test_line_ends_of_windows_stay() -> None:
    before = BY_HAND.replace("\n", "\r\n").encode()
    found = parse_skill(before, "bake")
    shown = replace(found, text=found.text.replace("\r\n", "\n"))  # as a browser has it
    assert edit_skill(before, shown) == before
    after = edit_skill(before, replace(shown, when="it is cold", text="One.\nTwo."))
    assert after.count(b"\n") == after.count(b"\r\n")
    assert after.endswith(b"---\r\n\r\nOne.\r\nTwo.\r\n")
    assert parse_skill(after, "bake").when == "it is cold"


def test_the_last_key_goes() -> None:
    text = "---\ndescription: d\nwhen: w\n---\nt\n"
    after = edit_skill(text.encode(), replace(parse_skill(text.encode(), "x"), when=""))
    assert after.decode() == "---\ndescription: d\n---\nt\n"


@pytest.mark.parametrize(
    "head",
    [
        "{description: d, when: w}",
        "description: c\ndescription: d\nwhen: w",
        "description: d\nwhen:\n- a\n- b",
    ],
)
def test_what_cannot_be_edited_safely_is_refused_or_right(head: str) -> None:
    text = f"---\n{head}\n---\nt\n".encode()
    wanted = replace(parse_skill(text, "x"), description="other")
    try:
        after = edit_skill(text, wanted)
    except ValueError as error:
        assert "by hand" in str(error)  # noqa: PT017
    else:
        assert parse_skill(after, "x").description == "other"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"description": " \n "}, "needs a description"),
        ({"text": "x" * 200_001}, "too large"),
        ({"text": "half \ud83d"}, "half a character"),
        ({"description": "\x01" * 4000}, "too long"),
    ],
)
def test_what_cannot_be_written_says_why(change: dict[str, Any], words: str) -> None:
    for write in (write_skill, lambda skill: edit_skill(BY_HAND.encode(), skill)):
        with pytest.raises(ValueError, match=words):
            write(replace(BAKE, **change))


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@given(description=words.filter(lambda text: text.strip()), when=words, always=st.booleans(), text=words)
def test_what_is_written_is_read_again(description: str, when: str, always: bool, text: str) -> None:
    """This holds for any text of a user, also if it looks like YAML or like the end of the front matter
    (C12)."""
    skill = Skill("no", description, when, always, text, Path())
    for data in (write_skill(skill), edit_skill(BY_HAND.encode(), skill)):
        found = parse_skill(data, "no")
        assert (found.description, found.when) == (" ".join(description.split()), " ".join(when.split()))
        assert (found.name, found.always) == ("no", always)
        assert found.text == text.replace("\r\n", "\n").replace("\r", "\n").strip()
