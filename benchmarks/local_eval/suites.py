"""The prompts for the bundled model, as cases: with its tools and a check of its calls."""

from __future__ import annotations

import json
import re
import tomllib
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from dragoman.errors import ToolFailed
from dragoman.evaluation import Case, Expected
from dragoman.evaluation.bfcl import bfcl_cases
from dragoman.evaluation.case import CaseMessage, CaseTool
from dragoman.evaluation.evaluate import Check
from dragoman.evaluation.expected import Answered, MadeCall
from dragoman.messages.request import ToolSpec
from dragoman.tools.builtin import basics_group, files_group, web_group
from dragoman.tools.builtin.basics import evaluate

HERE = Path(__file__).parent
EIGHT = (
    *("calculator", "current_time", "todo", "list_directory"),
    *("read_file", "write_file", "grep", "fetch_url"),
)
TEN = (*EIGHT[:6], "edit_file", "grep", "glob", "fetch_url")  # used if a prompt does not name its tools
NO_CALL = "irrelevance"
BFCL_SLICES = {
    "simple_python": (80, 5),
    "multiple": (60, 3),
    NO_CALL: (80, 3),
}  # so many, every so-many-th

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

LONGEST = 120  # tokens of a reply: an untrained model would not stop


def case(
    id: str,
    kind: str,
    text: str,
    offered: Iterable[ToolSpec],
    *,
    check: str,
    tools: Sequence[str],
    **data: Any,
) -> Case:
    """A prompt whose first calls are judged. `tools` are the expected names."""
    defined = tuple(CaseTool(one.name, one.description, dict(one.parameters)) for one in offered)
    return Case(
        id,
        (CaseMessage("user", text),),
        Expected(checks=(check,)),
        tools=defined,
        options={"max_tokens": LONGEST},
        only_calls=True,
        labels=(kind,),
        data={"tools": list(tools), **data},
    )


def built_in() -> dict[str, ToolSpec]:
    groups = (basics_group(), files_group(), web_group())
    return {tool.name: tool.spec() for group in groups for tool in group.tools}


# ── the 52 prompts ────────────────────────────────────────────────────────────────────────────────


def first_prompts(file: str = "prompts.toml") -> Iterator[Case]:
    specs = built_in()
    offered = tuple(specs[name] for name in EIGHT)
    for number, prompt in enumerate(tomllib.loads((HERE / file).read_text("utf-8"))["prompt"]):
        tool, id = prompt["tool"], f"{Path(file).stem}-{number}"
        wanted = (tool,) if tool else ()
        yield case(id, tool or "no tool", prompt["say"], offered, check="first", tools=wanted, prompt=prompt)


def is_first_right(of: Case, answered: Answered) -> bool:
    if [call.tool for call in answered.calls] != of.data["tools"]:
        return False
    prompt: Any = of.data["prompt"]
    return not answered.calls or _fits(prompt, answered.calls[0].arguments)


