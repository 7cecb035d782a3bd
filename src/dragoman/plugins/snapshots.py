"""Record what calls do to the workspace, so that changes can be shown as a diff and undone."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from dragoman.background import in_thread
from dragoman.errors import DragomanError
from dragoman.messages.message import ToolCall, ToolResult
from dragoman.store.address import StoreFile, StoreServer, store_address
from dragoman.store.blobs.place import folder_of
from dragoman.store.store import Store
from dragoman.tools.tool import Tool
from dragoman.turn.plugin import Cleanup, Plugin
from dragoman.turn.view import TurnView
from dragoman.workspace.diff import diff_of, joined
from dragoman.workspace.histories import Histories
from dragoman.workspace.states import DEFAULT_LIMITS, ChangeRecord, SnapshotLimits

T = TypeVar("T")
_SHOWN = 20_000  # maximum characters of the diff in a result; the whole diff is recorded
_FAULTS = (DragomanError, OSError, sqlite3.Error)


class Snapshots(Plugin):
    """Compares the folder right before and right after each call that can write, whatever the tool reports.

    If something cannot be recorded, the user is notified and the call still runs.
    """

    def __init__(self, histories: Histories) -> None:
        self._histories = histories
        self._begun: dict[str, set[str]] = {}  # running calls by turn
        self._told: dict[str, set[str]] = {}
        self._turns: dict[str, str] = {}  # by call: the turn whose ignore rules also apply to its tasks
        # by turn and call, until the result is processed
        self._records: dict[tuple[str, str], ChangeRecord] = {}

    async def on_turn_start(self, turn: TurnView) -> Cleanup:
        history = self._histories.at(turn.workspace)
        if history is None:
            return _nothing_to_clean
        if turn.resumed and history.is_there:
            await self._attempt(turn, lambda: history.settle(turn.id))

        async def clean_up() -> None:
            # These calls were stopped before their end was recorded.
            for call in self._begun.pop(turn.id, set()):
                await self._attempt(turn, partial(history.end, turn.id, call))
            self._told.pop(turn.id, None)
            for call in [call for call, of in self._turns.items() if of == turn.id]:
                del self._turns[call]
            await self._attempt(turn, partial(history.finish, turn.id, ended=False))
            for key in [key for key in self._records if key[0] == turn.id]:  # These calls were cancelled.
                del self._records[key]
            await self._attempt(turn, self._histories.close_idle)

        return clean_up

    async def on_turn_end(self, turn: TurnView) -> None:
        if (history := self._histories.at(turn.workspace)) is not None:
            await self._attempt(turn, partial(history.finish, turn.id, ended=True))

    async def before_run(self, call: ToolCall, tool: Tool, turn: TurnView) -> None:
        rules_of = self._turns.get(turn.conversation.call or "", turn.id)
        self._turns[call.id] = rules_of
        if tool.writes == "nothing" or (history := self._histories.at(turn.workspace)) is None:
            return
        # A tool with a preview also names its files.
        named = tool.writes == "named" or tool.preview is not None
        paths = list(tool.patterns(call.arguments)) if named else None
        self._begun.setdefault(turn.id, set()).add(call.id)
        notes = await self._attempt(
            turn,
            lambda: history.begin(
                conversation=turn.conversation.id,
                turn=turn.id,
                step=turn.turn.step,
                call=call.id,
                paths=paths,
                everything=tool.writes == "anything",
                rules_of=rules_of,
            ),
        )
        self._tell(turn, notes or [])

    async def after_run(self, call: ToolCall, tool: Tool, turn: TurnView) -> None:
        if call.id not in self._begun.get(turn.id, ()):
            return
        if (history := self._histories.at(turn.workspace)) is None:
            return
        record = await self._attempt(turn, lambda: history.end(turn.id, call.id))
        self._begun[turn.id].discard(call.id)
        if record is not None:
            self._tell(turn, record.notes)
            self._records[turn.id, call.id] = record

    async def after_tool(self, call: ToolCall, result: ToolResult, turn: TurnView) -> ToolResult | None:
        """Add the diff to the result for users. The model does not read it."""
        record = self._records.pop((turn.id, call.id), None)
        if record is None or not record.changes or "diff" in result.metadata:
            return None
        if (history := self._histories.at(turn.workspace)) is None:
            return None
        diffs = await self._attempt(turn, lambda: diff_of(record.changes, history.contents))
        if not diffs:
            return None
        return replace(result, metadata={**result.metadata, "diff": joined(diffs, _SHOWN)})

    async def _attempt(self, turn: TurnView, work: Callable[[], T]) -> T | None:
        try:
            return await in_thread(work)
        except _FAULTS as error:
            self._tell(turn, [f"what calls change is not recorded: {error}"])
            return None

    def _tell(self, turn: TurnView, notes: tuple[str, ...] | list[str]) -> None:
        """Notify the user of each note once in a turn."""
        told = self._told.setdefault(turn.id, set())
        for note in notes:
            if note not in told:
                told.add(note)
                turn.notice(note, "snapshots")


async def _nothing_to_clean() -> None:
    pass


def histories_for(
    place: str | Path | StoreFile | StoreServer | Store,
    snapshots: bool | SnapshotLimits,
    folder: str | Path | None,
) -> Histories:
    """Return where changes of the workspace are recorded: next to the store, if that is a file."""
    address = store_address(place) if isinstance(place, str | Path) else place
    skip: list[Path] = []
    if isinstance(address, StoreFile):
        name = address.path.name
        skip = [address.path.with_name(name + end) for end in ("", "-wal", "-shm", "-journal", ".files")]
        folder = folder or address.folder(address.path.parent) / "snapshots"
    if isinstance(address, StoreFile | StoreServer) and (blobs := folder_of(address.blobs)) is not None:
        skip.append(blobs)
    limits = snapshots if isinstance(snapshots, SnapshotLimits) else DEFAULT_LIMITS
    where = Path(folder) if folder is not None else None
    return Histories(where, records=bool(snapshots), limits=limits, skip=skip)
