"""Hands a conversation over: another agent continues it, in the same turn and in later turns.

The acting agent is derived from the stored calls, so a handover survives a crash. Each agent's calls are
judged and run under that agent's rules, even if it hands over in the same reply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile
from typing import Annotated

from pydantic import Field, JsonValue

from dragoman.errors import DragomanError, NotFound, ToolFailed, Unreadable
from dragoman.messages.message import CallState, Message, ToolCall
from dragoman.tools.tool import Tool, tool
from dragoman.turn.agent import Agent
from dragoman.turn.facts import FACT, TurnOptions, TurnStarted, options_in
from dragoman.turn.live.log import TurnLog
from dragoman.turn.services import Services
from dragoman.turn.settings import changed

NAME = "hand_off"


def first_agent(services: Services, options: TurnOptions) -> Agent:
    """Return the agent that a turn was started with."""
    setting = (options.settings or {}).get("agent")
    return services.agent(options.agent or (setting if isinstance(setting, str) else None))


def agents_in(services: Services, log: TurnLog) -> list[Agent]:
    """Return the agents that answered in a turn running here, in order.

    The last one answers now, with no more freedom than any before it. A reply with unsettled calls still
    belongs to the agent that made it.
    """
    first = _first_in(services, log)
    if not first.handoffs:
        return [first]
    open_reply = log.turn.reply if log.turn.unsettled else None
    done = (message for message in log.messages if message.id != open_reply)
    return _followed(services, first, done)


async def agents_of(services: Services, turn: str, before: str | None = None) -> list[Agent]:
    """Return the same for a stored turn. With `before`, only up to the reply that holds this call."""
    agent = first_agent(services, options_in(await services.store.facts(turn)))
    if not agent.handoffs:
        return [agent]
    messages, _ = await services.store.messages((await services.store.turn(turn)).conversation)
    own = (message for message in messages if message.turn == turn)
    earlier = takewhile(lambda message: all(call.id != before for call in message.calls), own)
    return _followed(services, agent, earlier)


async def turns_of_agent(services: Services, name: str) -> list[str]:
    """Return the unfinished turns in which this agent takes part. They could not continue without it."""
    rows = await services.store.live_turns()
    return [row.id for row in rows if name in await _names_in(services, row.id)]


async def _names_in(services: Services, turn: str) -> set[str]:
    try:
        return {agent.name for agent in await agents_of(services, turn)}
    except (NotFound, Unreadable):
        return set()  # The turn is quarantined in any case.


async def agent_before(services: Services, conversation: str, options: TurnOptions) -> str | None:
    """Return the agent that a repeated send was made to, if its conversation was handed over since.

    None if that agent would answer anyway, or if the user chose another one.
    """
    setting = (options.settings or {}).get("agent")
    now = (await services.store.conversation(conversation)).settings.get("agent")
    if not isinstance(setting, str) or setting == now or setting not in services.agents:
        return None
    messages, _ = await services.store.messages(conversation)
    return setting if _was_handed_to(now, messages) else None


async def settings_at(
    services: Services,
    settings: Mapping[str, JsonValue],
    messages: Iterable[Message],
    path: Sequence[Message],
) -> dict[str, JsonValue]:
    """Return a conversation's settings with the agent that answered at the end of this path.

    A handover may have happened later, or on another branch. An agent that the user chose stays.
    """
    turn = path[-1].turn
    if turn is None or not _was_handed_to(settings.get("agent"), messages):
        return dict(settings)
    try:
        options = options_in(await services.store.facts(turn))
        if options.settings is None:  # Turns do not exist for messages from a fork or an import.
            return dict(settings)
        own = (message for message in path if message.turn == turn)
        agents = _followed(services, first_agent(services, options), own)
    except (DragomanError, ValueError):  # An agent is missing, or its turn is unreadable.
        return dict(settings)
    return _handed_on({**settings, "agent": options.settings.get("agent")}, agents)


async def keep_agent(services: Services, log: TurnLog) -> None:
    """Make later turns start with the agent that continues, unless the user chose another one meanwhile.

    This includes queued turns, unless the agent is limited to teams: their senders may not be members.
    """
    agents, here = agents_in(services, log), log.conversation.id
    if len(agents) > 1:
        await services.store.change_settings(here, lambda before: _handed_on(before, agents))
        chosen = (await services.store.conversation(here)).settings.get("agent")
        if chosen == agents[-1].name and not agents[-1].teams:
            model = _model_of(services, agents[-1])
            await services.store.renew_queued(here, lambda fact: _queued_for(fact, agents, model))


def hands_over(log: TurnLog) -> bool:
    """Return whether the last reply of a turn handed over. The next agent has had no step yet."""
    last = (message for message in log.messages if message.id == log.turn.reply)
    return any(_is_handover(call) for message in last for call in message.calls)


def _model_of(services: Services, agent: Agent) -> str | None:
    """Return None if the model is missing. A turn that needs it fails when it starts."""
    with suppress(Exception):
        return services.model(agent.model).name
    return None


def _queued_for(fact: str, agents: Sequence[Agent], model: str | None) -> str:
    """Return the first fact of a queued turn after these agents answered in the turn before it.

    `model` belongs to the last agent. Options given for this turn alone stay.
    """
    first = FACT.load(fact)
    if not isinstance(first, TurnStarted) or first.options.agent is not None:
        return fact
    options, before = first.options, first.options.settings or {}
    settings = _handed_on(before, agents)
    if settings != before:
        if not options.model and not settings.get("model"):
            options = replace(options, started_with=model)
        # The rules accepted for the earlier agent need not allow what another agent may do.
        if options.accepted is not None:
            options = replace(options, accepted=replace(options.accepted, agent=agents[-1].rules))
    return FACT.dump(replace(first, options=replace(options, settings=settings)))


def _handed_on(before: Mapping[str, JsonValue], agents: Sequence[Agent]) -> dict[str, JsonValue]:
    """Return a conversation's settings after these agents answered in a turn, in order."""
    *earlier, last = agents
    chosen = before.get("agent")
    goes_on = bool(earlier) and (chosen is None or chosen in {one.name for one in earlier})
    return changed(before, {"agent": last.name if goes_on else chosen})


