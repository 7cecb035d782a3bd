"""Makes tools of the definitions that an MCP server lists, each with a fingerprint of its definition."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Collection
from typing import Annotated, TypeAlias

import mcp_types as types
from pydantic import BaseModel, ConfigDict, Field

from dragoman.errors import ConfigError, ToolFailed
from dragoman.messages.message import Arguments, canonical
from dragoman.tools.json_schema import JsonArguments, JsonParameters
from dragoman.tools.mcp.contents import output_of
from dragoman.tools.mcp.servers import McpServer, local_name, offered_name
from dragoman.tools.schema import Parameters
from dragoman.tools.tool import Replay, Tool, ToolContext, ToolOutput

CallTool: TypeAlias = Callable[[str, Arguments, ToolContext], Awaitable[ToolOutput]]

LONGEST_DESCRIPTION = 10_000


def tools_of(
    server: str, settings: McpServer, definitions: list[types.Tool], call: CallTool
) -> tuple[tuple[Tool, ...], list[str]]:
    """The tools that can be offered, in the server's order, and what is wrong with the others."""
    tools: dict[str, Tool] = {}
    wrong: list[str] = []
    for definition in definitions:
        if definition.name in tools:
            wrong.append(f"there are two tools named {definition.name}: the second one is left out")
            continue
        if definition.execution is not None and definition.execution.task_support == "required":
            wrong.append(f"{definition.name} runs only as a task, which is not offered here: it is left out")
            continue
        try:
            tools[definition.name] = tool_of(server, settings, definition, call)
        except ConfigError as error:
            wrong.append(f"{error}: it is left out")
    return tuple(tools.values()), wrong


def tool_of(server: str, settings: McpServer, definition: types.Tool, call: CallTool) -> Tool:
    name = offered_name(server, definition.name)

    async def run(arguments: BaseModel, context: ToolContext) -> ToolOutput:
        assert isinstance(arguments, JsonArguments)
        return await call(definition.name, arguments.root, context)

    return Tool(
        name=name,
        description=(definition.description or definition.title or "")[:LONGEST_DESCRIPTION],
        parameters=JsonParameters(name, definition.input_schema),
        run=run,
        permission=f"mcp.{server}.{local_name(definition.name)}",
        patterns=lambda _: (),
        replay=settings.replay or _replay(definition.annotations),
        review=settings.review,
        timeout=settings.timeout,
        cancellable=True,
        server=server,
        fingerprint=fingerprint_of(definition),
        remark=describe_hints(definition.annotations),
    )


def fingerprint_of(definition: types.Tool) -> str:
    """Changes with everything that a person, or a model, is shown of the tool."""
    shown = definition.model_dump(
        mode="json",
        by_alias=True,
        exclude_none=True,
        include={"name", "title", "description", "input_schema", "annotations"},
    )
    return hashlib.sha256(canonical(shown).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def describe_hints(hints: types.ToolAnnotations | None) -> str:
    """What the server claims, as a sentence for the person who decides. Nothing follows from it."""
    if hints is None:
        return ""
    claims = []
    if hints.read_only_hint:
        claims.append("it only reads")
    elif hints.destructive_hint is not None:
        claims.append("it may destroy something" if hints.destructive_hint else "it destroys nothing")
    if hints.idempotent_hint and not hints.read_only_hint:
        claims.append("a second run changes nothing more")
    if hints.open_world_hint is not None:
        claims.append(
            "it reaches beyond its own data" if hints.open_world_hint else "it keeps to its own data"
        )
    return f"The server says that {', that '.join(claims)}." if claims else ""


def _replay(hints: types.ToolAnnotations | None) -> Replay:
    harmless = hints is not None and (hints.read_only_hint or hints.idempotent_hint)
    return "safe" if harmless else "never"


# The resources of an MCP server as two tools: what there is, and what one of them holds.


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
