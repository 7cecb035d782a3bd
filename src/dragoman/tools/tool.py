"""Define tools: the decorator that makes one, the context it receives, and the output it can return."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeAlias, get_args, overload

from pydantic import BaseModel, JsonValue
from typing_extensions import TypeVar

from dragoman.conversation.tree import LOCAL
from dragoman.errors import ConfigError, ToolFailed
from dragoman.messages.media import ModelType
from dragoman.messages.message import Arguments, File, Message, Part, ToolCall
from dragoman.messages.questions import Rule
from dragoman.messages.request import Request, ToolSpec
from dragoman.sentences import sentence
from dragoman.tools.cage.policy import Cage
from dragoman.tools.json_schema import JsonParameters
from dragoman.tools.permissions import literal
from dragoman.tools.schema import Parameters, attribute, parameters_of, signature_of, summary, takes
from dragoman.tools.workspace import inside
from dragoman.workspace.diff import FileDiff
from dragoman.workspace.hunks import HunkChoices

Replay: TypeAlias = Literal["never", "ask", "safe"]
"""What to do with a call that had started when the process died: leave it, ask, or run it again."""

Review: TypeAlias = Literal["never", "on_error", "always"]
"""Which results a user reviews before the model sees them."""

Writes: TypeAlias = Literal["nothing", "named", "anything"]
"""The part of the workspace that a call can change: nothing, the paths that its patterns name, or anything.
"""

Deps = TypeVar("Deps", default=Any)

Returned: TypeAlias = Any  # text, a JSON value, a ToolOutput, or a generator of progress that ends with one
RunFunction: TypeAlias = Callable[[BaseModel, "ToolContext"], Returned]
Patterns: TypeAlias = Callable[[Arguments], Sequence[str]]
Preview: TypeAlias = Callable[[Arguments, Path | None], Sequence[FileDiff]]
KeepHunks: TypeAlias = Callable[[Arguments, Path | None, HunkChoices], Arguments]


@dataclass(slots=True)
class ToolOutput:
    """The result of a tool, with title, metadata and attachments."""

    value: JsonValue
    title: str | None = None
    metadata: dict[str, JsonValue] = field(default_factory=dict)
    attachments: tuple[File, ...] = ()


async def _no_model(type: ModelType, parts: Sequence[Part], options: dict[str, JsonValue]) -> Message:
    raise ToolFailed(f"No model of type {type!r} is available here.")


async def _not_running(words: Sequence[str], timeout: float = 0.0) -> tuple[int, str]:
    raise ToolFailed("The call is not running, so it cannot start a program.")


@dataclass(slots=True, frozen=True)
class WantedCall:
    """A call that a program wants to make. `number` counts the program's requests."""

    number: int
    tool: str
    arguments: Arguments
    line: int


class InnerCalls(Protocol):
    """A running program's access to its turn: calls like any other, which belong to the program's
    own call."""

    began: float  # when it first started
    tools: Mapping[str, Tool]
    gone: Sequence[str]  # tools that it has called and that are no longer offered

    def recorded(self, wanted: WantedCall) -> bool:
        """Return whether the call was made before. Raises OtherPath if another call has its number."""

    def forgotten(self, asked: set[int]) -> bool:
        """Return whether the program made calls before that are not among these."""

    async def make(self, wanted: Sequence[WantedCall]) -> None:
        """Record the new calls, and start those without a result."""

    async def next_result(self, numbers: Sequence[int]) -> tuple[int, ToolCall]:
        """Wait for the first of these to end, in the order of their facts. Raises ToolFailed if a user
        stopped all calls."""

    async def value_of(self, call: ToolCall) -> object:
        """Return the whole result, even if the model would be shown less."""

    async def end(self, *, cancelled: bool) -> None:
        """End the program: stop calls that it does not wait for, and settle them unless it was cancelled."""


class OtherPath(Exception):
    """A program that was run again requests something else than before."""


