"""Provides the handle of a conversation, for sending, its tree, its settings, undo, forks and deletion."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, overload

from typing_extensions import TypeVar, Unpack

from dragoman.conversation.sharing import Member, Omitted, Role, Share
from dragoman.conversation.tree import LOCAL, Conversation, Tree, check_tags, copied
from dragoman.errors import NotFound, TurnQuarantined, Unreadable
from dragoman.messages.ids import check_ids, new_id
from dragoman.messages.message import Arguments, Message, Part
from dragoman.messages.questions import Question
from dragoman.store.codecs import MESSAGE
from dragoman.turn.acting_agent import settings_at
from dragoman.turn.api.sharing import NewShare, Sharing
from dragoman.turn.api.turn_handle import Engine, TurnHandle
from dragoman.turn.api.undo import Reverted, Undo, WorkspaceDiff
from dragoman.turn.facts import CallChange, renewed
from dragoman.turn.output import OutputType, output_of
from dragoman.turn.send import SendOptions, TurnInputs, send_key, sent_bytes, turn_options, with_contexts
from dragoman.turn.services import Services
from dragoman.turn.settings import ConversationOptions, as_json, changed
from dragoman.turn.steps.family import root_of
from dragoman.workspace.workspaces import OWN

T = TypeVar("T", default=str)


class ConversationHandle:
    """A conversation. Each method returns after its effect is stored."""

    def __init__(self, id: str, engine: Engine, opens: Conversation | None = None) -> None:
        self.id = id
        self._opens = opens  # Stored together with the first message.
        self._engine = engine
        self._store = engine.store
        self._sharing = Sharing(engine)

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
        by: str | None = None,
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
        by: str | None = None,
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
        by: str | None = None,
        **options: Unpack[SendOptions],
    ) -> TurnHandle[Any]:
        """Send a message and start a turn that answers it. Raise TurnBusy if this branch has a running turn.

        A send with the same content and a `key` used within a day returns the turn started then. `contexts`
        maps titles to texts that precede the message. `output_type` is the required type of the answer.
        `deps` replaces the runtime's dependencies as `context.deps` of tools and plugins. `by` is the sending
        member, whose rules and limits apply instead of the owner's.
        """
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
            by=by,
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
        """Send a new version of a user message and start a turn that answers it.

        Options left out stay as they were. `revert_files` first undoes the old answer's changes to the
        workspace, and all changes since.
        """
        await self._own(message)
        output = output_of(output_type)
        wanted = turn_options(output.spec if output else None, **options)
        inputs = TurnInputs(deps, output)
        back = self._engine.undo
        async with back.reverted(back.revert_message(message, files_only=True) if revert_files else None):
            turn = await self._engine.commands.edit(message, said, options=wanted, inputs=inputs)
        return TurnHandle(turn, self._engine, output)

    async def rerun(
        self,
        message: str,
        *,
        output_type: OutputType[T] | None = None,
        deps: object = None,
        parallel: bool = False,
        revert_files: bool = False,
        **options: Unpack[SendOptions],
    ) -> TurnHandle[T]:
        """Start a new version of an answer.

        Options left out are as in the repeated send. `parallel` starts it even while another version is
        running, to send one message to several models at the same time. `revert_files` first undoes what
        answers to the message changed in the workspace, and all changes since.
        """
        await self._own(message)
        output = output_of(output_type)
        wanted = turn_options(output.spec if output else None, **options)
        inputs = TurnInputs(deps, output)
        back = self._engine.undo
        async with back.reverted(back.revert_answers(message) if revert_files else None):
            turn = await self._engine.commands.rerun(
                message, options=wanted, inputs=inputs, parallel=parallel
            )
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
        """Start a new version of the answer that holds this call, identical up to the call.

        The call runs again with these arguments, or the turn continues as if `result` had been its result.
        `revert_files` first undoes the call's changes to the workspace, and all changes since.
        """
        check_ids(call=call)
        _, conversation, _ = await self._store.call(call)
        if conversation != self.id:
            raise NotFound("call", call)
        change = CallChange(call, arguments, result)
        back = self._engine.undo
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
        """Return the messages on the path to the leaf: the branch that the conversation shows."""
        leaf = (await self.info()).leaf  # Read the leaf first, so that the tree read afterwards contains it.
        return (await self.tree()).path(leaf)

    async def move_to(self, message: str) -> None:
        """Switch to another branch: its newest message becomes the leaf."""
        check_ids(message=message)
        tree = await self.tree()
        await self._store.set_leaf(self.id, tree.tip(message), 0.0)

    async def diff(self, message: str | None = None) -> WorkspaceDiff:
        """Return the changes of the conversation's turns to workspace files, without undone ones.

        With `message`, return the changes of one reply's calls, which are one step of its turn.
        """
        if message is None:
            return await self._engine.undo.diff_conversation(self.id)
        await self._own(message)
        return await self._engine.undo.diff_message(message)

    async def revert_to(
        self, message: str, *, files_only: bool = False, paths: Collection[str] = (), force: bool = False
    ) -> Reverted:
        """Revert to before a message, as `TurnHandle.revert` does to before a turn."""
        await self._own(message)
        return await self._engine.undo.revert_message(
            message, files_only=files_only, paths=paths, force=force
        )

    async def redo(self, *, force: bool = False) -> Reverted:
        """Undo the last revert."""
        return await self._engine.undo.redo(self.id, force=force)

    async def questions(self) -> list[Question]:
        return await self._store.questions(conversation=self.id)

    # ── members ───────────────────────────────────────────────────────────────────────────────────

    async def members(self) -> list[Member]:
        """Return the users with whom it is shared."""
        return await self._store.members(self.id)

    async def share(self, user: str, role: Role = "reads") -> Member:
        """Share it with a user, who `reads`, `answers` approval requests, or `takes_part`."""
        check_ids(user=user)
        return await self._sharing.add(self.id, user, role, by=await self._store.owner_of(self.id))

    async def unshare(self, user: str) -> None:
        """Stop sharing it with a user, and cancel that user's turns in it."""
        check_ids(user=user)
        await self._sharing.remove(self.id, user, by=await self._store.owner_of(self.id))

    async def transfer(self, user: str) -> None:
        """Make a member the owner. The previous owner stays, as a member who takes part."""
        check_ids(user=user)
        await self._sharing.transfer(self.id, user)

    async def invite(self, role: Role = "reads", *, seconds: float | None = None) -> NewShare:
        """Create an invitation, whose token makes the first user who uses it a member.

        It is valid for a week by default.
        """
        owner = await self._store.owner_of(self.id)
        return await self._sharing.invite(self.id, role, by=owner, seconds=seconds)

    async def link(
        self,
        *,
        upto: str | None = None,
        frozen: bool = False,
        omits: Sequence[Omitted] = (),
        seconds: float | None = None,
    ) -> NewShare:
        """Create a link, whose token lets anyone read what the conversation shows.

        `upto` ends it at a message. `frozen` fixes it as it is now. It can omit arguments, results, files and
        reasoning.
        """
        owner = await self._store.owner_of(self.id)
        return await self._sharing.link(
            self.id, by=owner, seconds=seconds, upto=upto, frozen=frozen, omits=omits
        )

    async def shares(self) -> list[Share]:
        """Return the links and unused invitations."""
        return await self._sharing.shares(self.id)

    async def revoke_share(self, share: str) -> None:
        """Invalidate an invitation or a link."""
        check_ids(share=share)
        await self._sharing.revoke(self.id, share)

    async def rename(self, title: str) -> None:
        # The title is stored unchanged, and an invalid one would make the list unreadable.
        check_ids(title=title)
        await self._store.set_title(self.id, title.strip())

    async def label(
        self,
        *,
        pinned: bool | None = None,
        archived: bool | None = None,
        tags: Sequence[str] | None = None,
    ) -> None:
        """Pin the conversation, archive it until the next message, or set its tags. None leaves a label
        unchanged."""
        words = check_tags(tags) if tags is not None else None
        await self._store.label_conversation(self.id, pinned=pinned, archived=archived, tags=words)

    async def change(self, **settings: Unpack[ConversationOptions]) -> None:
        """Change settings of this conversation: model, mode, system, options, tools. None removes one.

        Queued turns also get its new mode, tool switches, reviews, private texts and limits. Running turns do
        not.
        """
        info = await self.info()
        if isinstance(name := settings.get("workspace"), str):
            self._engine.services.workspaces.find(name, await root_of(self._store, info))
        self._engine.services.toolbox.check_switches(settings.get("tools"), info.settings.get("tools"))
        await self._store.change_settings(self.id, lambda before: changed(before, as_json(settings)))
        now = (await self.info()).settings
        await self._store.renew_queued(self.id, lambda fact: renewed(fact, now))

    async def _own(self, message: str) -> None:
        check_ids(message=message)
        if (await self._store.message(message)).conversation != self.id:
            raise NotFound("message", message)


