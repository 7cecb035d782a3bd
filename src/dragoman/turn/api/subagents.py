"""Runs sub-agents: a call gives a task to another agent, which works in a separate conversation.

Several `task` calls of one reply run at the same time.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated

from pydantic import Field, JsonValue

from dragoman.conversation.tree import Conversation
from dragoman.errors import ENDS_THE_PROGRAM, ConfigError, DragomanError, NotFound, ToolFailed
from dragoman.messages.asked import asked_in
from dragoman.messages.endings import INCOMPLETE, REFUSED, WITHOUT_ANSWER, notice_of
from dragoman.messages.ids import derived_id
from dragoman.messages.questions import MODES
from dragoman.tools.deferred import loaded_in
from dragoman.tools.tool import Tool, ToolContext, ToolOutput, tool
from dragoman.tools.toolbox import Group, Toolbox, open_to
from dragoman.turn.acting_agent import agents_in
from dragoman.turn.agent import Agent
from dragoman.turn.api.conversation_handle import ConversationHandle
from dragoman.turn.api.turn_handle import Engine, TurnHandle, TurnResult
from dragoman.turn.live.log import TurnLog
from dragoman.turn.services import Services
from dragoman.turn.steps.prepare import mode_of
from dragoman.workspace.diff import FileDiff, joined

_DEEPEST = 3  # Maximum nesting depth of tasks.
# Settings inherited from the parent conversation.
_INHERITED = ("tools", "private", "review", "dialect", "workspace")
_SHOWN = 20_000  # Maximum characters of the diff in a result. The whole diff is recorded.
A_WEEK = 7 * 24 * 3600.0  # A task may wait for a user. Its agent limits which tools it can use.


class Subagents:
    """Opens sub-conversations. The runtime completes it with `join` after building its services."""

    def __init__(self, agents: dict[str, Agent]) -> None:
        self.agents = agents
        self._joined: tuple[Services, Engine] | None = None

    def join(self, services: Services, engine: Engine) -> None:
        """Attach the services. The tool is created before they exist."""
        self._joined = (services, engine)

    def seen_by(self, teams: Collection[str]) -> Subagents:
        """Return the agents that members of these teams can use."""
        seen = Subagents({name: one for name, one in self.agents.items() if open_to(one.teams, teams)})
        seen._joined = self._joined
        return seen

    @property
    def _parts(self) -> tuple[Services, Engine]:
        if self._joined is None:
            raise ConfigError("The task tool belongs to no runtime. Pass agents to Runtime(agents=…).")
        return self._joined

    async def run(self, agent: str, request: str, context: ToolContext) -> ToolOutput:
        """Run a turn of this agent to its end. Raise ToolFailed if it gave no answer.

        After a crash, a repeated run finds the turn that this call started.
        """
        if agent not in self.agents:
            raise ToolFailed(f"Unknown agent {agent!r}. Choose one of {', '.join(self.agents)}.")
        _, engine = self._parts
        id = derived_id("conv", context.idempotency_key)
        where: dict[str, JsonValue] = {"conversation": id, "agent": agent}
        try:
            turn = await self._begun(id, agent, request, context)
            where["turn"] = turn
            context.progress({**where})
            handle = TurnHandle(turn, engine)
            async for event in handle.events():
                # Approval requests of the task itself, or of a nested task.
                if (asked := asked_in(event)) is not None:
                    context.progress({**where, "asks": asked[0], "text": asked[1]})
            result = await handle.result()
        except (asyncio.CancelledError, *ENDS_THE_PROGRAM):
            raise
        except BaseException as error:  # The error may be any exception the turn failed with.
            kind = "" if isinstance(error, DragomanError) else f"{type(error).__name__}: "
            raise ToolFailed(f"The task failed: {kind}{error}") from error
        if failure := await _failure(agent, handle, result):
            raise ToolFailed(failure)
        metadata = {**where, "usage": asdict(result.usage)}
        if diffs := await self._diffs(turn):
            metadata["diff"] = joined(diffs, _SHOWN)
        return ToolOutput(result.text, title=agent, metadata=metadata)

    async def _diffs(self, turn: str) -> Sequence[FileDiff]:
        """Return the task's diffs. If they are unreadable, return none: the answer exists anyway."""
        _, engine = self._parts
        try:
            return (await engine.undo.diff_turn(turn)).files
        except (DragomanError, OSError, sqlite3.Error):
            return ()

    async def _begun(self, id: str, agent: str, request: str, context: ToolContext) -> str:
        services, engine = self._parts
        try:
            await services.store.conversation(id)
        except NotFound:
            await self._open(id, agent, request, context)
        turns = await services.store.turns(id)
        if turns:
            return turns[0].id
        # Otherwise the process that runs the turn builds it.
        deps = None if engine.driver.hands_out else context.deps
        return (await ConversationHandle(id, engine).send(request, deps=deps, by=context.user)).id

    async def _open(self, id: str, agent: str, request: str, context: ToolContext) -> None:
        services, _ = self._parts
        parent = await services.store.conversation(context.conversation)
        outer, depth = parent, 1
        while outer.parent is not None:
            outer, depth = await services.store.conversation(outer.parent), depth + 1
        if depth > _DEEPEST:
            raise ToolFailed("Tasks are nested three deep. Do the work yourself.")
        now = services.clock()
        await services.store.add_conversation(
            Conversation(
                id,
                title=request.strip()[:30] or agent,
                user=parent.user,
                settings=self._settings(parent, agent, context),
                created=now,
                updated=now,
                parent=parent.id,
                call=context.call,
            )
        )

    def _settings(self, parent: Conversation, agent: str, context: ToolContext) -> dict[str, JsonValue]:
        """Return the task's settings: tool switches, private texts and reviewers carry over from this
        conversation."""
        services, engine = self._parts
        live = engine.bus.here(context.turn)
        here_too = parent.settings if live is None else {**live.log.settings, **_said_with(live.log)}
        settings: dict[str, JsonValue] = {
            "agent": agent,
            **{name: here_too[name] for name in _INHERITED if name in here_too},
        }
        if live is not None and (loaded := [*loaded_in(live.log.path)]):
            known = services.toolbox.offer().sources
            settings["always_tools"] = [name for name in loaded if name in known]
        if live is not None:
            here = mode_of(services, live.log, *agents_in(services, live.log))
            there = services.agent(agent).mode or services.mode
            settings["mode"] = max(here, there, key=MODES.index)
        return settings