@dataclass(slots=True, frozen=True, kw_only=True)
class ToolContext(Generic[Deps]):
    """The context and abilities of a running call. Declare a parameter of this type to receive it.

    Use `ToolContext[MyDeps]` to let a type checker know the type of `deps`.
    """

    conversation: str
    turn: str
    message: str
    call: str
    cancelled: Callable[[], bool]
    ask: Callable[..., Any]  # (text, choices=(), schema=None, free=False) → the answer; async tools await it
    progress: Callable[[JsonValue], None]
    read_output: Callable[[str], Awaitable[str]]  # the whole output of an earlier call of this conversation
    put_file: Callable[[bytes, str, str | None], Awaitable[File]]  # bytes, media type, name → an attachment
    permits: Callable[[str], bool]  # whether what the tool found, such as a file below a folder, may be shown
    require_permission: Callable[
        ..., Any
    ]  # (pattern, question, permission=the tool's own): asks if no rule allows it
    complete: Callable[[Request], Awaitable[Message]]  # asks the model outside the conversation
    ask_model: Callable[[ModelType, Sequence[Part], dict[str, JsonValue]], Awaitable[Message]] = _no_model
    files: Callable[[], Sequence[File]] = lambda: ()  # of the conversation, the newest first
    seen_version: Callable[[str], str | None] = lambda path: None  # of a file this conversation knows
    program: InnerCalls | None = None  # the calls that a program of this call makes
    workspace: Path | None = None
    cage: Cage | None = None  # the cage of its programs, according to the permit
    env: Sequence[str] = ()  # variables that its programs get in addition to the usual ones
    run: Callable[..., Any] = _not_running  # (words, timeout=120) → (exit status, output), in the cage
    user: str = LOCAL  # the user who sent the message that the call belongs to
    deps: Deps = None  # type: ignore[assignment]  # of `send` or `Runtime`: None where neither has any

    @property
    def idempotency_key(self) -> str:
        """A key that stays the same if the call runs again after a crash. Pass it to services that accept
        one."""
        return f"{self.turn}:{self.call}"

    def inside_workspace(self, path: str) -> Path:
        """Return the file of this name in the workspace. Raise ToolFailed if the path leads out of it."""
        return inside(self.workspace, path)


