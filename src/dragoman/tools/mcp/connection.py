"""Hold a live connection to an MCP server: list and call its tools, and notice changes and its end."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from types import TracebackType
from typing import Self, TypeAlias

import anyio
import httpx2
import mcp_types as types
from mcp import Client, MCPError, UrlElicitationRequiredError
from mcp.client._transport import ReadStream, TransportStreams
from mcp.client.session import IncomingMessage
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.message import SessionMessage
from mcp_types import CONNECTION_CLOSED, URL_ELICITATION_REQUIRED
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from dragoman.background import in_thread
from dragoman.errors import ToolFailed
from dragoman.messages.message import Arguments
from dragoman.tools.mcp.contents import Reporter, ServerPrompt, output_of, prompt_of, text_of
from dragoman.tools.mcp.diagnostics import UNKNOWN_EFFECT, ConnectionLost, Diagnostics
from dragoman.tools.mcp.elicitation import Elicitation
from dragoman.tools.mcp.errors import BROKEN_OFF, CLOSED, NO_MESSAGE, describe, own_words
from dragoman.tools.mcp.http import open_http
from dragoman.tools.mcp.secrets import Find, resolve_references
from dragoman.tools.mcp.server_tools import contents_of, describe_resources
from dragoman.tools.mcp.servers import McpServer
from dragoman.tools.mcp.stdio import open_program
from dragoman.tools.mcp.tasks import TaskExtension
from dragoman.tools.tool import ToolContext, ToolOutput

Incoming: TypeAlias = SessionMessage | Exception

MOST_PAGES = 100
MOST_TOOLS = 2000
MOST_OF_A_LIST = 32 << 20  # bytes, of all pages
RELISTEN = 5.0  # seconds before a lost subscription is requested again
# seconds for a subscription to start before the list is read; if later, the list is read again
FOLLOWED = 1.0
LAST_ANSWERS = 3.0  # seconds for the answers to other calls, once the server has forgotten our session

for _name in ("mcp", "client"):  # Silence the SDK's loggers: Dragoman reports what matters in its own words.
    logging.getLogger(_name).addHandler(logging.NullHandler())


@dataclass(slots=True)
class Connection:
    """An open connection. `changed` is set when its list of tools changed, and when it ended."""

    name: str
    client: Client
    elicitation: Elicitation
    diagnostics: Diagnostics
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    listed: bool = False  # its tools were requested
    # set when changes are followed, if the server reports them
    follows: asyncio.Event = field(default_factory=asyncio.Event)
    _over: asyncio.Event = field(default_factory=asyncio.Event)
    _asking: int = 0  # requests without an answer so far
    _answered: asyncio.Event = field(default_factory=asyncio.Event)  # set when none of them is open

    @property
    def ended(self) -> bool:
        return self._over.is_set()

    @property
    def title(self) -> str:
        info = self.client.server_info
        return f"{info.title or info.name} {info.version}".strip() if info is not None else ""

    async def definitions(self) -> list[types.Tool]:
        """Return the tools of all pages. A list that never ends is cut off at a limit."""
        found: list[types.Tool] = []
        cursor: str | None = None
        size = 0
        if self.client.server_capabilities.tools is None:
            return found
        self.listed = True
        for _ in range(MOST_PAGES):
            page = await self.client.list_tools(cursor=cursor)
            found += page.tools
            size += sum(len(tool.model_dump_json()) for tool in page.tools)
            if page.next_cursor is None or page.next_cursor == cursor:
                break
            if len(found) >= MOST_TOOLS or size > MOST_OF_A_LIST:
                break
            cursor = page.next_cursor
        return found[:MOST_TOOLS]

    async def call(self, tool: str, arguments: Arguments, context: ToolContext) -> ToolOutput:
        """Return the result of a call. Raises ToolFailed with an explanation, or ConnectionLost."""
        with self.elicitation.serving(context), self.in_words():
            return await output_of(await self._result(tool, arguments, context), context)

    async def list_resources(self, context: ToolContext) -> ToolOutput:
        resources: list[types.Resource] = []
        cursor: str | None = None
        with self.elicitation.serving(context), self.in_words():
            for _ in range(MOST_PAGES):
                page = await self.client.list_resources(cursor=cursor)
                resources += page.resources
                if page.next_cursor is None or page.next_cursor == cursor or len(resources) > MOST_TOOLS:
                    break
                cursor = page.next_cursor
            templates = (await self.client.list_resource_templates()).resource_templates
            return describe_resources(resources, templates)

    async def read_resource(self, uri: str, context: ToolContext) -> ToolOutput:
        with self.elicitation.serving(context), self.in_words():
            return await contents_of(await self.client.read_resource(uri), context)

    async def prompts(self) -> list[ServerPrompt]:
        with self.in_words():
            if self.client.server_capabilities.prompts is None:
                return []
            return [prompt_of(one) for one in (await self.client.list_prompts()).prompts]

    async def prompt(self, name: str, values: dict[str, str]) -> str:
        with self.in_words():
            return text_of(await self.client.get_prompt(name, values))

    @contextmanager
    def in_words(self) -> Iterator[None]:
        """Turn errors into a ToolFailed with an explanation, or ConnectionLost."""
        self._asking += 1
        try:
            yield
        except MCPError as error:
            if self._unknown_session(error):
                self.end()
                raise ConnectionLost(error.message, ran=False) from error
            if error.code == CONNECTION_CLOSED and (self.ended or error.message == CLOSED):
                self.end()  # also if only one direction is closed
                raise ConnectionLost(error.message, ran=True) from error
            if ours := own_words(error, self.diagnostics):
                effect = f". {UNKNOWN_EFFECT}" if ours.startswith(BROKEN_OFF) else ""
                raise ToolFailed(f"{self.name}: {ours}{effect}") from error
            raise ToolFailed(f"{self.name} says: {error.message[:2000]}") from error
        except ToolFailed:
            raise
        except Exception as error:  # a malformed result, or one that does not fit the server's output schema
            raise ToolFailed(f"{self.name}: {describe(error)}") from error
        finally:
            self._asking -= 1
            if not self._asking:
                self._answered.set()

    async def _result(self, tool: str, arguments: Arguments, context: ToolContext) -> types.CallToolResult:
        report = Reporter(context).report
        try:
            return await self.client.call_tool(tool, arguments, progress_callback=report)
        except MCPError as error:
            if error.code != URL_ELICITATION_REQUIRED:
                raise
            required = UrlElicitationRequiredError.from_error(error.error)
            if not await self.elicitation.visit_all(required.elicitations):
                raise
            return await self.client.call_tool(tool, arguments, progress_callback=report)

    def _unknown_session(self, error: MCPError) -> bool:
        """Return whether the server lost our session in a restart. Each server reports this differently."""
        message = error.message.lower()
        return self.diagnostics.status in (400, 404) and ("session" in message or message == NO_MESSAGE)

    def end(self) -> None:
        self._over.set()
        self.changed.set()

    async def settle(self) -> None:
        """Wait briefly for pending answers: other calls may receive the same error."""
        with anyio.move_on_after(LAST_ANSWERS):
            while self._asking:
                self._answered.clear()
                await self._answered.wait()

    async def pause(self, seconds: float) -> None:
        """Wait for that time, or until the connection ends."""
        with anyio.move_on_after(seconds):
            await self._over.wait()


@asynccontextmanager
async def connect(
    name: str,
    server: McpServer,
    elicitation: Elicitation,
    *,
    find: Find,
    auth: httpx2.Auth | None,
    diagnostics: Diagnostics,
) -> AsyncIterator[Connection]:
    """Connect, initialize, and follow changes of the server's list until the block ends."""
    connection: Connection | None = None

    async def on_message(message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification) and connection is not None:
            connection.changed.set()

    def on_end() -> None:
        if connection is not None:
            connection.end()

    # This may read the keyring.
    transport = await in_thread(lambda: _transport(server, find, auth, diagnostics))
    client = Client(
        _WatchedTransport(transport, on_end),
        client_info=types.Implementation(name="dragoman", version=version("dragoman")),
        mode=server.protocol,
        cache=None,
        message_handler=on_message,
        elicitation_callback=elicitation.elicit,
        list_roots_callback=elicitation.roots if server.roots else None,
        sampling_callback=elicitation.sample if server.sampling else None,
        extensions=[TaskExtension(elicitation.tell)],
    )
    async with client:
        connection = Connection(name, client, elicitation, diagnostics)
        async with anyio.create_task_group() as tasks:
            if _reports_changes(client):
                tasks.start_soon(_follow, connection)
                with anyio.move_on_after(min(FOLLOWED, server.start_timeout / 2)):
                    await connection.follows.wait()
            try:
                yield connection
            finally:
                connection.end()  # Calls under way end with it.
            tasks.cancel_scope.cancel()


