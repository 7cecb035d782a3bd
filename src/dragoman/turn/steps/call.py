"""Carries one call to its result: plan, approval, run, review, storage.

Each stage is a fact, so a new owner resumes an interrupted call at its last stage.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from dragoman.errors import AlreadyAnswered, NotFound
from dragoman.messages import events as e
from dragoman.messages.asked import call_asked, call_end
from dragoman.messages.codec import replace_fast
from dragoman.messages.message import CallState, ToolCall, ToolResult, canonical, result_instead
from dragoman.messages.questions import NOBODY, Answer, Question, Rule
from dragoman.sentences import sentence, together
from dragoman.store.codecs import RESULT
from dragoman.store.store import Change
from dragoman.tools.execute import Outcome, execute, failed
from dragoman.tools.tool import Tool
from dragoman.tools.toolbox import Offer
from dragoman.trace_context import within
from dragoman.turn.facts import (
    ApprovalAsked,
    CallFact,
    CallFinished,
    CallInterrupted,
    CallStarted,
    QuestionAnswered,
    QuestionWithdrawn,
    ResultAsked,
)
from dragoman.turn.live.log import log_call
from dragoman.turn.live.signals import Received
from dragoman.turn.send import gone_tool
from dragoman.turn.steps.ask import question_about
from dragoman.turn.steps.inner_calls import CallsOfProgram
from dragoman.turn.steps.plan import (
    BY_PERSON,
    NO_CALL,
    STOPPED,
    AnsweredCall,
    Asking,
    Plan,
    Ready,
    answer_meanwhile,
    plan,
    plan_answered,
    plan_late,
    plan_repeated,
)
from dragoman.turn.steps.prepare import PreparedTurn, offer_to_calls
from dragoman.turn.steps.shorten import shorten
from dragoman.turn.steps.slots import Lanes, Slot
from dragoman.turn.steps.tool_context import CallContext

REJECTED = "A person did not let this call run."
NOBODY_THERE = "No rule allows this call, and no user was there to approve it: it did not run."
INTERRUPTED = "The program stopped while this call ran: whether it took effect is not known."
WITHHELD = "The call ran. A person decided that its result is not to be shown."
_FAILED = "dragoman.failed"  # In the metadata of a result waiting for review: whether the call failed.
_GRACE = 5.0  # Maximum seconds for a tool to stop when requested.


@dataclass(slots=True, frozen=True)
class _Decided:
    """A user's answer, to be recorded as a fact in one transaction with its consequences."""

    facts: tuple[QuestionAnswered, ...] = ()
    signals: tuple[int, ...] = ()


_NOTHING = _Decided()


