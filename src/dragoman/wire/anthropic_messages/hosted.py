"""Anthropic's own tools, as the option `hosted_tools` names them: searches, pages, code, MCP servers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pydantic import JsonValue

from dragoman.messages.request import Request
from dragoman.wire.anthropic_messages.shapes import SERVER_FIELDS, Block
from dragoman.wire.options import hosted_tools

# A tool has the date of its version in its type. These are what a plain word stands for: every model since
# the version came out takes them, and who wants a newer one writes its type.
VERSIONS = {
    "web_search": "web_search_20250305",
    "web_fetch": "web_fetch_20250910",
    "code_execution": "code_execution_20250825",
    "code_interpreter": "code_execution_20250825",
}
MCP = ("mcp", "url")
MCP_BETA = "mcp-client-2025-11-20"


@dataclass(slots=True)
class HostedTools:
    """What of a request asks for them."""

    tools: list[JsonValue] = field(default_factory=list)
    servers: list[JsonValue] = field(default_factory=list)


def hosted_of(request: Request) -> HostedTools:
    found = HostedTools()
    for tool in hosted_tools(request.options):
        if not isinstance(tool, dict):
            continue
        if tool.get("type") in MCP:
            server = _server(tool)
            found.servers.append(server)
            found.tools.append({"type": "mcp_toolset", "mcp_server_name": server["name"]})
        else:
            found.tools.append(_tool(tool))
    return found


def asks_for_server_tools(request: Request) -> bool:
    """Whether any is asked for: without one, what they did before may not be sent back."""
    return bool(hosted_tools(request.options)) or not request.extra.keys().isdisjoint(SERVER_FIELDS)


def _tool(tool: Block) -> Block:
    word = str(tool.get("type") or "")
    type = VERSIONS.get(word, word)
    if type == "mcp_toolset":
        return {**tool}
    return {**tool, "type": type, "name": tool.get("name") or re.sub(r"_\d{8}$", "", type)}


def _server(tool: Block) -> Block:
    """An MCP server, in their words or in those of OpenAI's."""
    url = tool.get("url") or tool.get("server_url")
    token = tool.get("authorization_token") or tool.get("authorization")
    server: Block = {"type": "url", "name": tool.get("name") or tool.get("server_label") or "mcp", "url": url}
    return server if token is None else {**server, "authorization_token": token}
