"""Open folders by descriptor, so that operations below a folder stay in it and no link leads out."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Literal, TypeAlias

from dragoman.errors import ToolFailed

EntryKind: TypeAlias = Literal["file", "folder", "link", "other"]

DEEPEST = 100  # steps of a path
BESIDE = ".dragoman-"  # the name of a file while it is written
_STEPWISE = os.open in os.supports_dir_fd  # Otherwise a link made between check and use would be followed.
_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_NO_LINKS: int = _NOFOLLOW | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NO_WAIT: int = getattr(os, "O_NONBLOCK", 0)  # Opening a pipe without a writer would block.
_OWN_FILES = Path("/proc/self/fd")  # some containers have none
# also for a folder without read permission
_UNREAD: int = getattr(os, "O_PATH", 0) if _OWN_FILES.is_dir() else 0
_FOLDER: int = os.O_RDONLY | _NO_LINKS | getattr(os, "O_DIRECTORY", 0)


@dataclass(slots=True, frozen=True)
class Entry:
    name: str
    kind: EntryKind
    size: int


@dataclass(slots=True, frozen=True)
class OpenFolder:
    """An open folder. Operations apply to this folder, even if its name now leads to another one."""

    path: Path  # of the folder that was opened first, if there is a descriptor: nothing else needs it
    fd: int | None  # None if the system cannot open step by step

    def open(self, name: str, flags: int) -> int:
        return os.open(self.named(name), flags | _NO_LINKS, 0o666, dir_fd=self.fd)

    def make(self, name: str) -> None:
        os.mkdir(self.named(name), dir_fd=self.fd)

    def close(self) -> None:
        if self.fd is not None:
            os.close(self.fd)

    def scan(self) -> os._ScandirIterator[str]:
        return os.scandir(self.path if self.fd is None else self.fd)

    def entries(self) -> list[Entry]:
        with self.scan() as found:
            return sorted(map(_entry, found), key=lambda entry: entry.name)

    def read(self, name: str, most: int) -> bytes:
        """Return the bytes of a regular file. A pipe would never end, and a device could do anything."""
        with self._opened(name) as fd:
            found = os.fstat(fd)
            if stat.S_ISDIR(found.st_mode):
                raise IsADirectoryError
            if not stat.S_ISREG(found.st_mode):
                raise ToolFailed(f"{name!r} is not a regular file.")
            with os.fdopen(fd, "rb", closefd=False) as file:
                data = file.read(most + 1)
        if len(data) > most:
            raise ToolFailed(f"{name!r} is larger than {most // 1000} kB.")
        return data

    def read_with_status(self, name: str, most: int) -> tuple[bytes, os.stat_result, os.stat_result]:
        """Return the bytes of a regular file, and its status before and after the read.

        At most `most` + 1 bytes are returned. Raises OSError if it is not a regular file.
        """
        with self._opened(name) as fd:
            before = os.fstat(fd)
            if not stat.S_ISREG(before.st_mode):
                raise OSError(errno.EINVAL, "it is not a regular file")
            with os.fdopen(fd, "rb", closefd=False) as file:
                data = file.read(min(before.st_size, most) + 1)  # `read` allocates the whole requested size
            return data, before, os.fstat(fd)

    @contextmanager
    def _opened(self, name: str) -> Iterator[int]:
        """Open an entry, and close it after the block. `fdopen` alone would leave a folder open."""
        fd = self.open(name, os.O_RDONLY | _NO_WAIT)
        try:
            yield fd
        finally:
            os.close(fd)

    def status(self, name: str) -> os.stat_result:
        """Return the status of the entry itself, even if it is a link."""
        if self.fd is None:
            return os.lstat(self.path / name)
        return os.stat(name, dir_fd=self.fd, follow_symlinks=False)

    def target(self, name: str) -> str:
        """Return the target of a link, as written in it."""
        return os.readlink(name if self.fd is not None else str(self.path / name), dir_fd=self.fd)

    def mode(self, name: str) -> int:
        """Return the mode of a file. Raises ToolFailed if it cannot be written."""
        if not os.access(self.named(name), os.W_OK, dir_fd=self.fd):
            raise ToolFailed(f"You cannot write {name!r}.")
        return stat.S_IMODE(os.stat(self.named(name), dir_fd=self.fd, follow_symlinks=False).st_mode)

    def put(self, name: str, data: bytes, mode: int | None, *, sync: bool = False) -> None:
        """Write a temporary file and rename it: a reader, or a crash, finds the old file or the new one."""
        beside = f"{BESIDE}{token_hex(8)}"
        try:
            with os.fdopen(self.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
                file.write(data)
                if mode is not None and _STEPWISE:
                    os.fchmod(file.fileno(), mode)
                if sync:
                    file.flush()
                    os.fsync(file.fileno())
            os.replace(self.named(beside), self.named(name), src_dir_fd=self.fd, dst_dir_fd=self.fd)
        except BaseException:
            with suppress(OSError):
                os.unlink(self.named(beside), dir_fd=self.fd)
            raise

    def link(self, name: str, target: str) -> None:
        """Make a link with this target, in place of any file or link with that name."""
        beside = f"{BESIDE}{token_hex(8)}"
        os.symlink(target, self.named(beside), dir_fd=self.fd)
        try:
            os.replace(self.named(beside), self._own(name), src_dir_fd=self.fd, dst_dir_fd=self.fd)
        except BaseException:
            with suppress(OSError):
                os.unlink(self.named(beside), dir_fd=self.fd)
            raise

    def remove(self, name: str) -> None:
        """Remove a file, or a link itself."""
        os.unlink(self._own(name), dir_fd=self.fd)

    def remove_folder(self, name: str) -> None:
        """Remove a folder. Raises OSError if it is not empty."""
        os.rmdir(self._own(name), dir_fd=self.fd)

    def set_folder_mode(self, name: str, mode: int) -> None:
        if not _STEPWISE:
            return
        fd = self.open(name, _FOLDER | _UNREAD)
        try:
            if _UNREAD:
                (_OWN_FILES / str(fd)).chmod(mode)
            else:
                os.fchmod(fd, mode)
        finally:
            os.close(fd)

    def below(self, name: str) -> OpenFolder:
        """Open a folder in this one. Raises OSError if it is a link, or not a folder."""
        if self.fd is None:
            return OpenFolder(Path(self.named(name)), None)
        return OpenFolder(self.path, self.open(name, _FOLDER))

    def named(self, name: str) -> str:
        """Return the system's name for a file of this folder."""
        if self.fd is not None:
            return name
        below = Path(os.path.realpath(self.path), name)
        if below.is_symlink() or os.path.realpath(below) != str(below):
            raise OSError(errno.ELOOP, "it is a link")
        return str(below)

    def _own(self, name: str) -> str:
        """Return the system's name of an entry to remove or replace: it may be a link, since that is not
        followed."""
        return name if self.fd is not None else str(Path(os.path.realpath(self.path), name))


