"""Tests of the PostgreSQL store: the suite for every store, and PostgreSQL specifics (S2, N1)."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

import asyncpg
import psycopg
import pytest
from pydantic import JsonValue

from dragoman import Runtime, ScriptedModel, tool
from dragoman.conversation.tree import Conversation
from dragoman.errors import BadRequest, ConfigError, EngineError, StoreUnavailable
from dragoman.store.address import StoreServer, store_address
from dragoman.store.postgres import PostgresStore
from dragoman.store.postgres.database import translate
from dragoman.store.sql.database import SqlConnection
from dragoman.store.store import Store, StoredEvent
from dragoman.wire.scripted import calls, says
from tests.cli.program import program
from tests.patience import PATIENCE, eventually
from tests.postgres import Server, programs, schema_of, served
from tests.store.conformance import Noun, StoreConformance, scene

pytestmark = pytest.mark.slow

DAMAGE: dict[Noun, str] = {
    "conversation": "UPDATE conversations SET settings = '{\"mode\": ' WHERE id = $1",
    "message": "UPDATE messages SET body = substr(body, 1, 40) WHERE id = $1",
    "call": 'UPDATE calls SET body = \'{"type":"song"}\' WHERE id = $1',
    "question": "UPDATE questions SET body = '?' WHERE id = $1",
    "grant": "UPDATE grants SET action = 'allwo' WHERE id = $1",
    "fact": "UPDATE facts SET body = '{' WHERE turn = $1 AND seq = (SELECT facts FROM turns WHERE id = $1)",
    "signal": "UPDATE signals SET body = '[]' WHERE turn = $1",
    "queued turn": "UPDATE queue SET body = '{}' WHERE turn = $1",
}


class TestPostgres(StoreConformance):
    server: ClassVar[Server]
    cleaner: ClassVar[psycopg.Connection[tuple[Any, ...]]]
    empty: ClassVar[list[str]] = []  # schemas that a test has left

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _served(cls, postgres: Server) -> Iterator[None]:
        cls.server = postgres
        with psycopg.connect(postgres.url("public").partition("&schema")[0], autocommit=True) as cls.cleaner:
            cls.cleaner.execute("SET session_replication_role = replica")
            yield

    @pytest.fixture(autouse=True)
    def _emptied(self) -> Iterator[None]:
        """The tables that one test leaves are the next one's, without what it stored: to make them is a third
        of what most of these tests take."""
        self.schemas: dict[Path, str] = {}
        yield
        for schema in self.schemas.values():
            tables = self.cleaner.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [schema])
            names = {row[0] for row in tables} - {"schema_version"}
            self.cleaner.execute(";".join(f"DELETE FROM {schema}.{one}" for one in names).encode())
            self.empty.append(schema)

    async def make(self, folder: Path) -> Store:
        if folder not in self.schemas:
            self.schemas[folder] = self.empty.pop() if self.empty else schema_of(folder)
        return PostgresStore(self.server.url(self.schemas[folder]))

    async def damage(self, folder: Path, noun: Noun, id: str) -> None:
        async with self._connected(self.schemas[folder]) as db:
            assert await db.execute(DAMAGE[noun], id) == "UPDATE 1"

    @asynccontextmanager
    async def _connected(self, schema: str) -> AsyncIterator[asyncpg.Connection[Any]]:
        url = self.server.url(schema).partition("&schema")[0]
        db = await asyncpg.connect(url, server_settings={"search_path": schema})
        try:
            yield db
        finally:
            await db.close()


async def test_a_read_is_one_statement_and_an_open_transaction_never_goes_back_to_the_pool(
    tmp_path: Path, postgres: Server
) -> None:
    """Resetting a connection would cost as much as the read (S2)."""
    url = postgres.url(schema_of(tmp_path))
    name = f"counted_{schema_of(tmp_path)}"
    server = await asyncpg.connect(url.partition("&schema")[0])
    await server.execute(f"CREATE ROLE {name} SUPERUSER LOGIN")
    await server.execute(f"ALTER ROLE {name} SET log_statement = 'all'")
    await server.close()
    log = postgres.folder / "log"

    def count() -> int:
        return log.read_text("utf-8", "replace").count("SELECT id, conversation, message, state, live")

    store = PostgresStore(url.replace("//dragoman@", f"//{name}@"), connections=1)
    await store.open()
    try:
        await scene.begun(store)
        before, size = count(), len(log.read_bytes())
        for _ in range(5):
            await store.turn("turn_1")
        assert count() - before == 5
        assert b"RESET ALL" not in log.read_bytes()[size:]
        async with store._connection() as connection:
            await connection.transaction().start()
            await connection.execute("UPDATE turns SET state = 'lost'")
            asyncio.get_running_loop().set_exception_handler(lambda *_: None)  # the driver tells of it
        assert (await store.turn("turn_1")).state == "preparing"
    finally:
        await store.close()


async def test_a_statement_that_never_ran_leaves_no_transaction_to_the_next(
    tmp_path: Path, postgres: Server
) -> None:
    """N3: the driver prepares a statement and executes it in two steps. A client that disconnects between the
    two, or a value that no text can hold, must not fail the next read on the same connection."""
    store = PostgresStore(postgres.url(schema_of(tmp_path)), connections=1)
    await store.open()
    try:
        store._upkeep.cancel()  # it uses the same connection
        await scene.begun(store)
        with suppress(asyncio.CancelledError):
            async with store._connection() as connection:
                prepared = await connection.prepare("SELECT count(*) FROM turns")
                raise asyncio.CancelledError
        read = await store.messages(scene.CONVERSATION.id)
        with pytest.raises(BadRequest):
            await store.message("half a character: \ud800")
        assert await store.messages(scene.CONVERSATION.id) == read
        with pytest.raises(asyncpg.InternalClientError):
            async with store._connection():
                raise asyncpg.InternalClientError("got result for unknown protocol state 3")
        assert await store.messages(scene.CONVERSATION.id) == read
        assert not store._unsettled  # no more statements than before
        assert prepared  # kept until here: the driver would close it, which settles the connection, too
    finally:
        await store.close()


async def test_a_wrong_argument_is_a_bug_and_no_store_that_is_away(tmp_path: Path, postgres: Server) -> None:
    """S2: the driver refuses it before the server sees it. Trying it again would never end."""
    async with opened_store(postgres.url(schema_of(tmp_path))) as store:
        await scene.begun(store)
        with pytest.raises(asyncpg.DataError, match="expected str"):
            await store.turn(7)  # type: ignore[arg-type]

        async def one_too_many() -> None:
            async with store._connection() as connection:
                await connection.fetch("SELECT $1::text", "one", "two")

        with pytest.raises(TypeError, match="1 argument"):
            await store._translated(one_too_many)
        with pytest.raises(BadRequest):
            await store.message("half a character: \ud800")
        assert (await store.messages(scene.CONVERSATION.id))[0]


async def test_what_is_deleted_is_vacuumed_before_it_is_a_fifth_of_a_table(
    tmp_path: Path, postgres: Server
) -> None:
    """Of two million messages, 40,000 deleted ones free their space for the next (S1)."""
    async with opened_store(postgres.url(schema_of(tmp_path))) as store, store._connection() as connection:
        query = "SELECT reloptions FROM pg_class WHERE relname = $1 AND relnamespace = $2::regnamespace"
        for table in ("events", "messages", "facts", "texts", "blobs"):
            (row,) = await connection.fetch(query, table, store.schema)
            (share,) = (one for one in row["reloptions"] if one.startswith("autovacuum_vacuum_scale_factor"))
            assert float(share.partition("=")[2]) <= 0.02


async def test_events_are_found_without_a_look_at_all_of_them(tmp_path: Path, postgres: Server) -> None:
    """The index is used also without statistics, because the table is filled and emptied all the time
    (N3)."""
    store = PostgresStore(postgres.url(schema_of(tmp_path)))
    await store.open()
    try:
        await scene.begun(store)
        body = "a piece of text " * 8
        await store.put_events([StoredEvent("turn_1", seq, body) for seq in range(1, 3001)], {"turn_1": 1})
        after = json.dumps({"turn_1": 2900, **{f"turn_{n}": 0 for n in range(2, 150)}})
        query = store._sql["events"].replace(":after::", f"'{after}'::").replace(":limit", "1000")
        async with store._connection() as connection:
            plan = [row[0].strip() for row in await connection.fetch(f"EXPLAIN {query}")]
        searched = [line for line in plan if line.startswith("Index Cond")]
        assert ["turn = " in line and "seq > " in line for line in searched] == [True], plan
        found = await store.events({"turn_1": 2900})
        assert [event.seq for event in found] == list(range(2901, 3001))
    finally:
        await store.close()


@pytest.mark.long
async def test_a_server_that_crashes_and_comes_back_is_survived(tmp_path: Path, postgres: Server) -> None:
    """The crash happens in the middle of a turn, which ends normally, and no call runs twice (N4)."""
    ran: list[int] = []
    reached, go = asyncio.Event(), asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        ran.append(1)
        reached.set()
        await (go.wait() if len(ran) == 1 else asyncio.Event().wait())
        return "waited"

    model = ScriptedModel(
        lambda request: says("done") if request.messages[-1].role == "assistant" else calls("wait")
    )
    store = PostgresStore(postgres.url(schema_of(tmp_path)))
    async with Runtime(store, model=model, tools=[wait], allow=["*"]) as runtime, asyncio.timeout(PATIENCE):
        turn = await runtime.send("go")
        await reached.wait()
        await asyncio.to_thread(postgres.stop)
        go.set()
        with pytest.raises(StoreUnavailable):
            await runtime.conversations()
        await asyncio.to_thread(postgres.start)
        while (await _state(runtime, turn.id)) != "completed":  # noqa: ASYNC110 - it is tried again now and then
            await asyncio.sleep(0.1)
        assert (await runtime.turn(turn.id).result()).text == "done"
        reached.clear()
        again = await runtime.send("go")  # it receives notifications of writes again
        await reached.wait()
        other = PostgresStore(postgres.url(schema_of(tmp_path)))
        await other.open()
        await other.post(again.id, "cancel", {"reason": "enough"})
        await other.close()
        assert (await again.result()).state == "cancelled"
    assert ran == [1, 1]


@pytest.mark.skipif(programs() is None, reason="there is no PostgreSQL server here to start")
async def test_a_program_ends_also_where_the_server_is_gone(tmp_path: Path) -> None:
    """N4: in order, and without waiting for it."""
    with served() as server:
        async with Runtime(server.url("gone"), model=ScriptedModel([])) as runtime, asyncio.timeout(PATIENCE):
            await runtime.conversation()
            await asyncio.to_thread(server.stop)


async def _state(runtime: Runtime, turn: str) -> str:
    try:
        return (await runtime.store.turn(turn)).state
    except StoreUnavailable:
        return "away"


async def test_of_many_that_start_at_once_one_makes_the_tables(tmp_path: Path, postgres: Server) -> None:
    """N1"""
    stores = [PostgresStore(postgres.url(schema_of(tmp_path)), connections=2) for _ in range(6)]
    await asyncio.gather(*(store.open() for store in stores))
    await stores[0].add_conversation(scene.CONVERSATION)
    assert [one.id for one in await stores[5].conversations()] == ["conv_1"]
    await asyncio.gather(*(store.close() for store in stores))


async def test_a_password_is_shown_nowhere(tmp_path: Path) -> None:
    """N1, U3"""
    url = "postgresql://ada:hunter2@127.0.0.1:1/none"
    with pytest.raises(ConfigError) as refused:
        await PostgresStore(url).open()
    shown = f"{refused.value}{refused.value.__cause__}{store_address(url)}{store_address(url)!r}"
    assert "hunter2" not in shown
    assert str(store_address(url.replace("127.0.0.1", "[::1"))) == "postgresql://…"
    assert "127.0.0.1:1" in str(refused.value)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("postgresql://[::1/chat", "address of the store is not valid"),
        ("postgresql://db/chat?schema=Our-own", "lowercase letters, digits and underscores"),
        ("postgresql://db/chat?schema=", "lowercase letters, digits and underscores"),
    ],
)
def test_an_address_without_sense_is_refused(url: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        PostgresStore(url)


async def test_a_store_that_is_away_or_closed_says_so(tmp_path: Path, postgres: Server) -> None:
    """S2: and so does its queue of turns."""
    away = PostgresStore("postgresql://127.0.0.1:1/none")
    with pytest.raises(ConfigError, match="The store is not open"):
        await away.conversations()
    with pytest.raises(ConfigError, match="Cannot open the store"):
        await away.schema_state()
    with pytest.raises(ConfigError, match="Cannot open the queue of turns"):
        await away.job_queue().open()
    async with opened_store(postgres.url(schema_of(tmp_path))) as store:
        jobs = store.job_queue()
        await jobs.open()
        assert await jobs.waiting() == (0, 0.0)
        await jobs.close()
        with pytest.raises(StoreUnavailable, match="the queue of turns is closed") as closed:
            await jobs.waiting()
        assert closed.value.retryable
        written = store._write(lambda db: None)
        for task in store._writes:  # as the loop of a program does that ends
            task.cancel()
        with pytest.raises(EngineError, match="ended before it was written"):
            await asyncio.wait_for(written, PATIENCE)
    with pytest.raises(EngineError, match="cannot read from it"):
        await store.conversations()
    with pytest.raises(EngineError, match="cannot write to it"):
        await store.add_conversation(scene.CONVERSATION)


async def test_who_lost_its_connection_or_its_row_has_them_again(tmp_path: Path, postgres: Server) -> None:
    """N4: until then it looks for writes by itself, and another process may take over its turns."""
    url = postgres.url(schema_of(tmp_path))
    store = PostgresStore(url, lease=4.0)
    await store.open()
    try:
        async with opened_store(url) as other, asyncio.timeout(PATIENCE):
            await scene.begun(store)
            while await store.has_new_writes():
                pass
            assert store._session._connection is not None
            process = store._session._connection.get_server_pid()
            async with other._connection() as connection:
                await connection.execute("SELECT pg_terminate_backend($1)", process)
            while not await other.is_abandoned("turn_1"):
                await other._run("remove_owner", name=store._owner_name)  # it may just have been renewed
            with suppress(StoreUnavailable):
                await store.has_new_writes()
            assert await store.has_new_writes()
            while await other.is_abandoned("turn_1"):  # noqa: ASYNC110 - it renews its lease now and then
                await asyncio.sleep(0.05)
            async with store._chore("any") as ours:
                assert ours
    finally:
        await store.close()


async def test_a_lease_that_cannot_be_renewed_is_logged_and_so_is_the_end_of_that(
    tmp_path: Path, postgres: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """N4"""
    caplog.set_level("WARNING", "dragoman.store")
    store = PostgresStore(postgres.url(schema_of(tmp_path)), lease=0.2)
    await store.open()
    try:
        async with store._connection() as connection:
            await connection.execute("ALTER TABLE owners RENAME TO away")
            await eventually(lambda: "cannot renew the lease of this process: relation" in caplog.text)
            await connection.execute("ALTER TABLE away RENAME TO owners")
        await eventually(lambda: "the lease of this process is renewed again" in caplog.text)
    finally:
        await store.close()


async def test_a_start_that_is_given_up_leaves_no_connection(tmp_path: Path, postgres: Server) -> None:
    """The server stops answering when this process starts to listen, and whoever starts it stops waiting."""
    stalled, open_ones = asyncio.Event(), set[int]()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_unix_connection(str(postgres.folder / ".s.PGSQL.5432"))
        open_ones.add(id(writer))

        async def back() -> None:
            while answer := await from_server.read(65_536):
                writer.write(answer)
            writer.close()

        answering = asyncio.create_task(back())
        while asked := await reader.read(65_536):
            if b"LISTEN" in asked:
                stalled.set()
                continue
            to_server.write(asked)
        answering.cancel()
        for ended in (to_server, writer):
            ended.close()
        open_ones.discard(id(writer))

    async with await asyncio.start_unix_server(relay, tmp_path / ".s.PGSQL.5432"):
        store = PostgresStore(postgres.url(schema_of(tmp_path)).replace(str(postgres.folder), str(tmp_path)))
        opening = asyncio.create_task(store.open())
        await asyncio.wait_for(stalled.wait(), PATIENCE)
        opening.cancel()
        await asyncio.wait([opening])
        assert opening.cancelled()
        await eventually(lambda: not open_ones)


@pytest.mark.parametrize("conflicts", [3, 100])
async def test_a_write_that_conflicts_is_tried_again_a_few_times(
    tmp_path: Path, postgres: Server, conflicts: int
) -> None:
    """N1"""
    tries: list[int] = []

    def write(db: SqlConnection) -> int:
        tries.append(1)
        if len(tries) <= conflicts:
            db.execute("DO $$ BEGIN RAISE serialization_failure; END $$")
        return len(tries)

    async with opened_store(postgres.url(schema_of(tmp_path))) as store:
        if conflicts == 3:
            assert await store._write(write) == 4
        else:
            with pytest.raises(StoreUnavailable, match="other writes"):
                await store._write(write)
            assert len(tries) == 8


async def test_two_that_count_up_at_once_lose_nothing(tmp_path: Path, postgres: Server) -> None:
    """A transaction locks a row that it reads for a change (N1)."""
    one, other = (PostgresStore(postgres.url(schema_of(tmp_path))) for _ in range(2))
    await asyncio.gather(one.open(), other.open())
    await one.add_conversation(scene.CONVERSATION)

    def more(settings: dict[str, JsonValue]) -> dict[str, JsonValue]:
        count = settings.get("count", 0)
        assert isinstance(count, int)
        return {**settings, "count": count + 1}

    await asyncio.gather(
        *(store.change_settings("conv_1", more) for store in (one, other) for _ in range(20))
    )
    assert (await one.conversation("conv_1")).settings["count"] == 40
    await asyncio.gather(one.close(), other.close())


async def test_who_may_not_migrate_names_the_command_that_does(tmp_path: Path, postgres: Server) -> None:
    """S2, N1: a user without the right to make tables runs the servers, another one migrates."""
    url = postgres.url(schema_of(tmp_path))
    refused = PostgresStore(url, migrates=False)
    with pytest.raises(ConfigError, match=r"no tables yet.*`dragoman store migrate`"):
        await refused.open()
    with pytest.raises(ConfigError, match=r"queue of turns has no tables yet.*`dragoman store migrate`"):
        await refused.job_queue().open()
    preview = await program("store", "migrate", url, "--dry-run", folder=tmp_path)
    assert "would take step 1: the first schema\n" in preview.out, preview.err
    assert preview.out.endswith("would make the queue of turns\n")
    assert (await refused.schema_state()).version == 0
    both = await asyncio.gather(*(program("store", "migrate", url, folder=tmp_path) for _ in range(2)))
    assert [one.status for one in both] == [0, 0], both
    async with Runtime(StoreServer(url, migrates=False), model=ScriptedModel([says("hi")])) as runtime:
        assert (await (await runtime.send("hello")).result()).text == "hi"
    assert "nothing to do" in (await program("store", "migrate", url, folder=tmp_path)).out


async def test_a_dump_is_restored_without_an_error(tmp_path: Path, postgres: Server) -> None:
    """The commands of multiple-servers.md restore it into an empty database, which then works as before
    (N1)."""
    tools = programs()
    assert tools is not None
    schema, file = schema_of(tmp_path), tmp_path / "chat.dump"
    source = postgres.url(schema).partition("&schema")[0]
    target = source.replace("/postgres?", f"/{schema}?")

    def run(*words: str) -> None:
        done = subprocess.run([tools / words[0], *words[1:]], check=False, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")

    async with Runtime(
        PostgresStore(postgres.url(schema)), model=ScriptedModel([says("marmalade")])
    ) as first:
        conversation = await first.conversation()
        await (await conversation.send("breakfast")).result()
    run("createdb", f"--host={postgres.folder}", "--username=dragoman", schema)
    try:
        names = (f"--schema={schema}", "--extension=pg_trgm")
        run("pg_dump", "--format=custom", *names, f"--file={file}", source)
        run("pg_restore", "--exit-on-error", f"--dbname={target}", str(file))
        restored = PostgresStore(f"{target}&schema={schema}")
        async with Runtime(restored, model=ScriptedModel([says("honey")])) as second:
            again = await second.conversation(conversation.id)
            assert (await (await again.send("more")).result()).text == "honey"
            assert [one.conversation for one in await second.store.search("marmalade")] == [again.id]
    finally:
        run("dropdb", "--force", f"--host={postgres.folder}", "--username=dragoman", schema)


async def test_of_several_nodes_one_deletes_what_is_old(tmp_path: Path, postgres: Server) -> None:
    """N1: while it is at it, the others do nothing."""
    stores = [PostgresStore(postgres.url(schema_of(tmp_path))) for _ in range(2)]
    for store in stores:
        await store.open()
    try:
        await stores[0].add_conversation(Conversation("conv_1", updated=1.0))
        async with stores[0]._chore("retention") as ours:
            assert ours
            assert await stores[1].delete_untouched(5.0) == []
        assert await stores[1].delete_untouched(5.0) == ["conv_1"]
    finally:
        for store in stores:
            await store.close()


async def test_other_processes_learn_that_a_user_lost_a_right(tmp_path: Path, postgres: Server) -> None:
    """V4: they check their open streams again."""
    url = postgres.url(schema_of(tmp_path))
    async with opened_store(url) as one, opened_store(url) as other:
        await one.add_person("ada", "hash", 1.0)
        while await other.has_new_writes():
            pass
        await one.end_session("session", 100.0, 1.0)
        assert await other.has_new_writes()


async def test_who_is_alone_has_the_others_wait(tmp_path: Path, postgres: Server) -> None:
    """N5: such as to queue turns that nobody runs."""
    url = postgres.url(schema_of(tmp_path))
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    async with opened_store(url) as one, opened_store(url) as other, asyncio.timeout(PATIENCE):

        async def enter() -> None:
            async with other._alone("any"):
                pass

        async with one._alone("any"), one._connection() as connection:
            entering = asyncio.create_task(enter())
            while not entering.done() and not await connection.fetchval(waiting):
                pass
            assert not entering.done()
        await entering


async def test_who_waits_is_woken_by_what_another_process_writes(tmp_path: Path, postgres: Server) -> None:
    """N3: of events and of everything else, long before it would look by itself."""
    url = postgres.url(schema_of(tmp_path))
    async with opened_store(url) as owner, opened_store(url) as other, asyncio.timeout(PATIENCE):
        await scene.begun(owner)
        await asyncio.sleep(0.3)  # notifications so far
        await other.wait_for_events(0.01)
        await other.wait_for_writes(0.01)
        waits = (other.wait_for_events(PATIENCE * 2), other.wait_for_writes(PATIENCE * 2))
        waiting = [asyncio.create_task(one) for one in waits]
        await asyncio.sleep(0)
        assert not any(one.done() for one in waiting)
        await owner.put_events([StoredEvent("turn_1", 1, "one")], {"turn_1": 1})
        await owner.post("turn_1", "cancel", {})
        await asyncio.gather(*waiting)


@asynccontextmanager
async def opened_store(url: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(url)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@pytest.mark.parametrize(
    ("fault", "words", "retryable"),
    [
        (asyncpg.DiskFullError("x"), "disk is full", True),
        (asyncpg.TooManyConnectionsError("x"), "no more connections", True),
        (asyncpg.OutOfMemoryError("x"), "lacks space or memory", True),
        (asyncpg.AdminShutdownError("x"), "shutting down", True),
        (asyncpg.ReadOnlySQLTransactionError("x"), "read-only", False),
        (asyncpg.ActiveSQLTransactionError("x"), "ended the transaction", True),
        (asyncpg.IdleInTransactionSessionTimeoutError("x"), "ended the transaction", True),
        (asyncpg.SerializationError("x"), "other writes", True),
        (asyncpg.InvalidPasswordError("x"), "refuses this user", False),
        (asyncpg.InsufficientPrivilegeError("x"), "lacks a right", False),
        (ConnectionRefusedError("x"), "no answer (x)", True),
        (TimeoutError(), "no answer (TimeoutError)", True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_fault_of_the_server_says_whether_it_is_worth_another_try(
    fault: Exception, words: str, retryable: bool
) -> None:
    """The PostgreSQL error code decides, by the nearest match. A bug in Dragoman keeps its error (S2)."""
    translated = translate(fault, "db")
    assert isinstance(translated, StoreUnavailable)
    assert words in str(translated)
    assert translated.retryable is retryable
    ours = asyncpg.UndefinedTableError("x")
    assert translate(ours, "db") is ours
