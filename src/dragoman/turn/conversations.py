"""What a caller holds to talk in: a conversation, its tree, its settings, and the way back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, overload

from typing_extensions import TypeVar, Unpack

from dragoman.conversation.tree import Conversation, Tree, check_tags
from dragoman.errors import NotFound
from dragoman.messages.ids import check_ids
from dragoman.messages.message import Arguments, Message, Part
from dragoman.messages.questions import Question
from dragoman.turn.facts import CallChange, renewed
from dragoman.turn.families import root_of
from dragoman.turn.handles import Engine, TurnHandle
from dragoman.turn.output import OutputType, output_of
from dragoman.turn.said import with_contexts
from dragoman.turn.send import SendOptions, TurnInputs, send_key, sent_bytes, turn_options
from dragoman.turn.settings import ConversationOptions, as_json, changed
from dragoman.turn.way_back import Reverted, WorkspaceDiff

T = TypeVar("T", default=str)


class ConversationHandle:
    """A conversation. Everything it does is stored when the call returns."""

    def __init__(self, id: str, engine: Engine, opens: Conversation | None = None) -> None:
        check_ids(conversation=id)
        self.id = id
        self._opens = opens  # it is stored with what is sent first
        self._engine = engine
        self._store = engine.store

    def __repr__(self) -> str:
        return f"ConversationHandle({self.id!r})"

    @overload
    async def send(
        self,
        said: str | Sequence[Part],
        *,
        output_type: OutputType[T],
        parent: str | None = None,
        queue: bool = False,
        key: str | None = None,
        contexts: Mapping[str, str] | None = None,
        deps: object = None,
        **options: Unpack[SendOptions],
    ) -> TurnHandle[T]: ...
    @overload
    async def send(
        self,
        said: str | Sequence[Part],
        *,
        output_type: None = None,
        parent: str | None = None,
        queue: bool = False,
        key: str | None = None,
        contexts: Mapping[str, str] | None = None,
        deps: object = None,
        **options: Unpack[SendOptions],
    ) -> TurnHandle: ...
    async def send(
        self,
        said: str | Sequence[Part],
        *,
        output_type: OutputType[Any] | None = None,
        parent: str | None = None,
        queue: bool = False,
        key: str | None = None,
        contexts: Mapping[str, str] | None = None,
        deps: object = None,
        **options: Unpack[SendOptions],
    ) -> TurnHandle[Any]:
        """Say something; a turn that answers begins. TurnBusy where one of this branch is running.

        A send with a `key` that was used within a day, and the same content, returns the turn that was begun
        then. `contexts` are texts by their titles, which are sent before what is said. `output_type` is what
        the answer has to be; `deps` is what its tools and plugins get as `context.deps` in place of the
        runtime's."""
        said = with_contexts(said, contexts or {})
        check_ids(parent=parent, key=key)
        output = output_of(output_type)
        wanted = turn_options(output.spec if output else None, **options)
        known = None
        if key is not None:
            here = None if self._opens is not None else self.id
            sent = sent_bytes(here, said, parent, wanted, queue=queue)
            known = send_key(key, sent, self._engine.services.clock())
        turn = await self._engine.commands.send(
            self.id,
            said,
            parent=parent,
            queue=queue,
            options=wanted,
            inputs=TurnInputs(deps, output),
            key=known,
            opens=self._opens,
        )
        return TurnHandle(turn, self._engine, output)

    async def edit(
        self,
        message: str,
        said: str | Sequence[Part],
        *,
        output_type: OutputType[T] | None = None,
        deps: object = None,
        revert_files: bool = False,
        **options: Unpack[SendOptions],
    ) -> TurnHandle[T]:
        """A new version of what a person said, and its answer. What `options` leave out is as it was. With
        `revert_files`, what the old answer did to the workspace, and what was done since, is taken back
        before."""
        await self._own(message)
        output = output_of(output_type)
        wanted = turn_options(output.spec if output else None, **options)
        inputs = TurnInputs(deps, output)
        back = self._engine.way_back
        async with back.reverted(back.revert_message(message, files_only=True) if revert_files else None):
            turn = await self._engine.commands.edit(message, said, options=wanted, inputs=inputs)
        return TurnHandle(turn, self._engine, output)

    async def rerun(
        self,
        message: str,
        *,
        output_type: OutputType[T] | None = None,
        deps: object = None,
        beside: bool = False,
        revert_files: bool = False,
        **options: Unpack[SendOptions],
    ) -> TurnHandle[T]:
        """A new version of an answer. What `options` leave out is as it was for the send it repeats. With
        `beside`, it is made also while another is: one question to several models at once. With
        `revert_files`, what answers to it did to the workspace, and what was done since, is taken back
        before."""
        await self._own(message)
        output = output_of(output_type)
        wanted = turn_options(output.spec if output else None, **options)
        inputs = TurnInputs(deps, output)
        back = self._engine.way_back
        async with back.reverted(back.revert_answers(message) if revert_files else None):
            turn = await self._engine.commands.rerun(message, options=wanted, inputs=inputs, beside=beside)
        return TurnHandle(turn, self._engine, output)

    async def rerun_call(
        self,
        call: str,
        *,
        arguments: Arguments | None = None,
        result: str | None = None,
        revert_files: bool = False,
        **options: Unpack[SendOptions],
    ) -> TurnHandle:
        """A new version of the answer that holds this call: the same up to it, made again with these
        arguments, or gone on from as if this had been its result. With `revert_files`, what it did to the
        workspace, and what was done since, is taken back before."""
        check_ids(call=call)
        _, conversation, _ = await self._store.call(call)
        if conversation != self.id:
            raise NotFound("call", call)
        change = CallChange(call, arguments, result)
        back = self._engine.way_back
        async with back.reverted(back.revert_call(call, files_only=True) if revert_files else None):
            turn = await self._engine.commands.rerun_call(change, options=turn_options(**options))
        return TurnHandle(turn, self._engine)

    def turn(self, id: str, output_type: OutputType[T] | None = None) -> TurnHandle[T]:
        return TurnHandle(id, self._engine, output_of(output_type))

    async def info(self) -> Conversation:
        return await self._store.conversation(self.id)

    async def tree(self) -> Tree:
        messages, _ = await self._store.messages(self.id)
        return Tree(messages)

    async def messages(self) -> list[Message]:
        """The path to the leaf: what the conversation looks like now."""
        leaf = (await self.info()).leaf  # first: the tree that is read after it has it
        return (await self.tree()).path(leaf)

    async def move_to(self, message: str) -> None:
        """Look at another branch: its newest message becomes the leaf."""
        check_ids(message=message)
        tree = await self.tree()
        await self._store.set_leaf(self.id, tree.tip(message), 0.0)

    async def diff(self, message: str | None = None) -> WorkspaceDiff:
        """What its turns did to the files of the workspace, less what was taken back; or what the calls of
        one reply did, which is a step of its turn."""
        if message is None:
            return await self._engine.way_back.diff_conversation(self.id)
        await self._own(message)
        return await self._engine.way_back.diff_message(message)

    async def revert_to(self, message: str, *, files_only: bool = False, force: bool = False) -> Reverted:
        """Go back to before a message, as `TurnHandle.revert` does to before a turn."""
        await self._own(message)
        return await self._engine.way_back.revert_message(message, files_only=files_only, force=force)

    async def redo(self, *, force: bool = False) -> Reverted:
        """Take the last revert back."""
        return await self._engine.way_back.redo(self.id, force=force)

    async def questions(self) -> list[Question]:
        return await self._store.questions(conversation=self.id)

    async def rename(self, title: str) -> None:
        check_ids(title=title)  # stored as given, anything else would make the list unreadable
        await self._store.set_title(self.id, title.strip())

    async def label(
        self,
        *,
        pinned: bool | None = None,
        archived: bool | None = None,
        tags: Sequence[str] | None = None,
    ) -> None:
        """Keep it in reach, put it out of the way until something is said in it, or file it under words. What
        is None stays as it is."""
        words = check_tags(tags) if tags is not None else None
        await self._store.label_conversation(self.id, pinned=pinned, archived=archived, tags=words)

    async def change(self, **settings: Unpack[ConversationOptions]) -> None:
        """Settings of this conversation: model, mode, system, options, tools. None takes one away. What is
        queued is held to its mode, switches, reviews, private texts and limits, too; what runs is not."""
        if isinstance(name := settings.get("workspace"), str):
            root = await root_of(self._store, await self.info())
            self._engine.services.workspaces.find(name, root)
        self._engine.services.toolbox.check_switches(settings.get("tools"))
        await self._store.change_settings(self.id, lambda before: changed(before, as_json(settings)))
        now = (await self.info()).settings
        await self._store.renew_queued(self.id, lambda fact: renewed(fact, now))

    async def _own(self, message: str) -> None:
        check_ids(message=message)
        if (await self._store.message(message)).conversation != self.id:
            raise NotFound("message", message)
