"""How a question is asked in a chat: a card, a menu of keys, edits and forms, until it is settled."""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console
from rich.text import Text

from dragoman.cli.chat.hunk_menu import pick_hunks
from dragoman.cli.terminal.arguments import edit_arguments
from dragoman.cli.terminal.cards import hidden_lines, question_card
from dragoman.cli.terminal.choices import NotAChoice, menu_lines, parse_choice
from dragoman.cli.terminal.follow import prompt_until_settled
from dragoman.cli.terminal.form import Declined, fill_form, unless_declined
from dragoman.cli.terminal.keyboard import Interrupted, Keyboard
from dragoman.cli.terminal.text import one_line, plain
from dragoman.errors import AlreadyAnswered, BadRequest, TurnEnded
from dragoman.messages.message import Arguments
from dragoman.messages.questions import Answer, Question, allow_once, reject, release, reply
from dragoman.runtime import Runtime
from dragoman.visible_text import visible


class QuestionMenu:
    """Asks one question after the other. What a person leaves unanswered waits in the store."""

    def __init__(self, runtime: Runtime, console: Console, keyboard: Keyboard) -> None:
        self._runtime = runtime
        self._console = console
        self._keyboard = keyboard
        self._draft: Arguments | None = None  # an edit that did not fit, to go on with
        self._hidden = 0  # lines of what is asked about that were not shown yet

    async def settle(self, id: str) -> None:
        """Ask until it is answered, here or by another client.

        `Interrupted` and `InputClosed` where the person will not.
        """
        question = await self._runtime.store.question(id)
        if not question.open:
            return
        self._hidden = hidden_lines(question)
        self._console.print(question_card(question, await self._calling_agent(question)))
        how = await prompt_until_settled(self._runtime, question, self._prompt(question))
        if how is not None:
            self._notify(f"it is settled: {how}")

    async def _calling_agent(self, question: Question) -> str | None:
        """Who calls, where it is not the one the person talks with."""
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
        """None: it is to be asked again."""
        if question.kind == "tool":
            return await self._reply(question)
        if self._draft is not None:
            return await self._edit(question)
        for line in menu_lines(question, self._hidden):
            self._console.print(Text(line, "yellow"))
        try:
            choice = parse_choice(question, await self._keyboard.line("your choice: "), self._hidden)
        except NotAChoice as error:
            self._notify(str(error))
            return None
        if choice == "more":
            self._hidden = 0
            self._console.print(question_card(question, await self._calling_agent(question), None))
            return None
        if choice == "edit":
            return await self._edit(question)
        if choice == "part":
            return await self._part(question)
        if choice == "why":
            return reject(await self._keyboard.line("why (Enter: no reason) ") or None)
        return choice

    # ── editing ───────────────────────────────────────────────────────────────────────────────────

    async def _edit(self, question: Question) -> Answer | None:
        """Other arguments, or another result. Ctrl-C goes back to the choice."""
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

    async def _part(self, question: Question) -> Answer | None:
        """The same call with some of its changes. Ctrl-C goes back to the choice."""
        try:
            chosen = await pick_hunks(question.diff, self._console, self._keyboard)
            return allow_once(await self._runtime.commands.arguments_for_hunks(question.id, chosen))
        except BadRequest as error:
            self._notify(str(error), "red")
        except Interrupted:
            pass
        return None

    # ── a tool's own question ─────────────────────────────────────────────────────────────────────

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
            if question.free and line.strip() and not line.isdecimal():  # a lone number is a slip
                return line.strip()
            self._notify(f"type a number from 1 to {len(choices)}")

    def _notify(self, text: str, style: str = "dim") -> None:
        self._console.print(Text(f"· {plain(text)}", style))
