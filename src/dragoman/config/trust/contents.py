"""Finds the content of a folder that would be active, with a hash of each file, and who else can write it.

That is settings, code, skills and files started by the settings. Content that another user of this machine
can write is never used.
"""

from __future__ import annotations

import os
import stat
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

from dragoman.config.trust.programs import (
    DATA_SUFFIXES,
    Programs,
    code_below,
    find_programs,
    fingerprint,
    read_json_servers,
)
from dragoman.tools.skills import NAME as SKILL
from dragoman.workspace.ignore import MADE

if sys.platform != "win32":
    import grp
    import pwd

ROOT = 0  # Root can change everything anyway.


def find_writer(path: Path) -> str | None:
    """Describe how another user could change or replace this path. None if no other user could."""
    real = Path(os.path.realpath(path))
    for each in (real, *real.parents):
        if (fault := writer_of(each, shared=each != real)) is not None:
            return fault
    return None


def writer_of(path: Path, *, shared: bool = False) -> str | None:
    """Describe how another user could change this one file or folder.

    `shared` marks a folder above it. Others may write there if it is sticky, like /tmp: they can add files
    but not replace this user's.
    """
    if sys.platform == "win32":
        return None  # Windows has no such owners and modes.
    try:
        found = path.stat()
    except OSError as error:
        return f"{path} cannot be looked at: {error.strerror}"
    if found.st_uid not in (os.getuid(), ROOT):
        return f"{path} belongs to another user"
    writable = found.st_mode & stat.S_IWOTH or (
        found.st_mode & stat.S_IWGRP and not _is_private_group(found.st_gid)
    )
    if writable and not (shared and found.st_mode & stat.S_ISVTX):
        return f"other users can write {path}"
    return None


def _is_private_group(group: int) -> bool:
    """Return whether only this user is in the group: many systems give each user a writable private group."""
    if sys.platform == "win32":
        return True
    if group == ROOT:
        return True
    try:
        me, found = pwd.getpwuid(os.getuid()), grp.getgrgid(group)
    except KeyError:
        return False
    return me.pw_gid == group and found.gr_name == me.pw_name and set(found.gr_mem) <= {me.pw_name}


SETTINGS = "dragoman.toml"
BYTE_ORDER_MARK = "\ufeff"  # Some Windows editors put it at the start of a text.
CODE = ("tools", "plugins")
SKILLS = ("skills", ".dragoman/skills")
INSTRUCTIONS = ("AGENTS.md", "CLAUDE.md")  # Instructions for the model. The first existing file is used.
COMMANDS = ".dragoman/commands"  # messages that a user sends by a command name
PROMPTS = (*INSTRUCTIONS, COMMANDS)
MOST_FILES = 2_000
MOST_BYTES = 20_000_000
_LARGEST_PROGRAM = 1_000_000_000
_LARGEST_TEXT = 500_000  # Maximum size of a text that a summary reads.
_COMPILED = "__pycache__"  # Never loaded from a folder of tools (`tools/python_files.py`).


@dataclass(slots=True, frozen=True)
class FolderContents:
    """The active content of a folder. Names are paths from the folder, or absolute paths for files outside
    it.

    A name that ends with a slash is a folder with too much content to read. Its hash covers names, sizes
    and times.
    """

    folder: Path
    files: Mapping[str, str] = field(default_factory=dict)  # name → sha256
    # texts of settings, skills and MCP files
    texts: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    unsafe: str | None = None  # the reason why it is never used, whatever the user decides
    mcp_files: tuple[str, ...] = ()  # files from which MCP servers would be read, existing or not
    started: tuple[str, ...] = ()  # files that are, or are run by, programs of the settings
    unknown: tuple[str, ...] = ()  # Commands that do not reveal what they run, so that all code is included.

    @property
    def settings(self) -> dict[str, Any]:
        """Return the current settings of the file, empty if it is unreadable."""
        return parse_settings(self.texts.get(SETTINGS, b"")) or {}

    def is_current(self) -> bool:
        """Return whether the files are unchanged, since the user may take long to answer."""
        try:
            return all(_hash_at(self.folder, name) == hash for name, hash in self.files.items())
        except (OSError, OverflowError, TooMuch):
            return False

    def paths(self) -> dict[str, str]:
        """Map each file's real path to its hash."""
        return {os.path.realpath(self.folder / name): hash for name, hash in self.files.items()}


