"""How `dragoman run` gets a turn's questions answered: typed in a line, or refused where nobody can type."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from pydantic import JsonValue

from dragoman.background import in_thread
from dragoman.cli.terminal.cards import ASKED_LINES, describe_file, hidden_lines
from dragoman.cli.terminal.choices import (
    EDIT,
    PART,
    NotAChoice,
    menu,
    menu_lines,
    parse_choice,
    refuse_hidden,
)
from dragoman.cli.terminal.follow import prompt_until_settled
from dragoman.cli.terminal.text import format_json, head, parse_json
from dragoman.errors import AlreadyAnswered, BadRequest, TurnEnded
from dragoman.messages import events as e
from dragoman.messages.asked import cause, untold
from dragoman.messages.questions import (
    Answer,
    Question,
    allow_once,
    nobody_to_ask,
    reject,
    release,
    reply,
    stop,
    withhold,
)
from dragoman.runtime import Runtime
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.visible_text import visible

# What becomes of a question that nobody can answer: the cautious thing, and never waiting.
UNATTENDED: dict[str, Answer] = {
    "approve": nobody_to_ask(),
    "run": nobody_to_ask(),
    "interrupted": nobody_to_ask(),
    "loop": stop("nobody was there to be asked whether it may go on like this"),
    "review": withhold("nobody was there to look at it"),
    "tool": reject("nobody was there to answer"),
}

_END = "\n"
_TYPED = {EDIT: "e {JSON}", PART: "p 1 3 these changes alone"}  # here everything is in one line


class LinePrompts:
    """Answers the questions of one turn, one after another, while its events go on."""

    def __init__(
        self, runtime: Runtime, turn: TurnHandle, *, terminal: bool, leave: Callable[[], object]
    ) -> None:
        """`leave` is called, once, where the person goes away from a question: then they have `left`."""
        self._runtime = runtime
        self._turn = turn
        self._terminal = terminal
        self._keyboard = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._leave = leave
        self.left = False

    def ask(self, question: str) -> None:
        self._start(self._settle(question))

    def decline(self, event: e.CallStart) -> None:
        """Fail a call that a client is to run, as there is none."""
        why = f"{event.tool} runs in a client, and there is none here"
        self._start(self._turn.deliver(event.call, why, failed=True))

    async def idle(self) -> None:
        """Wait until no question stands at the prompt, where what is printed would look like its answer."""
        async with self._keyboard:
            pass

    async def close(self) -> None:
        """The turn is over: nobody need answer any more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
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
                how = await prompt_until_settled(self._runtime, question, self._prompt(question))
        except (AlreadyAnswered, TurnEnded):
            return  # the turn has ended, or somebody else was first
        if how is not None:
            _print(f"\n· it is settled: {how}\n")

    async def _prompt(self, question: Question) -> None:
        hidden = hidden_lines(question)
        lines: int | None = ASKED_LINES
        while True:
            line = await _read_line(question, hidden, lines)
            if not line:  # Ctrl-D: the person goes away, and what it asks waits on
                _print("\n")
                self.left = True
                self._leave()
                return
            try:
                answer = await self._parse(question, line, hidden)
                if answer is None:
                    hidden, lines = 0, None
                    continue
                await self._runtime.answer(question.id, answer)
                return
            except (AlreadyAnswered, TurnEnded):
                raise
            except (BadRequest, NotAChoice) as error:
                _print(f"· {error}\n")

    async def _parse(self, question: Question, line: str, hidden: int) -> Answer | None:
        """None: everything is to be shown."""
        word, _, rest = line.strip().lower().partition(" ")
        if question.kind == "tool" or PART not in menu(question) or word not in (PART.key, *PART.words):
            return _parse_answer(question, line, hidden)
        refuse_hidden(hidden)
        numbers = rest.replace(",", " ").split()
        if not numbers or not all(one.isdecimal() for one in numbers):
            raise NotAChoice("p 1 3 makes the first and the third change, and no other")
        chosen = {int(one) - 1: None for one in numbers}
        return allow_once(await self._runtime.commands.arguments_for_hunks(question.id, chosen))


def question_text(question: Question, hidden: int, lines: int | None) -> str:
    """What a person is asked about, whole or so many lines of each part, and what they can type."""
    about = ""
    if question.kind != "tool":
        rest = untold(question)
        about = f"  {visible(question.tool)}{f' {head(format_json(rest), lines)}' if rest else ''}\n"
    if question.diff:
        about += f"{head(visible(question.diff.rstrip(_END)), lines)}\n"
    if question.result is not None:
        files = "".join(f"  {describe_file(file)}\n" for file in question.result.attachments)
        about += f"  → {head(visible(question.result.text.rstrip(_END)), lines)}\n{files}"
    choices = "".join(f"  - {visible(choice)}\n" for choice in question.choices)
    if question.kind == "tool":
        keys = "  as JSON: { … }\n" if question.schema else ""
    else:
        keys = (
            "".join(f"  {line.strip()}\n" for line in menu_lines(question, hidden))
            .replace("e edit", "e {JSON}")
            .replace("p part of it", "p 1 3 these changes alone")
        )
    prompt = "> " if question.kind == "tool" else "[y/N] "
    return f"? {visible(question.text)}\n{about}{choices}  {cause(question)}\n{keys}{prompt}"


async def _read_line(question: Question, hidden: int, lines: int | None) -> str:
    _print(question_text(question, hidden, lines))
    # The descriptor itself: a thread left waiting in a buffered stream would break the exit of the program.
    line = await in_thread(lambda: os.read(sys.stdin.fileno(), 4096))
    return line.decode(errors="replace")


def _parse_answer(question: Question, line: str, hidden: int) -> Answer | None:
    """Nothing, and what means nothing, is a no: whoever only presses Enter has not said yes. None: everything
    is to be shown."""
    if question.kind == "tool":
        return reply(_parse_value(line) if question.schema else line.rstrip("\n"))
    word, _, rest = line.strip().partition(" ")
    if word.lower() in ("e", "edit"):
        refuse_hidden(hidden)
        return _parse_edit(question, rest)
    try:
        choice = parse_choice(question, line, hidden)
    except NotAChoice:
        if word:
            raise
        choice = "why"
    if isinstance(choice, Answer):
        return choice
    if choice == "more":
        return None
    no = "the person said no"
    return withhold(no) if question.kind == "review" else reject(no)


def _parse_edit(question: Question, text: str) -> Answer:
    if question.kind == "review":
        return release(text)
    if not text:
        raise NotAChoice(f"write the arguments behind it, all of them: e {format_json(question.arguments)}")
    try:
        arguments = parse_json(text)
    except ValueError as error:
        raise NotAChoice(f"that is no JSON: {error}") from None
    if not isinstance(arguments, dict):
        raise NotAChoice("arguments are an object: { … }")
    return allow_once(arguments)


def _parse_value(line: str) -> JsonValue:
    """What is typed for a form: JSON, or the text itself."""
    try:
        value: JsonValue = parse_json(line)
    except ValueError:
        return line
    return value


def _print(text: str) -> None:
    print(text, end="", file=sys.stderr, flush=True)
