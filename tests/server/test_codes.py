"""Check that every server text shown in the web UI has a code, so that the UI can translate it (U3)."""

from __future__ import annotations

import ast
import json
import re
import string
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dragoman.english import ENGLISH
from dragoman.messages.events import EVENT, Notice
from dragoman.redaction import redact_text
from dragoman.sentences import Sentence, sentence
from dragoman.tools.builtin import BUILTIN
from dragoman.tools.builtin.basics import read_output
from dragoman.tools.tool import Tool
from dragoman.turn.agent import Agent
from dragoman.turn.api.subagents import Subagents, agents_group
from dragoman.wire.scripted import calls, says
from tests.runtimes import add
from tests.server.site import served

ROOT = Path(__file__).parents[2]
CODE = ROOT / "src/dragoman"
CHINESE = ROOT / "web/src/i18n/zh/sentences.json"
TOOLS = ROOT / "web/src/i18n/zh/tools.ts"

# Readers of these texts do not use the web UI: the terminal, clients of other protocols, programs,
# collectors.
ELSEWHERE = (
    *("cli", "server/protocols", "server/mcp", "server/routes/monitoring.py", "telemetry"),
    *("sync", "testing", "evaluation", "messages/ids.py", "providers/compatible.py", "wire/scripted.py"),
    *("store/sql/database_copy.py", "store/sql/people.py"),
)
# The web UI shows configuration faults only for settings that it edits and for those that keep a model from
# answering. The program reports the rest when it starts.
SET_UP = ("server/setup", "config/edits.py", "stored_keys.py", "providers", "wire", "tools/mcp")

# The web UI shows the arguments of these calls, given by position or by name.
SAYS: dict[str, tuple[int | str, ...]] = {
    "BadRequest": (0,),
    "NotFound": (2,),
    "ConfigError": (0,),
    "_NotSetUp": (0,),
    "NoModel": (0,),
    "ProviderError": (0, "hint"),
    "ContextOverflow": (0, "hint"),
    "OutputInvalid": (0,),
    "HTTPException": (1,),
    "ErrorKind": ("hint",),
    "no_keys": (0, "hint"),
    "Notice": (0,),
    "notice": (0,),  # notice of a plugin
    "skip": (0,),  # the limit that a plugin names
    "AnsweredCall": ("limit",),
    "Reason": (1,),
    "TurnQuarantined": (1,),
}
FAMILY = re.compile(
    r"^class (\w+)\([^)]*\b(?:BadRequest|NotFound|ConfigError|ProviderError|HTTPException)\b", re.M
)


@cache
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text("utf-8"))


def _files() -> Iterator[Path]:
    for file in sorted(CODE.rglob("*.py")):
        if not file.is_relative_to(CODE / "server/page"):
            yield file


def _is_in(file: Path, places: tuple[str, ...]) -> bool:
    return any(file.is_relative_to(CODE / place) for place in places)


def _calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
                yield name, node


def used() -> Iterator[tuple[str, frozenset[str], str]]:
    """Yield each code with the names of its values and its location."""
    for file in _files():
        if file == CODE / "sentences.py":
            continue
        for name, call in _calls(_tree(file)):
            if name != "sentence":
                continue
            where = f"{file.relative_to(CODE)}:{call.lineno}"
            values = frozenset(str(keyword.arg) for keyword in call.keywords)
            match call.args:
                case [ast.Constant(value=str(code))]:
                    yield code, values, where
                case [ast.IfExp(body=ast.Constant(value=str(one)), orelse=ast.Constant(value=str(other)))]:
                    yield one, values, where
                    yield other, values, where
                case _:
                    raise AssertionError(f"{where}: a code is written out where it is used")


def names_in(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}


def test_every_sentence_is_said_with_the_values_that_its_english_names() -> None:
    for code, values, where in used():
        assert code in ENGLISH, f"{where}: {code} has no English"
        assert names_in(ENGLISH[code]) == values, f"{where}: {code} has other values than its English"


def test_every_english_sentence_is_said_somewhere() -> None:
    catalog = (CODE / "providers/catalog.toml").read_text("utf-8")
    said = (
        {code for code, _, _ in used()} | {code for code in ENGLISH if f'"{code}"' in catalog} | {"together"}
    )
    assert sorted(ENGLISH.keys() - said - {"together"}) == []


def test_every_language_has_every_code_and_no_other_value() -> None:
    """U3. Add a sentence that is missing to `web/src/i18n/zh/sentences.json`."""
    chinese: dict[str, str] = json.loads(CHINESE.read_text("utf-8"))
    assert sorted(ENGLISH.keys() - chinese.keys()) == []
    assert sorted(chinese.keys() - ENGLISH.keys()) == []
    for code, told in chinese.items():
        assert names_in(told) <= names_in(ENGLISH[code]), code


def test_what_people_read_in_the_page_has_a_code() -> None:
    """CONTRIBUTING.md draws the same border as the tables above."""
    plain = []
    for file in _files():
        if _is_in(file, ELSEWHERE):
            continue
        tree = _tree(file)
        for name, call in _calls(tree):
            if name not in SAYS or (name == "ConfigError" and not _is_in(file, SET_UP)):
                continue
            for place in SAYS[name]:
                for text in _given(call, place):
                    plain += [f"{file.relative_to(CODE)}:{call.lineno} {one}" for one in _texts(text, tree)]
    assert plain == []


def test_every_error_of_these_families_is_known_by_its_name() -> None:
    """A new error is also added to the tables above. Errors of `errors.py` list their own codes."""
    texts = [file.read_text("utf-8") for file in _files() if file.name != "errors.py"]
    assert {name for text in texts for name in FAMILY.findall(text)} == {"_NotSetUp", "NoModel"}


