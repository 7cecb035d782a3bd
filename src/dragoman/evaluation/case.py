"""Define a case, which is a conversation up to a message with expectations. Read and write files of cases."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import JsonValue, TypeAdapter, ValidationError

from dragoman.config.edits import toml_key, toml_value
from dragoman.errors import ConfigError
from dragoman.evaluation.expected import Answered, Expected, MadeCall
from dragoman.messages.request import OutputSpec

_STRICT = {"extra": "forbid"}
FOLDER, RUNS = "evals", "runs"  # the folder of cases in a workspace, and the folder of runs in it
_KINDS = (".toml", ".jsonl")


@dataclass(slots=True, frozen=True)
class CaseFile:
    """An attachment, with its content as a `data:` URL."""

    media_type: str
    url: str
    name: str | None = None

    __pydantic_config__ = _STRICT


@dataclass(slots=True, frozen=True)
class CaseMessage:
    """A message before the answer, with the calls of that reply."""

    role: Literal["user", "assistant"]
    text: str = ""
    calls: tuple[MadeCall, ...] = ()
    files: tuple[CaseFile, ...] = ()

    __pydantic_config__ = _STRICT


@dataclass(slots=True, frozen=True)
class CaseTool:
    """A tool by its definition: for tools of servers and clients, which a run does not start."""

    name: str
    description: str = ""
    parameters: dict[str, JsonValue] = field(default_factory=dict)
    group: str = "recorded"
    permission: str | None = None

    __pydantic_config__ = _STRICT


@dataclass(slots=True, frozen=True)
class CaseOrigin:
    """The stored turn that a case was made from, and the rating of its answer."""

    turn: str = ""
    conversation: str = ""
    rating: str = ""
    note: str = ""

    __pydantic_config__ = _STRICT


@dataclass(slots=True, frozen=True)
class Case:
    """A conversation up to a user's message, and the expectations for the answer.

    `tools` are names of groups and tools (`files`, `files.read_file`) or definitions. `recorded` is the
    original answer, and its calls are the recording that tools answer from. With `only_calls`, the turn ends
    at its first calls. A run in the cage writes `files` to its folder. `data` is for custom checks.
    """

    id: str
    messages: tuple[CaseMessage, ...]
    expect: Expected = field(default_factory=Expected)
    system: str | None = None
    agent: str | None = None
    options: dict[str, JsonValue] = field(default_factory=dict)
    # settings of the conversation and its request
    settings: dict[str, JsonValue] = field(default_factory=dict)
    tools: tuple[str | CaseTool, ...] = ()
    recorded: Answered | None = None
    output: OutputSpec | None = None  # the required type of the answer
    given: tuple[CaseMessage, ...] = ()  # the answer's first replies; the model is asked for the next
    only_calls: bool = False
    files: dict[str, str] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    origin: CaseOrigin | None = None
    data: dict[str, JsonValue] = field(default_factory=dict)

    __pydantic_config__ = _STRICT

    def __post_init__(self) -> None:
        if not self.id or not re.fullmatch(r"[\w.:/@ -]+", self.id):
            raise ValueError("an ID can have letters, digits and `_ . : / @ -`")
        if not self.messages or self.messages[-1].role != "user":
            raise ValueError("the last message of a case must be from the user")


@cache
def _adapter() -> TypeAdapter[Case]:
    return TypeAdapter(Case)


def cases(*places: str | Path) -> list[Case]:
    """Return the cases of these files and folders: TOML with one case, or JSON lines with one case each.

    Raises ConfigError if a file is unreadable or two cases have the same ID.
    """
    found: dict[str, Case] = {}
    for file in _files_in(map(Path, places or (FOLDER,))):
        for where, values in _read(file):
            case = case_from(values, where)
            if case.id in found:
                raise ConfigError(f"{where}: Another case has the id '{case.id}'. Rename one of them.")
            found[case.id] = case
    return [*found.values()]


def save_cases(found: Iterable[Case], folder: str | Path) -> list[Path]:
    """Write each case to a separate file and return the new files.

    An existing file is not changed, because you can have edited it.
    """
    written = []
    for case in found:
        values = values_of(case)
        text = f"{json.dumps(values, ensure_ascii=False)}\n" if _has_null(values) else toml_of(case)
        kind = ".jsonl" if _has_null(values) else ".toml"  # TOML has no null.
        name = re.sub(r"[^\w.-]", "-", case.id)
        file = Path(folder) / f"{name}{kind}"
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            # JSON can contain lone surrogates.
            with file.open("x", encoding="utf-8", errors="replace") as out:
                out.write(text)
        except FileExistsError:
            continue
        written.append(file)
    return written


def values_of(case: Case) -> dict[str, Any]:
    """Return the case as JSON, without default values."""
    values: dict[str, Any] = _adapter().dump_python(case, mode="json", exclude_defaults=True)
    return values


def toml_of(case: Case) -> str:
    """Return the case as readable TOML: long text on several lines, and expectations first."""
    values = values_of(case)
    ordered = {name: values[name] for name in ("id", "expect") if name in values} | values
    return "\n".join([_HEAD, *_table(ordered, ())]) + "\n"


_HEAD = "# A case: what is asked, and in [expect] what a good answer is. Edit it as you like."


def _files_in(places: Iterable[Path]) -> Iterator[Path]:
    for place in places:
        if place.is_dir():
            yield from sorted(one for one in place.iterdir() if one.suffix in _KINDS and one.is_file())
        elif place.suffix in _KINDS and place.is_file():
            yield place
        else:
            raise ConfigError(
                f"No cases found at '{place}'. Name a folder, or a file that ends in .toml or .jsonl. "
                "`dragoman eval add` makes cases."
            )


def _read(file: Path) -> Iterator[tuple[str, object]]:
    where = str(file)
    try:
        text = file.read_text("utf-8")
        if file.suffix == ".toml":
            yield where, tomllib.loads(text)
            return
        for number, line in enumerate(text.splitlines(), 1):
            where = f"{file}:{number}"
            if line.strip():
                yield where, json.loads(line)
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"Cannot read the case file '{where}': {error}.") from error


def case_from(values: object, where: str) -> Case:
    """Return the case with these values. Raises ConfigError that names the first invalid value."""
    try:
        return _adapter().validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(one) for one in first["loc"])
        why = first.get("ctx", {}).get("error") or _FAULTS.get(first["type"], first["msg"])
        raise ConfigError(f"{where}: Invalid case: {place or 'the case'}: {why}.") from error


_FAULTS = {"tuple_type": "Input should be a list", "unexpected_keyword_argument": "Unknown key"}


# ── TOML ──────────────────────────────────────────────────────────────────────────────────────────


_INLINE = ("arguments", "data", "options", "parameters", "result", "schema", "settings")


def _table(values: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    """Yield the lines of a table: its values, then the tables in it. The values contain no null, which TOML
    lacks."""
    below = {name: one for name, one in values.items() if name not in _INLINE and _holds_tables(one)}
    for name, one in values.items():
        if name not in below:
            yield f"{toml_key(name)} = {_value(one)}"
    for name, one in below.items():
        inner = (*path, name)
        heading = ".".join(map(toml_key, inner))
        for table in one if isinstance(one, list) else [one]:
            yield f"\n[[{heading}]]" if isinstance(one, list) else f"\n[{heading}]"
            yield from _table(table, inner)


def _holds_tables(value: object) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)
    )


def _value(value: object) -> str:
    if isinstance(value, str) and "\n" in value:
        lines = (toml_value(line)[1:-1] for line in value.split("\n"))
        return '"""\n' + "\n".join(lines) + '"""'
    return toml_value(value)


def _has_null(value: object) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return value is None or any(map(_has_null, inner))
