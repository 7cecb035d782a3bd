"""Text files as the file tools see them: text, line ends, and a short word for each version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from pydantic import JsonValue

from dragoman.errors import ToolFailed
from dragoman.sentences import sentence
from dragoman.tools.tool import ToolOutput
from dragoman.tools.workspace import steps_of
from dragoman.workspace.diff import diff_texts, joined

_SHOWN = 20_000  # characters of a diff that goes with a result
MOST = 5_000_000  # bytes of a file that is read or written as text


@dataclass(slots=True, frozen=True)
class TextFile:
    """`crlf` where every line ends as on Windows; the text has plain line ends in any case where it is so."""

    text: str
    version: str
    crlf: bool

    def bytes(self, text: str) -> bytes:
        """Another text with the line ends of this one."""
        return (text.replace("\r\n", "\n").replace("\n", "\r\n") if self.crlf else text).encode()


def text_file(path: str, data: bytes) -> TextFile:
    """ToolFailed where it is no text."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ToolFailed(f"{path} is no text file (not UTF-8): it cannot be shown or edited") from error
    if "\0" in text:
        raise ToolFailed(f"{path} is a binary file: it cannot be shown or edited")
    crlf = "\r\n" in text and text.count("\n") == text.count("\r\n") == text.count("\r")
    return TextFile(text.replace("\r\n", "\n") if crlf else text, version_of(data), crlf)


def version_of(data: bytes) -> str:
    """Short, because a model has to repeat it."""
    return sha256(data).hexdigest()[:10]


def check_version(path: str, data: bytes, version: str) -> None:
    if version_of(data) != version.strip():
        raise ToolFailed(sentence("file.changed_version", path=path, version=version))


def seen_versions(versions: dict[str, str]) -> dict[str, JsonValue]:
    """For a result: which versions of which files this conversation knows from now on. It is read again from
    the stored messages, so it is still known after a restart (`ToolContext.seen_version`)."""
    return {"versions": {"/".join(steps_of(path)): version for path, version in versions.items()}}


@dataclass(slots=True)
class WriteOutput(ToolOutput):
    """What a tool that wrote files says; and, of each file, its path, what it was and what it is."""

    written: tuple[tuple[str, bytes | None, bytes | None], ...] = ()


def output_of_write(text: str, written: Sequence[tuple[str, bytes | None, bytes | None]]) -> WriteOutput:
    """The text for the model; for people, the diff of each file."""
    diffs = [diff_texts(path, old, new) for path, old, new in written if old != new]
    known = {path: version_of(new) for path, _, new in written if new is not None}
    metadata: dict[str, JsonValue] = {"diff": joined(diffs, _SHOWN), **seen_versions(known)}
    return WriteOutput(text, metadata=metadata, written=tuple(written))


def encoded(path: str, text: str) -> bytes:
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise ToolFailed(f"the text for {path} has half a character in it and cannot be written") from error
    if len(data) > MOST:
        raise ToolFailed(f"the text for {path} is too long: at most {MOST // 1000} kB can be written")
    return data
