"""The store in a PostgreSQL database, for as many machines as one likes. Needs `dragoman[postgres]`."""

from dragoman.store.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
