"""`dragoman parse`: replies as a dialect reads them, one or a whole log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from dragoman.errors import ConfigError
from tests.cli.program import invoke, program

REPLY = 'Let me see. <tool_code>{"name": "add", "arguments": {"a": 1}}</tool_code>'
BROKEN = '<tool_code>{"name": "add", "arguments": {</tool_code>'


def parse(*options: str, stdin: str | bytes) -> Result:
    return invoke("parse", "--dialect", "xml_tag", *options, input=stdin)


def test_a_reply_is_told_as_calls_text_and_errors() -> None:
    parsed = json.loads(parse(stdin=REPLY).stdout)
    assert parsed == {"calls": [{"name": "add", "arguments": {"a": 1}}], "text": "Let me see.", "errors": []}


def test_a_malformed_call_is_an_error() -> None:
    parsed = json.loads(parse(stdin=BROKEN).stdout)
    assert (parsed["calls"], parsed["text"], len(parsed["errors"])) == ([], "", 1)


def test_a_log_gives_one_object_a_line() -> None:
    replies = [REPLY, "née 🐉", "half \ud83d a pair"]
    result = parse("--jsonl", stdin="\n".join(map(json.dumps, replies)) + "\n\n")
    parsed = [json.loads(line) for line in result.stdout.splitlines()]
    assert [len(one["calls"]) for one in parsed] == [1, 0, 0]
    assert [one["text"] for one in parsed] == ["Let me see.", "née 🐉", "half \ud83d a pair"]
    assert result.exit_code == 0


def test_a_line_that_is_no_string_says_so_and_does_not_stop_the_others() -> None:
    result = parse("--jsonl", stdin=f'{json.dumps(REPLY)}\n{{"a": 1}}\nnot JSON\n"fine"\n')
    parsed = [json.loads(line) for line in result.stdout.splitlines()]
    assert [one["errors"] for one in parsed] == [
        [],
        ["line 2 is not a JSON string"],
        ["line 3 is not a JSON string"],
        [],
    ]
    assert result.exit_code == 1


TOOL = {"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}


@pytest.mark.parametrize(
    "tools",
    [
        [TOOL],
        {"tools": [TOOL]},
        [{"type": "function", "function": TOOL}],
        [{"name": "add", "input_schema": TOOL["parameters"]}],
    ],
    ids=["bare", "in an object", "as functions", "as Anthropic writes it"],
)
def test_the_tools_tell_the_types_of_values_that_carry_none(tools: Any, tmp_path: Path) -> None:
    file = tmp_path / "tools.json"
    file.write_text(json.dumps(tools))
    reply = "<tool_call><function=add><parameter=a>5</parameter></function></tool_call>"
    options = ["parse", "--dialect", "qwen_coder"]
    printed = invoke(*options, "--tools", str(file), input=reply)
    assert json.loads(printed.stdout)["calls"] == [{"name": "add", "arguments": {"a": "5"}}]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "is not valid JSON"),
        ("{}", "has no list of tools"),
        ("[{}]", "tool 1 has no name"),
        ('[{"name": "a", "parameters": 1}]', "the parameters of 'a' are not a valid JSON schema"),
    ],
)
def test_tools_that_are_none_are_refused(text: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "tools.json"
    file.write_text(text)
    error = parse("--tools", str(file), stdin="x").exception
    assert isinstance(error, ConfigError)
    assert says in str(error)


@pytest.mark.slow
async def test_a_dialect_that_is_not_there_is_one_line_and_an_exit_status(tmp_path: Path) -> None:
    ended = await program("parse", "--dialect", "sign", folder=tmp_path)
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith("dragoman: Unknown dialect 'sign'. Choose one of json_strict")
