"""Define the Agent Client Protocol methods that an editor calls, and their effects on conversations."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from dragoman.cli.acp.editor import Editor
from dragoman.cli.acp.folders import EditorFolders, OpenWorkspace, whole_path
from dragoman.cli.acp.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    NOT_FOUND,
    Handler,
    Params,
    ResultThen,
    RpcError,
    RpcPeer,
    claimed_streams,
    open_lines,
    open_writer,
)
from dragoman.cli.acp.sessions import EditorSession
from dragoman.cli.flags.chat import AcpFlags
from dragoman.conversation.tree import LOCAL, Conversation
from dragoman.errors import BadRequest, ConfigError, DragomanError, NotFound
from dragoman.runtime import Runtime
from dragoman.store.store import Store
from dragoman.turn.facts import options_in

_PAGE = 50
PROTOCOL_VERSION = 1


async def list_sessions(store: Store, folder: str | None, cursor: str | None) -> JsonValue:
    """Return one page of conversations, most recently used first, of one folder or of all."""
    before = _before(cursor) if cursor is not None else None
    page = await store.conversations(user=LOCAL, limit=_PAGE, before=before)
    sessions: list[JsonValue] = []
    for each in page:
        where = await _folder_of(store, each)
        if where is not None and folder in (None, where):
            at = datetime.fromtimestamp(each.updated, UTC).isoformat()
            sessions.append({"sessionId": each.id, "cwd": where, "title": each.title, "updatedAt": at})
    more = {"nextCursor": f"{page[-1].updated!r} {page[-1].id}"} if len(page) == _PAGE else {}
    return {"sessions": sessions, **more}


def _before(cursor: str) -> tuple[float, str]:
    updated, _, id = cursor.partition(" ")
    try:
        return float(updated), id
    except ValueError:
        raise BadRequest(f"Unknown page {cursor!r}. Pass the `nextCursor` of the previous page.") from None


async def _folder_of(store: Store, conversation: Conversation) -> str | None:
    """Return the folder of a conversation's turns. None if it is unknown or the conversation has no turns."""
    with suppress(DragomanError, ValueError):
        for row in reversed(await store.turns(conversation.id)):
            return options_in(await store.facts(row.id)).workspace
    return None


def explain(error: Exception) -> RpcError:
    """Convert an exception to an error of the protocol."""
    match error:
        case RpcError():
            return error
        case NotFound():
            return RpcError(NOT_FOUND, str(error))
        case BadRequest() | ConfigError():
            return RpcError(INVALID_PARAMS, str(error))
        case DragomanError():
            return RpcError(INTERNAL_ERROR, str(error))
        case _:
            return RpcError(INTERNAL_ERROR, f"{type(error).__name__}: {error}")


