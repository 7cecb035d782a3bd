"""Run one session of an editor: a conversation, its prompts, and the turns that answer them."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pydantic import JsonValue

from dragoman.cli.acp.folders import (
    HeldSource,
    OpenWorkspace,
    check_choice,
    remember,
    session_state,
    settle_by_rules,
)
from dragoman.cli.acp.jsonrpc import INTERNAL_ERROR, INVALID_REQUEST, RpcError
from dragoman.cli.acp.questions import EditorQuestions
from dragoman.cli.acp.updates import TurnUpdates, Update
from dragoman.cli.attachments import LIMIT
from dragoman.cli.interrupted import close_interrupted, resume_turn
from dragoman.config.project_prompt import Template
from dragoman.errors import BadRequest, NotFound, TurnBusy, TurnQuarantined
from dragoman.messages import events as e
from dragoman.messages.asked import question_in
from dragoman.messages.endings import FAILED, REFUSED, notice_of
from dragoman.messages.message import File, Part, Text
from dragoman.store.store import Store
from dragoman.turn.api.conversation_handle import ConversationHandle
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.turn.settings import unchecked
from dragoman.web_address import split_uri

_START = {
    "always": ("Start it now and from now on", "allow_always"),
    "once": ("Start it, this time", "allow_once"),
    "reject": ("Continue without it", "reject_once"),
    "never": ("Never start it", "reject_always"),
}


async def read_prompt(
    store: Store, blocks: Sequence[Any], folder: Path, templates: Mapping[str, Template]
) -> list[Part]:
    """Return the parts of a message. Raises BadRequest for a block that the protocol does not define."""
    parts: list[Part] = []
    for number, block in enumerate(blocks):
        if not isinstance(block, dict):
            raise BadRequest(f"Block {number} of the prompt must be an object.")
        try:
            part = await _part(store, block, folder)
        except KeyError as error:
            raise BadRequest(f"Block {number} of the prompt has no {error}.") from None
        parts.append(part)
    return _filled(parts, templates)


def _filled(parts: list[Part], templates: Mapping[str, Template]) -> list[Part]:
    """Replace the name of a custom command at the beginning of the message by the command's text."""
    first = parts[0] if parts else None
    if not isinstance(first, Text) or not first.text.startswith("/"):
        return parts
    word, _, rest = first.text[1:].partition(" ")
    if (template := templates.get(word.strip())) is None:
        return parts
    return [Text(template.fill(rest.strip())), *parts[1:]]


async def _part(store: Store, block: Mapping[str, Any], folder: Path) -> Part:
    match block.get("type"):
        case "text":
            return Text(_text(block, "text"))
        case "image" | "audio":
            name = _name(str(block.get("uri") or "")) or None
            return await _file(store, _text(block, "data"), _text(block, "mimeType"), name)
        case "resource_link":
            return Text(f"[{_text(block, 'name')}]({_shown(_text(block, 'uri'), folder)})")
        case "resource":
            resource = block["resource"]
            if not isinstance(resource, dict):
                raise BadRequest("A resource must be an object.")
            uri = _text(resource, "uri")
            if "text" in resource:
                where = _shown(uri, folder)
                return Text(f'<file path="{where}">\n{_text(resource, "text")}\n</file>')
            media_type = str(resource.get("mimeType") or "application/octet-stream")
            return await _file(store, _text(resource, "blob"), media_type, _name(uri) or None)
        case other:
            raise BadRequest(f"A prompt cannot have a block of type {other!r}.")


def _text(block: Mapping[str, Any], name: str) -> str:
    if not isinstance(value := block[name], str):
        raise BadRequest(f"{name!r} must be a string.")
    return value


async def _file(store: Store, data: str, media_type: str, name: str | None) -> File:
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadRequest(f"The {media_type} in the prompt is not valid base64: {error}") from None
    if len(content) > LIMIT:
        raise BadRequest(
            f"The {media_type} in the prompt is too large. The limit is {LIMIT // 1024 // 1024} MB."
        )
    return File(media_type, blob=await store.put_blob(content), name=name, size=len(content))


def _name(uri: str) -> str:
    return Path(unquote(split_uri(uri).path)).name


def _shown(uri: str, folder: Path) -> str:
    """Return the path relative to the folder, as the file tools use it. Other links are returned
    unchanged."""
    parts = split_uri(uri)
    path = Path(unquote(parts.path))
    if parts.scheme not in ("file", "") or not path.is_absolute():
        return uri
    lines = f"#{parts.fragment}" if parts.fragment else ""
    return f"{path.relative_to(folder).as_posix()}{lines}" if path.is_relative_to(folder) else uri