def handoffs_here(services: Services, agent: Agent) -> list[str]:
    """Return the agents it may hand over to, except those of teams that the sender is not in."""
    return [name for name in agent.handoffs if name in services.agents or name not in services.agents_now]


def handoff_tool(
    services: Services, agent: Agent, calls: Callable[[], Iterable[ToolCall]] = tuple[ToolCall]
) -> Tool:
    """Build the handover tool for an agent, listing the agents it may hand over to.

    `calls` are the calls of the reply in which the tool is called.
    """
    others = {name: services.agent(name) for name in handoffs_here(services, agent)}
    names: list[JsonValue] = list(others)

    @tool(
        name=NAME,
        description=f"Hand this conversation over to another agent, who then answers.\n{_list(others)}",
        permission=NAME,
        pattern="agent",
        replay="safe",
        sequential=True,
        writes="nothing",
    )
    async def hand_off(
        agent: Annotated[
            str, Field(description="the agent that continues", json_schema_extra={"enum": names})
        ],
        reason: Annotated[str, Field(description="what they have to know, in a sentence")] = "",
    ) -> str:
        if agent not in others:
            raise ToolFailed(f"You cannot hand over to {agent!r}. Choose one of {', '.join(others)}.")
        if any(call.tool == NAME and call.state is CallState.COMPLETED for call in calls()):
            raise ToolFailed("You already handed over in this reply.")
        return f"From here on {agent} answers.{f' {reason}' if reason else ''}"

    return hand_off


def _first_in(services: Services, log: TurnLog) -> Agent:
    setting = log.settings.get("agent")
    return services.agent(log.turn.options.agent or (setting if isinstance(setting, str) else None))


def _followed(services: Services, first: Agent, messages: Iterable[Message]) -> list[Agent]:
    agents = [first]
    for call in (call for message in messages for call in message.calls):
        wanted = call.arguments.get("agent")
        if _is_handover(call) and isinstance(wanted, str) and wanted in agents[-1].handoffs:
            agents.append(services.agent(wanted))
    return agents


def _was_handed_to(agent: JsonValue, messages: Iterable[Message]) -> bool:
    made = (call for message in messages for call in message.calls)
    return any(_is_handover(call) and call.arguments.get("agent") == agent for call in made)


def _is_handover(call: ToolCall) -> bool:
    return call.tool == NAME and call.state is CallState.COMPLETED


def _list(agents: Mapping[str, Agent]) -> str:
    return "\n".join(f"- {name}: {one.description or 'no description'}" for name, one in agents.items())
