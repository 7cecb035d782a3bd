"""Tags of conversations: the few words that a person files one under."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dragoman.errors import BadRequest
from dragoman.messages.boundary import check_json
from dragoman.sentences import sentence

LONGEST_TAG = 40
MOST_TAGS = 20


def check_tags(tags: Any) -> list[str]:
    """Each once, with single spaces. BadRequest where one cannot be a tag, or they are too many."""
    given = [*tags] if isinstance(tags, Iterable) and not isinstance(tags, str) else None
    if given is None or not all(isinstance(tag, str) for tag in given):
        raise BadRequest(sentence("tags.kind", tags=tags))
    found = [*dict.fromkeys(map(_check_tag, given))]
    if len(found) > MOST_TAGS:
        raise BadRequest(sentence("tags.too_many", most=MOST_TAGS))
    return found


def usable_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Of those that came with an import, the first ones that can be tags."""
    words = dict.fromkeys(" ".join(tag.split()) for tag in tags)
    return tuple([word for word in words if 0 < len(word) <= LONGEST_TAG][:MOST_TAGS])


def _check_tag(tag: str) -> str:
    check_json(tag, "a tag")
    words = " ".join(tag.split())
    if not words or len(words) > LONGEST_TAG:
        raise BadRequest(sentence("tags.too_long", most=LONGEST_TAG))
    return words
