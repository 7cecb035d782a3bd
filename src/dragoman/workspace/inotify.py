"""Use the Linux kernel's reports of changed files (inotify), so that not all files are scanned."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

Reported: TypeAlias = dict[str, set[str]]
"""Names in folders (with a slash at their end) for which something was reported."""

_MODIFY, _ATTRIB = 0x2, 0x4
_CLOSE_WRITE = 0x8  # Writes through a memory mapping are reported when the file is closed.
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF = 0x400, 0x800
_UNMOUNT, _OVERFLOW, _IGNORED = 0x2000, 0x4000, 0x8000
_ONLY_FOLDERS = 0x1000000
_MASK = (
    _MODIFY
    | _ATTRIB
    | _CLOSE_WRITE
    | _MOVED_FROM
    | _MOVED_TO
    | _CREATE
    | _DELETE
    | _DELETE_SELF
    | _MOVE_SELF
    | _ONLY_FOLDERS
)
_EVENT = struct.Struct("iIII")  # watch, mask, cookie, bytes of the name
_AT_ONCE = 1 << 16  # bytes of events
# File systems on which every change is a call to this kernel: ext, XFS, Btrfs, tmpfs, F2FS, ZFS, bcachefs,
# overlayfs. On network or FUSE file systems, changes can happen without a report.
_LOCAL = frozenset(
    (0xEF53, 0x58465342, 0x9123683E, 0x01021994, 0xF2F52010, 0x2FC12FC1, 0xCA451A4E, 0x794C7630)
)
_MOST = Path("/proc/sys/fs/inotify/max_user_watches")
_SHARE = 4  # a quarter of the user's limit, because editors need watches, too


class WatchFailed(Exception):
    """The kernel cannot watch this folder, or no longer can."""


class FolderWatch:
    """Watches folders, each individually.

    A change is in the kernel's queue before the call that makes it returns. So a reader that asks afterwards
    finds it, and no waiting or listening thread is needed. Not reported: changes through a hard link in
    another folder, and through memory while a program has the file mapped.
    """

    def __init__(self, root: int | None) -> None:
        """Watch the open folder `root`.

        Raises WatchFailed if the system has no inotify or no free watches.
        """
        if root is None:
            raise WatchFailed("the system has no inotify")
        self._libc = _libc()
        self._device = os.fstat(root).st_dev
        self._root = identity(root)
        _check_local(self._libc, root)
        self._most = _most_watches()
        self._fd: int = self._libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self._fd < 0:
            raise WatchFailed(f"inotify: {os.strerror(ctypes.get_errno())}")
        self._numbers: dict[str, int] = {}  # of the watch of each folder
        # the reverse: a moved folder keeps its watch and gets another name
        self._folders: dict[int, str] = {}
        self._visited: set[str] = set()
        self._linked: Reported = {}
        self._waiting: Reported = {}  # reports not taken yet
        self._lost = False
        self.failed = ""  # why not every folder is watched

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def is_of(self, root: int | None) -> bool:
        """Return whether this is still the folder that is watched."""
        return root is not None and identity(root) == self._root

    # ── a walk through everything ─────────────────────────────────────────────────────────────────

    def begin_walk(self) -> None:
        self._visited, self._linked = set(), {}

    def end_walk(self) -> None:
        """Drop folders that were not visited: they are gone, or ignored."""
        for path in self._numbers.keys() - self._visited:
            self.drop(path)

    def add(self, path: str, fd: int | None) -> None:
        """Watch an open folder. Call it before reading the entries, so that later changes are reported.

        If that is impossible, it is noted in `failed`, and the scan continues.
        """
        self._visited.add(path)
        if self.failed:
            return
        if fd is None or os.fstat(fd).st_dev != self._device:
            self.failed = f"{path} is on another file system"
            return
        if path not in self._numbers and len(self._numbers) >= self._most:
            self.failed = f"it has more than {self._most} folders"
            return
        number: int = self._libc.inotify_add_watch(self._fd, b"/proc/self/fd/%d" % fd, _MASK)
        if number < 0:
            self.failed = f"inotify: {os.strerror(ctypes.get_errno())}"
            return
        before, other = self._folders.get(number), self._numbers.get(path)
        if before is not None:
            self._numbers.pop(before, None)  # it may have been moved here
        if other is not None and other != number:
            self._unwatch(path, other)  # another folder had this name
        self._numbers[path], self._folders[number] = number, path

    def drop(self, path: str) -> None:
        """Drop a folder that no longer exists."""
        number = self._numbers.pop(path, None)
        if number is not None:
            self._unwatch(path, number)

    def add_linked(self, path: str, name: str) -> None:
        """Always report a file with several hard links: it can change through another name."""
        self._linked.setdefault(path, set()).add(name)

    def _unwatch(self, path: str, number: int) -> None:
        if self._folders.get(number) == path:
            del self._folders[number]
            self._libc.inotify_rm_watch(self._fd, number)  # it may be gone with its folder

    # ── facts ─────────────────────────────────────────────────────────────────────────────────────

    def take(self) -> Reported | None:
        """Return the reports since the last call. None if some were lost: then everything must be scanned."""
        found = self.peek()
        self._waiting, self._lost = {}, False
        return found

    def peek(self) -> Reported | None:
        """Return the reports without taking them."""
        while data := self._read():
            self._note(data)
        if self._lost:
            return None
        for folder, names in self._linked.items():
            self._waiting.setdefault(folder, set()).update(names)
        return self._waiting

    def _note(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            number, mask, _, length = _EVENT.unpack_from(data, at)
            at += _EVENT.size + length
            name = data[at - length : at].rstrip(b"\0")
            folder = self._folders.get(number)
            if mask & (_OVERFLOW | _UNMOUNT) or (folder == "" and mask & (_DELETE_SELF | _MOVE_SELF)):
                self._lost = True
            elif folder is not None and mask & _IGNORED:
                del self._folders[number]
                if self._numbers.get(folder) == number:
                    del self._numbers[folder]
            elif folder is not None and name:
                self._waiting.setdefault(folder, set()).add(os.fsdecode(name))

    def _read(self) -> bytes:
        try:
            return os.read(self._fd, _AT_ONCE)
        except BlockingIOError:
            return b""


def covers(reported: Iterable[Reported], path: str) -> bool:
    """Return whether a change of this path, or of a folder above it, was reported."""
    steps = path.split("/")
    for place, name in enumerate(steps):
        above = "".join(f"{step}/" for step in steps[:place])
        if any(name in one.get(above, ()) for one in reported):
            return True
    return False


def identity(folder: int) -> tuple[int, int]:
    found = os.fstat(folder)
    return found.st_dev, found.st_ino


def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
    if libc is None or not hasattr(libc, "inotify_init1") or not Path("/proc/self/fd").is_dir():
        raise WatchFailed("the system has no inotify")
    return libc


def _check_local(libc: ctypes.CDLL, root: int) -> None:
    about = ctypes.create_string_buffer(512)  # struct statfs: larger than any system's
    if libc.fstatfs(root, about) != 0:
        raise WatchFailed(f"statfs: {os.strerror(ctypes.get_errno())}")
    kind = ctypes.c_long.from_buffer(about).value & 0xFFFFFFFF
    if kind not in _LOCAL:
        raise WatchFailed(f"a file system that others may write to ({kind:#x})")


def _most_watches() -> int:
    try:
        return int(_MOST.read_text()) // _SHARE
    except (OSError, ValueError):
        raise WatchFailed("the system has no inotify") from None
