"""Runs a tool, in a thread if need be. Whatever the tool does becomes the outcome of its call."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, closing
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from dragoman.errors import ToolFailed
from dragoman.messages.message import CallState, ToolCall, ToolResult
from dragoman.tools.live_call import LiveCall
from dragoman.tools.result import result_of, whole_text
from dragoman.tools.schema import problems
from dragoman.tools.thread import in_thread
from dragoman.tools.tool import Tool, ToolContext, ToolOutput

_log = logging.getLogger("dragoman.tools")


@dataclass(slots=True, frozen=True)
class Outcome:
    """What came of a call, whole: nothing has been cut off yet."""

    state: CallState
    result: ToolResult


@dataclass(slots=True, frozen=True)
class Permit:
    """A decision that a call may run, good for one tool and one set of arguments."""

    hash: str
    because: str  # the rule, the grant, or who answered


async def execute(tool: Tool, call: ToolCall, permit: Permit, context: ToolContext) -> Outcome:
    """Run the tool, in the task that calls this: let it be one of its own.

    Its errors and its timeout are outcomes; only cancellation comes out as an exception.
    """
    if permit.hash != call.hash:
        return failed(f"{call.tool} did not run: it was permitted with other arguments")
    try:
        arguments = tool.parameters.validate(call.arguments)
    except ValidationError as error:
        return failed(f"{call.tool} did not run: its arguments do not fit.\n{problems(error)}")
    limit = asyncio.timeout(tool.timeout)
    live = LiveCall(context, limit)
    try:
        async with limit:
            output = await _output(tool, arguments, live)
        return Outcome(CallState.COMPLETED, result_of(output))
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise
    except SystemExit:
        return failed(f"{tool.name} failed: it tried to end the program")
    except BaseException as error:  # also what is no Exception: a failed test, a panic of Rust code
        if limit.expired():
            return failed(f"{tool.name} failed: it took longer than {tool.timeout:g} s")
        if not isinstance(error, ToolFailed):
            _log.debug("%s failed", tool.name, exc_info=error)
        return failed(_describe(tool, error))
    finally:
        live.end()


def failed(text: str) -> Outcome:
    return Outcome(CallState.FAILED, ToolResult(whole_text(text)))


def _describe(tool: Tool, error: BaseException) -> str:
    """What the model reads of an error: a ToolFailed's own words, else which error it was."""
    if isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        return _describe(tool, error.exceptions[0])
    if isinstance(error, ToolFailed):
        return str(error) or f"{tool.name} failed"
    why = f": {error}" if str(error) else ""
    return f"{tool.name} failed: {type(error).__name__}{why}"


async def _output(tool: Tool, arguments: BaseModel, live: LiveCall) -> Any:
    """What the function returns, or the last thing it yields. What else it yields is progress."""
    run = tool.run
    assert run is not None
    if tool.threaded:
        context = live.in_thread()
        output = await in_thread(lambda: _last(run(arguments, context), context.progress))
        return await output if inspect.isawaitable(output) else output
    context = live.in_loop()
    output = run(arguments, context)
    return await (_awaited_last(output, context.progress) if inspect.isasyncgen(output) else output)


async def _awaited_last(output: AsyncGenerator[Any, Any], report: Callable[[Any], None]) -> Any:
    last = None
    async with aclosing(output) as steps:
        async for last in steps:
            if not isinstance(last, ToolOutput):
                report(last)
    return last


def _last(output: Any, report: Callable[[Any], None]) -> Any:
    if not inspect.isgenerator(output):
        return output
    last = None
    with closing(output) as steps:
        while True:
            try:
                last = next(steps)
            except StopIteration as end:
                return last if end.value is None else end.value
            if not isinstance(last, ToolOutput):
                report(last)