# Forks: the path to a message as a separate conversation, with a separate folder if requested.


async def fork_conversation(
    services: Services,
    undo: Undo,
    conversation: str,
    message: str,
    *,
    own_folder: bool,
    user: str | None = None,
) -> str:
    """Return the ID of the fork, which belongs to `user` or to the owner of the original.

    Messages up to this one are copied. Queued messages stay with the original. A member gets only the private
    texts that occur in the copied messages. The fork starts with the agent that answered there. If the
    conversation has a separate folder, the fork gets one too: deleting either must not remove the other's
    files.
    """
    store, now = services.store, services.clock()
    messages, _ = await store.messages(conversation)
    info = await store.conversation(conversation)
    id = new_id("conv")
    path = Tree(messages).path(message)
    copies = copied(path, id)
    settings = await settings_at(services, info.settings, messages, path)
    owner = user or info.owner
    if owner != info.owner and isinstance(private := settings.pop("private", None), dict):
        said = "".join(MESSAGE.dump(one) for one in path)
        seen = {name: text for name, text in private.items() if str(text) in said}
        settings |= {"private": seen} if seen else {}
    named = settings.get("workspace")
    name = named if isinstance(named, str) else None
    copied_folder = own_folder or (name is not None and name.endswith(OWN))
    if copied_folder:
        settings["workspace"] = await undo.copy_for(id, conversation, message, name)
    forked = Conversation(
        id,
        title=info.title,
        leaf=copies[message].id,
        user=None if owner == LOCAL else owner,
        settings=settings,
        created=now,
        updated=now,
    )
    try:
        await store.add_conversation(forked, list(copies.values()))
    except BaseException:
        if copied_folder:
            await undo.forget([id])
        raise
    return id


