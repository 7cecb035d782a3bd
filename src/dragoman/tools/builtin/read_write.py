"""Read, write and list files of the workspace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import Annotated

from pydantic import Field, JsonValue

from dragoman.errors import ToolFailed
from dragoman.messages.message import Arguments
from dragoman.sentences import sentence
from dragoman.tools.tool import ToolContext, ToolOutput, tool
from dragoman.tools.workspace import (
    below,
    entries_inside,
    on_one_line,
    path_patterns,
    read_if_there,
    read_inside,
    replace_inside,
    steps_of,
    wider_paths,
)
from dragoman.workspace.diff import FileDiff, diff_texts, joined
from dragoman.workspace.folder import Entry
from dragoman.workspace.hunks import HunkChoices, keep_hunks

# `list_directory`: the entries of a folder of the workspace.


_MOST = 1000


@tool(
    permission="files.read",
    writes="nothing",
    pattern=path_patterns,
    wider=wider_paths,
    replay="safe",
    timeout=30,
)
def list_directory(
    context: ToolContext,
    path: Annotated[
        str, Field(description="a folder, relative to the workspace; `.` is the workspace")
    ] = ".",
) -> str:
    """List a folder of the workspace: folders end in /, files are followed by their size in bytes."""
    found = entries_inside(context.workspace, path)
    entries = [entry for entry in found if context.permits(below(path, entry.name))]
    shown = sorted(entries, key=lambda entry: entry.kind != "folder")[:_MOST]
    more = f"\n[{len(entries) - _MOST} more are not shown: use glob]" if len(entries) > _MOST else ""
    return "\n".join(map(_line, shown)) + more if shown else f"{path} is empty"


def _line(entry: Entry) -> str:
    name = on_one_line(entry.name)
    match entry.kind:
        case "folder":
            return f"{name}/"
        case "file":
            return f"{name}  {entry.size}"
        case "link":
            return f"{name}  (a link; links are not followed)"
        case "other":
            return f"{name}  (no regular file)"


# Text files as the file tools see them: text, line ends, and a short identifier for each version.


_SHOWN = 20_000  # characters of a diff in a result
MOST = 5_000_000  # bytes of a file that is read or written as text


@dataclass(slots=True, frozen=True)
class TextFile:
    """A text file.

    If `crlf`, every line of the file ends with CRLF and the text has plain line ends instead.
    """

    text: str
    version: str
    crlf: bool

    def bytes(self, text: str) -> bytes:
        """Return another text as bytes with the line ends of this file."""
        return (text.replace("\r\n", "\n").replace("\n", "\r\n") if self.crlf else text).encode()


def text_file(path: str, data: bytes) -> TextFile:
    """Return the file's text. Raises ToolFailed if the bytes are not text."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ToolFailed(
            f"{path} is not a text file (not UTF-8). This tool reads and edits text only."
        ) from error
    if "\0" in text:
        raise ToolFailed(f"{path} is a binary file. This tool reads and edits text only.")
    crlf = "\r\n" in text and text.count("\n") == text.count("\r\n") == text.count("\r")
    return TextFile(text.replace("\r\n", "\n") if crlf else text, version_of(data), crlf)


def version_of(data: bytes) -> str:
    """Return a short version, because a model has to repeat it."""
    return sha256(data).hexdigest()[:10]


def check_version(path: str, data: bytes, version: str) -> None:
    if version_of(data) != version.strip():
        raise ToolFailed(sentence("file.changed_version", path=path, version=version))


def seen_versions(versions: dict[str, str]) -> dict[str, JsonValue]:
    """Return result metadata with the file versions that this conversation has now seen.

    The metadata is read again from the stored messages, so a restart keeps it (`ToolContext.seen_version`).
    """
    return {"versions": {"/".join(steps_of(path)): version for path, version in versions.items()}}


@dataclass(slots=True)
class WriteOutput(ToolOutput):
    """The output of a tool that wrote files: for each file its path, its old bytes and its new bytes."""

    written: tuple[tuple[str, bytes | None, bytes | None], ...] = ()


def output_of_write(text: str, written: Sequence[tuple[str, bytes | None, bytes | None]]) -> WriteOutput:
    """Return the text for the model, and the diff of each file for users."""
    diffs = [diff_texts(path, old, new) for path, old, new in written if old != new]
    known = {path: version_of(new) for path, _, new in written if new is not None}
    metadata: dict[str, JsonValue] = {"diff": joined(diffs, _SHOWN), **seen_versions(known)}
    return WriteOutput(text, metadata=metadata, written=tuple(written))


def encoded(path: str, text: str) -> bytes:
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise ToolFailed(f"The text for {path!r} has half a surrogate pair and cannot be written.") from error
    if len(data) > MOST:
        raise ToolFailed(f"The text for {path!r} is too long. The limit is {MOST // 1000} kB.")
    return data


