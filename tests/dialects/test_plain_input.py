"""Plain text behind `Action Input:`, where only one argument of the tool can be meant (D1, C4)."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from dragoman.dialects.dialect import dialect
from dragoman.dialects.scanner import Scanner, TextCall
from dragoman.messages.request import ToolSpec
from tests.dialects.calls import in_pieces


def _tool(name: str, required: list[JsonValue], **properties: JsonValue) -> ToolSpec:
    return ToolSpec(name, "", {"type": "object", "properties": properties, "required": required})


TEXT: JsonValue = {"type": "string"}
NUMBER: JsonValue = {"type": "integer"}
TOOLS = (
    _tool("search", ["query"], query=TEXT, limit=NUMBER),
    _tool("wait", [], seconds=NUMBER),
    _tool("move", ["source", "target"], source=TEXT, target=TEXT),
    _tool("mixed", ["target"], source=TEXT, target=TEXT, mode=TEXT),
)


@pytest.mark.parametrize(
    ("reply", "call"),
    [
        ("Action: search\nAction Input: two words\nObservation: ", ("search", {"query": "two words"})),
        ('Thought: Hm.\n**Action:** search\n**Action Input:** "a"', ("search", {"query": "a"})),
        ("Action: search[two [2] words]", ("search", {"query": "two [2] words"})),
        ("**Action:** search\n**Action Input:** a b\n**Observation:** 3", ("search", {"query": "a b"})),
        ("Action: search\nAction Input: a b\nFinal Answer: 3", ("search", {"query": "a b"})),
        ("Action: search\nAction Input: a b\n<tool_response>3", ("search", {"query": "a b"})),
        ("Action: search\nAction Input: a b<|im_end|>\n<|im_start|>user\n3", ("search", {"query": "a b"})),
        ("Action: search('a')", ("search", {"query": "a"})),
        ("Action: search\nAction Input:\n```py\na = 1\n\nb\n```", ("search", {"query": "a = 1\n\nb"})),
        ('Action: search\nAction Input: {"query": "a", "limit": 3}', ("search", {"query": "a", "limit": 3})),
        ("Action: wait\nAction Input: 3", ("wait", {"seconds": 3})),
        ("<tool>search</tool><tool_input>two words</tool_input>", ("search", {"query": "two words"})),
        ("Action: wait(3)", ("wait", {"seconds": 3})),
        ("Action: move('a', 'b')", ("move", {"source": "a", "target": "b"})),
    ],
)
def test_d1_plain_text_is_the_argument_that_is_meant(reply: str, call: tuple[str, dict[str, object]]) -> None:
    parsed = dialect("any").parse(reply, TOOLS)
    assert [(one.name, one.arguments) for one in parsed.calls] == [call]
    for size in (1, 3, 7):
        pieces = [reply[at : at + size] for at in range(0, len(reply), size)]
        assert in_pieces("any", pieces, TOOLS) == parsed


@pytest.mark.parametrize(
    "reply",
    [
        "Action: move\nAction Input: a",  # which of the two?
        "Action: move[a]",
        "Action: mixed('a', 'b')",  # the first is not the first that it needs
        "Action: mixed('a')",
        'Action: search\nAction Input: query="a", limit=3',
        "Action: search\nAction Input: query: a",
        'Action: search[query="a"]',
        "<tool>search</tool><tool_input>query=a</tool_input>",
    ],
)
def test_d3_where_it_is_not_certain_which_argument_is_meant_the_model_is_told(reply: str) -> None:
    parsed = dialect("any").parse(reply, TOOLS)
    assert not parsed.calls
    assert len(parsed.errors) == 1


@pytest.mark.parametrize(
    "reply",
    [
        "Action: search\nAction Input: two words",
        "Action: search\nAction Input:\n```\na = 1\n```",
        'Action: wait\nAction Input: {"seconds": 12}',
        '**Action:** wait\n**Action Input:** {"seconds": 12}',
        "Action: wait(12)",
        "Action: wait[12]",
        "Action: search[two [2] words]",
        "```tool_code\nx = wait(12)\n```",
        "<code>\nwait(12)\n</code>",
        '<wait seconds="12"/>',
        "<tool>wait</tool><tool_input>12</tool_input>",
        '<tool>wait</tool>\n<tool_input>{"seconds": 12}</tool_input>',
        'Tool: wait\nInput: {"seconds": 12}',
    ],
)
def test_c4_half_a_call_never_runs(reply: str) -> None:
    whole = dialect("any").parse(reply, TOOLS).calls
    assert len(whole) == 1
    for cut in range(len(reply)):
        scanner = Scanner(dialect("any"), TOOLS)
        scanner.feed(reply[:cut])
        scanner.end(cut=True)
        assert [one for one in scanner.found if isinstance(one, TextCall) and one not in whole] == [], cut


def test_c4_a_reply_that_ends_in_front_of_the_input_is_told_so() -> None:
    parsed = dialect("any").parse("Action: wait\nAction Inp", TOOLS)
    assert not parsed.calls
    assert "ends before it does" in parsed.errors[0]
    assert dialect("any").parse("Action: wait\n", TOOLS).calls == (TextCall("wait", {}),)


def test_d1_an_attribute_that_the_tool_has_is_an_argument_whatever_its_name() -> None:
    tools = (_tool("find", [], id=NUMBER, type=TEXT),)
    for reply in ('<find id="3" type="a"/>', '<tool name="find" id="3" type="a"/>'):
        assert dialect("any").parse(reply, tools).calls == (TextCall("find", {"id": 3, "type": "a"}),)
    assert dialect("any").parse('<tool name="find" id="c1"><id>3</id></tool>', tools).calls == (
        TextCall("find", {"id": 3}),
    )
