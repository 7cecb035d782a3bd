"""Loads settings for a command, and asks the person whether to trust what comes with a folder."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from dragoman.cli.flags.command import ConfigFlags, TrustFlags
from dragoman.cli.terminal.text import one_line
from dragoman.config.settings import Settings, read
from dragoman.config.sources import Decide, LeftOut, decide_from_memory, is_named_trusted, trust_answers
from dragoman.config.trust.answers import TrustAnswer
from dragoman.config.trust.contents import SETTINGS, FolderContents
from dragoman.errors import ConfigError
from dragoman.store.address import absolute_place

MOST_CHANGES = 5  # in a line that says what is not used
MOST_LINES = 30  # of a summary, before a question; `dragoman trust` shows all
_QUESTION = "Do you trust it?  [y] yes, use it  [n] no, continue without it  [q] quit: "


def settings_for(
    flags: ConfigFlags,
    values: Mapping[str, object] | None = None,
    *,
    asks: bool | None = None,
    start: Path | None = None,
) -> Settings:
    """As `read_settings`, with these values and those of the command line over them. A path of the command
    line starts where the person is, not where the file of the settings is. ConfigError says what is wrong."""
    workspace: Path | None = getattr(flags, "workspace", None)
    named = {
        "store": absolute_place(getattr(flags, "store", None)),
        "workspace": str(workspace.resolve()) if workspace else None,
        **(values or {}),
    }
    asks = isinstance(flags, TrustFlags) if asks is None else asks
    trust = getattr(flags, "trust", False)
    settings, errors = read_settings(flags.config, named, trust=trust, asks=asks, start=start)
    if errors:
        raise ConfigError(errors[0])
    return settings


def read_settings(
    config: Path | None,
    flags: Mapping[str, object] | None = None,
    *,
    trust: bool = False,
    asks: bool = False,
    start: Path | None = None,
) -> tuple[Settings, list[str]]:
    """The settings that hold here, or in the folder `start`, and what is wrong with them.

    `trust`: the person says that the folder is trusted this time. `asks`: the command would act on what it
    finds, so they are asked, if they are at the terminal. What is left out is named on standard error.
    """
    settings, errors = read(config, start=start, flags=flags, decide=_decide(trust=trust, asks=asks))
    for left_out in settings.sources.left_out:
        if asks or SETTINGS in left_out.contents.files or not left_out.contents.files:
            print(f"· {describe(left_out)}", file=sys.stderr)
    return settings, errors


def describe(left_out: LeftOut) -> str:
    """In one line: what is not used, why, and what would change that."""
    contents = left_out.contents
    kinds = dict.fromkeys(name.partition("/")[0] for name in contents.files)
    names = ", ".join(f"{kind}/" if kind not in contents.files else kind for kind in kinds)
    folder = one_line(str(contents.folder), 500)
    reason, known = left_out.reason, trust_answers().find(contents.folder)
    if contents.unsafe is None and known is not None and known.trusted:
        reason = f"it has changed since you trusted it ({'; '.join(known.changes(contents)[:MOST_CHANGES])})"
    text = f"not used: {one_line(names, 200) or 'what is'} in {folder}: {one_line(reason, 500)}"
    command = f"dragoman trust {shlex.quote(folder)}"
    return text if contents.unsafe else f"{text} (to look at it and use it: {command})"


def show(contents: FolderContents, most: int | None = None) -> None:
    """The summary, on standard error; without `most`, whole. What is in it cannot control the terminal."""
    from dragoman.config.trust.summary import summarise

    lines = [one_line(line, 300 if most is not None else len(line)) for line in summarise(contents)]
    for line in lines[:most]:
        print(f"  - {line}", file=sys.stderr)
    if most is not None and len(lines) > most:
        print(f"  - and {len(lines) - most} more: dragoman trust shows them all", file=sys.stderr)


def _decide(*, trust: bool, asks: bool) -> Decide:
    remembered = decide_from_memory(os.environ)

    def decide(contents: FolderContents) -> bool:
        if trust or remembered(contents):
            return True
        return asks and is_at_terminal() and _ask_once(contents)

    return decide


def is_at_terminal() -> bool:
    streams = (sys.stdin, sys.stderr)
    return all(stream is not None and stream.isatty() for stream in streams)


def _ask_once(contents: FolderContents) -> bool:
    """Both answers are remembered, and hold until something that would act is new or changed."""
    known = trust_answers().find(contents.folder)
    if known is not None and not known.trusted and known.covers(contents):
        return False
    _introduce(contents, known)
    answer = ask_person()
    if not contents.is_current():
        raise ConfigError(f"{contents.folder} changed while you reviewed it. Start again.")
    trust_answers().remember(contents, trusted=answer)
    return answer


def _introduce(contents: FolderContents, known: TrustAnswer | None) -> None:
    folder = one_line(str(contents.folder), 500)
    if known is None:
        print(f"{folder} has settings and code that would act:", file=sys.stderr)
    else:
        earlier = "trusted" if known.trusted else "turned down"
        print(f"{folder} has changed since you {earlier} it:", file=sys.stderr)
        changes = known.changes(contents)
        for change in changes[:MOST_LINES]:
            print(f"  * {one_line(change, 300)}", file=sys.stderr)
        if len(changes) > MOST_LINES:
            print(f"  * and {len(changes) - MOST_LINES} more", file=sys.stderr)
        print("All that it would do:", file=sys.stderr)
    show(contents, MOST_LINES)


def ask_person() -> bool:
    """Who wants to quit, or is gone, ends the program."""
    while True:
        print(_QUESTION, end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line:
            raise KeyboardInterrupt
        match line.strip().lower():
            case "y" | "yes":
                return True
            case "n" | "no":
                return False
            case "q" | "quit":
                raise KeyboardInterrupt


def trust_edit(folder: Path, before: FolderContents, after: FolderContents) -> bool:
    """A person edited a folder's settings by a command of ours: it stays trusted, if it was or held nothing.

    Returns whether it is trusted now.
    """
    held_nothing = not before.files and before.unsafe is None
    if after.unsafe is not None or not (held_nothing or decide_from_memory(os.environ)(before)):
        return False
    if not is_named_trusted(folder, os.environ):
        trust_answers().remember(after, trusted=True)
    return True
