"""Looks at the folder, compared with what was seen at the last one, by this program or another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.workspace.ignore import IgnoreReader
from dragoman.workspace.known import Known, Look, LookStopped
from dragoman.workspace.objects import SnapshotFile
from dragoman.workspace.records import Records
from dragoman.workspace.states import FileState, SnapshotLimits
from dragoman.workspace.tree import Looker
from dragoman.workspace.whole import WholeLooks

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


class Looks:
    """What is known of the folder. Whoever uses this holds the lock of its history."""

    def __init__(self, root: Path, limits: SnapshotLimits, skip: Sequence[str], *, watch_from: int) -> None:
        self._root = root
        self._limits = limits
        self._skip = skip
        self._known = Known()
        self._generation: str | None = None  # of the last look that `_known` is of
        self._loaded: set[str] | None = set()  # paths of which all is known that there is; None: of all
        self._whole = WholeLooks(root, limits, skip, watch_from=watch_from)

    def close(self) -> None:
        self._whole.close()

    def find(self, path: str) -> FileState | None:
        """As it was when it was last looked at."""
        return self._known.find(path)

    @property
    def parsed(self) -> dict[bytes, GitIgnoreSpec]:
        """What is known of ignore files, by their text."""
        return self._known.parsed

    def opaque(self) -> list[tuple[str, FileState]]:
        """The files whose bytes are not kept."""
        found = ((path, self._known.find(path)) for path in sorted(self._known.opaque))
        return [(path, state) for path, state in found if state is not None]

    def refresh(self, file: SnapshotFile) -> None:
        """Another program may have looked since: then what is known is read again, when it is needed."""
        generation = file.get("generation") or "0"
        if generation != self._generation:
            self._known = Known(parsed=self._known.parsed)
            self._generation, self._loaded = generation, set()

    def distrust(self) -> None:
        """What is known may be ahead of what is stored."""
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
        """In a transaction. Everything, or these paths; what is found changed becomes part of the history."""
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
                self._whole.walk_next()  # nobody will report what is hidden again
        changes = look.changes if complete else records.told_from_new(look.changes)
        file.forget_files(look.dropped)
        file.save_files(look.seen)
        if records.opened():
            # A record ends with the rules that it began with: what other looks hid, or showed, meanwhile is
            # shown, or hidden, again, and comes to nothing.
            file.add_deltas([*look.hidden, *changes])
        if look.dropped or look.seen:
            self._generation = str(int(file.get("generation") or "0") + 1)
            file.set("generation", self._generation)
        return look

    def _load(self, file: SnapshotFile, paths: Sequence[str] | None) -> None:
        """A look at a few paths of a big folder need not wait for all the others."""
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
