"""A stored turn once more, on another model, beside what it was: a small evaluation.

Nothing of it is stored, and with recorded results nothing runs: a call gets what the same call got then, or
else the next result that its tool gave.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeAlias

from dragoman.conversation.tree import Conversation, Tree, copied
from dragoman.errors import BadRequest, DragomanError, ToolFailed
from dragoman.messages.ids import new_id
from dragoman.messages.message import Message
from dragoman.messages.parts import CallState, File, ToolCall, canonical
from dragoman.messages.questions import Rule, nobody_to_ask, withhold
from dragoman.messages.usage import Usage
from dragoman.runtime import Runtime
from dragoman.store.store import Store
from dragoman.tools.tool import Tool
from dragoman.turn.facts import FACT, TurnOptions, TurnStarted
from dragoman.turn.steps.finalize import answer_of

ToolsOf: TypeAlias = Literal["recorded", "live"]
_LEFT_OUT = ("snapshots", "daily_limit", "titles")  # plugins that are about more than the turn itself


@dataclass(slots=True, frozen=True)
class Run:
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
    before: Run
    after: Run

    @property
    def same_calls(self) -> bool:
        """Whether the same tools were called with the same arguments, in whatever order."""
        return sorted(map(_key, self.before.calls)) == sorted(map(_key, self.after.calls))


async def replay(runtime: Runtime, turn: str, *, model: str, tools: ToolsOf = "recorded") -> Replayed:
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
        async with await _beside(runtime, Path(folder), before.calls, tools) as other:
            after = await _again(other, store, Tree(messages).path(asked.id), first.options, model)
    return Replayed(turn, before, after)


async def _beside(runtime: Runtime, folder: Path, calls: Sequence[ToolCall], tools: ToolsOf) -> Runtime:
    """A runtime like this one, with a store of its own, whose tools give what they gave."""
    services = runtime.services
    await services.toolbox.ready()
    groups = services.toolbox.groups
    if tools == "recorded":
        results = _results_of(calls)
        groups = tuple(
            replace(group, tools=tuple(_recorded(tool, results) for tool in group.tools)) for group in groups
        )
    return Runtime(
        folder / "replay.db",
        model=services.model,
        tools=[group for group in groups if group.name not in ("output", "agents")],
        agents=[] if tools == "recorded" else services.agents.values(),
        plugins=[plugin for plugin in services.plugins if plugin.name not in _LEFT_OUT],
        rules=_rules(services.rules) if tools == "recorded" else services.rules,
        bounds=services.bounds,
        system=services.system,
        options=services.options,
        workspace=services.workspace,
        deps=services.deps,
        make_deps=services.make_deps,
        snapshots=False,
    )


def _rules(rules: Sequence[Rule]) -> list[Rule]:
    """Nothing is asked about; what is denied is not offered, as it was not then."""
    return [Rule("*", "*", "allow", "a replay"), *(rule for rule in rules if rule.action == "deny")]


async def _again(
    runtime: Runtime, store: Store, path: Sequence[Message], options: TurnOptions, model: str
) -> Run:
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
    agent = options.agent if options.agent in runtime.services.agents else None
    wanted = TurnOptions(
        model=model,
        system=options.system,
        options=options.options,
        agent=agent,
        tools=options.tools,
        output=options.output,
    )
    began = time.monotonic()
    turn = runtime.turn(await runtime.commands.send(id, asked.parts, options=wanted))
    error = ""
    try:
        async for event in turn.events():
            if event.type == "call.asked":
                no = withhold("a replay") if event.kind == "review" else nobody_to_ask()
                await turn.answer(event.question, no)
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


def _run_of(messages: Sequence[Message], options: TurnOptions, seconds: float) -> Run:
    replies = [message for message in messages if message.role == "assistant"]
    usage = sum((message.usage for message in replies if message.usage is not None), Usage())
    wrote = list(dict.fromkeys(message.model for message in replies if message.model))
    return Run(
        ", ".join(wrote) or options.started_with or "",
        tuple(call for message in replies for call in message.calls),
        answer_of(messages),
        usage,
        seconds,
    )


def _files_of(message: Message) -> list[File]:
    results = [call.result for call in message.calls if call.result is not None]
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


def _recorded(tool: Tool, results: _Results) -> Tool:
    async def run(arguments: Any, _: Any) -> str:
        given = canonical(arguments.model_dump(mode="json", exclude_unset=True, by_alias=True))
        left = results[tool.name]
        at = next((i for i, (wanted, _) in enumerate(left) if wanted == given), 0)
        if not left:
            raise ToolFailed(f"{tool.name} was not called so often when this was recorded: answer without it")
        _, call = left.pop(at)
        assert call.result is not None
        if call.state is not CallState.COMPLETED:
            raise ToolFailed(call.result.text)
        return call.result.text

    return replace(tool, run=run, threaded=False, replay="safe", writes="nothing", preview=None)


def _key(call: ToolCall) -> str:
    return f"{call.tool} {canonical(call.original or call.arguments)}"
