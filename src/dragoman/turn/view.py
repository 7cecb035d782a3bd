"""Gives plugins a view of a turn: small values to read, and a few actions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from dragoman.conversation.tree import Conversation
from dragoman.conversation.window import Policy, shown_messages, window
from dragoman.messages.boundary import check_json
from dragoman.messages.events import MessageAdded, Notice, StepRetry
from dragoman.messages.ids import new_id
from dragoman.messages.media import CHAT, type_of
from dragoman.messages.message import Message, Summary, ToolCall
from dragoman.messages.request import Request, RequestMessage
from dragoman.messages.usage import Usage
from dragoman.store.store import Change
from dragoman.tools.tool import Tool
from dragoman.turn.agent import Agent
from dragoman.turn.facts import Compacted, CompactionStarted, ModelAsked
from dragoman.turn.live.log import TurnLog, asking_aside
from dragoman.turn.machine import State, Turn
from dragoman.turn.output import Output
from dragoman.wire.media.selection import current_message
from dragoman.wire.scripted import collect_reply
from dragoman.wire.wire import Model


class TurnView:
    """A turn, for plugins."""

    def __init__(
        self,
        log: TurnLog,
        model: Model,
        agent: Agent,
        before_side_request: Callable[[Request], Awaitable[None]],
        take_in_steering: Callable[[], Awaitable[None]],
        *,
        side_model: Model | None = None,
        workspace: Path | None = None,
        options: Mapping[str, JsonValue] | None = None,
        output: Output[Any] | None = None,
    ) -> None:
        self._log = log
        self._model = model
        self._side_model = side_model or model
        self.added_tools: dict[str, Tool] = {}
        self.tools_for_once: set[str] = set()
        self.agent = agent
        self.workspace = workspace  # the folder its tools work in
        # options of its requests, before plugins change them
        self.options: Mapping[str, JsonValue] = options or {}
        self.output = output  # the required type of the answer, if set
        self.deps: Any = None  # dependencies sent with the turn, or the runtime's
        self._before_side_request = before_side_request
        self._take_in_steering = take_in_steering

    def hand_to(self, agent: Agent, model: Model) -> None:
        """Continue the turn with another agent. Dragoman also asks its model for titles and summaries."""
        if self._side_model is self._model:
            self._side_model = model
        self.agent, self._model = agent, model

    @property
    def id(self) -> str:
        return self._log.id

    @property
    def conversation(self) -> Conversation:
        return self._log.conversation

    @property
    def user(self) -> str:
        """The user who sent the message, whose rules and limits apply. In a shared conversation, this is not
        always its owner."""
        return self._log.sender

    @property
    def resumed(self) -> bool:
        """Whether another process started this turn."""
        return self._log.resumed

    @property
    def compact(self) -> bool:
        """Whether a user asked to summarize the earlier messages."""
        return self._log.turn.options.compact

    @property
    def turn(self) -> Turn:
        """State, step, rounds, usage and the states of the calls."""
        return self._log.turn

    @property
    def settings(self) -> Mapping[str, JsonValue]:
        """The settings of the conversation at the start of the turn."""
        return self._log.settings

    @property
    def model(self) -> str:
        return self._model.name

    @property
    def talks(self) -> bool:
        """Whether the model is a chat model, and not one for images, transcription or speech."""
        return type_of(self._model) == CHAT

    @property
    def can_complete(self) -> bool:
        """Whether a model can answer requests next to the conversation."""
        return type_of(self._side_model) == CHAT

    @property
    def context(self) -> int | None:
        """The number of tokens that the model can take, if known."""
        return self._model.context

    @property
    def path(self) -> Sequence[Message]:
        """The messages up to the newest of this branch, as far back as a request can reach."""
        return tuple(self._log.path)

    @property
    def shown(self) -> list[Message]:
        """The part of the path that the model receives: from the last summary on, with as many turns as the
        settings allow."""
        return shown_messages(self._log.path, self.id, self._history)

    def window(
        self, policy: Policy = "full", parts: Collection[str] | None = None
    ) -> tuple[RequestMessage, ...]:
        """Return the shown messages as those of a request.

        `policy` applies to the tool use of earlier turns, and `parts` selects the parts of their messages. A
        model other than a chat model gets only the current message (M1).
        """
        if not self.talks:
            return (current_message(self._log.path, self._log.turn.message, type_of(self._model)),)
        return window(self._log.path, policy, self.id, self._history, parts)

    @property
    def _history(self) -> int | None:
        turns = self.settings.get("history")
        return turns if isinstance(turns, int) else None

    @property
    def messages(self) -> list[Message]:
        """The messages of this turn."""
        return self._log.messages

    @property
    def calls(self) -> list[ToolCall]:
        """Every call of this turn, also those of programs, in order, with its current state."""
        return [call for message in self.messages for call in message.all_calls]

    async def tasks(self) -> list[Conversation]:
        """The conversations of the tasks that its calls gave, and of tasks below them."""
        calls = {call.id for call in self.calls}
        return await self._log.store.opened_by(self.conversation.id, calls) if calls else []

    @property
    def seconds(self) -> float:
        """Seconds since the turn started, waiting included."""
        return self._log.now() - self._log.turn.started

    async def stored(self) -> None:
        """Wait until everything that happened in the turn is in the store."""
        await self._log.stored()

    def notice(self, text: str, kind: str = "notice") -> None:
        """Send a notice to all clients."""
        self._log.publish(Notice(text, kind))

    @property
    def has_small_model(self) -> bool:
        """Whether a separate small model answers requests next to the conversation."""
        return self._side_model is not self._model

    async def complete(
        self, request: Request, *, purpose: str = "plugin", own_model: bool = False
    ) -> Message:
        """Ask something next to the conversation, such as a title. The small model answers, if one is
        set, or else the turn's own. Dragoman stores and shows nothing of it. `purpose` names the request
        in traces."""
        log, model = self._log, self._model if own_model else self._side_model
        request.model = model.name
        await self._before_side_request(request)

        def retry(event: StepRetry) -> None:
            aside.retry(event, log.now())
            log.publish(event)

        try:
            with asking_aside(log, purpose, request) as aside:
                aside.reply = await collect_reply(model, request, self.conversation.id, on_retry=retry)
        finally:
            if log.turn.state is State.COMPACTING:
                log.count_lost(request)
        return aside.reply

    def add_tool(self, tool: Tool, *, once: bool = False) -> None:
        """Offer one more tool in this turn from the next request on, or in that request only. After a
        restart, add it again in `on_turn_start`."""
        self.added_tools[tool.name] = tool
        if once:
            self.tools_for_once.add(tool.name)

    def forget_tools(self) -> None:
        """Stop offering the tools that were for one request only."""
        for name in self.tools_for_once:
            self.added_tools.pop(name, None)
        self.tools_for_once.clear()

    async def read_file(self, blob: str) -> bytes:
        """Return the bytes of an attachment."""
        return await self._log.store.blob(blob)

    async def set_title(self, title: str) -> None:
        """Set the title of the conversation, unless a user renamed it since the turn started."""
        check_json(title, "the title")
        conversation = self.conversation
        if not await self._log.store.replace_title(conversation.id, conversation.title, title):
            return
        self._log.conversation = replace(self._log.conversation, title=title)
        self._log.publish(Notice(title, "title"))

    async def begin_compaction(self, reason: str) -> None:
        """Report that compaction starts."""
        await self._log.record(CompactionStarted(reason))

    async def count_summary(self, reply: Message) -> None:
        """Count usage of a reply that the summary needed, without the summary itself."""
        if reply.usage is not None and not reply.usage.is_empty:
            await self._log.record(ModelAsked("", reply.model or self.model, reply.usage))

    async def end_compaction(
        self, summary: str, keeps_from: str | None, usage: Usage, model: str | None = None
    ) -> None:
        """Add the summary and the user's messages since then to the tree, and continue. `model` wrote the
        summary, if not the turn's model."""
        check_json(summary, "the summary")
        log = self._log
        message = Message(
            new_id("msg"),
            log.conversation.id,
            log.tip,
            "user",
            (Summary(summary, keeps_from),),
            turn=log.id,
            author="compaction",
            model=model or self.model,
            usage=usage,
            created=log.now(),
        )
        await log.record(Compacted(message.id, usage), change=Change(messages=[message]))
        log.publish(MessageAdded(message))
        await self._take_in_steering()
