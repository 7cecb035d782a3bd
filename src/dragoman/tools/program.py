"""Run Python that a model wrote, with the other tools as functions: the tool `run_program` (G1-G5).

The interpreter is Monty, in a worker process. It stops at every call. Clock and randomness are fixed. Results
are passed in one at a time, in recorded order. So the facts determine a program, as they determine a turn:
run again from its recorded results, it takes the same path, in any process.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

from dragoman.errors import ToolFailed
from dragoman.messages.message import CallState, ToolCall
from dragoman.messages.request import FIND_TOOLS, ToolSpec
from dragoman.tools.signatures import function_names, signatures, stubs
from dragoman.tools.tool import InnerCalls, OtherPath, Tool, ToolContext, WantedCall, tool
from dragoman.tools.toolbox import Group

if TYPE_CHECKING:
    import pydantic_monty as monty

PERMISSION = "programs.run"  # Not a valid function name, so a rule on it concerns no other tool.
MAX_CALLS = 500  # of one program
_MOST = 1_000_000  # characters of its output, of its result, or of the arguments of one call
_IDLE = 2.0  # seconds: a program that waits longer releases its worker, and is run again from its results
_LIMITS = {
    "max_memory": 64_000_000,
    "max_turn_duration_secs": 5.0,  # between two calls
    "max_feed_duration_secs": 60.0,  # in total, without waiting for calls
    "max_suspensions": 20_000,
}
_PROCESSES = 8

_PROMPT = """\
Runs a Python program. Use it when calls repeat, depend on each other, or their results need filtering: one \
program instead of many calls. The functions below are tools. Await them, with keyword arguments; several at \
once: `await asyncio.gather(f(x=1), f(x=2))`. A refused call raises PermissionError, a failed one \
RuntimeError. You see only what the program prints, and the value of its last expression. Files, network and \
clock only through functions. Of the standard library: asyncio, collections, datetime, json, math, re, \
typing. No `yield`, `del`, `class E(Exception)`, `async with`.

