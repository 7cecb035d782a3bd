"""Stores everything in one SQLite file, with a folder next to it for blobs and locks: the default."""

from dragoman.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
