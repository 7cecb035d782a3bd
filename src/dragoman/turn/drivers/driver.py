"""Who sees to it that turns are run: in one process a task for each, on many machines a job queue."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from dragoman.store.store import Started, TurnRow
from dragoman.turn.facts import Fact


class Driver(Protocol):
    hands_out: bool  # what nobody runs waits for a worker: it is not broken off

    async def open(self) -> None:
        """Go on with every turn that nobody runs, except those that only wait for a person."""

    async def close(self) -> None:
        """Stop, without ending any turn: they go on at the next start."""

    def beginning(self) -> AbstractContextManager[None]:
        """A turn is about to be stored and begun: what comes in for it meanwhile is not missed."""

    async def begin(self, started: Started, fact: Fact) -> None:
        """Run a turn that was just stored."""

    async def begin_queued(self, turn: str) -> None:
        """Run a turn that was put in the queue, if what it waits for is over by now."""

    async def adopt(self, turn: str, *, wanted: bool = False) -> bool:
        """Run a turn that was begun elsewhere. False where it is over, or its owner is alive, or where this
        process adopts none, unless a person wants it. TurnSetAside where it cannot go on here."""

    def leaves(self, turn: str) -> bool:
        """Whether a turn that no process runs stays so: this one only looks, answers and leaves."""

    async def wake(self, turn: str) -> None:
        """A signal came in: let the turn read it, wherever it is."""

    async def will_run(self, turn: TurnRow) -> bool:
        """Whether a turn that nobody runs goes on by itself when there is room: it is not broken off."""

    def forget(self, conversation: str) -> None:
        """It was deleted: nothing of it need be in memory."""
