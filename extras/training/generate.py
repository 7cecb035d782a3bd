"""Generate conversations from the material: the same seed gives the same ones.

python -m training.generate 5        prints five of them
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from dragoman.providers.local.prompt import (
    END,
    OPEN,
    SAY,
    SHOW,
    TALK,
    call_line,
    message,
    system_text,
    tool_line,
)
from training import builtin
from training.files import Chain
from training.manner import lowered, say
from training.material import talk
from training.material.clashes import ANSWERS, EVERYDAY, MIXED
from training.scene import Language, Scene
from training.tools import Idea, Offered, Stock, Wish, offer, question_for, stock, wish_for
from training.values import make_value

LANGUAGES: tuple[Language, ...] = ("en", "de", "zh")
LONGEST_LINE = 60  # maximum characters of a result in a sentence if no sentence was written for it
_TURNS = (1, 1, 1, 1, 2, 2, 3)


@dataclass(slots=True, frozen=True)
class Piece:
    """A part of a conversation, and whether the model has to learn to write it."""

    text: str
    learnt: bool = False


def conversation(chance: random.Random, *, held: bool = False, public: str = "") -> list[Piece]:
    first, others = conversations(chance, held=held, public=public)
    return [first, *next(others)]


def conversations(
    chance: random.Random, *, held: bool = False, public: str = "", part: float = 1.0
) -> tuple[Piece, Iterator[list[Piece]]]:
    """A system message, and any number of conversations that begin with it.

    With `public` (a file that `public.py` generated), this share of them is about the tools in it.
    """
    about_public = bool(public) and chance.random() < part
    own, others = stock(held), stock(held, public) if public else stock(held)
    writer = _Writer(
        chance, *((others, own) if about_public else (own, others)), public=about_public, held=held
    )
    return writer.head(), iter(writer.write, None)


class _Writer:
    """Writes one conversation: the offered tools first, then turn by turn."""

    def __init__(
        self, chance: random.Random, tools: Stock, others: Stock, *, public: bool, held: bool
    ) -> None:
        today = date(2024, 1, 1) + timedelta(days=chance.randrange(1400))
        self._scene = Scene(chance, "en", today, chance.random() < 0.95)
        self._stock, self._others, self._public = tools, others, public
        self._with_builtin = chance.random() < (0.2 if held or public else 0.5)
        self._tools: list[Offered] = []
        self._last: Wish | None = None
        self._pieces: list[Piece] = []
        self._over = False  # the conversation ends with a call, without its result

    def head(self) -> Piece:
        """The system message."""
        scene = self._scene
        self._choose_tools()
        lines = [tool_line(tool.name, tool.description, tool.schema) for tool in self._tools]
        today = scene.today if scene.knows_today else None
        extra = scene.pick(talk.EXTRAS) if scene.maybe(0.15) else ""
        return Piece(system_text(lines, today=today, extra=extra))

    def write(self) -> list[Piece]:
        """A conversation, without the system message."""
        scene = self._scene
        scene.language = scene.chance.choices(LANGUAGES, [76, 13, 11])[0]
        if self._public and not any(tool.idea and tool.idea.requests[scene.language] for tool in self._tools):
            scene.language = "en"
        self._last, self._over, self._pieces = None, False, []
        turns = scene.pick(_TURNS)
        while (turns > 0 or not self._pieces) and not self._over:
            self._turn()
            turns -= 1
        return self._pieces

    # ── what is offered ───────────────────────────────────────────────────────────────────────────

    def _choose_tools(self) -> None:
        scene, chance = self._scene, self._scene.chance
        taken: set[str] = set()
        if self._with_builtin:
            self._tools += builtin.offered(scene)
        count = (
            chance.choice([0, 0, 0, 1, 3])
            if self._with_builtin
            else chance.choice([1, 1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18])
        )
        taken |= {tool.name for tool in self._tools}
        near = chance.choice(self._stock.by_hand if self._public else self._stock.ideas).domain
        while count > 0:
            idea = self._any_idea(near)
            tool = offer(scene, idea, taken)
            count -= 1
            others = [one.idea for one in self._tools if one.idea is not None]
            if tool is None or idea in others or any(idea.alike(other) for other in others):
                continue
            if self._with_builtin and builtin.clashes(idea.names[0], self._tools):
                continue
            taken.add(tool.name)
            self._tools.append(tool)
        if not self._tools:
            self._tools = builtin.offered(scene)
        chance.shuffle(self._tools)

    def _any_idea(self, near: str) -> Idea:
        """Return a tool, often of the same domain, so that the choice has to be learned, and preferably a
        handwritten one."""
        scene = self._scene
        pool: Sequence[Idea] = self._stock.ideas
        if scene.maybe(0.12):
            pool = self._others.ideas
        elif scene.maybe(0.4):
            pool = self._stock.domains[near]
        elif scene.maybe(0.6):
            pool = self._stock.by_hand
        return scene.chance.choice(pool or self._stock.ideas)

    # ── turns ─────────────────────────────────────────────────────────────────────────────────────

    def _turn(self) -> None:
        draw = self._scene.chance.random()
        if draw < 0.06:
            self._say_two_wishes()
        elif draw < 0.15:
            self._lack_something()
        elif draw < 0.25:
            self._ask_for_what_nobody_can()
        elif draw < 0.33:
            self._chat()
        elif draw < 0.39:
            self._greet()
        else:
            self._wish()

    def _wish(self) -> None:
        wish = self._new_wish()
        if wish is None:
            return
        self._user(self._worded(wish.request, wish))
        self._calls([wish])

    def _say_two_wishes(self) -> None:
        first, second = self._new_wish(), self._new_wish()
        if (
            first is None
            or second is None
            or first.request == second.request
            or first.open_end
            or second.open_end
        ):
            return
        if any(isinstance(one, Chain) for one in (first, second)):
            return
        if first.tool is second.tool and first.tool.name == "todo":
            return  # that is one list
        pattern = self._scene.pick(talk.JOINED[self._scene.language])
        one, other = first.request, second.request
        if pattern.startswith("{} and") or pattern.startswith("{}, "):
            one = one.rstrip("?.!")
        text = pattern.replace("{low1}", lowered(one)).replace("{low}", lowered(other))
        for request in (one, other):
            text = text.replace("{}", request, 1)
        self._user(text)
        self._calls([first, second])

    def _calls(self, wishes: list[Wish]) -> None:
        scene = self._scene
        self._write("\n".join(call_line(wish.tool.name, wish.arguments) for wish in wishes))
        self._last = wishes[-1]
        if scene.maybe(0.35) and not isinstance(wishes[0], Chain):
            self._over = True
            return
        draw = scene.chance.random()
        if draw < 0.13:
            reason = make_value(scene, "reason").spoken
            self._result(f"failed: {reason}")
            for _ in wishes[1:]:
                self._result(f"failed: {reason}")
            self._write(f"{SAY} {scene.pick(talk.FAILED[scene.language]).format(reason)}")
        elif draw < 0.17:
            for _ in wishes:
                self._result(
                    scene.pick(
                        [
                            "brought no result (rejected): a person said no",
                            "brought no result (rejected): not allowed",
                        ]
                    )
                )
            self._write(f"{SAY} {scene.pick(talk.REFUSED[scene.language])}")
        else:
            self._tell(wishes)

    def _tell(self, wishes: list[Wish]) -> None:
        scene = self._scene
        for wish in wishes:
            self._result(wish.result or "ok")
        if len(wishes) == 1 and isinstance(wishes[0], Chain):
            chain = wishes[0]
            self._write(call_line(chain.tool_after.name, chain.arguments_after))
            self._result(chain.result_after)
            self._write(f"{SAY} {chain.reply_after}")
            return
        told = [self._sentence(wish) for wish in wishes]
        if all(told):
            self._write(f"{SAY} {' '.join(one for one in told if one)}")
        else:
            self._write(f"{SHOW} {scene.pick(talk.RESULT_SHOWN[scene.language])}")

    def _sentence(self, wish: Wish) -> str:
        """Return the sentence about a result, or "" if it is shown."""
        scene = self._scene
        if not wish.result:
            return str(scene.pick(talk.DONE[scene.language]))
        if scene.language == "en" or wish.tool.idea is None:
            return wish.reply
        if "\n" in wish.result or wish.result[0] in "{[" or len(wish.result) > LONGEST_LINE or not wish.reply:
            return ""
        return str(scene.pick(talk.RESULT_SAID[scene.language]).format(wish.result))

    def _lack_something(self) -> None:
        """The model asks a question back. Often the user answers, and the call can be made."""
        scene = self._scene
        for tool in scene.chance.sample(self._tools, len(self._tools)):
            if tool.idea is None:
                continue
            found = question_for(scene, tool)
            if found is None:
                continue
            request, question, wish = found
            self._user(self._worded(request))
            self._write(f"{SAY} {question}")
            if wish is not None and scene.maybe(0.6):
                self._user(wish.request)
                self._calls([wish])
            return
        self._wish()

    def _ask_for_what_nobody_can(self) -> None:
        """A request for a tool that is not offered, without a similar one; or one that no tool here can
        fulfill."""
        scene = self._scene
        if scene.maybe(0.3):
            if self._public or self._might_do_anything():
                return
            wishes = [*talk.WISHES[scene.language]]
            if self._with_builtin and not any(tool.name == "shell" for tool in self._tools):
                wishes += talk.WISHES_FOR_FILES[scene.language] * 2
            text = scene.pick(wishes).format(
                person=make_value(scene, "person").spoken,
                city=make_value(scene, "city").spoken,
                path=make_value(scene, "path").spoken,
                other=make_value(scene, "path").spoken,
            )
            self._decline(text)
            return
        here = {tool.idea.names[0] for tool in self._tools if tool.idea is not None}
        domains = {tool.idea.domain for tool in self._tools if tool.idea is not None}
        near = scene.maybe(0.4)
        for _ in range(8):
            idea: Idea = scene.chance.choice(self._stock.ideas)
            if near and domains:
                pool = [one for one in self._stock.ideas if one.domain in domains and one.domain not in MIXED]
                idea = scene.chance.choice(pool) if pool else idea
            if idea.names[0] in here or (idea.domain in domains and not near) or idea.domain == "knowledge":
                continue
            if any(tool.idea is not None and idea.alike(tool.idea) for tool in self._tools):
                continue
            if idea.domain in domains and idea.names[0].startswith(("count_", "search_", "get_")):
                continue  # a list might answer it too
            if self._with_builtin and builtin.clashes(idea.names[0], self._tools):
                continue
            tool = offer(scene, idea, set())
            wish = wish_for(scene, tool) if tool is not None else None
            if wish is not None:
                self._decline(self._worded(wish.request))
                return

    def _decline(self, request: str) -> None:
        self._user(request)
        self._write(f"{SAY} {self._scene.pick(talk.DECLINED[self._scene.language])}")

    def _might_do_anything(self) -> bool:
        """Return whether an offered tool could fulfill some of the requests after all."""
        domains = {tool.idea.domain for tool in self._tools if tool.idea is not None}
        return bool(
            domains
            & (EVERYDAY | {"event", "appointment", "booking", "device", "reminder", "shipment", "order"})
        )

    def _chat(self) -> None:
        scene = self._scene
        domains = {tool.idea.domain for tool in self._tools if tool.idea is not None}
        if domains & ANSWERS:  # a tool that looks things up, or that receives a message
            return
        pool = talk.KNOWLEDGE if scene.maybe(0.55) else talk.CREATIVE
        text = scene.pick(pool[scene.language]).format(
            topic=make_value(scene, "topic").spoken,
            animal=make_value(scene, "animal").spoken,
            product=make_value(scene, "product").spoken,
        )
        self._user(text)
        self._write(TALK)

    def _greet(self) -> None:
        scene, language = self._scene, self._scene.language
        draw = scene.chance.random()
        if draw < 0.35:
            self._user(scene.pick(talk.GREETINGS[language]))
            self._write(f"{SHOW} {scene.pick(talk.GREETED[language])}")
        elif draw < 0.7:
            self._user(scene.pick(talk.ABILITIES[language]))
            self._write(f"{SHOW} {scene.pick(talk.ABLE[language])}")
        else:
            request, reply = scene.pick(talk.THANKS[language])
            self._user(request)
            self._write(f"{SAY} {reply}")

    def _new_wish(self) -> Wish | None:
        scene = self._scene
        follow = self._last is not None and self._last.tool.idea is not None and scene.maybe(0.25)
        for _ in range(6):
            tool = self._last.tool if follow and self._last is not None else scene.chance.choice(self._tools)
            wish = (
                wish_for(scene, tool, self._last)
                if tool.idea is not None
                else builtin.wish(scene, tool, self._tools)
            )
            if wish is not None:
                return wish
            follow = False
        return None

    # ── text ──────────────────────────────────────────────────────────────────────────────────────

    def _worded(self, request: str, wish: Wish | None = None) -> str:
        kept = json.dumps(wish.arguments, ensure_ascii=False) if wish is not None else ""
        return say(self._scene, request, kept, open_end=wish is not None and wish.open_end)

    def _user(self, text: str) -> None:
        begin = "\n" if self._pieces and self._pieces[-1].learnt else ""
        self._pieces.append(Piece(begin + message("user", text) + OPEN))

    def _write(self, text: str) -> None:
        if self._pieces[-1].learnt:  # the newline after the last message is not learned
            self._pieces.append(Piece("\n" + OPEN))
        self._pieces.append(Piece(text + END, True))

    def _result(self, text: str) -> None:
        before = self._pieces[-1]
        if before.learnt:
            self._pieces.append(Piece("\n" + message("tool", text) + OPEN))
        else:  # another result of the same reply
            self._pieces[-1] = Piece(before.text.removesuffix(OPEN) + message("tool", text) + OPEN)


def _printed(pieces: list[Piece]) -> Iterator[str]:
    for piece in pieces:
        yield f"«{piece.text}»" if piece.learnt else piece.text


def main() -> None:
    chance = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 3):
        print("".join(_printed(conversation(chance))))
        print("─" * 80)


if __name__ == "__main__":
    main()
