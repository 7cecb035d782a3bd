"""`dragoman parse`: a model's replies as a dialect reads them: calls, the remaining text, errors."""

from __future__ import annotations

import sys
from pathlib import Path

from pydantic import JsonValue

from dragoman.cli.terminal.text import parse_json, print_json
from dragoman.dialects.dialect import dialect, parse_report
from dragoman.errors import ConfigError
from dragoman.messages.request import ToolSpec


def parse(name: str, tools: Path | None, *, jsonl: bool) -> bool:
    """Print one report, or one for each line. False if a line was no JSON string."""
    dialect(name)  # before anything is read: a wrong name is an error at once
    specs = _read_tools(tools) if tools is not None else None
    if not jsonl:
        print_json(parse_report(name, sys.stdin.buffer.read().decode(errors="replace"), specs), indent=2)
        return True
    all_strings = True
    for number, line in enumerate(sys.stdin.buffer, 1):
        if not line.strip():
            continue
        reply = _parse_string(line)
        if reply is None:
            all_strings = False
            error = f"line {number} is no JSON string"
            print_json({"calls": [], "text": "", "errors": [error]})
        else:
            print_json(parse_report(name, reply, specs))
    return all_strings


def _parse_string(line: bytes) -> str | None:
    try:
        value = parse_json(line)
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def _read_tools(file: Path) -> tuple[ToolSpec, ...]:
    """Tools as providers are sent them: a list of objects, bare or wrapped as functions."""
    try:
        content = parse_json(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"{file} is no JSON: {error}") from error
    listed = content.get("tools") if isinstance(content, dict) else content
    if not isinstance(listed, list):
        raise ConfigError(f"{file} holds no list of tools")
    return tuple(_parse_tool(file, place, one) for place, one in enumerate(listed, 1))


def _parse_tool(file: Path, place: int, entry: JsonValue) -> ToolSpec:
    tool = entry.get("function", entry) if isinstance(entry, dict) else None
    name = tool.get("name") if isinstance(tool, dict) else None
    if not isinstance(tool, dict) or not isinstance(name, str) or not name:
        raise ConfigError(f"{file}: tool {place} has no name")
    parameters = tool.get("parameters") or tool.get("input_schema") or {}
    if not isinstance(parameters, dict):
        raise ConfigError(f"{file}: the parameters of {name} are no JSON schema")
    return ToolSpec(name, str(tool.get("description") or ""), parameters)
