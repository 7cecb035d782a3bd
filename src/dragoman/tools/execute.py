"""One call in, one outcome out: the tool is run, in a thread if need be, and whatever it does is caught."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, JsonValue, TypeAdapter
from pydantic_core import PydanticSerializationError

from dragoman.errors import ToolFailed
from dragoman.messages.parts import CallState, ToolCall, ToolResult
from dragoman.tools.tool import Tool, ToolContext, ToolOutput

_ANY: TypeAdapter[Any] = TypeAdapter(Any)


@dataclass(slots=True, frozen=True)
class Outcome:
    """What came of a call, whole: nothing has been cut off yet."""

    state: CallState
    result: ToolResult


@dataclass(slots=True, frozen=True)
class Leave:
    """Somebody's word that a call may run, good for one tool and one set of arguments."""

    hash: str
    by: str  # a rule, or a person's answer


async def execute(tool: Tool, call: ToolCall, leave: Leave, context: ToolContext) -> Outcome:
    """Run the tool. Its errors and its timeout are outcomes; only cancellation comes out as an exception."""
    if leave.hash != call.hash:
        return failed(f"{call.tool} did not run: leave was given for other arguments")
    try:
        arguments = tool.parameters.validate(call.arguments)
        async with asyncio.timeout(tool.timeout) as limit:
            output = await _run(tool, arguments, context)
        return Outcome(CallState.COMPLETED, result_of(output))
    except TimeoutError as error:
        why = f"it took longer than {tool.timeout:g} s" if limit.expired() else f"TimeoutError: {error}"
        return failed(f"{tool.name} failed: {why}")
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return failed(f"{tool.name} failed: it cancelled itself")
    except ToolFailed as error:
        return failed(str(error) or f"{tool.name} failed")
    except Exception as error:
        return failed(f"{tool.name} failed: {type(error).__name__}: {error}")


def failed(text: str) -> Outcome:
    return Outcome(CallState.FAILED, ToolResult(text))


def result_of(output: Any) -> ToolResult:
    """Text stays text; any other value becomes JSON; None says that it is done."""
    said = output if isinstance(output, ToolOutput) else ToolOutput(output)
    value = _json(said.value)
    text = (
        "done"
        if value is None
        else value
        if isinstance(value, str)
        else json.dumps(value, ensure_ascii=False)
    )
    kept = None if isinstance(value, str) else value
    return ToolResult(text, kept, said.title, said.metadata, said.attachments)


def _json(value: Any) -> JsonValue:
    try:
        dumped: JsonValue = _ANY.dump_python(value, mode="json")
    except PydanticSerializationError as error:
        raise ToolFailed(f"the tool returned a {type(value).__name__}, which is no JSON value") from error
    return dumped


async def _run(tool: Tool, arguments: BaseModel, context: ToolContext) -> Any:
    run = tool.run
    assert run is not None
    if inspect.isasyncgenfunction(run):
        last = None
        async for last in run(arguments, context):
            if not isinstance(last, ToolOutput):
                context.progress(_json(last))
        return last
    if inspect.iscoroutinefunction(run):
        return await run(arguments, context)
    within = replace(context, progress=_from_thread(context))
    if inspect.isgeneratorfunction(run):
        return await in_thread(lambda: _exhaust(run(arguments, within), within.progress))
    output = await in_thread(lambda: run(arguments, within))
    return await output if inspect.isawaitable(output) else output


def _exhaust(steps: Any, report: Callable[[JsonValue], None]) -> Any:
    last = None
    while True:
        try:
            last = next(steps)
        except StopIteration as end:
            return last if end.value is None else end.value
        if not isinstance(last, ToolOutput):
            report(_json(last))


def _from_thread(context: ToolContext) -> Callable[[JsonValue], None]:
    loop = asyncio.get_running_loop()

    def report(value: JsonValue) -> None:
        loop.call_soon_threadsafe(context.progress, value)

    return report


async def in_thread(function: Callable[[], Any]) -> Any:
    """Run it in a thread of its own. A thread that hangs holds up neither other calls nor the exit."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    within = contextvars.copy_context()

    def work() -> None:
        try:
            result = within.run(function)
        except BaseException as error:
            _settle(loop, future, None, error)
        else:
            _settle(loop, future, result, None)

    threading.Thread(target=work, name="dragoman-tool", daemon=True).start()
    return await future


def _settle(
    loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any], result: Any, error: BaseException | None
) -> None:
    def settle() -> None:
        if future.done():
            return  # nobody waits any more: cancelled, or out of time
        if isinstance(error, StopIteration):
            future.set_exception(RuntimeError("the tool raised StopIteration"))
        elif error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)

    try:
        loop.call_soon_threadsafe(settle)
    except RuntimeError:
        pass  # the loop is closed: the program ended before the tool did
