"""Defines the folders that turns work in: the text for the model there, and the paths out of bounds."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dragoman.config.project_prompt import project_prompt
from dragoman.config.settings import Settings, data_folder, user_folder
from dragoman.config.sources import trust_answers
from dragoman.config.trust.contents import CODE, parse_settings
from dragoman.config.trust.programs import (
    CODE_NAMES,
    CODE_SUFFIXES,
    Programs,
    find_git_programs,
    find_programs,
    read_json_servers,
)
from dragoman.errors import ConfigError
from dragoman.messages.questions import Rule
from dragoman.store.address import StoreAddress, StoreFile
from dragoman.store.blobs.place import folder_of
from dragoman.stored_keys import keys_file
from dragoman.tools.permissions import literal
from dragoman.workspace.ignore import VERSION_CONTROL
from dragoman.workspace.workspaces import Workspace


def workspace_of(settings: Settings) -> Path:
    """Return the folder for file tools and the shell. Raise ConfigError if it is not a folder."""
    folder = settings.workspace
    if not folder.is_dir():
        origin = settings.origins.get("workspace", "settings")
        raise ConfigError(f"{origin}: the workspace '{folder}' is not a folder.")
    return folder


def workspaces_of(settings: Settings, store: StoreAddress) -> tuple[Workspace, dict[str, Workspace]]:
    """Return the main folder, and others by name, each with the text for the model and its bounds."""

    def made(folder: Path, own: str = "") -> Workspace:
        project = project_prompt(settings, folder)
        prompt = "\n\n".join(text for text in (own, project.for_model if project else "") if text)
        return Workspace(
            folder, prompt, tuple(_protected(settings, folder, store)), _Started(settings, folder)
        )

    others = {}
    for name, folder in settings.workspaces.items():
        if not folder.is_dir():
            origin = settings.origins.get(f"workspaces.{name}", "settings")
            raise ConfigError(f"{origin}: workspaces.{name}: '{folder}' is not a folder.")
        others[name] = made(folder, settings.values["workspaces"][name].get("prompt", ""))
    return made(workspace_of(settings)), others


def _protected(settings: Settings, workspace: Path, store: StoreAddress) -> list[Rule]:
    """Return rules for workspace files that become code or prompt at the next start.

    Other rules cover such files by name (`tools/permissions.py`). Writing there needs approval, whatever else
    is allowed. The store, keys and trust answers are out of bounds.
    """
    file = settings.values.get("mcp_file")
    asked = [
        *settings.files,
        *([settings.path(file)] if file else []),
        *(folder for folder, _ in settings.skill_folders()),
        *(settings.folder / name for name in (*CODE, ".dragoman")),
        user_folder(),
    ]
    rules = [
        *(Rule("files.write", pattern, "ask") for path in asked for pattern in _patterns(workspace, path)),
        Rule("files.write", f"{_within(workspace, trust_answers().file)}*", "deny"),
    ]
    stored = [f"{_within(workspace, store.path)}*"] if isinstance(store, StoreFile) else []
    stored += [f"{_within(workspace, store.folder(data_folder()))}/*", f"{_within(workspace, keys_file())}*"]
    if (folder := folder_of(store.blobs)) is not None and (within := _within(workspace, folder)) != ".":
        stored += [within, f"{within}/*"]
    rules += [Rule(f"files.{what}", pattern, "deny") for pattern in stored for what in ("read", "write")]
    return [rule for rule in dict.fromkeys(rules) if not rule.pattern.startswith("..")]


class _Started:
    """Rules that protect files which the settings, or version control, start later.

    They are computed again when one of the underlying files changes, since a server runs for weeks.
    """

    def __init__(self, settings: Settings, workspace: Path) -> None:
        self._settings = settings
        self._workspace = Path(os.path.realpath(workspace))
        self._git: tuple[Path, ...] = ()
        self._seen: list[tuple[int, int] | None] | None = None
        self._rules: tuple[Rule, ...] = ()

    def __call__(self) -> tuple[Rule, ...]:
        file = self._settings.values.get("mcp_file")
        sources = [*self._settings.files, *([self._settings.path(file)] if file else [])]
        if self._seen is None or self._seen != [_stamp(one) for one in (*sources, *self._git)]:
            git = find_git_programs(self._workspace)
            self._git = tuple(git.sources)
            self._seen = [_stamp(one) for one in (*sources, *self._git)]
            self._rules = tuple(dict.fromkeys(self._compute(git, sources[-1] if file else None)))
        return self._rules

    def _compute(self, git: Programs, mcp_file: Path | None) -> Iterator[Rule]:
        workspace, folder = self._workspace, Path(os.path.realpath(self._settings.folder))
        servers = read_json_servers(mcp_file) if mcp_file is not None else {}
        editor = " ".join(os.environ.get(name, "") for name in ("VISUAL", "EDITOR"))
        tables: list[Mapping[str, Any]] = [{**self._settings.values}]
        tables += [parse_settings(_read(one)) or {} for one in self._settings.files]
        found = [
            git,
            *(
                find_programs(table, folder, workspace, servers, editor=editor, look_up=True)
                for table in tables
            ),
        ]
        for programs in found:
            for path in programs.code:
                yield from _code_rules(workspace, path)
        for programs in found:  # These rules come last and win: a script need not have a code suffix.
            for path in (*programs.files, *programs.folders, *programs.named):
                for pattern in _patterns(workspace, path):
                    if not pattern.startswith(".."):
                        yield Rule("files.write", pattern, "ask")
        if not VERSION_CONTROL.isdisjoint(workspace.parts):
            yield Rule("files.write", "*", "ask")


def _code_rules(workspace: Path, folder: Path) -> Iterator[Rule]:
    """Yield rules for all code of a folder: files without a suffix, with a code suffix, or with a build
    file's name."""
    within = _lexically_within(workspace, folder)
    if within.startswith(".."):
        if not workspace.is_relative_to(folder):
            return
        within = "."  # The folder contains the workspace.
    below = "" if within == "." else f"{within}/"
    yield Rule("files.write", f"{below}*", "ask")
    yield Rule("files.write", f"{below}*.*", "allow")
    for pattern in (*(f"*{suffix}" for suffix in CODE_SUFFIXES), *CODE_NAMES):
        yield Rule("files.write", f"{below}{pattern}", "ask")
    yield from (Rule("files.write", f"{below}*/{name}", "ask") for name in CODE_NAMES)


def _patterns(workspace: Path, path: Path) -> list[str]:
    """Return patterns for a path and everything below, as named and as resolved. If the path contains the
    workspace, they match everything."""
    patterns: list[str] = []
    for within in dict.fromkeys((_lexically_within(workspace, path), _within(workspace, path))):
        patterns += ["*"] if set(within.split("/")) <= {".", ".."} else [within, f"{within}/*"]
    return patterns


def _within(workspace: Path, file: Path) -> str:
    """Return the path as file tools name it. It starts with .. outside the workspace."""
    return _lexically_within(workspace, file.resolve())


def _lexically_within(workspace: Path, file: Path) -> str:
    return literal(Path(os.path.relpath(file, workspace.resolve())).as_posix())


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""
