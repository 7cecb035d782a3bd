"""Show forms at a terminal: a tool's question by its JSON schema, and the arguments of a call by field."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from pydantic import JsonValue, ValidationError

from dragoman.background import in_thread
from dragoman.cli.terminal.text import count, format_json, one_line, parse_json
from dragoman.errors import ConfigError, DragomanError
from dragoman.messages.message import Arguments
from dragoman.tools.json_schema import JsonParameters
from dragoman.tools.schema import problems

_WORDS = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}
_SHORT = 60  # maximum characters of a text that is edited in one line


class Interrupted(DragomanError):
    """Raised by Ctrl-C when nothing was typed."""


class InputClosed(DragomanError):
    """Raised by Ctrl-D: the user leaves."""


class Prompter(Protocol):
    """Reads lines and edits texts. Its methods raise the two exceptions above."""

    async def line(self, prompt: str, *, default: str = "", words: Sequence[str] = (), keys: str = "") -> str:
        """Return a line. If the terminal supports it, each of `keys` submits immediately, unless more than a
        number was typed before."""
        ...

    async def edit(self, text: str, what: str) -> str: ...

    def forget_typing(self) -> None:
        """Drop keys that were pressed before a prompt was shown, because they must not answer it."""
        ...


class Declined(Exception):
    """Raised if the user declines to answer. The text is their reason, if any."""


def unless_declined(line: str) -> str:
    """Return the line. Raises Declined for `/reject WHY`."""
    word, _, reason = line.partition(" ")
    if word == "/reject":
        raise Declined(reason.strip())
    return line


async def fill_form(
    schema: Mapping[str, JsonValue], keyboard: Prompter, notify: Callable[[str], None]
) -> dict[str, JsonValue]:
    properties = schema.get("properties")
    fields = properties if isinstance(properties, dict) else {}
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    notify(
        "Fill in the form. Enter takes the value in brackets, or skips a field. "
        "Type /reject to send no answer."
    )
    while True:
        values: dict[str, JsonValue] = {}
        for name, field in fields.items():
            described = field if isinstance(field, dict) else {}
            value = await _ask_field(name, described, name in needed, keyboard, notify)
            if value is not None:
                values[name] = value
        if (wrong := _problem(schema, values)) is None:
            return values
        notify(wrong)


async def _ask_field(
    name: str, field: dict[str, JsonValue], needed: bool, keyboard: Prompter, notify: Callable[[str], None]
) -> JsonValue:
    options = _options(field)
    if field.get("description"):
        notify(one_line(str(field["description"])))
    default = field.get("default")
    prompt = f"{one_line(str(field.get('title') or name))}{_hint(field, options, needed)}: "
    while True:
        line = unless_declined(await keyboard.line(prompt, words=options))
        if not line:
            if default is not None or not needed:
                return default
            notify("This field is required.")
            continue
        try:
            value = parse_field(field, line)
        except ValueError as error:
            notify(str(error))
            continue
        if (wrong := _problem({"type": "object", "properties": {name: field}}, {name: value})) is None:
            return value
        notify(wrong)


def _hint(field: Mapping[str, Any], options: list[str], needed: bool) -> str:
    allowed = options or (["y", "n"] if _kind(field) == "boolean" else [])
    hint = f" ({' / '.join(map(one_line, allowed))})" if allowed else ""
    if (default := field.get("default")) is not None:
        return f"{hint} [{one_line(_format(default))}]"
    return hint if needed else f"{hint} (optional)"


def parse_field(field: Mapping[str, JsonValue], line: str) -> JsonValue:
    """Return the input as a value of the field's schema. Raises ValueError with a hint."""
    options = _options(field)
    match _kind(field):
        case "boolean":
            if line.lower() not in _WORDS:
                raise ValueError("Type y or n.")
            return _WORDS[line.lower()]
        case "integer" | "number" as kind:
            try:
                return int(line) if kind == "integer" else float(line)
            except ValueError:
                raise ValueError(f"Type {'a whole' if kind == 'integer' else 'a'} number.") from None
        case "array" if options:
            return [one.strip() for one in line.split(",") if one.strip()]
        case "array" | "object":
            try:
                value: JsonValue = parse_json(line)
            except ValueError as error:
                raise ValueError(f"Type JSON: {error}") from None
            return value
        case _:
            return line


def _kind(field: Mapping[str, Any]) -> str:
    kind = field.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), None)
    return str(kind or "")


def _options(field: Mapping[str, Any]) -> list[str]:
    """Return the values that the schema of the field, or of its items, allows."""
    inner = field.get("items") if _kind(field) == "array" else field
    if not isinstance(inner, Mapping):
        return []
    listed = inner.get("enum") or [
        one.get("const") for one in inner.get("oneOf") or inner.get("anyOf") or [] if isinstance(one, Mapping)
    ]
    return [one for one in listed if isinstance(one, str)]


def _format(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _problem(schema: Mapping[str, JsonValue], values: dict[str, JsonValue]) -> str | None:
    try:
        JsonParameters("form", schema).validate(values)
    except ValidationError as error:
        return problems(error)
    except ConfigError:
        return None  # The schema is invalid, and the tool reports what is wrong.
    return None


async def edit_arguments(
    arguments: Arguments,
    schema: Mapping[str, JsonValue],
    keyboard: Prompter,
    print_line: Callable[[str], None],
) -> Arguments:
    """Return the arguments as the user edits them: field by field, until they are done."""
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
    name: str, field: Mapping[str, JsonValue], value: JsonValue, keyboard: Prompter
) -> JsonValue:
    """Return the new value, or None if the field is emptied."""
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


async def _edit_text(name: str, text: str, keyboard: Prompter) -> str:
    """Edit a text in the user's editor, if one is configured, otherwise at the prompt. Raises ValueError if
    the editor fails."""
    if os.environ.get("VISUAL") or os.environ.get("EDITOR"):
        import click

        # With text instead of bytes, click would add a final newline and change line endings.
        data = text.encode()
        try:
            edited = await in_thread(lambda: click.edit(data, extension=".txt", require_save=False))
        except click.ClickException as error:
            raise ValueError(f"The value stays as it was: {error.message}") from error
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
