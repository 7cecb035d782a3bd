"""Looks at a whole folder by the fastest way that misses nothing: what the system reports, or a walk."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from dragoman.workspace.folder import open_root
from dragoman.workspace.ignore import IGNORE_FILES, IgnoreReader
from dragoman.workspace.known import Known, Look, LookStopped
from dragoman.workspace.states import SnapshotLimits
from dragoman.workspace.tree import Looker
from dragoman.workspace.watch import FolderWatch, Reported, WatchFailed, covers

WATCH_FROM = 2_000  # files: in fewer, a walk takes as long as a commit of its result
TRUSTED = 300.0  # seconds after which a walk checks that the system reported everything
_PAUSE = 600.0  # seconds after which a folder that was too big is looked through again
_log = logging.getLogger(__name__)


class WholeLooks:
    """`trusted`: for how many seconds what the system reports is relied upon without a walk."""

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
        self._last: tuple[Known, IgnoreReader] | None = None  # of a look that reports can go on from
        self._trusted_for = trusted
        self._trusted = 0.0
        self._too_big: tuple[float, str] | None = None

    def close(self) -> None:
        self._last = None
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def walk_next(self) -> None:
        """What is known is not what the last look left: the next one goes through everything."""
        self._last = None

    def look(self, known: Known, keep: Callable[[bytes], str], earlier: IgnoreReader | None) -> Look:
        """Everything that is not ignored, compared with what is known. LookStopped where that is too much."""
        if self._too_big is not None and time.monotonic() < self._too_big[0]:
            raise LookStopped(self._too_big[1])
        last, self._last = self._last, None  # reports are taken once: a look that fails loses them
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
        """Whether what is not reported is as it was at the last look, and ignored by the same rules."""
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
        """After a walk: where one change was not reported others may not be, either."""
        since = self._watch.peek() if self._watch is not None else None
        missed = [one.path for one in look.changes if not covers((reported, since or {}), one.path)]
        if missed and since is not None:
            self._give_up(f"{missed[0]} changed without a report")

    def _give_up(self, why: str) -> None:
        _log.info("the workspace is not watched: %s", why)
        self.close()
        self._watch_from = None
