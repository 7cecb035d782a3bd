"""Run `dragoman diff`, `revert`, `redo` and `blame`: show the file changes of turns, and undo them."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

import typer
from pydantic import JsonValue
from rich.console import Console

from dragoman.cli.flags.files import BlameFlags, DiffFlags, RedoFlags, RevertFlags
from dragoman.cli.folder_trust import settings_for
from dragoman.cli.lookup import LAST, find_conversation, find_turn, open_store
from dragoman.cli.terminal.cards import render_diff
from dragoman.cli.terminal.text import count, one_line, plain, print_json
from dragoman.config.settings import Settings
from dragoman.errors import BadRequest, NotFound, RevertConflict
from dragoman.runtime import Runtime
from dragoman.store.store import Store
from dragoman.turn.api.undo import Reverted, WorkspaceDiff
from dragoman.visible_text import visible
from dragoman.workspace.blame import BlamedLine


async def show_diff(flags: DiffFlags) -> None:
    diff = await _read_diff(flags.what, settings_for(flags))
    if flags.json:
        print_json(
            {"files": [asdict(one) for one in diff.files], "notes": [*diff.notes], "undone": [*diff.undone]},
            indent=2,
        )
        return
    for note in diff.notes:
        print(f"· {plain(note)}", file=sys.stderr)
    for path in diff.undone:
        print(f"· undone since: {visible(path)}", file=sys.stderr)
    if not diff.files:
        print("Nothing was done to the files.", file=sys.stderr)
        return
    if not sys.stdout.isatty():
        sys.stdout.buffer.write(diff.text.encode(errors="replace"))
        return
    os.environ.setdefault("LESS", "-RFX")
    console = Console()
    text = render_diff(diff.text)
    long = diff.text.count("\n") > console.height
    with console.pager(styles=True) if long else nullcontext():
        console.print(text)


async def _read_diff(what: str, settings: Settings) -> WorkspaceDiff:
    async with open_store(settings, workspace=True) as runtime:
        back, store = runtime.undo, runtime.store
        turn = await _find_turn(store, what)
        if turn is not None:
            return await back.diff_turn(turn)
        if what.startswith("msg_"):
            return await back.diff_message(what)
        if what.startswith("call_"):
            return await back.diff_call(what)
        try:
            return await back.diff_conversation((await find_conversation(store, what)).id)
        except NotFound as error:
            kind = "conversation" if what.startswith("conv_") else "turn, reply, call or conversation"
            raise NotFound(kind, what) from error


async def revert(flags: RevertFlags) -> None:
    what, files_only = flags.what, flags.files_only

    async def go(runtime: Runtime, force: bool) -> Reverted:
        back, store = runtime.undo, runtime.store
        root = _root(runtime)
        # in the form that `diff` prints
        paths = [_path_inside(root / file, root) for file in flags.only or ()]
        turn = await _find_turn(store, what)
        if turn is not None:
            return await back.revert_turn(turn, files_only=files_only, paths=paths, force=force)
        if what.startswith("call_"):
            return await back.revert_call(what, files_only=files_only, paths=paths, force=force)
        if not what.startswith("msg_"):
            raise NotFound("turn, message or call", what)
        return await back.revert_message(what, files_only=files_only, paths=paths, force=force)

    done = await _carry_out(flags, go)
    where = ", and the conversation is back before it" if done.moved else ""
    again = f"; `dragoman redo {done.conversation}` takes that back" if done.turn is not None else ""
    _report(done, f"{where}{again}")


async def redo(flags: RedoFlags) -> None:
    async def go(runtime: Runtime, force: bool) -> Reverted:
        found = await find_conversation(runtime.store, flags.conversation)
        return await runtime.undo.redo(found.id, force=force)

    done = await _carry_out(flags, go)
    where = ", and the conversation is where it was" if done.moved else ""
    again = f"; `dragoman revert {done.turn or LAST}` goes back once more" if done.moved else ""
    _report(done, f"{where}{again}")


async def _carry_out(
    flags: RevertFlags | RedoFlags, go: Callable[[Runtime, bool], Awaitable[Reverted]]
) -> Reverted:
    """Revert or redo. At a terminal, ask whether changes by others may be lost."""
    settings = settings_for(flags)

    async def run(force: bool) -> Reverted:
        async with open_store(settings, workspace=True) as runtime:
            return await go(runtime, force)

    try:
        return await run(flags.force)
    except RevertConflict as error:
        if not sys.stdin.isatty():
            raise BadRequest(f"{error.what}. Fix the files first, or pass --force to undo anyway.") from error
        for path, why in error.conflicts:
            print(f"  {visible(path)}: {why}", file=sys.stderr)
        typer.confirm("Undo anyway? You would lose these changes", abort=True, err=True)
        return await run(True)


def _report(done: Reverted, then: str) -> None:
    for path in done.paths:
        print(visible(path))
    for note in done.notes:
        print(f"· {plain(note)}", file=sys.stderr)
    print(f"{count(len(done.paths), 'file')} changed{then}.", file=sys.stderr)


async def show_blame(flags: BlameFlags) -> None:
    lines, asked = await _read_blame(flags.file, settings_for(flags))
    if flags.json:
        print_json([_report_line(line, asked) for line in lines], indent=2)
        return
    for number, line in enumerate(lines, 1):
        when = datetime.fromtimestamp(line.record.created).strftime("%Y-%m-%d %H:%M") if line.record else ""
        why = one_line(asked.get(_turn(line), ""), 30)
        print(f"{_turn(line):<26} {when:<16} {why:<30} {number:>5} {visible(line.text)}")


async def _read_blame(file: Path, settings: Settings) -> tuple[list[BlamedLine], dict[str, str]]:
    """Return the lines, and the user message of each turn."""
    async with open_store(settings, workspace=True) as runtime:
        lines = await runtime.undo.blame(_path_inside(file, _root(runtime)))
        asked: dict[str, str] = {}
        for turn in {_turn(line) for line in lines} - {""}:
            try:
                row = await runtime.store.turn(turn)
                asked[turn] = (await runtime.store.message(row.message)).text
            except NotFound:
                continue
        return lines, asked


def _report_line(line: BlamedLine, asked: dict[str, str]) -> JsonValue:
    return {"text": line.text, "turn": _turn(line) or None, "asked": asked.get(_turn(line))}


def _root(runtime: Runtime) -> Path:
    workspace = runtime.services.workspaces.main
    return Path(workspace.path) if workspace is not None else Path.cwd()


def _path_inside(file: Path, root: Path) -> str:
    """Return the file's path within the workspace, by its name or after following links. Raises BadRequest if
    it is outside."""
    for whole in (file.absolute(), file.resolve()):
        if whole.is_relative_to(root):
            return whole.relative_to(root).as_posix()
    raise BadRequest(f"{file} is not in the workspace {root}")


def _turn(line: BlamedLine) -> str:
    return line.record.turn if line.record is not None else ""


async def _find_turn(store: Store, what: str) -> str | None:
    """Return the turn of this ID, or the latest one. None if it is the ID of another object."""
    return (await find_turn(store, what)).id if what == LAST or what.startswith("turn_") else None