class AcpAgent:
    """The connection of one editor."""

    def __init__(self, flags: AcpFlags, stack: AsyncExitStack) -> None:
        self._workspaces = EditorFolders(flags, stack)
        self._sessions: dict[str, EditorSession] = {}
        self._peer: RpcPeer | None = None
        self._editor: Editor | None = None
        self._forms = False

    def connect(self, peer: RpcPeer) -> None:
        """Set the connection. It is created after the methods, because it needs them."""
        self._peer = peer

    @property
    def requests(self) -> dict[str, Handler]:
        return {
            "initialize": self._initialize,
            "authenticate": self._authenticate,
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/fork": self._fork,
            "session/list": self._list,
            "session/delete": self._delete,
            "session/close": self._close,
            "session/prompt": self._prompt,
            "session/set_mode": self._set_mode,
            "session/set_config_option": self._set_config_option,
        }

    @property
    def notifications(self) -> dict[str, Handler]:
        return {"session/cancel": self._cancel}

    async def close(self) -> None:
        for session in self._sessions.values():
            with suppress(DragomanError):
                await session.close()

    # ── the connection ────────────────────────────────────────────────────────────────────────────

    async def _initialize(self, params: Params) -> JsonValue:
        able = _table(params, "clientCapabilities")
        files = _table(able, "fs")
        self._forms = isinstance(_table(able, "elicitation").get("form"), dict)
        self._editor = Editor(
            self._ask,
            reads=files.get("readTextFile") is True,
            writes=files.get("writeTextFile") is True,
            terminals=able.get("terminal") is True,
            session_of=self._session_of,
        )
        return {
            # This server knows one version, and the editor decides whether to use it.
            "protocolVersion": PROTOCOL_VERSION,
            "agentInfo": {"name": "dragoman", "title": "Dragoman", "version": version("dragoman")},
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
                "mcpCapabilities": {"http": True, "sse": True},
                "sessionCapabilities": {"list": {}, "delete": {}, "fork": {}, "resume": {}, "close": {}},
            },
            "authMethods": [],
        }

    async def _authenticate(self, params: Params) -> JsonValue:
        raise RpcError(INVALID_PARAMS, "Dragoman has no login here. It reads keys from the environment.")

    # ── sessions ──────────────────────────────────────────────────────────────────────────────────

    async def _new(self, params: Params) -> ResultThen:
        workspace = await self._workspace(params)
        chat = await workspace.runtime.conversation()
        session = self._join(EditorSession(chat, workspace, self._ask, self._tell, forms=self._forms))
        return await self._shown(session, {"sessionId": chat.id})

    async def _load(self, params: Params) -> ResultThen:
        session = await self._opened(params)
        await session.replay()
        return await self._shown(session, {}, resumes=True)

    async def _resume(self, params: Params) -> ResultThen:
        return await self._shown(await self._opened(params), {}, resumes=True)

    async def _fork(self, params: Params) -> ResultThen:
        original = await self._opened(params)
        leaf = (await original.chat.info()).leaf
        if leaf is None:
            raise BadRequest("This session has no messages to fork.")
        chat = await original.runtime.fork(original.chat.id, leaf)
        copy = EditorSession(chat, original.workspace, self._ask, self._tell, forms=self._forms)
        return await self._shown(self._join(copy), {"sessionId": chat.id})

    async def _opened(self, params: Params) -> EditorSession:
        id = _text(params, "sessionId")
        workspace = await self._workspace(params)
        if await workspace.runtime.store.owner_of(id) != LOCAL:
            raise NotFound("conversation", id)  # It belongs to a user who signs in to the server.
        if (known := self._sessions.get(id)) is not None and known.workspace is workspace:
            return known
        chat = await workspace.runtime.conversation(id)
        return self._join(EditorSession(chat, workspace, self._ask, self._tell, forms=self._forms))

    async def _list(self, params: Params) -> JsonValue:
        folder, cursor = params.get("cwd"), params.get("cursor")
        store = (await self._runtime(folder)).store
        where = str(whole_path(folder)) if isinstance(folder, str) else None
        return await list_sessions(store, where, cursor if isinstance(cursor, str) else None)

    async def _delete(self, params: Params) -> JsonValue:
        id = _text(params, "sessionId")
        if (session := self._sessions.pop(id, None)) is not None:
            await session.cancel()
            await session.runtime.delete(id)
            return {}
        runtime = await self._runtime(None)
        if await runtime.store.owner_of(id) != LOCAL:
            raise NotFound("conversation", id)
        await runtime.delete(id)
        return {}

    async def _close(self, params: Params) -> JsonValue:
        session = self._session(params)
        await session.cancel()
        del self._sessions[session.chat.id]
        await session.close()
        return {}

    # ── in a session ──────────────────────────────────────────────────────────────────────────────

    async def _prompt(self, params: Params) -> JsonValue:
        session = self._session(params)
        blocks = params.get("prompt")
        if not isinstance(blocks, list):
            raise BadRequest("'prompt' must be a list of blocks.")
        prompting = asyncio.create_task(session.prompt(blocks))
        try:
            return dict(await asyncio.shield(prompting))
        except asyncio.CancelledError:
            if self._peer_of().closed:
                # Disconnecting stops no turn: it continues when the session is loaded again.
                prompting.cancel()
            else:
                await session.cancel()
            await asyncio.wait({prompting})
            raise

    async def _cancel(self, params: Params) -> JsonValue:
        await self._session(params).cancel()
        return None

    async def _set_mode(self, params: Params) -> JsonValue:
        await self._session(params).change("mode", _text(params, "modeId"))
        return {}

    async def _set_config_option(self, params: Params) -> JsonValue:
        session = self._session(params)
        await session.change(_text(params, "configId"), _text(params, "value", empty=True))
        return {"configOptions": (await session.state())["configOptions"]}

    # ── shared helpers ────────────────────────────────────────────────────────────────────────────

    def _join(self, session: EditorSession) -> EditorSession:
        self._sessions.pop(session.chat.id, None)
        self._sessions[session.chat.id] = session  # the newest last
        return session

    async def _shown(
        self, session: EditorSession, result: dict[str, Any], *, resumes: bool = False
    ) -> ResultThen:
        """Return the answer that opens a session. Its updates are sent afterwards, when the editor knows its
        ID.

        An interrupted turn resumes before that, so that the next prompt waits for it and does not end it.
        """
        state = await session.state()
        turn = await session.resume() if resumes else None

        async def then() -> None:
            await session.tell_commands()
            await session.tell_resumed(turn)

        return ResultThen({**result, **state}, then)

    def _session(self, params: Params) -> EditorSession:
        id = _text(params, "sessionId")
        if id not in self._sessions:
            raise RpcError(NOT_FOUND, f"Session {id!r} is not open. Load it first.")
        return self._sessions[id]

    async def _session_of(self, conversation: str) -> str | None:
        """Return the session of a conversation. A task's conversation belongs to the session of its
        caller."""
        for runtime in {id(one.runtime): one.runtime for one in self._sessions.values()}.values():
            found: str | None = conversation
            while found is not None and found not in self._sessions:
                try:
                    found = (await runtime.store.conversation(found)).parent
                except NotFound:
                    break
            if found in self._sessions:
                return found
        return None

    async def _workspace(self, params: Params) -> OpenWorkspace:
        if self._editor is None:
            raise RpcError(INVALID_REQUEST, "Send 'initialize' first.")
        servers = params.get("mcpServers") or []
        if not isinstance(servers, list):
            raise BadRequest("'mcpServers' must be a list.")
        return await self._workspaces.open(_text(params, "cwd"), servers, self._editor)

    async def _runtime(self, folder: object) -> Runtime:
        """Return the runtime of a folder. Without one, use an open folder, or the current one."""
        if not isinstance(folder, str) and self._sessions:
            return next(reversed(self._sessions.values())).runtime
        place = folder if isinstance(folder, str) else str(Path.cwd())
        return (await self._workspace({"cwd": place})).runtime

    def _peer_of(self) -> RpcPeer:
        assert self._peer is not None
        return self._peer

    async def _ask(self, method: str, params: dict[str, Any]) -> Any:
        return await self._peer_of().request(method, params)

    async def _tell(self, method: str, params: dict[str, Any]) -> None:
        await self._peer_of().notify(method, params)


def _text(params: Params, name: str, *, empty: bool = False) -> str:
    value = params.get(name)
    if not isinstance(value, str) or not (value or empty):
        raise BadRequest(f"{name!r} must be a string.")
    return value


def _table(params: Params, name: str) -> Params:
    value = params.get(name)
    return value if isinstance(value, dict) else {}


def acp(flags: AcpFlags) -> None:
    with claimed_streams() as (incoming, outgoing):
        asyncio.run(_serve(flags, incoming, outgoing))


async def _serve(flags: AcpFlags, incoming: int, outgoing: int) -> None:
    writer = await open_writer(outgoing)
    try:
        async with AsyncExitStack() as stack:
            agent = AcpAgent(flags, stack)
            peer = RpcPeer(open_lines(incoming), writer, agent.requests, agent.notifications, explain)
            agent.connect(peer)
            try:
                await peer.serve()
            except ConnectionError:
                pass  # The editor disconnected in the middle of a line.
            finally:
                await agent.close()
    finally:
        writer.close()
