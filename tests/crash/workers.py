"""Run processes that share one store. Each is a worker of this file, which stops at a gate and is killed or
stopped there from outside. Workers write their actions to a diary on disk."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

from dragoman import Plugin, Runtime, ScriptedModel, TurnView, tool
from dragoman.errors import Fenced
from dragoman.messages.message import Text, ToolCall
from dragoman.messages.request import Request
from dragoman.tools.builtin.shell import shell
from dragoman.turn.plugin import PlannedCall
from dragoman.wire.scripted import Line, calls, says
from tests.crash.clockwork import NEVER, Clockwork, Moment, deadly_store
from tests.crash.diary import Diary
from tests.forks import FORKS
from tests.patience import PATIENCE

LEASE = 6.0  # seconds: more than a busy machine keeps anybody waiting


class Gate:
    """The one place where a process waits until the file `go` exists. Every other gate is open."""

    def __init__(self, folder: Path, name: str, clockwork: Clockwork) -> None:
        self._folder = folder
        self._name = name
        self._clockwork = clockwork

    async def __call__(self, place: str) -> None:
        if place == self._name:
            diary(self._folder).note(at=place, pid=os.getpid())
            await until((self._folder / "go").exists)
            self._clockwork.wind()


class Holds(Plugin):
    """Stops a call that is planned and has not started."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def before_tool(self, call: PlannedCall, turn: TurnView) -> None:
        await self._gate(f"before {call.name}")


def worker(folder: Path, gate: str = "", clockwork: Clockwork | None = None) -> Runtime:
    """Return a runtime with a few tools, and a model that calls the requested ones one after the other.

    The clockwork kills the process at a moment counted from the gate on.
    """
    clockwork = clockwork or Clockwork(NEVER)
    held = Gate(folder, gate, clockwork)

    @tool(replay="safe")
    async def first() -> str:
        """The first."""
        diary(folder).note(ran="first", pid=os.getpid())
        await held("in first")
        return "1"

    @tool
    async def second() -> str:
        """The second."""
        diary(folder).note(ran="second", pid=os.getpid())
        return "2"

    @tool(replay="safe")
    async def forks() -> str:
        """Leave a child behind that lives long."""
        if gate == "in forks" and (child := os.fork()) == 0:
            signal.alarm(int(PATIENCE) * 5)
            while True:
                signal.pause()
        elif gate == "in forks":
            diary(folder).note(forked=child)
        await held("in forks")
        return "forked"

    return Runtime(
        deadly_store(folder, clockwork, lease=LEASE),
        model=ScriptedModel(_script),
        tools=[first, second, forks, shell],
        plugins=[Holds(held)],
        allow=["*"],
        workspace=folder,
    )


def _script(request: Request) -> Line:
    """Each line of what the person said is a tool's name, or `$` and a line for the shell."""
    said, made = "", 0
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, ToolCall):
                made += 1
            elif isinstance(part, Text) and message.role == "user":
                said, made = part.text, 0
    wanted = said.splitlines()
    if made >= len(wanted):
        return says("done")
    line = wanted[made]
    return calls("shell", command=line[1:]) if line.startswith("$") else calls(line)


async def until(reached: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not reached():  # noqa: ASYNC110 - it happens in another process
            await asyncio.sleep(0.02)


async def until_so(reached: Callable[[], Awaitable[object]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await reached():  # noqa: ASYNC110 - it happens in another process
            await asyncio.sleep(0.02)


def wrote(folder: Path, key: str) -> list[object]:
    """Everything the diary says of this, by whomever."""
    return diary(folder).all(key)


def diary(folder: Path) -> Diary:
    return Diary(folder / "diary")


@dataclass(frozen=True)
class Forked:
    """A forked worker process with the interface of a spawned one."""

    process: BaseProcess

    @property
    def pid(self) -> int | None:
        return self.process.pid

    def send_signal(self, number: int) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, number)

    def kill(self) -> None:
        self.process.kill()

    def wait(self, timeout: float = PATIENCE) -> int | None:
        self.process.join(timeout)
        return self.process.exitcode


@contextmanager
def process(folder: Path, said: str, gate: str = "", moment: Moment = NEVER) -> Iterator[Forked]:
    """Run a worker in a separate process, with a first turn if a message is given. Kill it at the end."""
    running = FORKS.Process(target=_begin, args=(folder, said, gate, moment), daemon=True)
    running.start()
    try:
        yield Forked(running)
    finally:
        running.kill()
        running.join()


def _begin(folder: Path, said: str, gate: str, moment: Moment) -> None:
    asyncio.run(_live(folder, said, gate, moment))


async def _live(folder: Path, said: str, gate: str, moment: Moment) -> None:
    clockwork = Clockwork(moment)
    async with worker(folder, gate, clockwork) as runtime:
        if not said:
            diary(folder).note(open=os.getpid())
            await asyncio.Event().wait()
        chat = await runtime.conversation()
        turn = await chat.send(said)
        diary(folder).note(turn=turn.id, conversation=chat.id)
        try:
            result = await turn.result()
        except Fenced:
            diary(folder).note(fenced=os.getpid())
        else:
            diary(folder).note(result=result.text, writes=clockwork.count("after"))
