"""What the server says to a person at the page is said in Chinese on the Chinese page (U3)."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from dragoman.tools.builtin import BUILTIN
from dragoman.tools.builtin.read_output import read_output
from dragoman.tools.tool import Tool
from dragoman.turn.agent import Agent
from dragoman.turn.panel import agents_group
from dragoman.turn.subagent import Subagents

ROOT = Path(__file__).parents[2]
CODE = ROOT / "src/dragoman"
TABLE = ROOT / "web/src/i18n/zh/server.ts"
TOOLS = ROOT / "web/src/i18n/zh/tools.ts"

# From here a sentence gets to the page; the terminal and other clients' protocols have readers of their own.
REACHED = (
    "server/routes",
    "server/setup",
    "turn",
    "conversation",
    "workspace",
    "store/transfer.py",
    "tools/preview.py",
    "providers/media.py",
    "providers/served.py",
    "providers/local",
    "wire",
)
# What a model's server does wrong is told in the answer, with what may help.
ANSWERED = ("wire", "providers", "plugins", "turn")
# What is set up in the page, or stands in the way of a model that is chosen there.
SET_UP = ("server/setup", "config/edits.py", "stored_keys.py", "providers", "wire", "tools/mcp")

SAID = {
    REACHED: {"BadRequest", "Notice"},
    ANSWERED: {"ProviderError", "ContextOverflow", "OutputInvalid", "no_keys", "ErrorKind"},
    SET_UP: {"ConfigError", "_NotSetUp"},
}
SAYING = re.compile("|".join(rf"\b{name}\(" for names in SAID.values() for name in names))

# Only a program that uses the library hears these.
LIBRARY = re.compile(
    r"output_type|allow_once\(\)|Text and File parts|snapshot_folder|there is no state|Runtime\(|name=…|"
    r"^the script has|to be sent, but|is no rule|^tool x|has no answer of this type|"
    r"^x: x is no address such as|^x: say which model$"
)


def sentences() -> Iterator[str]:
    """As the code has them, with an x where something is filled in."""
    for places, names in SAID.items():
        for place in places:
            yield from said(place, names)


def said(place: str, names: set[str]) -> Iterator[str]:
    """What calls of these names are given to say, and as a hint; in a variable, what that is set to."""
    files = [CODE / place] if place.endswith(".py") else (CODE / place).rglob("*.py")
    for file in files:
        tree, calls = _calls(file)
        for call, name in calls:
            if name in names:
                for text in call.args[:1]:
                    yield from _written(text, tree)
                for keyword in call.keywords:
                    if keyword.arg == "hint":
                        yield from (f"x. {hint}" for hint in _written(keyword.value, tree))


@cache
def _calls(file: Path) -> tuple[ast.Module, list[tuple[ast.Call, str]]]:
    """Those that may say something. A file is in several of the lists above."""
    code = file.read_text("utf-8")
    tree = ast.parse(code if SAYING.search(code) else "")
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return tree, [(node, node.func.id) for node in calls if isinstance(node.func, ast.Name)]


def test_every_error_of_these_families_is_known_by_its_name() -> None:
    """A class that is added is added above, too."""
    family = re.compile(r"^\s*class (\w+)\([^)]*\b(?:ProviderError|ConfigError)\b", re.MULTILINE)
    found = {name for file in CODE.rglob("*.py") for name in family.findall(file.read_text("utf-8"))}
    assert found == {"ContextOverflow", "OutputInvalid", "_NotSetUp"}


def _written(value: ast.expr, tree: ast.Module) -> Iterator[str]:
    """Nothing where it is made elsewhere."""
    match value:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in parts)
            if re.search(r"[a-z]{2} [a-z]", text):
                yield text
        case ast.IfExp(body=one, orelse=other) | ast.BoolOp(values=[one, other]):
            yield from _written(one, tree)
            yield from _written(other, tree)
        case ast.Name(id=name):
            for given in _assigned(name, tree):
                yield from _written(given, tree)


def _assigned(name: str, tree: ast.Module) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=found)], value=value) if found == name:
                yield value
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                yield from (each for one, each in zip(names, values, strict=True) if ast.unparse(one) == name)


def patterns() -> list[re.Pattern[str]]:
    written = re.findall(r"^  \[/(.*)/(s?), ", TABLE.read_text("utf-8"), re.MULTILINE)
    return [re.compile(pattern, re.DOTALL if flags else 0) for pattern, flags in written]


def test_what_the_server_says_has_a_chinese_sentence() -> None:
    """Add it to `web/src/i18n/zh/server.ts` where it is missing."""
    said = {one for one in sentences() if " " in one and not LIBRARY.search(one)}
    assert len(said) > 50
    known = patterns()
    assert [one for one in sorted(said) if not any(pattern.search(one) for pattern in known)] == []


def test_what_our_tools_say_of_themselves_is_said_in_chinese() -> None:
    """U3: each tool and each of its arguments. Add it to `web/src/i18n/zh/tools.ts` where it is missing."""
    tasks = Subagents({name: Agent(name=name) for name in ("clerk", "editor")})
    ours = [tool for make in BUILTIN.values() for tool in make().tools]
    said = {text for tool in (*ours, read_output, *agents_group(tasks).tools) for text in texts_of(tool)}
    assert len(said) > 50
    written = re.findall(r'^  (?:("(?:[^"\\]|\\.)*")|(\w+)):', TOOLS.read_text("utf-8"), re.MULTILINE)
    known = {json.loads(quoted) if quoted else word for quoted, word in written}
    assert sorted(said - known) == []


def texts_of(tool: Tool) -> Iterator[str]:
    yield " ".join(tool.description.partition("\n- ")[0].split())
    yield from _described(tool.parameters.schema)


def _described(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(text := schema.get("description"), str):
            yield " ".join(text.split())
        for inner in schema.values():
            yield from _described(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from _described(inner)
