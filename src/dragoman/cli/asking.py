"""A turn's questions in, answers out: from the keyboard, or by themselves where nobody sits at one."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from dragoman.errors import BadRequest
from dragoman.messages import events as e
from dragoman.messages.questions import Answer, allow_once, reject, release, reply, stop, withhold
from dragoman.tools.thread import in_thread
from dragoman.turn.handles import TurnHandle

NOBODY = "nobody was there to be asked, and no rule allows it"

# What becomes of a question that nobody can answer: the cautious thing, and never waiting.
UNATTENDED: dict[str, Answer] = {
    "approve": reject(NOBODY),
    "run": reject(NOBODY),
    "interrupted": reject(NOBODY),
    "loop": stop("nobody was there to be asked whether it may go on like this"),
    "review": withhold("nobody was there to look at it"),
    "tool": reject("nobody was there to answer"),
}


class Asking:
    """Answers the questions of one turn, one after another, beside the events that go on."""

    def __init__(self, turn: TurnHandle, *, terminal: bool) -> None:
        self._turn = turn
        self._terminal = terminal
        self._keyboard = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def ask(self, event: e.CallAsked) -> None:
        self._beside(self._answer(event))

    def decline(self, event: e.CallStart) -> None:
        """A call that a client is to run, and there is none."""
        why = f"{event.tool} runs in a client, and there is none here"
        self._beside(self._turn.deliver(event.call, why, failed=True))

    async def close(self) -> None:
        """The turn is over: nobody need answer any more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _beside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, event: e.CallAsked) -> None:
        answer = UNATTENDED[event.kind]
        if self._terminal:
            async with self._keyboard:
                answer = ANSWERS.get(event.kind, _leave)(await _typed(event))
        try:
            await self._turn.answer(event.question, answer)
        except BadRequest:
            pass  # the turn has ended, or somebody else was first


def _leave(said: str) -> Answer:
    return allow_once() if _yes(said) else reject("the person said no")


def _yes(said: str) -> bool:
    return said.strip().lower() in ("y", "yes")


ANSWERS: dict[str, Callable[[str], Answer]] = {
    "review": lambda said: release() if _yes(said) else withhold("the person said no"),
    "tool": lambda said: reply(said.rstrip("\n")),
}


async def _typed(event: e.CallAsked) -> str:
    arguments = json.dumps(event.arguments, ensure_ascii=False)
    prompt = "> " if event.kind == "tool" else "[y/N] "
    print(f"? {event.text}\n  {event.tool} {arguments}\n{prompt}", end="", file=sys.stderr, flush=True)
    # The descriptor itself: a thread left waiting in a buffered stream would break the exit of the program.
    line = await in_thread(lambda: os.read(sys.stdin.fileno(), 4096))
    return line.decode(errors="replace")
