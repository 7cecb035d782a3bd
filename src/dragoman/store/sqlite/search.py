"""Full-text search in SQLite: texts are written with their message, and indexed later, in small steps.

A search reads the index for words of three letters and more, and the texts themselves for shorter ones and
for what is not yet in the index. What either gives is checked against the text itself.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from dragoman.messages.parts import ToolCall
from dragoman.store.conversations import Found
from dragoman.store.sqlite.database import Database
from dragoman.store.sqlite.readers import snapshot

_CHUNK = 20_000  # characters: a longer text is several rows, so that indexing one takes milliseconds
_OVERLAP = 200  # of one row with the next: what stands on the border is found too
_STEP = 10_000  # characters that one step puts into the index or takes out of it, or one row
_PAGES = 16  # of the index that one step merges
_SCANNED = 500_000  # texts that are looked through at most where the index does not help: about a second
_TRIGRAMS = 32  # of a query: enough to find few texts, which are then checked for the whole of it
_AROUND = 60  # characters of a snippet before and after what was found


class SqliteSearch(Database):
    _texts_changed = True  # since the last look: there may be something to index, also from an earlier run

    async def search(self, query: str, *, user: str | None = None, limit: int = 20) -> list[Found]:
        words = query.replace("\0", " ").split()
        if not words or not _is_text(query):
            return []

        def read(db: sqlite3.Connection) -> list[Found]:
            with snapshot(db):
                found = self._search_texts(db, words, user, limit)
                seen = {one.conversation for one in found}
                titles = self._search_titles(db, words, user)
                return [one for one in titles if one.conversation not in seen][:limit] + found

        return (await self._readers.run_slow(read))[:limit]

    def _search_texts(
        self, db: sqlite3.Connection, words: Sequence[str], user: str | None, limit: int
    ) -> list[Found]:
        found: dict[str, Found] = {}
        for row in self._candidates(db, words, user):
            if len(found) == limit:
                break
            if row["message"] not in found and _has_all(row["text"], words):
                snippet = snippet_of(row["text"], words)
                found[row["message"]] = Found(row["message"], row["conversation"], row["title"], snippet)
        return list(found.values())

    def _candidates(
        self, db: sqlite3.Connection, words: Sequence[str], user: str | None
    ) -> Iterator[sqlite3.Row]:
        """Texts in which the words may be, the newest first."""
        trigrams = _trigrams(words)
        (upto,) = db.execute(self._sql["indexed_upto"]).fetchone() if trigrams else (0,)
        key = {"after": upto, "scanned": _SCANNED, "part": _part(words), "user": user}
        yield from db.execute(self._sql["scan_texts"], key)
        if trigrams:
            query = " ".join('"' + trigram.replace('"', '""') + '"' for trigram in trigrams)
            yield from db.execute(self._sql["search_index"], {"query": query, "user": user})

    def _search_titles(self, db: sqlite3.Connection, words: Sequence[str], user: str | None) -> list[Found]:
        rows = db.execute(self._sql["titles"], {"user": user, "scanned": _SCANNED})
        return [
            Found(None, row["id"], row["title"], snippet_of(row["title"], words))
            for row in rows
            if _has_all(row["title"], words)
        ]

    # ── what runs in the writer's thread ──────────────────────────────────────────────────────────

    def _add_text(self, db: sqlite3.Connection, message: int | None, text: str) -> None:
        for chunk in _chunks(text):
            db.execute(self._sql["add_text"], {"message": message, "text": chunk})
            self._texts_changed = True

    def _add_text_of_call(self, db: sqlite3.Connection, call: ToolCall) -> None:
        for chunk in _chunks(text_of_call(call)):
            db.execute(self._sql["add_text_of_call"], {"id": call.id, "text": chunk})
            self._texts_changed = True

    def _tend_index(self, db: sqlite3.Connection) -> bool:
        """One small step, of which each takes a few milliseconds. Whether there may be more to do."""
        return self._merge(db) or self._forget_texts(db) or self._index_texts(db)

    def _merge(self, db: sqlite3.Connection) -> bool:
        before = db.total_changes
        db.execute(self._sql["merge_index"], {"pages": _PAGES})
        return db.total_changes - before > 1  # one is the command itself

    def _forget_texts(self, db: sqlite3.Connection) -> bool:
        if db.execute(self._sql["drop_texts"], {"limit": 200}).rowcount:
            return True
        last = self._step(db, "texts_to_forget")
        if last is not None:
            for name in ("unindex_texts", "forget_texts"):
                db.execute(self._sql[name], {"last": last})
        return last is not None

    def _index_texts(self, db: sqlite3.Connection) -> bool:
        last = self._step(db, "texts_to_index")
        if last is not None:
            for name in ("index_texts", "set_indexed"):
                db.execute(self._sql[name], {"last": last})
        return last is not None

    def _step(self, db: sqlite3.Connection, name: str) -> int | None:
        """The last text of as many as one step takes."""
        last, size = None, 0
        for row in db.execute(self._sql[name], {"limit": 100}).fetchall():
            if last is not None and size + row["size"] > _STEP:
                break
            last, size = row["id"], size + row["size"]
        return last


def text_of_call(call: ToolCall) -> str:
    """What of a call can be found: the tool, its arguments and its result."""
    result = call.result.text if call.result is not None else ""
    return "\n".join((call.tool, *_words_of(call.arguments), result))


def snippet_of(text: str, words: Sequence[str]) -> str:
    """What stands around the first word, with every word that is searched for between « and »."""
    pattern = re.compile("|".join(map(re.escape, words)), re.IGNORECASE)
    first = pattern.search(text)
    at = first.start() if first is not None else 0  # None where only the folding of case made them equal
    start, end = max(0, at - _AROUND), at + 2 * _AROUND
    marked = pattern.sub(lambda match: f"«{match[0]}»", text[start:end])
    return f"{'…' if start else ''}{marked}{'…' if end < len(text) else ''}"


def _has_all(text: str, words: Sequence[str]) -> bool:
    folded = text.casefold()
    return all(word.casefold() in folded for word in words)


def _is_text(query: str) -> bool:
    """Whether it could be in the store at all: half a character (a lone surrogate) is in no text."""
    try:
        query.encode()
    except UnicodeEncodeError:
        return False
    return True


def _part(words: Sequence[str]) -> str:
    """A word that SQLite can look for by itself, which knows the case of ASCII letters alone; or nothing."""
    plain = (word.lower() for word in words if word.isascii() or word.lower() == word.upper())
    return max(plain, key=len, default="")


def _trigrams(words: Sequence[str]) -> list[str]:
    """Three letters each that must be there, without one that another word has too."""
    found = (word[n : n + 3] for word in words for n in range(len(word) - 2))
    return list(dict.fromkeys(found))[:_TRIGRAMS]


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


def _chunks(text: str) -> Iterator[str]:
    text = text.replace("\0", " ").strip()
    for start in range(0, len(text), _CHUNK - _OVERLAP):
        if start and start + _OVERLAP >= len(text):
            return  # the chunk before holds it
        yield text[start : start + _CHUNK]
