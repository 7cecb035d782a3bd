"""One call in, carried from wherever it stands to its one result: asked about, run, reviewed, stored.

Each station is a fact, so a call that was left at any of them by a dead process is picked up there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from dragoman.errors import NotFound, ToolFailed
from dragoman.messages import events as e
from dragoman.messages.parts import CallState, File, ToolCall, ToolResult, canonical
from dragoman.messages.questions import NOBODY, Answer, Question
from dragoman.store.codecs import RESULT
from dragoman.store.store import Change
from dragoman.tools.execute import Leave, Outcome, execute, failed
from dragoman.tools.output import bounded
from dragoman.tools.permissions import decide
from dragoman.tools.tool import Tool, ToolContext
from dragoman.tools.toolbox import Offer
from dragoman.turn.facts import (
    CallAsked,
    CallFinished,
    CallStarted,
    QuestionAnswered,
    ResultAsked,
    ToolAsked,
)
from dragoman.turn.steps.ask import asked, question_about
from dragoman.turn.steps.plan import Answered, MayRun, MustAsk, changed, fit, judge
from dragoman.turn.steps.prepare import PreparedTurn

REJECTED = "A person did not let this call run."
NOBODY_THERE = "No rule allows this call, and nobody was there to be asked: it did not run."
INTERRUPTED = "The program stopped while this call ran: whether it took effect is not known."
WITHHELD = "The call ran. A person decided that its result is not to be shown."
REDEFINED = "The tool changed its definition while a person was asked about this call: it did not run."
EDITED = "A person changed the arguments before the call ran. It ran with: "


@dataclass(slots=True)
class Lanes:
    """Who may run beside whom: so many calls at once, and those that want to be alone one by one."""

    room: asyncio.Semaphore
    alone: asyncio.Lock
    detached: set[asyncio.Task[Outcome]]  # tools that outlive their turn because they may not be stopped


@dataclass(slots=True, frozen=True)
class _Said:
    """A person's answer that is about to become a fact, in one transaction with what follows from it."""

    facts: tuple[QuestionAnswered, ...] = ()
    signals: tuple[int, ...] = ()


_NOTHING = _Said()


