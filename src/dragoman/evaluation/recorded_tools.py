"""Build a runtime whose tools answer from recordings, so that cases can be repeated without effects."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NoReturn, TypeAlias

from pydantic import JsonValue

from dragoman.errors import ConfigError, NotFound, ToolFailed
from dragoman.evaluation.case import Case, CaseMessage, CaseTool
from dragoman.evaluation.expected import MadeCall, same
from dragoman.evaluation.stored_turns import SIMULATED, UNRECORDED
from dragoman.messages.events import Event
from dragoman.messages.message import Arguments, Message, canonical
from dragoman.messages.questions import Rule
from dragoman.messages.request import Request, ToolSpec
from dragoman.messages.usage import Usage
from dragoman.runtime import Runtime
from dragoman.store.store import Store
from dragoman.tools.builtin import BUILTIN
from dragoman.tools.cage.policy import CageSettings
from dragoman.tools.tool import Tool, ToolContext, ToolOutput, client_tool
from dragoman.tools.toolbox import Group
from dragoman.turn.agent import Agent
from dragoman.turn.plugin import Plugin
from dragoman.wire.scripted import Line, ScriptedCall, ScriptedModel
from dragoman.wire.wire import Model
from dragoman.workspace.workspaces import Workspace

ToolsUsed: TypeAlias = Literal["recorded", "cage"]
Unrecorded: TypeAlias = Literal["fail", "simulate", "ask"]
Answering: TypeAlias = Callable[[Case, ToolSpec, MadeCall], Awaitable[str]]
"""Returns a result for a call that has no recording."""

_LEFT_OUT = ("snapshots", "daily_limit", "titles")  # plugins that affect more than the turn itself
_TASKS = "agents"  # the group of the tool that gives tasks to other agents
_RECORDED_TASKS = "recorded_agents"  # the group that replaces it
_CONTAINED = ("basics", "files", "shell")  # groups that affect only their folder and the cage
_LONGEST = 3600.0  # seconds that a user or a model can take to answer for a tool
_NONE = "No result is recorded for this call. Answer without it."


@dataclass(slots=True)
class CaseResults:
    """The results for the tools of one turn. Equal calls get theirs in the recorded order."""

    case: Case
    stop: Callable[[], Awaitable[NoReturn]]  # Ends the turn.
    answering: Answering | None = None
    fault: Exception | None = None  # an error of `answering`
    # calls from before another process resumed the turn
    made: list[tuple[str, Arguments]] = field(default_factory=list)
    _left: dict[str, list[tuple[JsonValue, MadeCall]]] = field(default_factory=dict)

    def resume(self, messages: Iterable[Message]) -> None:
        """Skip recorded results that calls of these messages have already received."""
        calls = (call for message in messages for call in message.all_calls)
        self.made = [(call.tool, call.arguments) for call in calls if call.state.settled]

    async def answer(self, tool: Tool, arguments: Arguments) -> JsonValue | ToolOutput:
        """Return the recorded result of this call, or a new one. Raises ToolFailed if the call failed."""
        if tool.name not in self._left:
            self._left[tool.name] = self._recorded(tool)
        if (call := _take(self._left[tool.name], arguments)) is not None:
            if call.failed:
                raise ToolFailed(call.result if isinstance(call.result, str) else canonical(call.result))
            return call.result
        if self.case.only_calls:
            await self.stop()
        if self.answering is None:
            return ToolOutput(_NONE, metadata={UNRECORDED: True})
        try:
            text = await self.answering(self.case, tool.spec(), MadeCall(tool.name, dict(arguments)))
        except ToolFailed:
            raise
        except Exception as error:  # Without a result, no answer is worth keeping.
            self.fault = error
            await self.stop()
        return ToolOutput(text, metadata={SIMULATED: True})

    def _recorded(self, tool: Tool) -> list[tuple[JsonValue, MadeCall]]:
        calls = self.case.recorded.calls if self.case.recorded is not None else ()
        found = [(_spelled(tool, call.arguments), call) for call in calls if call.tool == tool.name]
        for name, arguments in self.made:
            if name == tool.name:
                _take(found, _spelled(tool, arguments))
        return found


def _take(left: list[tuple[JsonValue, MadeCall]], arguments: JsonValue) -> MadeCall | None:
    at = next((at for at, (recorded, _) in enumerate(left) if same(recorded, arguments)), None)
    return left.pop(at)[1] if at is not None else None


def _spelled(tool: Tool, arguments: Arguments) -> Any:
    """Return the arguments as the tool parses them: for a number, `1` and `1.0` are equal."""
    try:
        return _dumped(tool.parameters.validate(arguments))
    except ValueError:
        return arguments


def _dumped(arguments: Any) -> Any:
    return arguments.model_dump(mode="json", exclude_unset=True, by_alias=True)


@dataclass(slots=True)
class EvalSetup:
    """The tools, prompt, agents and rules of a run's turns, but not their model. Cases with equal tools share
    it.

    `content` is the part that determines an answer.
    """

    like: Runtime | None
    tools: tuple[str | CaseTool, ...]
    prompt: str | None
    agents: Sequence[Agent]
    caged: bool
    results: dict[str, CaseResults] = field(default_factory=dict)  # by conversation
    groups: list[Group] = field(init=False)

    def __post_init__(self) -> None:
        self.groups = [*self._groups()]

    @property
    def system(self) -> str:
        if self.prompt is not None:
            return self.prompt
        return self.like.services.system if self.like is not None else ""

    @property
    def content(self) -> JsonValue:
        services = self.like.services if self.like is not None else None
        workspace = services.workspaces.main if services is not None else None
        tools: list[JsonValue] = [
            [tool.name, tool.description, tool.parameters.schema, tool.permission]
            for group in self.groups
            for tool in group.tools
        ]
        return {
            "system": self.system,
            "project": workspace.prompt if workspace is not None else "",
            "options": dict(services.options) if services is not None else {},
            "plugins": [_content_of(plugin) for plugin in services.plugins] if services is not None else [],
            "rules": [str(rule) for rule in services.rules] if services is not None else [],
            "agents": [repr(agent) for agent in self.agents],
            "tools": tools,
            "guides": [group.rules for group in self.groups],
            "caged": self.caged,
        }

    def runtime(
        self, store: Path, find_model: Callable[[str | None], Model], folder: Path | None = None
    ) -> Runtime:
        """Return a runtime with a store for these turns. It adopts no turns, because the run resumes them
        itself."""
        services = self.like.services if self.like is not None else None
        allowed = [
            Rule("*", "*", "allow", "an evaluation"),
            *(services.rules if services is not None else ()),
        ]
        more: dict[str, Any] = {}
        if services is not None:
            plugins = [_without_tools(one) for one in services.plugins if one.name not in _LEFT_OUT]
            more = {
                "plugins": plugins,
                "bounds": services.bounds,
                "options": services.options,
                "on_reject": services.on_reject,
                "small_model": services.small_model,
                "deps": services.deps,
                "make_deps": services.make_deps,
            }
        return Runtime(
            store,
            model=only_found(find_model),
            tools=self.groups,
            agents=[_with_recorded_tasks(agent) for agent in self.agents],
            rules=allowed,
            system=self.system,
            workspace=self._workspace(folder),
            cage=CageSettings("always", unasked=True) if self.caged else None,
            snapshots=False,
            adopts=False,
            **more,
        )

    def _workspace(self, folder: Path | None) -> Workspace | None:
        """Return the project's workspace, whose prompt the model reads. In the cage, its folder is that of
        this turn."""
        project = self.like.services.workspaces.main if self.like is not None else None
        if folder is None:
            return project
        return Workspace(folder) if project is None else replace(project, folder=folder)

    def switches(self, given: JsonValue) -> dict[str, bool]:
        """Return the case's switches that match a tool. No agent can give real tasks."""
        names = {name for group in self.groups for name in (group.name, *(t.name for t in group.tools))}
        kept = {n: bool(on) for n, on in given.items() if n in names} if isinstance(given, dict) else {}
        return {**kept, _TASKS: False} if self.agents else kept

    def _groups(self) -> Iterator[Group]:
        """Yield the groups that the case names, in their current form, and those that it defines. No server
        is started.

        Two kinds of tools really run: programs, which use the results of their calls, and in the cage the
        built-in tools of contained groups. A group with such a name from another source is not contained.
        """
        now = {group.name: group for group in (self.like.services.toolbox.groups if self.like else ())}
        chosen: dict[str, tuple[Group, list[Tool]]] = {}
        for one in self.tools:
            if isinstance(one, CaseTool):
                made = client_tool(one.name, one.description, one.parameters, permission=one.permission)
                chosen.setdefault(one.group, (Group(one.group, ()), []))[1].append(self._recorded(made))
                continue
            name, _, only = one.partition(".")
            runs = name == "programs" or (self.caged and name in _CONTAINED)
            group = now.get(name) if not runs else None
            if group is None and name in BUILTIN:
                group = BUILTIN[name]()
            found = [tool for tool in group.tools if only in ("", tool.name)] if group is not None else []
            if group is None or not found:
                raise ConfigError(
                    f"Unknown tool '{one}'. Define it in the case, or run with settings that have this tool."
                )
            group = group if runs else replace(group, close=None)
            tools = found if runs else [self._recorded(tool) for tool in found]
            chosen.setdefault(name, (group, []))[1].extend(tools)
        for name, (group, tools) in chosen.items():
            unique = tuple({tool.name: tool for tool in tools}.values())
            yield replace(group, name=_RECORDED_TASKS if name == _TASKS else name, tools=unique)

    def _recorded(self, tool: Tool) -> Tool:
        async def run(arguments: Any, context: ToolContext) -> Any:
            return await self.results[context.conversation].answer(tool, _dumped(arguments))

        return replace(
            tool,
            run=run,
            threaded=False,
            replay="safe",
            review="never",
            timeout=_LONGEST,
            cancellable=True,
            writes="nothing",
            preview=None,
            keep_hunks=None,
            caged=False,
            beyond=None,
            fingerprint=None,
        )


