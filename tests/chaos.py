"""Attack a fleet during turns of every kind: kill, pause and stop nodes, and restart the database.

In the end, every turn must have ended exactly once.

    make chaos                                     # 2 web nodes, 3 workers, 300 turns
    python -m tests.chaos --turns 40 --seed 7      # the same attacks again
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from dragoman.store.postgres.store import PostgresStore
from tests.fleet import READY, Fleet, Program
from tests.loopback import loopback
from tests.people import GONE, Person, Refused, act, attacked_fleet
from tests.postgres import Server, served
from tests.readers import Reader

PATIENCE = 600.0  # seconds for everything to end
SETTLED = 20.0  # seconds for everything to end after the attacks are over


@dataclass
class Web:
    """A web node at its present address."""

    program: Program
    http: aiohttp.ClientSession | None = None
    is_read: bool = True  # whether readers of conversations go there

    async def connect(self) -> None:
        found = await self.program.printed(READY, again=True)
        if self.http is not None:
            await self.http.close()
        headers = {"Authorization": f"Bearer {found[2]}"}
        timeout = aiohttp.ClientTimeout(sock_connect=5, sock_read=30)
        self.http = aiohttp.ClientSession(found[1], headers=headers, timeout=timeout)


@dataclass
class Chaos:
    """All of it."""

    fleet: Fleet
    server: Server
    random: random.Random
    webs: list[Web] = field(default_factory=list)
    workers: list[Program] = field(default_factory=list)
    promised: dict[str, str] = field(default_factory=dict)
    streams: dict[tuple[str, int], list[tuple[int, str]]] = field(default_factory=dict)
    readers: list[Reader] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    attacks: Counter[str] = field(default_factory=Counter)
    peace: asyncio.Event = field(default_factory=asyncio.Event)  # no more attacks

    async def start(self, webs: int, workers: int, tree: Path | None = None) -> None:
        for _ in range(webs):
            web = Web(self.web_program(tree))
            web.program.start()
            self.webs.append(web)
        for _ in range(workers):
            self.workers.append(self.worker_program(tree))
            self.workers[-1].start()
        await asyncio.gather(*(web.connect() for web in self.webs))
        await asyncio.gather(*(worker.printed("a worker", again=True) for worker in self.workers))

    def web_program(self, tree: Path | None = None) -> Program:
        return self.fleet.program("serve", "--port", "0", "--role", "web", tree=tree)

    def worker_program(self, tree: Path | None = None) -> Program:
        return self.fleet.program("worker", "--turns", "16", tree=tree)

    async def stop(self) -> None:
        for web in self.webs:
            if web.http is not None:
                await web.http.close()
        await asyncio.gather(*(one.end() for one in (*(web.program for web in self.webs), *self.workers)))

    # ── what people do ────────────────────────────────────────────────────────────────────────────

    async def ask(self, method: str, path: str, body: Any = None, *, tries: int = 1000) -> Any:
        """At any web node, again and again while none can serve."""
        for _ in range(tries):
            web = self.random.choice(self.webs)
            try:
                assert web.http is not None
                async with web.http.request(method, path, json=body) as answer:
                    if answer.status < 300:
                        return await answer.json()
                    if answer.status in (404, 409, 422):
                        raise Refused(await answer.text())
                    if answer.status != 503:
                        self.failures.append(f"{method} {path}: {answer.status} {await answer.text()}")
            except GONE:
                pass
            await asyncio.sleep(0.2)
        raise TimeoutError(f"{method} {path} was never answered")

    async def follow(self, turn: str, web: Web) -> None:
        """Every event of a turn at one node, from where one was when it broke off."""
        heard = self.streams.setdefault((turn, self.webs.index(web)), [])
        while not heard or heard[-1][1] != "turn.end":
            last = next((seq for seq, _ in reversed(heard) if seq), 0)
            with suppress(*GONE):
                assert web.http is not None
                async with web.http.get(f"/api/turns/{turn}/events?after={last}") as stream:
                    assert stream.status != 204, f"{turn} is said to be heard to its end after {last}"
                    await self._read(stream, heard)
            await asyncio.sleep(0.2)

    def reader(self, conversation: str, *, moves: bool) -> Reader:
        """Of its stream, at any web node."""
        self.readers.append(Reader(self, conversation, moves))
        return self.readers[-1]

    async def _read(self, stream: aiohttp.ClientResponse, heard: list[tuple[int, str]]) -> None:
        number, kind = 0, ""
        async for line in stream.content:
            if line.startswith(b"id: "):
                number = int(line[4:]) if line[4:].strip().isdigit() else 0  # a long ID that ended is `over`
            elif line.startswith(b"event: "):
                kind = line[7:].decode().strip()
            elif line.startswith(b"data: "):
                if number:
                    heard.append((number, kind))
                elif kind == "turn.end":
                    heard.append((0, kind))
                number = 0

    # ── what happens to nodes ─────────────────────────────────────────────────────────────────────

    async def attack(self, every: float) -> None:
        """Attack until `peace` is set. Each attack is completed, so a node that is down comes back."""
        ways: list[tuple[str, Callable[[], Awaitable[None]]]] = [
            ("killed", lambda: self._end(signal.SIGKILL)),
            ("told to stop", lambda: self._end(signal.SIGTERM)),
            ("paused", self._pause),
            ("cut", self._cut),
        ]
        while not self.peace.is_set():
            name, way = self.random.choice(ways)
            with suppress(TimeoutError):
                async with asyncio.timeout(every * (0.5 + self.random.random())):
                    await self.peace.wait()
            if not self.peace.is_set():
                self.attacks[name] += 1
                await way()

    async def restart_database(self) -> None:
        self.attacks["database crashed"] += 1
        await asyncio.to_thread(self.server.stop, "immediate")
        await asyncio.sleep(self.random.random() * 3)
        await asyncio.to_thread(self.server.start)

    async def _end(self, how: signal.Signals) -> None:
        web = self.random.choice(self.webs)
        program = self.random.choice([web.program, *self.workers])
        await program.end(how)
        await asyncio.sleep(self.random.random())
        program.start()
        if program is web.program:
            await web.connect()
        else:
            await program.printed("a worker", again=True)

    async def _pause(self) -> None:
        program = self.random.choice([*(web.program for web in self.webs), *self.workers])
        program.send_signal(signal.SIGSTOP)
        await asyncio.sleep(self.random.choice((1, 4, 14)))
        program.send_signal(signal.SIGCONT)

    async def _cut(self) -> None:
        """Every connection that a random half of the programs has to the database."""
        import asyncpg

        with suppress(OSError, asyncpg.PostgresError):
            db = await asyncpg.connect(re.sub(r"&schema=\w+", "", self.fleet.store))
            others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            await db.execute(f"{others} AND backend_type = 'client backend' AND random() < 0.5")
            await db.close()

    # ── what must be so in the end ────────────────────────────────────────────────────────────────

    async def check(self) -> list[str]:
        wrong = list(self.failures)
        file = self.fleet.work / "effects"
        effects = Counter(file.read_text().split() if file.exists() else [])
        wrong += [f"the effect {key} was there {count} times" for key, count in effects.items() if count > 1]
        done: set[str] = set()
        store = PostgresStore(self.fleet.store)
        await store.open()
        try:
            live = await store.live_turns()
            wrong += [f"turn {row.id} is {row.state}: it never ended" for row in live]
            wrong += [f"{one.turn} has a signal unread" for one in await store.turns_with_signals()]
            wrong += [f"question {one.id} is open" for one in await store.questions()]
            for turn, text in self.promised.items():
                row = await store.turn(turn)
                if row.state not in ("completed", "cancelled"):
                    wrong.append(f"{turn}, {text!r}, ended in the state {row.state}")
                messages, _ = await store.messages(row.conversation)
                for call in (call for message in messages if message.turn == turn for call in message.calls):
                    if not call.state.settled or call.result is None:
                        wrong.append(f"call {call.id} of {text!r} is {call.state}, without a result")
                    elif call.state == "completed":
                        done.add(str(call.arguments["key"]))
            for reader in self.readers:
                wrong += reader.differences((await store.messages(reader.conversation))[0])
        finally:
            await store.close()
        wrong += [f"{key} is said to be done, and is not" for key in done - effects.keys()]
        return wrong + self._uneven_streams()

    def _uneven_streams(self) -> list[str]:
        wrong = []
        for (turn, web), heard in self.streams.items():
            numbers = [seq for seq, _ in heard if seq]
            if numbers != sorted(set(numbers)):
                wrong.append(f"turn {turn}, web node {web}: an event came twice, or out of order")
            others = [seq for seq, _ in self.streams.get((turn, 0), []) if seq]
            if numbers and others:  # a client that returns very late receives only the end
                first, last = max(numbers[0], others[0]), min(numbers[-1], others[-1])
                told = [[one for one in each if first <= one <= last] for each in (others, numbers)]
                if told[0] != told[1]:
                    wrong.append(f"turn {turn}: web nodes 0 and {web} told {told[0]} and {told[1]}")
        return wrong


async def run(
    folder: Path,
    server: Server,
    *,
    schema: str,
    seed: int,
    webs: int = 2,
    workers: int = 3,
    turns: int = 300,
    conversations: int = 60,
    every: float = 2.0,
    crashes: int = 2,
    say: Callable[[str], None] = lambda text: None,
) -> list[str]:
    """Run the attacks and return the faults at the end."""
    async with loopback(act) as model:
        chaos = Chaos(attacked_fleet(folder, server.url(schema), model.url), server, random.Random(seed))
        try:
            await chaos.start(webs, workers)
            people = [Person(chaos, n, turns // conversations) for n in range(conversations)]
            talking = asyncio.gather(*(person.talk() for person in people))
            attacking = asyncio.create_task(chaos.attack(every))
            began = time.monotonic()
            for crash in range(crashes):
                await asyncio.sleep(8 + chaos.random.random() * 8)
                if not talking.done():
                    await chaos.restart_database()
                    say(f"the database crashed and is back ({crash + 1} of {crashes})")
            while len(chaos.promised) < turns and not talking.done() and time.monotonic() < began + PATIENCE:
                await asyncio.wait([talking], timeout=2)
                over = time.monotonic() - began
                say(f"{over:4.0f} s: {len(chaos.promised)} of {turns} turns begun; {dict(chaos.attacks)}")
                if attacking.done():
                    attacking.result()
            chaos.peace.set()  # and now let everything come to its end
            await attacking
            calm = time.monotonic()
            await asyncio.wait([talking], timeout=SETTLED * 3)
            settled = time.monotonic() - calm
            if not talking.done():
                talking.cancel()
            with suppress(asyncio.CancelledError):
                await talking
            starts = sum((reader.starts for reader in chaos.readers), Counter())
            say(f"settled after {settled:.1f} s; readers began by {dict(starts)}")
            late = [f"it took {settled:.1f} s to settle"] if settled > SETTLED else []
            return late + await chaos.check()
        finally:
            await chaos.stop()


def main() -> None:
    logging.getLogger("aiohttp").setLevel(logging.CRITICAL)  # clients disconnect from the model all the time
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    words.add_argument("--turns", type=int, default=300)
    words.add_argument("--conversations", type=int, default=60)
    words.add_argument("--runs", type=int, default=1)
    words.add_argument("--seed", type=int, default=random.randrange(10**6))
    words.add_argument("--keep", type=Path, help="a folder for the logs of the nodes")
    wanted = words.parse_args()
    failed = 0
    for number in range(wanted.runs):
        seed = wanted.seed + number
        print(f"run {number + 1} of {wanted.runs}, seed {seed}", flush=True)
        with served() as server, tempfile.TemporaryDirectory() as folder:
            place = wanted.keep / str(seed) if wanted.keep else Path(folder)
            place.mkdir(parents=True, exist_ok=True)
            began = time.monotonic()
            wrong = asyncio.run(
                run(
                    place,
                    server,
                    schema="chaos",
                    seed=seed,
                    turns=wanted.turns,
                    conversations=wanted.conversations,
                    say=lambda text: print(f"  {text}", flush=True),
                )
            )
        print(
            json.dumps({"seed": seed, "seconds": round(time.monotonic() - began), "wrong": wrong}), flush=True
        )
        failed += bool(wrong)
    if failed:
        sys.exit(f"{failed} of {wanted.runs} runs failed")


if __name__ == "__main__":
    main()
