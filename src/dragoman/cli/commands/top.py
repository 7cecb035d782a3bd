"""Run `dragoman top`: show the processes that share a store, their turns, and what waits."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field

from pydantic import JsonValue
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from dragoman.cli.flags.inspection import TopFlags
from dragoman.cli.folder_trust import settings_for
from dragoman.cli.lookup import open_store
from dragoman.cli.terminal.tables import as_markup
from dragoman.cli.terminal.text import count, print_json
from dragoman.runtime import Runtime
from dragoman.store.turns import JobQueue, job_queue_of

_EVERY = 1.0  # seconds between updates


@dataclass(slots=True)
class Overview:
    """The state of all processes at one moment. `lag` is how long the first turn has waited for a worker."""

    nodes: dict[str, Counter[str]] = field(default_factory=dict)  # turns by state
    unowned: Counter[str] = field(default_factory=Counter)
    questions: int = 0
    queued: int = 0  # messages that wait for the previous turn
    jobs: int = 0
    lag: float = 0.0
    oldest: float = 0.0  # seconds since the start of the oldest turn that does not wait for a user

    @property
    def report(self) -> dict[str, JsonValue]:
        return {
            "nodes": {name: {**states} for name, states in self.nodes.items()},
            "unowned": {**self.unowned},
            "questions": self.questions,
            "queued": self.queued,
            "jobs": self.jobs,
            "lag": self.lag,
            "oldest": self.oldest,
        }


async def show_top(flags: TopFlags) -> None:
    """Show the overview until Ctrl-C, or once if the output is not a terminal."""
    console = Console(highlight=False)
    async with open_store(settings_for(flags)) as runtime:
        shared = job_queue_of(runtime.store)
        jobs = shared() if shared is not None else None
        if jobs is not None:
            await jobs.open()
        try:
            if flags.json:
                print_json((await look(runtime, jobs)).report)
            elif flags.once or not console.is_terminal:
                console.print(_drawn(await look(runtime, jobs)))
            else:
                with Live(console=console, auto_refresh=False, screen=True) as live:
                    while True:
                        live.update(_drawn(await look(runtime, jobs)), refresh=True)
                        await asyncio.sleep(_EVERY)
        finally:
            if jobs is not None:
                await jobs.close()


async def look(runtime: Runtime, jobs: JobQueue | None) -> Overview:
    store, now = runtime.store, time.time()
    seen = Overview({node: Counter() for node in await store.nodes()})
    for row in await store.live_turns():
        seen.nodes.get(row.owner or "", seen.unowned)[row.state] += 1
        if row.state != "waiting":
            seen.oldest = max(seen.oldest, now - row.created)
    seen.questions = len(await store.questions())
    seen.queued = len(await store.queued())
    if jobs is not None:
        seen.jobs, seen.lag = await jobs.waiting()
    return seen


def _drawn(seen: Overview) -> Group:
    table = Table(box=None, pad_edge=False)
    for column in ("node", "process", "running", "waiting", "in which states"):
        table.add_column(column, style="dim" if column == "in which states" else "")
    for name, states in seen.nodes.items():
        _, _, rest = name.removeprefix("run_").partition("_")
        process, _, host = rest.partition("_")
        table.add_row(as_markup(host) or "this machine", as_markup(process), *_numbers(states))
    if seen.unowned:
        table.add_row("nobody", "", *_numbers(seen.unowned))
    if not seen.nodes:
        table.add_row("there is none", "", "", "", "")
    more = [
        f"{_wait(seen.questions, 'question')} for a person.",
        f"{_wait(seen.queued, 'message')} for the turn before.",
        f"{_wait(seen.jobs, 'turn')} for a worker, the first for {seen.lag:.0f} s.",
        f"The oldest turn that runs began {seen.oldest:.0f} s ago.",
    ]
    return Group(table, Text(""), *(Text(line) for line in more))


def _wait(number: int, noun: str) -> str:
    return f"{count(number, noun)} {'waits' if number == 1 else 'wait'}"


def _numbers(states: Counter[str]) -> tuple[str, str, str]:
    running = sum(states.values()) - states["waiting"]
    shown = ", ".join(f"{number} {state}" for state, number in sorted(states.items()) if number)
    return str(running), str(states["waiting"]), shown