class GivenReplies:
    """A model whose first replies in a turn are recorded ones. Otherwise it forwards to the real model."""

    def __init__(self, model: Model, given: Sequence[CaseMessage]) -> None:
        self._model = model
        self._lines = [
            Line(one.text, tuple(ScriptedCall(c.tool, c.arguments) for c in one.calls), usage=Usage())
            for one in given
        ]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    async def stream(self, request: Request, reply: str) -> AsyncGenerator[Sequence[Event], None]:
        roles = [message.role for message in reversed(request.messages)]
        done = roles.index("user") if "user" in roles else len(roles)
        given = ScriptedModel(self._lines[done : done + 1], name=self._model.name)
        model = given if done < len(self._lines) else self._model
        async with aclosing(model.stream(request, reply)) as replies:
            async for events in replies:
                yield events


def only_found(find_model: Callable[[str | None], Model]) -> Callable[[str | None], Model]:
    """Wrap the models of another runtime, so that they do not read attachments from this one permanently."""

    def find(name: str | None) -> Model:
        return find_model(name)

    return find


def _with_recorded_tasks(agent: Agent) -> Agent:
    """Give an agent that can give tasks the recorded results of those tasks."""
    if agent.tools is None or not {_TASKS, f"{_TASKS}.task"} & {*agent.tools}:
        return agent
    return replace(agent, tools=(*agent.tools, _RECORDED_TASKS))


def _without_tools(plugin: Plugin) -> Plugin:
    """Return the plugin with its state but without its tools, which the groups already contain."""
    if not plugin.tools:
        return plugin
    kind = type(plugin)
    same: Plugin = object.__new__(type(kind.__name__, (kind,), {"tools": property(lambda _: ())}))
    same.__dict__ = plugin.__dict__
    return same


class RunBlobs:
    """Reads attachments for models of another runtime while the run lasts."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.ended = False

    async def blob(self, key: str) -> bytes:
        return await self._open(key).blob(key)

    async def blob_size(self, key: str) -> int:
        return await self._open(key).blob_size(key)

    def blob_pieces(self, key: str) -> AsyncIterator[bytes]:
        return self._open(key).blob_pieces(key)

    def _open(self, blob: str) -> Store:
        if self.ended:
            raise NotFound("blob", blob)
        return self._store


def _content_of(plugin: Plugin) -> JsonValue:
    """Return a plugin's name and its plain parameters: a different limit can change the answer."""
    plain = (str, int, float, NoneType)
    named = vars(plugin).items()
    known: dict[str, JsonValue] = {
        name: one for name, one in named if name[0] != "_" and isinstance(one, plain)
    }
    return [plugin.name, known]
