"""Run a tool, in a thread if necessary, and turn whatever the tool does into the outcome of its call."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Sequence
from contextlib import aclosing, closing, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, JsonValue, ValidationError
from pydantic_core import to_json, to_jsonable_python

from dragoman.background import in_thread
from dragoman.errors import ToolFailed
from dragoman.messages.boundary import read_with_margin
from dragoman.messages.codec import replace_fast
from dragoman.messages.message import CallState, File, ToolCall, ToolResult
from dragoman.tools.builtin.shell import ShellOutput, run_program, told
from dragoman.tools.cage.policy import Cage
from dragoman.tools.schema import problems
from dragoman.tools.tool import Tool, ToolContext, ToolOutput
from dragoman.tools.workspace import inside

# Turn what a tool returned into the stored result: text, or JSON.


_AS_TEXT = json.JSONEncoder(ensure_ascii=False)


def result_of(output: Any) -> ToolResult:
    """Return the result: text stays text, any other value becomes JSON, and None reports success."""
    whole = output if isinstance(output, ToolOutput) else ToolOutput(output)
    value, metadata = as_json(whole.value), as_json(whole.metadata)
    attachments = tuple(whole.attachments)
    if not isinstance(metadata, dict) or not all(isinstance(file, File) for file in attachments):
        raise ToolFailed(
            "The tool returned metadata that is not an object, or attachments that are not files."
        )
    title = whole_text(whole.title) if whole.title else None
    if isinstance(value, str):
        return ToolResult(value, None, title, metadata, attachments)
    text = "done" if value is None else _AS_TEXT.encode(value)
    return ToolResult(text, value, title, metadata, attachments)


def as_json(value: Any) -> JsonValue:
    """Return the value as it will be read from the store. Raises ToolFailed if it has no JSON form."""
    if isinstance(value, str):
        return whole_text(str.__str__(value))  # A str Enum member counts as its text.
    try:
        return read_with_margin(_bytes(value))
    except (ValueError, RecursionError) as error:
        raise ToolFailed(
            f"The tool returned a {type(value).__name__}, which is not a JSON value: {error}"
        ) from error


def whole_text(text: str) -> str:
    """Replace lone surrogates, which can be neither stored nor sent. File names that are not UTF-8 contain
    them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _bytes(value: Any) -> bytes:
    try:
        return to_json(value, inf_nan_mode="strings")
    except ValueError:  # a lone surrogate, or not valid JSON
        return json.dumps(value, default=to_jsonable_python, ensure_ascii=False).encode("utf-8", "replace")


# Let a running tool report and ask, in the same way in the event loop and in a thread.


T = TypeVar("T")


