"""Editing the arguments of a call field by field: a line for short values, an editor for long texts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping

from pydantic import JsonValue

from dragoman.background import in_thread
from dragoman.cli.terminal.form import parse_field
from dragoman.cli.terminal.keyboard import Keyboard
from dragoman.cli.terminal.text import count, format_json, one_line
from dragoman.messages.message import Arguments

_SHORT = 60  # characters of a text that is edited in a line


async def edit_arguments(
    arguments: Arguments,
    schema: Mapping[str, JsonValue],
    keyboard: Keyboard,
    print_line: Callable[[str], None],
) -> Arguments:
    """As the person wants them: they choose a field, change it, and say when they are done."""
    properties = schema.get("properties")
    fields: dict[str, Mapping[str, JsonValue]] = {
        name: field if isinstance(field, dict) else {}
        for name, field in (properties if isinstance(properties, dict) else {}).items()
    }
    fields |= {name: {} for name in arguments if name not in fields}
    listed = schema.get("required")
    required = listed if isinstance(listed, list) else []
    edited, names = dict(arguments), list(fields)
    while names:
        for number, name in enumerate(names, 1):
            print_line(f"  {number}  {one_line(name)}: {_summarize(edited, name)}")
        chosen = await keyboard.line("which field (Enter: run it like this, Ctrl-C: back) ", words=names)
        if not chosen:
            break
        picked = _pick(chosen, names)
        if picked is None:
            print_line(f"type a number from 1 to {len(names)}, or a name")
            continue
        try:
            value = await _edit_field(picked, fields[picked], edited.get(picked), keyboard)
        except ValueError as error:
            print_line(f"{picked}: {error}")
            continue
        if value is None and picked not in required:
            edited.pop(picked, None)
        else:
            edited[picked] = value if value is not None else ""
    return edited


def _pick(typed: str, names: list[str]) -> str | None:
    if typed in names:
        return typed
    return names[int(typed) - 1] if typed.isdecimal() and 1 <= int(typed) <= len(names) else None


async def _edit_field(
    name: str, field: Mapping[str, JsonValue], value: JsonValue, keyboard: Keyboard
) -> JsonValue:
    """None where nothing stands there any more."""
    if isinstance(value, str) and ("\n" in value or len(value) > _SHORT):
        return await _edit_text(name, value, keyboard)
    shown = (
        value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
    )
    line = await keyboard.line(f"{one_line(name)}: ", default=shown)
    if not line:
        return None
    if isinstance(value, str) and not field.get("type"):
        return line
    return parse_field(field, line)


async def _edit_text(name: str, text: str, keyboard: Keyboard) -> str:
    """In the person's editor, where they have named one; else here. ValueError where the editor fails."""
    if os.environ.get("VISUAL") or os.environ.get("EDITOR"):
        import click

        data = text.encode()  # as bytes: of a text, click ends the last line, and changes how lines end
        try:
            edited = await in_thread(lambda: click.edit(data, extension=".txt", require_save=False))
        except click.ClickException as error:
            raise ValueError(f"it stays as it was: {error.message}") from error
        return edited.decode() if edited is not None else text
    return await keyboard.edit(text, name)


def _summarize(arguments: Arguments, name: str) -> str:
    if name not in arguments:
        return "(not given)"
    value = arguments[name]
    if isinstance(value, str) and ("\n" in value or len(value) > _SHORT):
        lines = count(len(value.rstrip("\n").split("\n")), "line")
        return f"{one_line(value, 40)} ({lines}, {count(len(value), 'character')})"
    return one_line(value if isinstance(value, str) and value else format_json(value), 100)
