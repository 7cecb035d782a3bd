"""What of a message and its calls can be found by a search, and how what was found is shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from heapq import merge

from pydantic import JsonValue

from dragoman.messages.message import ToolCall
from dragoman.store.conversations import Found
from dragoman.store.sql.database import Row, SqlConnection

_CHUNK = 20_000  # characters: a longer text is several rows, so that indexing one takes milliseconds
_OVERLAP = 200  # of one row with the next: what stands on the border is found too
_BEFORE, _AFTER = 16, 120  # characters of a snippet: a narrow list has to show what was found
_FEW = 5000  # messages: read one after the other, in some 50 ms
_WORD = re.compile(r"\b\w")  # Where one begins. In Chinese, which has no spaces, a clause.


def text_of_call(call: ToolCall) -> str:
    """What of a call can be found: the tool, its arguments and its result."""
    result = call.result.text if call.result is not None else ""
    return "\n".join((call.tool, *_words_of(call.arguments), result))


def chunks(text: str) -> Iterator[str]:
    """The text in rows."""
    text = text.replace("\0", " ").strip()
    for start in range(0, len(text), _CHUNK - _OVERLAP):
        if start and start + _OVERLAP >= len(text):
            return  # the chunk before holds it
        yield text[start : start + _CHUNK]


def words_of(query: str) -> list[str]:
    """What has to be found. Nothing where it could be in no text: half a character (a lone surrogate) is in
    none.
    """
    try:
        query.encode()
    except UnicodeEncodeError:
        return []
    return query.replace("\0", " ").split()


def without_nul(value: object) -> object:
    """As PostgreSQL has it, whose texts have no place for the character zero. In JSON it is written out, and
    stays."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) and "\0" in value else value


def plain_words(words: Sequence[str]) -> list[str]:
    """Those that a database can look for itself, in small letters, the longest first: of other alphabets it
    may not know them."""
    plain = {word.lower() for word in words if word.isascii() or word.lower() == word.upper()}
    return sorted(plain, key=lambda word: (-len(word), word))


def plain_part(words: Sequence[str]) -> str:
    """The longest of these. Empty where there is none."""
    return next(iter(plain_words(words)), "")


def has_few_texts(db: SqlConnection, sql: Mapping[str, str], user: str | None) -> bool:
    """Whether a person's texts are read faster than an index of everybody's."""
    if user is None:
        return False
    key = {"user": user, "limit": _FEW}
    return int(db.execute(sql["own_messages"], key).fetchone()["count"]) < _FEW


def has_all(text: str, words: Sequence[str]) -> bool:
    folded = text.casefold()
    return all(word.casefold() in folded for word in words)


def snippet_of(text: str, words: Sequence[str]) -> str:
    """What stands around the first word, with every word that is searched for between « and »."""
    pattern = re.compile("|".join(map(re.escape, words)), re.IGNORECASE)
    first = pattern.search(text)
    at = first.start() if first is not None else 0  # None where only the folding of case made them equal
    start, end = max(0, at - _BEFORE), at + _AFTER
    if start and (word := _WORD.search(text, start, at + 1)) is not None:  # None within a very long one
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
    """Texts of several searches, each of which gives the newest first."""
    return merge(*found, key=lambda row: -int(row["id"]))


def in_order(titles: list[Found], texts: list[Found], *, distinct: bool) -> list[Found]:
    """Titles first. With `distinct` each has its place however many are asked for."""
    if not distinct:
        seen = {one.conversation for one in texts}
        return [one for one in titles if one.conversation not in seen] + texts
    places = {one.conversation: one for one in texts}
    named = {one.conversation for one in titles}
    return [places.get(one.conversation, one) for one in titles] + [
        one for one in texts if one.conversation not in named
    ]
