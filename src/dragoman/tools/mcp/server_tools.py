"""Read what an MCP server lists and sends from the SDK's types: definitions of tools, resources."""

from __future__ import annotations

from collections.abc import Collection

import mcp_types as types

from dragoman.errors import ToolFailed
from dragoman.tools.mcp.contents import output_of
from dragoman.tools.mcp.tool_list import Definition, fingerprint_of
from dragoman.tools.tool import Replay, ToolContext, ToolOutput

LONGEST_DESCRIPTION = 10_000
MOST = 500  # resources that are listed; there may be more


def definitions_of(listed: list[types.Tool]) -> tuple[tuple[Definition, ...], list[str]]:
    """Return the definitions that a server lists, and why some cannot be offered."""
    wrong = [
        f"{one.name} needs the tasks of 2025-11-25, which Dragoman does not have: it is left out"
        for one in listed
        if _needs_task(one)
    ]
    return tuple(_definition(one) for one in listed if not _needs_task(one)), wrong


def _needs_task(tool: types.Tool) -> bool:
    return tool.execution is not None and tool.execution.task_support == "required"


def _definition(tool: types.Tool) -> Definition:
    shown = tool.model_dump(
        mode="json",
        by_alias=True,
        exclude_none=True,
        include={"name", "title", "description", "input_schema", "annotations"},
    )
    return Definition(
        tool.name,
        (tool.description or tool.title or "")[:LONGEST_DESCRIPTION],
        tool.input_schema,
        _replay(tool.annotations),
        describe_hints(tool.annotations),
        fingerprint_of(shown),
    )


def describe_hints(hints: types.ToolAnnotations | None) -> str:
    """Return the server's claims, as a sentence for the user who decides. They have no other effect."""
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
    """Return the resources, read like a tool result that contains them."""
    if not result.contents:
        raise ToolFailed("The resource is empty or missing.")
    blocks: list[types.ContentBlock] = [
        types.EmbeddedResource(type="resource", resource=one) for one in result.contents
    ]
    return await output_of(types.CallToolResult(content=blocks), context)
