"""Ask the user about an approval request with a card, keys, edits, hunks and forms, until it is settled."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from dragoman.background import in_thread
from dragoman.cli.terminal.cards import hidden_lines, question_card, render_diff
from dragoman.cli.terminal.choices import NotAChoice, instant_keys, menu_lines, parse_choice
from dragoman.cli.terminal.follow import prompt_until_settled
from dragoman.cli.terminal.forms import (
    Declined,
    InputClosed,
    Interrupted,
    Prompter,
    edit_arguments,
    fill_form,
    unless_declined,
)
from dragoman.cli.terminal.text import one_line, plain
from dragoman.errors import AlreadyAnswered, BadRequest, TurnEnded
from dragoman.messages.message import Arguments
from dragoman.messages.questions import Answer, Question, allow_once, reject, release, reply
from dragoman.runtime import Runtime
from dragoman.visible_text import visible
from dragoman.workspace.hunks import HunkChoices, shown_hunks

_KEYS = "y make it · n leave it out · e edit it · a this and all after it · d none of the rest"


class LineInput:
    """Lines in the terminal's line mode, with prompts on standard error. Nothing is drawn."""

    async def line(self, prompt: str, *, default: str = "", words: Sequence[str] = (), keys: str = "") -> str:
        """Return a line. Enter accepts the default in brackets. Raises InputClosed on Ctrl-D."""
        print(f"{prompt}[{default}] " if default else prompt, end="", file=sys.stderr, flush=True)
        return (await self._read()).strip() or default

    def forget_typing(self) -> None:
        """Do nothing: a single key never answers here, so earlier input is accepted."""

    async def edit(self, text: str, what: str) -> str:
        print(f"the {what} as it shall be; a line with a dot alone ends it", file=sys.stderr, flush=True)
        lines: list[str] = []
        while (line := await self._read()).rstrip("\r\n") != ".":
            lines.append(line)
        return "".join(lines)

    async def _read(self) -> str:
        # Read the raw descriptor: a thread blocked on buffered stdin would hang the exit of the program.
        line = await in_thread(lambda: os.read(sys.stdin.fileno(), 4096))
        if not line:
            print(file=sys.stderr)
            raise InputClosed
        return line.decode(errors="replace")


