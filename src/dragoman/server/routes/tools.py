"""Define routes to list tools, agents, and the prompts of MCP servers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import Query

from dragoman.conversation.sharing import Right
from dragoman.errors import BadRequest, NotFound, ToolFailed
from dragoman.messages.questions import Rule
from dragoman.redaction import redact_text
from dragoman.server import shapes
from dragoman.server.bodies import PromptArguments
from dragoman.server.context import Context, TheContext, api_router
from dragoman.tools.authorize import review_of
from dragoman.tools.deferred import LETTERS, loaded_in, size_of
from dragoman.tools.mcp.source import McpSource
from dragoman.tools.permissions import concerns
from dragoman.tools.tool import Review, Tool
from dragoman.tools.toolbox import Group
from dragoman.turn.agent import Agent
from dragoman.turn.services import Services
from dragoman.turn.settings import unchecked
from dragoman.turn.steps.request_layers import conversation_switches, deferred_offer, model_here

router = api_router("tools")


@router.get("/tools")
async def tools(
    context: TheContext,
    conversation: Annotated[str | None, Query()] = None,
    brief: Annotated[bool, Query()] = False,
) -> shapes.GroupList:
    """List all groups with their tools. With a conversation, `on` reflects its model, switches and agent.
    With `brief`, tools lack description, schema and rules."""
    services = await context.services()
    info = await context.conversation(conversation, Right.READ) if conversation else None
    settings = services.settings_seen(info.settings) if info is not None else {}
    await services.toolbox.ready()
    chosen = settings.get("agent")
    agent = services.agent(str(chosen) if chosen else None)
    switches = conversation_switches(services, settings, agent)
    whole = services.toolbox.offer([*services.rules, *agent.rules], switches, agent.tools)
    model = model_here(services, settings, agent)
    path = await (await context.runtime.conversation(conversation)).messages() if conversation else []
    offer = deferred_offer(services, agent, model, whole, path, settings=settings)
    how = loaded_in(path)
    states = {source.name: getattr(source, "state", None) for source in services.toolbox.sources}
    problems = {
        source.name: redact_text(getattr(source, "error", "")) or None for source in services.toolbox.sources
    }
    rules = [*services.rules, *agent.rules]
    offered = {id(tool): name for name, tool in whole.tools.items()}
    review = unchecked(settings).get("review")

    def view(tool: Tool) -> shapes.ToolView:
        name = offered.get(id(tool))
        reviewed = review_of(tool, services.review, review, offered_as=name or "")
        shown = _tool_view(tool, name, rules, reviewed)
        if name in offer.deferred:
            shown.loaded = how.get(name, "no") if name is not None else "no"
        return replace(shown, description="", schema={}, ruled=[]) if brief else shown

    return shapes.GroupList(
        [_group_view(group, [*map(view, group.tools)], states, problems) for group in services.toolbox.groups]
    )


@router.get("/agents")
async def agents(context: TheContext) -> shapes.AgentList:
    services = await context.services()
    return shapes.AgentList([agent_view(agent, services) for agent in services.agents.values()])


def _group_view(
    group: Group,
    tools: list[shapes.ToolView],
    states: Mapping[str, str | None],
    problems: Mapping[str, str | None],
) -> shapes.GroupView:
    """Return a group for clients. `states` and `problems` belong to sources, by name: a group from a source
    has its name."""
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
        size_of(tool) // LETTERS,
    )


def agent_view(agent: Agent, services: Services) -> shapes.AgentView:
    """Return an agent with those of its tools that the user can see."""
    tools = [one for one in agent.tools if services.toolbox.knows(one)] if agent.tools is not None else None
    return shapes.AgentView(agent.name, agent.description, agent.model, tools)


# ── prompts of MCP servers ────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class ServerPromptView:
    """A prompt of an MCP server. `required` and `optional` are the names of its arguments."""

    server: str
    name: str
    description: str
    required: list[str]
    optional: list[str]


@dataclass(slots=True)
class ServerPromptList:
    items: list[ServerPromptView]


@dataclass(slots=True)
class FilledPrompt:
    text: str


prompt_routes = api_router("prompts")

_PATIENCE = 10.0  # seconds that a server may take to list its prompts before it is left out


@prompt_routes.get("/server-prompts")
async def server_prompts(context: TheContext) -> ServerPromptList:
    """List the prompts of all MCP servers, which are started if necessary."""
    sources = (await _sources(context)).values()
    found = await asyncio.gather(*(_prompts_of(source) for source in sources))
    return ServerPromptList([prompt for prompts in found for prompt in prompts])


@prompt_routes.post("/server-prompts/{server}/{name:path}")
async def fill_prompt(context: TheContext, server: str, name: str, body: PromptArguments) -> FilledPrompt:
    """Return a prompt's text with these arguments. Nothing is sent, because a user reads it first."""
    source = (await _sources(context)).get(server)
    if source is None:
        raise NotFound("MCP server", server)
    try:
        return FilledPrompt(await source.prompt(name, body.arguments))
    except ToolFailed as error:
        raise BadRequest(str(error)) from error


async def _sources(context: Context) -> dict[str, McpSource]:
    sources = (await context.services()).toolbox.sources
    return {source.name: source for source in sources if isinstance(source, McpSource)}


async def _prompts_of(source: McpSource) -> list[ServerPromptView]:
    try:
        async with asyncio.timeout(_PATIENCE):
            found = await source.prompts()
    except (ToolFailed, TimeoutError):
        return []  # The reason is shown with the server's tools.
    return [
        ServerPromptView(source.name, one.name, one.description, [*one.required], [*one.optional])
        for one in found
    ]
