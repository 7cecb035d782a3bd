"""Convert the messages of a request for the Messages API: turns of two roles, made of blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass, field

from pydantic import JsonValue

from dragoman.messages.media import is_text, media_type
from dragoman.messages.message import CallState, File, Part, ProviderItem, Reasoning, Role, Text, ToolCall
from dragoman.messages.request import FIND_TOOLS, Request, found_by, found_in
from dragoman.wire.anthropic_messages.decode import cited_blocks
from dragoman.wire.anthropic_messages.shapes import (
    DOCUMENTS,
    IMAGES,
    NAME,
    SERVER_CALLS,
    SERVER_FIELDS,
    THINKING,
    Block,
    family,
    is_server_block,
)
from dragoman.wire.files import file_parts as files
from dragoman.wire.files.file_parts import Attachments
from dragoman.wire.lowering import (
    CallIds,
    RoleBlocks,
    asked_arguments,
    lower,
    may_replay,
    result_files,
    result_text,
    safe_name,
)
from dragoman.wire.options import hosted_tools

# Anthropic's own tools, as the option `hosted_tools` names them: searches, pages, code, MCP servers.


# A tool's type contains the date of its version. A plain name means the version below, which every later
# model takes. For a newer version, write its full type.
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
    """The hosted tools that a request asks for."""

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
    """Return whether the request has any hosted tool: without one, earlier results of such tools cannot be
    sent back."""
    return bool(hosted_tools(request.options)) or not request.extra.keys().isdisjoint(SERVER_FIELDS)


def _tool(tool: Block) -> Block:
    word = str(tool.get("type") or "")
    type = VERSIONS.get(word, word)
    if type == "mcp_toolset":
        return {**tool}
    return {**tool, "type": type, "name": tool.get("name") or re.sub(r"_\d{8}$", "", type)}


def _server(tool: Block) -> Block:
    """Return an MCP server, from Anthropic's or OpenAI's field names."""
    url = tool.get("url") or tool.get("server_url")
    token = tool.get("authorization_token") or tool.get("authorization")
    server: Block = {"type": "url", "name": tool.get("name") or tool.get("server_label") or "mcp", "url": url}
    return server if token is None else {**server, "authorization_token": token}


OPENING = "(The assistant spoke first.)"
GO_ON = "Go on."


def turns_of(request: Request, attachments: Attachments, *, references: bool = False) -> list[RoleBlocks]:
    """Return the turns. With `references`, tools that were found are loaded where that happened."""
    ids = CallIds()
    found = found_in(request) if references and family(request.model).structured else set[str]()
    turns: list[RoleBlocks] = []
    for message in lower(request.messages, speaks=lambda part: _is_server_part(part, request)):
        if message.role == "user":
            _add(turns, "user", [_content_part(part, attachments) for part in message.parts])
            continue
        named = {
            place: ids.next(part) for place, part in enumerate(message.parts) if isinstance(part, ToolCall)
        }
        blocks = [
            block
            for place, part in enumerate(message.parts)
            for block in _assistant_part(part, named.get(place, ""), request)
        ]
        _add(turns, "assistant", blocks)
        results = [
            _result(part, named[place], attachments, found)
            for place, part in enumerate(message.parts)
            if isinstance(part, ToolCall)
        ]
        if results:
            _add(turns, "user", results)
    if not turns or turns[0].role == "assistant":
        turns.insert(0, RoleBlocks("user", [{"type": "text", "text": OPENING}]))
    continues = turns[-1].role == "assistant" and request.continues
    waiting = _drop_torn_server_calls(turns)
    for turn in turns[:-1] if continues else turns:  # A reply that continues is sent back unchanged.
        while turn.role == "assistant" and turn.blocks and turn.blocks[-1]["type"] in THINKING:
            turn.blocks.pop()  # A reply must not end with reasoning.
    if not all(turn.blocks for turn in turns):
        turns = _without_empty(turns)
    if turns[-1].role == "assistant" and not (waiting or continues):
        turns.append(RoleBlocks("user", [{"type": "text", "text": GO_ON}]))
    return turns


def _without_empty(turns: list[RoleBlocks]) -> list[RoleBlocks]:
    left: list[RoleBlocks] = []
    for turn in turns:
        if turn.blocks:
            _add(left, turn.role, turn.blocks)
    return left


def _add(turns: list[RoleBlocks], role: Role, blocks: list[Block]) -> None:
    if turns and turns[-1].role == role:
        turns[-1].blocks += blocks
    else:
        turns.append(RoleBlocks(role, blocks))


def _assistant_part(part: Part, id: str, request: Request) -> Iterator[Block]:
    match part:
        case Text():
            if part.citations:
                yield from cited_blocks(part.text, part.citations, searches=asks_for_server_tools(request))
            else:
                yield {"type": "text", "text": part.text}
        case ToolCall():
            yield {"type": "tool_use", "id": id, "name": safe_name(part), "input": {**asked_arguments(part)}}
        case ProviderItem() if isinstance(part.opaque, dict) and _is_server_part(part, request):
            yield part.opaque
        case Reasoning() if may_replay(part, NAME, request.model):
            if isinstance(part.opaque, dict):
                theirs = is_server_block(str(part.opaque.get("type")))
                if not theirs or _is_server_part(part, request):
                    yield part.opaque
            elif part.signature is not None:
                yield {"type": "thinking", "thinking": part.text, "signature": part.signature}
        case _:
            pass


def _is_server_part(part: Part, request: Request) -> bool:
    """Return whether a part came from Anthropic's own tools and can be sent back.

    Without these tools, the API would refuse the request. Older conversations store such a part as reasoning.
    """
    return (
        isinstance(part, ProviderItem | Reasoning)
        and isinstance(part.opaque, dict)
        and is_server_block(str(part.opaque.get("type")))
        and may_replay(part, NAME, request.model)
        and asks_for_server_tools(request)
    )


def _result(call: ToolCall, id: str, attachments: Attachments, found: Set[str] = frozenset()) -> Block:
    if call.tool == FIND_TOOLS and (names := [name for name in found_by(call) if name in found]):
        references: list[JsonValue] = [{"type": "tool_reference", "tool_name": name} for name in names]
        return {"type": "tool_result", "tool_use_id": id, "content": references}
    brought = [_content_part(file, attachments) for file in result_files(call)]
    content: list[JsonValue] = [{"type": "text", "text": result_text(call)}, *brought]
    result: Block = {"type": "tool_result", "tool_use_id": id, "content": content}
    if call.state is not CallState.COMPLETED and not brought:  # An error can contain only text.
        result["is_error"] = True
    return result


def carries(file: File) -> bool:
    return media_type(file) in (*IMAGES, *DOCUMENTS) or is_text(file)


def _content_part(part: Part, attachments: Attachments) -> Block:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    assert isinstance(part, File)
    held = media_type(part)
    type = "image" if held in IMAGES else "document" if held in DOCUMENTS else None
    source = _source(part, attachments) if type else None
    if source is None:
        return {"type": "text", "text": files.text_of(part, attachments)}
    block: Block = {"type": type, "source": source}
    if type == "document" and part.name:
        block["title"] = part.name
    return block


def _source(file: File, attachments: Attachments) -> Block | None:
    if id := files.id_of(file, attachments):
        return {"type": "file", "file_id": id}
    if data := files.base64_of(file, attachments):
        return {"type": "base64", "media_type": media_type(file), "data": data}
    return {"type": "url", "url": file.url} if file.url else None


def _drop_torn_server_calls(turns: list[RoleBlocks]) -> bool:
    """Leave out calls of the provider's own tools that never got a result, and results without a call.

    The last reply may still wait for a result and continue from there. Return whether it does.
    """
    replies = [turn for turn in turns if turn.role == "assistant"]
    called = {block["id"] for turn in replies for block in turn.blocks if block["type"] in SERVER_CALLS}
    answered = {block["tool_use_id"] for turn in replies for block in turn.blocks if "tool_use_id" in block}
    behind = turns[-1].blocks if turns[-1].role == "user" else []
    running = all(block["type"] == "tool_result" for block in behind)
    waiting = False
    for turn in replies:
        remaining: list[Block] = []
        for block in turn.blocks:
            torn = block["type"] in SERVER_CALLS and block["id"] not in answered
            if torn and turn is replies[-1] and running:
                waiting = True
            elif torn or ("tool_use_id" in block and block["tool_use_id"] not in called):
                continue
            remaining.append(block)
        turn.blocks = remaining
    return waiting
