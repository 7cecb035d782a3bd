"""Upgrade a fleet under load: nodes of an older commit and of this one share one database.

make upgrade                                   # from the commit before this one
python -m tests.upgrade --base a5f8f73         # from another
python -m tests.upgrade --base a5f8f73 --back  # and back to it: these sources first
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import logging
import random
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.chaos import Chaos
from tests.loopback import loopback
from tests.people import KINDS, Person, act, attacked_fleet
from tests.postgres import Server, served

ROOT = Path(__file__).parent.parent
PATIENCE = 300.0  # seconds for all turns to end
_SOURCES = "src/dragoman"
_WORKERS = f"{_SOURCES}/turn/drivers/jobs.py"  # where it is, there are workers
_FAR = 200  # commits to look through


class NoHistory(Exception):
    """There is nothing here to upgrade from."""


def previous() -> str:
    """The newest commit whose sources are others than those in this folder."""
    changed = _git("status", "--porcelain", "--", _SOURCES).strip()
    commits = _git("rev-list", "--first-parent", f"--max-count={_FAR}", "HEAD").decode().split()
    if changed:
        return commits[0]
    here = _git("rev-parse", f"HEAD:{_SOURCES}")
    for commit in commits[1:]:
        with suppress(NoHistory):  # a shallow clone knows the parent, and none of its files
            if _git("rev-parse", f"{commit}:{_SOURCES}") != here:
                return commit
    raise NoHistory("no earlier commit with other sources is in this clone")


def unpack(commit: str, folder: Path) -> Path:
    """The sources of a commit, as a folder."""
    try:
        _git("cat-file", "-e", f"{commit}:{_WORKERS}")
    except NoHistory:
        raise NoHistory(f"commit {commit[:9]} has no workers yet, or is not in this clone") from None
    with tarfile.open(fileobj=io.BytesIO(_git("archive", commit, "src"))) as archive:
        archive.extractall(folder, filter="data")
    return folder


def _git(*words: str) -> bytes:
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=True)
    except FileNotFoundError:
        raise NoHistory("there is no git here") from None
    except subprocess.CalledProcessError as error:
        why = error.stderr.decode(errors="replace").strip().splitlines()
        raise NoHistory(f"git has no history here: {why[-1] if why else words[0]}") from None
    return done.stdout


@dataclass
class Thinker(Person):
    """A user with an approval request of a node to be replaced, who answers when all old nodes are gone."""

    kind: str = "pays"
    upgraded: asyncio.Event = field(default_factory=asyncio.Event)

    async def talk(self) -> None:
        await self.begin()
        await self.say(self.kind, f"{self.kind} {self.number}-thinks")

    async def answer(self) -> None:
        if self.upgraded.is_set():
            await super().answer()

    async def asked(self) -> None:
        """Until it is."""
        async with asyncio.timeout(PATIENCE):
            while not await self._questions():  # noqa: ASYNC110 - other processes ask
                await asyncio.sleep(0.1)

    async def _questions(self) -> list[Any]:
        if not self.conversation:
            return []
        found = await self.chaos.ask("GET", f"/api/questions?conversation={self.conversation}")
        items: list[Any] = found["items"]
        return items


@dataclass
class Upgrade:
    """The steps of an upgrade, and the users who talk meanwhile."""

    chaos: Chaos
    target: Path | None
    say: Callable[[str], None]

    async def replace_web(self, place: int) -> None:
        """Replace a web node: its followers resume at the new one from their last event."""
        web = self.chaos.webs[place]
        await web.program.end()
        web.program = self.chaos.web_program(self.target)
        web.program.start()
        await web.connect()
        web.is_read = True
        self.say(f"web node {place} is replaced; {len(self.chaos.promised)} turns so far")

    async def replace_worker(self, place: int) -> None:
        """The new one is there before the old one goes."""
        old, new = self.chaos.workers[place], self.chaos.worker_program(self.target)
        new.start()
        await new.printed("a worker")
        self.chaos.workers[place] = new
        await old.end()
        self.say(f"worker {place} is replaced; {len(self.chaos.promised)} turns so far")

    async def let_talk(self, turns: int) -> None:
        """Until so many more have begun, by nodes of both kinds."""
        wanted = len(self.chaos.promised) + turns
        async with asyncio.timeout(PATIENCE):
            while len(self.chaos.promised) < wanted:  # noqa: ASYNC110 - other processes move it
                await asyncio.sleep(0.05)


async def run(
    folder: Path,
    server: Server,
    base: Path | None,
    target: Path | None,
    *,
    schema: str,
    seed: int,
    nodes: int = 2,
    people: int = 6,
    between: int = 6,
    say: Callable[[str], None] = lambda text: None,
) -> list[str]:
    """Run the upgrade and return the faults at the end. `base` and `target` are source trees, and None means
    these sources."""
    async with loopback(act) as model:
        chaos = Chaos(attacked_fleet(folder, server.url(schema), model.url), server, random.Random(seed))
        upgraded = asyncio.Event()
        thinkers = [
            Thinker(chaos, people + n, 1, "", kind, upgraded) for n, kind in enumerate(["pays", "looks"])
        ]
        talking: list[asyncio.Task[None]] = []
        try:
            await chaos.start(nodes, nodes, base)
            for web in chaos.webs:  # an older one keeps the promises of its version
                web.is_read = base is None
            say("the old nodes are there")
            over = asyncio.Event()
            talking = [asyncio.create_task(thinker.talk()) for thinker in thinkers]
            talking += [asyncio.create_task(_talk_on(chaos, n, over)) for n in range(people)]
            upgrade = Upgrade(chaos, target, say)
            await asyncio.gather(*(thinker.asked() for thinker in thinkers))
            await upgrade.let_talk(between)
            for place in range(nodes):
                await upgrade.replace_web(place)
                await upgrade.let_talk(between)
                await upgrade.replace_worker(place)
                await upgrade.let_talk(between)
            upgraded.set()
            over.set()
            async with asyncio.timeout(PATIENCE):
                await asyncio.gather(*talking)
            say(f"all of {len(chaos.promised)} turns have ended")
            return await chaos.check()
        finally:
            for task in talking:
                task.cancel()
            if talking:
                await asyncio.wait(talking)
            await chaos.stop()


async def _talk_on(chaos: Chaos, number: int, over: asyncio.Event) -> None:
    """Run turns in sequence until the upgrade is done."""
    person = Person(chaos, number, 1)
    await person.begin()
    count = 0
    while not over.is_set():
        kind = chaos.random.choice(KINDS)
        await person.say(kind, f"{kind} {number}-{count}")
        count += 1


def main() -> None:
    logging.getLogger("aiohttp").setLevel(logging.CRITICAL)  # clients disconnect from the model all the time
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    words.add_argument("--base", help="the commit to upgrade from: the one before this one, if none is named")
    words.add_argument("--back", action="store_true", help="from these sources to those")
    words.add_argument("--people", type=int, default=6)
    words.add_argument("--seed", type=int, default=random.randrange(10**6))
    words.add_argument("--keep", type=Path, help="a folder for the logs of the nodes")
    wanted = words.parse_args()
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as sources:
        try:
            commit = wanted.base or previous()
            tree = unpack(commit, Path(sources))
        except NoHistory as why:
            print(f"skipped: {why}")
            return
        print(f"{'back to' if wanted.back else 'from'} {commit[:9]}, seed {wanted.seed}", flush=True)
        began = time.monotonic()
        place = wanted.keep or Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        with served() as server:
            trees = (None, tree) if wanted.back else (tree, None)
            shown = lambda text: print(f"  {time.monotonic() - began:4.0f} s: {text}", flush=True)  # noqa: E731
            doing = run(
                place, server, *trees, schema="upgrade", seed=wanted.seed, people=wanted.people, say=shown
            )
            wrong = asyncio.run(doing)
        print(json.dumps({"base": commit[:9], "seconds": round(time.monotonic() - began), "wrong": wrong}))
        sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