@dataclass(slots=True, frozen=True, kw_only=True)
class Tool:
    """A tool of any origin. `run` is None if a client runs it."""

    name: str
    description: str
    parameters: Parameters
    run: RunFunction | None
    permission: str
    patterns: Patterns
    threaded: bool = False  # `run` is not a coroutine: it would block the event loop
    replay: Replay = "never"
    review: Review = "never"
    timeout: float = 120.0
    sequential: bool = False
    cancellable: bool = False  # its work can be stopped half-way
    writes: Writes = "anything"
    preview: Preview | None = None  # the changes it would make, for approval
    # arguments that the preview shows in full: an approval request need not repeat them
    previewed: tuple[str, ...] = ()
    keep_hunks: KeepHunks | None = None  # the arguments with which it would write a part of that
    repeats: bool = False  # polling: the loop guard ignores it
    identity: Callable[[Arguments], JsonValue] | None = None  # the value that is equal for equal calls
    caged: bool = False  # Programs in the cage do all its work, so it can do only what they can.
    # rules that open the cage, as a call requests
    beyond: Callable[[Arguments], Sequence[Rule]] | None = None
    wider: Patterns | None = None  # patterns that cover more than one call, for the user to choose
    max_lines: int = 2000
    max_bytes: int = 50_000
    examples: tuple[JsonValue, ...] = ()
    server: str | None = None
    fingerprint: str | None = None  # a hash of a foreign tool's definition: a new one needs approval again
    remark: str = ""  # an addition to its approval requests
    function: Callable[..., Any] | None = None  # the object it was made from
    runs_programs: bool = False  # its code makes calls through `context.program`
    brought: bool = False  # A message brought it, and its sender runs it: allowed unless a rule denies it.

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the object that the tool was made from, for tests and other code. Needs no approval."""
        if self.function is None:
            raise TypeError(f"Tool {self.name!r} was not made from a function.")
        return self.function(*arguments, **named)

    @property
    def client(self) -> bool:
        return self.run is None

    def spec(self, name: str | None = None) -> ToolSpec:
        return ToolSpec(name or self.name, self.description, self.parameters.schema, self.examples)

    def always(self, arguments: Arguments) -> tuple[Rule, ...]:
        """Return the rules that would make an approval request like this unnecessary, and no others."""
        return self.rules_for(self.patterns(arguments))

    def rules_for(self, patterns: Sequence[str]) -> tuple[Rule, ...]:
        exact = [literal(pattern) for pattern in patterns] or ["*"]
        return tuple(Rule(self.permission, pattern, "allow") for pattern in dict.fromkeys(exact))

    def always_wider(self, arguments: Arguments) -> tuple[Rule, ...]:
        """Return wider rules that a user can choose instead: from the tool's own narrow ones to everything it
        does."""
        own = self.wider(arguments) if self.wider is not None else ()
        patterns = dict.fromkeys((*own, "*"))
        exact = {rule.pattern for rule in self.always(arguments)}
        return tuple(Rule(self.permission, one, "allow") for one in patterns if one not in exact)


@overload
def tool(target: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = ...,
    description: str | None = ...,
    permission: str | None = ...,
    pattern: str | Patterns | None = ...,
    replay: Replay = ...,
    review: Review = ...,
    timeout: float = ...,
    sequential: bool = ...,
    cancellable: bool = ...,
    writes: Writes = ...,
    preview: Preview | None = ...,
    previewed: Sequence[str] = ...,
    keep_hunks: KeepHunks | None = ...,
    repeats: bool = ...,
    identity: Callable[[Arguments], JsonValue] | None = ...,
    caged: bool = ...,
    beyond: Callable[[Arguments], Sequence[Rule]] | None = ...,
    wider: Patterns | None = ...,
    max_lines: int = ...,
    max_bytes: int = ...,
    examples: Sequence[JsonValue] = ...,
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(target: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a tool of a function, of a callable object, or of a pydantic model with a `run` method.

        @tool
        def add(a: int, b: int) -> int:
            "Add two numbers."
            return a + b

    `pattern` names the parameter that permission rules match (each item of a list separately), or is a
    function from the arguments to the patterns. Synchronous functions run in a separate thread. A generator's
    yields are progress. Its return value, or else the last value it yields, is the result.
    """
    local = sys._getframe(1).f_locals  # so that types defined next to the tool are found
    if target is not None:
        return _make(target, local)
    return lambda function: _make(function, local, **options)


def client_tool(
    name: str,
    description: str,
    parameters: type[BaseModel] | Mapping[str, JsonValue],
    *,
    permission: str | None = None,
    **options: Any,
) -> Tool:
    """Make a tool that a client runs: the call waits until the client delivers its result.

    `parameters` are a pydantic model or a JSON schema.
    """
    if isinstance(parameters, Mapping):
        described: Parameters = JsonParameters(name, parameters)
    elif hasattr(parameters, "model_json_schema"):
        described = Parameters(name, parameters)
    else:
        raise ConfigError(f"Tool {name!r}: its parameters must be a pydantic model or a JSON schema.")
    return _tool(name, description, described, None, permission=permission, **options)


