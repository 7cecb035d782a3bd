"""One question and its answer, for programs without an event loop."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, TypeVar, overload

from dragoman.messages.questions import Answer, nobody_to_ask, withhold
from dragoman.runtime import ModelChoice, Runtime
from dragoman.turn.output import OutputType
from dragoman.turn.result import TurnResult

T = TypeVar("T")


@overload
def run_sync(
    said: str, *, model: ModelChoice, output_type: OutputType[T], store: str | Path = ..., **more: Any
) -> TurnResult[T]: ...
@overload
def run_sync(
    said: str, *, model: ModelChoice, output_type: None = None, store: str | Path = ..., **more: Any
) -> TurnResult: ...
def run_sync(
    said: str,
    *,
    model: ModelChoice,
    output_type: OutputType[Any] | None = None,
    store: str | Path = "dragoman.db",
    **more: Any,
) -> TurnResult[Any]:
    """One question, one answer, for programs without an event loop. Calls that no rule allows do not run,
    since nobody is there to be asked. `more` is what a `Runtime` takes."""

    async def run() -> TurnResult[Any]:
        async with Runtime(store, model=model, **more) as runtime:
            turn = await runtime.send(said, output_type=output_type)
            async for event in turn.events():
                if event.type == "call.asked":
                    await turn.answer(event.question, _cautious(event.kind))
            return await turn.result()

    return asyncio.run(run())


def _cautious(kind: str) -> Answer:
    match kind:
        case "review":
            return withhold("nobody was there to look at it")
        case _:
            return nobody_to_ask()
