"""Import questions of the Berkeley Function-Calling Leaderboard, and judge calls as its checker does."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from dragoman.errors import ConfigError
from dragoman.evaluation.case import Case, CaseMessage, CaseTool
from dragoman.evaluation.expected import Answered, Expected

CHECK = "bfcl"
_TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": "string"}


def read_lines(file: Path) -> list[Any]:
    """Return the values of a JSON lines file. Raises ConfigError if a line is invalid."""
    try:
        return [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise ConfigError(f"Cannot read '{file}': {error}. Name a file of JSON lines.") from error


def bfcl_cases(questions: Iterable[Any], answers: Iterable[Any] = ()) -> Iterator[Case]:
    """Yield a case for each question with a single turn. A question without an answer expects no call."""
    truths = {one["id"]: one["ground_truth"] for one in answers}
    for question in questions:
        try:
            turns = question["question"]
            messages = tuple(
                CaseMessage(_role(one), one["content"]) for one in turns[0] if one["role"] != "system"
            )
            system = "\n\n".join(one["content"] for one in turns[0] if one["role"] == "system")
            tools = tuple(
                CaseTool(_name(one["name"]), one["description"], json_schema(one["parameters"]))
                for one in question["function"]
            )
            truth = truths.get(question["id"])
            wanted: list[JsonValue] = [
                {_name(name): possible for name, possible in one.items()} for one in truth or ()
            ]
            yield Case(
                question["id"],
                messages,
                Expected(checks=(CHECK,)),
                system=system or None,
                tools=tools,
                only_calls=True,
                labels=(CHECK,),
                data={"calls": wanted},
            )
        except (LookupError, TypeError, ValueError) as error:
            raise ConfigError(f"A question is not in the format of the leaderboard: {error!r}.") from error


def is_right(case: Case, answered: Answered) -> str | None:
    """Return why an answer is wrong, or None. Each expected call must occur once, and no other, with possible
    arguments."""
    wanted: Any = case.data["calls"]
    left = list(answered.calls)
    for one in wanted:
        ((tool, possible),) = one.items()
        found = next((call for call in left if call.tool == tool and _fits(call.arguments, possible)), None)
        if found is None:
            made = ", ".join(call.identity for call in answered.calls) or "no calls"
            return f"expected {tool} with {json.dumps(possible, ensure_ascii=False)}, made {made}"
        left.remove(found)
    return f"made {', '.join(call.identity for call in left)} as well" if left else None


def _fits(arguments: Mapping[str, Any], possible: Mapping[str, Sequence[Any]]) -> bool:
    given = all(
        name in possible and any(_same(value, one) for one in possible[name])
        for name, value in arguments.items()
    )
    return given and all(name in arguments or "" in choices for name, choices in possible.items())


def _same(value: Any, possible: Any) -> bool:
    if isinstance(value, bool) or isinstance(possible, bool):
        return value is possible
    if isinstance(value, str) or isinstance(possible, str):
        return isinstance(value, str) and _plain(value) == _plain(possible)
    if isinstance(value, int | float) and isinstance(possible, int | float):
        return abs(value - possible) < 1e-9
    if isinstance(value, list) and isinstance(possible, list):
        return len(value) == len(possible) and all(map(_same, value, possible))
    if isinstance(value, dict) and isinstance(possible, dict):
        return _fits(value, possible)
    return bool(value == possible)


def _plain(text: Any) -> str:
    return re.sub(r"[ ,./\-_*^]", "", str(text)).lower().replace("'", '"')


def json_schema(schema: Any) -> Any:
    """Return the schema with the leaderboard's type names translated to those of JSON Schema."""
    if isinstance(schema, list):
        return [json_schema(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: json_schema(value) for name, value in schema.items()}
    if isinstance(found.get("type"), str):
        found["type"] = _TYPES.get(found["type"], found["type"])
    return found


def _name(name: str) -> str:
    """Return the name in a form that every provider accepts."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64]


def _role(message: Mapping[str, str]) -> Any:
    return message["role"] if message["role"] == "assistant" else "user"
