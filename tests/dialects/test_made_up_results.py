"""A model that does not wait for a result invents one, and no later call in that reply counts (D1, C4)."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from dragoman.dialects.dialect import dialect
from dragoman.messages.request import ToolSpec
from tests.dialects.calls import in_pieces

_NUMBER: JsonValue = {"type": "integer"}
_PARAMETERS: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"a": _NUMBER, "b": _NUMBER},
    "required": ["a", "b"],
}
TOOLS = (ToolSpec("add", "", _PARAMETERS), ToolSpec("take", "", _PARAMETERS))
TAG = '<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>'
PLAYED = f"3\nThen.\n{TAG.replace('add', 'take')}"


def read_in_pieces(reply: str) -> tuple[list[str], str, str]:
    """Return the calls' names, the text and the reasoning, the same for every way to cut the reply."""
    parsed = dialect("any").parse(reply, TOOLS)
    for size in (1, 3, 7):
        pieces = [reply[at : at + size] for at in range(0, len(reply), size)]
        assert in_pieces("any", pieces, TOOLS) == parsed
    assert not parsed.errors
    return [call.name for call in parsed.calls], parsed.text, parsed.reasoning


@pytest.mark.parametrize(
    "begun",
    [
        f"{TAG}\nObservation: ",
        f"{TAG}\n<tool_response>\n",
        f"<tool_calls>{TAG}</tool_calls>\n<function_results>",
        f'{TAG}\n<tool_result id="1">',
        f"{TAG}<|im_end|>\n<|im_start|>tool\n",
        f"{TAG}<|observation|>\n",
        '[TOOL_CALLS][{"name": "add", "arguments": {"a": 1, "b": 2}}][TOOL_RESULTS]',
    ],
)
def test_d1_behind_a_result_that_is_made_up_all_is_a_thought(begun: str) -> None:
    assert read_in_pieces(f"{begun}{PLAYED}") == (["add"], "", PLAYED)


def test_d8_a_transcript_that_someone_explains_is_text() -> None:
    transcript = f"A conversation goes like this:\n{TAG}\n<tool_response>3</tool_response>\nIt is 3."
    assert read_in_pieces(transcript) == ([], transcript, "")


@pytest.mark.parametrize("end", ["\nObservation:", "<|observation|>", "<|im_end|>\n"])
def test_d1_a_word_at_which_a_server_stops_is_nothing(end: str) -> None:
    assert read_in_pieces(f"{TAG}{end}") == (["add"], "", "")


def test_d1_a_word_for_results_is_text_where_no_call_stands_before_it() -> None:
    prose = "A <tool_response> holds the result.\nObservation: so it is."
    assert read_in_pieces(prose) == ([], prose, "")
    assert read_in_pieces(f"{TAG}\n{prose}") == ([], f"{TAG}\n{prose}", "")


def test_d1_behind_a_call_that_cannot_be_read_a_result_is_made_up_as_well() -> None:
    parsed = dialect("any").parse(
        f'<tool_call>{{"name": "add", oops</tool_call>\nObservation: {PLAYED}', TOOLS
    )
    assert (parsed.calls, parsed.text, parsed.reasoning) == ((), "", PLAYED)
    assert "add did not run" in parsed.errors[0]


def test_d3_a_call_with_its_made_up_result_in_a_thought_that_the_prompt_began_does_not_count() -> None:
    thought = f"{TAG}\n<tool_response>3</tool_response>\nSo it is.\n"
    assert read_in_pieces(f"{thought}</think>\nIt is 3.")[:2] == ([], "It is 3.")
    played = f"{thought}<think>Hm.</think>\nIt is 3, and `</think>` a tag."  # this one began
    assert read_in_pieces(played)[:2] == (["add"], "")
