"""Handing a conversation over: another agent goes on with it, in the same turn and in those after it.

Who goes on is read from the calls that are stored, so a turn that was handed over stays so after a crash.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import Annotated

from pydantic import Field, JsonValue

from dragoman.errors import ToolFailed
from dragoman.messages.parts import CallState, ToolCall
from dragoman.messages.questions import Rule
from dragoman.tools.tool import Tool, ToolContext, tool
from dragoman.turn.agent import Agent
from dragoman.turn.facts import FACT, TurnOptions, TurnStarted
from dragoman.turn.services import Services
from dragoman.turn.settings import changed

NAME = "hand_off"


def agents_after(services: Services, first: Agent, calls: Iterable[ToolCall]) -> list[Agent]:
    """Who answered, one after the other: the first agent, and those it was handed to by one that may. The
    last one answers now, and is no freer than any before it."""
    agents = [first]
    for call in calls:
        wanted = call.arguments.get("agent")
        handed = call.tool == NAME and call.state is CallState.COMPLETED
        if handed and isinstance(wanted, str) and wanted in agents[-1].handoffs:
            agents.append(services.agent(wanted))
    return agents


async def agents_of(services: Services, turn: str, before: str | None = None) -> list[Agent]:
    """The same of a stored turn; with `before`, until this call of it was made."""
    facts = await services.store.facts(turn)
    first = FACT.load(facts[0]) if facts else None
    options = first.options if isinstance(first, TurnStarted) else TurnOptions()
    setting = (options.settings or {}).get("agent")
    agent = services.agent(options.agent or (setting if isinstance(setting, str) else None))
    if not agent.handoffs:
        return [agent]
    messages, _ = await services.store.messages((await services.store.turn(turn)).conversation)
    calls = [call for message in messages if message.turn == turn for call in message.calls]
    return agents_after(services, agent, takewhile(lambda call: call.id != before, calls))


def rules_of(services: Services, agents: Iterable[Agent]) -> list[list[Rule]]:
    """What each of them may."""
    return [[*services.rules, *agent.rules] for agent in agents]


def handoff_tool(services: Services, agent: Agent) -> Tool:
    """The tool of an agent that may hand over, for those it may hand over to."""
    others = {name: services.agent(name) for name in agent.handoffs}
    names: list[JsonValue] = list(others)

    @tool(
        name=NAME,
        description=f"Hand this conversation over to another agent, who then answers.\n{_list(others)}",
        permission="hand_off",
        pattern="agent",
        replay="safe",
        sequential=True,
        writes="nothing",
    )
    async def hand_off(
        agent: Annotated[str, Field(description="who goes on", json_schema_extra={"enum": names})],
        context: ToolContext,
        reason: Annotated[str, Field(description="what they have to know, in a sentence")] = "",
    ) -> str:
        if agent not in others:
            raise ToolFailed(f"it cannot be handed to {agent!r}: choose one of {', '.join(others)}")
        await services.store.change_settings(
            context.conversation, lambda before: changed(before, {"agent": agent})
        )
        return f"From here on {agent} answers.{f' {reason}' if reason else ''}"

    return hand_off


def _list(agents: Mapping[str, Agent]) -> str:
    return "\n".join(f"- {name}: {one.description or 'no description'}" for name, one in agents.items())