def _transport(
    server: McpServer, find: Find, auth: httpx2.Auth | None, diagnostics: Diagnostics
) -> AbstractAsyncContextManager[TransportStreams]:
    if server.command is not None:
        args = [resolve_references({"": text}, find)[""] for text in server.args]
        hosts = server.hosts if server.cage else None
        return open_program(
            server.command, args, resolve_references(server.env, find), server.cwd, diagnostics, hosts=hosts
        )
    assert server.url is not None
    return open_http(
        server.url,
        resolve_references(server.headers, find),
        sse=server.kind == "sse",
        auth=auth,
        patience=server.timeout,
        diagnostics=diagnostics,
    )


def _reports_changes(client: Client) -> bool:
    """Return whether the server reports changes. With the newest protocol, it does so to subscribers."""
    tools = client.server_capabilities.tools
    return (
        client.protocol_version in MODERN_PROTOCOL_VERSIONS and tools is not None and bool(tools.list_changed)
    )


async def _follow(connection: Connection) -> None:
    while True:
        try:
            async with connection.client.listen(tools_list_changed=True) as changes:
                if not changes.honored.tools_list_changed:
                    return  # The server declines.
                if connection.listed:
                    connection.changed.set()  # Changes before the subscription were not reported.
                connection.follows.set()
                async for _ in changes:
                    connection.changed.set()
        except (SubscriptionLost, TimeoutError):
            connection.changed.set()
        except MCPError as error:
            if not own_words(error, connection.diagnostics).startswith(BROKEN_OFF):
                return  # It does not report changes after all.
            connection.changed.set()
        finally:
            connection.follows.set()  # Also set if it fails at first, because then waiting is useless.
        await anyio.sleep(RELISTEN)


# ── the end of a transport ────────────────────────────────────────────────────────────────────────


class _WatchedTransport(AbstractAsyncContextManager[TransportStreams]):
    """A transport of the SDK that calls `on_end` when nothing more will arrive, which the SDK does not
    report."""

    def __init__(
        self, transport: AbstractAsyncContextManager[TransportStreams], on_end: Callable[[], None]
    ) -> None:
        self._transport = transport
        self._on_end = on_end

    async def __aenter__(self) -> TransportStreams:
        read, write = await self._transport.__aenter__()
        return _WatchedStream(read, self._on_end), write

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._transport.__aexit__(kind, error, trace)


class _WatchedStream:
    """The incoming stream. A message keeps the context of its call, if the transport knows it."""

    def __init__(self, stream: ReadStream[Incoming], on_end: Callable[[], None]) -> None:
        self._stream = stream
        self._on_end = on_end

    @property
    def last_context(self) -> contextvars.Context | None:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Incoming:
        try:
            return await self._stream.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            self._on_end()
            raise

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Incoming:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        await self.aclose()
        return None
