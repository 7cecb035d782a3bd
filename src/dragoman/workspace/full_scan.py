"""Scan the folder and compare it with the last scan, made by this program or another."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.workspace.folder import open_root
from dragoman.workspace.ignore import IGNORE_FILES, IgnoreReader
from dragoman.workspace.inotify import FolderWatch, Reported, WatchFailed, covers
from dragoman.workspace.known import Known, Look, LookStopped
from dragoman.workspace.objects import SnapshotFile
from dragoman.workspace.records import Records
from dragoman.workspace.scanner import Looker
from dragoman.workspace.states import FileState, SnapshotLimits

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


# Scan a whole folder in the fastest way that misses nothing: with the system's reports, or a walk.


WATCH_FROM = 2_000  # files: in fewer, a walk takes as long as committing its result
TRUSTED = 300.0  # seconds after which a walk checks that the system reported everything
_PAUSE = 600.0  # seconds after which a folder that was too big is scanned again
_log = logging.getLogger(__name__)


class WholeLooks:
    """Scans of the whole folder. `trusted`: the seconds for which reports are relied upon without a walk."""

    def __init__(
        self,
        root: Path,
        limits: SnapshotLimits,
        skip: Sequence[str],
        *,
        watch_from: int,
        trusted: float = TRUSTED,
    ) -> None:
        self._root = root
        self._limits = limits
        self._skip = skip
        self._watch_from: int | None = watch_from  # None: the system cannot watch this folder
        self._watch: FolderWatch | None = None
        self._last: tuple[Known, IgnoreReader] | None = None  # of a scan from which reports can continue
        self._trusted_for = trusted
        self._trusted = 0.0
        self._too_big: tuple[float, str] | None = None

    def close(self) -> None:
        self._last = None
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def walk_next(self) -> None:
        """Make the next scan a walk, because the last scan no longer matches what is known."""
        self._last = None

    def look(self, known: Known, keep: Callable[[bytes], str], earlier: IgnoreReader | None) -> Look:
        """Scan everything that is not ignored, and compare it with what is known. Raises LookStopped if it is
        too much."""
        if self._too_big is not None and time.monotonic() < self._too_big[0]:
            raise LookStopped(self._too_big[1])
        last, self._last = self._last, None  # Reports are taken only once: a failed scan loses them.
        reported = self._watch.take() if self._watch is not None else None
        try:
            if reported is None or last is None or not self._suffices(known, reported, last, earlier):
                look = self._walk(known, keep, earlier)
            elif time.monotonic() < self._trusted:
                reader = IgnoreReader(earlier, known.parsed, dict(known.rules), walk=last[1].walk)
                look = self._looker(known, keep).reported(reported, reader)
            else:
                look = self._walk(known, keep, earlier)
                self._check(look, reported)
        except LookStopped as stopped:
            self._too_big = (time.monotonic() + _PAUSE, str(stopped))
            raise
        if self._watch is not None and self._watch.failed:
            self._give_up(self._watch.failed)
        if self._watch is not None and not (look.stopped or look.blind or look.rules.outdated):
            self._last = (known, look.rules)
        return look

    def _looker(self, known: Known, keep: Callable[[bytes], str]) -> Looker:
        return Looker(self._root, known, self._limits, keep, self._skip, watch=self._watch)

    def _walk(self, known: Known, keep: Callable[[bytes], str], earlier: IgnoreReader | None) -> Look:
        self._start_watch(known)
        if self._watch is not None:
            self._watch.begin_walk()
        look = self._looker(known, keep).whole(earlier)
        if self._watch is not None:
            self._watch.end_walk()
        self._trusted = time.monotonic() + self._trusted_for
        return look

    def _start_watch(self, known: Known) -> None:
        if self._watch is not None or self._watch_from is None or known.count < self._watch_from:
            return
        root = open_root(self._root)
        try:
            self._watch = FolderWatch(root.fd)
        except WatchFailed as failed:
            self._give_up(str(failed))
        finally:
            root.close()

    def _suffices(
        self,
        known: Known,
        reported: Reported,
        last: tuple[Known, IgnoreReader],
        earlier: IgnoreReader | None,
    ) -> bool:
        """Return whether everything unreported is unchanged since the last scan, and ignored by the same
        rules."""
        if known is not last[0] or (earlier is not None and earlier.walk is not last[1].walk):
            return False
        if any(name in IGNORE_FILES for names in reported.values() for name in names):
            return False
        root = open_root(self._root)
        try:
            rules = IgnoreReader(None, known.parsed).root(root, (".git", *IGNORE_FILES))
            same = rules.same_as(known.rules.get(""))
            return same and self._watch is not None and self._watch.is_of(root.fd)
        finally:
            root.close()

    def _check(self, look: Look, reported: Reported) -> None:
        """Check after a walk that all changes were reported. If one was missed, others may be, too."""
        since = self._watch.peek() if self._watch is not None else None
        missed = [one.path for one in look.changes if not covers((reported, since or {}), one.path)]
        if missed and since is not None:
            self._give_up(f"{missed[0]} changed without a report")

    def _give_up(self, why: str) -> None:
        _log.info("cannot watch the workspace: %s", why)
        self.close()
        self._watch_from = None


class Looks:
    """The known state of the folder. The caller holds the lock of its history."""

    def __init__(self, root: Path, limits: SnapshotLimits, skip: Sequence[str], *, watch_from: int) -> None:
        self._root = root
        self._limits = limits
        self._skip = skip
        self._known = Known()
        self._generation: str | None = None  # of the last scan that `_known` reflects
        self._loaded: set[str] | None = set()  # paths of which everything stored is loaded; None: of all
        self._whole = WholeLooks(root, limits, skip, watch_from=watch_from)

    def close(self) -> None:
        self._whole.close()

    def find(self, path: str) -> FileState | None:
        """Return the state of a path at the last scan."""
        return self._known.find(path)

    @property
    def parsed(self) -> dict[bytes, GitIgnoreSpec]:
        """The parsed ignore files, by their text."""
        return self._known.parsed

    def opaque(self) -> list[tuple[str, FileState]]:
        """Return the files whose bytes are not kept."""
        found = ((path, self._known.find(path)) for path in sorted(self._known.opaque))
        return [(path, state) for path, state in found if state is not None]

    def refresh(self, file: SnapshotFile) -> None:
        """Discard what is known if another program has scanned since: it is read again when needed."""
        generation = file.get("generation") or "0"
        if generation != self._generation:
            self._known = Known(parsed=self._known.parsed)
            self._generation, self._loaded = generation, set()

    def distrust(self) -> None:
        """Force a refresh, because what is known may be ahead of what is stored."""
        self._generation = None

    def look(
        self,
        file: SnapshotFile,
        records: Records,
        paths: Sequence[str] | None,
        *,
        earlier: IgnoreReader | None = None,
        all_ignored: bool = False,
    ) -> Look:
        """Scan everything, or these paths, and add changes to the history. Call it in a transaction."""
        self._load(file, paths)
        complete = file.get("complete") is not None
        if paths is None:
            try:
                look = self._whole.look(self._known, file.put, earlier)
            except LookStopped:
                self.distrust()
                raise
            if not complete and not look.stopped:
                file.set("complete", "yes")
        else:
            looker = Looker(self._root, self._known, self._limits, file.put, self._skip)
            look = looker.named(paths, earlier, all_ignored=all_ignored)
            if look.shown:
                self._whole.walk_next()  # Hidden entries are not reported again.
        changes = look.changes if complete else records.told_from_new(look.changes)
        file.forget_files(look.dropped)
        file.save_files(look.seen)
        if records.opened():
            # A record ends with the ignore rules it began with. So entries that other scans hid or showed
            # meanwhile are shown or hidden again, and the two changes cancel out.
            file.add_deltas([*look.hidden, *changes])
        if look.dropped or look.seen:
            self._generation = str(int(file.get("generation") or "0") + 1)
            file.set("generation", self._generation)
        return look

    def _load(self, file: SnapshotFile, paths: Sequence[str] | None) -> None:
        """Load what is stored. A scan of a few paths of a big folder loads only these."""
        if self._loaded is None:
            return
        if paths is None:
            for path, state, status in file.load_files():
                self._known.set(path, state, status)
            self._loaded = None
            return
        for wanted in paths:
            if wanted not in self._loaded:
                for path, state, status in file.load_files(wanted):
                    self._known.set(path, state, status)
                self._loaded.add(wanted)