"""
_FOUND = "Tools that find_tools loads are functions, too.\n\n"
_OTHER_PATH = (
    "The program was run again from its recorded results, and took another path in line {line}. "
    "It ended there and made no more calls. Look at what is done, then write a new program for the rest."
)
_UNAVAILABLE = "Programs cannot run here: the call belongs to no turn."


Stop: TypeAlias = (
    "monty.AsyncFunctionSnapshot | monty.AsyncNameLookupSnapshot | monty.AsyncFutureSnapshot"
    " | monty.MontyComplete"
)


# ── the group ─────────────────────────────────────────────────────────────────────────────────────


def is_installed() -> bool:
    return find_spec("pydantic_monty") is not None


def programs_group(*, named: bool = False) -> Group:
    """Return the group, without tools if the extra is not installed. `named`: only on if explicitly switched
    on."""
    if not is_installed():
        return Group("programs", ())
    workers = _Workers()

    async def run_program(code: str, context: ToolContext) -> Any:
        """Run a Python program in which the other tools are functions."""
        if context.program is None:
            raise ToolFailed(_UNAVAILABLE)
        return await Program(code, context.program, workers).run()

    ages = 10 * 365 * 86_400.0
    made = tool(permission=PERMISSION, replay="safe", cancellable=True, writes="nothing", timeout=ages)
    runs = replace(made(run_program), runs_programs=True)
    return Group("programs", (runs,), helps=True, named=named, close=workers.close)


def program_in(tools: Mapping[str, Tool]) -> str | None:
    """Return the name under which the model is offered `run_program`, or None."""
    return next((name for name, one in tools.items() if one.runs_programs), None)


def description_with(specs: Sequence[ToolSpec], functions: Mapping[str, Tool]) -> str:
    """Return the tool's description for the model: how to write a program, and the functions in it.

    The description stays the same when `find_tools` loads more, since a provider may have cached it.
    """
    told = signatures([spec for spec in specs if spec.name in functions and not spec.found], functions)
    finds = any(spec.name == FIND_TOOLS for spec in specs)
    return _PROMPT + (_FOUND if finds else "") + told


def condensed(
    specs: Sequence[ToolSpec], name: str, functions: Mapping[str, Tool], keep: str | None
) -> tuple[ToolSpec, ...]:
    """Return the tools of a request in which programs are on: functions appear only as signatures.

    `name` is the tool that runs programs. `keep` names a tool that the model must call.
    """
    program = next(spec for spec in specs if spec.name == name)
    told = replace(program, description=description_with(specs, functions))
    rest = (spec for spec in specs if spec is not program)
    shown = (spec for spec in rest if spec.name == keep or spec.found or spec.name not in functions)
    return (told, *shown)


def functions_of(tools: Mapping[str, Tool], *apart: str) -> dict[str, Tool]:
    """Return the tools that programs can call.

    Left out are tools that run programs, tools that end an agent's work, and tools that the sender of the
    message runs, whose protocol has no programs.
    """
    apart = (FIND_TOOLS, *apart)
    rest = {name: one for name, one in tools.items() if name not in apart}
    return {name: one for name, one in rest.items() if not one.brought and not one.runs_programs}


class _Workers:
    """The processes that run programs, for one runtime. They start with the first program."""

    def __init__(self) -> None:
        self._opened: asyncio.Future[monty.AsyncMonty] | None = None

    async def pool(self) -> monty.AsyncMonty:
        if self._opened is None:
            import pydantic_monty

            pool = pydantic_monty.AsyncMonty(max_processes=_PROCESSES, max_checkouts_per_worker=200)
            self._opened = asyncio.ensure_future(pool.__aenter__())
        try:
            return await asyncio.shield(self._opened)
        except Exception as error:  # such as a file that cannot be executed
            self._opened = None
            raise ToolFailed(f"No process for programs can be started here: {error}") from error

    async def close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            await (await opened).__aexit__(None, None, None)


# ── one program ───────────────────────────────────────────────────────────────────────────────────


class Program:
    """One program, from its text to its result."""

    def __init__(self, code: str, calls: InnerCalls, workers: _Workers) -> None:
        self._code = code
        self._bytes = code.encode()
        self._calls = calls
        self._workers = workers
        self._names = function_names([*calls.tools, *calls.gone])  # of functions → of tools
        self._printed: list[str] = []
        self._room = _MOST
        self._wanted: list[WantedCall] = []
        self._asked: set[int] = set()  # numbers of the calls requested in this run
        self._awaited: Sequence[int] = ()  # the calls that it waits for
        self._checked = False
        self._line = 1

    async def run(self) -> Any:
        import pydantic_monty as monty

        cancelled = False
        try:
            return await self._run()
        except asyncio.CancelledError:
            cancelled = True
            raise
        except OtherPath:
            raise ToolFailed(_OTHER_PATH.format(line=self._line)) from None
        except monty.MontyCrashedError as error:
            raise ToolFailed(self._failure(f"The process of the program died: {error}")) from error
        except monty.MontyError as error:
            text = error.display() if hasattr(error, "display") else str(error)
            raise ToolFailed(self._failure(text.replace("<python-input-0>", "program.py"))) from error
        finally:
            await self._calls.end(cancelled=cancelled)

    async def _run(self) -> Any:
        while True:
            self._begin()
            pool = await self._workers.pool()
            async with pool.checkout(**self._options()) as session:
                stop: Stop = await session.feed_start(self._code, print_callback=self._print)
                self._checked = True
                ended = await self._drive(stop)
            if ended is not None:
                return self._result(ended.output)
            # A program that waits for a user does not occupy a worker.
            await self._calls.next_result(self._awaited)

    def _begin(self) -> None:
        self._printed.clear()
        self._room = _MOST
        self._asked.clear()
        self._wanted.clear()

    def _options(self) -> dict[str, Any]:
        began = datetime.fromtimestamp(self._calls.began, UTC)
        policy = {"datetime": began, "sleep": "zero", "random_start": {"seed": self._code}}
        options = {"script_name": "program.py", "limits": _LIMITS, "os_policy": policy}
        if self._checked or self._calls.forgotten(set()):  # A program that has made calls was checked before.
            return options
        declared = stubs(self._names, self._calls.tools)
        return {**options, "type_check": True, "type_check_stubs": declared, "type_check_format": "concise"}

    async def _drive(self, stop: Stop) -> monty.MontyComplete | None:
        """Run from stop to stop until the end.

        None if a wait is long: then the program is run again later.
        """
        import pydantic_monty as monty

        while True:
            match stop:
                case monty.MontyComplete():
                    if self._calls.forgotten(self._asked):
                        raise OtherPath
                    return stop
                case monty.AsyncNameLookupSnapshot():
                    name = stop.variable_name
                    known = name in self._names and stop.object_id is None
                    stop = await (stop.resume(value=_function(name)) if known else stop.resume())
                case monty.AsyncFunctionSnapshot() if stop.is_os_function:
                    stop = await stop.resume_not_handled()  # The sandbox has no operating system.
                case monty.AsyncFunctionSnapshot():
                    taken: Any = self._take(stop) or {"future": ...}
                    stop = await stop.resume(taken)
                case monty.AsyncFutureSnapshot():
                    self._awaited = stop.pending_call_ids
                    wanted, self._wanted = self._wanted, []
                    await self._calls.make(wanted)
                    try:
                        async with asyncio.timeout(_IDLE):
                            number, call = await self._calls.next_result(self._awaited)
                    except TimeoutError:
                        return None
                    stop = await stop.resume({number: await self._answer(call)})

    def _take(self, stop: monty.AsyncFunctionSnapshot) -> Any:
        """Record the call that the program wants to make, or return the exception to raise in the program."""
        name = str(stop.function_name)
        self._line = self._bytes[: stop.position.start].count(b"\n") + 1
        if name not in self._names or stop.object_id is not None:
            return {"exc_type": "NameError", "message": f"name {name!r} is not defined"}
        if stop.args:
            return {"exc_type": "TypeError", "message": f"{name}() takes keyword arguments only"}
        try:
            text = json.dumps(stop.kwargs, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            return {"exc_type": "TypeError", "message": f"{name}(): the arguments are no JSON: {error}"}
        if len(text) > _MOST:
            return {"exc_type": "ValueError", "message": f"{name}(): the arguments exceed {_MOST} characters"}
        wanted = WantedCall(stop.call_id, self._names[name], json.loads(text), self._line)
        if not self._calls.recorded(wanted) and len(self._asked) >= MAX_CALLS:
            raise ToolFailed(self._failure(f"A program can make {MAX_CALLS} calls, and this one needs more."))
        self._asked.add(wanted.number)
        self._wanted.append(wanted)
        return None

    async def _answer(self, call: ToolCall) -> Any:
        assert call.result is not None
        if call.result.note:
            self._print("stderr", f"{call.tool}: {call.result.note}\n")
        if call.state is CallState.COMPLETED:
            return {"return_value": await self._calls.value_of(call)}
        refused = call.state in (CallState.REJECTED, CallState.WITHHELD)
        return {"exc_type": "PermissionError" if refused else "RuntimeError", "message": call.result.text}

    # ── results ───────────────────────────────────────────────────────────────────────────────────

    def _print(self, stream: str, text: str) -> None:
        if self._room > 0:
            self._printed.append(text[: self._room])
        self._room -= len(text)

    @property
    def _output(self) -> str:
        cut = f"\n[{-self._room} more characters were printed.]\n" if self._room < 0 else ""
        return "".join(self._printed) + cut

    def _result(self, value: Any) -> Any:
        """Return the value itself if nothing was printed, otherwise both as text."""
        if self._wanted:
            tools = ", ".join(one.tool for one in self._wanted)
            self._print("stderr", f"Not awaited, so not called: {tools}\n")
        printed = self._output
        try:
            text = json.dumps(value, allow_nan=False, ensure_ascii=False)
            value = json.loads(text)
        except (TypeError, ValueError, RecursionError):
            try:
                value = text = repr(value)
            except RecursionError:
                raise ToolFailed(self._failure("The value of the program is nested too deeply.")) from None
        text = value if isinstance(value, str) else text
        if len(text) > _MOST:
            value = text = f"{text[:_MOST]}\n[{len(text) - _MOST} more characters were returned.]"
        if value is None:
            return printed or "The program printed nothing, and its last expression is None."
        return printed + text if printed else value

    def _failure(self, text: str) -> str:
        made = len(self._asked) - len(self._wanted)
        calls = f"{made} call{'s' * (made != 1)}"
        done = f"\nThe program made {calls} until then. They are not undone." if made else ""
        return f"{self._output}{text.rstrip()}{done}"


def _function(name: str) -> Callable[..., Awaitable[Any]]:
    """Return a placeholder for a tool, if a program uses its name as a value."""

    async def function(**arguments: Any) -> Any: ...

    function.__name__ = name
    return function
