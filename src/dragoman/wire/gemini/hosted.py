"""Google's own tools, as the option `hosted_tools` names them: search, code, pages, files, MCP servers."""

from __future__ import annotations

import re

from pydantic import JsonValue

from dragoman.messages.request import Request
from dragoman.wire.options import hosted_tools

MEANT = {"web_search": "googleSearch", "code_interpreter": "codeExecution", "web_fetch": "urlContext"}
MCP = "mcp"


def hosted_of(request: Request) -> list[JsonValue]:
    """Each as an object of one field, which is how a request names a tool of theirs."""
    return [_tool(tool) for tool in hosted_tools(request.options) if isinstance(tool, dict)]


def asks_for_own_tools(request: Request) -> bool:
    """Whether any is asked for: without one, what they did before is not sent back."""
    return bool(hosted_tools(request.options)) or "tools" in request.extra


def _tool(tool: dict[str, JsonValue]) -> JsonValue:
    word = tool.get("type")
    if not isinstance(word, str):
        return tool  # in their own form already
    settings = {name: value for name, value in tool.items() if name != "type"}
    if word == MCP:
        return {"mcpServers": [_server(settings)]}
    return {MEANT.get(word) or _camel(word): settings}


def _server(settings: dict[str, JsonValue]) -> JsonValue:
    """An MCP server, in the words of OpenAI's and Anthropic's."""
    token = settings.get("authorization_token") or settings.get("authorization")
    transport: dict[str, JsonValue] = {"url": settings.get("url") or settings.get("server_url")}
    if token is not None:
        transport["headers"] = {"Authorization": f"Bearer {token}"}
    name = settings.get("name") or settings.get("server_label") or MCP
    return {"name": name, "streamableHttpTransport": transport}


def _camel(word: str) -> str:
    return re.sub(r"_(\w)", lambda found: found[1].upper(), word)
