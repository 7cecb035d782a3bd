"""Files of the workspace by the paths a model gives, which never lead out of it, not even through links."""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from secrets import token_hex
from typing import Literal, TypeAlias

from dragoman.errors import ToolFailed
from dragoman.messages.parts import Arguments

Kind: TypeAlias = Literal["file", "folder", "link", "other"]

_DEEPEST = 100
_STEPWISE = os.open in os.supports_dir_fd  # else a link that appears between check and use is followed
_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_NO_LINKS: int = _NOFOLLOW | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NO_WAIT: int = getattr(os, "O_NONBLOCK", 0)  # a pipe without a writer would be waited for
_FOLDER: int = os.O_RDONLY | _NO_LINKS | getattr(os, "O_DIRECTORY", 0)
_writing = threading.Lock()  # two calls that saw the same version may not both replace it


def inside(workspace: Path | None, path: str) -> Path:
    """The file of this name below the workspace, links followed."""
    _check(path)
    root = _root(workspace).resolve()
    try:
        target = (root / path).resolve()
    except (OSError, RuntimeError, ValueError) as error:  # links that lead to themselves
        raise ToolFailed(f"{path} is no path that can be followed") from error
    if not target.is_relative_to(root):
        raise ToolFailed(f"{path} leads out of the workspace")
    return target


def steps_of(path: str) -> tuple[str, ...]:
    """The names from the workspace down to the file. `a/../b` is `b`: no link is ever followed on the way."""
    _check(path)
    steps: list[str] = []
    for step in path.replace(os.sep, "/").split("/"):
        if step == "..":
            if not steps:
                raise ToolFailed(f"{path} leads out of the workspace")
            steps.pop()
        elif step not in ("", "."):
            steps.append(step)
    if len(steps) > _DEEPEST:
        raise ToolFailed(f"a path has at most {_DEEPEST} steps")
    return tuple(steps)


def path_patterns(arguments: Arguments) -> list[str]:
    """The `path` of a call in its one spelling, so that `./secrets/x` is judged as `secrets/x`."""
    path = str(arguments.get("path") or ".")
    try:
        return ["/".join(steps_of(path)) or "."]
    except ToolFailed:
        return [path]  # the tool refuses it


def wider_paths(arguments: Arguments) -> list[str]:
    """The folders a file is in, the nearest first: what a person may allow instead of the one file."""
    steps = path_patterns(arguments)[0].split("/")
    return ["/".join((*steps[:end], "*")) for end in range(len(steps) - 1, 0, -1)]


def below(folder: str, name: str) -> str:
    """The path in the workspace of what lies in a folder of it."""
    return "/".join((*steps_of(folder), name))


@dataclass(slots=True, frozen=True)
class Entry:
    name: str
    kind: Kind
    size: int


