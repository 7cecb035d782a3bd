"""Provide a turn for programs without `await`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Generic

from typing_extensions import TypeVar

from dragoman.messages.events import Event, TurnEnd
from dragoman.messages.message import Arguments, Part, ToolResult
from dragoman.messages.questions import Answer, Question
from dragoman.sync.loop_thread import LoopThread
from dragoman.turn.api.turn_handle import TurnHandle, TurnResult
from dragoman.turn.api.undo import Reverted, WorkspaceDiff
from dragoman.turn.facts import Fact
from dragoman.turn.live.log import Snapshot
from dragoman.turn.machine import State, Turn
from dragoman.turn.steps.request_layers import ContextUse, RequestLayers
from dragoman.turn.trace import TurnTrace

T = TypeVar("T", default=str)


class SyncTurn(Generic[T]):
    """A turn with the methods of `TurnHandle`."""

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

    def result(self, *, strict: bool = False) -> TurnResult[T]:
        return self._loop.run(self._turn.result(strict=strict))

    def reached(self, state: State | str) -> bool:
        return self._loop.run(self._turn.reached(state))

    def snapshot(self) -> Snapshot:
        return self._loop.run(self._turn.snapshot())

    def end(self) -> TurnEnd | None:
        return self._loop.run(self._turn.end())

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
        """The first open approval request. Raises LookupError if there is none."""
        if not (waiting := self.questions):
            raise LookupError(f"Turn {self.id} has no open approval request.")
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

    def revert(
        self, *, files_only: bool = False, paths: Collection[str] = (), force: bool = False
    ) -> Reverted:
        return self._loop.run(self._turn.revert(files_only=files_only, paths=paths, force=force))