def _make(target: Callable[..., Any], local: Mapping[str, Any], **options: Any) -> Tool:
    if isinstance(target, type):
        return _from_model(target, local, **options)
    named = inspect.isroutine(target)
    name = options.pop("name", None) or (target.__name__ if named else _snake(type(target).__name__))
    function: Callable[..., Any] = target if named else target.__call__  # type: ignore[operator]  # an object
    docstring = inspect.getdoc(function) or ""
    description = options.pop("description", None) or summary(inspect.getdoc(target) or docstring)
    signature = list(signature_of(name, function, local))
    context = [parameter.name for parameter in signature if takes(parameter, ToolContext)]
    taken = {p.name: attribute(p.name) for p in signature if p.name not in context}
    parameters = parameters_of(name, [p for p in signature if p.name in taken], docstring)

    def run(arguments: BaseModel, within: ToolContext) -> Returned:
        values = {name: getattr(arguments, attribute) for name, attribute in taken.items()}
        return function(**values, **dict.fromkeys(context, within))

    threaded = not _waits(function)
    return _tool(name, description, parameters, run, threaded=threaded, function=target, **options)


def _from_model(model: type, local: Mapping[str, Any], **options: Any) -> Tool:
    name = options.pop("name", None) or _snake(model.__name__)
    if not issubclass(model, BaseModel) or not callable(method := getattr(model, "run", None)):
        raise ConfigError(
            f"Tool {name!r}: a class must be a pydantic model with a run method, "
            "or its objects must be callable."
        )
    docstring = inspect.cleandoc(model.__doc__ or "")  # its own docstring: `getdoc` would find pydantic's
    description = options.pop("description", None) or summary(docstring)
    _, *signature = signature_of(name, method, local)  # the first is the model itself
    context = [parameter.name for parameter in signature if takes(parameter, ToolContext)]
    for parameter in signature:
        if parameter.name not in context and parameter.default is parameter.empty:
            raise ConfigError(
                f"Tool {name!r}: its run method can take only a ToolContext, not {parameter.name!r}. "
                "The parameters are the fields of the model."
            )

    def run(arguments: BaseModel, within: ToolContext) -> Returned:
        return method(arguments, **dict.fromkeys(context, within))

    threaded = not _waits(method)
    return _tool(
        name, description, Parameters(name, model), run, threaded=threaded, function=model, **options
    )


def _tool(
    name: str, description: str, parameters: Parameters, run: RunFunction | None, **options: Any
) -> Tool:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
        raise ConfigError(sentence("tool.name", name=name))
    _check(name, options)
    pattern = options.pop("pattern", None)
    permission = options.pop("permission", None) or name
    options["examples"] = tuple(options.get("examples", ()))
    return Tool(
        name=name,
        description=description,
        parameters=parameters,
        run=run,
        permission=permission,
        patterns=pattern if callable(pattern) else _pattern_of(name, pattern, parameters),
        **options,
    )


def _check(tool: str, options: Mapping[str, Any]) -> None:
    """Check the options early: a misspelled word would otherwise fail only during a call."""
    known = {"replay": Replay, "review": Review, "writes": Writes}
    for name, words in ((name, get_args(kind)) for name, kind in known.items()):
        if name in options and options[name] not in words:
            raise ConfigError(
                f"Tool {tool!r}: {name} must be one of {', '.join(words)}, not {options[name]!r}."
            )
    for name in ("timeout", "max_lines", "max_bytes"):
        if name in options and not (isinstance(options[name], int | float) and options[name] > 0):
            raise ConfigError(f"Tool {tool!r}: {name} must be a number above 0, not {options[name]!r}.")


def _pattern_of(tool: str, parameter: str | None, parameters: Parameters) -> Patterns:
    if parameter is None:
        return lambda _: ()
    if parameter not in parameters.names:
        raise ConfigError(f"Tool {tool!r}: pattern names {parameter!r}, which is not one of its parameters.")

    def patterns(arguments: Arguments) -> Sequence[str]:
        given = arguments[parameter] if parameter in arguments else parameters.default(parameter)
        items = (given or [None]) if isinstance(given, list | tuple) else [given]
        return ["" if item is None else str(item) for item in items]

    return patterns


def _waits(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
