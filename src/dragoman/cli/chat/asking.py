"""A stored question in, a person's decision out: typed here, unless somebody is faster elsewhere."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from rich.console import Console
from rich.text import Text

from dragoman.cli.chat.cards import question_card
from dragoman.cli.chat.form import NoAnswer, filled
from dragoman.cli.chat.keyboard import Interrupted, Keyboard
from dragoman.cli.elsewhere import settled_elsewhere
from dragoman.cli.plain import one_line, plain
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
class Choice:
    """A key, the words that mean the same, and what is told of it."""

    key: str
    words: tuple[str, ...]
    told: str


ONCE = Choice("y", ("yes", "once", "allow", "run"), "once")
CONVERSATION = Choice("c", ("conversation",), "this conversation")
ALWAYS = Choice("a", ("always",), "always")
EDIT = Choice("e", ("edit",), "edit")
REJECT = Choice("n", ("no", "reject"), "reject [why]")
STOP = Choice("s", ("stop",), "stop the calls [why]")
RELEASE = Choice("r", ("release", "yes"), "release")
WITHHOLD = Choice("w", ("withhold", "no"), "withhold [why]")

MENUS: dict[Kind, tuple[Choice, ...]] = {
    "approve": (ONCE, CONVERSATION, ALWAYS, EDIT, REJECT),
    "run": (replace(ONCE, told="run it"), EDIT, REJECT),
    "loop": (replace(ONCE, told="once more"), CONVERSATION, STOP, REJECT),
    "interrupted": (replace(ONCE, told="run it again"), replace(REJECT, told="leave it [why]")),
    "review": (RELEASE, EDIT, WITHHOLD),
}


class Asking:
    """Asks one question after the other. What a person leaves unanswered waits in the store."""

    def __init__(self, runtime: Runtime, console: Console, keyboard: Keyboard) -> None:
        self._runtime = runtime
        self._console = console
        self._keyboard = keyboard
        self._draft: str | None = None  # an edit that did not fit, to go on with

    async def settle(self, id: str) -> None:
        """Until it is answered, here or elsewhere. `Interrupted` and `Left` where the person will not."""
        question = await self._runtime.store.question(id)
        if not question.open:
            return
        self._console.print(question_card(question, await self._agent(question)))
        how = await settled_elsewhere(self._runtime, question, self._answered(question))
        if how is not None:
            self._tell(f"it is settled: {how}")

    async def _agent(self, question: Question) -> str | None:
        """Who calls, where it is not the one the person talks with."""
        asking = await self._runtime.store.conversation(question.conversation)
        return str(asking.settings.get("agent") or "another agent") if asking.parent is not None else None

    async def _answered(self, question: Question) -> None:
        self._draft = None
        while True:
            answer = await self._decided(question)
            if answer is None:
                continue
            try:
                await self._runtime.answer(question.id, replace(answer, hash=question.hash))
                return None
            except (AlreadyAnswered, TurnEnded) as error:
                return self._tell(str(error))
            except BadRequest as error:
                self._tell(str(error), "red")

    async def _decided(self, question: Question) -> Answer | None:
        """None: it is to be asked again."""
        if question.kind == "tool":
            return await self._replied(question)
        if self._draft is not None:
            return await self._edited(question)
        menu = MENUS[question.kind]
        self._console.print(Text(" · ".join(f"{one.key} {_told(one, question)}" for one in menu), "yellow"))
        word, _, rest = (await self._keyboard.line("your choice: ")).partition(" ")
        said = word.lower()
        chosen = next((one for one in menu if said and said in (one.key, *one.words)), None)
        match chosen.key if chosen is not None else None:
            case "y":
                return allow_once()
            case "c":
                return allow_for_conversation()
            case "a":
                return allow_always()
            case "e":
                return await self._edited(question)
            case "n":
                return reject(await self._why(rest))
            case "s":
                return stop(await self._why(rest))
            case "r":
                return release()
            case "w":
                return withhold(await self._why(rest))
            case _:
                self._tell(f"type one of {', '.join(one.key for one in menu)}")
                return None

    async def _why(self, said: str) -> str | None:
        return said.strip() or await self._keyboard.line("why (Enter: no reason) ") or None

    # ── editing ───────────────────────────────────────────────────────────────────────────────────

    async def _edited(self, question: Question) -> Answer | None:
        """Other arguments, or another result. Ctrl-C goes back to the choice."""
        reviewed = question.result.text if question.result is not None else None
        given = json.dumps(question.arguments, indent=2, ensure_ascii=False) if reviewed is None else reviewed
        try:
            self._draft = await self._keyboard.edited(
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
            self._tell(f"that is no JSON: {error}", "red")
            return None
        if not isinstance(arguments, dict):
            self._tell("arguments are an object: { … }", "red")
            return None
        return allow_once(arguments)

    # ── a tool's own question ─────────────────────────────────────────────────────────────────────

    async def _replied(self, question: Question) -> Answer:
        try:
            if question.schema:
                return reply(await filled(question.schema, self._keyboard, self._tell))
            if question.choices:
                return reply(await self._picked(question.choices))
            return reply(_said(await self._keyboard.line("answer (/reject: none) ")))
        except NoAnswer as none:
            return reject(str(none) or None)

    async def _picked(self, choices: tuple[str, ...]) -> str:
        for number, choice in enumerate(choices, 1):
            self._console.print(Text(f"  {number}  {one_line(choice)}", "yellow"))
        while True:
            said = _said(await self._keyboard.line("which (/reject: none) ", words=choices))
            if said in choices:
                return said
            if said.isdecimal() and 1 <= int(said) <= len(choices):
                return choices[int(said) - 1]
            self._tell(f"type a number from 1 to {len(choices)}")

    def _tell(self, text: str, style: str = "dim") -> None:
        self._console.print(Text(f"· {plain(text)}", style))


def _said(text: str) -> str:
    word, _, reason = text.partition(" ")
    if word == "/reject":
        raise NoAnswer(reason.strip())
    return text


def _told(choice: Choice, question: Question) -> str:
    if choice is ALWAYS and question.rules:
        return f"always ({plain(rules_in_words(question.rules))})"
    return choice.told
