"""Shows and undoes changes of turns: files and conversation together, or files alone."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from dragoman.background import in_thread
from dragoman.conversation.tree import Tree
from dragoman.errors import BadRequest, NotFound, StoreUnavailable, TurnBusy
from dragoman.sentences import sentence
from dragoman.store.store import Store
from dragoman.tools.workspace import read_inside, steps_of
from dragoman.turn.api.undo_points import (
    Point,
    done_in,
    last_to_redo,
    point_in,
    records_after,
    undone_in,
)
from dragoman.turn.steps.family import family_of, root_of, tasks_given
from dragoman.workspace.blame import BlamedLine, blame
from dragoman.workspace.diff import FileDiff, diff_of, joined
from dragoman.workspace.histories import Histories, InFolder, finish_reverts, revert_together
from dragoman.workspace.history import WorkspaceHistory
from dragoman.workspace.revert import limited
from dragoman.workspace.states import ChangeRecord, FileChange, compose
from dragoman.workspace.workspaces import OWN, Workspaces, copy_folder, remove_copy, take_back

_log = logging.getLogger("dragoman.turn")
_InFolder: TypeAlias = tuple[WorkspaceHistory, list[ChangeRecord]]
_BLAMED = 5_000_000  # Maximum size in bytes of a file whose lines are attributed.


@dataclass(slots=True, frozen=True)
class WorkspaceDiff:
    """Changes to files.

    `notes` list what could not be recorded. `undone` lists the files of a turn where none of its changes
    remain.
    """

    files: list[FileDiff] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    undone: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Return the diff in the format of `git diff`."""
        return joined(self.files)


WENT_ON = "the conversation continued meanwhile, and stays where it is"  # a note of a revert
FIRST_MESSAGE = "it was the first message: the conversation stays where it is"  # a note of a revert


@dataclass(slots=True, frozen=True)
class Reverted:
    """The outcome of a revert."""

    conversation: str
    paths: list[str] = field(default_factory=list)  # changed paths
    notes: list[str] = field(default_factory=list)  # what stayed unchanged, and why
    leaf: str | None = None  # current leaf of the conversation
    moved: bool = False  # whether the leaf changed
    turn: str | None = None  # The earliest turn affected. None if a redo is impossible.


