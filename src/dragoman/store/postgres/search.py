"""Searches in PostgreSQL: the server finds texts by trigrams, and its results are checked here."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice

from dragoman.messages.message import ToolCall
from dragoman.store.conversations import Found
from dragoman.store.postgres.database import PostgresDatabase
from dragoman.store.sql.database import Row, SqlConnection
from dragoman.store.sql.texts import (
    chunks,
    has_all,
    has_few_texts,
    in_order,
    newest_first,
    plain_words,
    snippet_of,
    text_of_call,
    words_of,
)

_PAGE = 200  # Texts per page.
_PAGES = 250  # Maximum number of pages: about as many texts as SQLite scans in the time of one search.
_COMMON = 2000  # For a word in more texts than this, the index is useless.
_TITLES = 10_000  # Maximum number of titles to scan.
_LAST = 2**62  # sorts after every text


class PostgresSearch(PostgresDatabase):
    async def search(
        self,
        query: str,
        *,
        user: str | None = None,
        limit: int = 20,
        distinct: bool = False,
        shared: bool = False,
    ) -> list[Found]:
        if not (words := words_of(query)):
            return []

        def read(db: SqlConnection) -> list[Found]:
            with self._snapshot(db):
                titles = self._search_titles(db, words, user, limit)
                rows = self._candidates(db, words, user, limit, distinct=distinct)
                if shared and user is not None:
                    titles += self._search_titles(db, words, user, limit, "shared_titles")
                    rows = newest_first(rows, self._shared_candidates(db, words, user))
                found = self._search_texts(rows, words, limit, distinct=distinct)
            return in_order(titles, found, distinct=distinct)

        return (await self._read(read, slow=True))[:limit]

    def _search_titles(
        self,
        db: SqlConnection,
        words: Sequence[str],
        user: str | None,
        limit: int,
        query: str = "search_titles",
    ) -> list[Found]:
        key = {"user": user, "part": _pattern(plain_words(words)), "limit": _TITLES}
        rows = db.execute(self._narrowed(query, key), key)
        found = (row for row in rows if has_all(row["title"], words))
        return [
            Found(None, row["id"], row["title"], snippet_of(row["title"], words))
            for row in islice(found, limit)
        ]

    def _search_texts(
        self, rows: Iterator[Row], words: Sequence[str], limit: int, *, distinct: bool
    ) -> list[Found]:
        found: dict[str, Found] = {}
        one = "conversation" if distinct else "message"
        for row in rows:
            if row[one] not in found and has_all(row["text"], words):
                snippet = snippet_of(row["text"], words)
                found[row[one]] = Found(row["message"], row["conversation"], row["title"], snippet)
                if len(found) == limit:
                    break
        return list(found.values())

    def _candidates(
        self, db: SqlConnection, words: Sequence[str], user: str | None, limit: int, *, distinct: bool
    ) -> Iterator[Row]:
        """Yield texts that may contain the words, the newest first."""
        plain = plain_words(words)
        few = has_few_texts(db, self._sql, user)
        seldom = None if few else next((word for word in plain if self._is_seldom(db, word)), None)
        plain.sort(key=lambda word: word != seldom)  # The index searches for the first word.
        key: dict[str, object] = {"user": user, "part": _pattern(plain[:1])}
        key["others"] = json.dumps([_pattern([word]) for word in plain[1:]]) if plain[1:] else None
        known = len(plain) == len({word.lower() for word in words})  # The server can compare all words.
        if user is not None and known and seldom is None:
            key |= {"each": 1 if distinct else limit, "limit": limit}
            yield from db.execute(self._narrowed("search_own", key), key)
            return
        key |= {"limit": _COMMON if seldom else _PAGE, "before": _LAST}
        among = "search_texts" if seldom else "search_own_texts" if few else "scan_texts"
        for _ in range(_PAGES):
            rows = db.execute(self._narrowed(among, key), key).fetchall()
            yield from rows
            if len(rows) < int(str(key["limit"])):
                return
            key["before"] = rows[-1]["id"]

    def _shared_candidates(self, db: SqlConnection, words: Sequence[str], user: str) -> Iterator[Row]:
        first, *others = plain_words(words) or [""]
        rest = json.dumps([_pattern([word]) for word in others]) if others else None
        key = {"user": user, "part": _pattern([first]), "others": rest}
        yield from db.execute(self._narrowed("search_shared_texts", key), key)

    def _is_seldom(self, db: SqlConnection, word: str) -> bool:
        """Return whether the index finds the word, in few enough texts to read them all."""
        if len(word) < 3:
            return False
        key = {"part": _pattern([word]), "limit": _COMMON}
        return int(db.execute(self._sql["count_texts"], key).fetchone()["count"]) < _COMMON

    def _add_text(self, db: SqlConnection, message: int, text: str) -> None:
        for chunk in chunks(text):
            db.execute(self._sql["add_text"], {"message": message, "text": chunk})

    def _add_text_of_call(self, db: SqlConnection, call: ToolCall) -> None:
        for chunk in chunks(text_of_call(call)):
            db.execute(self._sql["add_text_of_call"], {"id": call.id, "text": chunk})


def _pattern(words: Sequence[str]) -> str:
    """Return the pattern for the index: the first of these words."""
    part = "".join(words[:1]).replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
    return f"%{part}%"