def _said_with(log: TurnLog) -> dict[str, JsonValue]:
    """Return this turn's tool switches and dialect in the form of settings.

    They override the conversation's.
    """
    options, before = log.turn.options, log.settings.get("tools")
    said: dict[str, JsonValue] = {"dialect": options.dialect} if options.dialect is not None else {}
    if options.tools:
        said["tools"] = {**(before if isinstance(before, dict) else {}), **options.tools}
    return said


async def _failure(agent: str, handle: TurnHandle, result: TurnResult) -> str:
    """Return the reason why the turn's result is not an answer. Empty if it is one."""
    if result.state != "completed":
        return f"the task was {result.state} before it had an answer"
    if result.finish in REFUSED | INCOMPLETE | WITHOUT_ANSWER:
        ending = notice_of(result.finish, agent)
        return f"{result.text}\n\n[{ending}]" if result.text.strip() else str(ending)
    if not result.text.strip():
        limit = (await handle.turn()).limit
        return f"{agent} gave no answer" + (f": it came to its limit of {limit}" if limit else "")
    return ""


def agents_group(tasks: Subagents) -> Group:
    """Return the tool that agents provide. Without agents the group is empty."""
    tools = (task_tool(tasks),) if tasks.agents else ()
    return Group("agents", tools, seen_by=lambda teams: agents_group(tasks.seen_by(teams)))


def exchange_agents(group: Group, toolbox: Toolbox, tasks: Subagents, agents: Mapping[str, Agent]) -> Group:
    """Replace the agents with these and return the group of their tools, which replaces `group`.

    Raise ConfigError without replacing anything if the toolbox has another group of that name.
    """
    before = {**tasks.agents}
    _refill(tasks.agents, agents)
    brought = agents_group(tasks)
    try:
        toolbox.exchange(group, brought)
    except ConfigError:
        _refill(tasks.agents, before)
        raise
    return brought


def _refill(known: dict[str, Agent], agents: Mapping[str, Agent]) -> None:
    """Update the dictionary in place: many objects refer to it."""
    known.clear()
    known.update(agents)


def task_tool(tasks: Subagents) -> Tool:
    agents = tasks.agents
    names: list[JsonValue] = list(agents)
    known = "\n".join(f"- {one.name}: {one.description or 'no description'}" for one in agents.values())

    @tool(
        description="Give a piece of work to another agent, which does it in a conversation of its own and "
        f"answers once. It knows nothing of this one: say all it needs.\n{known}",
        pattern="agent",
        writes="nothing",  # The task's turn records its own file changes.
        replay="safe",
        cancellable=True,
        timeout=A_WEEK,
    )
    async def task(
        agent: Annotated[str, Field(description="who is to do it", json_schema_extra={"enum": names})],
        request: Annotated[str, Field(description="what is to be done, with everything it needs to know")],
        context: ToolContext,
    ) -> ToolOutput:
        return await tasks.run(agent, request, context)

    return task
