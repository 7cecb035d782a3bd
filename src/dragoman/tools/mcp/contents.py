"""Turn an MCP result into a tool output: texts, files, and a note on what was left out for its size."""

from __future__ import annotations

import base64
import binascii
import json
import time
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import unquote

import mcp_types as types
from pydantic import JsonValue

from dragoman.errors import ToolFailed
from dragoman.messages.message import File
from dragoman.tools.tool import ToolContext, ToolOutput
from dragoman.web_address import split_uri

MOST_TEXT = 4_000_000  # characters of a result that are stored; the model is shown far less
MOST_FILES = 32
LARGEST_FILE = 20 << 20


async def output_of(result: types.CallToolResult, context: ToolContext) -> ToolOutput:
    """Return the result for the model.

    Raises ToolFailed with the server's words if the result is an error.
    """
    reading = _Reading(context)
    for block in result.content:
        await reading.take(block)
    text = reading.text
    if result.is_error:
        raise ToolFailed(text or "the server says that the call failed, and not why")
    structured: JsonValue = result.structured_content
    files = tuple(reading.files)
    if structured is None:
        return ToolOutput(text if result.content else None, attachments=files)
    if not text or _same(text, structured):
        return ToolOutput(structured, attachments=files)
    if isinstance(structured, dict) and len(structured) == 1 and _is_text_of(text, *structured.values()):
        return ToolOutput(text, attachments=files)  # Servers wrap a value that is not an object like this.
    whole = f"{text}\n{json.dumps(structured, ensure_ascii=False)}"
    return ToolOutput(_cut(whole), metadata={"structured": structured}, attachments=files)


class _Reading:
    """Content as it is read, block by block."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._texts: list[str] = []
        self.files: list[File] = []

    @property
    def text(self) -> str:
        return _cut("\n".join(self._texts))

    async def take(self, block: types.ContentBlock) -> None:
        match block:
            case types.TextContent():
                self._texts.append(block.text)
            case types.ImageContent():
                await self._file("image", block.data, block.mime_type, None)
            case types.AudioContent():
                await self._file("sound", block.data, block.mime_type, None)
            case types.ResourceLink():
                kind = f" ({block.mime_type})" if block.mime_type else ""
                description = f": {block.description}" if block.description else ""
                self._texts.append(f"[resource {block.title or block.name}{kind}: {block.uri}]{description}")
            case types.EmbeddedResource(resource=types.TextResourceContents() as resource):
                self._texts.append(f"[resource {resource.uri}]\n{resource.text}")
            case types.EmbeddedResource(resource=types.BlobResourceContents() as resource):
                kind = resource.mime_type or "application/octet-stream"
                await self._file("file", resource.blob, kind, _name(str(resource.uri)))

    async def _file(self, noun: str, data: str, kind: str, name: str | None) -> None:
        called = f"{noun} {name or len(self.files) + 1} ({kind})"
        if len(self.files) == MOST_FILES or len(data) > LARGEST_FILE * 4 / 3 + 4:
            self._texts.append(f"[{called} was left out: it is too large, or there are too many]")
            return
        try:
            content = base64.b64decode(data, validate=False)
        except binascii.Error:
            self._texts.append(f"[{called} was left out: the server sent it broken]")
            return
        self.files.append(await self._context.put_file(content, kind, name))
        self._texts.append(f"[{called}, {len(content)} bytes]")


def _name(uri: str) -> str | None:
    return PurePosixPath(unquote(split_uri(uri).path)).name[:200] or None


def _same(text: str, value: JsonValue) -> bool:
    """Return whether the text repeats the structured content, as servers are asked to do."""
    try:
        return bool(json.loads(text) == value)
    except (ValueError, RecursionError):
        return False


def _is_text_of(text: str, value: JsonValue) -> bool:
    lines = value if isinstance(value, list) else [value]
    return text == "\n".join(map(str, lines)) or _same(text, value)


def _cut(text: str) -> str:
    if len(text) <= MOST_TEXT:
        return text
    return f"{text[:MOST_TEXT]}\n[… {len(text) - MOST_TEXT} more characters were not kept …]"


# The prompts of an MCP server: texts that a user can start with.


LONGEST_PROMPT = 100_000  # characters


@dataclass(slots=True, frozen=True)
class ServerPrompt:
    """A prompt. `required` and `optional` are the names of its arguments."""

    name: str
    description: str
    required: tuple[str, ...]
    optional: tuple[str, ...]


def prompt_of(prompt: types.Prompt) -> ServerPrompt:
    arguments = prompt.arguments or []
    return ServerPrompt(
        prompt.name,
        prompt.description or prompt.title or "",
        tuple(one.name for one in arguments if one.required),
        tuple(one.name for one in arguments if not one.required),
    )


def text_of(result: types.GetPromptResult) -> str:
    """Return the prompt as the user's message, with the model's messages as quotations."""
    texts = []
    for message in result.messages:
        match message.content:
            case types.TextContent(text=text):
                said = text
            case types.EmbeddedResource(resource=types.TextResourceContents() as resource):
                said = f"[{resource.uri}]\n{resource.text}"
            case other:
                said = f"[{other.type} was left out]"
        texts.append(said if message.role == "user" else "\n".join(f"> {line}" for line in said.splitlines()))
    return "\n\n".join(texts)[:LONGEST_PROMPT]


# Pass an MCP server's progress reports on to the call, at a pace that people can read.


PACE = 0.05  # seconds between two reports; more frequent ones are dropped
LONGEST_REPORT = 2000  # characters


class Reporter:
    """Passes on the first report, the last one, and those between that are not too close together."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._last = -PACE

    async def report(self, progress: float, total: float | None, message: str | None) -> None:
        now = time.monotonic()
        if now - self._last < PACE and progress != total:
            return
        self._last = now
        value: dict[str, JsonValue] = {"progress": progress}
        if total is not None:
            value["total"] = total
        if message:
            value["message"] = message[:LONGEST_REPORT]
        self._context.progress(value)
