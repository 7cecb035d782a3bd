"""A stored turn once more, on another model, beside what it was: a small evaluation.

Nothing of it is stored, and with recorded results no tool runs: a call gets what the same call got then, or
else the next result that its tool gave. The caller's plugins run in either case, as in every turn.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeAlias

from pydantic import JsonValue

from dragoman.conversation.tree import Conversation, Tree, copied
from dragoman.errors import BadRequest, DragomanError, NotFound, ToolFailed
from dragoman.messages.ids import new_id
from dragoman.messages.message import CallState, File, Message, ToolCall, canonical
from dragoman.messages.questions import Answer, Rule, allow_once
from dragoman.messages.usage import Usage
from dragoman.runtime import Runtime
from dragoman.store.store import Store
from dragoman.tools.program import programs_group
from dragoman.tools.tool import Tool
from dragoman.tools.toolbox import Group, Toolbox
from dragoman.turn.agent import Agent
from dragoman.turn.facts import FACT, TurnOptions, TurnStarted
from dragoman.turn.plugin import Plugin
from dragoman.turn.services import Services
from dragoman.turn.steps.finalize import answer_of
from dragoman.unattended import CAUTIOUS, answer_questions
from dragoman.wire.files.attachments import UsesBlobs
from dragoman.wire.wire import Model

ToolsOf: TypeAlias = Literal["recorded", "live"]
_LEFT_OUT = ("snapshots", "daily_limit", "titles")  # plugins that are about more than the turn itself
_TASKS = "agents"  # the group of the tool that gives work to another agent
_RECORDED_TASKS = "recorded_agents"  # and the one that stands in for it
# What was asked about then has its result, a refusal too: with recorded results nothing runs.
_RECORDED_ANSWERS: dict[str, Answer] = {**CAUTIOUS, "approve": allow_once(), "run": allow_once()}


@dataclass(slots=True, frozen=True)
class TurnOutcome:
    """What a turn did, once."""

    model: str
    calls: tuple[ToolCall, ...]
    text: str
    usage: Usage
    seconds: float
    error: str = ""


@dataclass(slots=True, frozen=True)
class Replayed:
    """A turn as it was, and as it is on another model."""

    turn: str
    before: TurnOutcome
    after: TurnOutcome

    @property
    def same_calls(self) -> bool:
        """Whether the same tools were called with the same arguments, in whatever order."""
        return sorted(map(_key, self.before.calls)) == sorted(map(_key, self.after.calls))


async def replay_turn(runtime: Runtime, turn: str, *, model: str, tools: ToolsOf = "recorded") -> Replayed:
    """Run a turn again. With live tools, what no rule allows does not run: nobody is there to be asked."""
    store = runtime.store
    row = await store.turn(turn)
    if row.live:
        raise BadRequest(f"turn {turn} is still running: wait for its end")
    facts = [FACT.load(body) for body in await store.facts(turn)]
    first = facts[0] if facts else None
    if not isinstance(first, TurnStarted):
        raise BadRequest(f"turn {turn} has no beginning that can be read")
    messages, _ = await store.messages(row.conversation)
    asked = next((one for one in messages if one.id == first.message), None)
    if asked is None:
        raise BadRequest(f"what turn {turn} answered is not there any more")
    own = [message for message in messages if message.turn == turn]
    before = _run_of(own, first.options, facts[-1].at - first.at)
    with TemporaryDirectory(prefix="dragoman-replay-") as folder:
        async with _beside(runtime, Path(folder), before.calls, tools) as other:
            after = await _again(
                other,
                store,
                Tree(messages).path(asked.id),
                first.options,
                model,
                recorded=tools == "recorded",
            )
    return Replayed(turn, before, after)


@asynccontextmanager
async def _beside(
    runtime: Runtime, folder: Path, calls: Sequence[ToolCall], tools: ToolsOf
) -> AsyncIterator[Runtime]:
    """A runtime like this one, with a store of its own, whose tools give what they gave."""
    services = runtime.services
    await services.toolbox.ready()
    groups = [  # "output" every runtime has; the workers of programs are closed with theirs
        programs_group(named=group.named) if group.name == "programs" else group
        for group in services.toolbox.groups
        if group.name != "output"
    ]
    agents = [*services.agents.values()]
    if tools == "recorded":
        results = _results_of(calls)
        groups = [_recorded_group(group, results) for group in groups]
        agents = [_with_recorded_tasks(agent) for agent in agents]
    models = services.model

    def find_model(name: str | None) -> Model:  # a function: it is not told where attachments are for good
        return models(name)

    other = Runtime(
        folder / "replay.db",
        model=find_model,
        tools=[group for group in groups if group.name != _TASKS],
        agents=agents,
        plugins=[_without_tools(plugin) for plugin in services.plugins if plugin.name not in _LEFT_OUT],
        rules=_rules(services) if tools == "recorded" else services.rules,
        bounds=services.bounds,
        system=services.system,
        options=services.options,
        on_reject=services.on_reject,
        small_model=services.small_model,
        workspace=services.workspaces.main,
        workspaces=services.workspaces.named,
        cage=services.cage,
        deps=services.deps,
        make_deps=services.make_deps,
        snapshots=False,
    )
    blobs = _ReplayBlobs(other.store)
    reader: object = models
    try:
        if isinstance(reader, UsesBlobs):
            reader.use_blobs(blobs)
        async with other:
            yield other
    finally:
        blobs.ended = True
        if (forget := getattr(reader, "forget_blobs", None)) is not None:  # not all can
            forget(blobs)


class _ReplayBlobs:
    """Reads attachments that came up in the replay, as long as it goes on."""

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


def _without_tools(plugin: Plugin) -> Plugin:
    """The plugin itself, with the state it has, but for its tools: they are among the groups already."""
    if not plugin.tools:
        return plugin
    kind = type(plugin)
    same: Plugin = object.__new__(type(kind.__name__, (kind,), {"tools": property(lambda _: ())}))
    same.__dict__ = plugin.__dict__
    return same


def _rules(services: Services) -> list[Rule]:
    """What no rule is about is allowed; what is denied is not offered, as it was not then."""
    return [Rule("*", "*", "allow", "a replay"), *services.rules]


async def _again(
    runtime: Runtime,
    store: Store,
    path: Sequence[Message],
    options: TurnOptions,
    model: str,
    *,
    recorded: bool,
) -> TurnOutcome:
    """The last message of the path, after those before it."""
    now = time.time()
    *path, asked = path
    copies = copied(path, id := new_id("conv"))
    leaf = copies[path[-1].id].id if path else None
    for message in [*path, asked]:
        for file in _files_of(message):
            if file.blob is not None:
                await runtime.store.put_blob(await store.blob(file.blob))
    settings = {name: value for name, value in (options.settings or {}).items() if name not in _DECIDED}
    talk = Conversation(id, leaf=leaf, settings=settings, created=now, updated=now)
    await runtime.store.add_conversation(talk, list(copies.values()))
    agent = options.agent or (options.settings or {}).get("agent")
    wanted = TurnOptions(
        model=model,
        system=options.system,
        options=options.options,
        disabled=tuple(name for name in options.disabled if name in _plugins_of(runtime)),
        agent=agent if isinstance(agent, str) and agent in runtime.services.agents else None,
        tools=_switches(options, settings, runtime.services.toolbox) if recorded else options.tools,
        dialect=options.dialect,
        output=options.output,
        over={name: value for name, value in options.over.items() if name not in _DECIDED},
    )
    began = time.monotonic()
    turn = runtime.turn(await runtime.commands.send(id, asked.parts, options=wanted))
    error = ""
    try:
        answers = _RECORDED_ANSWERS if recorded else CAUTIOUS
        await answer_questions(runtime, turn, answers)
        await turn.result()
    except DragomanError as wrong:
        error = str(wrong)
    seconds = time.monotonic() - began
    messages, _ = await runtime.store.messages(id)
    run = _run_of(
        [one for one in messages if one.turn == turn.id], replace(wanted, started_with=model), seconds
    )
    return replace(run, error=error)


_DECIDED = ("model", "agent", "mode", "review")  # by the replay itself


def _plugins_of(runtime: Runtime) -> set[str]:
    return {plugin.name for plugin in runtime.services.plugins}


def _switches(options: TurnOptions, settings: Mapping[str, JsonValue], toolbox: Toolbox) -> dict[str, bool]:
    """Those of the turn; tasks are recorded ones, where they were on."""
    held = settings.get("tools")
    before = {**(held if isinstance(held, dict) else {}), **options.tools}
    on = all(before.get(name, True) for name in (_TASKS, f"{_TASKS}.task"))
    switches = {**options.tools, _TASKS: False, _RECORDED_TASKS: on}
    return {name: on for name, on in switches.items() if toolbox.knows(name)}


def _run_of(messages: Sequence[Message], options: TurnOptions, seconds: float) -> TurnOutcome:
    replies = [message for message in messages if message.role == "assistant"]
    usage = sum((message.usage for message in replies if message.usage is not None), Usage())
    wrote = list(dict.fromkeys(message.model for message in replies if message.model))
    return TurnOutcome(
        ", ".join(wrote) or options.started_with or "",
        tuple(call for message in replies for call in message.all_calls),
        answer_of(messages),
        usage,
        seconds,
    )


def _files_of(message: Message) -> list[File]:
    results = [call.result for call in message.all_calls if call.result is not None]
    return [*message.files, *(file for result in results for file in result.attachments)]


# ── recorded results ──────────────────────────────────────────────────────────────────────────────

_Results: TypeAlias = dict[str, list[tuple[str, ToolCall]]]


def _results_of(calls: Sequence[ToolCall]) -> _Results:
    """By tool, in order: the arguments and the call with its result."""
    results: _Results = defaultdict(list)
    for call in calls:
        if call.result is not None:
            results[call.tool].append((canonical(call.original or call.arguments), call))
    return results


def _recorded_group(group: Group, results: _Results) -> Group:
    if any(tool.runs_programs for tool in group.tools):
        return group  # they run again, over the recorded results of their calls
    recorded = tuple(_recorded(tool, results) for tool in group.tools)
    return replace(group, name=_RECORDED_TASKS if group.name == _TASKS else group.name, tools=recorded)


def _with_recorded_tasks(agent: Agent) -> Agent:
    """An agent that may give tasks gets what those came to."""
    if agent.tools is None or not {_TASKS, f"{_TASKS}.task"} & {*agent.tools}:
        return agent
    return replace(agent, tools=(*agent.tools, _RECORDED_TASKS))


def _recorded(tool: Tool, results: _Results) -> Tool:
    async def run(arguments: Any, _: Any) -> JsonValue:
        given = canonical(arguments.model_dump(mode="json", exclude_unset=True, by_alias=True))
        left = results[tool.name]
        at = next((i for i, (wanted, _) in enumerate(left) if wanted == given), 0)
        if not left:
            raise ToolFailed(f"{tool.name} was not called so often when this was recorded: answer without it")
        _, call = left.pop(at)
        assert call.result is not None
        if call.state is not CallState.COMPLETED:
            raise ToolFailed(call.result.text)
        return call.result.text if call.result.value is None else call.result.value

    return replace(
        tool, run=run, threaded=False, replay="safe", writes="nothing", preview=None, keep_hunks=None
    )


def _key(call: ToolCall) -> str:
    return f"{call.tool} {canonical(call.original or call.arguments)}"
