"""A model's replies in, as text; the calls, the text and the errors a dialect finds in them out, as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pydantic import JsonValue

from dragoman.cli.printing import print_json
from dragoman.dialects.dialect import dialect, parse_report
from dragoman.errors import ConfigError
from dragoman.messages.request import ToolSpec


def parse(name: str, tools: Path | None, *, jsonl: bool) -> bool:
    """Print one report, or one for each line. False if a line was no JSON string."""
    dialect(name)  # before anything is read: a wrong name is said at once
    specs = _tools(tools) if tools is not None else None
    if not jsonl:
        print_json(parse_report(name, sys.stdin.buffer.read().decode(errors="replace"), specs), indent=2)
        return True
    well = True
    for number, line in enumerate(sys.stdin.buffer, 1):
        if not line.strip():
            continue
        reply = _string(line)
        if reply is None:
            well = False
            trouble = f"line {number} is no JSON string"
            print_json({"calls": [], "text": "", "errors": [trouble]})
        else:
            print_json(parse_report(name, reply, specs))
    return well


def _string(line: bytes) -> str | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def _tools(file: Path) -> tuple[ToolSpec, ...]:
    """Tools as providers are sent them: a list of objects, bare or wrapped as functions."""
    try:
        said = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"{file} is no JSON: {error}") from error
    listed = said.get("tools") if isinstance(said, dict) else said
    if not isinstance(listed, list):
        raise ConfigError(f"{file} holds no list of tools")
    return tuple(_tool(file, place, one) for place, one in enumerate(listed, 1))


def _tool(file: Path, place: int, said: JsonValue) -> ToolSpec:
    tool = said.get("function", said) if isinstance(said, dict) else None
    name = tool.get("name") if isinstance(tool, dict) else None
    if not isinstance(tool, dict) or not isinstance(name, str) or not name:
        raise ConfigError(f"{file}: tool {place} has no name")
    parameters = tool.get("parameters") or tool.get("input_schema") or {}
    if not isinstance(parameters, dict):
        raise ConfigError(f"{file}: the parameters of {name} are no JSON schema")
    return ToolSpec(name, str(tool.get("description") or ""), parameters)
