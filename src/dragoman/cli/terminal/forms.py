"""Forms at a terminal: a tool's question by its JSON schema, and the arguments of a call, field by field."""

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
_SHORT = 60  # characters of a text that is edited in a line


class Interrupted(DragomanError):
    """Ctrl-C where nothing was typed."""


class InputClosed(DragomanError):
    """Ctrl-D: the person goes away."""


class Prompter(Protocol):
    """Asks for a line, or for a text that is changed; raises the two above."""

    async def line(self, prompt: str, *, default: str = "", words: Sequence[str] = (), keys: str = "") -> str:
        """`keys` hand the line over by themselves, where a terminal can tell: nothing else was typed, or a
        number."""
        ...

    async def edit(self, text: str, what: str) -> str: ...

    def forget_typing(self) -> None:
        """Drop the keys that were pressed before a question was on the screen: they must not answer it."""
        ...


class Declined(Exception):
    """The person does not want to answer; the text is their reason, if they gave one."""


def unless_declined(line: str) -> str:
    """What was typed. Declined where it is `/reject WHY`."""
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
    """What was typed, as the schema of a field wants it. ValueError says what to type."""
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
    """The values that are allowed, where the schema lists them: of the field, or of each item of it."""
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
        return None  # the schema is none: whoever asked will say what is wrong
    return None


async def edit_arguments(
    arguments: Arguments,
    schema: Mapping[str, JsonValue],
    keyboard: Prompter,
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
    name: str, field: Mapping[str, JsonValue], value: JsonValue, keyboard: Prompter
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


async def _edit_text(name: str, text: str, keyboard: Prompter) -> str:
    """In the person's editor, where they have named one; else here. ValueError where the editor fails."""
    if os.environ.get("VISUAL") or os.environ.get("EDITOR"):
        import click

        data = text.encode()  # as bytes: of a text, click ends the last line, and changes how lines end
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
