"""The scene of the crime: a turn with everything in it, a store that kills its process at a chosen moment,
and two diaries on disk: what the tools did, and what the caller was told."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from dragoman import (
    Answer,
    Plugin,
    Runtime,
    ScriptedModel,
    ToolContext,
    TurnView,
    allow_once,
    reject,
    release,
    tool,
)
from dragoman.messages.events import Event
from dragoman.messages.message import Message
from dragoman.messages.parts import ToolCall
from dragoman.messages.questions import Grant, Question
from dragoman.messages.request import Request
from dragoman.store.sqlite import SqliteStore
from dragoman.store.store import Change, Start, Started
from dragoman.tools.tool import Replay, Tool
from dragoman.turn.handles import TurnHandle
from dragoman.turn.plugin import Appender
from dragoman.wire.scripted import Line, calls, says, thinks

Moment = tuple[
    str, int
]  # ("after", 7): after the seventh write; ("before", 7); ("tool", 3): in the third line

NEVER: Moment = ("never", 0)


class Clockwork:
    """Counts moments of each kind, and strikes at one of them."""

    def __init__(self, moment: Moment) -> None:
        self.set(moment)

    def set(self, moment: Moment) -> None:
        """Count from here."""
        self.moment = moment
        self.counts = {"before": 0, "after": 0, "tool": 0}

    def tick(self, kind: str) -> None:
        self.counts[kind] += 1
        if self.moment == (kind, self.counts[kind]):
            _die()


class DeadlyStore(SqliteStore):
    """The real store. Dies with its process before or after a write, as told."""

    def __init__(self, path: Path, clockwork: Clockwork, *, lease: float = 20.0) -> None:
        super().__init__(path, lease=lease)
        self._clockwork = clockwork

    async def start(self, start: Start) -> Started | None:
        self._clockwork.tick("before")
        started = await super().start(start)
        self._clockwork.tick("after")
        return started

    async def answer(self, question: str, answer: Answer, grants: Sequence[Grant] = ()) -> Question:
        self._clockwork.tick("before")
        settled = await super().answer(question, answer, grants)
        self._clockwork.tick("after")
        return settled

    def append(
        self, turn: str, epoch: int, seq: int, change: Change, *, sync: bool = False
    ) -> asyncio.Future[None]:
        self._clockwork.tick("before")
        future = super().append(turn, epoch, seq, change, sync=sync)
        future.add_done_callback(lambda _: self._clockwork.tick("after"))
        return future


class Appends(Plugin):
    """Appends a message at once and one deferred after the first reply; asks for a step after the last."""

    async def on_after_request(self, reply: Message, turn: TurnView, append: Appender) -> None:
        if turn.turn.step == 1:
            await append("said at once")
            await append("said later", deferred=True)
        if reply.text.startswith("Almost"):
            await append.and_request("and now the end", deferred=True)


def script(request: Request) -> Line:
    """What the model says next, by what it has been shown: the same after a crash as before."""
    parts = [part for said in request.messages for part in said.parts]
    made = [part for part in parts if isinstance(part, ToolCall)]
    if not made:
        return (
            thinks("many things to do")
            + says("First ")
            + calls("reads", n=1)
            + calls("writes", n=2)
            + calls("careful", n=3)
            + calls("approved", n=4)
            + calls("reviewed", n=5)
        )
    if len(made) == 5:
        return says("Then ") + calls("writes", n=6) + calls("reads", n=7)
    return (
        says("The end")
        if any(getattr(part, "text", "") == "and now the end" for part in parts)
        else says("Almost")
    )


def make_house(folder: Path, moment: Moment) -> tuple[Runtime, Clockwork]:
    clockwork = Clockwork(moment)

    def work(name: str, context: ToolContext, n: int) -> str:
        for what in ("starts", "works", "ends"):
            note(folder / "tools.log", {"call": context.call, "tool": name, "n": n, "what": what})
            clockwork.tick("tool")
        return f"{name} {n} done"

    def make(name: str, replay: Replay = "never", **options: Any) -> Tool:
        @tool(name=name, description=name, replay=replay, **options)
        async def run(n: int, context: ToolContext) -> str:
            await asyncio.sleep(0)
            return work(name, context, n)

        return run

    runtime = Runtime(
        DeadlyStore(folder / "chat.db", clockwork),
        model=ScriptedModel(script),
        tools=[
            make("reads", replay="safe"),
            make("writes"),
            make("careful", replay="ask"),
            make("approved"),
            make("reviewed", review="always"),
        ],
        plugins=[Appends()],
        allow=["*"],
        ask=["approved"],
    )
    return runtime, clockwork


def answer_to(kind: str) -> Answer:
    return {"review": release(), "interrupted": reject("leave it")}.get(kind, allow_once())


def tell(folder: Path, event: Event) -> None:
    """What the caller may rely on from now on."""
    match event.type:
        case "call.end":
            note(folder / "told.log", {"call": event.call, "state": event.state, "text": event.result.text})
        case "message.end":
            note(folder / "told.log", {"message": event.message})
        case "message.added":
            note(folder / "told.log", {"message": event.message.id})
        case _:
            pass


async def attend(folder: Path, turn: TurnHandle) -> None:
    """Watch a turn to its end, and answer what it asks."""
    for question in (await turn.snapshot()).questions:
        await _answer(folder, turn, question.id, question.kind)
    async for event in turn.events():
        tell(folder, event)
        if event.type == "call.asked":
            await _answer(folder, turn, event.question, event.kind)


async def _answer(folder: Path, turn: TurnHandle, question: str, kind: str) -> None:
    from dragoman import AlreadyAnswered

    try:
        await turn.answer(question, answer_to(kind))
    except AlreadyAnswered:
        return
    note(folder / "told.log", {"answered": question})


async def _play(folder: Path, moment: Moment) -> Clockwork:
    runtime, clockwork = make_house(folder, moment)
    async with runtime:
        chat = await runtime.conversation()
        turn = await chat.send("go")
        note(folder / "told.log", {"turn": turn.id})
        await attend(folder, turn)
    return clockwork


def victim(folder: str, moment: Moment) -> None:
    """What runs in the child process: to the end, or until the clock strikes."""
    clockwork = asyncio.run(_play(Path(folder), moment))
    Path(folder, "counts.json").write_text(json.dumps(clockwork.counts))


def note(diary: Path, line: dict[str, Any]) -> None:
    """One write system call: it is there for other processes at once, also if this one dies."""
    with diary.open("a") as file:
        file.write(json.dumps(line) + "\n")


def lines(diary: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in diary.read_text().splitlines()] if diary.exists() else []


def _die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")
