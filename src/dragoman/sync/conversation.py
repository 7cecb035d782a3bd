"""Provide a conversation for programs without `await`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, overload

from typing_extensions import TypeVar, Unpack

from dragoman.conversation.sharing import Member, Omitted, Role, Share
from dragoman.conversation.tree import Conversation, Tree
from dragoman.messages.message import Arguments, Message, Part
from dragoman.messages.questions import Question
from dragoman.sync.loop_thread import LoopThread
from dragoman.sync.turn import SyncTurn
from dragoman.turn.api.conversation_handle import ConversationHandle
from dragoman.turn.api.sharing import NewShare
from dragoman.turn.api.undo import Reverted, WorkspaceDiff
from dragoman.turn.output import OutputType
from dragoman.turn.send import SendOptions
from dragoman.turn.settings import ConversationOptions

T = TypeVar("T", default=str)


class SyncConversation:
    """A conversation with the methods of `ConversationHandle`."""

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
        key: str | None = None,
        contexts: Mapping[str, str] | None = None,
        deps: object = None,
        by: str | None = None,
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
        key: str | None = None,
        contexts: Mapping[str, str] | None = None,
        deps: object = None,
        by: str | None = None,
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
        parallel: bool = False,
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
        parallel: bool = False,
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

    def members(self) -> list[Member]:
        return self._loop.run(self._chat.members())

    def share(self, user: str, role: Role = "reads") -> Member:
        return self._loop.run(self._chat.share(user, role))

    def unshare(self, user: str) -> None:
        self._loop.run(self._chat.unshare(user))

    def transfer(self, user: str) -> None:
        self._loop.run(self._chat.transfer(user))

    def invite(self, role: Role = "reads", *, seconds: float | None = None) -> NewShare:
        return self._loop.run(self._chat.invite(role, seconds=seconds))

    def link(
        self,
        *,
        upto: str | None = None,
        frozen: bool = False,
        omits: Sequence[Omitted] = (),
        seconds: float | None = None,
    ) -> NewShare:
        return self._loop.run(self._chat.link(upto=upto, frozen=frozen, omits=omits, seconds=seconds))

    def shares(self) -> list[Share]:
        return self._loop.run(self._chat.shares())

    def revoke_share(self, share: str) -> None:
        self._loop.run(self._chat.revoke_share(share))

    def questions(self) -> list[Question]:
        return self._loop.run(self._chat.questions())

    def move_to(self, message: str) -> None:
        self._loop.run(self._chat.move_to(message))

    def diff(self, message: str | None = None) -> WorkspaceDiff:
        return self._loop.run(self._chat.diff(message))

    def revert_to(
        self, message: str, *, files_only: bool = False, paths: Collection[str] = (), force: bool = False
    ) -> Reverted:
        return self._loop.run(self._chat.revert_to(message, files_only=files_only, paths=paths, force=force))

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
