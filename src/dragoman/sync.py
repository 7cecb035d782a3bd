"""The library without `await`: for synchronous programs, notebooks and scripts.

    with SyncRuntime("chat.db", model="ollama/qwen3") as runtime:
        print(runtime.send("Hello").result().text)

The runtime lives in a thread of its own; what is called here waits for it. `run_sync` is for one question.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, overload

from pydantic import JsonValue
from typing_extensions import TypeVar, Unpack

from dragoman.conversation.tree import Conversation, Tree
from dragoman.loop_thread import LoopThread
from dragoman.messages.events import Event
from dragoman.messages.message import Message
from dragoman.messages.parts import Arguments, Part, ToolResult
from dragoman.messages.questions import Answer, Grant, Question
from dragoman.messages.spending import Dimension, Spending
from dragoman.parameters import AnyModel
from dragoman.runtime import Runtime
from dragoman.store.store import Found
from dragoman.turn.context_use import ContextUse
from dragoman.turn.conversations import ConversationHandle
from dragoman.turn.facts import Fact
from dragoman.turn.handles import TurnHandle
from dragoman.turn.layers import RequestLayers
from dragoman.turn.live.log import Snapshot
from dragoman.turn.machine import State, Turn
from dragoman.turn.output import OutputType
from dragoman.turn.result import TurnResult
from dragoman.turn.send import SendOptions
from dragoman.turn.settings import ConversationOptions
from dragoman.turn.trace import TurnTrace
from dragoman.turn.way_back import Reverted, WorkspaceDiff
from dragoman.unattended import answer_questions

T = TypeVar("T", default=str)


class SyncTurn(Generic[T]):
    """A turn, as `TurnHandle` is one."""

    def __init__(self, turn: TurnHandle[T], loop: LoopThread) -> None:
        self.id = turn.id
        self._turn = turn
        self._loop = loop

    def __repr__(self) -> str:
        return f"SyncTurn({self.id!r})"

    def events(self, after: int = 0) -> Iterator[Event]:
        return self._loop.iterate(self._turn.events(after))

    def asked(self) -> Iterator[Question]:
        return self._loop.iterate(self._turn.asked())

    def partial_outputs(self) -> Iterator[T]:
        return self._loop.iterate(self._turn.partial_outputs())

    def result(self) -> TurnResult[T]:
        return self._loop.run(self._turn.result())

    def reached(self, state: State | str) -> bool:
        return self._loop.run(self._turn.reached(state))

    def snapshot(self) -> Snapshot:
        return self._loop.run(self._turn.snapshot())

    def context(self) -> ContextUse:
        return self._loop.run(self._turn.context())

    def trace(self) -> TurnTrace:
        return self._loop.run(self._turn.trace())

    def facts(self) -> list[Fact]:
        return self._loop.run(self._turn.facts())

    def turn(self) -> Turn:
        return self._loop.run(self._turn.turn())

    def request(self) -> RequestLayers:
        return self._loop.run(self._turn.request())

    @property
    def questions(self) -> tuple[Question, ...]:
        return self.snapshot().questions

    @property
    def question(self) -> str:
        """The first open question."""
        if not (waiting := self.questions):
            raise LookupError(f"turn {self.id} asks nothing now")
        return waiting[0].id

    def answer(self, question: str | Question, answer: Answer) -> Question:
        return self._loop.run(self._turn.answer(question, answer))

    def arguments_for_hunks(
        self, question: str | Question, hunks: Collection[int] | Mapping[int, str | None]
    ) -> Arguments:
        return self._loop.run(self._turn.arguments_for_hunks(question, hunks))

    def deliver(self, call: str, result: str | ToolResult, *, failed: bool = False) -> None:
        self._loop.run(self._turn.deliver(call, result, failed=failed))

    def steer(self, said: str | Sequence[Part]) -> None:
        self._loop.run(self._turn.steer(said))

    def cancel(self, reason: str = "") -> bool:
        return self._loop.run(self._turn.cancel(reason))

    def resume(self) -> bool:
        return self._loop.run(self._turn.resume())

    def diff(self, call: str | None = None) -> WorkspaceDiff:
        return self._loop.run(self._turn.diff(call))

    def revert(self, *, files_only: bool = False, force: bool = False) -> Reverted:
        return self._loop.run(self._turn.revert(files_only=files_only, force=force))


class SyncConversation:
    """A conversation, as `ConversationHandle` is one."""

    def __init__(self, chat: ConversationHandle, loop: LoopThread) -> None:
        self.id = chat.id
        self._chat = chat
        self._loop = loop

    def __repr__(self) -> str:
        return f"SyncConversation({self.id!r})"

    @overload
    def send(
        self,
        said: str | Sequence[Part],
        *,
        output_type: OutputType[T],
        parent: str | None = None,
        queue: bool = False,
        deps: object = None,
        **options: Unpack[SendOptions],
    ) -> SyncTurn[T]: ...
    @overload
    def send(
        self,
        said: str | Sequence[Part],
        *,
        output_type: None = None,
        parent: str | None = None,
        queue: bool = False,
        deps: object = None,
        **options: Unpack[SendOptions],
    ) -> SyncTurn: ...
    def send(self, said: str | Sequence[Part], **options: Any) -> SyncTurn[Any]:
        return SyncTurn(self._loop.run(self._chat.send(said, **options)), self._loop)

    @overload
    def edit(
        self,
        message: str,
        said: str | Sequence[Part],
        *,
        output_type: OutputType[T],
        deps: object = None,
        revert_files: bool = False,
        **options: Unpack[SendOptions],
    ) -> SyncTurn[T]: ...
    @overload
    def edit(
        self,
        message: str,
        said: str | Sequence[Part],
        *,
        output_type: None = None,
        deps: object = None,
        revert_files: bool = False,
        **options: Unpack[SendOptions],
    ) -> SyncTurn: ...
    def edit(self, message: str, said: str | Sequence[Part], **options: Any) -> SyncTurn[Any]:
        return SyncTurn(self._loop.run(self._chat.edit(message, said, **options)), self._loop)

    @overload
    def rerun(
        self,
        message: str,
        *,
        output_type: OutputType[T],
        deps: object = None,
        beside: bool = False,
        revert_files: bool = False,
        **options: Unpack[SendOptions],
    ) -> SyncTurn[T]: ...
    @overload
    def rerun(
        self,
        message: str,
        *,
        output_type: None = None,
        deps: object = None,
        beside: bool = False,
        revert_files: bool = False,
        **options: Unpack[SendOptions],
    ) -> SyncTurn: ...
    def rerun(self, message: str, **options: Any) -> SyncTurn[Any]:
        return SyncTurn(self._loop.run(self._chat.rerun(message, **options)), self._loop)

    def rerun_call(
        self,
        call: str,
        *,
        arguments: Arguments | None = None,
        result: str | None = None,
        revert_files: bool = False,
        **options: Unpack[SendOptions],
    ) -> SyncTurn:
        began = self._chat.rerun_call(
            call, arguments=arguments, result=result, revert_files=revert_files, **options
        )
        return SyncTurn(self._loop.run(began), self._loop)

    def turn(self, id: str, output_type: OutputType[T] | None = None) -> SyncTurn[T]:
        return SyncTurn(self._chat.turn(id, output_type), self._loop)

    def messages(self) -> list[Message]:
        return self._loop.run(self._chat.messages())

    def tree(self) -> Tree:
        return self._loop.run(self._chat.tree())

    def info(self) -> Conversation:
        return self._loop.run(self._chat.info())

    def questions(self) -> list[Question]:
        return self._loop.run(self._chat.questions())

    def move_to(self, message: str) -> None:
        self._loop.run(self._chat.move_to(message))

    def diff(self, message: str | None = None) -> WorkspaceDiff:
        return self._loop.run(self._chat.diff(message))

    def revert_to(self, message: str, *, files_only: bool = False, force: bool = False) -> Reverted:
        return self._loop.run(self._chat.revert_to(message, files_only=files_only, force=force))

    def redo(self, *, force: bool = False) -> Reverted:
        return self._loop.run(self._chat.redo(force=force))

    def label(
        self,
        *,
        pinned: bool | None = None,
        archived: bool | None = None,
        tags: Sequence[str] | None = None,
    ) -> None:
        self._loop.run(self._chat.label(pinned=pinned, archived=archived, tags=tags))

    def change(self, **settings: Unpack[ConversationOptions]) -> None:
        self._loop.run(self._chat.change(**settings))

    def rename(self, title: str) -> None:
        self._loop.run(self._chat.rename(title))


class SyncRuntime:
    """A runtime, as `Runtime` is one, and with the same parameters. Use it in a `with` statement."""

    def __init__(self, store: str | Path = "dragoman.db", *, model: AnyModel = None, **options: Any) -> None:
        self._loop = LoopThread()

        async def made() -> Runtime:
            return Runtime(store, model=model, **options)

        try:
            self.runtime = self._loop.run(made())
        except BaseException:
            self._loop.close()
            raise

    def __enter__(self) -> Self:
        try:
            self._loop.run(self.runtime.__aenter__())
        except BaseException:
            self._loop.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._loop.run(self.runtime.__aexit__(kind, error, trace))
        finally:
            self._loop.close()

    def conversation(
        self, id: str | None = None, *, user: str | None = None, **settings: Unpack[ConversationOptions]
    ) -> SyncConversation:
        chat = self._loop.run(self.runtime.conversation(id, user=user, **settings))
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
        deps: object = None,
        **options: Unpack[SendOptions],
    ) -> SyncTurn: ...
    def send(
        self, said: str | Sequence[Part], conversation: str | None = None, **options: Any
    ) -> SyncTurn[Any]:
        return SyncTurn(self._loop.run(self.runtime.send(said, conversation, **options)), self._loop)

    def turn(self, id: str, output_type: OutputType[T] | None = None) -> SyncTurn[T]:
        return SyncTurn(self.runtime.turn(id, output_type), self._loop)

    def answer(self, question: str, answer: Answer) -> Question:
        return self._loop.run(self.runtime.answer(question, answer))

    def turns(self, *, user: str | None = None) -> list[SyncTurn]:
        return [SyncTurn(turn, self._loop) for turn in self._loop.run(self.runtime.turns(user=user))]

    def spending(self, *by: Dimension, since: float = 0.0, user: str | None = None) -> list[Spending]:
        return self._loop.run(self.runtime.spending(*by, since=since, user=user))

    def questions(self) -> list[Question]:
        return self._loop.run(self.runtime.questions())

    def grants(self, *, user: str | None = None) -> list[Grant]:
        return self._loop.run(self.runtime.grants(user=user))

    def revoke(self, grant: str) -> None:
        self._loop.run(self.runtime.revoke(grant))

    def conversations(self, **page: Any) -> list[Conversation]:
        return self._loop.run(self.runtime.conversations(**page))

    def search(self, query: str, **page: Any) -> list[Found]:
        return self._loop.run(self.runtime.search(query, **page))

    def fork(self, conversation: str, message: str, *, own_folder: bool = False) -> SyncConversation:
        made = self._loop.run(self.runtime.fork(conversation, message, own_folder=own_folder))
        return SyncConversation(made, self._loop)

    def delete(self, conversation: str) -> None:
        self._loop.run(self.runtime.delete(conversation))

    def export(self, conversation: str) -> dict[str, JsonValue]:
        return self._loop.run(self.runtime.export(conversation))

    def export_markdown(self, conversation: str) -> str:
        return self._loop.run(self.runtime.export_markdown(conversation))

    def import_conversation(
        self, data: Mapping[str, JsonValue], *, user: str | None = None
    ) -> SyncConversation:
        return SyncConversation(self._loop.run(self.runtime.import_conversation(data, user=user)), self._loop)

    def answer_questions(self, turn: str) -> None:
        """Until the turn is over, answer what waits in it, and in the conversations its calls opened, as
        where nobody is there to be asked: what no rule allows does not run."""
        self._loop.run(answer_questions(self.runtime, self.runtime.turn(turn)))


@overload
def run_sync(
    said: str, *, model: AnyModel, output_type: OutputType[T], store: str | Path = ..., **more: Any
) -> TurnResult[T]: ...
@overload
def run_sync(
    said: str, *, model: AnyModel, output_type: None = None, store: str | Path = ..., **more: Any
) -> TurnResult: ...
def run_sync(
    said: str,
    *,
    model: AnyModel,
    output_type: OutputType[Any] | None = None,
    store: str | Path = "dragoman.db",
    **more: Any,
) -> TurnResult[Any]:
    """One question, one answer. Calls that no rule allows do not run, since nobody is there to be asked.
    `more` is what a `Runtime` takes. The conversation is kept in `store`, a file in the current folder."""
    with SyncRuntime(store, model=model, **more) as runtime:
        turn: SyncTurn[Any] = runtime.send(said, output_type=output_type)
        runtime.answer_questions(turn.id)
        return turn.result()