class LiveCall:
    """A running call. Once it is over, it reports and asks nothing."""

    def __init__(self, context: ToolContext, limit: asyncio.Timeout) -> None:
        self._context = context
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._asked: set[asyncio.Task[Any]] = set()  # from a thread, which waits for the answer
        self._open = 0  # questions that wait for a user: the clock stops while there are any
        self._left: float | None = None  # seconds the tool still had when the clock stopped
        self._over = False

    def in_loop(self) -> ToolContext:
        return replace_fast(
            self._context,
            progress=self._report,
            ask=self._ask,
            require_permission=self._require_permission,
            run=self._run_program,
        )

    def in_thread(self) -> ToolContext:
        return replace_fast(
            self._context,
            progress=self._report_from_thread,
            ask=lambda *args, **options: self._from_thread(self._ask(*args, **options)),
            require_permission=lambda *args: self._from_thread(self._require_permission(*args)),
            run=lambda *args, **options: self._from_thread(self._run_program(*args, **options)),
        )

    def end(self) -> None:
        self._over = True
        for question in list(self._asked):
            question.cancel()

    def _report(self, value: Any) -> None:
        self._tell(as_json(value))

    def _tell(self, value: JsonValue) -> None:
        if not self._over:
            self._context.progress(value)

    async def _ask(
        self,
        text: str,
        choices: Sequence[str] = (),
        schema: dict[str, JsonValue] | None = None,
        *,
        free: bool = False,
    ) -> JsonValue:
        with self._clock_stopped():
            answer: JsonValue = await self._context.ask(text, choices, schema, free=free)
        return answer

    async def _require_permission(self, pattern: str, question: str = "", *permission: str) -> None:
        with self._clock_stopped():
            await self._context.require_permission(pattern, question, *permission)

    async def _run_program(self, words: Sequence[str], timeout: float = 120.0) -> tuple[int, str]:
        """Run a command, whose words no shell reads, in the workspace and in the cage of the permit."""
        context, output = self._context, ShellOutput()
        status, refused = await run_program(
            words,
            inside(context.workspace, "."),
            output,
            lambda text: None,
            cage=context.cage,
            gate=self._require_permission,
            env=context.env,
            timeout=timeout,
        )
        if status is None:
            raise ToolFailed(f"{words[0]} took longer than {timeout:g} s and was ended{told(refused)}")
        return status, output.text() + told(refused)

    @contextmanager
    def _clock_stopped(self) -> Iterator[None]:
        """Stop the clock: time that a user takes to answer does not count for the tool."""
        when = self._limit.when()
        if self._open == 0:
            self._left = when - self._loop.time() if when is not None else None
            self._limit.reschedule(None)
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            goes_on = self._open == 0 and not self._over and not self._limit.expired()
            if goes_on and self._left is not None:
                self._limit.reschedule(self._loop.time() + self._left)

    def _report_from_thread(self, value: Any) -> None:
        self._loop.call_soon_threadsafe(self._tell, as_json(value))

    def _from_thread(self, question: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(self._while_live(question), self._loop).result()

    async def _while_live(self, question: Coroutine[Any, Any, T]) -> T:
        """Ask in the event loop, where the end of the call cancels it. Later questions are never asked."""
        task = asyncio.current_task()
        if self._over or task is None:
            question.close()
            raise asyncio.CancelledError
        self._asked.add(task)
        try:
            return await question
        finally:
            self._asked.discard(task)


_log = logging.getLogger("dragoman.tools")


@dataclass(slots=True, frozen=True)
class Outcome:
    """The complete outcome of a call, before any truncation."""

    state: CallState
    result: ToolResult


@dataclass(slots=True, frozen=True)
class Permit:
    """A decision that a call may run, valid for one tool and one set of arguments."""

    hash: str
    because: str  # the rule, the grant, or the user who answered
    cage: Cage | None = None  # what its programs run in; None: without a cage, as any program of the user


async def execute(tool: Tool, call: ToolCall, permit: Permit, context: ToolContext) -> Outcome:
    """Run the tool in the calling task. Use a separate task for each call.

    Errors and timeouts of the tool are outcomes. Only cancellation is raised as an exception.
    """
    if permit.hash != call.hash:
        return failed(f"{call.tool} did not run: it was permitted with other arguments")
    try:
        arguments = tool.parameters.validate(call.arguments)
    except ValidationError as error:
        return failed(f"{call.tool} did not run: its arguments do not fit.\n{problems(error)}")
    limit = asyncio.timeout(tool.timeout)
    live = LiveCall(replace_fast(context, cage=permit.cage), limit)
    try:
        async with limit:
            output = await _output(tool, arguments, live)
        return Outcome(CallState.COMPLETED, result_of(output))
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise
    except SystemExit:
        return failed(f"{tool.name} failed: it tried to end the program")
    # This includes what is not an Exception: a failed test, a panic of Rust code.
    except BaseException as error:
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
    """Return what the model reads about an error: the text of a ToolFailed, otherwise the type of
    the error."""
    if isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        return _describe(tool, error.exceptions[0])
    if isinstance(error, ToolFailed):
        return str(error) or f"{tool.name} failed"
    why = f": {error}" if str(error) else ""
    return f"{tool.name} failed: {type(error).__name__}{why}"


async def _output(tool: Tool, arguments: BaseModel, live: LiveCall) -> Any:
    """Return what the function returns, or the last value it yields. Its other yields are progress."""
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
