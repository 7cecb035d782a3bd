"""Run all scenarios of the official conformance suite for servers. Each expected failure has its reason."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvicorn
from pydantic import JsonValue
from starlette.types import Receive, Scope, Send

from dragoman import Runtime, ScriptedModel, ToolContext, ToolFailed, ToolOutput, tool
from dragoman.server.auth import Auth
from dragoman.server.mcp.caller import WithCaller
from dragoman.server.mcp.server import http_app, mcp_server
from tests.npm import NODE
from tests.patience import PATIENCE
from tests.tools.mcp.npm import script

pytestmark = pytest.mark.slow

NOT_OFFERED = {
    "logging-set-level": "logs are not sent to clients",
    "tools-call-with-logging": "logs are not sent to clients",
    "tools-call-sampling": "a tool asks our own models, not the client's",
    "completion-complete": "there is nothing to complete",
    "resources-read-text": "the suite reads a resource of its own; ours are conversations",
    "resources-read-binary": "the suite reads a resource of its own; ours are conversations",
    "resources-templates-read": "the suite reads a resource of its own; ours are conversations",
    "resources-subscribe": "conversations are read, not watched",
    "resources-unsubscribe": "conversations are read, not watched",
    "prompts-get-simple": "the suite gets a prompt of its own; ours are commands and skills",
    "prompts-get-with-args": "the suite gets a prompt of its own; ours are commands and skills",
    "prompts-get-embedded-resource": "the suite gets a prompt of its own; ours are commands and skills",
    "prompts-get-with-image": "the suite gets a prompt of its own; ours are commands and skills",
}


@tool(name="test_simple_text")
def simple_text() -> str:
    """A text."""
    return "This is a simple text response for testing."


@tool(name="test_image_content")
async def image_content(context: ToolContext) -> ToolOutput:
    """A picture."""
    return ToolOutput("", attachments=(await context.put_file(b"\x89PNG", "image/png", None),))


@tool(name="test_audio_content")
async def audio_content(context: ToolContext) -> ToolOutput:
    """A sound."""
    return ToolOutput("", attachments=(await context.put_file(b"RIFF", "audio/wav", None),))


@tool(name="test_error_handling")
def error_handling() -> str:
    """An error."""
    raise ToolFailed("This tool intentionally returns an error for testing")


@tool(name="test_tool_with_progress")
def tool_with_progress() -> Iterator[JsonValue]:
    """Progress."""
    yield from ("0", "50", "100", "done")


@tool(name="test_elicitation")
async def elicitation(message: str, context: ToolContext) -> str:
    """A question."""
    asked = {"type": "object", "properties": {"username": {"type": "string"}}, "required": ["username"]}
    return f"User response: {await context.ask(message, schema=asked)}"


@tool(name="test_embedded_resource")
async def embedded_resource(context: ToolContext) -> ToolOutput:
    """A file."""
    return ToolOutput("", attachments=(await context.put_file(b"text", "text/plain", "a.txt"),))


@tool(name="test_multiple_content_types")
async def multiple_content_types(context: ToolContext) -> ToolOutput:
    """A text, a picture and a file."""
    picture = await context.put_file(b"\x89PNG", "image/png", None)
    return ToolOutput("Mixed", attachments=(picture, await context.put_file(b"{}", "application/json", None)))


@tool(name="test_elicitation_sep1034_defaults")
async def elicitation_defaults(context: ToolContext) -> str:
    """A form that is filled in already."""
    fields = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    return str(await context.ask("Who?", schema={"type": "object", "properties": fields, "required": []}))


@tool(name="test_elicitation_sep1330_enums")
async def elicitation_enums(context: ToolContext) -> str:
    """Every way to choose."""
    options = ["option1", "option2", "option3"]
    titled = [{"const": f"value{n}", "title": f"Option {n}"} for n in (1, 2, 3)]
    fields = {
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {"type": "string", "enum": options, "enumNames": ["One", "Two", "Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    return str(await context.ask("Which?", schema={"type": "object", "properties": fields, "required": []}))


TOOLS = (
    *(simple_text, image_content, audio_content, embedded_resource, multiple_content_types),
    *(error_handling, tool_with_progress, elicitation, elicitation_defaults, elicitation_enums),
)


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[str]:
    """A server as `dragoman mcp serve --http` has it, behind one who has the key: the suite has none."""
    models = WithCaller(lambda name: ScriptedModel([]))
    async with Runtime(folder / "chat.db", model=models, tools=TOOLS, allow=["*"]) as runtime:
        auth = Auth(runtime.store, b"x" * 32)
        app = http_app(mcp_server(runtime, {}), auth, {"127.0.0.1", "localhost"})

        async def with_key(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                header = (b"authorization", f"Bearer {auth.key}".encode())
                scope = {**scope, "headers": [*scope["headers"], header]}
            await app(scope, receive, send)

        with socket.create_server(("127.0.0.1", 0)) as listener:
            config = uvicorn.Config(with_key, log_level="warning", timeout_graceful_shutdown=1)
            server = uvicorn.Server(config)
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            try:
                yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
            finally:
                server.should_exit = True
                await serving


@pytest.mark.long
async def test_the_suite_finds_what_is_offered_to_be_right(tmp_path: Path) -> None:
    """F2, F3"""
    async with served(tmp_path) as url:
        process = await asyncio.create_subprocess_exec(
            NODE,
            await asyncio.to_thread(script, "conformance", "dist/index.js"),
            *("server", "--url", url),
            cwd=tmp_path,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(PATIENCE):
            out, _ = await process.communicate()
    found = re.findall(r"^([✓✗]) ([\w-]+): \d+ passed", out.decode(), re.MULTILINE)
    assert {name for mark, name in found if mark == "✗"} == {*NOT_OFFERED}, out.decode()
    page = (Path(__file__).parents[3] / "docs" / "reference" / "mcp.md").read_text("utf-8")
    assert f"{len(found) - len(NOT_OFFERED)} of its {len(found)} scenarios pass" in page
    assert dict(re.findall(r"^\| `([\w-]+)` \| (.+) \|$", page, re.MULTILINE)) == NOT_OFFERED
