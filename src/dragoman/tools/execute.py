"""One call in, one outcome out: the tool is run, in a thread if need be, and whatever it does is caught."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import json
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import aclosing, closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, JsonValue, ValidationError
from pydantic_core import from_json, to_json

from dragoman.errors import ToolFailed
from dragoman.messages.parts import CallState, File, ToolCall, ToolResult
from dragoman.tools.schema import problems
from dragoman.tools.tool import Tool, ToolContext, ToolOutput


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
    except ValidationError as error:
        return failed(f"{call.tool} did not run: its arguments do not fit.\n{problems(error)}")
    limit = asyncio.timeout(tool.timeout)
    try:
        async with limit:
            with _while_it_runs(context, limit) as within:
                output = await _run(tool, arguments, within)
        return Outcome(CallState.COMPLETED, result_of(output))
    except TimeoutError as error:
        return failed(
            f"{tool.name} failed: it took longer than {tool.timeout:g} s"
            if limit.expired()
            else _told(tool, error)
        )
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return failed(f"{tool.name} failed: it cancelled itself")
    except _Quit:
        return failed(f"{tool.name} failed: it tried to end the program")
    except Exception as error:
        return failed(_told(tool, error))


def failed(text: str) -> Outcome:
    return Outcome(CallState.FAILED, ToolResult(_clean(text)))


def result_of(output: Any) -> ToolResult:
    """Text stays text; any other value becomes JSON; None says that it is done."""
    said = output if isinstance(output, ToolOutput) else ToolOutput(output)
    value, metadata = as_json(said.value), as_json(said.metadata)
    attachments = tuple(said.attachments)
    if not isinstance(metadata, dict) or not all(isinstance(file, File) for file in attachments):
        raise ToolFailed("the tool returned metadata that is no object, or attachments that are no files")
    title = None if said.title is None else _clean(str(said.title))
    text = (
        "done"
        if value is None
        else value
        if isinstance(value, str)
        else json.dumps(value, ensure_ascii=False)
    )
    kept = None if isinstance(value, str) else value
    return ToolResult(text, kept, title, metadata, attachments)


_MARGIN = 20  # JSON is read to a depth of 200; a result is stored some levels down


def as_json(value: Any) -> JsonValue:
    """The value as it will be read from the store. ToolFailed where it has no JSON."""
    if isinstance(value, str):
        return _clean(str.__str__(value))  # a word of an Enum is a text like any other
    try:
        try:
            data = to_json(value, inf_nan_mode="strings")
        except ValueError:
            data = to_json(_deep_clean(value), inf_nan_mode="strings")
        read: Any = from_json(b"[" * _MARGIN + data + b"]" * _MARGIN)
    except (ValueError, RecursionError) as error:
        raise ToolFailed(
            f"the tool gave a {type(value).__name__}, which is no JSON value: {error}"
        ) from error
    for _ in range(_MARGIN):
        read = read[0]
    json: JsonValue = read
    return json


def _clean(text: str) -> str:
    """Halves of characters, such as file names that are no UTF-8 have, can be neither stored nor sent."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _deep_clean(value: Any) -> Any:
    match value:
        case str():
            return _clean(value)
        case dict():
            return {_deep_clean(key): _deep_clean(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_deep_clean(item) for item in value]
        case _:
            return value


def _told(tool: Tool, error: BaseException) -> str:
    """What the model reads of an error: a ToolFailed's own words, else which error it was."""
    if isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        return _told(tool, error.exceptions[0])
    if isinstance(error, ToolFailed):
        return str(error) or f"{tool.name} failed"
    why = f": {error}" if str(error) else ""
    return f"{tool.name} failed: {type(error).__name__}{why}"


@contextmanager
def _while_it_runs(context: ToolContext, limit: asyncio.Timeout) -> Iterator[ToolContext]:
    """The context as the tool gets it. A call that is over reports nothing more, and the time a person
    takes to answer is not the tool's."""
    running, loop = True, asyncio.get_running_loop()

    def progress(value: JsonValue) -> None:
        if running:
            context.progress(value)

    async def ask(text: str, choices: Sequence[str] = ()) -> JsonValue:
        until, asked = limit.when(), loop.time()
        limit.reschedule(None)
        try:
            answer: JsonValue = await context.ask(text, choices)
        finally:
            if (
                running and until is not None and not limit.expired()
            ):  # else another question stopped the clock
                limit.reschedule(until + loop.time() - asked)
        return answer

    try:
        yield replace(context, progress=progress, ask=ask)
    finally:
        running = False


async def _run(tool: Tool, arguments: BaseModel, context: ToolContext) -> Any:
    run = tool.run
    assert run is not None
    within = replace(context, progress=lambda value: context.progress(as_json(value)))
    if inspect.isasyncgenfunction(run):
        return await _in_task(_last_of(run(arguments, within), within.progress))
    if inspect.iscoroutinefunction(run):
        return await _in_task(run(arguments, within))
    asked: list[Future[JsonValue]] = []
    within = _for_thread(context, asked)
    try:
        if inspect.isgeneratorfunction(run):
            return await in_thread(lambda: _exhaust(run(arguments, within), within.progress))
        output = await in_thread(lambda: run(arguments, within))
    finally:
        for question in asked:
            question.cancel()
    return await output if inspect.isawaitable(output) else output


class _Quit(Exception):
    """The tool called `sys.exit`, or something it uses did."""


async def _in_task(work: Awaitable[Any]) -> Any:
    """In a task of its own: whatever the tool does to the task it runs in, it does to this one."""

    async def guarded() -> Any:
        try:
            return await work
        except SystemExit as error:
            raise _Quit from error

    return await asyncio.create_task(guarded())


async def _last_of(steps: AsyncGenerator[Any, None], report: Callable[[Any], None]) -> Any:
    last = None
    async with aclosing(steps):
        async for last in steps:
            if not isinstance(last, ToolOutput):
                report(last)
    return last


def _exhaust(steps: Any, report: Callable[[Any], None]) -> Any:
    last = None
    with closing(steps):
        while True:
            try:
                last = next(steps)
            except StopIteration as end:
                return last if end.value is None else end.value
            if not isinstance(last, ToolOutput):
                report(last)


def _for_thread(context: ToolContext, asked: list[Future[JsonValue]]) -> ToolContext:
    """The context for a tool that is no coroutine: what it does is done in the event loop."""
    loop = asyncio.get_running_loop()

    def progress(value: Any) -> None:
        loop.call_soon_threadsafe(context.progress, as_json(value))

    def ask(text: str, choices: Sequence[str] = ()) -> JsonValue:
        question: Future[JsonValue] = asyncio.run_coroutine_threadsafe(context.ask(text, choices), loop)
        asked.append(question)
        return question.result()

    return replace(context, progress=progress, ask=ask)


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


_MEANT_FOR_OTHERS = (StopIteration, GeneratorExit, KeyboardInterrupt)  # raised here, they would say something


def _settle(
    loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any], result: Any, error: BaseException | None
) -> None:
    def settle() -> None:
        if future.done():
            return  # nobody waits any more: cancelled, or out of time
        if isinstance(error, SystemExit):
            future.set_exception(_Quit())
        elif isinstance(error, _MEANT_FOR_OTHERS):
            future.set_exception(RuntimeError(f"the tool raised {type(error).__name__}"))
        elif error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)

    try:
        loop.call_soon_threadsafe(settle)
    except RuntimeError:
        pass  # the loop is closed: the program ended before the tool did
