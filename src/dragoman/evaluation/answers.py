"""Request answers as turns in a store, each only once: start them, resume them after a kill, or read existing
ones."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from dragoman.conversation.tree import Conversation
from dragoman.errors import BadRequest, DragomanError
from dragoman.evaluation.case import CaseMessage
from dragoman.evaluation.expected import Answered, MadeCall
from dragoman.evaluation.recorded_tools import CaseResults, only_found
from dragoman.evaluation.stored_turns import answered_in
from dragoman.messages.ids import derived_id, new_id
from dragoman.messages.message import CallState, File, Message, Part, Text, ToolCall, ToolResult, canonical
from dragoman.messages.questions import Answer, allow_once
from dragoman.runtime import Runtime
from dragoman.store.sqlite import SqliteStore
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.turn.facts import FACT, TurnOptions
from dragoman.turn.output import Output
from dragoman.turn.send import NO_INPUTS, TurnInputs, turn_options
from dragoman.unattended import CAUTIOUS
from dragoman.wire.wire import Model

FORMAT = 1  # part of the hashes that identify answers; raise it to request all of them again
# Approved calls have no effect here: results are recorded, or the cage contains the call.
_ANSWERS: dict[str, Answer] = {**CAUTIOUS, "approve": allow_once(), "run": allow_once()}
_GLANCE = 0.5  # seconds between checks of a turn that another run started


@dataclass(slots=True)
class AnswerStore:
    """The turns of all runs in a folder. `spent` is the cost since the store was opened."""

    file: Path
    private: Mapping[str, str] = field(default_factory=dict)  # values that judges do not see
    find_model: Callable[[str | None], Model] | None = None
    store: SqliteStore = field(init=False)
    spent: float = 0.0
    _asides: asyncio.Future[Runtime] | None = None  # for judges and simulated tools
    _asking: dict[str, asyncio.Task[Answered]] = field(default_factory=dict)  # by conversation
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def __aenter__(self) -> AnswerStore:
        self.store = SqliteStore(self.file)
        await self.store.open()
        self._stack.push_async_callback(self.store.close)
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._asking.values():
            task.cancel()
        await asyncio.gather(*self._asking.values(), return_exceptions=True)
        await self._stack.aclose()

    async def known(self, conversation: str) -> Answered | None:
        """Return an existing answer, or None. A failed one is deleted, so that it is requested again."""
        rows = await self.store.turns(conversation)
        if not rows or rows[-1].live:
            return None
        answered = await self.read(conversation, rows[-1].id)
        if answered.error:
            await self.store.delete_conversation(conversation)
            return None
        return answered

    async def read(self, conversation: str, turn: str) -> Answered:
        facts = [FACT.load(body) for body in await self.store.facts(turn)]
        messages, _ = await self.store.messages(conversation)
        return answered_in(facts, [one for one in messages if one.turn == turn])

    async def begin(
        self,
        runtime: Runtime,
        id: str,
        messages: Sequence[CaseMessage],
        options: TurnOptions,
        *,
        inputs: TurnInputs = NO_INPUTS,
        results: CaseResults | None = None,
        settings: Mapping[str, JsonValue] | None = None,
    ) -> TurnHandle[Any]:
        """Return the turn of this conversation: started in one transaction, or resumed if its process was
        killed.

        If another run started it, wait until it ends.
        """
        *before, asked = messages
        text = [Text(asked.text)] if asked.text or not asked.files else []
        parts: list[Part] = [*text, *_files(asked)]
        history = _history(id, before)
        leaf = history[-1].id if history else None
        now = time.time()
        opens = Conversation(id, leaf=leaf, settings=dict(settings or {}), created=now, updated=now)
        send = partial(runtime.commands.send, id, parts, options=options, inputs=inputs)
        while True:
            if not (rows := await self.store.turns(id)):
                with suppress(sqlite3.IntegrityError):  # Another run has started it since.
                    return runtime.turn(await send(opens=opens, history=history))
                continue
            turn = runtime.turn(rows[-1].id)
            if not rows[-1].live:
                return turn
            if results is not None:
                results.resume([one for one in (await self.store.messages(id))[0] if one.turn == turn.id])
            try:
                if await turn.resume():
                    return turn
                await asyncio.sleep(_GLANCE)
            except DragomanError:  # Its folder belonged to a process that has ended.
                await turn.cancel("the run begins it again")
                await self.store.delete_conversation(id)

    async def aside(
        self, model: str, said: str, system: str, output: Output[Any] | None = None, number: int = 0
    ) -> str:
        """Return the answer of a judge, stored and resumed like every turn. An equal question is sent only
        once. Raises BadRequest if the turn failed."""
        id = derived_id("conv", FORMAT, model, system, said, number)
        return (await self.once(id, partial(self._ask_aside, id, model, said, system, output))).text

    async def _ask_aside(
        self, id: str, model: str, said: str, system: str, output: Output[Any] | None
    ) -> Answered:
        assert self.find_model is not None
        if self._asides is None:
            find = only_found(self.find_model)
            runtime = Runtime(self.file, model=find, private=self.private, snapshots=False, adopts=False)
            self._asides = asyncio.ensure_future(self._stack.enter_async_context(runtime))
        runtime = await asyncio.shield(self._asides)
        options = turn_options(
            output.spec if output is not None else None, model=model, system=system, disable=["titles"]
        )
        question = [CaseMessage("user", said)]
        turn = await self.begin(runtime, id, question, options, inputs=TurnInputs(None, output))
        await until_over(turn, asyncio.Event())
        answered = await self.read(id, turn.id)
        self.spent += answered.cost or 0.0
        if answered.error:
            raise BadRequest(answered.error)
        return answered

    async def once(self, id: str, ask: Callable[[], Coroutine[Any, Any, Answered]]) -> Answered:
        """Return the existing answer or request a new one. Concurrent callers share one request."""
        if id not in self._asking:
            self._asking[id] = asyncio.create_task(self._known_or(id, ask))
        return await asyncio.shield(self._asking[id])

    async def _known_or(self, id: str, ask: Callable[[], Coroutine[Any, Any, Answered]]) -> Answered:
        known = await self.known(id)
        return known if known is not None else await ask()


# ── one turn ──────────────────────────────────────────────────────────────────────────────────────


async def until_over(turn: TurnHandle[Any], over: asyncio.Event) -> None:
    """Answer approval requests until the turn ends. If `over` is set, cancel the turn."""
    ends = asyncio.create_task(over.wait())
    try:
        while True:
            waits = asyncio.create_task(turn.reached("waiting"))
            await asyncio.wait({ends, waits}, return_when=asyncio.FIRST_COMPLETED)
            if ends.done():
                waits.cancel()
                await turn.cancel("the case ends here")
                with suppress(DragomanError):
                    await turn.result()
                return
            if not waits.result():
                return
            for question in turn.questions:
                with suppress(DragomanError):
                    await turn.answer(question, _ANSWERS.get(question.kind, CAUTIOUS["tool"]))
    finally:
        ends.cancel()


def _history(conversation: str, messages: Sequence[CaseMessage]) -> list[Message]:
    made: list[Message] = []
    turn = ""
    for one in messages:
        if one.role == "user" or not turn:
            turn = new_id("turn")
        calls = tuple(_call(call) for call in one.calls)
        text = (Text(one.text),) if one.text or not (calls or one.files) else ()
        parent = made[-1].id if made else None
        parts = (*text, *_files(one), *calls)
        made.append(Message(new_id("msg"), conversation, parent, one.role, parts, turn, created=time.time()))
    return made


def _call(call: MadeCall) -> ToolCall:
    text = call.result if isinstance(call.result, str) else canonical(call.result)
    value = None if isinstance(call.result, str) else call.result
    state = CallState.FAILED if call.failed else CallState.COMPLETED
    return ToolCall(new_id("call"), call.tool, call.arguments, state=state, result=ToolResult(text, value))


def _files(message: CaseMessage) -> tuple[File, ...]:
    return tuple(File(one.media_type, url=one.url, name=one.name) for one in message.files)
