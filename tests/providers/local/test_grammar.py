"""The bundled model's format describes a tool, and its grammar limits the reply."""

from __future__ import annotations

import pytest

from dragoman.messages.request import ToolSpec
from dragoman.providers.local.exact import restore_copies, tells_truly, typed_expression
from dragoman.providers.local.prompt import reply_grammar, tool_line

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "where"},
        "unit": {"anyOf": [{"enum": ["celsius", "kelvin"]}, {"type": "null"}]},
        "days": {"type": "array", "items": {"$ref": "#/$defs/Day"}},
    },
    "required": ["city"],
    "$defs": {"Day": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}},
}
WEATHER = ToolSpec("weather", "Tell the weather", SCHEMA)  # type: ignore[arg-type]  # a dict of JSON


def test_a_tool_is_one_line_with_its_types() -> None:
    """D1: references and optional parameters included."""
    assert tool_line("weather", WEATHER.description, SCHEMA) == (
        "- weather(city: string, unit?: celsius|kelvin, days?: [{n: integer}]) Tell the weather. city: where"
    )


def test_a_long_description_ends_with_a_sentence_or_a_word() -> None:
    """D1: never in the middle of one."""
    line = tool_line("t", "Count the words of a text. " * 9, {})
    assert line == "- t() " + " ".join(["Count the words of a text."] * 4)
    assert tool_line("t", "word " * 60, {}).endswith("word.")


def test_members_stand_in_their_order_and_optional_ones_may_be_left_out() -> None:
    """D1: the first has no comma before it."""
    rules = reply_grammar([WEATHER])
    assert r'"\"city\": " string' in rules
    assert r'"\"unit\": " ("\"celsius\"" | "\"kelvin\"")' in rules
    assert '"weather " "{" r0 (", " r1)? (", " r4)? "}"' in rules


def test_a_schema_that_holds_itself_ends() -> None:
    """D1: it is any value from some depth on."""
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/N"}}, "required": ["next"]}
    schema = {"$defs": {"N": node}, **node}
    tool = ToolSpec("t", "", schema)  # type: ignore[arg-type]  # a dict of JSON
    assert len(reply_grammar([tool])) < 3000
    assert len(tool_line("t", "", schema)) < 200


def test_quotes_in_names_stay_inside_their_literals() -> None:
    """A tool's name cannot add rules to the grammar (D1)."""
    schema = {"type": "object", "properties": {'a"b': {"enum": ['say "hi"']}}}
    tool = ToolSpec("t", "", schema)  # type: ignore[arg-type]  # a dict of JSON
    assert r'"\"a\\\"b\": " ("\"say \\\"hi\\\"\"")' in reply_grammar([tool])


@pytest.mark.parametrize(
    ("request_", "expression"),
    [
        ("(12+8)*3-45/9", "(12+8)*3-45/9"),
        ("what's 2^10 - 4 ?", "2**10 - 4"),
        ("Calculate 3.5 × 14, please", "3.5 * 14"),
        ("sqrt(2) * 8 = ?", "sqrt(2) * 8"),
        ("was ist (3 + 4) * 5?", "(3 + 4) * 5"),
        ("What is 15% of 80?", ""),
        ("Add 17 to 3 * 4", ""),
        ("What happened on 2024-05-03?", ""),
        ("Read lines 10-20", ""),
        ("the square root of 12 + 4", ""),
        ("add 1,984 and 16", ""),
        ("read src/a-1.txt", ""),
    ],
)
def test_an_expression_is_found_where_it_is_the_only_number(request_: str, expression: str) -> None:
    """C4: dates, percentages and ranges of lines are none."""
    assert typed_expression(request_) == expression


@pytest.mark.parametrize(
    ("written", "right"),
    [
        ("docs/apendix-b.md", "docs/appendix-b.md"),
        ("https://ex.org/a/b?c=1", "https://ex.org/a/b?c=1"),  # as it stands
        ("other.md", "other.md"),
        ("appendices", "appendices"),
        ("the quick brwn fox", "the quick brown fox"),
    ],
)
def test_a_slip_in_a_copy_is_put_right(written: str, right: str) -> None:
    """A value that resembles no text stays (C4)."""
    read = "Put 'the quick brown fox' into docs/appendix-b.md, from https://ex.org/a/b?c=1 (appendix)."
    assert restore_copies({"path": written, "all": [written]}, read) == {"path": right, "all": [right]}


@pytest.mark.parametrize(
    ("written", "right"),
    [
        ("The lift in stairwel B is out of order", "The lift in stairwell B is out of order"),
        ("the lift in stairwell B is out of order", "The lift in stairwell B is out of order"),
        ("The stairs in the lift are out of order", "The stairs in the lift are out of order"),  # no slip
        ("call us", "call us"),  # too short to tell
    ],
)
def test_a_slip_in_a_text_of_several_words_is_put_right(written: str, right: str) -> None:
    """The text needs no quotation marks if it occurs in one place (C4)."""
    read = "Put up a notice saying: The lift in stairwell B is out of order. Please cal us."
    assert restore_copies({"text": written}, read) == {"text": right}


@pytest.mark.parametrize(
    ("written", "right"),
    [
        (148729103, 1487291103),
        (1487291103, 1487291103),
        (-1487291103, -1487291103),
        (48.20813, 48.208143),
        (2500000, 2500000),  # 2.5 million
        (99, 99),
        (True, True),
    ],
)
def test_a_slip_in_a_long_number_is_put_right(written: float, right: float) -> None:
    """A short or calculated number is not a slip (C4)."""
    read = "Account 1487291103, at 48.208143, with 2.5 million, see 1.4.22 and 12:30"
    assert restore_copies({"number": written}, read) == {"number": right}


@pytest.mark.parametrize(
    ("sentence", "true"),
    [
        ("It is 21 degrees.", True),
        ("It is 22 degrees.", False),
        ("They are 1,250 in all.", True),
        ("It is warm.", True),
        ("It is 07:54.", True),
        ("It is 07:53.", False),
    ],
)
def test_a_sentence_has_no_number_of_its_own(sentence: str, true: bool) -> None:
    """Thousands separators do not matter (C2)."""
    assert tells_truly(sentence, '{"degrees": 21, "people": 1250}', "07:54:16+01:00") is true
