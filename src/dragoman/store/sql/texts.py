"""Selects the searchable text of messages and calls, and formats search results."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from heapq import merge

from pydantic import JsonValue

from dragoman.messages.message import ToolCall
from dragoman.store.conversations import Found
from dragoman.store.sql.database import Row, SqlConnection

# Characters per row. A longer text has several rows, so that indexing one takes milliseconds.
_CHUNK = 20_000
_OVERLAP = 200  # Overlap of adjacent rows, so that text across the border is found.
_BEFORE, _AFTER = 16, 120  # Characters of a snippet around a match, for a narrow list.
_FEW = 5000  # Messages that can be read sequentially in about 50 ms.
_WORD = re.compile(r"\b\w")  # The start of a word. In Chinese, which has no spaces, of a clause.


def text_of_call(call: ToolCall) -> str:
    """Return the searchable text of a call: its tool, arguments and result."""
    result = call.result.text if call.result is not None else ""
    return "\n".join((call.tool, *_words_of(call.arguments), result))


def chunks(text: str) -> Iterator[str]:
    """Yield the text split into rows."""
    text = text.replace("\0", " ").strip()
    for start in range(0, len(text), _CHUNK - _OVERLAP):
        if start and start + _OVERLAP >= len(text):
            return  # The previous chunk contains it.
        yield text[start : start + _CHUNK]


def words_of(query: str) -> list[str]:
    """Return the words to find. Return none for a lone surrogate, which no text contains."""
    try:
        query.encode()
    except UnicodeEncodeError:
        return []
    return query.replace("\0", " ").split()


def without_nul(value: object) -> object:
    """Return a value as PostgreSQL stores it, whose text cannot contain NUL.

    JSON escapes NUL, and keeps it.
    """
    return value.replace("\0", "\ufffd") if isinstance(value, str) and "\0" in value else value


def plain_words(words: Sequence[str]) -> list[str]:
    """Return the words that a database can compare, in lower case, the longest first.

    It may not know the case of other alphabets.
    """
    plain = {word.lower() for word in words if word.isascii() or word.lower() == word.upper()}
    return sorted(plain, key=lambda word: (-len(word), word))


def plain_part(words: Sequence[str]) -> str:
    """Return the longest of these words, or an empty string."""
    return next(iter(plain_words(words)), "")


def has_few_texts(db: SqlConnection, sql: Mapping[str, str], user: str | None) -> bool:
    """Return whether scanning a user's texts is faster than using the index of all texts."""
    if user is None:
        return False
    key = {"user": user, "limit": _FEW}
    return int(db.execute(sql["own_messages"], key).fetchone()["count"]) < _FEW


def has_all(text: str, words: Sequence[str]) -> bool:
    folded = text.casefold()
    return all(word.casefold() in folded for word in words)


def snippet_of(text: str, words: Sequence[str]) -> str:
    """Return the text around the first match, with each searched word between « and »."""
    pattern = re.compile("|".join(map(re.escape, words)), re.IGNORECASE)
    first = pattern.search(text)
    at = first.start() if first is not None else 0  # None if they match only after case folding.
    start, end = max(0, at - _BEFORE), at + _AFTER
    if start and (word := _WORD.search(text, start, at + 1)) is not None:  # None within a very long word.
        start = word.start()
    marked = pattern.sub(lambda match: f"«{match[0]}»", text[start:end]).lstrip()
    return f"{'…' if start else ''}{marked}{'…' if end < len(text) else ''}"


def _words_of(value: JsonValue) -> Iterator[str]:
    match value:
        case dict():
            for name, inner in value.items():
                yield name
                yield from _words_of(inner)
        case list():
            for inner in value:
                yield from _words_of(inner)
        case None | bool():
            pass
        case _:
            yield str(value)


def newest_first(*found: Iterator[Row]) -> Iterator[Row]:
    """Merge the results of several searches, each sorted from newest to oldest."""
    return merge(*found, key=lambda row: -int(row["id"]))


def in_order(titles: list[Found], texts: list[Found], *, distinct: bool) -> list[Found]:
    """Return title matches first. With `distinct`, the position of each is independent of the limit."""
    if not distinct:
        seen = {one.conversation for one in texts}
        return [one for one in titles if one.conversation not in seen] + texts
    places = {one.conversation: one for one in texts}
    named = {one.conversation for one in titles}
    return [places.get(one.conversation, one) for one in titles] + [
        one for one in texts if one.conversation not in named
    ]
