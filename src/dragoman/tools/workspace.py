"""Access files of the workspace by the paths a model gives, which never lead out of it, even through
links."""

from __future__ import annotations

import os
import threading
import unicodedata
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Protocol

from dragoman.errors import ToolFailed
from dragoman.messages.message import Arguments
from dragoman.sentences import Sentence, sentence
from dragoman.workspace.diff import quoted
from dragoman.workspace.folder import DEEPEST, Entry, OpenFolder, open_folder
from dragoman.workspace.ignore import MADE, VERSION_CONTROL, IgnoreReader, IgnoreRules

_writing = threading.Lock()  # Two calls that saw the same version may not both replace it.


class OpenFiles(Protocol):
    """Files as an editor has them open: the editor's text counts, even if it is not saved yet."""

    def read(self, path: Path) -> str | None:
        """Return the editor's text. None if the file is not open there."""

    def write(self, path: Path, text: str) -> bool:
        """Write and save through the editor. False if it cannot. ToolFailed if it refuses."""


OPEN_FILES: ContextVar[OpenFiles | None] = ContextVar("open_files", default=None)
"""Set around a tool that works on files as an editor has them (`cli/acp/editor.py`)."""

PREVIEWING: ContextVar[str] = ContextVar("previewing", default="")
"""The conversation of a preview: an editor has one window for each."""


@contextmanager
def previewing(conversation: str) -> Iterator[None]:
    token = PREVIEWING.set(conversation)
    try:
        yield
    finally:
        PREVIEWING.reset(token)


def inside(workspace: Path | None, path: str) -> Path:
    """Return the file of this name below the workspace, with links followed."""
    _check(path)
    root = _root(workspace).resolve()
    try:
        target = (root / path).resolve()
        if any(step.is_symlink() for step in (target, *target.parents)):  # it links to itself
            raise RuntimeError(path)  # as `resolve` itself does before Python 3.13
    except (OSError, RuntimeError, ValueError) as error:
        raise ToolFailed(f"Cannot follow the path {path!r}.") from error
    if not target.is_relative_to(root):
        raise ToolFailed(sentence("workspace.outside", path=path))
    return target


def steps_of(path: str) -> tuple[str, ...]:
    """Return the names from the workspace down to the file. `a/../b` is `b`: no link is ever followed on the
    way."""
    _check(path)
    steps: list[str] = []
    for step in path.replace(os.sep, "/").split("/"):
        if step == "..":
            if not steps:
                raise ToolFailed(sentence("workspace.outside", path=path))
            steps.pop()
        elif step not in ("", "."):
            steps.append(step)
    if len(steps) > DEEPEST:
        raise ToolFailed(f"A path can have {DEEPEST} steps at most.")
    return tuple(steps)


def path_patterns(arguments: Arguments) -> list[str]:
    """Return the call's `path` in normalized spelling, so that rules treat `./secrets/x` as `secrets/x`."""
    path = str(arguments.get("path") or ".")
    try:
        return ["/".join(steps_of(path)) or "."]
    except ToolFailed:
        return [path]  # The tool refuses it.


def wider_paths(arguments: Arguments) -> list[str]:
    """Return the folders of a file, the nearest first: a user can allow one instead of the file."""
    steps = path_patterns(arguments)[0].split("/")
    return ["/".join((*steps[:end], "*")) for end in range(len(steps) - 1, 0, -1)]


def below(folder: str, name: str) -> str:
    """Return the path in the workspace of an entry of one of its folders."""
    return "/".join((*steps_of(folder), name))


def on_one_line(path: str) -> str:
    """Return a path unchanged, unless it contains line breaks and could look like several names: then quote
    it as git does."""
    breaks = any(unicodedata.category(one) in ("Cc", "Zl", "Zp") for one in path)
    return quoted(path) if breaks else path