# `read_file`: lines of a text file in the workspace, and the version that was read.


_PAGE = 40_000  # bytes: less than the part of a result that a model is shown


@tool(
    permission="files.read",
    writes="nothing",
    pattern=path_patterns,
    wider=wider_paths,
    replay="safe",
    timeout=30,
)
def read_file(
    path: Annotated[str, Field(description="relative to the workspace")],
    context: ToolContext,
    start: Annotated[int, Field(ge=1, description="the first line wanted")] = 1,
    lines: Annotated[int, Field(ge=1, le=1900, description="how many lines")] = 1000,
) -> ToolOutput:
    """Read a text file of the workspace. The first line of the result says which lines these are, how many
    there are, and the file's version, which edit_file and write_file ask for."""
    file = text_file(path, read_inside(context.workspace, path, MOST))
    whole = file.text.removesuffix("\n").split("\n") if file.text else []
    if start > max(len(whole), 1):
        raise ToolFailed(f"{path} has {len(whole)} lines; start is {start}")
    page, cut = _page(whole[start - 1 : start - 1 + lines])
    head = f"[{path}: lines {start} to {start - 1 + len(page)} of {len(whole)}, version {file.version}]"
    if not whole:
        head = f"[{path} is empty, version {file.version}]"
    text = "\n".join([head, *page, *cut])
    return ToolOutput(text, metadata=seen_versions({path: file.version}))


def _page(wanted: list[str]) -> tuple[list[str], list[str]]:
    """Return as many whole lines as fit. If the first line is too long, return its start and a note."""
    sizes = accumulate(len(line.encode()) + 1 for line in wanted)
    page = [line for line, size in zip(wanted, sizes, strict=True) if size <= _PAGE]
    if page or not wanted:
        return page, []
    shown = wanted[0].encode()[:_PAGE].decode(errors="ignore")
    return [shown], [f"[this line continues: it has {len(wanted[0])} characters, {len(shown)} are shown]"]


# `write_file`: a new text file in the workspace, or new text for a file that was read.


def preview(arguments: Arguments, workspace: Path | None) -> Sequence[FileDiff]:
    """Return the diff between the current file and the file after the write."""
    path = path_patterns(arguments)[0]
    old, wanted = read_if_there(workspace, path, MOST), encoded(path, str(arguments["text"]))
    version = arguments.get("version")
    _check(path, old, wanted, str(version) if version else None)
    return [diff_texts(path, old, wanted)]


def keep(arguments: Arguments, workspace: Path | None, chosen: HunkChoices) -> Arguments:
    """Return the arguments with only some of the changes in the text."""
    path = path_patterns(arguments)[0]
    old = read_if_there(workspace, path, MOST)
    kept = keep_hunks(old, encoded(path, str(arguments["text"])), chosen)
    return {**arguments, "text": (kept or b"").decode()}


# If the write runs again after a crash, the file has either its text (nothing to do) or the given version.
@tool(
    permission="files.write",
    writes="named",
    preview=preview,
    previewed=("path", "text", "version"),
    keep_hunks=keep,
    pattern=path_patterns,
    wider=wider_paths,
    replay="safe",
    timeout=30,
    sequential=True,
)
def write_file(
    path: Annotated[str, Field(description="relative to the workspace; folders are made as needed")],
    text: Annotated[str, Field(description="the whole new text of the file")],
    context: ToolContext,
    version: Annotated[
        str | None, Field(description="for a file that exists: the version that read_file gave")
    ] = None,
) -> ToolOutput:
    """Write a whole text file in the workspace. Leave `version` out for a new file; a file that exists is
    replaced only if it still is the version you read. For a small change use edit_file."""
    wanted = encoded(path, text)
    before: bytes | None = None

    def change(old: bytes | None) -> bytes:
        nonlocal before
        before = old
        _check(path, old, wanted, version)
        return wanted

    replace_inside(context.workspace, path, MOST, change, create=not version)
    size = "1 character" if len(text) == 1 else f"{len(text)} characters"
    said = f"wrote {path}: {size}, version {version_of(wanted)}"
    return output_of_write(said, [(path, before, wanted)])


def _check(path: str, old: bytes | None, wanted: bytes, version: str | None) -> None:
    """Check the file before the write. Raises ToolFailed if it is not the version the model has seen."""
    if old is None and version:
        raise ToolFailed(f"{path} no longer exists. Leave out `version` to write it again.")
    if old is not None and old != wanted:
        if not version:
            raise ToolFailed(f"{path!r} exists. Read it first, then pass the version that read_file shows.")
        check_version(path, old, version)