class EditorSession:
    """A session. All of its state is in the store, except which turns are being followed."""

    def __init__(
        self,
        chat: ConversationHandle,
        workspace: OpenWorkspace,
        ask: Callable[[str, dict[str, Any]], Coroutine[Any, Any, Any]],
        notify: Callable[[str, dict[str, Any]], Coroutine[Any, Any, None]],
        *,
        forms: bool,
    ) -> None:
        self.chat = chat
        self.workspace = workspace
        self.runtime = workspace.runtime
        self._ask = ask
        self._notify = notify
        self._forms = forms
        self._prompting = False
        self._stopped = False
        self._turns: list[TurnHandle] = []  # followed turns: a running one, and one that waits for it
        self._resumed: asyncio.Task[None] | None = None
        self._asking: asyncio.Task[Any] | None = None  # an approval request to start a server
        self._announced: set[str] = set()  # calls that the editor has received
        self._title: str | None = None

    # ── talking ───────────────────────────────────────────────────────────────────────────────────

    async def prompt(self, blocks: Sequence[Any]) -> dict[str, JsonValue]:
        """Send a message, and follow its turn to the end."""
        if self._prompting:
            raise RpcError(INVALID_REQUEST, "This session is answering a prompt. Cancel it first.")
        self._prompting, self._stopped = True, False
        try:
            for source in await settle_by_rules(self.runtime, self.chat.id, self.workspace.held):
                await self._ask_about_server(source)
                if self._stopped:
                    return {"stopReason": "cancelled"}
            parts = await read_prompt(
                self.runtime.store, blocks, self.workspace.folder, self.workspace.templates
            )
            turn = await self._send(parts)
            if self._stopped:
                await turn.cancel("the person stopped it")
            end = await self.follow(turn)
        except NotFound:
            if not self._stopped:
                raise
            return {"stopReason": "cancelled"}  # The turn was cancelled while it was queued.
        finally:
            self._prompting = False
        return {"stopReason": _stop_reason(end), "usage": _usage(end)}

    async def _send(self, parts: list[Part]) -> TurnHandle:
        try:
            return await self.chat.send(parts)
        except TurnBusy as busy:
            if await self.runtime.store.is_abandoned(busy.turn):
                await close_interrupted(self.runtime, busy)
                return await self.chat.send(parts)
            # The turn follows after the running one, of this or another process.
            return await self.chat.send(parts, queue=True)

    async def follow(self, turn: TurnHandle) -> e.TurnEnd:
        """Send the turn's events to the editor, and show its approval requests there."""
        self._turns.append(turn)
        updates = TurnUpdates(self.workspace.folder, self._permission_of, self._announced)
        questions = EditorQuestions(
            self.runtime,
            self.chat.id,
            self._ask,
            updates,
            forms=self._forms,
            cancel=lambda: turn.cancel("the person turned away from a question"),
        )
        end: e.TurnEnd | None = None
        try:
            async for event in turn.events():
                for update in updates.updates(event):
                    await self.update(update)
                if (question := question_in(event)) is not None:
                    questions.ask(question)
                elif isinstance(event, e.CallStart) and event.client:
                    why = f"{event.tool} runs in the page, and the person is in an editor"
                    questions.start(turn.deliver(event.call, why, failed=True))
                elif isinstance(event, e.TurnEnd):
                    end = event
        finally:
            await questions.close()
            self._announced |= updates.announced
            self._turns.remove(turn)
        if end is None:  # The store could not be written, or another process took the turn over.
            await turn.result()
            raise RpcError(INTERNAL_ERROR, "The turn continued in another process.")
        await self._tell_title()
        return end

    async def cancel(self) -> None:
        """Cancel the running turn. The answer to its prompt is "cancelled"."""
        self._stopped = True
        if self._asking is not None:
            self._asking.cancel()
        for turn in reversed(self._turns):  # In this order, so that the queued turn does not begin.
            await turn.cancel("the person stopped it")

    async def close(self) -> None:
        """Close the session. A running turn resumes when the session is loaded again."""
        if self._resumed is not None:
            self._resumed.cancel()
            await asyncio.gather(self._resumed, return_exceptions=True)
        if not await self.chat.messages() and not await self.runtime.store.turns(self.chat.id):
            await self.runtime.delete(self.chat.id)  # The conversation is empty.

    # ── history ───────────────────────────────────────────────────────────────────────────────────

    async def replay(self) -> None:
        """Send all messages to the editor as updates."""
        updates = TurnUpdates(self.workspace.folder, self._permission_of)
        for message in await self.chat.messages():
            for update in updates.stored(message):
                await self.update(update)
        self._announced |= updates.announced

    async def resume(self) -> TurnHandle | str | None:
        """Resume an interrupted turn. Returns it, or the one that another process runs, or why it cannot
        resume here."""
        if self._turns:
            return None  # It is already followed.
        try:
            turn = await resume_turn(self.runtime, self.chat.id)
        except TurnQuarantined as error:
            return f"The last turn cannot continue here: {error}"
        if turn is None and (running := await self.runtime.store.live_turns(self.chat.id)):
            turn = self.runtime.turn(running[-1].id)
        return turn

    async def tell_resumed(self, turn: TurnHandle | str | None) -> None:
        """Follow the resumed turn in the background, or report why it cannot resume."""
        if isinstance(turn, str):
            await self._say(turn)
        elif turn is not None:
            self._resumed = asyncio.create_task(self._follow_resumed(turn))

    async def _follow_resumed(self, turn: TurnHandle) -> None:
        try:
            await self.follow(turn)
        except Exception as error:
            await self._say(f"The last turn ended: {error}")

    # ── settings ──────────────────────────────────────────────────────────────────────────────────

    async def state(self) -> dict[str, Any]:
        """Return the mode and options that the editor shows."""
        return session_state(self.workspace, (await self.chat.info()).settings)

    async def change(self, option: str, value: str) -> None:
        check_choice(self.workspace, (await self.chat.info()).settings, option, value)
        await self.chat.change(**unchecked({option: value or None}))

    async def tell_commands(self) -> None:
        commands = [
            {"name": one.name, "description": one.help or one.name, "input": {"hint": "what it is about"}}
            for one in self.workspace.templates.values()
        ]
        if commands:
            await self.update({"sessionUpdate": "available_commands_update", "availableCommands": commands})

    # ── telling and asking ────────────────────────────────────────────────────────────────────────

    async def update(self, update: Update) -> None:
        await self._notify("session/update", {"sessionId": self.chat.id, "update": update})

    async def _say(self, text: str) -> None:
        content = {"type": "text", "text": text}
        await self.update({"sessionUpdate": "agent_message_chunk", "content": content})

    async def _tell_title(self) -> None:
        info = await self.chat.info()
        if info.title and info.title != self._title:
            self._title = info.title
            at = datetime.fromtimestamp(info.updated, UTC).isoformat()
            await self.update({"sessionUpdate": "session_info_update", "title": info.title, "updatedAt": at})

    async def _ask_about_server(self, source: HeldSource) -> None:
        """Ask whether a server may start. This happens once, in the first session that needs it."""
        text = f"The editor names an MCP server. To use its tools, this would be started: {source.where}"
        request = {
            "sessionId": self.chat.id,
            "toolCall": {
                "toolCallId": f"server-{source.name}",
                "title": f"Start the MCP server {source.name}",
                "kind": "other",
                "status": "pending",
                "content": [{"type": "content", "content": {"type": "text", "text": text}}],
            },
            "options": [{"optionId": id, "name": name, "kind": kind} for id, (name, kind) in _START.items()],
        }
        self._asking = asyncio.create_task(self._ask("session/request_permission", request))
        try:
            answer = await self._asking
        except asyncio.CancelledError:
            if not self._stopped:
                raise
            return
        finally:
            self._asking = None
        outcome = answer.get("outcome") if isinstance(answer, dict) else {}
        chosen = outcome.get("optionId") if isinstance(outcome, dict) else None
        if chosen == "always":
            await remember(self.runtime, source, "allow")
        elif chosen == "never":
            await remember(self.runtime, source, "deny")
        if chosen in _START:
            source.settle(allowed=chosen in ("always", "once"))

    def _permission_of(self, tool: str) -> str:
        found = self.runtime.services.toolbox.offer().find(tool)
        return found[1].permission if found is not None else ""


def _stop_reason(end: e.TurnEnd) -> str:
    """Return the stop reason of a turn. Raises RpcError if the turn failed, because that is not an answer."""
    if end.state == "cancelled":
        return "cancelled"
    if end.finish in REFUSED:
        return "refusal"
    if end.state != "completed":
        raise RpcError(INTERNAL_ERROR, end.error or f"the turn ended as {end.state}")
    if end.finish in FAILED:
        raise RpcError(INTERNAL_ERROR, notice_of(end.finish, "the model") or end.finish)
    if end.limit:
        return "max_turn_requests"
    return "max_tokens" if end.finish in ("length", "context") else "end_turn"


def _usage(end: e.TurnEnd) -> dict[str, JsonValue]:
    usage = end.usage
    return {
        "totalTokens": usage.total,
        "inputTokens": usage.input,
        "outputTokens": usage.output,
        "thoughtTokens": usage.reasoning,
        "cachedReadTokens": usage.cached,
        "cachedWriteTokens": usage.cache_written,
    }