def entries_inside(workspace: Path | None, path: str) -> list[Entry]:
    """Return the entries of a folder, by name."""
    with _explained(workspace, path), _open_folder(workspace, steps_of(path)) as folder:
        return folder.entries()


def read_inside(workspace: Path | None, path: str, most: int) -> bytes:
    """Return the bytes of a regular file, up to a maximum size."""
    above, name = _file(path)
    with _explained(workspace, path), _open_folder(workspace, above) as folder:
        return _as_open(workspace, path, folder.read(name, most))


def read_if_there(workspace: Path | None, path: str, most: int) -> bytes | None:
    """Return the bytes of a regular file. None if it is missing."""
    above, name = _file(path)
    with _explained(workspace, path):
        try:
            with _open_folder(workspace, above) as folder:
                return _as_open(workspace, path, folder.read(name, most))
        except FileNotFoundError:
            return None


def remove_inside(workspace: Path | None, path: str, expected: bytes) -> None:
    """Delete a file that is unchanged."""
    above, name = _file(path)
    with _writing, _explained(workspace, path), _open_folder(workspace, above) as folder:
        if folder.read(name, len(expected) + 1) != expected:
            raise ToolFailed(f"{path} changed meanwhile. Read it again.")
        folder.remove(name)


def mode_inside(workspace: Path | None, path: str) -> int:
    """Return the mode of a file that can be written."""
    above, name = _file(path)
    with _explained(workspace, path), _open_folder(workspace, above) as folder:
        return folder.mode(name)


def replace_inside(
    workspace: Path | None,
    path: str,
    most: int,
    change: Callable[[bytes | None], bytes],
    *,
    create: bool,
    mode: int | None = None,
) -> bytes:
    """Replace a file's bytes atomically with what `change` returns for them. Return the new bytes.

    `change` receives None for a missing file. The new file gets `mode`. Nothing else in this process writes
    in between.
    """
    above, name = _file(path)
    with _writing, _explained(workspace, path), _open_folder(workspace, above, create=create) as folder:
        try:
            old = _as_open(workspace, path, folder.read(name, most))
        except FileNotFoundError:
            old = None
        new = change(old)
        # An editor may write in place into a file with several hard links, which would change all of them.
        shared = old is not None and folder.status(name).st_nlink > 1
        if new != old and (shared or not _written_by_editor(workspace, path, new)):
            folder.put(name, new, mode if old is None else folder.mode(name))
        return new


def walk(
    workspace: Path | None, path: str, left_out: list[str] | None = None
) -> Generator[tuple[str, str, OpenFolder, Entry], None, None]:
    """Yield the file itself, or every regular file below a folder, in order, without following links.

    Each comes with its path from there and its path in the workspace. Paths that ignore files exclude are
    added to `left_out`, except the requested folder.
    """
    top = steps_of(path)
    reader, rules = IgnoreReader(), None
    for depth in range(len(top)):
        with _explained(workspace, path), _open_folder(workspace, top[:depth]) as folder:
            entries = folder.entries()
            rules = _rules(reader, rules, folder, top[:depth], entries)
            for entry in entries:
                if depth == len(top) - 1 and entry.kind == "file" and entry.name == top[-1]:
                    yield entry.name, "/".join(top), folder, entry
                    return
        if rules.ignored("/".join(top[: depth + 1]), folder=True):
            rules = IgnoreRules(())
    waiting: list[tuple[tuple[str, ...], IgnoreRules | None]] = [((), rules)]
    while waiting:
        below, above = waiting.pop()
        whole = (*top, *below)
        try:
            with _explained(workspace, path), _open_folder(workspace, whole) as folder:
                entries = folder.entries()
                here = _rules(reader, above, folder, whole, entries)
                folders = []
                for entry in entries:
                    found = "/".join((*whole, entry.name))
                    if entry.kind not in ("file", "folder"):
                        continue
                    if here.ignored(found, folder=entry.kind == "folder"):
                        if left_out is not None and entry.name not in (*VERSION_CONTROL, *MADE):
                            left_out.append(found)
                    elif entry.kind == "file":
                        yield "/".join((*below, entry.name)), found, folder, entry
                    else:
                        folders.append((*below, entry.name))
        except ToolFailed:
            if not below:
                raise
            continue  # missing, or not readable: continue with the rest
        if len(whole) < DEEPEST:
            waiting += [(name, here) for name in reversed(folders)]


