"""Run `dragoman trust`: show what a folder would do and trust it, list trusted folders, and revoke trust."""

from __future__ import annotations

import os
import sys
from datetime import datetime
from pathlib import Path
from typing import TextIO

from pydantic import JsonValue

from dragoman.cli.flags.setup import FolderFlags
from dragoman.cli.folder_trust import is_at_terminal, show
from dragoman.cli.terminal.text import one_line, print_json
from dragoman.config.settings import inspect_folder
from dragoman.config.sources import find_project_file, trust_answers
from dragoman.config.trust.answers import TrustAnswer
from dragoman.errors import BadRequest, ConfigError


def decide_trust(flags: FolderFlags) -> None:
    if flags.list_all:
        _list_decisions(as_json=flags.json)
    elif flags.revoke:
        _revoke(flags.folder)
    else:
        _trust(_find_folder(flags.folder), confirmed=flags.yes)


def _trust(folder: Path, *, confirmed: bool) -> None:
    """Trust a folder. At a terminal, the user confirms the command after the summary."""
    contents = inspect_folder(folder)
    if not contents.files and contents.unsafe is None:
        print(f"There is nothing in {folder} that would act.")
        return
    print(f"{one_line(str(folder), 500)} has settings and code that would act:", file=sys.stderr)
    show(contents)
    if (earlier := trust_answers().find(folder)) is not None and earlier.trusted:
        _show_changes(earlier.changes(contents), sys.stderr)
    if contents.unsafe is not None:
        raise ConfigError(f"{folder} cannot be trusted: {contents.unsafe}")
    if not confirmed and is_at_terminal():
        print("Trust it? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise BadRequest(f"Folder '{folder}' is not trusted.")
        if not contents.is_current():
            raise BadRequest(f"{folder} changed while you reviewed it. Start again.")
    trust_answers().remember(contents, trusted=True)
    print(f"{folder} is trusted until something in it changes. To revert: dragoman trust --revoke")


def _revoke(named: Path | None) -> None:
    folder = _find_folder(named, known=True)
    if not trust_answers().forget(folder):
        raise BadRequest(f"No decision about {folder} yet. Run `dragoman trust --list` to see all decisions.")
    print(f"{folder} is no longer trusted. Dragoman asks about it again.")


def _list_decisions(*, as_json: bool) -> None:
    answers = trust_answers().all()
    if as_json:
        listed: list[JsonValue] = [
            {
                "folder": str(folder),
                "trusted": one.trusted,
                "state": state,
                "when": one.when,
                "files": [*one.files],
                "changes": [*changes],
            }
            for folder, one in answers.items()
            for state, changes in [_state(folder, one)]
        ]
        print_json({"folders": listed}, indent=2)
        return
    for folder, one in answers.items():
        when = datetime.fromtimestamp(one.when).strftime("%Y-%m-%d %H:%M")
        state, changes = _state(folder, one)
        print(f"{state}\t{when}\t{one_line(str(folder), 1000)}")
        _show_changes(changes, sys.stdout)
    if not answers:
        print("No folder is trusted yet.", file=sys.stderr)


def _state(folder: Path, answer: TrustAnswer) -> tuple[str, list[str]]:
    """Return the current state of a folder, and the changes since the answer. Changed parts are unused until
    trusted again."""
    if not folder.is_dir():
        return "gone", []
    contents = inspect_folder(folder)
    changes = answer.changes(contents)
    if not answer.trusted:
        return "not used", changes
    if contents.unsafe is not None:
        return "changed", [*changes, f"cannot be used: {contents.unsafe}"]
    return "trusted" if answer.covers(contents) else "changed", changes


def _show_changes(changes: list[str], where: TextIO) -> None:
    for change in changes:
        print(f"  * {one_line(change, 1000)}", file=where)


def _find_folder(named: Path | None, *, known: bool = False) -> Path:
    """Return the named folder, that of the settings that apply here, or this one."""
    if named is not None:
        if not named.is_dir() and not known:  # A deleted folder can still be forgotten.
            raise ConfigError(f"'{named}' is not a folder.")
        return Path(os.path.realpath(named))
    file = find_project_file(Path.cwd())
    return Path(os.path.realpath(file.parent if file is not None else Path.cwd()))
