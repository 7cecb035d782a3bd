"""A turn whose process died in, a turn that can go on out: calls that were running are decided about."""

from __future__ import annotations

from dataclasses import replace

from dragoman.messages.events import call_end
from dragoman.messages.parts import CallState, ToolCall, ToolResult
from dragoman.store.store import Change
from dragoman.tools.tool import Tool
from dragoman.tools.toolbox import Offer
from dragoman.turn.facts import CallFinished, CallInterrupted
from dragoman.turn.live.log import TurnLog
from dragoman.turn.steps.ask import asked, question_about
from dragoman.turn.steps.call import INTERRUPTED


async def recover(log: TurnLog, offer: Offer) -> None:
    """By each tool's own word: run it again, ask, or say that nobody knows. Everything else is found by
    its state: a torn step is asked again, a question stays open, a client may still deliver."""
    for id in log.turn.unsettled:
        known = log.turn.calls[id]
        if known.state is CallState.RUNNING and not known.client:
            call = log.call(id)
            found = offer.find(call.tool)
            if found is None or found[1].replay == "never":
                await _give_up(log, call)
            elif found[1].replay == "ask":
                await _ask(log, call, found[1])


async def _ask(log: TurnLog, call: ToolCall, tool: Tool) -> None:
    if log.turn.calls[call.id].question is not None:
        await _give_up(log, call)  # it was asking something itself: two questions at once are one too many
        return
    starts = log.turn.calls[call.id].starts
    question = question_about(log, call, tool, "interrupted", place=starts)
    waiting = replace(call, state=CallState.ASKED)
    await log.record(
        CallInterrupted(call.id, question.id), change=Change(calls=[waiting], questions=[question])
    )
    log.publish(asked(question))


async def _give_up(log: TurnLog, call: ToolCall) -> None:
    result = ToolResult(INTERRUPTED)
    settled = replace(call, state=CallState.INTERRUPTED, result=result, ended=log.now())
    await log.record(
        CallFinished(call.id, CallState.INTERRUPTED),
        change=Change(calls=[settled], closed=_closed(log, call)),
    )
    log.publish(call_end(settled))


def _closed(log: TurnLog, call: ToolCall) -> dict[str, str]:
    """The question that died with the tool that asked it."""
    question = log.turn.calls[call.id].question
    return {question: "the program stopped while the tool waited"} if question else {}