def _rules(
    reader: IgnoreReader,
    above: IgnoreRules | None,
    folder: OpenFolder,
    steps: Sequence[str],
    entries: Sequence[Entry],
) -> IgnoreRules:
    names = {entry.name for entry in entries}
    if above is None:
        return reader.root(folder, names)
    return reader.below(above, folder, "".join(f"{step}/" for step in steps), names)


# ── as an editor has them ─────────────────────────────────────────────────────────────────────────


def _as_open(workspace: Path | None, path: str, saved: bytes) -> bytes:
    """Return the bytes of a file as if the editor had saved its open text."""
    files = OPEN_FILES.get()
    text = files.read(_root(workspace).joinpath(*steps_of(path))) if files is not None else None
    if text is None:
        return saved
    plain, ends = saved.replace(b"\r\n", b"\n"), saved.count(b"\n")
    open_as = text.replace("\r\n", "\n").encode("utf-8", "surrogatepass")
    if open_as == plain:
        return saved  # Editors pass texts with their own line ends.
    crlf = ends > 0 and ends == saved.count(b"\r\n")
    return open_as.replace(b"\n", b"\r\n") if crlf else open_as


def _written_by_editor(workspace: Path | None, path: str, data: bytes) -> bool:
    files = OPEN_FILES.get()
    if files is None:
        return False
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return False
    return files.write(_root(workspace).joinpath(*steps_of(path)), text)


# ── step by step ──────────────────────────────────────────────────────────────────────────────────


@contextmanager
def _open_folder(
    workspace: Path | None, steps: Sequence[str], *, create: bool = False
) -> Iterator[OpenFolder]:
    with open_folder(_root(workspace), steps, create=create) as folder:
        yield folder


@contextmanager
def _explained(workspace: Path | None, path: str) -> Iterator[None]:
    """Turn system errors about a path into messages for the model."""
    try:
        yield
    except OSError as error:
        found = inside(workspace, path)  # raises for a path that leads out
        root = _root(workspace).resolve()
        if found.relative_to(root).parts != steps_of(path):
            real = found.relative_to(root).as_posix()
            raise ToolFailed(f"{path} goes through a link: name the file itself, {real}") from error
        raise ToolFailed(_words(error, path)) from error
    except UnicodeError as error:
        raise ToolFailed(f"{path!r} is not a valid file name.") from error


def _words(error: OSError, path: str) -> Sentence:
    match error:
        case FileNotFoundError():
            return sentence("workspace.no_file", path=path)
        case IsADirectoryError():
            return sentence("workspace.folder", path=path)
        case NotADirectoryError():
            return sentence("workspace.no_folder", path=path)
        case PermissionError():
            return sentence("workspace.denied", path=path)
        case _:
            return sentence("workspace.not_opened", path=path, why=error.strerror)


def _file(path: str) -> tuple[Sequence[str], str]:
    steps = steps_of(path)
    if not steps:
        raise ToolFailed(f"'{path or '.'}' is the workspace itself, a folder.")
    return steps[:-1], steps[-1]


def _check(path: str) -> None:
    if "\0" in path:
        raise ToolFailed("A path cannot contain a NUL character.")
    if PurePosixPath(path).is_absolute() or PureWindowsPath(path).anchor:
        raise ToolFailed(f"Pass a path relative to the workspace, not {path!r}.")


def _root(workspace: Path | None) -> Path:
    if workspace is None:
        raise ToolFailed("This conversation has no workspace folder.")
    return workspace
