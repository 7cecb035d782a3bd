"""Manage the tools of one MCP server: start it when needed, and restart it when it dies.

The connection runs in a separate task, so that no caller waits longer for a server than it wants to. The
known tools remain when the server dies: a call to one of them starts it again.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from dragoman.background import in_thread
from dragoman.errors import ConfigError, ToolFailed
from dragoman.installed import describe_missing, require
from dragoman.messages.message import Arguments
from dragoman.redaction import redact_text
from dragoman.sentences import sentence
from dragoman.tools.mcp.diagnostics import UNKNOWN_EFFECT, ConnectionLost, Diagnostics
from dragoman.tools.mcp.secrets import Find, look_up
from dragoman.tools.mcp.servers import McpServer, prefix
from dragoman.tools.mcp.tool_list import Definition, KeptLists, ToolList, resource_tools, tools_of
from dragoman.tools.tool import Tool, ToolContext, ToolOutput
from dragoman.tools.toolbox import Group, open_to

if TYPE_CHECKING:  # The SDK takes most of a second to import, so that is done in a thread, when needed.
    import anyio
    import httpx2

    from dragoman.tools.mcp.connection import Connection
    from dragoman.tools.mcp.contents import ServerPrompt

T = TypeVar("T")

PATIENCE = 5.0  # seconds we wait for a server that starts again, or ends
PAUSES = (0.5, 2.0, 8.0, 30.0, 120.0)  # between a failure and the next attempt
BETWEEN_LISTS = 1.0  # seconds before a changed list is read again, if it changes once more
GOOD_BYE = 1.0  # seconds to send a goodbye to a server that has ended: it may no longer read
STEADY = 30.0  # seconds after which the end of a server does not count as a failed start
LONGEST_RULES = 10_000  # characters
SHORTEST_SECRET = 6  # characters: shorter values occur in every text

_log = logging.getLogger("dragoman.tools")

SourceState: TypeAlias = Literal["idle", "starting", "running", "failed", "login"]
Authorize: TypeAlias = Callable[[McpServer], "httpx2.Auth | None"]
"""Returns the credentials for a server."""


@dataclass(slots=True, frozen=True)
class _Attempt:
    """A start in progress. `settled` is done when the server is ready or has failed."""

    began: float
    settled: asyncio.Future[None]


class McpSource:
    """The tools of one server, as a group with its name."""

    def __init__(
        self,
        name: str,
        server: McpServer,
        *,
        workspace: Path | None = None,
        authorize: Authorize | None = None,
        find: Find = look_up,
        patience: float | None = None,
        check: Callable[[], None] | None = None,
        kept: KeptLists | None = None,
    ) -> None:
        """Set up the source. `check` raises, before each start, if the server's program may not run.

        With a `kept` list, the server starts when one of its tools is called. `patience` overrides the
        server's setting.
        """
        require("mcp")
        self.name = name
        self.server = server
        self.error = ""  # why it is unavailable, for users
        self.left_out: list[str] = []  # tools that cannot be offered, and why
        self.for_resources: frozenset[str] = frozenset()  # our own tools that read its resources
        self._needs_login = False
        self._workspace = workspace
        self._authorize = authorize
        self._find = find
        self._patience = PATIENCE if patience is None else patience
        self._first_wait = server.patience if patience is None else patience
        self._check = check
        self._kept = kept
        self._group = Group(name, ())
        self._known = False  # the list is known
        self._fingerprints: set[str] = set()
        self.started_in: float | None = None  # seconds that the last start took
        self._connection: Connection | None = None
        self._attempt: _Attempt | None = None
        self._task: asyncio.Task[None] | None = None
        self._scope: anyio.CancelScope | None = None
        self._failures = 0
        self._not_before = -math.inf
        self._closed = False
        self._ending = False  # by us, to start again
        self._restarting = asyncio.Lock()
        self._diagnostics = Diagnostics()
        self._secrets: set[str] = set()  # the values of its references, which are never shown
        if kept is not None and (last := kept.read(name, server)) is not None:
            self._use(last, checked=True)

    @property
    def state(self) -> SourceState:
        if self._connection is not None and not self._connection.ended:
            return "running"
        if self._attempt is not None:
            return "starting"
        if self._needs_login:
            return "login"
        return "failed" if self.error else "idle"

    @property
    def connection(self) -> Connection | None:
        """The connection, if it is open."""
        return self._connection

    @property
    def log(self) -> list[str]:
        """The last lines that the program wrote to standard error since its start, without secrets."""
        return [redact_text(line, self._secrets) for line in self._diagnostics.lines]

    # ── interface for the engine ──────────────────────────────────────────────────────────────────

    def group(self) -> Group:
        return self._group

    async def ready(self) -> None:
        """Start the server if its tools are unknown, and wait briefly. A late server's tools join later."""
        if self._known and self._kept is not None:
            return  # A call starts it (L3).
        self._begin()
        attempt = self._attempt
        if attempt is not None and not self._known:
            left = attempt.began + self._first_wait - _now()
            await asyncio.wait({attempt.settled}, timeout=max(left, 0))

    async def started(self) -> None:
        """Wait until a start in progress has succeeded or failed."""
        if (attempt := self._attempt) is not None:
            await asyncio.wait({attempt.settled})

    async def close(self) -> None:
        """End the connection, and the program if there is one."""
        self._closed = True
        if self._scope is not None:
            self._scope.cancel()
        if self._task is not None:
            await asyncio.wait({self._task})
            self._task = None  # The next opening may use another event loop.

    def reopen(self) -> None:
        self._closed = False

    async def restart(self) -> None:
        """End the server if it runs and start it immediately, however often it failed. Wait briefly, as
        `ready` does."""
        async with self._restarting:
            self._ending = True
            try:
                if self._scope is not None:
                    self._scope.cancel()
                if self._task is not None:
                    await asyncio.wait({self._task})
            finally:
                self._ending = False
            self._failures, self._not_before = 0, -math.inf
            self.error, self._needs_login = "", False
            self._begin()
        if (attempt := self._attempt) is not None:
            await asyncio.wait({attempt.settled}, timeout=self._patience)

    @property
    def teams(self) -> Collection[str]:
        return self.server.teams

    def seen_by(self, teams: Collection[str]) -> McpSource | None:
        return self if open_to(self.teams, teams) else None

    async def call(self, tool: Definition, arguments: Arguments, context: ToolContext) -> ToolOutput:
        starts = self.state != "running"
        if starts:
            context.progress(f"starting the server {self.name}")
        await self._connect()
        if starts and self.started_in is not None:
            context.progress(f"the server {self.name} started in {self.started_in:.1f} s")
        if tool.fingerprint not in self._fingerprints:
            raise ToolFailed(
                f"MCP server {self.name!r} changed {tool.name!r} since it started, or removed it. "
                "The call did not run. Read its tools again."
            )
        return await self._ask(lambda connection: connection.call(tool.name, arguments, context))

    async def _list_resources(self, context: ToolContext) -> ToolOutput:
        return await self._ask(lambda connection: connection.list_resources(context))

    async def _read_resource(self, uri: str, context: ToolContext) -> ToolOutput:
        return await self._ask(lambda connection: connection.read_resource(uri, context))

    async def prompts(self) -> list[ServerPrompt]:
        """Return the prompts that the server offers to users. Raises ToolFailed if it is unavailable."""
        return await self._ask(lambda connection: connection.prompts())

    async def prompt(self, name: str, values: dict[str, str]) -> str:
        return await self._ask(lambda connection: connection.prompt(name, values))

    async def _ask(self, ask: Callable[[Connection], Awaitable[T]]) -> T:
        """Make one request, even if the server has to be restarted. Raises ToolFailed with an explanation."""
        for once_more in (True, False):
            connection = await self._connect()
            try:
                return await ask(connection)
            except ConnectionLost as lost:
                if lost.ran:
                    raise ToolFailed(await self._explain_loss()) from lost
                if not once_more:
                    raise ToolFailed(f"MCP server {self.name!r} refused the call: {lost}") from lost
                await self._wait_for_end()  # The server had lost our session, and never received the call.
        raise AssertionError

    async def _connect(self) -> Connection:
        """Return the connection, and start the server again if it is time for that."""
        if self._attempt is None and (self._connection is None or self._connection.ended):
            await self._wait_for_end()
            pause = self._not_before - _now()
            if 0 < pause <= self._patience:
                await asyncio.sleep(pause)
        self._begin()
        if self._attempt is not None:
            await asyncio.wait({self._attempt.settled})
        if self._connection is None or self._connection.ended:
            why = self.error or ("it is switched off" if not self.server.enabled else "it has just ended")
            raise ToolFailed(f"MCP server {self.name!r} is not available: {why}")
        return self._connection

    async def _explain_loss(self) -> str:
        """Return why the server ended, which is known when the task that held the connection is done."""
        await self._wait_for_end()
        why = f": {self.error.rstrip('.')}" if self.error else ""
        return f"the server {self.name} went away while the call ran{why}. {UNKNOWN_EFFECT}"

    async def _wait_for_end(self) -> None:
        if self._task is not None and (self._connection is None or self._connection.ended):
            await asyncio.wait({self._task}, timeout=self._patience)

    # ── lifecycle ─────────────────────────────────────────────────────────────────────────────────

    def _begin(self) -> None:
        """Start the server, unless it runs or is starting. After a failure, wait for its pause."""
        if self._closed or not self.server.enabled or _now() < self._not_before:
            return
        if self._connection is None and self._attempt is None and (self._task is None or self._task.done()):
            settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._attempt = _Attempt(_now(), settled)
            self._task = asyncio.create_task(self._run(self._attempt), name=f"mcp {self.name}")

    async def _run(self, attempt: _Attempt) -> None:
        """Run the server from start to end, however it ends."""
        diagnostics, error = Diagnostics(), None
        self._diagnostics = diagnostics
        try:
            await in_thread(lambda: import_module("dragoman.tools.mcp.connection"))
            if not self._closed and not self._ending:
                error = await self._hold_connection(attempt, diagnostics)
        except Exception as raised:
            error = raised
        finally:
            self._connection = self._attempt = self._scope = None
            try:
                if error is not None and not self._closed and not self._ending:
                    self._failed(attempt, error, diagnostics)
            finally:
                if not attempt.settled.done():
                    attempt.settled.set_result(None)

    async def _hold_connection(self, attempt: _Attempt, diagnostics: Diagnostics) -> Exception | None:
        """Keep the connection until it ends. Return why it ended, or None if we ended it."""
        import anyio

        from dragoman.tools.mcp.connection import connect
        from dragoman.tools.mcp.elicitation import Elicitation
        from dragoman.tools.mcp.login import stored_login

        limit = self.server.start_timeout
        why: Exception = TimeoutError(f"it did not start within {limit:g} s")
        elicitation = Elicitation(self.name, self._workspace)
        with anyio.CancelScope(deadline=anyio.current_time() + limit) as self._scope:
            authorize = self._authorize or stored_login
            auth = await in_thread(lambda: authorize(self.server))  # A keyring may wait for a user.
            if self._check is not None:
                await in_thread(self._check)
            async with connect(
                self.name, self.server, elicitation, find=self._look_up, auth=auth, diagnostics=diagnostics
            ) as connection:
                await self._read_tools(connection)
                self.started_in = _now() - attempt.began
                self._scope.deadline = math.inf
                self._connection, self._attempt = connection, None
                self.error, self._needs_login = "", False
                attempt.settled.set_result(None)
                failed = 0
                while not connection.ended:
                    await connection.changed.wait()
                    connection.changed.clear()
                    if await self._read_again(connection, told=failed > 0):
                        failed = 0
                        await connection.pause(BETWEEN_LISTS)  # in case it reports changes without end
                    else:
                        await connection.pause(PAUSES[min(failed, len(PAUSES) - 1)])
                        failed += 1
                        connection.changed.set()
                await connection.settle()
                why = ConnectionError("it ended, or closed the connection")
                self._scope.deadline = anyio.current_time() + GOOD_BYE
        return why

    def _look_up(self, name: str) -> str | None:
        value = self._find(name)
        if value is not None and len(value) >= SHORTEST_SECRET:
            self._secrets.add(value)
        return value

    async def _read_again(self, connection: Connection, *, told: bool) -> bool:
        """Read the list again after a change. If that fails, calls continue and the known list stays.

        The failure is logged, unless it was logged before. Return whether the list was read.
        """
        import anyio

        if connection.ended:
            return True  # The end was the change.
        try:
            with connection.in_words(), anyio.fail_after(self.server.start_timeout):
                await self._read_tools(connection)
        except (ConnectionLost, ToolFailed) as error:
            if not told:
                why = redact_text(str(error), self._secrets)
                _log.warning("the list of MCP server %s changed and is unreadable: %s", self.name, why)
            return False
        return True

    async def _read_tools(self, connection: Connection) -> None:
        from dragoman.tools.mcp.server_tools import definitions_of

        definitions, wrong = definitions_of(await connection.definitions())
        instructions = connection.client.instructions
        rules = f"The server {self.name} says of its tools: {instructions}" if instructions else ""
        has_resources = connection.client.server_capabilities.resources is not None
        found = ToolList(definitions, rules[:LONGEST_RULES], has_resources, tuple(wrong))
        if self._use(found) and self._kept is not None:
            sound = found.sound(self._group.tools, self.left_out)
            await in_thread(partial(self._kept.write, self.name, self.server, sound))

    def _use(self, found: ToolList, *, checked: bool = False) -> bool:
        """Use a list. Return whether it differs from the previous one."""
        tools, refused = tools_of(self.name, self.server, found.definitions, self.call, checked=checked)
        self.left_out = [*dict.fromkeys([*found.left_out, *refused])]
        self._fingerprints = {one.fingerprint for one in found.definitions}
        own: list[Tool] = []
        if found.has_resources:
            taken = {tool.name for tool in tools}
            own = resource_tools(self.name, self.server, taken, self._list_resources, self._read_resource)
        self.for_resources = frozenset(tool.name for tool in own)
        group = Group(self.name, (*tools, *own), found.rules)
        if self._known and _fingerprints(group) == _fingerprints(self._group):
            return False
        self._group, self._known = group, True
        return True

    def _failed(self, attempt: _Attempt, error: Exception, diagnostics: Diagnostics) -> None:
        if isinstance(error, ImportError):  # Explaining other errors needs the same packages.
            self.error = f"{describe_missing('mcp')} ({error})"
        else:
            self._describe(error, diagnostics)
        if attempt.settled.done() and _now() - attempt.began > STEADY:
            self._failures = 0
        self._not_before = _now() + PAUSES[min(self._failures, len(PAUSES) - 1)]
        self._failures += 1

    def _describe(self, error: Exception, diagnostics: Diagnostics) -> None:
        from dragoman.tools.mcp.errors import describe_failure, needs_login

        self.error = redact_text(describe_failure(error, diagnostics), self._secrets)
        self._needs_login = needs_login(error, diagnostics)
        if self._needs_login and self.server.auth is not None:
            self.error += f": run `dragoman mcp test {self.name}`, or sign in at the page (Settings, Set-up)"
        elif self._needs_login:
            self.error += ': its settings need auth = "oauth", or a header with a key'


def sources_of(servers: Mapping[str, McpServer], **options: Any) -> list[McpSource]:
    """Return a source for each enabled server. `options` are those of McpSource."""
    on = {name: server for name, server in servers.items() if server.enabled}
    alike: dict[str, str] = {}
    for name in on:
        other = alike.setdefault(prefix(name).lower(), name)
        if other != name:
            raise ConfigError(sentence("mcp.alike", name=name, other=other))
    return [McpSource(name, server, **options) for name, server in on.items()]


def _fingerprints(group: Group) -> list[str | None]:
    return [group.rules, *(tool.fingerprint for tool in group.tools)]


def _now() -> float:
    return asyncio.get_running_loop().time()