class CallRun:
    """One call of a running turn. `limit` is set if a reached limit prevents it."""

    def __init__(
        self,
        prepared: PreparedTurn,
        offer: Offer,
        lanes: Lanes,
        id: str,
        *,
        grants: Sequence[Rule] = (),
        limit: str | None = None,
    ) -> None:
        self._prepared = prepared
        self._log = prepared.log
        self._offer = offer
        self._lanes = lanes
        self._id = id
        self._grants = grants
        self._limit = limit

    async def carry(self) -> None:
        """Carry the call from its current state to its result."""
        known = self._log.turn.calls[self._id]
        call = self._log.call(self._id)
        match known.state:
            case CallState.PENDING if self._limit is not None:
                text = f"The limit of {self._limit} is reached: this call did not run. "
                result = ToolResult(text + "Answer with what there is.")
                await self._settle(call, CallState.SKIPPED, result, limit=self._limit)
            case CallState.PENDING:
                await self._run_planned(await plan(self._prepared, self._offer, call, self._grants))
            case CallState.ASKED:
                await self._await_answer(call, self._open_question())
            case CallState.RUNNING if known.client:
                await self._await_client(call)
            case CallState.RUNNING:
                await self._run_again(call, await self._plan_again(call))
            case CallState.REVIEWING:
                await self._await_review(call, self._log.under_review[self._id])

    async def keep_decided(self) -> None:
        """Apply results and decisions that arrived before the turn was stopped.

        An approval has no effect: the call does not start.
        """
        known, signals = self._log.turn.calls[self._id], self._prepared.signals
        call = self._log.call(self._id)
        answered = bool(known.questions) and signals.has_answer(known.questions[0])
        match known.state:
            case CallState.RUNNING if known.client and signals.has_result(self._id):
                await self._keep_delivered(call)
            case CallState.ASKED if answered:
                question = self._open_question()
                received = await signals.answer(question.id)
                if received.value.verdict != "allow":
                    decided = self._decide(question, received.value, received.signal)
                    await self._turn_down(call, question, received.value, decided)
            case CallState.REVIEWING if answered:
                await self._await_review(call, self._log.under_review[self._id])

    async def _run_planned(self, planned: Plan, decided: _Decided = _NOTHING) -> None:
        match planned:
            case AnsweredCall(call, state, text, limit):
                await self._settle(call, state, ToolResult(text), limit=limit, decided=decided)
            case Asking(call, question):
                asked = replace(call, state=CallState.ASKED)
                await self._ask(ApprovalAsked(call.id, question.id), asked, question, decided=decided)
                if question.kind == "approve" and question.because == "rule":
                    await self._answer_by_rule(call, question)
                await self._await_answer(self._log.call(self._id), question)
            case Ready():
                await self._start(planned, decided)

    # ── a person decides ──────────────────────────────────────────────────────────────────────────

    async def _await_answer(self, call: ToolCall, question: Question) -> None:
        received = await self._answer_or_stop(question)
        if received is None:
            return await self._settle(call, CallState.SKIPPED, ToolResult(STOPPED))
        answer = received.value
        if answer.verdict != "allow":
            decided = self._decide(question, answer, received.signal)
            return await self._turn_down(call, question, answer, decided)
        self._offer = await offer_to_calls(self._prepared, self._offer, [self._id])
        planned = await plan_answered(self._prepared, self._offer, call, question, answer)
        approved = planned.call.hash if isinstance(planned, Ready) else None
        decided = self._decide(question, answer, received.signal, approved=approved)
        return await self._run_planned(planned, decided)

    async def _answer_by_rule(self, call: ToolCall, question: Question) -> None:
        answer = await answer_meanwhile(self._prepared, self._tool_of(call), call)
        if answer is not None:
            with suppress(AlreadyAnswered):
                await self._log.store.answer(question.id, answer)
            await self._prepared.signals.collect()

    async def _answer_or_stop(self, question: Question) -> Received[Answer] | None:
        """Return the answer. None if a user stopped all calls of the turn before it arrived."""
        if self._log.turn.limit == BY_PERSON:
            self._lanes.stopped.set()
        return await self._prepared.signals.answer_unless(question.id, self._lanes.stopped)

    async def _turn_down(self, call: ToolCall, question: Question, answer: Answer, decided: _Decided) -> None:
        reason = f" They said: {answer.reason}" if answer.reason else ""
        if answer.verdict == "stop":
            self._lanes.stopped.set()
            states = {"interrupted": CallState.INTERRUPTED, "loop": CallState.SKIPPED}
            state = states.get(question.kind, CallState.REJECTED)
            result = ToolResult(STOPPED + reason)
            return await self._settle(call, state, result, limit=BY_PERSON, decided=decided)
        if question.kind == "interrupted":
            result = ToolResult(INTERRUPTED + reason)
            return await self._settle(call, CallState.INTERRUPTED, result, decided=decided)
        text = NOBODY_THERE if answer.by == NOBODY else REJECTED + reason
        if call.guessed and answer.by == NOBODY:
            self._tell_of_format(call, question)
            text = NO_CALL
        return await self._settle(call, CallState.REJECTED, ToolResult(text), decided=decided)

    def _tell_of_format(self, call: ToolCall, question: Question) -> None:
        """D7: no user could be asked, so the call stays text."""
        rule = f"format:{question.rules[0].pattern}" if question.rules else "format"
        self._prepared.view.notice(
            sentence("format.text", tool=call.tool, format=call.format, rule=rule), "format"
        )

    async def _ask(
        self,
        fact: ApprovalAsked | CallInterrupted | ResultAsked,
        call: ToolCall,
        question: Question,
        *,
        held: ToolResult | None = None,
        decided: _Decided = _NOTHING,
    ) -> None:
        change = Change(
            calls=[call],
            questions=[] if question.id in self._log.questions else [question],
            held={call.id: held} if held else {},
            signals=list(decided.signals),
        )
        await self._log.record(*decided.facts, fact, change=change)
        self._log.publish(call_asked(question))

    def _open_question(self) -> Question:
        open = self._log.turn.calls[self._id].questions
        if not open:
            raise NotFound("open question about call", self._id)
        return self._log.questions[open[0]]

    def _decide(
        self, question: Question, answer: Answer, signal: int, approved: str | None = None
    ) -> _Decided:
        self._log.questions[question.id] = replace(question, answer=answer)
        self._log.publish(e.CallAnswered(self._id, question.id, answer.verdict))
        return _Decided((QuestionAnswered(self._id, question.id, answer.verdict, approved),), (signal,))

    # ── it runs ───────────────────────────────────────────────────────────────────────────────────

    async def _plan_again(self, call: ToolCall) -> Plan:
        approved = self._log.turn.calls[self._id].approved
        return await plan_repeated(self._prepared, self._offer, call, approved)

    async def _run_again(self, call: ToolCall, planned: Plan) -> None:
        """Repeat a call for a new owner, if its tool declares that this is safe."""
        match planned:
            case Ready():
                await self._start(planned)
            case Asking(call, question):
                self._withdraw_questions("the program stopped while the tool waited")
                asked = replace(call, state=CallState.ASKED)
                await self._ask(CallInterrupted(call.id, question.id), asked, question)
                await self._await_answer(self._log.call(self._id), question)
            case _:
                await self._settle(call, CallState.INTERRUPTED, ToolResult(INTERRUPTED))

    async def _start(self, ready: Ready, decided: _Decided = _NOTHING) -> None:
        tool = ready.tool
        if tool.client:
            await self._began(ready, decided)
            return await self._await_client(self._log.call(self._id))
        repeated = self._log.turn.calls[self._id].state is CallState.RUNNING
        async with self._lanes.place(alone=tool.sequential) as (slot, waited):
            planned = await self._plan_late(ready, decided, repeated=repeated) if waited else ready
            outcome = await self._run(planned, decided, slot) if isinstance(planned, Ready) else None
        if outcome is not None:
            return await self._returned(self._log.call(self._id), tool, outcome)
        return await (
            self._run_again(ready.call, planned) if repeated else self._run_planned(planned, decided)
        )

    async def _plan_late(self, ready: Ready, decided: _Decided, *, repeated: bool) -> Plan:
        """Plan again after other calls ran: the reason that let this one run may have changed."""
        if repeated:
            return await self._plan_again(ready.call)
        return await plan_late(self._prepared, ready, allowed=bool(decided.facts))

    async def _began(self, ready: Ready, decided: _Decided) -> None:
        """Store the start before the tool runs, so that no process repeats the call unknowingly."""
        call, tool = ready.call, ready.tool
        if tool.fingerprint is not None and not self._lent:
            await self._log.store.set_pin(self._log.sender, tool.permission, tool.fingerprint)
        now = self._log.now()
        # Its first start is its clock, which a rerun restores.
        first = call.started if tool.runs_programs else None
        running = replace_fast(call, state=CallState.RUNNING, started=first or now)
        await self._log.record(
            *decided.facts,
            CallStarted(
                call.id,
                client=tool.client,
                because=ready.permit.because,
                review=self._prepared.review(tool, call.tool),
                at=now,
            ),
            change=Change(calls=[running], signals=list(decided.signals)),
            sync=tool.replay != "safe",
        )
        self._log.publish(e.CallStart(call.id, call.tool, running.arguments, tool.client, running.started))

    async def _run(self, ready: Ready, decided: _Decided, slot: Slot) -> Outcome:
        await self._began(ready, decided)
        hooks, view = self._prepared.hooks, self._prepared.view
        await hooks.see_start(ready.call, ready.tool, view)
        try:
            return await self._execute(ready, slot)
        finally:
            await hooks.see_end(ready.call, ready.tool, view)

    async def _execute(self, ready: Ready, slot: Slot) -> Outcome:
        """Run the tool in a separate task. If the turn is cancelled, a tool that must not be stopped
        continues."""
        tool = ready.tool
        program = None
        if tool.runs_programs:
            program = CallsOfProgram(self._prepared, self._offer, self._id, slot, self._carry_inner)
        context = CallContext(self._prepared, tool, self._id, self._grants, slot=slot, program=program)
        with within(self._log.trace, "call", self._id):
            task = asyncio.create_task(execute(tool, ready.call, ready.permit, context.for_tool()))
        self._lanes.detached.add(task)
        task.add_done_callback(self._lanes.detached.discard)
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            if tool.cancellable:
                task.cancel()
                await asyncio.wait({task}, timeout=_GRACE)
            raise
        return failed(f"{tool.name} failed: it cancelled itself") if task.cancelled() else task.result()

    async def _carry_inner(self, id: str, grants: Sequence[Rule], limit: str | None) -> None:
        await CallRun(self._prepared, self._offer, self._lanes, id, grants=grants, limit=limit).carry()

    async def _keep_delivered(self, call: ToolCall) -> None:
        """Keep a result delivered by a client, unless a user must review it first."""
        received = await self._prepared.signals.result(self._id)
        review = self._log.turn.calls[self._id].review
        if review == "never" or (review == "on_error" and not received.value.get("failed")):
            await self._await_client(call)

    async def _await_client(self, call: ToolCall) -> None:
        received = await self._prepared.signals.result(self._id)
        result = RESULT.from_json(received.value["result"])
        state = CallState.FAILED if received.value.get("failed") else CallState.COMPLETED
        decided = _Decided(signals=(received.signal,))
        return await self._returned(call, self._tool_of(call), Outcome(state, result), decided)

    def _tool_of(self, call: ToolCall) -> Tool:
        """Return the tool of a call that ran. If it is gone, its known properties still apply."""
        if (found := self._offer.find(call.tool)) is not None:
            return found[1]
        return gone_tool(call.tool, self._log.turn.calls[self._id].review)

    # ── it ran ────────────────────────────────────────────────────────────────────────────────────

    async def _returned(
        self, call: ToolCall, tool: Tool, outcome: Outcome, decided: _Decided = _NOTHING
    ) -> None:
        result = await self._prepared.hooks.see_result(call, outcome.result, self._prepared.view)
        failed = outcome.state is CallState.FAILED
        review = self._prepared.review(tool, call.tool)
        if review == "always" or (review == "on_error" and failed):
            self._withdraw_questions()
            result = replace(result, metadata={**result.metadata, _FAILED: failed})
            question = question_about(self._log, call, tool, "review", result=result)
            reviewing = replace(call, state=CallState.REVIEWING)
            self._log.under_review[self._id] = result
            await self._ask(
                ResultAsked(call.id, question.id), reviewing, question, held=result, decided=decided
            )
            return await self._await_review(self._log.call(self._id), result)
        shown = await shorten(result, call, tool, self._log.store)
        return await self._settle(call, outcome.state, shown, decided=decided)

    async def _await_review(self, call: ToolCall, held: ToolResult) -> None:
        question = self._open_question()
        received = await self._prepared.signals.answer(question.id)
        decided = self._decide(question, received.value, received.signal)
        if received.value.verdict == "withhold":
            reason = f" They said: {received.value.reason}" if received.value.reason else ""
            result = ToolResult(WITHHELD + reason)
            return await self._settle(call, CallState.WITHHELD, result, decided=decided)
        metadata = {key: value for key, value in held.metadata.items() if key != _FAILED}
        result = replace(held, metadata=metadata)
        if isinstance(received.value.value, str):
            note = sentence("result.edited")
            result = replace(result_instead(held, received.value.value), title=held.title, note=note)
        result = await shorten(result, call, self._tool_of(call), self._log.store)
        state = CallState.FAILED if held.metadata.get(_FAILED) else CallState.COMPLETED
        return await self._settle(call, state, result, decided=decided)

    def _withdraw_questions(self, why_closed: str = "the tool did not wait for the answer") -> None:
        """Withdraw requests that a tool made without waiting for their answers."""
        open = self._log.turn.calls[self._id].questions
        if open:
            why = dict.fromkeys(open, why_closed)
            self._log.record_soon(
                *(QuestionWithdrawn(self._id, id) for id in open), change=Change(closed=why)
            )

    @property
    def _lent(self) -> bool:
        """Return whether another user than the sender let it run: the sender has not seen the tool's current
        text."""
        questions = (q for q in self._log.questions.values() if q.call == self._id)
        return any(q.answer is not None and q.answer.lent for q in questions)

    @property
    def _edited_by_person(self) -> bool:
        questions = (q for q in self._log.questions.values() if q.call == self._id)
        answered = ((q.arguments, q.answer.arguments) for q in questions if q.answer is not None)
        return any(given is not None and canonical(given) != canonical(asked) for asked, given in answered)

    async def _settle(
        self,
        call: ToolCall,
        state: CallState,
        result: ToolResult,
        *,
        limit: str = "",
        decided: _Decided = _NOTHING,
    ) -> None:
        if self._edited_by_person and state in (CallState.COMPLETED, CallState.FAILED):
            note = sentence("result.edited_arguments", arguments=canonical(call.arguments))
            result = replace(result, note=together([note, result.note] if result.note else [note]))
        settled = replace_fast(call, state=state, result=result, ended=self._log.now())
        facts: list[CallFact] = [*decided.facts, CallFinished(call.id, state, bool(limit), limit)]
        open = [q.id for q in self._log.questions.values() if q.call == self._id and q.open]
        closed = dict.fromkeys(open, f"the call is {state}")
        self._log.record_soon(
            *facts, change=Change(calls=[settled], signals=list(decided.signals), closed=closed)
        )
        self._log.under_review.pop(self._id, None)
        self._log.publish(call_end(settled))
        log_call(self._log, settled)
