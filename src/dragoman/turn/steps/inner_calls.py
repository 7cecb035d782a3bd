"""Runs the calls that a program makes: ordinary calls of the turn that belong to the program's call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from dragoman.errors import ToolFailed
from dragoman.messages.asked import call_end
from dragoman.messages.events import InnerCallMade
from dragoman.messages.ids import derived_id
from dragoman.messages.message import CallState, MadeIn, ToolCall, ToolResult, arguments_hash
from dragoman.messages.questions import Rule
from dragoman.store.store import Change
from dragoman.tools.program import functions_of
from dragoman.tools.tool import OtherPath, Tool, WantedCall
from dragoman.tools.toolbox import Offer
from dragoman.turn.acting_agent import NAME as HAND_OFF
from dragoman.turn.facts import CallFinished, CallsMade, InnerCall
from dragoman.turn.live.log import log_call
from dragoman.turn.plugin import PlannedCalls
from dragoman.turn.steps.authority import load_grants
from dragoman.turn.steps.plan import BY_PERSON, STOPPED
from dragoman.turn.steps.prepare import PreparedTurn
from dragoman.turn.steps.slots import Slot

ENDED = "The program ended without waiting for this call."
_GRACE = 5.0  # Maximum seconds for tools to stop when their program is over.
Carry: TypeAlias = Callable[[str, Sequence[Rule], str | None], Coroutine[Any, Any, None]]


class CallsOfProgram:
    """Gives a running program access to its turn (`InnerCalls`).

    `carry` brings a call to its result, given the grants and the limit that prevents it.
    """

    def __init__(self, prepared: PreparedTurn, offer: Offer, program: str, slot: Slot, carry: Carry) -> None:
        self._prepared = prepared
        self._log = prepared.log
        self._program = program
        self._slot = slot
        self._carry = carry
        self._carried: dict[str, asyncio.Task[None]] = {}
        self._moved = asyncio.Event()  # set when a call is over
        self._ids: dict[int, str] = {}
        self._numbers = {self._id(one): one for one in self._recorded_numbers()}
        self._newest = max(self._numbers.values(), default=-1)
        self.began = self._log.turn.calls[program].began
        self.tools: Mapping[str, Tool] = functions_of({**offer.deferred, **offer.tools}, HAND_OFF)
        called = dict.fromkeys(call.tool for call in self._log.inner_calls(program))
        self.gone: Sequence[str] = [name for name in called if name not in self.tools]

    def _id(self, number: int) -> str:
        id = self._ids.get(number) or derived_id("call", self._program, number)
        self._ids[number] = id
        return id

    def _recorded_numbers(self) -> list[int]:
        made = (call.made_in for call in self._log.inner_calls(self._program))
        return [place.number for place in made if place is not None]

    def recorded(self, wanted: WantedCall) -> bool:
        known = self._log.turn.calls.get(self._id(wanted.number))
        if known is None and wanted.number > self._newest:
            return False
        if known is None or known.wanted != arguments_hash(wanted.tool, wanted.arguments):
            raise OtherPath
        return True

    def forgotten(self, asked: set[int]) -> bool:
        return not asked.issuperset(self._numbers.values())

    async def make(self, wanted: Sequence[WantedCall]) -> None:
        log = self._log
        made = [
            ToolCall(
                self._id(one.number),
                one.tool,
                one.arguments,
                made_in=MadeIn(self._program, one.line, one.number),
            )
            for one in wanted
            if not self.recorded(one)
        ]
        if made:
            facts = tuple(InnerCall(one.id, one.tool, one.hash) for one in made)
            log.record_soon(
                CallsMade(self._program, facts), change=Change(made=made)
            )  # The calls are stored as they start.
            self._newest = wanted[-1].number
            for one in made:
                assert one.made_in is not None
                self._numbers[one.id] = one.made_in.number
                log.publish(InnerCallMade(one.id, one.tool, one.arguments, one.made_in))
        asked = [self._id(one.number) for one in wanted]
        if open := [id for id in asked if id not in self._carried and not log.turn.calls[id].state.settled]:
            await self._set_going(open)

    async def _set_going(self, ids: Sequence[str]) -> None:
        planned = PlannedCalls([self._log.call(id) for id in ids])
        for plugin in self._prepared.hooks.before_calls:
            await plugin.before_calls(planned, self._prepared.view)
        folder = self._log.turn.options.workspace
        grants = await load_grants(
            self._prepared.services, self._log.conversation.id, folder, self._log.sender
        )
        for id in ids:
            work = self._carry(id, grants, planned.skipped.get(id))
            self._carried[id] = task = asyncio.create_task(work, name=f"{id} of {self._program}")
            task.add_done_callback(lambda _: self._moved.set())

    async def next_result(self, numbers: Sequence[int]) -> tuple[int, ToolCall]:
        ids = [self._ids[number] for number in numbers]
        if (first := self._first_settled(ids)) is None:
            async with self._slot.freed():  # Other calls use the slot meanwhile.
                while (first := self._first_settled(ids)) is None:
                    await self._moved.wait()
                    self._moved.clear()
                    for task in [task for task in self._carried.values() if task.done()]:
                        task.result()
        if self._is_stopped():
            raise ToolFailed(STOPPED)
        return self._numbers[first], self._log.call(first)

    def _first_settled(self, ids: Sequence[str]) -> str | None:
        calls = self._log.turn.calls
        settled = [(place, id) for id in ids if (place := calls[id].settled)]
        return min(settled)[1] if settled else None

    def _is_stopped(self) -> bool:
        """Return whether a user stopped all calls, or rejected one where a rejection ends the turn."""
        turn = self._log.turn
        return turn.limit == BY_PERSON or (
            self._prepared.services.on_reject == "stop"
            and any(
                turn.calls[id].asked and turn.calls[id].state is CallState.REJECTED for id in self._numbers
            )
        )

    async def value_of(self, call: ToolCall) -> object:
        result = call.result
        assert result is not None
        if result.blob is None:
            return result.text if result.value is None else result.value
        text = (await self._log.store.blob(result.blob)).decode()
        return json.loads(text) if result.metadata.get("whole") == "json" else text

    async def end(self, *, cancelled: bool) -> None:
        open = [task for task in self._carried.values() if not task.done()]
        for task in open:
            task.cancel()
        if open:
            await asyncio.wait(open, timeout=_GRACE)
        if cancelled:
            return  # The end of the turn settles them with all others, or its next owner resumes them.
        log = self._log
        for id in [id for id in log.turn.unsettled if id in self._numbers]:
            questions = log.turn.calls[id].questions
            result = ToolResult(ENDED)
            call = replace(log.call(id), state=CallState.CANCELLED, result=result, ended=log.now())
            closed = dict.fromkeys(questions, "the program ended")
            log.record_soon(CallFinished(id, CallState.CANCELLED), change=Change(calls=[call], closed=closed))
            log.publish(call_end(call))
            log_call(log, call)
