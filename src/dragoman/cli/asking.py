"""A turn's questions in, answers out: typed in a line, or the cautious thing where nobody can type."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Coroutine
from typing import Any

from pydantic import JsonValue

from dragoman.cli.elsewhere import settled_elsewhere
from dragoman.cli.plain import plain, shown_json
from dragoman.errors import AlreadyAnswered, BadRequest, TurnEnded
from dragoman.messages import events as e
from dragoman.messages.questions import (
    Answer,
    Question,
    allow_always,
    allow_for_conversation,
    allow_once,
    nobody_to_ask,
    reject,
    release,
    reply,
    stop,
    withhold,
)
from dragoman.runtime import Runtime
from dragoman.tools.thread import in_thread
from dragoman.turn.handles import TurnHandle

# What becomes of a question that nobody can answer: the cautious thing, and never waiting.
UNATTENDED: dict[str, Answer] = {
    "approve": nobody_to_ask(),
    "run": nobody_to_ask(),
    "interrupted": nobody_to_ask(),
    "loop": stop("nobody was there to be asked whether it may go on like this"),
    "review": withhold("nobody was there to look at it"),
    "tool": reject("nobody was there to answer"),
}

KEYS: dict[str, str] = {
    "approve": "y once, c in this conversation, a always, n WHY",
    "loop": "y once more, c in this conversation, s WHY stops the calls, n WHY",
}


class Asking:
    """Answers the questions of one turn, one after another, beside the events that go on."""

    def __init__(self, runtime: Runtime, turn: TurnHandle, *, terminal: bool) -> None:
        self._runtime = runtime
        self._turn = turn
        self._terminal = terminal
        self._keyboard = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def ask(self, question: str) -> None:
        self._beside(self._settle(question))

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

    async def _settle(self, id: str) -> None:
        question = await self._runtime.store.question(id)
        try:
            if not self._terminal:
                await self._runtime.answer(id, UNATTENDED[question.kind])
                return
            async with self._keyboard:
                how = await settled_elsewhere(self._runtime, question, self._answered(question))
        except (AlreadyAnswered, TurnEnded):
            return  # the turn has ended, or somebody else was first
        if how is not None:
            _print(f"\n· it is settled: {how}\n")

    async def _answered(self, question: Question) -> None:
        while True:
            answer = _answer(question, await _typed(question))
            try:
                await self._runtime.answer(question.id, answer)
                return
            except (AlreadyAnswered, TurnEnded):
                raise
            except BadRequest as error:
                _print(f"· {error}\n")


def question_in(event: e.Event) -> str | None:
    """What a person is asked, also by a call that works in a conversation of its own."""
    match event:
        case e.CallAsked(question=question):
            return question
        case e.CallProgress(value={"asks": str(question)}):
            return question
        case _:
            return None


def _leave(said: str) -> Answer:
    word, _, why = said.strip().partition(" ")
    match word.lower():
        case "y" | "yes":
            return allow_once()
        case "c":
            return allow_for_conversation()
        case "a" | "always":
            return allow_always()
        case "s" | "stop":
            return stop(why or None)
        case _:
            return reject(why or "the person said no")


def _look(said: str) -> Answer:
    word, _, why = said.strip().partition(" ")
    return release() if word.lower() in ("y", "yes") else withhold(why or "the person said no")


def _answer(question: Question, said: str) -> Answer:
    match question.kind:
        case "review":
            return _look(said)
        case "tool":
            return reply(_value(said) if question.schema else said.rstrip("\n"))
        case _:
            return _leave(said)


def _value(said: str) -> JsonValue:
    """What is typed for a form: JSON, or the text itself."""
    try:
        value: JsonValue = json.loads(said)
    except ValueError:
        return said
    return value


async def _typed(question: Question) -> str:
    about = f"  {question.tool} {shown_json(question.arguments)}\n" if question.kind != "tool" else ""
    result = f"  → {plain(question.result.text)}\n" if question.result is not None else ""
    choices = "".join(f"  - {plain(choice)}\n" for choice in question.choices)
    keys = f"  {KEYS[question.kind]}\n" if question.kind in KEYS else ""
    keys += "  as JSON: { … }\n" if question.kind == "tool" and question.schema else ""
    prompt = "> " if question.kind == "tool" else "[y/N] "
    _print(f"? {plain(question.text)}\n{about}{result}{choices}{keys}{prompt}")
    # The descriptor itself: a thread left waiting in a buffered stream would break the exit of the program.
    line = await in_thread(lambda: os.read(sys.stdin.fileno(), 4096))
    return line.decode(errors="replace")


def _print(text: str) -> None:
    print(text, end="", file=sys.stderr, flush=True)
