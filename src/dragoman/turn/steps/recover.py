"""What becomes of calls that were running when the process of their turn died."""

from __future__ import annotations

from dataclasses import replace

from dragoman.messages.events import call_asked, call_end
from dragoman.messages.message import CallState, ToolCall, ToolResult
from dragoman.store.store import Change
from dragoman.tools.tool import Tool
from dragoman.tools.toolbox import Offer
from dragoman.turn.facts import CallFinished, CallInterrupted, QuestionWithdrawn
from dragoman.turn.live.log import TurnLog
from dragoman.turn.live.outcomes import log_call
from dragoman.turn.steps.ask import question_about
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
    """The tool that asked something is gone: its own questions go with it."""
    starts = log.turn.calls[call.id].starts
    question = question_about(log, call, tool, "interrupted", place=starts)
    withdrawn = [QuestionWithdrawn(call.id, id) for id in log.turn.calls[call.id].questions]
    await log.record(
        *withdrawn,
        CallInterrupted(call.id, question.id),
        change=Change(
            calls=[replace(call, state=CallState.ASKED)], questions=[question], closed=_closed(log, call)
        ),
    )
    log.publish(call_asked(question))


async def _give_up(log: TurnLog, call: ToolCall) -> None:
    result = ToolResult(INTERRUPTED)
    settled = replace(call, state=CallState.INTERRUPTED, result=result, ended=log.now())
    await log.record(
        CallFinished(call.id, CallState.INTERRUPTED),
        change=Change(calls=[settled], closed=_closed(log, call)),
    )
    log.publish(call_end(settled))
    log_call(log, settled)


def _closed(log: TurnLog, call: ToolCall) -> dict[str, str]:
    """The questions that died with the tool that asked them."""
    return dict.fromkeys(log.turn.calls[call.id].questions, "the program stopped while the tool waited")
