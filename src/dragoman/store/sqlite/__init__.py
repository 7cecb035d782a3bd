"""The store in one SQLite file, with a folder beside it for blobs and locks: the default."""

from dragoman.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
