"""Provide a runtime for programs without `await`, and a function for single questions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, Self, overload

from pydantic import JsonValue
from typing_extensions import TypeVar, Unpack

from dragoman.conversation.tree import Conversation
from dragoman.errors import Unanswered
from dragoman.messages.message import File, Part
from dragoman.messages.questions import Answer, Grant, Question
from dragoman.messages.usage import Dimension, Spending
from dragoman.parameters import AnyModel
from dragoman.runtime import Runtime
from dragoman.sentences import sentence
from dragoman.store.address import StoreFile, StoreServer
from dragoman.store.store import Found, Store
from dragoman.sync.conversation import SyncConversation
from dragoman.sync.loop_thread import LoopThread
from dragoman.sync.turn import SyncTurn
from dragoman.turn.agent import Agent
from dragoman.turn.api.turn_handle import TurnResult
from dragoman.turn.output import OutputType
from dragoman.turn.send import SendOptions
from dragoman.turn.settings import ConversationOptions
from dragoman.unattended import answer_questions

T = TypeVar("T", default=str)
_log = logging.getLogger("dragoman.turn")


class SyncRuntime:
    """A `Runtime` without `await`, with the same parameters. Use it in a `with` statement."""

    def __init__(
        self,
        store: str | Path | StoreFile | StoreServer | Store = "dragoman.db",
        *,
        model: AnyModel = None,
        **options: Any,
    ) -> None:
        self._loop = LoopThread()
        self._is_open = False

        async def made() -> Runtime:
            return Runtime(store, model=model, **options)

        try:
            self.runtime = self._loop.run(made())
        except BaseException:
            self._loop.close()
            raise

    def __enter__(self) -> Self:
        opening = self._loop.start(self.runtime.__aenter__())
        try:
            opening.result()
        except BaseException:
            if not self._is_open:  # Otherwise it stays open for the caller that opened it.
                self._loop.close(self._undo(opening))
            raise
        self._is_open = True
        return self

    async def _undo(self, opening: Future[Runtime]) -> None:
        """Undo an opening that Ctrl-C interrupted: a runtime that is only partly open cannot be closed."""
        try:
            await asyncio.wrap_future(opening)
        except Exception:
            return
        await self.runtime.__aexit__(None, None, None)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._loop.forked:
            return  # The parent process still uses it.
        self._loop.close(self.runtime.__aexit__(kind, error, trace))

    def conversation(
        self,
        id: str | None = None,
        *,
        user: str | None = None,
        messages: Sequence[Mapping[str, str]] = (),
        **settings: Unpack[ConversationOptions],
    ) -> SyncConversation:
        chat = self._loop.run(self.runtime.conversation(id, user=user, messages=messages, **settings))
        return SyncConversation(chat, self._loop)

    @overload
    def send(
        self,
        said: str | Sequence[Part],
        conversation: str | None = None,
        *,
        output_type: OutputType[T],
        parent: str | None = None,
        queue: bool = False,
        key: str | None = None,
        contexts: Mapping[str, str] | None = None,
        deps: object = None,
        **options: Unpack[SendOptions],
    ) -> SyncTurn[T]: ...
    @overload
    def send(
        self,
        said: str | Sequence[Part],
        conversation: str | None = None,
        *,
        output_type: None = None,
        parent: str | None = None,
        queue: bool = False,
        key: str | None = None,
        contexts: Mapping[str, str] | None = None,
        deps: object = None,
        **options: Unpack[SendOptions],
    ) -> SyncTurn: ...
    def send(
        self, said: str | Sequence[Part], conversation: str | None = None, **options: Any
    ) -> SyncTurn[Any]:
        return SyncTurn(self._loop.run(self.runtime.send(said, conversation, **options)), self._loop)

    def turn(self, id: str, output_type: OutputType[T] | None = None) -> SyncTurn[T]:
        return SyncTurn(self.runtime.turn(id, output_type), self._loop)

    def answer(self, question: str | Question, answer: Answer, *, by: str | None = None) -> Question:
        return self._loop.run(self.runtime.answer(question, answer, by=by))

    def turns(self, *, user: str | None = None) -> list[SyncTurn]:
        return [SyncTurn(turn, self._loop) for turn in self._loop.run(self.runtime.turns(user=user))]

    def spending(self, *by: Dimension, since: float = 0.0, user: str | None = None) -> list[Spending]:
        return self._loop.run(self.runtime.spending(*by, since=since, user=user))

    def questions(self, *, user: str | None = None) -> list[Question]:
        return self._loop.run(self.runtime.questions(user=user))

    def grants(self, *, user: str | None = None) -> list[Grant]:
        return self._loop.run(self.runtime.grants(user=user))

    def revoke(self, grant: str) -> None:
        self._loop.run(self.runtime.revoke(grant))

    def use_agents(self, agents: Iterable[Agent]) -> None:
        async def use() -> None:  # This must run in the loop's thread, like all code that reads the agents.
            self.runtime.use_agents(agents)

        self._loop.run(use())

    def put_file(self, data: bytes, media_type: str, name: str | None = None) -> File:
        return self._loop.run(self.runtime.put_file(data, media_type, name))

    def read_file(self, file: File) -> bytes:
        return self._loop.run(self.runtime.read_file(file))

    def conversations(self, **page: Any) -> list[Conversation]:
        return self._loop.run(self.runtime.conversations(**page))

    def search(self, query: str, **page: Any) -> list[Found]:
        return self._loop.run(self.runtime.search(query, **page))

    def fork(
        self, conversation: str, message: str, *, own_folder: bool = False, user: str | None = None
    ) -> SyncConversation:
        made = self._loop.run(self.runtime.fork(conversation, message, own_folder=own_folder, user=user))
        return SyncConversation(made, self._loop)

    def delete(self, conversation: str) -> None:
        self._loop.run(self.runtime.delete(conversation))

    def members(self, team: str) -> set[str]:
        return self._loop.run(self.runtime.members(team))

    def remove_person(self, name: str) -> int:
        return self._loop.run(self.runtime.remove_person(name))

    def export(self, conversation: str, *, private: bool = True) -> dict[str, JsonValue]:
        return self._loop.run(self.runtime.export(conversation, private=private))

    def export_markdown(self, conversation: str) -> str:
        return self._loop.run(self.runtime.export_markdown(conversation))

    def import_conversation(
        self, data: Mapping[str, JsonValue], *, user: str | None = None
    ) -> SyncConversation:
        return SyncConversation(self._loop.run(self.runtime.import_conversation(data, user=user)), self._loop)

    def answer_questions(self, turn: str) -> list[str]:
        """Answer the turn's approval requests until it ends, and those in conversations that its calls
        opened.

        No user is present, so calls that no rule allows do not run. Returns the tools of those calls.
        """
        return self._loop.run(answer_questions(self.runtime, self.runtime.turn(turn)))


@overload
def run_sync(
    said: str,
    *,
    model: AnyModel,
    output_type: OutputType[T],
    store: str | Path = ...,
    strict: bool = ...,
    **more: Any,
) -> TurnResult[T]: ...
@overload
def run_sync(
    said: str,
    *,
    model: AnyModel,
    output_type: None = None,
    store: str | Path = ...,
    strict: bool = ...,
    **more: Any,
) -> TurnResult: ...
def run_sync(
    said: str,
    *,
    model: AnyModel,
    output_type: OutputType[Any] | None = None,
    store: str | Path = "dragoman.db",
    strict: bool = False,
    **more: Any,
) -> TurnResult[Any]:
    """Ask one question and return the answer. `more` takes the parameters of a `Runtime`.

    Calls that no rule allows do not run, because no user can approve them. A warning names them. With
    `strict`, this raises Unanswered instead. The conversation stays in `store`, a file in the current folder.
    """
    with SyncRuntime(store, model=model, **more) as runtime:
        turn: SyncTurn[Any] = runtime.send(said, output_type=output_type)
        refused = runtime.answer_questions(turn.id)
        for tool in dict.fromkeys(refused):
            found = runtime.runtime.services.toolbox.offer().find(tool)
            permission = found[1].permission if found is not None else tool
            problem = sentence("unanswered.refused", tool=tool, permission=permission)
            if strict:
                raise Unanswered(problem)
            _log.warning("%s", problem)
        return turn.result()
