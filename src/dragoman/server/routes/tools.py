"""Routes to list the tools, which of them are on, and the agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import Query

from dragoman.messages.questions import Rule
from dragoman.redaction import redact_text
from dragoman.server import shapes
from dragoman.server.api_router import api_router
from dragoman.server.context import Person, TheContext
from dragoman.tools.authorize import review_of
from dragoman.tools.permissions import concerns
from dragoman.tools.tool import Review, Tool
from dragoman.tools.toolbox import Group
from dragoman.turn.agent import Agent
from dragoman.turn.settings import unchecked
from dragoman.turn.steps.request_layers import conversation_switches

router = api_router("tools")


@router.get("/tools")
async def tools(
    context: TheContext, person: Person, conversation: Annotated[str | None, Query()] = None
) -> shapes.GroupList:
    """All groups with their tools. With a conversation, `on` says what its model, switches and agent leave
    on."""
    settings = (await context.conversation(conversation, person)).settings if conversation else {}
    services = context.runtime.services
    await services.toolbox.ready()
    chosen = settings.get("agent")
    agent = services.agent(str(chosen)) if chosen else services.agent(None)
    switches = conversation_switches(services, settings, agent)
    offer = services.toolbox.offer([*services.rules, *agent.rules], switches, agent.tools)
    states = {source.name: getattr(source, "state", None) for source in services.toolbox.sources}
    problems = {
        source.name: redact_text(getattr(source, "error", "")) or None for source in services.toolbox.sources
    }
    rules = [*services.rules, *agent.rules]
    offered = {id(tool): name for name, tool in offer.tools.items()}
    review = unchecked(settings).get("review")

    def view(tool: Tool) -> shapes.ToolView:
        name = offered.get(id(tool))
        reviewed = review_of(tool, services.review, review, offered_as=name or "")
        return _tool_view(tool, name, rules, reviewed)

    return shapes.GroupList(
        [_group_view(group, [*map(view, group.tools)], states, problems) for group in services.toolbox.groups]
    )


@router.get("/agents")
async def agents(context: TheContext, person: Person) -> shapes.AgentList:
    return shapes.AgentList([agent_view(agent) for agent in context.runtime.services.agents.values()])


def _group_view(
    group: Group,
    tools: list[shapes.ToolView],
    states: Mapping[str, str | None],
    problems: Mapping[str, str | None],
) -> shapes.GroupView:
    """`states` and `problems` are of the sources, by name: a group that comes from one has its name."""
    server = group.tools[0].server if group.tools else (group.name if group.name in states else None)
    on = any(tool.on for tool in tools)
    state, problem = states.get(group.name), problems.get(group.name)
    return shapes.GroupView(group.name, group.rules, on, server, state, tools, problem)


def _tool_view(tool: Tool, offered_as: str | None, rules: Sequence[Rule], review: Review) -> shapes.ToolView:
    return shapes.ToolView(
        tool.name,
        offered_as,
        tool.description,
        tool.permission,
        tool.parameters.schema,
        tool.client,
        tool.server,
        offered_as is not None,
        review,
        tool.replay,
        [rule for rule in rules if concerns(rule, tool.permission)],
    )


def agent_view(agent: Agent) -> shapes.AgentView:
    tools = list(agent.tools) if agent.tools is not None else None
    return shapes.AgentView(agent.name, agent.description, agent.model, tools)
