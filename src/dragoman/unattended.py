"""Answer the approval requests of a turn if no user is present, so that it never waits for one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from dragoman.errors import AlreadyAnswered, DragomanError, TurnEnded
from dragoman.messages.events import CallAsked, CallProgress, CallStart
from dragoman.messages.questions import Answer, nobody_to_ask, reject, stop, withhold
from dragoman.runtime import Runtime
from dragoman.turn.api.turn_handle import TurnHandle

CAUTIOUS: Mapping[str, Answer] = {
    "loop": stop("no user was there to allow it to continue"),
    "review": withhold("no user was there to review it"),
    "tool": reject("no user was there to answer"),
}


async def answer_questions(
    runtime: Runtime, turn: TurnHandle[Any], answers: Mapping[str, Answer] = CAUTIOUS
) -> list[str]:
    """Answer what waits in a turn until it ends, and in turns that its calls start in other conversations.

    `answers` are by the kind of request, and other kinds are rejected. A call that a client would have to run
    fails. Returns the tools whose calls no rule allowed.
    """
    inside: dict[str, asyncio.Task[list[str]]] = {}
    refused: list[str] = []
    try:
        async for event in turn.events():
            match event:
                case CallAsked(question=question, kind=kind, tool=tool):
                    with suppress(AlreadyAnswered, TurnEnded):  # Another client or a grant was first.
                        await runtime.answer(question, answers.get(kind, nobody_to_ask()))
                        refused += [tool] if kind == "approve" and kind not in answers else []
                case CallStart(call=call, client=True):
                    with suppress(DragomanError):  # A client has delivered the result.
                        await turn.deliver(call, "no client is there to run it", failed=True)
                # A task names its turn before it makes approval requests. Only its turn reports those of
                # nested tasks.
                case CallProgress(value={"turn": str(id), "conversation": str(opened)}) if id not in inside:
                    if await _is_below(runtime, turn.id, opened):
                        inside[id] = asyncio.create_task(_answer_inside(runtime, id, answers))
    finally:
        for task in inside.values():
            task.cancel()
        ended = await asyncio.gather(*inside.values(), return_exceptions=True)
    return [*refused, *(tool for one in ended if isinstance(one, list) for tool in one)]


async def _is_below(runtime: Runtime, turn: str, conversation: str) -> bool:
    """Return whether a call of this turn opened the conversation. A tool's report could name any other."""
    with suppress(DragomanError):
        outer = (await runtime.store.turn(turn)).conversation
        return (await runtime.store.conversation(conversation)).parent == outer
    return False


async def _answer_inside(runtime: Runtime, turn: str, answers: Mapping[str, Answer]) -> list[str]:
    with suppress(DragomanError):  # A failure there fails the call that opened the conversation.
        return await answer_questions(runtime, runtime.turn(turn), answers)
    return []
