"""Play an editor with the protocol's own Python SDK, and record the received updates and requests."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.cli.program import clean_environment
from tests.fork_server import python
from tests.later import Later
from tests.loopback import Loopback

if TYPE_CHECKING:
    import acp
    from acp import connection, schema
    from acp.client.connection import ClientSideConnection
else:
    acp, connection, schema = Later("acp"), Later("acp.connection"), Later("acp.schema")

ACP = ("-m", "dragoman", "acp")
ALONE = (sys.executable, *ACP)  # imports everything itself


@dataclass
class PlayedEditor:
    """Answers each question with the option `choose` names, and has these files open."""

    choose: Callable[[list[str]], str | None] = lambda options: "once"
    files: dict[str, str] = field(default_factory=dict)  # unsaved texts, by path
    updates: list[Any] = field(default_factory=list)
    asked: list[Any] = field(default_factory=list)
    commands: list[tuple[str, list[str]]] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)  # sessions that requested a file
    asking: asyncio.Event = field(default_factory=asyncio.Event)
    waits: bool = False  # no answer to an approval request until released
    release: asyncio.Event = field(default_factory=asyncio.Event)
    taken_back: list[int] = field(default_factory=list)  # requests that the program wants no answer to
    prompted: int = -1  # the id of the last prompt

    def observe(self, event: connection.StreamEvent) -> None:
        """Record a message that the SDK does not report."""
        message = event.message
        incoming = event.direction == connection.StreamDirection.INCOMING
        if incoming and message.get("method") == "$/cancel_request":
            self.taken_back.append(message["params"]["requestId"])
        elif not incoming and message.get("method") == "session/prompt":
            self.prompted = message["id"]

    def on_connect(self, conn: Any) -> None: ...

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        self.updates.append(update)

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **kwargs: Any
    ) -> schema.RequestPermissionResponse:
        self.asked.append((tool_call, options))
        self.asking.set()
        if self.waits:
            await self.release.wait()
        chosen = self.choose([option.option_id for option in options])
        outcome: schema.AllowedOutcome | schema.DeniedOutcome = schema.DeniedOutcome(outcome="cancelled")
        if chosen is not None:
            outcome = schema.AllowedOutcome(outcome="selected", option_id=chosen)
        return schema.RequestPermissionResponse(outcome=outcome)

    async def read_text_file(self, session_id: str, path: str, **kwargs: Any) -> schema.ReadTextFileResponse:
        self.reads.append(session_id)
        if path not in self.files:
            raise acp.RequestError.resource_not_found(path)
        return schema.ReadTextFileResponse(content=self.files[path])

    async def write_text_file(self, session_id: str, path: str, content: str, **kwargs: Any) -> None:
        self.files[path] = content
        Path(path).write_text(content, "utf-8")  # noqa: ASYNC240 - an editor saves before it answers

    async def create_terminal(
        self, session_id: str, command: str, args: list[str] | None = None, **kwargs: Any
    ) -> schema.CreateTerminalResponse:
        self.commands.append((command, args or []))
        return schema.CreateTerminalResponse(terminal_id="term-1")

    async def wait_for_terminal_exit(
        self, session_id: str, terminal_id: str, **kwargs: Any
    ) -> schema.WaitForTerminalExitResponse:
        return schema.WaitForTerminalExitResponse(exit_code=0)

    async def terminal_output(
        self, session_id: str, terminal_id: str, **kwargs: Any
    ) -> schema.TerminalOutputResponse:
        status = schema.TerminalExitStatus(exit_code=0)
        return schema.TerminalOutputResponse(output="from the editor\n", truncated=False, exit_status=status)

    async def create_elicitation(self, message: str, mode: Any, **kwargs: Any) -> Any:
        self.asked.append(message)
        return schema.AcceptElicitationResponse(action="accept", content={"answer": "Ada"})

    async def release_terminal(self, session_id: str, terminal_id: str, **kwargs: Any) -> None: ...

    async def kill_terminal(self, session_id: str, terminal_id: str, **kwargs: Any) -> None: ...

    # ── what it saw ───────────────────────────────────────────────────────────────────────────────

    def of(self, kind: str) -> list[Any]:
        return [update for update in self.updates if update.session_update == kind]

    def text(self, kind: str = "agent_message_chunk") -> str:
        return "".join(update.content.text for update in self.of(kind))

    def calls(self) -> dict[str, dict[str, Any]]:
        """Each call by its id, with the last that came of each field."""
        found: dict[str, dict[str, Any]] = {}
        for update in self.updates:
            if update.session_update in ("tool_call", "tool_call_update"):
                fields = update.model_dump(exclude_none=True)
                found.setdefault(update.tool_call_id, {}).update(fields)
        return found


@dataclass
class Connected:
    """The editor, its connection to the program, and the program."""

    editor: PlayedEditor
    agent: ClientSideConnection
    process: asyncio.subprocess.Process
    hello: schema.InitializeResponse
    folder: Path

    async def session(self, **more: Any) -> str:
        return (await self.agent.new_session(cwd=str(self.folder), mcp_servers=[], **more)).session_id

    async def say(self, session: str, *blocks: Any) -> schema.PromptResponse:
        made = [acp.text_block(block) if isinstance(block, str) else block for block in blocks]
        return await self.agent.prompt(session_id=session, prompt=made)

    async def write(self, method: str, params: dict[str, Any], **id: str) -> None:
        """Send a message that the SDK does not support. The answer to one with an `id` is dropped."""
        assert self.process.stdin is not None
        message = {"jsonrpc": "2.0", **id, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        await self.process.stdin.drain()


def settings(folder: Path, model: Loopback, *lines: str) -> None:
    """A folder whose model is this one."""
    (folder / "dragoman.toml").write_text(
        "\n".join(
            [
                'model = "stage/model"',
                f'store = "{folder / "home" / "chat.db"}"',
                *lines,
                "[providers.stage]",
                f'base_url = "{model.url}"',
                'wire = "openai_chat"',
            ]
        ),
        "utf-8",
    )
    (folder / "home").mkdir(exist_ok=True)


@asynccontextmanager
async def connected(
    folder: Path,
    editor: PlayedEditor | None = None,
    *flags: str,
    files: bool = False,
    terminal: bool = False,
    forms: bool = False,
) -> AsyncIterator[Connected]:
    played = editor or PlayedEditor()
    able = schema.ClientCapabilities(
        fs=schema.FileSystemCapabilities(read_text_file=files, write_text_file=files),
        terminal=terminal,
        elicitation=schema.ElicitationCapabilities(
            form=schema.ElicitationFormCapabilities() if forms else None
        ),
    )
    async with acp.spawn_agent_process(
        played,  # type: ignore[arg-type]  # what it leaves out is never asked for
        *python(*ACP),
        *flags,
        env=clean_environment(folder),
        cwd=str(folder),
        transport_kwargs={"limit": 2**24},
        observers=[played.observe],
        use_unstable_protocol=forms,  # the name in this SDK (in the npm SDK, forms are stable)
    ) as (agent, process):
        hello = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION, client_capabilities=able)
        yield Connected(played, agent, process, hello, folder)
