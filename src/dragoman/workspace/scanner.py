"""Scan the folder: compare the current entries with earlier ones by the status of each file."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from dragoman.workspace.folder import DEEPEST, OpenFolder, open_folder, open_root
from dragoman.workspace.ignore import IgnoreReader, IgnoreRules
from dragoman.workspace.inotify import FolderWatch, Reported
from dragoman.workspace.known import NEVER, Known, Look, LookStopped
from dragoman.workspace.objects import Status
from dragoman.workspace.states import FileChange, FileState, SnapshotLimits

_FRESH = 100_000_000  # ns: a file that was changed so recently can change again without a new time
_COARSE = 2_000_000_000  # the same for file systems with whole seconds
_TRIES = 3  # reads of a file that changes during the read


class _OutOfTime(Exception):
    """The time limit is over. Results so far count. The rest is left to the next scan."""


class Looker:
    """Compares the folder with what is known of it, and updates that."""

    def __init__(
        self,
        root: Path,
        known: Known,
        limits: SnapshotLimits,
        keep: Callable[[bytes], str],
        skip: Sequence[str],
        *,
        watch: FolderWatch | None = None,
    ) -> None:
        self._root = root
        self._known = known
        self._limits = limits
        self._keep = keep
        self._skip = skip  # our own files, such as the store, with everything below
        self._watch = watch
        self._look = Look()
        self._end = 0.0

    def whole(self, earlier: IgnoreReader | None = None) -> Look:
        """Scan everything that is not ignored. Raises LookStopped if it is too much."""
        self._begin(IgnoreReader(earlier, self._known.parsed))
        root = open_root(self._root)
        try:
            self._folder(root, "", None, 0)
        except _OutOfTime:
            self._look.stopped = self._too_slow
        finally:
            root.close()
        return self._look

    def reported(self, reported: Reported, rules: IgnoreReader) -> Look:
        """Scan what the system reported as changed since the last scan, with the rules of that scan.

        For a reported folder, scan everything below it.
        """
        self._begin(rules)
        try:
            for path in sorted(reported):  # a folder before those in it
                known = self._known.rules.get(path)
                if known is None:  # missing, or not ours
                    continue
                with suppress(OSError), open_folder(self._root, path.split("/")[:-1]) as folder:
                    self._entries(folder, path, known, reported[path])
        except _OutOfTime:
            self._look.stopped = self._too_slow
        return self._look

    def named(
        self, paths: Sequence[str], earlier: IgnoreReader | None = None, *, all_ignored: bool = False
    ) -> Look:
        """Scan these paths and the folders above them. With `all_ignored`, include what the rules exclude."""
        self._begin(IgnoreReader(earlier, self._known.parsed))
        for path in dict.fromkeys(paths):
            steps = [step for step in path.split("/") if step not in ("", ".")]
            if ".." in steps or "\0" in path or len(steps) > DEEPEST:
                continue  # not a valid path
            if self._path(steps, all_ignored):
                self._look.notes.append(f"{'/'.join(steps)}: it is ignored, and not recorded")
                self._look.ignored.add(path)
        return self._look

    @property
    def _too_slow(self) -> str:
        return f"looking through the folder took longer than {self._limits.seconds:g} s"

    def _begin(self, rules: IgnoreReader) -> None:
        self._look = Look(rules=rules)
        self._end = time.monotonic() + self._limits.seconds

    # ── a folder and its contents ─────────────────────────────────────────────────────────────────

    def _folder(self, folder: OpenFolder, path: str, above: IgnoreRules | None, depth: int) -> None:
        if self._watch is not None:
            self._watch.add(path, folder.fd)
        inside = self._known.folders.get(path, {})
        with folder.scan() as scanned:
            entries = list(scanned)
        names = {entry.name for entry in entries}
        readers = self._look.rules
        rules = readers.root(folder, names) if above is None else readers.below(above, folder, path, names)
        known_rules = self._known.rules.get(path)
        same = rules is known_rules or rules.same_as(known_rules)
        if same and known_rules is not None:
            rules = known_rules  # the same object, so that those below are, too
        was_hidden = self._known.hidden.get(path, set()) if same else set()
        hidden: set[str] = set()
        below: list[str] = []
        gone = inside.keys() - names
        for entry in entries:
            name = entry.name
            if was_hidden and (key := _hidden_as(name, entry.is_dir(follow_symlinks=False))) in was_hidden:
                hidden.add(key)
                continue
            try:
                found = entry.stat(follow_symlinks=False)
            except OSError:
                gone.add(name)
                continue
            if same and (known := inside.get(name)) is not None and known[0] == status_of(found):
                if found.st_nlink > 1 and self._watch is not None:
                    self._watch.add_linked(path, name)
                continue
            match self._compare(folder, path, name, found, rules=rules, same=same):
                case "hidden":
                    hidden.add(_hidden_as(name, stat.S_ISDIR(found.st_mode)))
                case "gone":
                    gone.add(name)
                case "folder":
                    below.append(name)
        self._known.rules[path], self._known.hidden[path] = rules, hidden
        for name in {key.rstrip("/") for key in hidden} & inside.keys():
            self._gone(path + name, hidden=True)
        for name in gone:
            self._gone(path + name)
        self._check_bounds()
        for name in below:
            self._down(folder, path, name, rules, depth)

    def _entries(self, folder: OpenFolder, path: str, rules: IgnoreRules, names: Iterable[str]) -> None:
        """Scan some entries of a folder, with the rules of the last scan."""
        hidden = self._known.hidden.setdefault(path, set())
        for name in names:
            try:
                found = folder.status(name)
            except OSError:
                self._gone(path + name)
                continue
            hidden -= {name, f"{name}/"}
            match self._compare(folder, path, name, found, rules=rules, same=True):
                case "hidden":
                    hidden.add(_hidden_as(name, stat.S_ISDIR(found.st_mode)))
                case "gone":
                    self._gone(path + name)
                case "folder":
                    self._check_bounds()
                    self._down(folder, path, name, rules, path.count("/"))
                case "seen":
                    pass
        self._check_bounds()

    def _compare(
        self,
        folder: OpenFolder,
        path: str,
        name: str,
        found: os.stat_result,
        *,
        rules: IgnoreRules,
        same: bool,
    ) -> Literal["hidden", "gone", "folder", "seen"]:
        """Return the state of an entry. `same`: the rules are unchanged, so known entries stay visible."""
        is_folder = stat.S_ISDIR(found.st_mode)
        known = same and name in self._known.folders.get(path, {})
        if not known and self._hidden(rules, path + name, is_folder):
            return "hidden"
        if not self._nameable(path + name) or not self._see(folder, path, name, found):
            return "gone"
        if is_folder:
            return "folder"
        if found.st_nlink > 1 and self._watch is not None:
            self._watch.add_linked(path, name)
        return "seen"

    def _down(self, folder: OpenFolder, path: str, name: str, rules: IgnoreRules, depth: int) -> None:
        if depth >= DEEPEST:
            self._look.notes.append(f"{path}{name}: folders below are too deep to be recorded")
            self._look.blind = True
            return
        try:
            down = folder.below(name)
        except OSError as error:
            self._look.notes.append(f"{path}{name}: it cannot be looked into ({error.strerror})")
            self._look.blind = True
            return
        try:
            self._folder(down, f"{path}{name}/", rules, depth + 1)
        finally:
            down.close()

    def _check_bounds(self) -> None:
        if self._known.count > self._limits.files:
            raise LookStopped(f"the folder has more than {self._limits.files:,} files that are not ignored")
        if time.monotonic() > self._end:
            raise _OutOfTime

    # ── a path ────────────────────────────────────────────────────────────────────────────────────

    def _path(self, steps: list[str], all_ignored: bool) -> bool:
        """Scan a path step by step, with the folders on the way and their rules.

        Return whether the rules exclude the path, even if it does not exist yet.
        """
        opened = [open_root(self._root)]
        rules: IgnoreRules | None = None
        path = ""
        try:
            for place, step in enumerate(steps):
                folder = opened[-1]
                if not all_ignored:
                    with folder.scan() as scanned:
                        names = {entry.name for entry in scanned}
                    readers = self._look.rules
                    rules = (
                        readers.root(folder, names)
                        if rules is None
                        else readers.below(rules, folder, path, names)
                    )
                try:
                    found = folder.status(step)
                except OSError:
                    self._gone(path + step)
                    ends = range(place + 1, len(steps) + 1)
                    return rules is not None and any(
                        self._hidden(rules, "/".join(steps[:end]), end < len(steps)) for end in ends
                    )
                is_folder = stat.S_ISDIR(found.st_mode)
                if rules is not None and self._hidden(rules, path + step, is_folder):
                    return True
                if not self._nameable(path + step) or not self._see(folder, path, step, found):
                    self._gone(path + step)
                    return False
                if _hidden_as(step, is_folder) in self._known.hidden.get(path, ()):
                    self._known.rules.pop(path, None)  # because they exclude it
                    self._look.shown = True
                if not is_folder or place == len(steps) - 1:
                    return False
                opened.append(folder.below(step))
                path = f"{path}{step}/"
        except OSError as error:
            self._look.notes.append(f"{'/'.join(steps)}: it cannot be looked at ({error.strerror})")
        finally:
            for one in opened:
                one.close()
        return False

    # ── one entry ─────────────────────────────────────────────────────────────────────────────────

    def _see(self, folder: OpenFolder, path: str, name: str, found: os.stat_result) -> bool:
        """Compare an entry with what is known. False if it is not recordable, such as a pipe."""
        whole = path + name
        known = self._known.folders.get(path, {}).get(name)
        if known is not None and known[0] == status_of(found) and not stat.S_ISDIR(found.st_mode):
            return True
        read = self._state(folder, whole, name, found)
        if read is None:
            return False
        state, status = read
        before = known[1] if known is not None else None
        if before is not None and before.kind == "folder" and state.kind != "folder":
            for inner in self._known.inside(whole):
                self._gone(inner)
            self._forget_folder(f"{whole}/")
        if before != state:
            self._look.changes.append(FileChange(whole, before, state))
        if known is None or known != (status, state):
            self._known.set(whole, state, status)
            self._look.seen.append((whole, state, status))
        return True

    def _state(
        self, folder: OpenFolder, path: str, name: str, found: os.stat_result
    ) -> tuple[FileState, Status] | None:
        mode = stat.S_IMODE(found.st_mode)
        if stat.S_ISDIR(found.st_mode):
            return FileState("folder", mode), NEVER
        if stat.S_ISLNK(found.st_mode):
            with suppress(OSError):
                target = os.fsencode(folder.target(name))
                return FileState("link", 0, self._keep(target), len(target)), _steady(found)
            return None
        if not stat.S_ISREG(found.st_mode):
            return None
        if found.st_size > self._limits.file_bytes:
            megabytes = found.st_size / 1e6
            self._look.notes.append(f"{path}: {megabytes:.1f} MB are too many to be recorded")
            return _opaque(found), status_of(found)
        try:
            return self._file(folder, path, name)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._look.notes.append(f"{path}: it cannot be read ({error.strerror})")
            return _opaque(found), status_of(found)

    def _file(self, folder: OpenFolder, path: str, name: str) -> tuple[FileState, Status]:
        most = self._limits.file_bytes
        for _ in range(_TRIES):
            data, before, after = folder.read_with_status(name, most)
            if status_of(before) == status_of(after):
                break
        if len(data) > most:
            return _opaque(after), status_of(after)
        mode = stat.S_IMODE(after.st_mode)
        status = _steady(after) if status_of(before) == status_of(after) else NEVER
        return FileState("file", mode, self._keep(data), len(data)), status

    def _gone(self, path: str, *, hidden: bool = False) -> None:
        """Record that an entry is missing, or `hidden` by a new rule and no longer recorded."""
        before = self._known.find(path)
        if before is None:
            return
        if before.kind == "folder":
            for inner in self._known.inside(path):
                self._gone(inner, hidden=hidden)
        self._known.set(path, None)
        self._forget_folder(f"{path}/")
        self._look.dropped.append(path)
        (self._look.hidden if hidden else self._look.changes).append(FileChange(path, before, None))

    def _forget_folder(self, path: str) -> None:
        for of_folders in (self._known.folders, self._known.rules, self._known.hidden):
            of_folders.pop(path, None)
        if self._watch is not None:
            self._watch.drop(path)

    def _hidden(self, rules: IgnoreRules, path: str, folder: bool) -> bool:
        ours = any(path == one or path.startswith(f"{one}/") for one in self._skip)
        return ours or rules.ignored(path, folder)

    def _nameable(self, path: str) -> bool:
        try:
            path.encode()
        except UnicodeEncodeError:
            self._look.notes.append(f"{path!a}: its name is not valid UTF-8: it is not recorded")
            return False
        return True


def status_of(found: os.stat_result) -> Status:
    """Return the status. It uses ctime: a program that sets a file's time cannot hide a change in it."""
    when = found.st_ctime_ns if os.name != "nt" else found.st_mtime_ns
    return when, found.st_size, found.st_ino


def _steady(found: os.stat_result) -> Status:
    """Return the status, unless it is too recent: the file could change again with the same status."""
    status = status_of(found)
    room = _COARSE if status[0] % 1_000_000_000 == 0 else _FRESH
    return NEVER if status[0] > time.time_ns() - room else status


def _hidden_as(name: str, folder: bool) -> str:
    """Return the name under which a rule hides it: a rule may hide a folder, and not a file with the same
    name."""
    return f"{name}/" if folder else name


def _opaque(found: os.stat_result) -> FileState:
    mark = f"{found.st_size}-{found.st_mtime_ns}-{found.st_ino}"
    return FileState("opaque", stat.S_IMODE(found.st_mode), mark, found.st_size)
