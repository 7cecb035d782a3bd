"""A house to test in: a real store in a folder, a scripted model, tools that write down what they did."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

from dragoman import Runtime, ScriptedModel, tool
from dragoman.messages.events import Event
from dragoman.messages.message import Message, ToolCall
from dragoman.store.sqlite.migrate import migrate
from dragoman.store.store import Store
from dragoman.turn.api.turn_handle import TurnHandle, TurnResult
from dragoman.wire.scripted import Script


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def runtime_with(
    folder: Path,
    script: Script,
    *,
    allow: Sequence[str] = ("*",),
    context: int | None = None,
    store: Store | None = None,
    **options: Any,
) -> Runtime:
    """Yield a runtime in which every call is allowed, unless the test sets rules."""
    model = ScriptedModel(script, context=context)
    return Runtime(store or with_tables(folder / "chat.db"), model=model, allow=allow, **options)


def with_tables(path: Path) -> Path:
    """A store with nothing in it but its tables, unless there is one: to make them takes a quarter of what it
    costs to open and close a new one."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_empty_store())
    return path


@cache
def _empty_store() -> bytes:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate(db)
        return db.serialize()


def model_of(runtime: Runtime) -> ScriptedModel:
    model = runtime.services.model(None)
    assert isinstance(model, ScriptedModel)
    return model


async def play(
    folder: Path,
    script: Script,
    said: str = "go",
    *,
    answer: Callable[[TurnHandle, Any], Any] | None = None,
    **options: Any,
) -> TurnResult:
    """One turn from start to end."""
    async with runtime_with(folder, script, **options) as runtime:
        turn = await runtime.send(said)
        async for event in turn.events():
            if answer is not None and event.type == "call.asked":
                await answer(turn, event)
        return await turn.result()


async def events_of(turn: TurnHandle) -> list[Event]:
    return [event async for event in turn.events()]


def calls_of(messages: Sequence[Message]) -> list[ToolCall]:
    return [call for message in messages for call in message.calls]


def only_call(result: TurnResult) -> ToolCall:
    (call,) = calls_of(result.messages)
    return call
