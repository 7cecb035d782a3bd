"""Run several `dragoman` programs on one database: web nodes and workers, each a process that can be
killed."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from tests.cli.program import become_with, clean_environment
from tests.forks import FORKS
from tests.patience import PATIENCE


@dataclass
class Fleet:
    """Where its programs live: a store, a model, a folder in which all of them work."""

    folder: Path
    store: str
    model: str
    more: str = ""  # settings
    tools: str = ""  # a file of custom tools
    count: int = field(default=0, init=False)

    @property
    def work(self) -> Path:
        return self.folder / "work"

    def program(self, *words: str, tree: Path | None = None) -> Program:
        """Return a new program with separate settings in a separate folder, from other sources if `tree` is
        given."""
        self.count += 1
        own = self.folder / f"node-{self.count}"
        for made in (self.work, own):
            made.mkdir(parents=True, exist_ok=True)
        settings = f"""
            store = "{self.store}"
            workspace = "{self.work}"
            model = "stage/actor"
            tools = ["shell"]
            {self.more}
            [providers.stage]
            base_url = "{self.model}"
        """
        (own / "dragoman.toml").write_text(settings, "utf-8")
        if self.tools:
            (own / "tools").mkdir(exist_ok=True)
            (own / "tools" / "own.py").write_text(self.tools, "utf-8")
        return Program(own, words, tree)


class Program:
    """A process that can be ended in any way and started again."""

    def __init__(self, folder: Path, words: tuple[str, ...], tree: Path | None = None) -> None:
        self.folder = folder
        self.words = words
        self.tree = tree
        self.starts = 0
        self._process: Any = None

    @property
    def pid(self) -> int:
        return int(self._process.pid)

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.exitcode is None

    def start(self) -> None:
        self.starts += 1
        streams = [self.folder / f"{self.starts}.{name}" for name in ("in", "out", "err")]
        for stream in streams:
            stream.write_text("")
        environment = clean_environment(self.folder)
        if self.tree is not None:
            self._process = _TreeProcess(self.tree, self.words, self.folder, environment, streams)
            return
        arguments = (self.words, self.folder, environment, streams)
        self._process = FORKS.Process(target=become_with, args=arguments, daemon=True)
        self._process.start()

    async def printed(self, pattern: str, *, again: bool = False) -> re.Match[str]:
        """Return the match in its output when it is ready. With `again`, restart it if it could not start."""
        out = self.folder / f"{self.starts}.out"
        async with asyncio.timeout(PATIENCE):
            while True:
                if out.exists() and (found := re.search(pattern, out.read_text("utf-8"))):
                    return found
                assert self.alive or again, self.errors
                if not self.alive:
                    self.start()  # as its supervisor would: the database was away
                    out = self.folder / f"{self.starts}.out"
                await asyncio.sleep(0.02)

    @property
    def errors(self) -> str:
        return "".join(file.read_text("utf-8") for file in sorted(self.folder.glob("*.err")))

    def send_signal(self, what: signal.Signals) -> None:
        if self.alive:
            os.kill(self.pid, what)

    async def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self._process is not None:
            self.send_signal(how)
            self.send_signal(signal.SIGCONT)
            await asyncio.to_thread(self._process.join, PATIENCE)
            if self.alive:
                self._process.kill()
                raise TimeoutError(f"{self.words} does not end: {self.errors}")


class _TreeProcess:
    """A process of other sources, used as one of `multiprocessing` is."""

    def __init__(
        self,
        tree: Path,
        words: tuple[str, ...],
        folder: Path,
        environment: dict[str, str],
        streams: list[Path],
    ) -> None:
        with streams[0].open("rb") as stdin, streams[1].open("ab") as out, streams[2].open("ab") as err:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "dragoman.cli.main", *words],
                cwd=folder,
                env={**environment, "PYTHONPATH": str(tree / "src")},
                stdin=stdin,
                stdout=out,
                stderr=err,
            )
        self.pid = self._process.pid
        self.kill = self._process.kill

    @property
    def exitcode(self) -> int | None:
        return self._process.poll()

    def join(self, seconds: float) -> None:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)


@dataclass
class Node:
    """`dragoman serve`, one of several."""

    process: Program
    url: str
    token: str
    http: aiohttp.ClientSession

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        async with self.http.post(path, json=body) as answer:
            assert answer.status < 300, await answer.text()
            return await answer.json()

    async def get(self, path: str) -> Any:
        async with self.http.get(path) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json()

    async def follow(self, conversation: str) -> AsyncIterator[tuple[str, Any]]:
        """Yield the events that a client of this node receives, until the turn is over."""
        kind = ""
        async with self.http.get(f"/api/conversations/{conversation}/events") as events:
            async for line in events.content:
                if line.startswith(b"event: "):
                    kind = line[7:].decode().strip()
                elif line.startswith(b"data: "):
                    yield kind, json.loads(line[6:])
                    if kind == "turn.end":
                        return


READY = r"(http://127\.0\.0\.1:\d+)/\?token=(\S+)"


@asynccontextmanager
async def node(fleet: Fleet, role: str = "both") -> AsyncIterator[Node]:
    program = fleet.program("serve", "--port", "0", "--role", role)
    program.start()
    try:
        found = await program.printed(READY)
        headers = {"Authorization": f"Bearer {found[2]}"}
        async with aiohttp.ClientSession(found[1], headers=headers) as http:
            yield Node(program, found[1], found[2], http)
    finally:
        await program.end()


@asynccontextmanager
async def worker(fleet: Fleet) -> AsyncIterator[Program]:
    """`dragoman worker`, ready to take turns."""
    program = fleet.program("worker")
    program.start()
    try:
        await program.printed("a worker")
        yield program
    finally:
        await program.end()


async def until(what: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not what():  # noqa: ASYNC110 - other processes move it
            await asyncio.sleep(0.02)