class QuestionMenu:
    """Asks about one approval request after the other. Unanswered ones stay open in the store."""

    def __init__(self, runtime: Runtime, console: Console, keyboard: Prompter) -> None:
        self._runtime = runtime
        self._console = console
        self._keyboard = keyboard
        self._draft: Arguments | None = None  # an invalid edit to continue with
        self._hidden = 0  # lines of the request that were not shown yet
        self._menu_of = ("", 0)  # the request whose keys are shown
        self._instant = True

    def _keys(self, question: Question) -> str:
        return instant_keys(question, self._hidden) if self._instant else ""

    async def settle(self, id: str, *, instant: bool = True) -> None:
        """Ask until the request is settled, here or by another client. With `instant`, a key answers
        immediately.

        Raises Interrupted or InputClosed if the user does not answer.
        """
        question = await self._runtime.store.question(id)
        if not question.open:
            return
        self._hidden, self._instant = hidden_lines(question), instant
        self._keyboard.forget_typing()
        self._console.print(question_card(question, await self._calling_agent(question)))
        how = await prompt_until_settled(self._runtime, question, self._prompt(question))
        if how is not None:
            self._notify(f"Already settled: {how}")

    async def _calling_agent(self, question: Question) -> str | None:
        """Return the calling agent if it is not the one that the user talks with."""
        conversation = await self._runtime.store.conversation(question.conversation)
        if conversation.parent is None:
            return None
        return str(conversation.settings.get("agent") or "another agent")

    async def _prompt(self, question: Question) -> None:
        self._draft = None
        while True:
            answer = await self._choose(question)
            if answer is None:
                continue
            try:
                await self._runtime.answer(question.id, replace(answer, hash=question.hash))
                return None
            except (AlreadyAnswered, TurnEnded) as error:
                return self._notify(str(error))
            except BadRequest as error:
                self._notify(str(error), "red")

    async def _choose(self, question: Question) -> Answer | None:
        """Return an answer, or None to ask again."""
        if question.kind == "tool":
            return await self._reply(question)
        if self._draft is not None:
            return await self._edit(question)
        if self._menu_of != (question.id, self._hidden):  # The menu is not repeated after Enter.
            self._menu_of = (question.id, self._hidden)
            for line in menu_lines(question, self._hidden):
                self._console.print(Text(line, "yellow"))
        try:
            line = await self._keyboard.line("your choice: ", keys=self._keys(question))
            if not line:
                return None
            choice = parse_choice(question, line, self._hidden)
        except NotAChoice as error:
            self._notify(str(error))
            return None
        self._menu_of = ("", 0)
        if choice == "more":
            self._hidden = 0
            self._console.print(question_card(question, await self._calling_agent(question), None))
            return None
        if choice == "edit":
            return await self._edit(question)
        if choice == "part" or isinstance(choice, tuple):
            return await self._part(question, choice)
        if choice == "why":
            return reject(await self._keyboard.line("why (Enter: no reason) ") or None)
        return choice

    # ── editing ───────────────────────────────────────────────────────────────────────────────────

    async def _edit(self, question: Question) -> Answer | None:
        """Return an answer with other arguments or another result. Ctrl-C returns to the menu."""
        try:
            if question.result is not None:
                return release(await self._keyboard.edit(question.result.text, "result"))
            self._draft = await edit_arguments(
                self._draft if self._draft is not None else question.arguments,
                question.schema,
                self._keyboard,
                lambda line: self._console.print(Text(plain(line), "yellow")),
            )
            return allow_once(self._draft)
        except Interrupted:
            self._draft = None
            return None

    async def _part(self, question: Question, numbers: Sequence[int] | str) -> Answer | None:
        """Return an answer that makes only some of the changes. Ctrl-C returns to the menu."""
        try:
            if isinstance(numbers, str):
                chosen = await pick_hunks(question.diff, self._console, self._keyboard)
            else:
                chosen = dict.fromkeys(numbers)
            return allow_once(await self._runtime.commands.arguments_for_hunks(question.id, chosen))
        except BadRequest as error:
            self._notify(str(error), "red")
        except Interrupted:
            pass
        return None

    # ── questions of a tool ───────────────────────────────────────────────────────────────────────

    async def _reply(self, question: Question) -> Answer:
        try:
            if question.schema:
                return reply(await fill_form(question.schema, self._keyboard, self._notify))
            if question.choices:
                return reply(await self._pick(question))
            return reply(unless_declined(await self._keyboard.line("answer (/reject: none) ")))
        except Declined as declined:
            return reject(str(declined) or None)

    async def _pick(self, question: Question) -> str:
        choices = question.choices
        for number, choice in enumerate(choices, 1):
            self._console.print(Text(f"  {number}  {one_line(visible(choice))}", "yellow"))
        prompt = f"which{', or in your own words' if question.free else ''} (/reject: none) "
        while True:
            line = unless_declined(await self._keyboard.line(prompt, words=choices))
            if line in choices:
                return line
            if line.isdecimal() and 1 <= int(line) <= len(choices):
                return choices[int(line) - 1]
            if question.free and line.strip() and not line.isdecimal():  # A number alone is a mistake.
                return line.strip()
            self._notify(f"type a number from 1 to {len(choices)}")

    def _notify(self, text: str, style: str = "dim") -> None:
        self._console.print(Text(f"· {plain(text)}", style))


async def pick_hunks(diff: str, console: Console, keyboard: Prompter) -> HunkChoices:
    """Return the user's choice of hunks. Raises Interrupted if the user returns to the menu."""
    hunks = shown_hunks(diff)
    chosen: dict[int, str | None] = {}
    for place, hunk in enumerate(hunks):
        if place == 0 or hunks[place - 1].head != hunk.head:
            console.print(render_diff(hunk.head))
        console.print(render_diff(hunk.text))
        console.print(Text(_KEYS, "yellow"))
        match await _key(f"{place + 1} of {len(hunks)}: ", keyboard):
            case "y":
                chosen[place] = None
            case "e":
                chosen[place] = await keyboard.edit(hunk.new, "change")
            case "a":
                return {**chosen, **dict.fromkeys(range(place, len(hunks)))}
            case "d":
                return chosen
    return chosen


async def _key(prompt: str, keyboard: Prompter) -> str:
    while (key := (await keyboard.line(prompt)).strip().lower()[:1]) not in ("y", "n", "e", "a", "d"):
        pass
    return key
