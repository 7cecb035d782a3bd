"""What a model wrote in, a call that can run out, or words that tell the model what was wrong.

Only mends that lose nothing and leave no choice: spelling variants of a name that exists, an object where
its JSON text was due and the other way round. Never the nearest name, never a guessed value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from pydantic import BaseModel, JsonValue, ValidationError
from pydantic_core import from_json

from dragoman.errors import ToolFailed
from dragoman.messages.parts import Arguments, canonical
from dragoman.tools.schema import Parameters, problems


def repair_name(name: str, names: Iterable[str]) -> str | None:
    """The one tool that is meant, if case, separators and a namespace are all that differ."""
    known = list(names)
    if name in known:
        return name
    for spelling in (name, re.split(r"[.:/]", name)[-1]):  # `files.add` is `files_add` before it is `add`
        meant = [candidate for candidate in known if _spelled(candidate) == _spelled(spelling)]
        if len(meant) == 1:
            return meant[0]
    return None


def repair_arguments(arguments: Arguments, parameters: Parameters) -> tuple[Arguments, BaseModel]:
    """The arguments that fit, as JSON and as the function wants them. ToolFailed says what does not fit."""
    mended = arguments
    while True:
        try:
            return mended, parameters.validate(mended)
        except ValidationError as error:
            if mended is arguments:
                mended = json.loads(canonical(arguments))
            faults = error.errors(include_url=False)
            if not any(_mend(mended, fault["loc"], fault["type"]) for fault in faults):
                raise ToolFailed(_explained(error, parameters)) from error


def unknown_tool(name: str, names: Iterable[str]) -> str:
    known = ", ".join(names)
    return f"There is no tool {name!r}. " + (
        f"The tools are: {known}." if known else "There are no tools now."
    )


def incomplete_arguments(raw: str) -> str:
    return (
        "The call did not run: its arguments are not one complete JSON object. "
        f"They were: {raw[:500]}{'…' if len(raw) > 500 else ''}"
    )


_WANTS_TEXT = {"string_type"}
_WANTS_INTEGER = {"int_type"}
_WANTS_STRUCTURE: dict[str, type] = {
    "dict_type": dict,
    "model_type": dict,
    "model_attributes_type": dict,
    "dataclass_type": dict,
    "list_type": list,
    "tuple_type": list,
    "set_type": list,
}


def _mend(arguments: Arguments, where: tuple[int | str, ...], fault: str) -> bool:
    """Mend one value in place, if there is only one way to."""
    if not where:
        return False
    *path, last = where
    holder: JsonValue = arguments
    for step in path:
        if isinstance(holder, dict) and step in holder:
            holder = holder[str(step)]
        elif isinstance(holder, list) and isinstance(step, int) and step < len(holder):
            holder = holder[step]
        else:
            return False  # a step inside a union: there is more than one reading
    if isinstance(holder, dict) and last in holder:
        mended = _mended(holder[str(last)], fault)
        if mended is not None:
            holder[str(last)] = mended
            return True
    elif isinstance(holder, list) and isinstance(last, int) and last < len(holder):
        mended = _mended(holder[last], fault)
        if mended is not None:
            holder[last] = mended
            return True
    return False


def _mended(value: JsonValue, fault: str) -> JsonValue:
    if fault in _WANTS_TEXT and isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    if fault in _WANTS_INTEGER and isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)  # to JSON, 5.0 is a whole number
    wanted = _WANTS_STRUCTURE.get(fault)
    if wanted is not None and isinstance(value, str):
        try:
            decoded: JsonValue = from_json(value, allow_inf_nan=False)
        except ValueError:
            return None
        return decoded if isinstance(decoded, wanted) else None
    return None


def _spelled(name: str) -> str:
    return re.sub(r"[-_\s.:/]", "", name).lower()


def _explained(error: ValidationError, parameters: Parameters) -> str:
    known = ""
    if any(fault["type"] == "extra_forbidden" for fault in error.errors(include_url=False)):
        known = f"\nThe parameters are: {', '.join(parameters.names) or 'none'}."
    return f"The call did not run: its arguments do not fit.\n{problems(error)}{known}"
