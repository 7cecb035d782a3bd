"""Logs how turns and calls ended: a line for each, with numbers and ids, and nothing of their contents."""

from __future__ import annotations

import logging

from dragoman.messages.message import ToolCall
from dragoman.turn.live.log import TurnLog

_log = logging.getLogger("dragoman.turn")


def log_turn(log: TurnLog) -> None:
    """The turn is over, and that is stored."""
    if not _log.isEnabledFor(logging.INFO):
        return
    turn, usage = log.turn, log.turn.usage
    fields = {
        "turn": log.id,
        "conversation": log.conversation.id,
        "state": str(turn.state),
        "seconds": round(turn.ended - turn.started, 3),
        "steps": turn.step,
        "calls": len(turn.calls),
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cost": usage.cost,  # left out where it is not known
        "model": turn.options.started_with,
        "person": log.conversation.owner,
        "limit": turn.limit or None,
        "error_kind": turn.error.kind if turn.error is not None else None,
    }
    _log.info("turn %s", turn.state, extra=fields)


def log_call(log: TurnLog, call: ToolCall) -> None:
    """The call has its result."""
    if not _log.isEnabledFor(logging.INFO):
        return
    seconds = round(call.ended - call.started, 3) if call.started and call.ended else None
    fields = {
        "turn": log.id,
        "conversation": log.conversation.id,
        "call": call.id,
        "tool": call.tool,
        "state": str(call.state),
        "seconds": seconds,
    }
    _log.info("call %s", call.state, extra=fields)