class CallRun:
    """One call of a running turn."""

    def __init__(self, prepared: PreparedTurn, offer: Offer, lanes: Lanes, id: str) -> None:
        self._prepared = prepared
        self._log = prepared.log
        self._offer = offer
        self._lanes = lanes
        self._id = id
        self._asked = 0  # questions of the tool's own

    async def carry(self) -> None:
        """From its present state to its result."""
        known = self._log.turn.calls[self._id]
        call = self._log.call(self._id)
        match known.state:
            case CallState.PENDING:
                await self._plan(call)
            case CallState.ASKED:
                await self._await_answer(call, self._open_question())
            case CallState.RUNNING if known.client:
                await self._await_client(call)
            case CallState.RUNNING:
                await self._run_again(call, known.approved)
            case CallState.REVIEWING:
                await self._await_review(call, self._log.held[self._id])

    async def _plan(self, call: ToolCall) -> None:
        match await judge(self._prepared, self._offer, call):
            case Answered() as answered:
                await self._settle(
                    answered.call, answered.state, ToolResult(answered.text), closing=answered.closing
                )
            case MustAsk(call, question):
                await self._ask(
                    CallAsked(call.id, question.id), replace(call, state=CallState.ASKED), question
                )
                await self._await_answer(self._log.call(self._id), question)
            case MayRun(call, tool, leave):
                await self._start(call, tool, leave)

    # ── a person decides ──────────────────────────────────────────────────────────────────────────

    async def _await_answer(self, call: ToolCall, question: Question) -> None:
        signal = await self._prepared.signals.answer(question.id)
        answer = signal.value
        if answer.verdict != "allow":
            said = self._said(question, answer, signal.signal)
            return await self._turn_down(call, question, answer, said)
        if answer.arguments is not None and answer.arguments != call.arguments:
            call = changed(call, answer.arguments)
        fitted = fit(self._offer, call)
        if isinstance(fitted, Answered):
            said = self._said(question, answer, signal.signal)
            return await self._settle(call, fitted.state, ToolResult(fitted.text), said=said)
        call, tool = fitted
        if tool.fingerprint != question.fingerprint:
            said = self._said(question, answer, signal.signal)
            return await self._settle(call, CallState.FAILED, ToolResult(REDEFINED), said=said)
        said = self._said(question, answer, signal.signal, approved=call.hash)
        return await self._start(call, tool, Leave(call.hash, "person"), said)

    async def _turn_down(self, call: ToolCall, question: Question, answer: Answer, said: _Said) -> None:
        reason = f" They said: {answer.reason}" if answer.reason else ""
        if question.kind == "interrupted":
            return await self._settle(
                call, CallState.INTERRUPTED, ToolResult(INTERRUPTED + reason), said=said
            )
        if answer.verdict == "stop":
            text = "A person stopped the calls of this turn: answer with what there is." + reason
            return await self._settle(call, CallState.SKIPPED, ToolResult(text), closing=True, said=said)
        text = NOBODY_THERE if answer.by == NOBODY else REJECTED + reason
        return await self._settle(call, CallState.REJECTED, ToolResult(text), said=said)

    async def _ask(
        self,
        fact: CallAsked | ToolAsked | ResultAsked,
        call: ToolCall,
        question: Question,
        held: ToolResult | None = None,
        said: _Said = _NOTHING,
    ) -> None:
        change = Change(
            calls=[call],
            questions=[] if question.id in self._log.questions else [question],
            held={call.id: held} if held else {},
            signals=list(said.signals),
        )
        await self._log.record(fact, change=change)
        self._log.publish(asked(question))

    def _open_question(self) -> Question:
        id = self._log.turn.calls[self._id].question
        if id is None:
            raise NotFound("open question about call", self._id)
        return self._log.questions[id]

    def _said(self, question: Question, answer: Answer, signal: int, approved: str | None = None) -> _Said:
        self._log.questions[question.id] = replace(question, answer=answer)
        self._log.publish(e.CallAnswered(self._id, question.id, answer.verdict))
        return _Said((QuestionAnswered(self._id, question.id, answer.verdict, approved),), (signal,))

    # ── it runs ───────────────────────────────────────────────────────────────────────────────────

    async def _run_again(self, call: ToolCall, approved: str | None) -> None:
        """A new owner repeats a call whose tool says that it may be."""
        fitted = fit(self._offer, call)
        if isinstance(fitted, Answered):
            return await self._settle(call, CallState.INTERRUPTED, ToolResult(INTERRUPTED))
        call, tool = fitted
        leave = Leave(approved or call.hash, "person" if approved else "rule")
        return await self._start(call, tool, leave)

    async def _start(self, call: ToolCall, tool: Tool, leave: Leave, said: _Said = _NOTHING) -> None:
        if tool.client:
            await self._began(call, tool, said)
            return await self._await_client(self._log.call(self._id))
        if tool.sequential:
            async with self._lanes.alone, self._lanes.room:
                outcome = await self._run(call, tool, leave, said)
        else:
            async with self._lanes.room:
                outcome = await self._run(call, tool, leave, said)
        return await self._returned(self._log.call(self._id), tool, outcome)

    async def _began(self, call: ToolCall, tool: Tool, said: _Said) -> None:
        """On disk before the tool does anything, so that nobody runs it twice without knowing."""
        if tool.fingerprint is not None:
            await self._log.store.set_pin(self._log.conversation.owner, tool.permission, tool.fingerprint)
        running = replace(call, state=CallState.RUNNING, started=self._log.now())
        await self._log.record(
            *said.facts,
            CallStarted(call.id, client=tool.client),
            change=Change(calls=[running], signals=list(said.signals)),
            sync=tool.replay != "safe",
        )
        self._log.publish(e.CallStart(call.id, call.tool, running.arguments, tool.client, running.started))

    async def _run(self, call: ToolCall, tool: Tool, leave: Leave, said: _Said) -> Outcome:
        """In a task of its own. Where the turn is cancelled, a tool that may not be stopped runs on in it."""
        await self._began(call, tool, said)
        task = asyncio.create_task(execute(tool, call, leave, self._context(tool)))
        self._lanes.detached.add(task)
        task.add_done_callback(self._lanes.detached.discard)
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            if tool.cancellable:
                task.cancel()
                await asyncio.wait({task})
            raise
        return failed(f"{tool.name} failed: it cancelled itself") if task.cancelled() else task.result()

    async def _await_client(self, call: ToolCall) -> None:
        signal = await self._prepared.signals.result(self._id)
        result = RESULT.from_json(signal.value["result"])
        state = CallState.FAILED if signal.value.get("failed") else CallState.COMPLETED
        found = self._offer.find(call.tool)
        outcome = Outcome(state, result)
        said = _Said(signals=(signal.signal,))
        if found is None:
            return await self._settle(call, state, result, said=said)
        return await self._returned(call, found[1], outcome, said)

    def _context(self, tool: Tool) -> ToolContext:
        log = self._log
        return ToolContext(
            conversation=log.conversation.id,
            turn=log.id,
            message=log.turn.reply or "",
            call=self._id,
            cancelled=lambda: log.cancelled is not None,
            ask=lambda text, choices=(), schema=None: self._tool_asks(tool, text, choices, schema),
            progress=lambda value: log.publish(e.CallProgress(self._id, value)),
            read_output=self._read_output,
            put_file=self._put_file,
            permits=lambda pattern: (
                decide(tool.permission, (pattern,), self._prepared.rules).action != "deny"
            ),
            workspace=self._prepared.services.workspace,
        )

    async def _tool_asks(
        self, tool: Tool, text: str, choices: Sequence[str], schema: dict[str, JsonValue] | None
    ) -> JsonValue:
        """The tool's own question. Asked again by a repeated call, it finds the answer it got."""
        call = self._log.call(self._id)
        question = question_about(
            self._log, call, tool, "tool", text=text, choices=choices, schema=schema, place=self._asked
        )
        self._asked += 1
        known = self._log.questions.get(question.id)
        if known is not None and known.answer is not None:
            return _reply(known.answer)
        await self._ask(ToolAsked(call.id, question.id), call, question)
        signal = await self._prepared.signals.answer(question.id)
        said = self._said(question, signal.value, signal.signal)
        await self._log.record(*said.facts, change=Change(signals=list(said.signals)))
        return _reply(signal.value)

    async def _put_file(self, data: bytes, media_type: str, name: str | None = None) -> File:
        blob = await self._log.store.put_blob(data)
        return File(media_type, blob=blob, name=name, size=len(data))

    async def _read_output(self, call: str) -> str:
        """The whole output of a call of this conversation, if a person did not withhold it."""
        try:
            found, conversation, _ = await self._log.store.call(call)
        except NotFound:
            conversation = ""
        if conversation != self._log.conversation.id:
            raise ToolFailed(f"there is no call {call} in this conversation")
        if found.state is CallState.WITHHELD or found.result is None:
            raise ToolFailed(f"the output of {call} is not available")
        if found.result.blob is None:
            return found.result.text
        return (await self._log.store.blob(found.result.blob)).decode()

    # ── it ran ────────────────────────────────────────────────────────────────────────────────────

    async def _returned(self, call: ToolCall, tool: Tool, outcome: Outcome, said: _Said = _NOTHING) -> None:
        result = outcome.result
        for plugin in self._prepared.hooks.after_tool:
            result = await plugin.after_tool(call, result, self._prepared.view) or result
        failed = outcome.state is CallState.FAILED
        if tool.review == "always" or (tool.review == "on_error" and failed):
            result = replace(result, metadata={**result.metadata, "failed": failed})
            question = question_about(self._log, call, tool, "review", result=result)
            reviewing = replace(call, state=CallState.REVIEWING)
            self._log.held[self._id] = result
            await self._ask(ResultAsked(call.id, question.id), reviewing, question, result, said)
            return await self._await_review(self._log.call(self._id), result)
        return await self._settle(call, outcome.state, await self._bounded(tool, result), said=said)

    async def _await_review(self, call: ToolCall, held: ToolResult) -> None:
        question = self._open_question()
        signal = await self._prepared.signals.answer(question.id)
        said = self._said(question, signal.value, signal.signal)
        if signal.value.verdict == "withhold":
            reason = f" They said: {signal.value.reason}" if signal.value.reason else ""
            return await self._settle(call, CallState.WITHHELD, ToolResult(WITHHELD + reason), said=said)
        metadata = {key: value for key, value in held.metadata.items() if key != "failed"}
        result = replace(held, metadata=metadata)
        if isinstance(signal.value.value, str):
            note = "A person edited this result."
            result = ToolResult(signal.value.value, title=held.title, note=note)
        found = self._offer.find(call.tool)
        if found is not None:
            result = await self._bounded(found[1], result)
        state = CallState.FAILED if held.metadata.get("failed") else CallState.COMPLETED
        return await self._settle(call, state, result, said=said)

    async def _bounded(self, tool: Tool, result: ToolResult) -> ToolResult:
        """What the model is shown; the whole is kept where that is not all of it."""
        shown = bounded(result.text, self._id, tool.max_lines, tool.max_bytes)
        if shown is result.text:
            return result
        blob = await self._log.store.put_blob(result.text.encode())
        return replace(result, text=shown, value=None, blob=blob)

    @property
    def _edited_by_person(self) -> bool:
        questions = (q for q in self._log.questions.values() if q.call == self._id)
        return any(q.answer is not None and q.answer.arguments is not None for q in questions)

    async def _settle(
        self,
        call: ToolCall,
        state: CallState,
        result: ToolResult,
        *,
        closing: bool = False,
        said: _Said = _NOTHING,
    ) -> None:
        if self._edited_by_person and state in (CallState.COMPLETED, CallState.FAILED):
            note = EDITED + canonical(call.arguments)
            result = replace(result, note=f"{note} {result.note}" if result.note else note)
        settled = replace(call, state=state, result=result, ended=self._log.now())
        self._log.record_soon(
            *said.facts,
            CallFinished(call.id, state, closing),
            change=Change(calls=[settled], signals=list(said.signals)),
        )
        self._log.held.pop(self._id, None)
        self._log.publish(e.call_end(settled))


def _reply(answer: Answer) -> JsonValue:
    if answer.verdict == "reject":
        raise ToolFailed(f"the person did not answer{f': {answer.reason}' if answer.reason else ''}")
    return answer.value
