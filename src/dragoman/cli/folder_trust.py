"""Load settings for a command, and ask the user whether to trust the content of a folder."""

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

MOST_CHANGES = 5  # maximum number of changes in a line about unused content
MOST_LINES = 30  # maximum lines of a summary before a prompt; `dragoman trust` shows all
_QUESTION = "Do you trust it?  [y] yes, use it  [n] no, continue without it  [q] quit: "


def settings_for(
    flags: ConfigFlags,
    values: Mapping[str, object] | None = None,
    *,
    asks: bool | None = None,
    start: Path | None = None,
) -> Settings:
    """Return the settings, overridden by these values and by the command line. Raises ConfigError if they are
    invalid.

    Paths of the command line are relative to the current folder, not to that of the settings file.
    """
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
    """Return the settings that apply here, or in the folder `start`, and their errors.

    With `trust`, the user trusts the folder this time. With `asks`, the command would use its content, so the
    user is asked if they are at a terminal. Content that is left out is named on standard error.
    """
    settings, errors = read(config, start=start, flags=flags, decide=_decide(trust=trust, asks=asks))
    for left_out in settings.sources.left_out:
        if asks or SETTINGS in left_out.contents.files or not left_out.contents.files:
            print(f"· {describe(left_out)}", file=sys.stderr)
    return settings, errors


def describe(left_out: LeftOut) -> str:
    """Return a line that says what is not used, why, and what would change that."""
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
    """Print the summary on standard error, or all of it without `most`. Its text cannot control the
    terminal."""
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
    """Ask the user. Both answers are stored, and apply until active content is added or changed."""
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
    """Return the user's answer. Raises KeyboardInterrupt if they quit or standard input is closed."""
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
    """Keep a folder trusted after the user edited its settings by a command. Return whether it is trusted.

    A folder stays trusted if it was trusted before, or had no active content.
    """
    held_nothing = not before.files and before.unsafe is None
    if after.unsafe is not None or not (held_nothing or decide_from_memory(os.environ)(before)):
        return False
    if not is_named_trusted(folder, os.environ):
        trust_answers().remember(after, trusted=True)
    return True