class TooMuch(Exception):
    """The content is larger than any project needs, or endless."""


def inspect_project(folder: Path, file: str = SETTINGS) -> FolderContents:
    """Inspect a folder with settings: the file, the content next to it, and the files it refers to."""
    folder = Path(os.path.realpath(folder))
    beside = [folder / name for name in (file, *CODE, *SKILLS, *PROMPTS)]
    try:
        with (folder / file).open("rb") as opened:
            table = parse_settings(opened.read(_LARGEST_TEXT + 1)) or {}
    except OSError:
        table = {}
    servers = [*_named(folder, table.get("mcp_file"))]
    workspace = Path(os.path.realpath(next(_named(folder, table.get("workspace")), folder)))
    listed = {name: server for file in servers for name, server in read_json_servers(file).items()}
    programs = find_programs(table, folder, workspace, listed)
    return _inspect(folder, [*beside, *servers, *_referenced(folder, table)], servers, programs)


def inspect_paths(folder: Path, paths: Iterable[Path], mcp_file: Path | None = None) -> FolderContents:
    """Inspect only these paths of a folder, their content, and a file with MCP servers."""
    folder = Path(os.path.realpath(folder))
    servers = read_json_servers(mcp_file) if mcp_file is not None else {}
    files = [mcp_file] if mcp_file is not None else []
    return _inspect(folder, [*paths, *files], files, find_programs({}, folder, folder, servers))