# Deletes conversations, with their running and queued turns and everything recorded about them.


_PATIENCE = 10.0  # Maximum seconds to wait for a turn to end before its conversation is deleted.


async def delete_conversation(engine: Engine, conversation: str) -> None:
    """Delete a conversation and those its calls opened, after cancelling what runs in them."""
    store = engine.store
    within = await store.within(conversation)
    for inner in within:
        # Otherwise the next queued turn would start meanwhile.
        for waiting in await store.queued(conversation=inner):
            await store.unqueue(waiting.turn)
            engine.services.inputs.pop(waiting.turn, None)
    live = [row.id for inner in reversed(within) for row in await store.turns(inner) if row.live]
    for turn in live:  # Cancel the outermost first: it would continue with the outcome of the others.
        with suppress(Unreadable, TurnQuarantined):
            await engine.commands.cancel(turn, "the conversation is deleted")
    for turn in live:
        # The deletion fences off a turn that is still running.
        with suppress(TimeoutError, Unreadable, TurnQuarantined):
            async with asyncio.timeout(_PATIENCE):
                await TurnHandle(turn, engine).reached("cancelled")
    await store.delete_conversation(conversation)
    await _forget(engine, within)


async def delete_untouched(engine: Engine, before: float) -> int:
    """Delete conversations without messages since that time and without waiting turns.

    Return their number.
    """
    deleted = await engine.store.delete_untouched(before)
    if deleted:
        await _forget(engine, deleted)
    return len(deleted)


async def _forget(engine: Engine, deleted: Sequence[str]) -> None:
    await engine.undo.forget(deleted)
    for conversation in deleted:
        engine.driver.forget(conversation)
        engine.bus.forget(conversation)
