"""What a plugin sees of a turn: small values to read, and the few things it may do."""

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
        self.workspace = workspace  # the folder that its tools work in
        self.options: Mapping[str, JsonValue] = options or {}  # of its requests, before plugins change them
        self.output = output  # what the answer has to be, where that was said
        self.deps: Any = None  # what was sent with the turn, or the runtime has for it
        self._before_side_request = before_side_request
        self._take_in_steering = take_in_steering

    def hand_to(self, agent: Agent, model: Model) -> None:
        """Another agent goes on with the turn. What tells requests aside is asked of its model, too."""
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
        """The user who sent the message, whose rules and limits apply: in a conversation that several users
        share, not always its owner."""
        return self._log.sender

    @property
    def resumed(self) -> bool:
        """Another process began this turn."""
        return self._log.resumed

    @property
    def compact(self) -> bool:
        """Whether a person wants what came before summarized."""
        return self._log.turn.options.compact

    @property
    def turn(self) -> Turn:
        """State, step, rounds, usage and the calls' states, as the machine has them."""
        return self._log.turn

    @property
    def settings(self) -> Mapping[str, JsonValue]:
        """The conversation's, as they were when the turn was started."""
        return self._log.settings

    @property
    def model(self) -> str:
        return self._model.name

    @property
    def talks(self) -> bool:
        """Whether the model is one to talk with, and not one that makes pictures, listens or speaks."""
        return type_of(self._model) == CHAT

    @property
    def can_complete(self) -> bool:
        """Whether there is a model that could be asked something beside the conversation."""
        return type_of(self._side_model) == CHAT

    @property
    def context(self) -> int | None:
        """How many tokens the model can take, where that is known."""
        return self._model.context

    @property
    def path(self) -> Sequence[Message]:
        """The messages up to the newest of this branch, as far back as a request may still reach."""
        return tuple(self._log.path)

    @property
    def shown(self) -> list[Message]:
        """What of the path the model is shown: from the last summary on, and of as many turns as are set."""
        return shown_messages(self._log.path, self.id, self._history)

    def window(
        self, policy: Policy = "full", parts: Collection[str] | None = None
    ) -> tuple[RequestMessage, ...]:
        """The same as the messages of a request, with the tool use of earlier turns by this policy, and of
        their messages these parts. A model that does not chat gets the current one alone (M1)."""
        if not self.talks:
            return (current_message(self._log.path, self._log.turn.message, type_of(self._model)),)
        return window(self._log.path, policy, self.id, self._history, parts)

    @property
    def _history(self) -> int | None:
        turns = self.settings.get("history")
        return turns if isinstance(turns, int) else None

    @property
    def messages(self) -> list[Message]:
        """Those of this turn alone."""
        return self._log.messages

    @property
    def calls(self) -> list[ToolCall]:
        """Every call of this turn, also those of programs, in order, in its present state."""
        return [call for message in self.messages for call in message.all_calls]

    async def tasks(self) -> list[Conversation]:
        """The conversations of the tasks that its calls gave, and of those that were given in them."""
        calls = {call.id for call in self.calls}
        return await self._log.store.opened_by(self.conversation.id, calls) if calls else []

    @property
    def seconds(self) -> float:
        """Since the turn started, waiting included."""
        return self._log.now() - self._log.turn.started

    async def stored(self) -> None:
        """Wait until all that has happened in it is in the store."""
        await self._log.stored()

    def notice(self, text: str, kind: str = "notice") -> None:
        """Tell whoever listens."""
        self._log.publish(Notice(text, kind))

    @property
    def has_small_model(self) -> bool:
        """Whether another model than its own is asked beside the conversation."""
        return self._side_model is not self._model

    async def complete(
        self, request: Request, *, purpose: str = "plugin", own_model: bool = False
    ) -> Message:
        """Ask something beside the conversation, such as a title: of the small model, where one is set, or of
        its own. Nothing of it is stored or shown. `purpose` is a word for what it is asked for, for who
        traces it."""
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
        """Offer one more tool in this turn, from the next request on, or in that request alone. After a
        restart it has to be added again: `on_turn_start` is the place for that."""
        self.added_tools[tool.name] = tool
        if once:
            self.tools_for_once.add(tool.name)

    def forget_tools(self) -> None:
        """A request was built: those that were for it alone are not offered again."""
        for name in self.tools_for_once:
            self.added_tools.pop(name, None)
        self.tools_for_once.clear()

    async def read_file(self, blob: str) -> bytes:
        """The bytes of an attachment."""
        return await self._log.store.blob(blob)

    async def set_title(self, title: str) -> None:
        """Call the conversation so, unless somebody has called it otherwise since the turn began."""
        check_json(title, "the title")
        conversation = self.conversation
        if not await self._log.store.replace_title(conversation.id, conversation.title, title):
            return
        self._log.conversation = replace(self._log.conversation, title=title)
        self._log.publish(Notice(title, "title"))

    async def begin_compaction(self, reason: str) -> None:
        """Say that the history is about to be summed up."""
        await self._log.record(CompactionStarted(reason))

    async def count_summary(self, reply: Message) -> None:
        """Count what a reply used that is not the summary, but was needed for it."""
        if reply.usage is not None and not reply.usage.is_empty:
            await self._log.record(ModelAsked("", reply.model or self.model, reply.usage))

    async def end_compaction(
        self, summary: str, keeps_from: str | None, usage: Usage, model: str | None = None
    ) -> None:
        """Put the summary on the tree, with what a person said meanwhile, and go on. `model` wrote it, if not
        the one that answers."""
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
