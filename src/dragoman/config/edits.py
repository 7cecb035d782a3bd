"""Edits one table of a TOML file, such as `[mcp.files]`. Every other byte stays, including comments."""

from __future__ import annotations

import json
import os
import re
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dragoman.errors import ConfigError
from dragoman.sentences import sentence


def read_text(file: Path) -> str:
    """Return the text of the file, empty if it does not exist."""
    try:
        return file.read_bytes().decode() if file.exists() else ""
    except OSError as error:
        raise ConfigError(sentence("file.not_read", file=file, error=error.strerror)) from error
    except ValueError as error:
        raise ConfigError(sentence("file.no_toml", file=file, error=error)) from error


def parse_text(text: str, file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(sentence("file.no_toml", file=file, error=error)) from error


def with_table(text: str, section: str, name: str, table: Mapping[str, Any], file: Path) -> str:
    """Append `[section.name]` to the text. Raise ConfigError if this table exists already."""
    if name in parse_text(text, file).get(section, {}):
        raise ConfigError(sentence("file.has_table", file=file, section=section, name=name))
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    lines = [
        f"[{section}.{toml_key(name)}]",
        *(f"{key} = {toml_value(value)}" for key, value in table.items()),
    ]
    after = f"{text}{gap}" + "\n".join(lines) + "\n"
    _check_edit(text, after, file, section, {name: dict(table)})
    return after


def without_table(text: str, section: str, name: str, file: Path) -> str:
    """Remove the lines from the table's heading to the next one outside it."""
    inside = re.compile(rf'\s*\[\s*{section}\s*\.\s*(["\']?){re.escape(name)}\1\s*[.\]]')
    lines: list[str] = []
    skipping = False
    for line in text.splitlines(keepends=True):
        if re.match(r"\s*\[", line) and not line.strip().endswith(","):
            skipping = inside.match(line) is not None
            if skipping and lines and not lines[-1].strip():
                lines.pop()  # the blank line before it
        if not skipping:
            lines.append(line)
    after = "".join(lines)
    _check_edit(text, after, file, section, {name: None})
    return after


def with_key(text: str, section: str, name: str, pair: tuple[str, Any], file: Path) -> str:
    """Add a key to `[section.name]`, directly below its heading."""
    key, value = pair
    heading = re.compile(rf'\s*\[\s*{section}\s*\.\s*(["\']?){re.escape(name)}\1\s*\]')
    lines = text.splitlines(keepends=True)
    place = next((place for place, line in enumerate(lines, 1) if heading.match(line)), len(lines))
    after = "".join([*lines[:place], f"{key} = {toml_value(value)}\n", *lines[place:]])
    table = {**parse_text(text, file).get(section, {}).get(name, {}), key: value}
    _check_edit(text, after, file, section, {name: table})
    return after


def write_text(file: Path, text: str) -> None:
    """Write the file completely or not at all, at the target of a link: many users link their settings."""
    real = Path(os.path.realpath(file))
    try:
        real.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        mode = stat.S_IMODE(real.stat().st_mode) if real.exists() else 0o600
        fresh = real.with_name(f"{real.name}.{os.getpid()}.new")
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as out:
            out.write(text.encode())
        fresh.chmod(mode)
        fresh.replace(real)
    except OSError as error:
        raise ConfigError(sentence("file.not_written", file=file, error=error.strerror)) from error


def toml_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_value(name)


def toml_value(value: Any) -> str:
    """Return the value as TOML. JSON strings are TOML strings, except for one character that TOML escapes."""
    if isinstance(value, dict):
        inside = ", ".join(f"{toml_value(key)} = {toml_value(one)}" for key, one in value.items())
        return f"{{ {inside} }}"
    if isinstance(value, list):
        return f"[{', '.join(toml_value(one) for one in value)}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _check_edit(
    before: str, after: str, file: Path, section: str, changes: Mapping[str, dict[str, Any] | None]
) -> None:
    """Check the result of a textual edit by parsing it and comparing its meaning."""
    wanted = parse_text(before, file)
    tables = {**wanted.get(section, {}), **changes}
    wanted[section] = {name: table for name, table in tables.items() if table is not None}
    try:
        found = tomllib.loads(after)
    except tomllib.TOMLDecodeError:
        found = {}
    found.setdefault(section, {})
    if found != wanted:
        raise ConfigError(sentence("file.handmade", file=file))
