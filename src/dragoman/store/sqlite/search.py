"""Provides full-text search in SQLite: texts are written with their message, and indexed later in small
steps.

A search uses the index for words of three letters and more. It scans the texts for shorter words and for
texts that are not indexed yet. All results are checked against the text itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dragoman.messages.message import ToolCall
from dragoman.store.conversations import Found
from dragoman.store.sql.database import Row, SqlConnection
from dragoman.store.sql.rows import text_in
from dragoman.store.sql.texts import (
    chunks,
    has_all,
    has_few_texts,
    in_order,
    newest_first,
    plain_part,
    snippet_of,
    text_of_call,
    words_of,
)
from dragoman.store.sqlite.database import SqliteDatabase

_STEP = 10_000  # Maximum characters, or one row, that a step adds to the index or removes from it.
_PAGES = 16  # Index pages merged per step.
_SCANNED = 500_000  # Maximum number of texts to scan if the index does not help: about a second.
_TRIGRAMS = 32  # Maximum trigrams of a query: enough to find few texts, which are then checked completely.


class SqliteSearch(SqliteDatabase):
    _texts_changed = True  # Since the last check. Texts of an earlier run may also be missing from the index.

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
                rows = self._candidates(db, words, user)
                titles = self._search_titles(db, words, user)
                if shared and user is not None:
                    rows = newest_first(rows, self._shared_candidates(db, words, user))
                    titles += self._search_titles(db, words, user, "shared_titles")
                found = self._search_texts(rows, words, limit, distinct=distinct)
                return in_order(titles, found, distinct=distinct)

        return (await self._read(read, slow=True))[:limit]

    def _search_texts(
        self, rows: Iterator[Row], words: Sequence[str], limit: int, *, distinct: bool
    ) -> list[Found]:
        found: dict[str, Found] = {}
        one = "conversation" if distinct else "message"
        for row in rows:
            if len(found) == limit:
                break
            text = text_in(row["text"]) or ""
            if row[one] not in found and has_all(text, words):
                title, snippet = text_in(row["title"]), snippet_of(text, words)
                found[row[one]] = Found(row["message"], row["conversation"], title, snippet)
        return list(found.values())

    def _candidates(self, db: SqlConnection, words: Sequence[str], user: str | None) -> Iterator[Row]:
        """Yield texts that may contain the words, the newest first."""
        if has_few_texts(db, self._sql, user):
            yield from db.execute(self._sql["scan_own_texts"], {"user": user, "part": plain_part(words)})
            return
        trigrams = _trigrams(words)
        (upto,) = db.execute(self._sql["indexed_upto"]).fetchone() if trigrams else (0,)
        key = {"after": upto, "scanned": _SCANNED, "part": plain_part(words), "user": user}
        yield from db.execute(self._narrowed("scan_texts", key), key)
        if trigrams:
            query = " ".join('"' + trigram.replace('"', '""') + '"' for trigram in trigrams)
            key = {"query": query, "user": user}
            yield from db.execute(self._narrowed("search_index", key), key)

    def _shared_candidates(self, db: SqlConnection, words: Sequence[str], user: str) -> Iterator[Row]:
        yield from db.execute(self._sql["scan_shared_texts"], {"user": user, "part": plain_part(words)})

    def _search_titles(
        self, db: SqlConnection, words: Sequence[str], user: str | None, query: str = "titles"
    ) -> list[Found]:
        key = {"user": user, "scanned": _SCANNED}
        rows = db.execute(self._narrowed(query, key), key)
        titles = ((row["id"], text_in(row["title"]) or "") for row in rows)
        return [
            Found(None, id, title, snippet_of(title, words)) for id, title in titles if has_all(title, words)
        ]

    # ── in the writer's thread ────────────────────────────────────────────────────────────────────

    def _add_text(self, db: SqlConnection, message: int, text: str) -> None:
        for chunk in chunks(text):
            db.execute(self._sql["add_text"], {"message": message, "text": chunk})
            self._texts_changed = True

    def _add_text_of_call(self, db: SqlConnection, call: ToolCall) -> None:
        for chunk in chunks(text_of_call(call)):
            db.execute(self._sql["add_text_of_call"], {"id": call.id, "text": chunk})
            self._texts_changed = True

    def _tend_index(self, db: SqlConnection) -> bool:
        """Run one small step, which takes a few milliseconds. Return whether more may be left."""
        return self._merge(db) or self._forget_texts(db) or self._index_texts(db)

    def _merge(self, db: SqlConnection) -> bool:
        before = self._changes(db)
        db.execute(self._sql["merge_index"], {"pages": _PAGES})
        return self._changes(db) - before > 1  # The command itself counts as one change.

    def _changes(self, db: SqlConnection) -> int:
        return int(db.execute(self._sql["total_changes"]).fetchone()[0])

    def _forget_texts(self, db: SqlConnection) -> bool:
        if db.execute(self._sql["drop_texts"], {"limit": 200}).rowcount:
            return True
        last = self._step(db, "texts_to_forget")
        if last is not None:
            for name in ("unindex_texts", "forget_texts"):
                db.execute(self._sql[name], {"last": last})
        return last is not None

    def _index_texts(self, db: SqlConnection) -> bool:
        last = self._step(db, "texts_to_index")
        if last is not None:
            for name in ("index_texts", "set_indexed"):
                db.execute(self._sql[name], {"last": last})
        return last is not None

    def _step(self, db: SqlConnection, name: str) -> int | None:
        """Return the last text that fits into one step."""
        last, size = None, 0
        for row in db.execute(self._sql[name], {"limit": 100}).fetchall():
            if last is not None and size + row["size"] > _STEP:
                break
            last, size = row["id"], size + row["size"]
        return last


def _trigrams(words: Sequence[str]) -> list[str]:
    """Return trigrams that must occur, without duplicates."""
    found = (word[n : n + 3] for word in words for n in range(len(word) - 2))
    return list(dict.fromkeys(found))[:_TRIGRAMS]
