"""Provides the queue of turns for several servers: procrastinate jobs in a separate schema of the same
database.

Its content may be lost: a turn that no process runs is queued again. The schema's name therefore contains
the version of procrastinate, and an upgrade starts with an empty queue. Workers of the old version empty
the old one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, LiteralString

import procrastinate
import psycopg
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException
from procrastinate.jobs import Status

from dragoman.errors import ConfigError, StoreUnavailable
from dragoman.store.turns import Work

_QUEUE = "turns"
_URGENT = 10  # a caller waits for it
_HEARTBEAT = 5.0  # Seconds between a worker's heartbeats.
_STALLED = 30.0  # Seconds without a heartbeat after which a worker's jobs are removed.
_AGAIN = 1.0  # Seconds before a worker that lost the database starts again.
_MISSED = 1.0  # Seconds between checks for jobs without a notification, such as delayed ones.
_SCHEMA = """SELECT 1 FROM pg_tables WHERE schemaname = %s AND tablename = 'procrastinate_jobs'"""
_WAITING: LiteralString = """
SELECT count(*) AS count, extract(epoch FROM now() - min(e.at)) AS seconds
FROM procrastinate_jobs j JOIN procrastinate_events e ON e.job_id = j.id AND e.type = 'deferred'
WHERE j.status = 'todo' AND j.queue_name = %(queue)s AND coalesce(j.scheduled_at, now()) <= now()"""
_log = logging.getLogger("dragoman.store")


class PostgresJobs:
    """Implements `JobQueue`."""

    def __init__(self, url: str, schema: str, alone: Callable[[str], Any], *, migrates: bool = True) -> None:
        self._url = url
        self._schema = schema
        self._queue = f"{_QUEUE}:{schema}"  # Notifications are shared by the whole database.
        self._alone = alone
        self._migrates = migrates
        self._app: procrastinate.App | None = None

    async def open(self) -> None:
        async with self._opening() as namespace:
            if self._migrates:
                await self._make_schema(namespace)
            elif not await self._is_made(namespace):
                raise ConfigError(
                    "The queue of turns has no tables yet, and the settings have migrate = false. Run "
                    "`dragoman store migrate` first."
                )
            options = {"options": f"-c search_path={namespace}", "application_name": "dragoman jobs"}
            connector = procrastinate.PsycopgConnector(
                conninfo=self._url, kwargs=options, min_size=1, max_size=4, timeout=15
            )
            self._app = procrastinate.App(connector=connector)
            await self._app.open_async()
        for name in ("procrastinate", "psycopg", "asyncpg.pool"):
            logging.getLogger(name).setLevel(logging.CRITICAL)  # This module logs what matters.

    async def is_made(self) -> bool:
        """Return whether its tables exist in the installed version. The queue need not be open."""
        async with self._opening() as namespace:
            return await self._is_made(namespace)

    async def migrate(self) -> None:
        """Create its tables without opening it."""
        async with self._opening() as namespace:
            await self._make_schema(namespace)

    @asynccontextmanager
    async def _opening(self) -> AsyncIterator[str]:
        """Yield the schema of its tables. Raise a readable ConfigError if it cannot be opened."""
        try:
            yield f"{self._schema}_jobs_{'_'.join(procrastinate.__version__.split('.')[:2])}"
        except (psycopg.Error, OSError, ConnectorException) as error:
            raise ConfigError(f"Cannot open the queue of turns: {_first_line(error)}") from None

    async def _connect(self, namespace: str) -> Any:
        return await psycopg.AsyncConnection.connect(
            self._url, options=f"-c search_path={namespace}", autocommit=True
        )

    async def _is_made(self, namespace: str) -> bool:
        async with await self._connect(namespace) as connection:
            found = await connection.execute(_SCHEMA, (namespace,))
            return await found.fetchone() is not None

    async def _make_schema(self, namespace: str) -> None:
        lock = f"dragoman migration {namespace}"
        async with await self._connect(namespace) as connection:
            await connection.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", (lock,))
            if not await self._is_made(namespace):
                script = procrastinate.schema.SchemaManager.get_schema()
                async with connection.transaction():
                    await connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{namespace}"'.encode())
                    await connection.execute(script.encode())

    async def close(self) -> None:
        if self._app is not None:
            await self._app.close_async()
            self._app = None

    async def put(self, turn: str, *, urgent: bool = False, delay: float = 0.0) -> None:
        schedule: dict[str, Any] = {"schedule_in": {"seconds": delay}} if delay else {}
        job = self._opened().configure_task(
            "advance",
            queue=self._queue,
            queueing_lock=turn if not delay else f"{turn} later",
            priority=_URGENT if urgent else 0,
            **schedule,
        )
        try:
            with suppress(AlreadyEnqueued):
                await job.defer_async(turn=turn)
        except ConnectorException as error:
            raise _unavailable(error) from error

    async def work(self, run: Work, *, places: int) -> None:
        app = self._opened()
        running: set[asyncio.Future[None]] = set()

        async def advance(turn: str) -> None:
            """Run a turn in a separate task: a worker that lost the database gives up only its jobs."""
            if (job := asyncio.current_task()) is not None:
                job.add_done_callback(_note_failure)
            task = asyncio.ensure_future(run(turn))
            running.add(task)
            task.add_done_callback(running.discard)
            await asyncio.shield(task)

        app.tasks["advance"] = app.task(name="advance")(advance)
        while True:
            try:
                await self._strike_off_stalled(app)
                await app.run_worker_async(
                    queues=[self._queue],
                    concurrency=places,
                    install_signal_handlers=False,
                    delete_jobs="always",
                    shutdown_graceful_timeout=0,
                    update_heartbeat_interval=_HEARTBEAT,
                    stalled_worker_timeout=_STALLED,
                    fetch_job_polling_interval=_MISSED,
                )
            except Exception as error:
                task = asyncio.current_task()
                # The worker was cancelled while the database was unreachable.
                if task is not None and task.cancelling():
                    raise asyncio.CancelledError from error
                _log.warning("cannot read the queue of turns, trying again: %s", _first_line(error))
            await asyncio.sleep(_AGAIN)

    async def waiting(self) -> tuple[int, float]:
        try:
            row = await self._opened().connector.execute_query_one_async(_WAITING, queue=self._queue)
        except ConnectorException as error:
            raise _unavailable(error) from error
        return int(row["count"]), float(row["seconds"] or 0.0)

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        async with self._alone(self._queue):
            yield

    def _opened(self) -> procrastinate.App:
        if self._app is None:
            raise StoreUnavailable("the queue of turns is closed", "try it at another node", retryable=True)
        return self._app

    async def _strike_off_stalled(self, app: procrastinate.App) -> None:
        """Remove the jobs of dead workers.

        Their turns are queued again when they are found without an owner.
        """
        stalled = await app.job_manager.get_stalled_jobs(queue=self._queue, seconds_since_heartbeat=_STALLED)
        for job in stalled:
            await app.job_manager.finish_job(job=job, status=Status.FAILED, delete_job=True)


def _note_failure(job: asyncio.Task[Any]) -> None:
    """Retrieve the job's error, since the worker does not.

    The worker cannot remove a job while the database is unreachable. The next attempt to read the queue logs
    that.
    """
    if not job.cancelled():
        job.exception()


def _unavailable(error: BaseException) -> StoreUnavailable:
    return StoreUnavailable(f"the queue of turns: {_first_line(error)}", "trying again", retryable=True)


def _first_line(error: BaseException) -> str:
    """Return only the first line: the rest may contain the URL."""
    cause = error.__cause__ or error
    return (str(cause).strip() or type(cause).__name__).splitlines()[0]
