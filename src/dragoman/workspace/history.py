"""Record what calls changed in one workspace, and revert it."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from dragoman.errors import BadRequest, RevertConflict
from dragoman.sentences import sentence
from dragoman.workspace.folder import paths_inside
from dragoman.workspace.full_scan import WATCH_FROM, Looks
from dragoman.workspace.ignore import IgnoreReader, load_rules
from dragoman.workspace.known import Look, LookStopped
from dragoman.workspace.lock import locked, unusable
from dragoman.workspace.objects import SnapshotFile
from dragoman.workspace.packs import PACK_FROM, Packer, drop_from_packs
from dragoman.workspace.records import (
    OpenRecord,
    Records,
    RunningCalls,
    drop_journal,
    read_journal,
    write_journal,
)
from dragoman.workspace.revert import CHANGED, carry_out, inverse, plan_revert, remove_left_overs
from dragoman.workspace.states import (
    DEFAULT_LIMITS,
    INTERRUPTED,
    ChangeRecord,
    Conflict,
    FileState,
    RevertPlan,
    SnapshotLimits,
)

_RULES = "rules of "  # and the turn: the key of its ignore rules
_MOST_NAMED = 5  # names of unrecorded files in a note


class WorkspaceHistory:
    """The history of a workspace. All methods block: call them in a thread. All programs together scan one at
    a time.

    `folder` contains the records: it is private, and never inside what is recorded, or else left out of it
    (`skip`: files and folders). From `watch_from` files on, the system is asked what changed, if it
    supports that.
    """

    def __init__(
        self,
        workspace: Path,
        folder: Path,
        *,
        limits: SnapshotLimits = DEFAULT_LIMITS,
        skip: Sequence[Path] = (),
        clock: Callable[[], float] = time.time,
        watch_from: int = WATCH_FROM,
    ) -> None:
        self.root = workspace.resolve()
        name = sha256(os.fsencode(self.root)).hexdigest()[:16]
        self.file = folder / f"{name}.db"
        self.limits = limits
        self.clock = clock
        self._guard = threading.Lock()
        self._opened: SnapshotFile | None = None
        self._running: dict[str, RunningCalls] = {}
        self._rules: dict[str, IgnoreReader] = {}  # by turn: the ignore rules when it began
        self._saved: dict[str, str] = {}
        self._packer = Packer(self._exclusive)
        skipped = [*paths_inside(self.root, [folder, *skip])]
        self._looks = Looks(self.root, limits, skipped, watch_from=watch_from)

    def close(self) -> None:
        self._packer.wait()
        with self._guard:
            if self._opened is not None:
                self._opened.close()
                self._opened = None
            self._looks.close()

    @property
    def is_there(self) -> bool:
        """Whether anything was ever recorded."""
        return self._opened is not None or self.file.exists()

    # ── calls ─────────────────────────────────────────────────────────────────────────────────────

    def begin(
        self,
        *,
        conversation: str,
        turn: str,
        step: int,
        call: str,
        paths: Sequence[str] | None,
        everything: bool = False,
        rules_of: str | None = None,
    ) -> list[str]:
        """Begin a call that may write to `paths`, or to anything (None, or `everything`).

        Return what will not be recorded, and why. The ignore rules are those from the start of the turn, or
        of the turn `rules_of`, whose task it works on.
        """
        if paths is not None:
            paths = [*dict.fromkeys(spelled for path in paths for spelled in self._spelled(path))]
        with self._exclusive() as (file, records):
            wide, notes, large = everything or paths is None, list[str](), list[str]()
            rules_of = rules_of or turn
            ignored: set[str] = set()
            if wide:
                try:
                    with file.transaction():
                        look = self._looks.look(file, records, None, earlier=self._rules_of(file, rules_of))
                        self._hold(file, (rules_of, turn), look, whole=not look.stopped)
                    stopped = look.stopped
                    large = [] if stopped else self._too_large()
                    notes += _name(
                        "ignored by now, and no longer recorded", [one.path for one in look.hidden]
                    )
                except LookStopped as error:
                    self._looks.refresh(file)
                    stopped = str(error)
                if stopped:
                    beside = " beside what it names" if paths else ""
                    wide, notes = False, [f"{stopped}: what this call changes{beside} is not recorded"]
            if paths:
                with file.transaction():
                    look = self._looks.look(file, records, paths, earlier=self._rules_of(file, rules_of))
                    self._hold(file, (rules_of, turn), look)
                notes += look.notes
                ignored = look.ignored
            with file.transaction():
                running = self._running.get(turn)
                if running is None:
                    self._settle(file, records, turn)
                    opened = records.open(conversation, turn, step, self.clock())
                    running = self._running[turn] = RunningCalls(opened, rules_of=rules_of)
                record = running.record
                if wide and record.wide is None:
                    record.wide = file.position()
                for path in paths or ():
                    if path not in ignored:
                        record.paths.setdefault(path, file.position())
                record.calls.append(call)
                record.notes += [note for note in notes if note not in record.notes]
                running.calls.add(call)
                records.save_open(record)
            return [*notes, *large]

    def _too_large(self) -> list[str]:
        """Return a note on files that could not be reverted, for a call that may write anything."""
        found = [f"{path} ({state.size / 1e6:.1f} MB)" for path, state in self._looks.opaque()]
        return _name("too large to be recorded, so that no change of them can be undone", found)

    # ── the ignore rules of a turn ────────────────────────────────────────────────────────────────

    def _rules_of(self, file: SnapshotFile, turn: str) -> IgnoreReader | None:
        """Return the ignore rules from the start of the turn, in this process or another."""
        if turn not in self._rules and (text := file.get(f"{_RULES}{turn}")) is not None:
            self._rules[turn], self._saved[turn] = load_rules(text, self._looks.parsed), text
        return self._rules.get(turn)

    def _hold(self, file: SnapshotFile, turns: tuple[str, str], look: Look, *, whole: bool = False) -> None:
        """Keep the first rules seen of each folder until the turn ends. Call it in a transaction."""
        turn, reader = turns[0], look.rules
        held = reader.earlier or self._rules.get(turn)
        reader.earlier = None
        if held is not None and not whole:
            known = len(held.by_folder)
            held.add(reader)
            same, reader = len(held.by_folder) == known, held
        else:
            if held is not None:
                reader.add(held)
            same = held is not None and held.whole and held.by_folder == reader.by_folder
            reader.whole = whole
        self._rules[turn] = reader
        if same and all(one in self._saved for one in turns):
            return
        text = reader.dump()
        for one in dict.fromkeys(turns):
            if self._saved.get(one) != text:
                file.set(f"{_RULES}{one}", text)
                self._saved[one] = text

    def finish(self, turn: str, *, ended: bool) -> None:
        """Forget the rules of a turn without running calls here.

        `ended`: no other process has any, either.
        """
        self._rules.pop(turn, None)
        if self._saved.pop(turn, None) is not None and ended:
            with self._exclusive() as (file, _):
                file.drop(f"{_RULES}{turn}")

    def _spelled(self, path: str) -> Iterator[str]:
        """Yield `./a`, an absolute path, or one through a link, as recorded. For a link also its target."""
        whole = self.root / path
        with suppress(ValueError):  # not a valid path
            for place in (Path(os.path.realpath(whole.parent), whole.name), os.path.realpath(whole)):
                yield Path(os.path.relpath(place, self.root)).as_posix()

    def end(self, turn: str, call: str) -> ChangeRecord | None:
        """End a call. When no other call of the turn is running, record what they changed."""
        with self._exclusive() as (file, records):
            running = self._running.get(turn)
            if running is None or call not in running.calls:
                return None
            running.calls.discard(call)
            if running.calls:
                return None
            del self._running[turn]
            closed = self._close(file, records, running.record, (running.rules_of, turn))
        self._packer.recorded(len(closed.changes) if closed is not None else 0)
        return closed

    def settle(self, turn: str) -> None:
        """Close the records of calls that were running when their program died, with the current state."""
        with self._exclusive() as (file, records):
            if turn not in self._running:
                with file.transaction():
                    self._settle(file, records, turn)

    def _settle(self, file: SnapshotFile, records: Records, turn: str) -> None:
        """Close the records of a turn. Call it in a transaction."""
        for record in records.opened(turn):
            record.notes.append(INTERRUPTED)
            unknown = self._rules_of(file, turn) is None
            try:
                self._look_again(file, records, record, (turn, turn))
                gone = [change.path for change in records.since(record) if change.after is None]
                self._looks.look(file, records, gone, all_ignored=True)  # A rule may hide it now.
            except LookStopped as stopped:
                self._look_at_named(file, records, record, stopped)
            records.close(record, unknown_rules=unknown)

    def _close(
        self, file: SnapshotFile, records: Records, record: OpenRecord, turns: tuple[str, str]
    ) -> ChangeRecord | None:
        try:
            with file.transaction():
                self._look_again(file, records, record, turns)
                return records.close(record)
        except LookStopped as stopped:
            with file.transaction():
                self._look_at_named(file, records, record, stopped)
                return records.close(record)

    def _look_again(
        self, file: SnapshotFile, records: Records, record: OpenRecord, turns: tuple[str, str]
    ) -> None:
        if record.wide is not None:
            look = self._looks.look(file, records, None, earlier=self._rules_of(file, turns[0]))
            self._hold(file, turns, look, whole=not look.stopped)
            if look.stopped:
                look.notes.append(f"{look.stopped}: not everything that was changed is recorded")
            record.notes += [note for note in look.notes if note not in record.notes]
        if record.paths:  # With any current rules: ignored paths were left out when the call began.
            self._looks.look(file, records, list(record.paths), all_ignored=True)

    def _look_at_named(
        self, file: SnapshotFile, records: Records, record: OpenRecord, stopped: LookStopped
    ) -> None:
        """Look only at what its calls named, because the folder is too big."""
        self._looks.refresh(file)
        beside = " beside what was named" if record.paths else ""
        record.notes.append(f"{stopped}: what was changed{beside} is not recorded")
        record.wide = None
        self._looks.look(file, records, list(record.paths), all_ignored=True)

    # ── reading ───────────────────────────────────────────────────────────────────────────────────

    def of_turns(self, turns: Sequence[str]) -> list[ChangeRecord]:
        return self._read(lambda records: records.of_turns(turns))

    def of_conversation(self, *ids: str) -> list[ChangeRecord]:
        """Return the records of one conversation or more, in order."""
        return self._read(lambda records: records.of_conversation(*ids))

    def of_path(self, path: str) -> list[ChangeRecord]:
        return self._read(lambda records: records.of_path(path))

    def waiting_leaves(self) -> list[ChangeRecord]:
        return self._read(lambda records: records.waiting_leaves())

    def settle_leaf(self, record: int, *, moved: bool) -> None:
        with self._exclusive() as (_, records):
            records.settle_leaf(record, moved=moved)

    def contents(self, state: FileState) -> bytes | None:
        with self._exclusive() as (file, _):
            return file.read(state)

    def _read(self, query: Callable[[Records], list[ChangeRecord]]) -> list[ChangeRecord]:
        if not self.is_there:
            return []
        with self._exclusive() as (_, records):
            return query(records)

    # ── undo ──────────────────────────────────────────────────────────────────────────────────────

    def plan(self, reverted: Sequence[ChangeRecord]) -> RevertPlan:
        with self._exclusive() as (file, records):
            return self._plan(file, records, reverted)

    def revert(
        self,
        reverted: Sequence[ChangeRecord],
        *,
        conversation: str,
        turn: str,
        force: bool = False,
        in_part: bool = False,
        leaf: tuple[str | None, str | None] | None = None,
        at: float | None = None,
        on_step: Callable[[int], None] = lambda _: None,
    ) -> ChangeRecord:
        """Revert these records completely or not at all. Raises RevertConflict if files changed since, unless
        `force`.

        `in_part`: the records do not have all their changes (see `limited`). `leaf`: the conversation's
        position before and after. `at`: the time of the same revert in another folder.
        """
        with self._exclusive() as (file, records):
            plan = self._plan(file, records, reverted)
            if plan.conflicts and not force:
                raise RevertConflict([(one.path, one.why) for one in plan.conflicts])
            before, after = leaf or (None, None)
            record = ChangeRecord(
                0,
                "revert",
                conversation,
                turn,
                reverts=tuple(one.id for one in reverted),
                only=tuple(_paths_of(reverted)) if in_part else (),
                changes=tuple(plan.changes),
                notes=_left_as_it_is(plan, reverted),
                leaf_before=before,
                leaf_after=after,
                created=self.clock() if at is None else at,
            )
            number = write_journal(file, record, moves=leaf is not None)
            try:
                left = carry_out(self.root, plan.changes, file.read, self.limits, on_step=on_step)
            except Exception as error:
                left = self._undo(file, record)
                drop_journal(file, number)
                if isinstance(error, OSError):
                    refused = {str(error.filename): str(error.strerror)}
                    refused |= {one.path: one.why for one in left if one.why != CHANGED}
                    raise RevertConflict([*refused.items()]) from error
                raise
            return self._finish(file, records, number, record, left, moves=leaf is not None)

    def _plan(self, file: SnapshotFile, records: Records, reverted: Sequence[ChangeRecord]) -> RevertPlan:
        if not self.root.is_dir():
            raise BadRequest(sentence("undo.no_folder", folder=self.root))
        with file.transaction():
            self._looks.look(file, records, _paths_of(reverted), all_ignored=True)
        return plan_revert(reverted, self._looks.find, file.read)

    def _finish(
        self,
        file: SnapshotFile,
        records: Records,
        number: int,
        record: ChangeRecord,
        left: Sequence[Conflict],
        *,
        moves: bool,
    ) -> ChangeRecord:
        """Complete a revert. It does not include other changes made meanwhile, so no redo reverts those."""
        theirs = {one.path for one in left if one.why == CHANGED}
        with file.transaction():
            paths = [change.path for change in record.changes]
            self._looks.look(file, records, paths, all_ignored=True)
            ours = [change for change in record.changes if change.path not in theirs]
            done = [replace(change, after=self._looks.find(change.path)) for change in ours]
            kept = tuple(change for change in done if change.before != change.after)
            notes = (f"{one.path}: {one.why}" for one in left)
            record = replace(record, changes=kept, notes=(*record.notes, *notes))
            id = records.add_revert(record, moves_leaf=moves)
            drop_journal(file, number)
        return replace(record, id=id)

    def _undo(self, file: SnapshotFile, record: ChangeRecord) -> list[Conflict]:
        """Undo the completed part of a revert that cannot be finished. Return what could not be undone."""
        back = inverse(record.changes)
        return carry_out(self.root, back, file.read, self.limits, repeated=True, to_the_end=True)

    def _recover(self, file: SnapshotFile, records: Records) -> None:
        """Finish or undo a revert that was in progress when its program died.

        If the folder is missing, this happens when it exists again.
        """
        if not self.root.is_dir():
            return
        for number, record, moves in read_journal(file):
            remove_left_overs(self.root, [change.path for change in record.changes])
            try:
                left = carry_out(self.root, record.changes, file.read, self.limits, repeated=True)
            except OSError:
                self._undo(file, record)
                drop_journal(file, number)
            else:
                self._finish(file, records, number, record, left, moves=moves)

    # ── forgetting ────────────────────────────────────────────────────────────────────────────────

    def forget(self, conversations: Iterable[str] = ()) -> int:
        """Drop the records of these conversations and outdated ones, with the bytes that only they need.

        Return the number of deleted objects.
        """
        if not self.is_there:
            return 0
        with self._exclusive() as (file, records):
            with file.transaction():
                gone = records.forget(conversations)
                gone += records.forget_before(self.clock() - self.limits.days * 86_400)
                file.drop_all(_RULES, but=records.turns())
                file.drop_deltas()
                swept, packs = file.sweep() if gone else (0, frozenset[int]())
                drop_from_packs(file, packs)
            if swept:
                file.shrink()
            return swept

    def pack(self, least: int = PACK_FROM) -> int:
        """Compress what is recorded, if there are at least `least` objects. Return the number of packs."""
        return self._packer.pack(least)

    # ── one at a time ─────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def _exclusive(self) -> Iterator[tuple[SnapshotFile, Records]]:
        with self._guard, locked(self.file.with_suffix(".lock"), self.limits.longest_wait):
            if self._opened is None:
                self._opened = self._open()
            file, records = self._opened, Records(self._opened)
            try:
                self._looks.refresh(file)
                self._recover(file, records)
                yield file, records
            except BaseException as error:
                self._looks.distrust()
                self._saved.clear()
                if isinstance(error, sqlite3.Error):
                    raise unusable(self.file, error) from error
                raise

    def _open(self) -> SnapshotFile:
        try:
            return SnapshotFile(self.file, self.root)
        except (OSError, sqlite3.Error) as error:
            raise unusable(self.file, error) from error


def _name(why: str, files: Sequence[str]) -> list[str]:
    """Return a note about files that are not recorded, if there are any."""
    more = f", and {len(files) - _MOST_NAMED} more" if len(files) > _MOST_NAMED else ""
    return [f"{why}: {', '.join(files[:_MOST_NAMED])}{more}"] if files else []


def _paths_of(records: Sequence[ChangeRecord]) -> list[str]:
    return list(dict.fromkeys(change.path for record in records for change in record.changes))


def _left_as_it_is(plan: RevertPlan, reverted: Sequence[ChangeRecord]) -> tuple[str, ...]:
    """Return what a revert does not restore, and why: files it cannot restore, and those never recorded."""
    left = {one.path: one.why for one in plan.left}
    notes = [note for record in reverted for note in record.notes if note != INTERRUPTED]
    unrecorded = [note for note in dict.fromkeys(notes) if note.partition(": ")[0] not in left]
    return (*(f"{path}: {why}" for path, why in left.items()), *unrecorded)