def _fits(prompt: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    """Return whether the arguments match the request, in any notation."""
    if "value" in prompt:
        return _comes_to(arguments.get("expression"), prompt["value"])
    if "items" in prompt:
        items = [str(item.get("text")).lower() for item in arguments.get("items", ())]
        return items == [item.lower() for item in prompt["items"]]
    return all(_like(arguments.get(name), pattern) for name, pattern in prompt.get("like", {}).items())


# ── unseen prompts and tools ──────────────────────────────────────────────────────────────────────


def unseen_prompts(file: str = "unseen.toml") -> Iterator[Case]:
    """Prompts by an author who has seen neither material nor format, for the built-in tools and twenty
    others."""
    ours, others = built_in(), {tool.name: tool for tool in _own_tools()}
    every = {**ours, **others}
    for number, prompt in enumerate(tomllib.loads((HERE / file).read_text("utf-8"))["prompt"]):
        calls = prompt.get("call", [])
        wanted = [call["tool"] for call in calls]
        offered = tuple(every[name] for name in prompt.get("offered", TEN))
        kind = prompt.get("kind") or (
            "no tool" if not calls else "our tools" if set(wanted) <= ours.keys() else "others"
        )
        yield case(
            f"{file.removesuffix('.toml')}-{number}",
            kind,
            prompt["text"],
            offered,
            check="unseen",
            tools=wanted,
            calls=calls,
        )


def dev_prompts(today: date | None = None) -> Iterator[Case]:
    """Prompts that authors of material can read: their tools do not occur in it."""
    found = tomllib.loads((HERE / "dev_others.toml").read_text("utf-8"))
    every = {**built_in(), **{tool.name: tool for tool in _read_tools(found["tool"])}}
    for number, prompt in enumerate(found["prompt"]):
        calls = [_dated(call, today or date.today()) for call in prompt.get("call", [])]
        offered = tuple(every[name] for name in found["offered"][prompt["offered"]])
        wanted = [call["tool"] for call in calls]
        kind = f"{prompt['offered']}, {'a call' if calls else 'none'}"
        yield case(f"dev-{number}", kind, prompt["text"], offered, check="unseen", tools=wanted, calls=calls)


def _dated(call: dict[str, Any], today: date) -> dict[str, Any]:
    """Replace relative days: `date` is a number of days ahead, or the next day of that name."""

    def dated(rule: dict[str, Any]) -> dict[str, Any]:
        when = rule.get("date")
        if when is None:
            return rule
        ahead = int(when) if when[1:].isdigit() else (_DAYS.index(when) - today.weekday() - 1) % 7 + 1
        return {**rule, "is": (today + timedelta(days=ahead)).isoformat()}

    return {**call, "arguments": {name: dated(rule) for name, rule in call.get("arguments", {}).items()}}


def _own_tools() -> Iterator[ToolSpec]:
    return _read_tools(tomllib.loads((HERE / "tools.toml").read_text("utf-8"))["tool"])


def _read_tools(tools: Sequence[Mapping[str, Any]]) -> Iterator[ToolSpec]:
    for tool in tools:
        parameters = tool["parameters"]
        schema = json.loads(parameters) if isinstance(parameters, str) else parameters
        yield ToolSpec(tool["name"], tool["description"], schema)


def is_unseen_right(of: Case, answered: Answered) -> bool:
    schemas = {tool.name: tool.parameters for tool in of.tools if isinstance(tool, CaseTool)}
    left, calls = list(answered.calls), of.data["calls"]
    assert isinstance(calls, list)
    for call in calls:
        found = next((made for made in left if _is_call(made, call, schemas)), None)
        if found is None:
            return False
        left.remove(found)
    return not left


def _is_call(made: MadeCall, wanted: Any, schemas: Mapping[str, Any]) -> bool:
    name, arguments = made.tool, made.arguments
    if name != wanted["tool"]:
        return False
    rules: Mapping[str, Mapping[str, Any]] = wanted.get("arguments", {})
    schema: Any = schemas[name]
    members = schema.get("properties") or {}
    for given, value in arguments.items():
        default = members.get(given, {}).get("default")
        if given not in rules and value is not None and value != default:
            return False  # an argument that was not requested
    return all(
        _keeps(rule, arguments.get(given), members.get(given, {}), schema) for given, rule in rules.items()
    )


def _keeps(rule: Mapping[str, Any], value: Any, member: Any, schema: Any) -> bool:
    if value is None and (rule.get("optional") or rule.get("is", "") is None):
        return True
    if "value" in rule:
        return _comes_to(value, rule["value"])
    if "items" in rule:
        return [str(item.get("text")).lower() for item in value or ()] == rule["items"]
    if "is" in rule:
        return _equal(_with_defaults(value, member, schema), _with_defaults(rule["is"], member, schema))
    if "like" in rule:
        return _like(value, rule["like"])
    return value is not None


def _with_defaults(value: Any, member: Any, schema: Any) -> Any:
    """Return the arguments with the schema's defaults for missing ones."""
    if "$ref" in member:
        member = schema["$defs"][member["$ref"].rpartition("/")[2]]
    if isinstance(value, list):
        return [_with_defaults(one, member.get("items", {}), schema) for one in value]
    if not isinstance(value, dict):
        return value
    inner = member.get("properties", {})
    defaults = {name: one["default"] for name, one in inner.items() if "default" in one}
    given = {name: _with_defaults(one, inner.get(name, {}), schema) for name, one in value.items()}
    return {**defaults, **given}


def _comes_to(value: Any, wanted: float) -> bool:
    try:
        found = evaluate(value) if isinstance(value, str) else float(value)
    except (ToolFailed, TypeError, ValueError):
        return False
    return abs(found - wanted) <= 1e-6 * max(1.0, abs(wanted))


def _equal(value: Any, wanted: Any) -> bool:
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    if isinstance(value, int | float) and isinstance(wanted, int | float):
        return abs(value - wanted) < 1e-9 * max(1.0, abs(wanted))
    if isinstance(value, list) and isinstance(wanted, list):
        return len(value) == len(wanted) and all(map(_equal, value, wanted))
    if isinstance(value, dict) and isinstance(wanted, dict):
        return value.keys() == wanted.keys() and all(_equal(value[name], wanted[name]) for name in wanted)
    return bool(value == wanted)


def _like(value: Any, pattern: str) -> bool:
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return re.fullmatch(pattern, text, re.IGNORECASE | re.DOTALL) is not None


# ── the Berkeley leaderboard ──────────────────────────────────────────────────────────────────────


def bfcl_prompts(wheel: Path, category: str) -> Iterator[Case]:
    """A slice of a category from the wheel of `bfcl-eval`: every n-th question."""
    ending, (count, step) = f"_{category}.json", BFCL_SLICES[category]
    with zipfile.ZipFile(wheel) as archive:
        questions = _lines(archive, ending, answers=False)
        truths = [] if category == NO_CALL else _lines(archive, ending, answers=True)
    for one in bfcl_cases(questions[::step][:count], truths):
        calls: Any = one.data["calls"]
        tools = [tool for call in calls for tool in call]
        options = {"max_tokens": LONGEST}
        yield replace(one, labels=(category,), options=options, data={**one.data, "tools": tools})


def _lines(archive: zipfile.ZipFile, ending: str, *, answers: bool) -> list[Any]:
    names = archive.namelist()
    found = [name for name in names if name.endswith(ending) and ("possible_answer" in name) == answers]
    return [json.loads(line) for line in archive.read(min(found, key=len)).decode().splitlines() if line]


# ── answers ───────────────────────────────────────────────────────────────────────────────────────


def useful_prompts() -> Iterator[Case]:
    """Prompts with real tools in a separate folder: checks whether the answer is true."""
    for number, prompt in enumerate(tomllib.loads((HERE / "useful.toml").read_text("utf-8"))["prompt"]):
        yield Case(
            f"useful-{number}",
            (CaseMessage("user", prompt["text"]),),
            Expected(checks=("useful",)),
            tools=("basics", "files", "web"),
            files=prompt.get("files", {}),
            labels=("answers",),
            data={"like": prompt["answer"]["like"], "tools": []},
        )


def is_useful(of: Case, answered: Answered) -> bool:
    return re.search(str(of.data["like"]), answered.text, re.IGNORECASE | re.DOTALL) is not None


CHECKS: dict[str, Check] = {"first": is_first_right, "unseen": is_unseen_right, "useful": is_useful}
