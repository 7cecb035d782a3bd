"""Run the commands for conversations: `list`, `show`, `label`, `search`, `export`, `import` and `rm`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import typer
from pydantic import JsonValue
from rich.text import Text

from dragoman.cli.flags.conversations import (
    DeleteFlags,
    ExportFlags,
    ExportFormat,
    ImportFlags,
    LabelFlags,
    ListFlags,
    SearchFlags,
    ShowFlags,
)
from dragoman.cli.folder_trust import settings_for
from dragoman.cli.interrupted import interrupted_conversations
from dragoman.cli.lookup import each_conversation, find_conversation, open_store
from dragoman.cli.terminal.tables import open_console, print_table
from dragoman.cli.terminal.text import count, one_line, parse_json, plain, print_json, write_file
from dragoman.config.build import store_of
from dragoman.config.settings import Settings
from dragoman.config.tables import parse_duration
from dragoman.conversation.tree import Conversation
from dragoman.errors import BadRequest, ConfigError
from dragoman.store.store import Busy, Store


async def list_conversations(flags: ListFlags) -> None:
    settings = settings_for(flags)
    listed = await _read_recent(flags, settings) if _has_store(settings) else []
    if flags.json:
        print_json([_report(*one) for one in listed], indent=2)
        return
    rows = [
        (
            one.id,
            datetime.fromtimestamp(one.updated).strftime("%Y-%m-%d %H:%M"),
            _describe_title(one),
            _describe_state(busy, broken_off),
        )
        for one, busy, broken_off in listed
    ]
    print_table(("conversation", "last used", "title", "state"), rows, folds=(2,), spare=(1,))
    if not listed and (flags.archived or flags.tag):
        print("There are none of these.", file=sys.stderr)
    elif not listed:
        print("There are no conversations yet: `dragoman chat` begins one.", file=sys.stderr)


def _describe_title(conversation: Conversation) -> str:
    marks = ["pinned"] * conversation.pinned + [f"#{one_line(tag)}" for tag in conversation.tags]
    return " ".join([one_line(conversation.title or "untitled", 80), *marks])


async def label(flags: LabelFlags) -> None:
    untag = flags.untag or []
    async with open_store(settings_for(flags)) as runtime:
        info = await find_conversation(runtime.store, flags.conversation)
        if missing := [word for word in untag if word not in info.tags]:
            raise BadRequest(f"{info.id} has no tag {missing[0]!r}: it has {list(info.tags) or 'none'}")
        tags = [*(one for one in info.tags if one not in untag), *(flags.tag or [])]
        handle = await runtime.conversation(info.id)
        await handle.label(pinned=flags.pin, archived=flags.archive, tags=tags)
        info = await handle.info()
        print(f"{info.id}  {_describe_title(info)}{' (in the archive)' if info.archived else ''}")


def _has_store(settings: Settings) -> bool:
    """Return whether the store exists. Raises ConfigError if the user named one that does not, because that
    is a mistake."""
    address = store_of(settings)
    if not address.is_there and settings.origins.get("store", "").startswith("--"):
        raise ConfigError(f"Database {address} not found. Name another one with --store.")
    return address.is_there


def _describe_state(busy: Busy, interrupted: bool) -> str:
    if busy.waiting:
        return "waits for you"
    return "interrupted" if interrupted else "is running" if busy.live else ""


async def _read_recent(flags: ListFlags, settings: Settings) -> list[tuple[Conversation, Busy, bool]]:
    """Return recent conversations, each with its activity and whether a turn was interrupted."""
    found: list[Conversation] = []
    async with open_store(settings) as runtime:
        async for conversation in each_conversation(runtime.store):
            if len(found) == flags.limit:
                break
            tagged = flags.tag is None or flags.tag in conversation.tags
            if conversation.archived == flags.archived and tagged:
                found.append(conversation)
        busy = await runtime.store.busy([one.id for one in found])
        interrupted = await interrupted_conversations(runtime.store)
    return [(one, busy.get(one.id, Busy()), one.id in interrupted) for one in found]


def _report(conversation: Conversation, busy: Busy, interrupted: bool) -> JsonValue:
    return {
        "id": conversation.id,
        "title": conversation.title,
        "user": conversation.owner,
        "created": conversation.created,
        "updated": conversation.updated,
        "running": busy.live and not interrupted,
        "interrupted": interrupted,
        "questions": busy.waiting,
        "tokens": conversation.usage.total,
        "cost": conversation.usage.cost,
        "pinned": conversation.pinned,
        "archived": conversation.archived,
        "tags": list(conversation.tags),
    }


async def show(flags: ShowFlags) -> None:
    # Importing Markdown takes 25 ms, which `list` does not need.
    from dragoman.cli.terminal.screen import print_messages

    async with open_store(settings_for(flags)) as runtime:
        info = await find_conversation(runtime.store, flags.conversation)
        if flags.json:
            print_json(await runtime.export(info.id), indent=2)
            return
        handle = await runtime.conversation(info.id)
        console = open_console(soft_wrap=True)
        console.print(Text(f"{plain(info.title or 'untitled')} · {info.id}", "bold"))
        print_messages(console, await handle.messages(), reasoning=flags.reasoning)
        for question in await handle.questions():
            console.print(Text(f"asks {question.id}: {plain(question.text)}", "yellow"))


async def search(flags: SearchFlags) -> int:
    """Print search results. Returns 1 if nothing was found."""
    words = " ".join(flags.words)
    async with open_store(settings_for(flags)) as runtime:
        found = await runtime.search(words, limit=flags.limit)
    if flags.json:
        print_json(
            [
                {"conversation": f.conversation, "message": f.message, "title": f.title, "snippet": f.snippet}
                for f in found
            ],
            indent=2,
        )
    else:
        rows = [
            (one.conversation, one_line(one.title or "untitled", 40), one_line(one.snippet)) for one in found
        ]
        print_table(("conversation", "title", "where it stands"), rows)
        if not found:
            print(f"No message contains {words!r}.", file=sys.stderr)
    return 0 if found else 1


async def export(flags: ExportFlags) -> None:
    """Print an export. `raw` has every stored row, which is all that can be exported of a damaged
    conversation."""
    async with open_store(settings_for(flags)) as runtime:
        id = (await find_conversation(runtime.store, flags.conversation)).id
        found: JsonValue
        match flags.format:
            case ExportFormat.MARKDOWN:
                found = await runtime.export_markdown(id)
            case ExportFormat.RAW:
                found = await runtime.store.export_raw(id)
            case ExportFormat.JSON:
                found = await runtime.export(id)
    if flags.output is not None:
        text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False, indent=1) + "\n"
        write_file(flags.output, text)
    elif isinstance(found, str):  # A file gets the text unchanged.
        sys.stdout.write(plain(found) if sys.stdout.isatty() else found)
    else:
        print_json(found, indent=1)


async def import_file(flags: ImportFlags) -> None:
    """Import a conversation and print its new ID."""
    data = _read_export(flags.file)
    async with open_store(settings_for(flags), create=True) as runtime:
        print((await runtime.import_conversation(data)).id)


def _read_export(file: str) -> dict[str, JsonValue]:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
        data = parse_json(text.removeprefix("\ufeff"))  # Some editors write this mark at the beginning.
    except OSError as error:
        raise BadRequest(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise BadRequest(f"{file} is not valid JSON: {error}") from error
    if not isinstance(data, dict):
        raise BadRequest(f"{file} is not an export of a conversation. It must be a JSON object.")
    return data


async def delete(flags: DeleteFlags) -> None:
    if bool(flags.conversations) == (flags.older_than is not None):
        raise typer.BadParameter("Name conversations, or pass --older-than.")
    if flags.older_than is not None:
        await _delete_old(flags, flags.older_than)
    else:
        await _delete_named(flags, flags.conversations or [])


async def _delete_named(flags: DeleteFlags, names: Sequence[str]) -> None:
    """Delete all named conversations, or none if one is missing. At a terminal, the user must confirm
    first."""
    settings, dry_run = settings_for(flags), flags.dry_run
    found = await _find_idle(names, settings)
    if not dry_run and not flags.yes and sys.stdin.isatty():
        for one in found:
            print(f"  {_line(one)}, used last on {_day(one.updated)}", file=sys.stderr)
        what = "it" if len(found) == 1 else f"these {len(found)} conversations"
        typer.confirm(f"Delete {what}? This cannot be undone", abort=True)
    if not dry_run:
        await _delete([one.id for one in found], settings)
    for one in found:
        print(f"{'would delete' if dry_run else 'deleted'} {_line(one)}")


async def _find_idle(names: Sequence[str], settings: Settings) -> list[Conversation]:
    async with open_store(settings) as runtime:
        found = {one.id: one for one in [await find_conversation(runtime.store, name) for name in names]}
        for id in found:
            await _check_idle(runtime.store, id)
        return list(found.values())


async def _delete(ids: Sequence[str], settings: Settings) -> None:
    async with open_store(settings) as runtime:
        for id in ids:  # A turn can have started while the user decided.
            await _check_idle(runtime.store, id)
        for id in ids:
            within = await runtime.store.within(id)
            await runtime.store.delete_conversation(id)
            await runtime.undo.forget(within)


async def _check_idle(store: Store, id: str) -> None:
    if await _runs(store, id):
        raise BadRequest(f"Conversation {id} is running. Wait, or stop it with `dragoman cancel {id}`.")


async def _runs(store: Store, conversation: str) -> bool:
    """Return whether a process works on the conversation. A turn that waits for a user does not count."""
    live = [turn.id for turn in await store.live_turns(conversation) if turn.state != "waiting"]
    return any([not await store.is_abandoned(turn) for turn in live])


async def _delete_old(flags: DeleteFlags, older_than: str) -> None:
    """Delete conversations without activity in this time, unless something waits in them. Those used since
    then are kept."""
    settings = settings_for(flags)
    try:
        before = time.time() - parse_duration(older_than)
    except ValueError as error:
        raise ConfigError(f"Invalid --older-than: {error}") from None
    async with open_store(settings) as runtime:
        found = [conversation async for conversation in runtime.store.untouched(before)]
    if not found:
        print(f"nothing is older than {older_than}", file=sys.stderr)
        return
    if flags.dry_run:
        for conversation in found:
            print(f"would delete {_line(conversation)}, untouched since {_day(conversation.updated)}")
        return
    if not flags.yes and sys.stdin.isatty():
        many = f"{count(len(found), 'conversation')}, untouched since {_day(found[-1].updated)} or longer"
        typer.confirm(f"Delete {many}? This cannot be undone", abort=True)
    async with open_store(settings) as runtime:
        gone = await runtime.store.delete_untouched(before)
        await runtime.undo.forget(gone)
    for conversation in found:
        if conversation.id in gone:
            print(f"deleted {_line(conversation)}")
    if not gone:
        print(
            "Deleted nothing: another process is deleting them, or they were used meanwhile.", file=sys.stderr
        )


def _line(conversation: Conversation) -> str:
    return f"{conversation.id} ({one_line(conversation.title or 'untitled', 60)})"


def _day(at: float) -> str:
    return datetime.fromtimestamp(at).strftime("%Y-%m-%d")