def expand(text: str) -> Path:
    """Replace `~` by the home folder. The text stays unchanged if the user does not exist."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def hash_of(data: bytes) -> str:
    return sha256(data).hexdigest()


def parse_settings(data: bytes) -> dict[str, Any] | None:
    """Return the tables of a settings file of limited size. None if it is invalid."""
    if len(data) > _LARGEST_TEXT:
        return None
    try:
        return tomllib.loads(data.decode().removeprefix(BYTE_ORDER_MARK))
    except (ValueError, RecursionError):
        return None


def _referenced(folder: Path, table: Mapping[str, Any]) -> Iterator[Path]:
    """Yield folders that the settings name, whose content acts like that next to the settings."""
    listed = table.get("skills")
    for text in listed if isinstance(listed, list) else []:
        yield from _named(folder, text)
    for workspace in _named(folder, table.get("workspace")):
        yield from (workspace / name for name in (*SKILLS, *PROMPTS))
    others = table.get("workspaces")
    for other in others.values() if isinstance(others, dict) else ():
        for workspace in _named(folder, other.get("folder") if isinstance(other, dict) else None):
            yield from (workspace / name for name in INSTRUCTIONS)


def _named(folder: Path, text: object) -> Iterator[Path]:
    if isinstance(text, str) and "\0" not in text:
        yield folder / expand(text)


def _inspect(
    folder: Path, paths: Iterable[Path], servers: Iterable[Path], programs: Programs
) -> FolderContents:
    mcp_files = tuple(_name(folder, file) for file in servers)
    files: dict[str, str] = {}
    texts: dict[str, bytes] = {}
    started: dict[str, None] = {}
    size = 0
    try:
        for file in _files(paths):
            if (name := _name(folder, file)) in files:
                continue
            data = read_without_waiting(file, MOST_BYTES - size)
            size += len(data)
            files[name] = hash_of(data)
            if name == SETTINGS or name in mcp_files or file.name == SKILL:
                texts[name] = data
            if len(files) > MOST_FILES:
                raise TooMuch
        for file in _started_files(folder, programs):
            name = _name(folder, file) + ("/" if file.is_dir() else "")
            started[name] = None
            if name not in files:
                files[name] = _hash_at(folder, name)
        unsafe = _find_writer(folder, files) if files else None
    except TooMuch:
        unsafe = f"it holds more than can be looked at ({MOST_FILES} files, {MOST_BYTES // 1_000_000} MB)"
    except OverflowError as error:
        unsafe = f"all its code would have to be looked at: {error}"
    except OSError as error:
        unsafe = f"{error.filename} cannot be read: {error.strerror}"
    return FolderContents(folder, files, texts, unsafe, mcp_files, tuple(started), tuple(programs.unknown))


def _started_files(folder: Path, programs: Programs) -> Iterator[Path]:
    """Yield each file that programs are or run. If there are too many, yield their folder instead."""
    for file in programs.files:
        if file.is_file():
            yield file
    for file in programs.named:
        if file.is_file() and file.suffix.lower() not in DATA_SUFFIXES:
            yield file
    searched = [*programs.folders, *programs.code, *([folder] if programs.unknown else [])]
    for place in dict.fromkeys(searched):
        if any(place != other and place.is_relative_to(other) for other in searched):
            continue  # It is searched with the enclosing folder.
        if place.is_file():
            yield place
        if not place.is_dir():
            continue
        if place.name in MADE:
            yield place
            continue
        code, installed = code_below(place, folder)
        if len(code) > MOST_FILES or sum(one.stat().st_size for one in code) > MOST_BYTES:
            yield place
        else:
            yield from (one for one in code if one.is_file())
            yield from installed


def _hash_at(folder: Path, name: str) -> str:
    path = folder / name
    if name.endswith("/"):
        return fingerprint(path, folder)
    if path.is_file() and MOST_BYTES < path.stat().st_size < _LARGEST_PROGRAM:
        with path.open("rb") as opened:
            return file_digest(opened, "sha256").hexdigest()
    return hash_of(read_without_waiting(path, MOST_BYTES))


def _find_writer(folder: Path, names: Iterable[str]) -> str | None:
    """Describe how another user could change any of it. The target of a link counts at its location."""
    if (fault := find_writer(folder)) is not None:
        return fault
    looked_at = {folder}
    for name in names:
        real = Path(os.path.realpath(folder / name))
        if (fault := writer_of(real)) is not None:
            return fault
        for parent in real.parents:
            if parent in looked_at:
                break
            looked_at.add(parent)
            inner = parent.is_relative_to(folder)
            fault = writer_of(parent) if inner else find_writer(parent)
            if fault is not None:
                return fault
            if not inner:
                break
    return None


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield regular files at and below these paths, following links, each folder once."""
    seen: set[str] = set()
    waiting = list(paths)
    while waiting:
        path = waiting.pop(0)
        if path.is_file():
            yield path
        elif path.is_dir() and (real := os.path.realpath(path)) not in seen:
            seen.add(real)
            with os.scandir(path) as found:
                names = sorted(entry.name for entry in found if entry.name != _COMPILED)
            waiting += [path / name for name in names]
            if len(waiting) + len(seen) > 2 * MOST_FILES:
                raise TooMuch


def read_without_waiting(file: Path, most: int) -> bytes:
    """Read without blocking: some system files are endless and rarely produce a line."""
    with os.fdopen(os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as opened:
        data = opened.read(most + 1) or b""  # Empty if another process has not written yet.
    if len(data) > most:
        raise TooMuch
    return data


def _name(folder: Path, file: Path) -> str:
    if file == folder:
        return "."
    path = Path(os.path.normpath(file))  # Do not follow the path if it is a link.
    if os.path.realpath(path) != os.path.realpath(file):
        # A `..` after a link leads to another place than the text suggests.
        path = Path(os.path.realpath(file))
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else str(path)
