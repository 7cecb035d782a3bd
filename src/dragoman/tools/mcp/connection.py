"""A server's settings in, a live connection out: what it calls itself, its tools, calls, word of its end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import version

import anyio
import httpx2
import mcp_types as types
from mcp import Client, MCPError, UrlElicitationRequiredError
from mcp.client._transport import TransportStreams
from mcp.client.session import IncomingMessage
from mcp.client.subscriptions import SubscriptionLost
from mcp_types import CONNECTION_CLOSED, URL_ELICITATION_REQUIRED
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from dragoman.errors import ToolFailed
from dragoman.messages.parts import Arguments
from dragoman.tools.mcp.diagnostics import Evidence
from dragoman.tools.mcp.elicitation import Elicitation
from dragoman.tools.mcp.errors import in_words
from dragoman.tools.mcp.http import address
from dragoman.tools.mcp.references import Find, resolved
from dragoman.tools.mcp.reporting import Reporter
from dragoman.tools.mcp.results import output_of
from dragoman.tools.mcp.servers import McpServer
from dragoman.tools.mcp.stdio import program
from dragoman.tools.mcp.watched import Watched
from dragoman.tools.thread import in_thread
from dragoman.tools.tool import ToolContext, ToolOutput

MOST_PAGES = 100
MOST_TOOLS = 2000
RELISTEN = 5.0  # seconds before a subscription that was lost is asked for again

_UNTOLD = "server returned an error response"  # the SDK's words for a refusal that was no message

for _name in ("mcp", "client"):  # the SDK's loggers: what matters of it is told in our own words
    logging.getLogger(_name).addHandler(logging.NullHandler())


class LinkLost(Exception):
    """The connection ended before a call had its result. `ran` is False where the server never saw it."""

    def __init__(self, said: str, *, ran: bool) -> None:
        super().__init__(said)
        self.ran = ran


@dataclass(slots=True)
class Connection:
    """A connection that stands. `stirred` is set when its list of tools changed, and when it ended."""

    name: str
    client: Client
    elicitation: Elicitation
    evidence: Evidence
    stirred: asyncio.Event = field(default_factory=asyncio.Event)
    ended: bool = False

    @property
    def title(self) -> str:
        info = self.client.server_info
        return f"{info.title or info.name} {info.version}".strip() if info is not None else ""

    async def definitions(self) -> list[types.Tool]:
        """All pages of the list. A server that never comes to an end is stopped."""
        found: list[types.Tool] = []
        cursor: str | None = None
        if self.client.server_capabilities.tools is None:
            return found
        for _ in range(MOST_PAGES):
            page = await self.client.list_tools(cursor=cursor)
            found += page.tools
            if page.next_cursor is None or page.next_cursor == cursor or len(found) >= MOST_TOOLS:
                break
            cursor = page.next_cursor
        return found[:MOST_TOOLS]

    async def call(self, tool: str, arguments: Arguments, context: ToolContext) -> ToolOutput:
        """What came of a call; ToolFailed in words, or LinkLost."""
        with self.elicitation.serving(context):
            try:
                return await output_of(await self._result(tool, arguments, context), context)
            except MCPError as error:
                unseen = self._forgotten(error)
                if unseen or error.code == CONNECTION_CLOSED:
                    self.end()
                    raise LinkLost(error.message, ran=not unseen) from error
                raise ToolFailed(f"{self.name} says: {error.message[:2000]}") from error
            except ToolFailed:
                raise
            except Exception as error:  # a result that is none, or does not fit the server's own schema
                raise ToolFailed(f"{self.name}: {in_words(error)}") from error

    async def _result(self, tool: str, arguments: Arguments, context: ToolContext) -> types.CallToolResult:
        report = Reporter(context).report
        try:
            return await self.client.call_tool(tool, arguments, progress_callback=report)
        except MCPError as error:
            if error.code != URL_ELICITATION_REQUIRED:
                raise
            required = UrlElicitationRequiredError.from_error(error.error)
            if not await self.elicitation.visits(required.elicitations):
                raise
            return await self.client.call_tool(tool, arguments, progress_callback=report)

    def _forgotten(self, error: MCPError) -> bool:
        """A server that was started anew knows nothing of our session, and says so in its own way."""
        said = error.message.lower()
        return self.evidence.status in (400, 404) and ("session" in said or said == _UNTOLD)

    def end(self) -> None:
        self.ended = True
        self.stirred.set()


@asynccontextmanager
async def linked(
    name: str,
    server: McpServer,
    elicitation: Elicitation,
    *,
    find: Find,
    auth: httpx2.Auth | None,
    evidence: Evidence,
) -> AsyncIterator[Connection]:
    """Connect, shake hands, and follow what the server says of its list until the block ends."""
    link: Connection | None = None

    async def hear(message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification) and link is not None:
            link.stirred.set()

    def over() -> None:
        if link is not None:
            link.end()

    transport = await in_thread(lambda: _transport(server, find, auth, evidence))  # may ask the keyring
    client = Client(
        Watched(transport, over),
        client_info=types.Implementation(name="dragoman", version=version("dragoman")),
        mode=server.protocol,
        cache=None,
        message_handler=hear,
        elicitation_callback=elicitation.elicit,
        list_roots_callback=elicitation.roots if server.roots else None,
        sampling_callback=elicitation.sample if server.sampling and elicitation.samples else None,
    )
    async with client:
        link = Connection(name, client, elicitation, evidence)
        async with anyio.create_task_group() as tasks:
            if client.protocol_version in MODERN_PROTOCOL_VERSIONS:
                tasks.start_soon(_follow, link)
            yield link
            tasks.cancel_scope.cancel()


def _transport(
    server: McpServer, find: Find, auth: httpx2.Auth | None, evidence: Evidence
) -> AbstractAsyncContextManager[TransportStreams]:
    if server.command is not None:
        args = [resolved({"": text}, find)[""] for text in server.args]
        return program(server.command, args, resolved(server.env, find), server.cwd, evidence)
    assert server.url is not None
    return address(
        server.url,
        resolved(server.headers, find),
        sse=server.kind == "sse",
        auth=auth,
        patience=server.timeout,
        evidence=evidence,
    )


async def _follow(link: Connection) -> None:
    """On the newest protocol, changes are told to who asks for them."""
    capability = link.client.server_capabilities.tools
    while capability is not None and capability.list_changed:
        try:
            async with link.client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    link.stirred.set()
        except (SubscriptionLost, TimeoutError):
            link.stirred.set()  # whatever changed meanwhile was not told
        except MCPError:
            return  # it does not tell, after all
        await anyio.sleep(RELISTEN)