@dataclass(slots=True, frozen=True)
class OpenFolder:
    """An open folder. What is done in it is done there, even if its name leads to another one by now."""

    path: Path
    fd: int | None  # None where the system cannot go step by step

    def open(self, name: str, flags: int) -> int:
        return os.open(self.named(name), flags | _NO_LINKS, 0o666, dir_fd=self.fd)

    def make(self, name: str) -> None:
        os.mkdir(self.named(name), dir_fd=self.fd)

    def close(self) -> None:
        if self.fd is not None:
            os.close(self.fd)

    def entries(self) -> list[Entry]:
        with os.scandir(self.path if self.fd is None else self.fd) as found:
            return sorted(map(_entry, found), key=lambda entry: entry.name)

    def read(self, name: str, most: int) -> bytes:
        """Of a regular file. A pipe would never end, and a device does what it likes."""
        with os.fdopen(self.open(name, os.O_RDONLY | _NO_WAIT), "rb") as file:
            found = os.fstat(file.fileno())
            if stat.S_ISDIR(found.st_mode):
                raise IsADirectoryError
            if not stat.S_ISREG(found.st_mode):
                raise ToolFailed(f"{name} is no regular file")
            data = file.read(most + 1)
        if len(data) > most:
            raise ToolFailed(f"{name} is too big: it has more than {most // 1000} kB")
        return data

    def mode(self, name: str) -> int:
        """The rights of a file that may be written."""
        if not os.access(self.named(name), os.W_OK, dir_fd=self.fd):
            raise ToolFailed(f"{name} may not be written")
        return stat.S_IMODE(os.stat(self.named(name), dir_fd=self.fd, follow_symlinks=False).st_mode)

    def put(self, name: str, data: bytes, mode: int | None) -> None:
        """Written beside, then renamed: a reader, or a crash, finds the old file or the new one."""
        beside = f".dragoman-{token_hex(8)}"
        try:
            with os.fdopen(self.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
                file.write(data)
                if mode is not None and _STEPWISE:
                    os.fchmod(file.fileno(), mode)
            os.replace(self.named(beside), self.named(name), src_dir_fd=self.fd, dst_dir_fd=self.fd)
        except BaseException:
            with suppress(OSError):
                os.unlink(self.named(beside), dir_fd=self.fd)
            raise

    def named(self, name: str) -> str:
        """What the system calls a file of this folder."""
        if self.fd is not None:
            return name
        below = Path(os.path.realpath(self.path), name)
        if below.is_symlink() or os.path.realpath(below) != str(below):
            raise OSError(errno.ELOOP, "it is a link")
        return str(below)


def entries_inside(workspace: Path | None, path: str) -> list[Entry]:
    """What is in a folder, by name."""
    with _explained(workspace, path), _open_folder(workspace, steps_of(path)) as folder:
        return folder.entries()


def read_inside(workspace: Path | None, path: str, most: int) -> bytes:
    """The bytes of a regular file, if they are at most so many."""
    above, name = _file(path)
    with _explained(workspace, path), _open_folder(workspace, above) as folder:
        return folder.read(name, most)


def replace_inside(
    workspace: Path | None, path: str, most: int, change: Callable[[bytes | None], bytes], *, create: bool
) -> bytes:
    """Put what `change` makes of a file's bytes in their place, whole or not at all. → the new bytes

    It is given None where there is no such file. Nobody else in this process writes in between.
    """
    above, name = _file(path)
    with _writing, _explained(workspace, path), _open_folder(workspace, above, create=create) as folder:
        try:
            old = folder.read(name, most)
        except FileNotFoundError:
            old = None
        new = change(old)
        if new != old:
            folder.put(name, new, None if old is None else folder.mode(name))
        return new


def walk(
    workspace: Path | None, path: str, skip: frozenset[str]
) -> Generator[tuple[str, OpenFolder, Entry], None, None]:
    """Every regular file below a folder with its path from there, in order. No link is followed."""
    top = steps_of(path)
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        below = waiting.pop()
        try:
            with _explained(workspace, path), _open_folder(workspace, (*top, *below)) as folder:
                entries = folder.entries()
                for entry in entries:
                    if entry.kind == "file":
                        yield "/".join((*below, entry.name)), folder, entry
        except ToolFailed:
            if not below:
                raise
            continue  # gone, or closed to us: the rest is still worth seeing
        folders = [entry.name for entry in entries if entry.kind == "folder" and entry.name not in skip]
        if len(top) + len(below) < _DEEPEST:
            waiting += [(*below, name) for name in reversed(folders)]


# ── step by step ──────────────────────────────────────────────────────────────────────────────────


@contextmanager
def _open_folder(
    workspace: Path | None, steps: Sequence[str], *, create: bool = False
) -> Iterator[OpenFolder]:
    """Go down from the workspace. A link on the way is refused, wherever it leads: a rule on `secrets/*`
    holds for whatever is there, and a link that somebody puts there meanwhile helps nobody."""
    here = _top(_root(workspace))
    try:
        for step in steps:
            here = _down(here, step, create)
        yield here
    finally:
        here.close()


def _top(root: Path) -> OpenFolder:
    return OpenFolder(root, os.open(root, _FOLDER & ~_NOFOLLOW) if _STEPWISE else None)


def _down(here: OpenFolder, step: str, create: bool) -> OpenFolder:
    """The folder below, in place of the one given."""
    if create:
        try:
            here.make(step)
        except FileExistsError:
            pass
    if here.fd is None:
        return OpenFolder(Path(here.named(step)), None)
    fd = here.open(step, _FOLDER)
    os.close(here.fd)
    return OpenFolder(here.path / step, fd)


@contextmanager
def _explained(workspace: Path | None, path: str) -> Iterator[None]:
    """What the system says about a path, in words for the model."""
    try:
        yield
    except OSError as error:
        found = inside(workspace, path)  # refuses what leads out
        root = _root(workspace).resolve()
        if found.relative_to(root).parts != steps_of(path):
            real = found.relative_to(root).as_posix()
            raise ToolFailed(f"{path} goes through a link: name the file itself, {real}") from error
        words = _WORDS.get(type(error), "{path} cannot be opened: {why}")
        raise ToolFailed(words.format(path=path, why=error.strerror)) from error
    except UnicodeError as error:
        raise ToolFailed(f"{path!r} is no name a file can have") from error


_WORDS: dict[type[OSError], str] = {
    FileNotFoundError: "there is no {path} in the workspace",
    IsADirectoryError: "{path} is a folder",
    NotADirectoryError: "{path} is no folder, or goes through something that is none",
    PermissionError: "the system does not let us open {path}",
}


def _file(path: str) -> tuple[Sequence[str], str]:
    steps = steps_of(path)
    if not steps:
        raise ToolFailed(f"{path or '.'} is the workspace itself, a folder")
    return steps[:-1], steps[-1]


def _entry(found: os.DirEntry[str]) -> Entry:
    try:
        status = found.stat(follow_symlinks=False)
    except OSError:  # gone already
        return Entry(found.name, "other", 0)
    return Entry(found.name, _kind(status.st_mode), status.st_size)


def _kind(mode: int) -> Kind:
    if stat.S_ISLNK(mode):
        return "link"
    if stat.S_ISDIR(mode):
        return "folder"
    return "file" if stat.S_ISREG(mode) else "other"


def _check(path: str) -> None:
    if "\0" in path:
        raise ToolFailed("a path cannot contain a NUL character")
    if PurePosixPath(path).is_absolute() or PureWindowsPath(path).anchor:
        raise ToolFailed(f"{path}: give a path relative to the workspace")


def _root(workspace: Path | None) -> Path:
    if workspace is None:
        raise ToolFailed("there is no workspace folder in this conversation")
    return workspace