@contextmanager
def open_folder(root: Path, steps: Sequence[str], *, create: bool = False) -> Iterator[OpenFolder]:
    """Open a folder below another. Any link on the way is refused.

    So a rule on `secrets/*` applies to whatever is there, and a link made meanwhile has no effect.
    """
    here = open_root(root)
    try:
        for step in steps:
            if create:
                with suppress(FileExistsError):
                    here.make(step)
            down = here.below(step)
            here.close()
            here = down
        yield here
    finally:
        here.close()


def open_root(root: Path) -> OpenFolder:
    """Open the workspace itself, which may be reached through a link."""
    return OpenFolder(root, os.open(root, _FOLDER & ~_NOFOLLOW) if _STEPWISE else None)


def _entry(found: os.DirEntry[str]) -> Entry:
    try:
        status = found.stat(follow_symlinks=False)
    except OSError:  # already removed
        return Entry(found.name, "other", 0)
    return Entry(found.name, kind_of(status.st_mode), status.st_size)


def kind_of(mode: int) -> EntryKind:
    if stat.S_ISLNK(mode):
        return "link"
    if stat.S_ISDIR(mode):
        return "folder"
    return "file" if stat.S_ISREG(mode) else "other"


def paths_inside(root: Path, paths: Iterable[Path]) -> Iterator[str]:
    """Yield the paths that are inside the workspace, relative to it. The others are left out."""
    for path in paths:
        if root in (whole := path.resolve()).parents:
            yield whole.relative_to(root).as_posix()
