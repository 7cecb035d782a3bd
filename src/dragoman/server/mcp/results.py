"""Tools and results of calls in the words of the Model Context Protocol."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import mcp_types as types

from dragoman.messages import events as e
from dragoman.messages.message import CallState, File
from dragoman.store.store import Store
from dragoman.tools.tool import Tool

_LARGEST = 10 * 1024 * 1024  # bytes of an attachment that is sent along


def described(name: str, tool: Tool) -> types.Tool:
    """A tool as a client is shown it. What it says of itself binds nobody: rules decide, and people."""
    spec = tool.spec(name)
    hints = types.ToolAnnotations(
        read_only_hint=tool.writes == "nothing", idempotent_hint=tool.replay == "safe"
    )
    return types.Tool(
        name=name, description=spec.description, input_schema=dict(spec.parameters), annotations=hints
    )


async def result_of(call: e.CallEnd, store: Store, remarks: Sequence[str] = ()) -> types.CallToolResult:
    """What came of a call. One that did not run, or failed, is an error that its caller can read, with our
    `remarks` on it."""
    result = call.result
    text = "\n\n".join([result.text, *([result.note] if result.note else []), *remarks])
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=text)]
    for file in result.attachments:
        content.append(await _attachment(file, store))
    completed = call.state is CallState.COMPLETED
    value = result.value if completed and isinstance(result.value, dict) else None
    return types.CallToolResult(content=content, structured_content=value, is_error=not completed)


def failure(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)


async def _attachment(file: File, store: Store) -> types.ContentBlock:
    name = file.name or file.media_type
    if file.blob is None or (file.size or 0) > _LARGEST:
        where = file.url or f"dragoman://blobs/{file.blob}"
        return types.ResourceLink(type="resource_link", name=name, uri=where, mime_type=file.media_type)
    data = base64.b64encode(await store.blob(file.blob)).decode()
    if file.media_type.startswith("image/"):
        return types.ImageContent(type="image", data=data, mime_type=file.media_type)
    if file.media_type.startswith("audio/"):
        return types.AudioContent(type="audio", data=data, mime_type=file.media_type)
    uri = f"dragoman://blobs/{file.blob}"
    contents = types.BlobResourceContents(uri=uri, blob=data, mime_type=file.media_type)
    return types.EmbeddedResource(type="resource", resource=contents)