class Undo:
    def __init__(self, store: Store, histories: Histories, workspaces: Workspaces) -> None:
        self._store = store
        self._histories = histories
        self._workspaces = workspaces

    # ── diffs ─────────────────────────────────────────────────────────────────────────────────────

    async def diff_turn(self, turn: str) -> WorkspaceDiff:
        """Return the combined changes of the turn's calls and the tasks they gave."""
        return await self._diff_turn(turn, None)

    async def diff_message(self, message: str) -> WorkspaceDiff:
        """Return the changes of a reply's calls, one step of its turn. For a user message, those of the whole
        turn."""
        found = await self._store.message(message)
        calls = {call.id for call in found.all_calls} if found.role == "assistant" else None
        try:
            return await self._diff_turn(found.turn or "", calls)
        except NotFound:  # The message comes from a fork or an import.
            return WorkspaceDiff()

    async def diff_call(self, call: str) -> WorkspaceDiff:
        """Return the changes of one call, together with those of calls that ran at the same time.

        Such calls cannot be told apart.
        """
        await self._store.call(call)
        try:
            return await self._diff_turn((await self._store.turn_of_call(call)).id, {call})
        except NotFound:  # The call comes from a fork or an import.
            return WorkspaceDiff()

    async def _diff_turn(self, turn: str, calls: set[str] | None) -> WorkspaceDiff:
        """Return the changes of these calls, or of all if None."""
        row = await self._store.turn(turn)
        related = await family_of(self._store, row.conversation)
        if calls is None and len(related) > 1:
            tree = await self._tree(row.conversation)
            gave = {call.id for message in tree if message.turn == turn for call in message.all_calls}
        else:
            gave = calls or set()
        _, given = await tasks_given(self._store, row.conversation, gave)
        turns = [turn, *(one.id for one in given)]
        over = [one.id for one in (row, *given) if not one.live]
        histories = await self._of_conversation(row.conversation)

        def read() -> WorkspaceDiff:
            for history in histories:
                for each in over if history.is_there else ():
                    history.settle(each)
            with self._histories.telling_of(turns) as found:
                if found is None:
                    return WorkspaceDiff()
                records = [
                    one
                    for one in found.of_turns(turns)
                    if one.turn != turn or calls is None or calls & set(one.calls)
                ]
                diff, undone = _diff(found, records), undone_in(records, found.of_conversation(*related))
                return replace(diff, undone=[file.path for file in diff.files if file.path in undone])

        return await in_thread(read)

    async def diff_conversation(self, conversation: str) -> WorkspaceDiff:
        """Return the changes of all its turns and the tasks they gave, without undone ones."""
        histories = await self._of_conversation(conversation)
        related, within = await family_of(self._store, conversation), await self._store.within(conversation)

        def read() -> WorkspaceDiff:
            all = [(one, done_in(within, one.of_conversation(*related))) for one in histories]
            found = [(one, records) for one, records in all if records]
            diffs = [_diff(history, records) for history, records in found]
            several = [f"files of {history.root}" for history, _ in found] if len(found) > 1 else []
            return WorkspaceDiff(
                [file for diff in diffs for file in diff.files],
                [*several, *(note for diff in diffs for note in diff.notes)],
            )

        return await in_thread(read)

    async def blame(self, path: str) -> list[BlamedLine]:
        """Return each line of a workspace file with the record that wrote it."""
        history = self._recorded()
        name = "/".join(steps_of(path))

        def read() -> list[BlamedLine]:
            now = read_inside(history.root, name, _BLAMED)
            return blame(name, now, history.of_path(name), history.contents)

        return await in_thread(read)

    # ── undo ──────────────────────────────────────────────────────────────────────────────────────

    async def revert_turn(
        self, turn: str, *, files_only: bool = False, paths: Collection[str] = (), force: bool = False
    ) -> Reverted:
        """Revert to before the message that the turn answers, or before its answer if the turn is a rerun.

        With `paths`, revert only these files. The conversation stays where it is.
        """
        row = await self._store.turn(turn)
        tree = await self._tree(row.conversation)
        question = tree[row.message]
        if question.turn == turn:
            first = [question]
        else:
            own = [message for message in tree if message.turn == turn]
            first = [message for message in own if message.parent == row.message] or own[:1]
        return await self._revert(point_in(tree, row.conversation, turn, first), files_only, force, paths)

    async def revert_message(
        self, message: str, *, files_only: bool = False, paths: Collection[str] = (), force: bool = False
    ) -> Reverted:
        """Revert to before a user message or a reply."""
        found = await self._store.message(message)
        tree = await self._tree(found.conversation)
        point = point_in(tree, found.conversation, found.turn or "", [found])
        return await self._revert(point, files_only, force, paths)

    async def revert_call(
        self, call: str, *, files_only: bool = False, paths: Collection[str] = (), force: bool = False
    ) -> Reverted:
        """Revert the files to before a call, and the conversation to before the reply that holds it."""
        _, conversation, _ = await self._store.call(call)
        tree = await self._tree(conversation)
        for message in tree:
            if any(one.id == call for one in message.all_calls):
                point = point_in(tree, conversation, message.turn or "", [message], first_call=call)
                return await self._revert(point, files_only, force, paths)
        raise NotFound("call", call)

    async def revert_answers(self, message: str) -> Reverted:
        """Revert only the files, to before any answer to a user message.

        `message` is that message or one of its answers.
        """
        found = await self._store.message(message)
        tree = await self._tree(found.conversation)
        question = tree.question_of(message)
        answers = [tree[id] for id in tree.children(question.id)]
        point = point_in(tree, found.conversation, found.turn or "", answers)
        return await self._revert(point, files_only=True, force=False)

    @asynccontextmanager
    async def reverted(self, going_back: Awaitable[Reverted] | None) -> AsyncIterator[None]:
        """Revert before a new version starts, if requested, and redo the revert if starting it fails."""
        done = await going_back if going_back is not None else None
        try:
            yield
        except BaseException:
            if done is not None and done.paths:
                await self.redo(done.conversation)
            raise

    async def redo(self, conversation: str, *, force: bool = False) -> Reverted:
        """Undo the last revert of a conversation."""
        self._recorded()
        info = await self._store.conversation(conversation)
        histories = await self._of_conversation(conversation)
        related = await family_of(self._store, conversation)

        def redo() -> list[InFolder]:
            finish_reverts(self._histories)
            found = [(one, last_to_redo(conversation, one.of_conversation(*related))) for one in histories]
            there = [(one, record) for one, record in found if record is not None]
            if not there:
                raise BadRequest(sentence("redo.nothing"))
            latest = max(record.created for _, record in there)
            together = [(one, record) for one, record in there if record.created == latest]
            # The record that moves the leaf goes last.
            together.sort(key=lambda part: part[1].leaf_before is not None)
            record = together[-1][1]
            leaf = (info.leaf, record.leaf_before) if record.leaf_before is not None else None
            parts = [(one, [record]) for one, record in together]
            return revert_together(
                self._histories, parts, conversation=conversation, turn=record.turn, force=force, leaf=leaf
            )

        return await self._moved(await in_thread(redo), info.leaf)

    # ── a separate folder ─────────────────────────────────────────────────────────────────────────

    async def copy_for(self, fork: str, conversation: str, message: str, name: str | None) -> str:
        """Give a fork a copy of its conversation's folder, without the changes made after this message.

        Return the name of that workspace for the fork's settings.
        """
        target = self._workspaces.place_for_copy(fork, name)
        root = await root_of(self._store, await self._store.conversation(conversation))
        workspace = self._workspaces.find(name, root)
        if workspace is None:
            raise BadRequest(sentence("copy.no_workspace"))
        if target is None:
            raise BadRequest(sentence("copy.no_place"))
        tree = await self._tree(conversation)
        point = point_in(tree, conversation, "", [tree[id] for id in tree.children(message)])
        tasks, _ = await tasks_given(self._store, conversation, point.calls)
        related = await family_of(self._store, conversation)
        history = self._histories.at(workspace.folder)
        limits, skip = self._histories.limits, self._histories.left_out

        def copy() -> list[str]:
            copy_folder(workspace.folder.resolve(), target, limits, skip)
            if history is None or not history.is_there:
                return []
            done = records_after(replace(point, tasks=tasks), history.of_conversation(*related))
            return take_back(target, done, history.contents, limits)

        for left in await in_thread(copy):
            _log.warning("in the copy for %s was not undone: %s", fork, left)
        return f"{(name or '').removesuffix(OWN)}{OWN}"

    async def open(self) -> None:
        """Finish reverts that another process left incomplete, and drop records that are too old.

        Damaged records must not keep users from sending, so failures are only logged.
        """
        try:
            await in_thread(partial(finish_reverts, self._histories))
        except (OSError, ValueError, sqlite3.Error, BadRequest, StoreUnavailable) as error:
            _log.warning("an undo in several folders was neither finished nor reverted: %s", error)
        for history in self._opened(*self._workspaces.copies()):
            if not history.is_there:
                continue
            try:
                for record in await in_thread(history.waiting_leaves):
                    try:
                        await self._move(history, record)
                    except NotFound:  # The conversation was deleted meanwhile.
                        await in_thread(partial(history.settle_leaf, record.id, moved=False))
                await in_thread(history.forget)
                # There may be one history for every fork. Each reopens on use.
                await in_thread(history.close)
            except (OSError, sqlite3.Error, StoreUnavailable) as error:
                _log.warning("cannot read the file records of the workspace: %s", error)

    async def forget(self, conversations: Sequence[str]) -> None:
        """Delete the records and separate folders of deleted conversations."""

        def forget() -> None:
            self._histories.forget(conversations)
            for conversation in conversations:
                if (folder := self._workspaces.copy_of(conversation)) is not None:
                    remove_copy(folder)
                    self._histories.remove(folder)

        try:
            await in_thread(forget)
        except (OSError, sqlite3.Error, StoreUnavailable) as error:
            _log.warning("cannot delete the file records of deleted conversations: %s", error)

    def _recorded(self) -> WorkspaceHistory:
        """Return the history of the runtime's main folder, or of the first named one.

        Raise BadRequest if no folder has a history.
        """
        for history in self._opened():
            return history
        raise BadRequest(sentence("undo.off"))

    def _opened(self, *more: Path) -> list[WorkspaceHistory]:
        """Return the histories of the runtime's folders, and of these."""
        folders = [*(workspace.folder for workspace in self._workspaces), *more]
        found = [self._histories.at(folder) for folder in folders]
        return [history for history in dict.fromkeys(found) if history is not None]

    async def _of_conversation(self, conversation: str) -> list[WorkspaceHistory]:
        """Return the histories of every folder its turns may have worked in, a separate folder first."""
        root = await root_of(self._store, await self._store.conversation(conversation))
        own = self._workspaces.copy_of(root)
        first = self._histories.at(own) if own is not None else None
        return [*([first] if first is not None else []), *self._opened()]

    async def _revert(
        self, point: Point, files_only: bool, force: bool, paths: Collection[str] = ()
    ) -> Reverted:
        files_only = files_only or bool(paths)
        for row in await self._store.turns(point.conversation):
            if row.live and (row.id in {point.turn, *point.turns} or row.message in point.after):
                raise TurnBusy(row.id)
        tasks, given = await tasks_given(self._store, point.conversation, point.calls)
        if busy := [row.id for row in given if row.live]:
            raise TurnBusy(busy[0])
        point = replace(point, tasks=tasks, turns=point.turns.union(row.id for row in given))
        related = await family_of(self._store, point.conversation)
        info = await self._store.conversation(point.conversation)
        if not point.after:  # The turn ended before it did anything.
            return Reverted(point.conversation, leaf=info.leaf)
        moves = not files_only and info.leaf in point.after and point.leaf is not None
        histories = await self._of_conversation(point.conversation)
        if not histories:
            if files_only:
                self._recorded()
            if moves and point.leaf is not None:
                await self._store.set_leaf(point.conversation, point.leaf, 0.0)
            return Reverted(point.conversation, leaf=point.leaf if moves else info.leaf, moved=moves)
        leaf = (info.leaf, point.leaf) if moves else None

        def revert() -> list[InFolder]:
            finish_reverts(self._histories)
            found = self._with_records(histories, point)
            parts = [(one, records_after(point, one.of_conversation(*related))) for one in found]
            if paths:
                parts = _about(paths, parts)
            return revert_together(
                self._histories,
                parts,
                conversation=point.conversation,
                turn=point.turn,
                force=force,
                leaf=leaf,
                in_part=bool(paths),
            )

        done = await self._moved(await in_thread(revert), info.leaf)
        if not files_only and point.leaf is None:
            done.notes.append(FIRST_MESSAGE)
        return done

    def _with_records(
        self, histories: Sequence[WorkspaceHistory], point: Point
    ) -> Sequence[WorkspaceHistory]:
        """Return the histories that have records of these turns, or the first one if none has.

        Raise BadRequest if the records belong to another folder, which this runtime must not change.
        """
        for history in histories:
            for turn in point.turns if history.is_there else ():
                history.settle(turn)
        found = [history for history in histories if history.of_turns(list(point.turns))]
        for turn in () if found else point.turns:
            with self._histories.telling_of([turn]) as other:
                if other is not None:
                    raise BadRequest(sentence("undo.elsewhere", turn=turn, folder=other.root))
        return found or histories[:1]

    async def _moved(self, made: Sequence[InFolder], leaf: str | None) -> Reverted:
        """Move the conversation as the last record specifies, and return the outcome."""
        history, last = made[-1]
        moved = last.leaf_after is not None and await self._move(history, last)
        notes = [] if moved or last.leaf_after is None else [WENT_ON]
        did_something = moved or any(record.changes for _, record in made)
        return Reverted(
            last.conversation,
            [change.path for _, record in made for change in record.changes],
            [*(note for _, record in made for note in record.notes), *notes],
            last.leaf_after if moved else leaf,
            moved,
            last.turn if did_something else None,
        )

    async def _move(self, history: WorkspaceHistory, record: ChangeRecord) -> bool:
        """Move the leaf. Return False if a message was sent meanwhile or another branch selected. That stays
        visible."""
        id, to = record.conversation, record.leaf_after
        moved = to is not None and (
            await self._store.set_leaf(id, to, 0.0, before=record.leaf_before)
            # An earlier process moved the leaf but crashed before recording it.
            or (await self._store.conversation(id)).leaf == to
        )
        await in_thread(partial(history.settle_leaf, record.id, moved=moved))
        return moved

    async def _tree(self, conversation: str) -> Tree:
        messages, _ = await self._store.messages(conversation)
        return Tree(messages)


def _about(paths: Collection[str], parts: Sequence[_InFolder]) -> list[_InFolder]:
    """Return only the changes to these files. Raise BadRequest if one of them was not changed."""
    known = {change.path for _, records in parts for record in records for change in record.changes}
    if missing := sorted({*paths} - known):
        raise BadRequest(sentence("undo.unknown_path", path=missing[0]))
    limits = [(history, limited(records, paths, history.contents)) for history, records in parts]
    return [(history, records) for history, records in limits if records]


def _diff(history: WorkspaceHistory, records: Sequence[ChangeRecord]) -> WorkspaceDiff:
    changes: list[FileChange] = [change for record in records for change in record.changes]
    notes = dict.fromkeys(note for record in records for note in record.notes)
    return WorkspaceDiff(diff_of(compose(changes), history.contents), list(notes))
