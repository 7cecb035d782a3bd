"""Routes for the prompts of MCP servers: which there are, and the text of one."""

from __future__ import annotations

import asyncio

from dragoman.errors import BadRequest, NotFound, ToolFailed
from dragoman.server.api_router import api_router
from dragoman.server.bodies import PromptArguments
from dragoman.server.context import Context, Person, TheContext
from dragoman.server.prompt_shapes import FilledPrompt, ServerPromptList, ServerPromptView
from dragoman.tools.mcp.source import McpSource

router = api_router("prompts")

_PATIENCE = 10.0  # seconds for a server to say what it has: one that is late is left out


@router.get("/server-prompts")
async def server_prompts(context: TheContext, person: Person) -> ServerPromptList:
    """Of all servers that are there; each is started if need be."""
    found = await asyncio.gather(*(_prompts_of(source) for source in _sources(context).values()))
    return ServerPromptList([prompt for prompts in found for prompt in prompts])


@router.post("/server-prompts/{server}/{name:path}")
async def fill_prompt(
    context: TheContext, person: Person, server: str, name: str, body: PromptArguments
) -> FilledPrompt:
    """Its text with these arguments. Nothing is sent: a person reads it first."""
    source = _sources(context).get(server)
    if source is None:
        raise NotFound("MCP server", server)
    try:
        return FilledPrompt(await source.prompt(name, body.arguments))
    except ToolFailed as error:
        raise BadRequest(str(error)) from error


def _sources(context: Context) -> dict[str, McpSource]:
    sources = context.runtime.services.toolbox.sources
    return {source.name: source for source in sources if isinstance(source, McpSource)}


async def _prompts_of(source: McpSource) -> list[ServerPromptView]:
    try:
        async with asyncio.timeout(_PATIENCE):
            found = await source.prompts()
    except (ToolFailed, TimeoutError):
        return []  # why it is not there is shown with its tools
    return [
        ServerPromptView(source.name, one.name, one.description, [*one.required], [*one.optional])
        for one in found
    ]