def _given(call: ast.Call, place: int | str) -> Iterator[ast.expr]:
    if isinstance(place, int):
        yield from call.args[place : place + 1]
    else:
        yield from (keyword.value for keyword in call.keywords if keyword.arg == place)


def _texts(value: ast.expr, tree: ast.Module, seen: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield literal texts without a code: written here, assigned to a name of this file, or returned by a
    function of this file."""
    match value:
        case ast.Constant(value=str(text)) if text:
            yield text
        case ast.JoinedStr() | ast.BinOp():
            yield ast.unparse(value)
        case ast.IfExp(body=one, orelse=other):
            yield from _texts(one, tree, seen)
            yield from _texts(other, tree, seen)
        case ast.BoolOp(values=values):
            for one in values:
                yield from _texts(one, tree, seen)
        case ast.Call(func=ast.Attribute(attr="format" | "join")):
            yield ast.unparse(value)
        case ast.Call(func=ast.Name(id=name)) | ast.Name(id=name) if name not in seen:
            for made in _made(name, tree):
                yield from _texts(made, tree, seen | {name})


def _made(name: str, tree: ast.Module) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=found)], value=value) if found == name:
                yield value
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                yield from (each for one, each in zip(names, values, strict=True) if ast.unparse(one) == name)
            case ast.FunctionDef(name=found) if found == name:
                yield from (one.value for one in ast.walk(node) if isinstance(one, ast.Return) and one.value)


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


# ── on their way ──────────────────────────────────────────────────────────────────────────────────


def test_what_was_stored_without_a_code_is_its_text() -> None:
    assert EVENT.load('{"text": "10 rounds of tool calls", "type": "notice"}') == Notice(
        "10 rounds of tool calls"
    )


def test_a_sentence_comes_back_as_it_was_stored_and_another_text_has_not_its_code() -> None:
    why = sentence("limit.reached", limit=sentence("limit.rounds", count=10))
    loaded = EVENT.load(EVENT.dump(Notice(why)))
    assert isinstance(loaded, Notice)
    assert isinstance(loaded.text, Sentence)
    assert (loaded.text, loaded.text.code, loaded.text.values) == (why, why.code, why.values)
    assert replace(loaded, text="something else").said is None


@pytest.mark.parametrize("known", [("Zq9secret",), ()])
def test_no_value_shows_what_the_text_hides(known: tuple[str, ...]) -> None:
    """U2: also where only the words around it tell that it is secret."""
    plain = sentence("mcp.said", message="it wants Zq9secret" if known else "token=Zq9secret")
    inside = sentence("tools.missing", source="a", why=plain)
    hidden = redact_text(inside, known)
    assert "Zq9secret" not in EVENT.dump(Notice(hidden))
    assert isinstance(hidden, Sentence)
    apart = redact_text(sentence("mcp.wrong", at='"token"', why='"Zq9secret"'))
    assert (isinstance(apart, Sentence), "Zq9secret" in apart) == (False, False)


async def test_errors_notices_and_limits_have_their_codes_over_http(tmp_path: Path) -> None:
    """The text is unchanged, and another process reads the code from the store (U3)."""
    script = [calls("add", a=1, b=1), calls("add", a=2, b=2), says("Enough.")]
    async with served(tmp_path, script, tools=[add]) as site:
        refused = await site.ask("GET", "/api/conversations/conv_none")
        assert refused.body["detail"] == "Unknown conversation 'conv_none'."
        assert (refused.body["code"], refused.body["values"]["id"]) == ("not_found", "conv_none")
        id = await site.conversation()
        await site.ask("PATCH", f"/api/conversations/{id}", {"settings": {"max_rounds": 1}})
        turn = await site.say("go", id)
        events = [one.data for one in await site.until(f"/api/turns/{turn}/events", "turn.end")]
        (notice,) = (event for event in events if event.get("kind") == "limit")
        assert notice["text"] == "Limit reached: 1 round of tool calls. The model gives its answer now."
        assert notice["said"]["text"]["code"] == "limit.reached"
        assert notice["said"]["text"]["values"]["limit"]["code"] == "limit.round"
        assert events[-1]["said"]["limit"]["values"] == {"count": 1}
    async with served(tmp_path, [], tools=[add]) as site:
        answer = (await site.get(f"/api/conversations/{id}/tree"))["messages"][-1]
        assert answer["metadata"]["said"]["limit"]["code"] == "limit.round"
        trace = (await site.get(f"/api/turns/{turn}/trace"))["trace"]
        ran, skipped = (call for step in trace["steps"] for call in step["calls"])
        assert skipped["said"]["limit"]["code"] == "limit.round"
        assert (ran["because"]["text"], ran["because"]["origin"]) == ("allow *", "given to the runtime")


async def test_a_question_has_the_codes_of_all_it_says_when_another_process_reads_it(tmp_path: Path) -> None:
    """P9"""
    script = [calls("write_file", path="../x", text="a"), says("No.")]
    async with served(tmp_path, script, tools=["files"], workspace=tmp_path, allow=()) as site:
        await site.say("go")
        await site.question()
    async with served(tmp_path, [], tools=["files"], workspace=tmp_path, allow=()) as site:
        asked = (await site.question())["said"]["text"]
    first, fails = asked["values"]["asked"]["values"]["all"]
    assert (first["code"], fails["code"]) == ("question.approve", "question.fails")
    assert fails["values"]["why"]["code"] == "workspace.outside"
