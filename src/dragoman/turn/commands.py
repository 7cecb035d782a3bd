"""The only doors into a turn: start, steer, answer, deliver, cancel. Each is stored before it returns."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from pydantic import JsonValue

from dragoman.conversation.tree import Tree
from dragoman.errors import AlreadyAnswered, BadRequest, ToolFailed, TurnEnded
from dragoman.messages.ids import new_id
from dragoman.messages.message import Message
from dragoman.messages.parts import CallState, File, Part, Text, ToolResult
from dragoman.messages.questions import VERDICTS, Answer, Grant, Question, Rule
from dragoman.store.codecs import MESSAGE, RESULT
from dragoman.store.store import Start, Store
from dragoman.tools.repair import repair_arguments
from dragoman.tools.tool import Tool
from dragoman.turn.drivers.tasks import Driver
from dragoman.turn.facts import FACT, TurnOptions, TurnStarted
from dragoman.turn.services import MODES, Services


class Commands:
    """Takes what people and clients say, from whichever process, and sees that the turn hears of it."""

    def __init__(self, services: Services, driver: Driver) -> None:
        self._services = services
        self._store: Store = services.store
        self._driver = driver

    # ── a turn begins ─────────────────────────────────────────────────────────────────────────────

    async def send(
        self,
        conversation: str,
        said: str | Sequence[Part],
        *,
        parent: str | None = None,
        queue: bool = False,
        options: TurnOptions = TurnOptions(),
    ) -> str:
        """A new message at the leaf, or below `parent`, and a turn that answers it."""
        message = self._user_message(conversation, said, parent)
        return await self._start(conversation, options, message=message, queue=queue)

    async def edit(
        self, message: str, said: str | Sequence[Part], *, options: TurnOptions = TurnOptions()
    ) -> str:
        """A new version of a user message, and a turn that answers it. The old one stays."""
        old = await self._store.message(message)
        if old.role != "user" or old.author is not None:
            raise BadRequest(f"message {message} was not written by a person: rerun it instead")
        new = self._user_message(old.conversation, said, old.parent)
        return await self._start(old.conversation, options, message=new, root=old.parent is None)

    async def rerun(self, message: str, *, options: TurnOptions = TurnOptions()) -> str:
        """A new version of an answer, or the first one where a user message has none."""
        conversation = (await self._store.message(message)).conversation
        messages, _ = await self._store.messages(conversation)
        question = Tree(messages).question_of(message)
        return await self._start(conversation, options, again=question.id)

    async def _start(
        self,
        conversation: str,
        options: TurnOptions,
        *,
        message: Message | None = None,
        again: str | None = None,
        root: bool = False,
        queue: bool = False,
    ) -> str:
        self._check(options)
        turn = new_id("turn")
        if message is not None:
            message = replace(message, turn=turn)
        at = self._services.clock()
        options = replace(options, workspace=self._services.folder)
        fact = TurnStarted(message.id if message else str(again), options, at)
        body = FACT.dump(fact)
        start = Start(turn, conversation, body, at, message, again, root, queue)
        beginning = asyncio.create_task(self._begin(start, fact))
        await asyncio.shield(beginning)  # who is cancelled here has begun it: it must not lie there unowned
        return turn

    async def _begin(self, start: Start, fact: TurnStarted) -> None:
        started = await self._store.start(start)
        if started is not None:
            await self._driver.begin(started, fact)

    def _check(self, options: TurnOptions) -> None:
        """What can be known to be wrong is refused before anything is stored."""
        agent = self._services.agent(options.agent)
        self._services.model(options.model or agent.model)
        if options.mode is not None and options.mode not in MODES:
            raise BadRequest(f"mode {options.mode!r}: it is one of {', '.join(MODES)}")
        unknown = set(options.disabled) - {plugin.name for plugin in self._services.plugins}
        if unknown:
            known = ", ".join(plugin.name for plugin in self._services.plugins)
            raise BadRequest(f"there is no plugin {', '.join(sorted(unknown))} to disable: there are {known}")

    def _user_message(self, conversation: str, said: str | Sequence[Part], parent: str | None) -> Message:
        parts = (Text(said),) if isinstance(said, str) else said_parts(said)
        if not any(not isinstance(part, Text) or part.text.strip() for part in parts):
            raise BadRequest("the message is blank: say something, or attach a file")
        id = new_id("msg")
        return Message(id, conversation, parent, "user", parts, created=self._services.clock())

    # ── while it runs ─────────────────────────────────────────────────────────────────────────────

    async def steer(self, turn: str, said: str | Sequence[Part]) -> None:
        """Say something to a running turn: its next request contains it."""
        row = await self._store.turn(turn)
        message = self._user_message(row.conversation, said, None)
        body = {"message": MESSAGE.to_json(message)}
        if not await self._store.post(turn, "steer", body):
            raise TurnEnded(turn, (await self._store.turn(turn)).state)
        await self._driver.wake(turn)

    async def answer(self, question: str, answer: Answer) -> Question:
        """Settle a question. The first answer counts; from whichever client it comes."""
        asked = await self._store.question(question)
        self._check_answer(asked, answer)
        answer = replace(answer, at=self._services.clock())
        granted = await self._grants(asked, answer)
        settled = await self._store.answer(question, answer, granted)
        await self._driver.wake(asked.turn)
        if granted:
            await self._answer_likewise(asked, [grant.rule for grant in granted], answer)
        return settled

    async def _answer_likewise(self, asked: Question, granted: Sequence[Rule], answer: Answer) -> None:
        """What else waits, and would not have been asked about with these rules, need not wait."""
        user = (await self._store.conversation(asked.conversation)).owner
        where = None if answer.scope == "always" else asked.conversation
        for other in await self._store.questions(conversation=where, user=user):
            if other.kind == "approve" and other.rules and set(other.rules) <= set(granted):
                with suppress(AlreadyAnswered):
                    await self._store.answer(other.id, Answer("allow", by=answer.by, at=answer.at))
                    await self._driver.wake(other.turn)

    async def deliver(self, call: str, result: ToolResult, *, failed: bool = False) -> None:
        """The result of a call that a client ran."""
        found, _, _ = await self._store.call(call)
        turn = (await self._store.turn_of_call(call)).id
        if found.state is not CallState.RUNNING:
            raise AlreadyAnswered(call, f"the call is {found.state}")
        tool = self._tool(found.tool)
        if tool is not None and not tool.client:
            raise BadRequest(f"call {call} is run here, not by a client")
        body: dict[str, JsonValue] = {"call": call, "failed": failed, "result": RESULT.to_json(result)}
        if not await self._store.post(turn, "result", body):
            raise TurnEnded(turn, (await self._store.turn(turn)).state)
        await self._driver.wake(turn)

    async def cancel(self, turn: str, reason: str = "") -> bool:
        """Stop a turn, in whatever state and process it is. False where it was over already."""
        if not await self._store.post(turn, "cancel", {"reason": reason}):
            return False
        await self._driver.wake(turn)
        return True

    # ── checks ────────────────────────────────────────────────────────────────────────────────────

    def _check_answer(self, asked: Question, answer: Answer) -> None:
        if not isinstance(answer, Answer):
            raise BadRequest(f"{answer!r} is no answer: use allow_once(), reject() and the like")
        if answer.verdict not in VERDICTS[asked.kind]:
            words = ", ".join(sorted(VERDICTS[asked.kind]))
            raise BadRequest(f"{answer.verdict!r} does not answer question {asked.id}: it takes {words}")
        if answer.hash is not None and answer.hash != asked.hash:
            raise BadRequest(f"question {asked.id} is about other arguments than the ones you answered")
        tool = self._tool(asked.tool)
        if answer.arguments is not None and tool is not None:
            try:
                repair_arguments(answer.arguments, tool.parameters)
            except ToolFailed as error:
                what = str(error).partition("\n")[2] or str(error)
                raise BadRequest(f"the edited arguments do not fit: {what}") from error
        if asked.choices and answer.verdict == "reply" and answer.value not in asked.choices:
            raise BadRequest(f"choose one of: {', '.join(asked.choices)}")
        if asked.kind == "review" and not isinstance(answer.value, str | None):
            raise BadRequest("what is released instead of a result is a text")
        wants_object = asked.kind == "tool" and asked.schema and answer.verdict == "reply"
        if wants_object and not isinstance(answer.value, dict):
            raise BadRequest(f"question {asked.id} wants an object with {', '.join(_names(asked))}")

    def _tool(self, name: str) -> Tool | None:
        found = self._services.toolbox.offer().find(name)
        return found[1] if found else None

    async def _grants(self, asked: Question, answer: Answer) -> list[Grant]:
        """The rules an answer leaves behind."""
        if answer.verdict != "allow" or answer.scope == "once":
            return []
        where = asked.conversation if answer.scope == "conversation" or asked.kind == "loop" else None
        rules = (Rule("loop", asked.tool, "allow"),) if asked.kind == "loop" else asked.rules
        user = (await self._store.conversation(asked.conversation)).user
        return [Grant(new_id("grant"), rule, where, answer.at, user, self._services.folder) for rule in rules]


def _names(asked: Question) -> list[str]:
    properties = asked.schema.get("properties")
    return list(properties) if isinstance(properties, dict) else []


def said_parts(said: object) -> tuple[Part, ...]:
    """What a person says, where it is not a plain text."""
    parts = tuple(said) if isinstance(said, Sequence) else (said,)
    for part in parts:
        if not isinstance(part, Text | File):
            raise BadRequest(f"a person says a text, or a list of Text and File parts, not {part!r}")
    return parts
