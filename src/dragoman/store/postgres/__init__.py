"""Stores everything in a PostgreSQL database, for any number of servers. Needs `dragoman[postgres]`."""

from dragoman.store.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
