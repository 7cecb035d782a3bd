"""Measure whether costs grow with other users' data: lists, search, opening, claiming, deleting and idle
nodes, in a PostgreSQL with 0, 1, 10 and 100 % of 200,000 waiting turns and 2 million messages of 20,000
users.

The time is what PostgreSQL itself spends on the statements of one operation (`pg_stat_statements`), the
best of several. Compare the columns of a row, not the rows. `--most 10` stops at 10 %.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
from nodes import machine, replace_part, server_cpu
from tests.fleet import Fleet, Node, node, worker
from tests.postgres import Server, served

from dragoman import Runtime
from dragoman.conversation.tree import Conversation
from dragoman.messages.message import Message, Text
from dragoman.messages.questions import Question
from dragoman.server.snapshots import Trees
from dragoman.store.codecs import QUESTION
from dragoman.store.postgres.store import PostgresStore
from dragoman.store.sql.rows import conversation_row, message_row

PEOPLE, EACH, MESSAGES = 20_000, 10, 10  # conversations per user, messages in each; one turn waits
SHARES = (0, 1, 10, 100)  # percent
LONG = 1_000  # messages in each of the ten conversations of one user
REPEATS = 5
REST = 15.0  # seconds
_TICKS = os.sysconf("SC_CLK_TCK")
_RANDOM = random.Random(1)
_WORDS = [f"w{_RANDOM.getrandbits(40):x}" for _ in range(5000)]
_WEIGHTS = [1 / (rank + 3) for rank in range(len(_WORDS))]
_BEGIN, _END = "<!-- sizes: written by benchmarks/sizes.py -->", "<!-- end of sizes -->"


# ── what others have ──────────────────────────────────────────────────────────────────────────────


def texts(count: int) -> Iterator[str]:
    """Return a text of about 250 characters. Each has the word `common`, one in a thousand `seldom`."""
    for words in zip(*[iter(_RANDOM.choices(_WORDS, _WEIGHTS, k=25 * count))] * 25, strict=True):
        yield f"common {' '.join(words)}{' seldom' if _RANDOM.random() < 0.001 else ''}"


class Filler:
    """Writes rows like the store, but in bulk and without its triggers."""

    def __init__(self, db: asyncpg.Connection[Any]) -> None:
        self._db = db
        self._seq = 0

    async def person(self, name: str | None, first: int, each: int = EACH, long: int = MESSAGES) -> None:
        await self.people([(name, first)], each, long)

    async def people(
        self, named: Sequence[tuple[str | None, int]], each: int = EACH, long: int = MESSAGES
    ) -> None:
        rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in _COLUMNS}
        for name, first in named:
            for number in range(first, first + each):
                self._conversation(rows, name, f"{number:08d}", 1.7e9 + _RANDOM.random() * 1e7, long)
        for table, columns in _COLUMNS.items():
            await self._db.copy_records_to_table(
                table, schema_name="sizes", columns=columns, records=rows[table]
            )

    def _conversation(
        self, rows: dict[str, list[tuple[Any, ...]]], user: str | None, id: str, at: float, long: int
    ) -> None:
        conv, turn, call = f"conv_{id}", f"turn_{id}", f"call_{id}"
        ids = [f"msg_{id}_{n}" for n in range(long)]
        tags = ("work",) if _RANDOM.random() < 0.2 else ()
        conversation = Conversation(conv, f"about {id}", ids[-1], user, created=at, updated=at, tags=tags)
        rows["conversations"].append(tuple(conversation_row(conversation).values()))
        for n, text in enumerate(texts(long)):
            self._seq += 1
            role = "assistant" if n % 2 else "user"
            message = Message(ids[n], conv, ids[n - 1] if n else None, role, (Text(text),), created=at)  # type: ignore[arg-type]
            rows["messages"].append((self._seq, *message_row(message).values()))
            rows["texts"].append((self._seq, self._seq, text))
        question = Question(f"ask_{id}", conv, turn, call, "approve", "note", "Note it?", {}, "", asked=at)
        rows["turns"].append((turn, conv, ids[-2], "waiting", 1, at))
        rows["facts"].append((turn, 1, 1, "{}"))
        rows["signals"].append((self._seq, turn, "follow", "{}"))
        rows["questions"].append((self._seq, question.id, conv, turn, call, QUESTION.dump(question)))


_COLUMNS = {
    "conversations": (
        *("id", "title", "leaf", "user", "settings", "usage", "created", "updated"),
        *("parent", "call", "pinned", "archived", "tags"),
    ),
    "messages": ("seq", "id", "conversation", "parent", "turn", "role", "body"),
    "texts": ("id", "message", "text"),
    "turns": ("id", "conversation", "message", "state", "live", "created"),
    "facts": ("turn", "seq", "epoch", "body"),
    "signals": ("seq", "turn", "kind", "body"),
    "questions": ("seq", "id", "conversation", "turn", "call", "body"),
}


async def fill(db: asyncpg.Connection[Any], filler: Filler, before: int, share: int) -> None:
    """Fill from one share of all users to the next. The index of all texts is built again afterwards: that is
    faster than updating it."""
    await db.execute("SET session_replication_role = replica; SET maintenance_work_mem = '1GB'")
    if not before and not share:
        await filler.person(None, 90_000_000)
        await filler.person("long", 91_000_000, EACH, LONG)
    if share >= 10:
        await db.execute("DROP INDEX sizes.texts_by_trigram")
    people = range(PEOPLE * before // 100, PEOPLE * share // 100)
    for start in range(people.start, people.stop, 200):
        await filler.people([(f"p{n}", n * EACH) for n in people[start - people.start :][:200]])
    if share >= 10:
        index = "CREATE INDEX texts_by_trigram ON sizes.texts USING gin (lower(text) public.gin_trgm_ops)"
        await db.execute(index, timeout=3600)
    for table, column in (("messages", "seq"), ("texts", "id"), ("signals", "seq"), ("questions", "seq")):
        await db.execute(
            f"SELECT setval(pg_get_serial_sequence('sizes.{table}', '{column}'), "
            f"(SELECT max({column}) FROM sizes.{table}))"
        )
    await db.execute("VACUUM ANALYZE", timeout=3600)
    await db.execute("CHECKPOINT")


# ── what one person does ──────────────────────────────────────────────────────────────────────────

Work = Callable[[int], Awaitable[object]]


def operations(runtime: Runtime, filler: Filler, db: asyncpg.Connection[Any]) -> dict[str, Work]:
    """Operations of a user with ten conversations. Each receives how often it was done before."""
    store, user = runtime.store, "local"
    assert isinstance(store, PostgresStore)

    async def delete(_: int) -> None:
        await store.delete_conversation("conv_92000000")

    def search(words: str, user: str = user) -> Work:
        return lambda _: store.search(words, user=user, limit=51, distinct=True)

    return {
        "list of conversations": lambda _: store.conversations(user=user, limit=51, archived=False),
        "list, by a tag": lambda _: store.conversations(user=user, limit=51, tag="work"),
        "tags": lambda _: store.tags(user),
        "questions": lambda _: store.questions(user=user),
        "open a conversation": lambda _: Trees(runtime).read("conv_90000003"),
        "claim a turn": lambda n: store.claim(f"turn_9000000{n % 10}"),
        "delete a conversation": delete,
        "search for a word in one text of a thousand": search("seldom"),
        "search for a word in every text": search("common"),
        "search for a title": search("about"),
        "search for two words that no text has together": search("common not"),
        "the same, by a user with ten conversations of 1,000 messages": search("common not", "long"),
        "a word in every text, by that user": search("common", "long"),
    }


async def measure(url: str, filler: Filler, db: asyncpg.Connection[Any]) -> dict[str, float]:
    """Milliseconds in PostgreSQL."""
    found: dict[str, float] = {}
    async with Runtime(url, role="web") as runtime:
        for name, work in operations(runtime, filler, db).items():
            times = []
            for count in range(REPEATS + 1):
                if name.startswith("delete"):
                    await db.execute("SET session_replication_role = replica")
                    await filler.person(None, 92_000_000, 1)
                    await db.execute("SET session_replication_role = DEFAULT")
                await db.execute("SELECT pg_stat_statements_reset()")
                await work(count)
                times.append(await db.fetchval(_SPENT))
            found[name] = min(times[1:])
            if name.startswith("claim"):
                await db.execute(
                    "UPDATE sizes.turns SET owner = NULL, epoch = 0 WHERE id LIKE 'turn_9000000_'"
                )
    return found


_SPENT = """
SELECT coalesce(sum(total_exec_time), 0) FROM pg_stat_statements
WHERE query NOT LIKE '%pg_stat_statements%' AND query NOT LIKE 'CHECKPOINT%' AND query <> 'SELECT $1'
  AND query NOT LIKE '%owners%' AND query NOT LIKE '%procrastinate%'"""


# ── nodes at rest ─────────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def reading(one: Node) -> AsyncIterator[None]:
    """Keep an idle web UI client open that shows a conversation and the list."""

    async def read(path: str) -> None:
        async with one.http.get(path, timeout=aiohttp.ClientTimeout(total=None)) as stream:
            async for _ in stream.content:
                pass

    path = "/api/conversations/conv_90000003/events"
    tasks = [asyncio.create_task(read(one)) for one in (path, "/api/events")]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def rest(server: Server, url: str, more: int) -> dict[str, float]:
    """Return the CPU per second, in milliseconds: a web node with a reader, and a worker, with this many more
    workers."""
    with tempfile.TemporaryDirectory() as folder:
        fleet = Fleet(Path(folder), url, "http://127.0.0.1:9/v1")
        async with AsyncExitStack() as running:
            web = await running.enter_async_context(node(fleet, "web"))
            first = await running.enter_async_context(worker(fleet))
            for _ in range(more):
                await running.enter_async_context(worker(fleet))
            await running.enter_async_context(reading(web))
            await asyncio.sleep(8)
            spent = {"web": (web.process.pid,), "worker": (first.pid,)}
            began = {name: _cpu(*pids) for name, pids in spent.items()}
            at_server, at = server_cpu(server), time.monotonic()
            await asyncio.sleep(REST)
            seconds = time.monotonic() - at
            found = {name: (_cpu(*pids) - began[name]) / seconds * 1000 for name, pids in spent.items()}
            return {**found, "PostgreSQL": (server_cpu(server) - at_server) / seconds * 1000}


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / _TICKS


# ── the table ─────────────────────────────────────────────────────────────────────────────────────


async def run(server: Server, shares: Sequence[int]) -> list[str]:
    url = server.url("sizes")
    store = PostgresStore(url)
    await store.open()
    await store.close()
    db = await asyncpg.connect(url.partition("&schema")[0])
    await db.execute("CREATE EXTENSION pg_stat_statements")
    filler, table, sizes = Filler(db), {}, []
    try:
        for before, share in zip((0, *shares), shares, strict=False):
            began = time.monotonic()
            await fill(db, filler, before, share)
            size = await db.fetchval("SELECT pg_database_size(current_database())")
            sizes.append(size / 2**20)
            print(
                f"{share} %: {size / 2**20:,.0f} MB, filled in {time.monotonic() - began:.0f} s", flush=True
            )
            found = await measure(url, filler, db)
            for more in (0, 3) if share in (0, shares[-1]) else (0,):
                at_rest = await rest(server, url, more)
                others = f" with {more + 1} workers" if more else ""
                found |= {f"{name} idle{others}, per second": one for name, one in at_rest.items()}
            for name, one in found.items():
                table.setdefault(name, {})[share] = one
                print(f"  {name}: {one:.2f} ms", flush=True)
    finally:
        await db.close()
    return [*lines(table, shares), "", f"On disk: {', '.join(f'{size:,.0f}' for size in sizes)} MB."]


def lines(table: dict[str, dict[int, float]], shares: Sequence[int]) -> list[str]:
    head = ["", *(f"{share} %" for share in shares), "slope"]
    rows = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for name, row in table.items():
        cells = [f"{row[share]:.2f} ms" if share in row else "" for share in shares]
        known = [share for share in shares if share in row]
        slope = row[known[-1]] / max(row[known[0]], 0.01)
        rows.append(f"| {' | '.join([name, *cells, f'×{slope:.1f}'])} |")
    return rows


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    words.add_argument("--most", type=int, default=100, help="percent of the full size")
    words.add_argument("--write", type=Path, help="a file with a table of these")
    wanted = words.parse_args()
    shares = [share for share in SHARES if share <= wanted.most]
    with served() as server:
        server.stop("fast")
        with (server.folder / "data" / "postgresql.conf").open("a") as settings:
            settings.write("shared_preload_libraries = 'pg_stat_statements'\nmax_wal_size = '8GB'\n")
        server.start()
        text = "\n".join([*asyncio.run(run(server, shares)), "", f"Measured: {machine()}."])
    print(text)
    if wanted.write is not None:
        replace_part(wanted.write, _BEGIN, text, _END)


if __name__ == "__main__":
    main()
