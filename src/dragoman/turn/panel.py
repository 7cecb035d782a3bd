"""The `ask_agents` tool: the same request to several agents at once, whose answers the model makes one of.

Each works in a conversation of its own, as with `task`: with its own tools, rules and limits, and no freer
than who asked. One that fails, or comes to its limit, takes nothing from the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, JsonValue

from dragoman.errors import ConfigError, ToolFailed
from dragoman.messages.usage import Usage
from dragoman.tools.tool import Tool, ToolContext, ToolOutput, tool
from dragoman.tools.toolbox import Group, Toolbox
from dragoman.turn.agent import Agent
from dragoman.turn.subagent import A_WEEK, Subagents, TaskOutcome, diff_in, spent, task_tool


def agents_group(tasks: Subagents) -> Group:
    """The tools that agents bring. Without agents there are none."""
    if not tasks.agents:
        return Group("agents", ())
    several = (panel_tool(tasks),) if len(tasks.agents) > 1 else ()
    return Group("agents", (task_tool(tasks), *several))


def exchange_agents(group: Group, toolbox: Toolbox, tasks: Subagents, agents: Mapping[str, Agent]) -> Group:
    """These instead of those that are there. → the tools that they bring, which were `group` until now.
    ConfigError, and nothing is exchanged, where the toolbox has another group of its name."""
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
    """In place: many hold it."""
    known.clear()
    known.update(agents)


def panel_tool(tasks: Subagents) -> Tool:
    names: list[JsonValue] = list(tasks.agents)

    @tool(
        description="Give the same request to several agents at once: for answers from different sides, of "
        "which you make one. Each works in a conversation of its own and answers once. They know nothing of "
        "this one, nor of each other: say all they need.",
        permission="task",
        pattern="agents",
        writes="nothing",  # what its turn writes is recorded there
        replay="safe",
        cancellable=True,
        timeout=A_WEEK,
    )
    async def ask_agents(
        agents: Annotated[
            list[str],
            Field(
                description="who is asked",
                min_length=1,
                json_schema_extra={"items": {"type": "string", "enum": names}},
            ),
        ],
        request: Annotated[str, Field(description="what is to be done, with everything they need to know")],
        context: ToolContext,
    ) -> ToolOutput:
        asked = list(dict.fromkeys(agents))  # each once, whoever is named twice
        if unknown := [name for name in asked if name not in tasks.agents]:
            raise ToolFailed(f"there is no agent {unknown[0]!r}: choose of {', '.join(tasks.agents)}")
        return _together(await _run(tasks, asked, request, context))

    return ask_agents


async def _run(tasks: Subagents, asked: list[str], request: str, context: ToolContext) -> list[TaskOutcome]:
    """All of them to their ends. A cancel reaches each."""
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(tasks.run(name, request, context, key=name)) for name in asked]
    return [one.result() for one in running]


def _together(outcomes: list[TaskOutcome]) -> ToolOutput:
    """Every answer under the name of who gave it."""
    texts = {one.agent: f"[no answer: {one.failure}]" if one.failure else one.text for one in outcomes}
    text = "\n\n".join(f"## {agent}\n\n{said}" for agent, said in texts.items())
    if all(one.failure for one in outcomes):
        raise ToolFailed(f"none of them answered\n\n{text}")
    answers: list[JsonValue] = [
        {**one.where, "usage": spent(one.usage), "answered": not one.failure} for one in outcomes
    ]
    usage = sum((one.usage for one in outcomes), Usage())
    title = ", ".join(one.agent for one in outcomes)
    metadata: dict[str, JsonValue] = {"agents": answers, "usage": spent(usage), **diff_in(outcomes)}
    return ToolOutput(text, title=title, metadata=metadata)
