"""Repair the calls a model wrote, or tell the model what was wrong with them.

Only repairs that lose nothing and are unambiguous: spelling variants of an existing name, JSON text instead
of an object or the reverse, arguments one level too deep. Never the nearest name, never a guessed value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from copy import deepcopy
from typing import Any

from pydantic import BaseModel, JsonValue, ValidationError

from dragoman.errors import BadRequest, ToolFailed
from dragoman.messages.boundary import read_strict_json
from dragoman.messages.message import Arguments
from dragoman.messages.request import name_key
from dragoman.sentences import sentence
from dragoman.tools.schema import Parameters, problems
from dragoman.tools.tool import Tool
from dragoman.wire.calls import parse_arguments

# a token of gpt-oss, a number of Kimi, parentheses
_NO_NAME = re.compile(r"<\|.*|:\d{1,3}$|\(\)$", re.DOTALL)


def repair_name(name: str, names: Iterable[str]) -> str | None:
    """Return the only tool whose name differs just in case, separators, a namespace or characters of
    no name."""
    known = list(names)
    if name in known:
        return name
    plain = _NO_NAME.sub("", name).strip("`\"' ")
    # `files.add` means `files_add` rather than `add`
    for spelling in (name, plain, re.split(r"[.:/]", plain)[-1]):
        meant = [candidate for candidate in known if name_key(candidate) == name_key(spelling)]
        if len(meant) == 1:
            return meant[0]
    return None


_WRAPPERS = frozenset({"arguments", "parameters", "args", "params", "input", "kwargs"})
_PASSES = 100  # The inside of a repaired value is checked in the next pass.


def repair_arguments(arguments: Arguments, parameters: Parameters) -> tuple[Arguments, BaseModel]:
    """Return the repaired arguments, as JSON and as the function takes them. ToolFailed describes misfits."""
    try:
        return _fitted(arguments, parameters)
    except ToolFailed:
        inner = _wrapped(arguments, parameters)
        if inner is None:
            raise
        with suppress(ToolFailed):  # The faults of the original arguments help the model more.
            return _fitted(inner, parameters)
        raise


def _wrapped(arguments: Arguments, parameters: Parameters) -> Arguments | None:
    """Return arguments that are one level too deep, in an object or its text, under a usual wrapper word.

    The tool itself must have no parameter of that name.
    """
    key, inner = next(iter(arguments.items()), ("", None))
    if len(arguments) > 1 or key not in _WRAPPERS or key in parameters.names:
        return None
    return inner if isinstance(inner, dict) else parse_arguments(inner) if isinstance(inner, str) else None


def _fitted(arguments: Arguments, parameters: Parameters) -> tuple[Arguments, BaseModel]:
    repaired = arguments
    for left in reversed(range(_PASSES)):
        try:
            return repaired, parameters.validate(repaired)
        except ValidationError as error:
            if repaired is arguments:
                repaired = deepcopy(arguments)
            faults = error.errors()
            # all faults, in one pass
            changed = [_repair(repaired, fault["loc"], fault["type"]) for fault in faults]
            if not any(changed) or not left:
                raise ToolFailed(_explained(error, parameters)) from error
    raise AssertionError("the last pass returns or raises")


def unknown_tool(name: str, names: Iterable[str]) -> str:
    known = ", ".join(names)
    return f"Unknown tool {name!r}. {f'The tools are: {known}.' if known else 'There are no tools now.'}"


def incomplete_arguments(raw: str) -> str:
    return (
        "The call did not run: its arguments are not one complete JSON object. "
        f"They were: {raw[:500]}{'…' if len(raw) > 500 else ''}"
    )


_STRUCTURES: dict[str, type] = {
    "dict_type": dict,
    "model_type": dict,
    "model_attributes_type": dict,
    "dataclass_type": dict,
    "list_type": list,
    "tuple_type": list,
    "set_type": list,
}


def _repair(arguments: Arguments, where: Sequence[int | str], fault: str) -> bool:
    """Repair one value in place, if there is exactly one way to do so."""
    holder: Any = arguments
    try:
        for step in where[:-1]:
            holder = holder[step]
        repaired = _repaired(holder[where[-1]], fault)
    except (LookupError, TypeError):
        return False  # a step outside JSON, such as into a union: the value has several readings
    if repaired is not None:
        holder[where[-1]] = repaired
    return repaired is not None


def _repaired(value: JsonValue, fault: str) -> JsonValue:
    match value:
        case dict() | list() if fault == "string_type":
            return json.dumps(value, ensure_ascii=False)
        case float() if fault == "int_type" and value.is_integer() and abs(value) < 2**53:
            return int(value)  # to JSON, 5.0 is a whole number
        case str() if fault in _STRUCTURES:
            try:
                decoded = read_strict_json(value)
            except ValueError:
                return None
            return decoded if isinstance(decoded, _STRUCTURES[fault]) else None
        case _:
            return None


def _explained(error: ValidationError, parameters: Parameters) -> str:
    known = ""
    if any(fault["type"] == "extra_forbidden" for fault in error.errors()):
        known = f"\nThe parameters are: {', '.join(parameters.names) or 'none'}."
    return f"The call did not run: its arguments do not fit.\n{problems(error)}{known}"


def fitting_arguments(arguments: Arguments, tool: Tool) -> Arguments:
    """Return the arguments as the tool takes them. Raises BadRequest if a user's arguments do not fit."""
    try:
        return repair_arguments(arguments, tool.parameters)[0]
    except ToolFailed as error:
        what = str(error).partition("\n")[2] or str(error)
        raise BadRequest(sentence("arguments.unfit", what=what)) from error
