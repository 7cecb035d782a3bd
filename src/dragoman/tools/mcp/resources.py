"""The resources of an MCP server as two tools: what there is, and what one of them holds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Annotated, TypeAlias

import mcp_types as types
from pydantic import BaseModel, ConfigDict, Field

from dragoman.errors import ToolFailed
from dragoman.tools.mcp.names import offered_name
from dragoman.tools.mcp.results import output_of
from dragoman.tools.mcp.servers import McpServer
from dragoman.tools.schema import Parameters
from dragoman.tools.tool import Tool, ToolContext, ToolOutput

MOST = 500  # that are listed; there may be more

ListResources: TypeAlias = Callable[[ToolContext], Awaitable[ToolOutput]]
ReadResource: TypeAlias = Callable[[str, ToolContext], Awaitable[ToolOutput]]


class _Nothing(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Uri(BaseModel):
    model_config = ConfigDict(extra="forbid")

    uri: Annotated[str, Field(min_length=1, max_length=4000, description="as the list names it")]


def resource_tools(
    server: str, settings: McpServer, taken: Collection[str], find: ListResources, read: ReadResource
) -> list[Tool]:
    """In our own words, since a server's resources are not described by tools. Where the server has tools of
    these names, they are what is meant."""

    async def run_find(_: BaseModel, context: ToolContext) -> ToolOutput:
        return await find(context)

    async def run_read(arguments: BaseModel, context: ToolContext) -> ToolOutput:
        assert isinstance(arguments, _Uri)
        return await read(arguments.uri, context)

    listing = Tool(
        name=offered_name(server, "list_resources"),
        description=f"List what {server} has to read: addresses, names, descriptions.",
        parameters=Parameters("list_resources", _Nothing),
        run=run_find,
        permission=f"mcp.{server}.resources",
        patterns=lambda _: (),
        replay="safe",
        writes="nothing",
        review=settings.review,
        timeout=settings.timeout,
        cancellable=True,
        server=server,
    )
    reading = Tool(
        name=offered_name(server, "read_resource"),
        description=f"Read a resource of {server} by its address.",
        parameters=Parameters("read_resource", _Uri),
        run=run_read,
        permission=f"mcp.{server}.resources",
        patterns=lambda arguments: (str(arguments.get("uri", "")),),
        replay="safe",
        writes="nothing",
        review=settings.review,
        timeout=settings.timeout,
        cancellable=True,
        server=server,
    )
    return [tool for tool in (listing, reading) if tool.name not in taken]


def describe_resources(
    resources: Collection[types.Resource], templates: Collection[types.ResourceTemplate]
) -> ToolOutput:
    lines = [_line(str(one.uri), one) for one in [*resources][:MOST]]
    if len(resources) > MOST:
        lines.append(f"… and {len(resources) - MOST} more")
    if templates:
        lines += ["", "Addresses with places to fill in:"]
        lines += [_line(one.uri_template, one) for one in [*templates][:MOST]]
    return ToolOutput("\n".join(lines) if lines else "There are none.")


def _line(address: str, one: types.Resource | types.ResourceTemplate) -> str:
    kind = f" ({one.mime_type})" if one.mime_type else ""
    said = f": {one.description}" if one.description else ""
    return f"{address}  {one.title or one.name}{kind}{said}"


async def contents_of(result: types.ReadResourceResult, context: ToolContext) -> ToolOutput:
    """As a tool's result with these resources in it would be read."""
    if not result.contents:
        raise ToolFailed("the resource is empty, or is not there")
    blocks: list[types.ContentBlock] = [
        types.EmbeddedResource(type="resource", resource=one) for one in result.contents
    ]
    return await output_of(types.CallToolResult(content=blocks), context)
