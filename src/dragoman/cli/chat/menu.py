"""How a question is asked in a chat: a card, a menu of keys, edits and forms, until it is settled."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from rich.console import Console
from rich.text import Text

from dragoman.cli.terminal.cards import question_card
from dragoman.cli.terminal.follow import prompt_until_settled
from dragoman.cli.terminal.form import Declined, fill_form, unless_declined
from dragoman.cli.terminal.keyboard import Interrupted, Keyboard
from dragoman.cli.terminal.text import one_line, plain
from dragoman.errors import AlreadyAnswered, BadRequest, TurnEnded
from dragoman.messages.questions import (
    Answer,
    Kind,
    Question,
    allow_always,
    allow_for_conversation,
    allow_once,
    reject,
    release,
    reply,
    stop,
    withhold,
)
from dragoman.runtime import Runtime
from dragoman.tools.permissions import rules_in_words


@dataclass(slots=True, frozen=True)
class MenuItem:
    """A key, the words that mean the same, and its label in the menu."""

    key: str
    words: tuple[str, ...]
    label: str


ONCE = MenuItem("y", ("yes", "once", "allow", "run"), "once")
CONVERSATION = MenuItem("c", ("conversation",), "this conversation")
ALWAYS = MenuItem("a", ("always",), "always")
EDIT = MenuItem("e", ("edit",), "edit")
REJECT = MenuItem("n", ("no", "reject"), "reject [why]")
STOP = MenuItem("s", ("stop",), "stop the calls [why]")
RELEASE = MenuItem("r", ("release", "yes"), "release")
WITHHOLD = MenuItem("w", ("withhold", "no"), "withhold [why]")

MENUS: dict[Kind, tuple[MenuItem, ...]] = {
    "approve": (ONCE, CONVERSATION, ALWAYS, EDIT, REJECT),
    "run": (replace(ONCE, label="run it"), EDIT, REJECT),
    "loop": (replace(ONCE, label="once more"), CONVERSATION, STOP, REJECT),
    "interrupted": (replace(ONCE, label="run it again"), replace(REJECT, label="leave it [why]")),
    "review": (RELEASE, EDIT, WITHHOLD),
}


class QuestionMenu:
    """Asks one question after the other. What a person leaves unanswered waits in the store."""

    def __init__(self, runtime: Runtime, console: Console, keyboard: Keyboard) -> None:
        self._runtime = runtime
        self._console = console
        self._keyboard = keyboard
        self._draft: str | None = None  # an edit that did not fit, to go on with

    async def settle(self, id: str) -> None:
        """Ask until it is answered, here or by another client.

        `Interrupted` and `InputClosed` where the person will not.
        """
        question = await self._runtime.store.question(id)
        if not question.open:
            return
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
        menu = MENUS[question.kind]
        self._console.print(Text(" · ".join(f"{one.key} {_label(one, question)}" for one in menu), "yellow"))
        word, _, rest = (await self._keyboard.line("your choice: ")).partition(" ")
        typed = word.lower()
        chosen = next((one for one in menu if typed and typed in (one.key, *one.words)), None)
        match chosen.key if chosen is not None else None:
            case "y":
                return allow_once()
            case "c":
                return allow_for_conversation()
            case "a":
                return allow_always()
            case "e":
                return await self._edit(question)
            case "n":
                return reject(await self._ask_why(rest))
            case "s":
                return stop(await self._ask_why(rest))
            case "r":
                return release()
            case "w":
                return withhold(await self._ask_why(rest))
            case _:
                self._notify(f"type one of {', '.join(one.key for one in menu)}")
                return None

    async def _ask_why(self, typed: str) -> str | None:
        return typed.strip() or await self._keyboard.line("why (Enter: no reason) ") or None

    # ── editing ───────────────────────────────────────────────────────────────────────────────────

    async def _edit(self, question: Question) -> Answer | None:
        """Other arguments, or another result. Ctrl-C goes back to the choice."""
        reviewed = question.result.text if question.result is not None else None
        given = json.dumps(question.arguments, indent=2, ensure_ascii=False) if reviewed is None else reviewed
        try:
            self._draft = await self._keyboard.edit(
                self._draft if self._draft is not None else given,
                "arguments" if reviewed is None else "result",
            )
        except Interrupted:
            self._draft = None
            return None
        if reviewed is not None:
            return release(self._draft)
        try:
            arguments = json.loads(self._draft)
        except ValueError as error:
            self._notify(f"that is no JSON: {error}", "red")
            return None
        if not isinstance(arguments, dict):
            self._notify("arguments are an object: { … }", "red")
            return None
        return allow_once(arguments)

    # ── a tool's own question ─────────────────────────────────────────────────────────────────────

    async def _reply(self, question: Question) -> Answer:
        try:
            if question.schema:
                return reply(await fill_form(question.schema, self._keyboard, self._notify))
            if question.choices:
                return reply(await self._pick(question.choices))
            return reply(unless_declined(await self._keyboard.line("answer (/reject: none) ")))
        except Declined as declined:
            return reject(str(declined) or None)

    async def _pick(self, choices: tuple[str, ...]) -> str:
        for number, choice in enumerate(choices, 1):
            self._console.print(Text(f"  {number}  {one_line(choice)}", "yellow"))
        while True:
            line = unless_declined(await self._keyboard.line("which (/reject: none) ", words=choices))
            if line in choices:
                return line
            if line.isdecimal() and 1 <= int(line) <= len(choices):
                return choices[int(line) - 1]
            self._notify(f"type a number from 1 to {len(choices)}")

    def _notify(self, text: str, style: str = "dim") -> None:
        self._console.print(Text(f"· {plain(text)}", style))


def _label(item: MenuItem, question: Question) -> str:
    if item is ALWAYS and question.rules:
        return f"always ({plain(rules_in_words(question.rules))})"
    return item.label
