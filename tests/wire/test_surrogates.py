"""Servers split characters: both halves of an emoji come as separate escapes (W3)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.messages.events import TextDelta
from dragoman.providers.wires import WIRES
from dragoman.wire.calls import parse_arguments
from dragoman.wire.prose import is_whole, join_halves, split_half
from tests.wire.cuts import cuts
from tests.wire.replies import Reply, decode, framed

LONE = "\N{REPLACEMENT CHARACTER}"
EMOJI = "😀"
HIGH, LOW = "\ud83d", "\ude00"


def units(text: str) -> str:
    """The text with every character beyond the first plane as its two halves."""
    data = text.encode("utf-16-le", "surrogatepass")
    return "".join(chr(int.from_bytes(data[at : at + 2], "little")) for at in range(0, len(data), 2))


def read(wire: str, frames: Iterable[dict[str, Any]]) -> Reply:
    """Each frame in ASCII, as most servers write JSON: half a character stands there as an escape."""
    return decode(WIRES[wire](), framed(wire, *frames))


# ── a piece of a reply, in the words of each wire ─────────────────────────────────────────────────


def chat(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def chat_text(pieces: list[str]) -> Iterator[dict[str, Any]]:
    yield from (chat(content=piece) for piece in pieces)


def chat_reasoning(pieces: list[str]) -> Iterator[dict[str, Any]]:
    yield from (chat(reasoning_content=piece) for piece in pieces)


def chat_arguments(pieces: list[str]) -> Iterator[dict[str, Any]]:
    yield chat(tool_calls=[{"index": 0, "id": "a", "function": {"name": "note", "arguments": ""}}])
    yield from (chat(tool_calls=[{"index": 0, "function": {"arguments": piece}}]) for piece in pieces)
    yield {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}


COMPLETED = {"type": "response.completed", "response": {"status": "completed"}}


def responses_text(pieces: list[str]) -> Iterator[dict[str, Any]]:
    for piece in pieces:
        yield {"type": "response.output_text.delta", "output_index": 0, "delta": piece}
    yield COMPLETED


def responses_reasoning(pieces: list[str]) -> Iterator[dict[str, Any]]:
    for piece in pieces:
        yield {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": piece}
    yield COMPLETED


def responses_arguments(pieces: list[str]) -> Iterator[dict[str, Any]]:
    item = {"type": "function_call", "call_id": "a", "name": "note", "arguments": ""}
    yield {"type": "response.output_item.added", "output_index": 0, "item": item}
    for piece in pieces:
        yield {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": piece}
    yield COMPLETED


def block(start: dict[str, Any], deltas: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    yield {"type": "content_block_start", "index": 0, "content_block": start}
    yield from ({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas)
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    yield {"type": "message_stop"}


def messages_text(pieces: list[str]) -> Iterator[dict[str, Any]]:
    deltas = ({"type": "text_delta", "text": piece} for piece in pieces)
    return block({"type": "text", "text": ""}, deltas)


def messages_reasoning(pieces: list[str]) -> Iterator[dict[str, Any]]:
    deltas = ({"type": "thinking_delta", "thinking": piece} for piece in pieces)
    return block({"type": "thinking", "thinking": ""}, deltas)


def messages_arguments(pieces: list[str]) -> Iterator[dict[str, Any]]:
    deltas = ({"type": "input_json_delta", "partial_json": piece} for piece in pieces)
    return block({"type": "tool_use", "id": "a", "name": "note", "input": {}}, deltas)


def gemini(pieces: list[str], **fields: Any) -> Iterator[dict[str, Any]]:
    for piece in pieces:
        yield {"candidates": [{"content": {"parts": [{"text": piece, **fields}]}}]}
    yield {"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}]}


def gemini_reasoning(pieces: list[str]) -> Iterator[dict[str, Any]]:
    return gemini(pieces, thought=True)


def converse(pieces: list[str], name: str = "text", start: Any = None) -> Iterator[dict[str, Any]]:
    if start is not None:
        yield {"contentBlockStart": {"start": start, "contentBlockIndex": 0}}
    for piece in pieces:
        held: Any = piece if name == "text" else {"input" if name == "toolUse" else "text": piece}
        yield {"contentBlockDelta": {"delta": {name: held}, "contentBlockIndex": 0}}
    yield {"contentBlockStop": {"contentBlockIndex": 0}}
    yield {"messageStop": {"stopReason": "end_turn"}}


def converse_reasoning(pieces: list[str]) -> Iterator[dict[str, Any]]:
    return converse(pieces, "reasoningContent")


def converse_arguments(pieces: list[str]) -> Iterator[dict[str, Any]]:
    return converse(pieces, "toolUse", {"toolUse": {"toolUseId": "a", "name": "note"}})


Frames = Callable[[list[str]], Iterator[dict[str, Any]]]
TEXTS: dict[str, Frames] = {
    "openai_chat": chat_text,
    "openai_responses": responses_text,
    "anthropic_messages": messages_text,
    "gemini": gemini,
    "bedrock_converse": converse,
}
THOUGHTS: dict[str, Frames] = {
    "openai_chat": chat_reasoning,
    "openai_responses": responses_reasoning,
    "anthropic_messages": messages_reasoning,
    "gemini": gemini_reasoning,
    "bedrock_converse": converse_reasoning,
}
ARGUMENTS: dict[str, Frames] = {
    "openai_chat": chat_arguments,
    "openai_responses": responses_arguments,
    "anthropic_messages": messages_arguments,
    "bedrock_converse": converse_arguments,
}

# A letter in front, so that no wire takes the text for blank lines around a call.
texts = st.text(st.sampled_from(["a", " ", "\n", "é", "，", EMOJI, "🐉", "𝄞"]), max_size=8).map(
    lambda text: "x" + text
)


@pytest.mark.parametrize("wire", TEXTS)
@given(data=st.data())
def test_w3_any_cut_of_a_text_gives_the_same_text(wire: str, data: st.DataObject) -> None:
    text = data.draw(texts)
    reply = read(wire, TEXTS[wire](data.draw(cuts(units(text)))))

    assert (reply.text, reply.error) == (text, None)


@pytest.mark.parametrize("wire", THOUGHTS)
@given(data=st.data())
def test_w4_any_cut_of_a_thought_gives_the_same_thought(wire: str, data: st.DataObject) -> None:
    text = data.draw(texts)
    reply = read(wire, THOUGHTS[wire](data.draw(cuts(units(text)))))

    assert (reply.reasoning, reply.error) == (text, None)


@pytest.mark.parametrize("wire", ARGUMENTS)
@pytest.mark.parametrize("escaped", [True, False])
@given(data=st.data())
def test_w3_any_cut_of_arguments_gives_the_same_arguments(
    wire: str, escaped: bool, data: st.DataObject
) -> None:
    """W3, C4: whether the argument text holds the characters or their escapes."""
    arguments = {"text": data.draw(texts)}
    written = json.dumps(arguments, ensure_ascii=escaped)
    (call,) = read(wire, ARGUMENTS[wire](data.draw(cuts(units(written))))).calls

    assert call.arguments == arguments


# ── halves that never meet ────────────────────────────────────────────────────────────────────────

LONELY = {
    "first": [HIGH, "a"],
    "second": ["a", LOW],
    "turned": [LOW, HIGH],
    "last": ["a", HIGH],
    "two": [HIGH, HIGH],
}


@pytest.mark.parametrize("pieces", LONELY.values(), ids=LONELY)
@pytest.mark.parametrize("wire", TEXTS)
def test_w3_a_half_without_the_other_becomes_the_replacement_character(wire: str, pieces: list[str]) -> None:
    """Nothing raises, and the remaining text can be stored (W3)."""
    whole = "".join(pieces)
    meant = "".join(LONE if char in (HIGH, LOW) else char for char in whole)
    for frames, seen in ((TEXTS, "text"), (THOUGHTS, "reasoning")):
        reply = read(wire, frames[wire](["x", *pieces]))
        assert (getattr(reply, seen), reply.error) == (f"x{meant}", None)


@pytest.mark.parametrize("wire", ARGUMENTS)
@pytest.mark.parametrize("written", ['{"text": "a\ud83d"}', '{"text": "a\\ud83d"}'], ids=["raw", "escaped"])
def test_w3_half_a_character_in_arguments_is_replaced_and_the_call_is_whole(wire: str, written: str) -> None:
    (call,) = read(wire, ARGUMENTS[wire]([written])).calls
    assert (call.arguments, call.raw) == ({"text": f"a{LONE}"}, None)


def test_w3_halves_of_two_parts_are_not_joined() -> None:
    """A half at the end of reasoning and another at the start of text do not belong together (W3)."""
    reply = read("openai_chat", [chat(reasoning_content=f"a{HIGH}"), chat(content=f"{LOW}b")])
    assert (reply.reasoning, reply.text) == (f"a{LONE}", f"{LONE}b")


def test_w3_half_a_character_does_no_harm_in_a_name_an_id_or_a_providers_own_block() -> None:
    call = {"name": f"note{HIGH}", "args": {"text": f"a{LOW}"}, "id": f"id{HIGH}"}
    parts = [{"functionCall": call, "thoughtSignature": f"s{HIGH}"}]
    reply = read("gemini", [{"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}])
    (end,) = reply.calls
    assert (end.tool, end.arguments) == (f"note{LONE}", {"text": f"a{LONE}"})
    assert reply.provider_ids == [f"id{LONE}"]

    details = [{"type": "reasoning.text", "index": 0, "text": half} for half in (HIGH, LOW)]
    reply = read("openai_chat", [*(chat(reasoning_details=[one]) for one in details), chat(content="x")])
    (thought, _) = reply.parts
    assert thought.type == "reasoning"
    assert thought.opaque == [{"type": "reasoning.text", "index": 0, "text": EMOJI}]


def test_w3_an_error_inside_a_stream_may_hold_half_a_character() -> None:
    reply = read("openai_chat", [chat(content="x"), {"error": {"message": f"no {HIGH}"}}])
    assert str(reply.error) == f"no {LONE}"


def test_w3_bytes_that_are_no_character_are_replaced() -> None:
    """Servers that split by bytes send parts of a character in separate events (W3)."""
    torn = [
        b'{"choices":[{"delta":{"content":"a\xf0\x9f"}}]}',
        b'{"choices":[{"delta":{"content":"\x98\x80b"}}]}',
    ]
    decoder = WIRES["openai_chat"]().decoder("msg_r")
    text = "".join(event.text for one in torn for event in decoder.feed(one) if isinstance(event, TextDelta))
    assert (text[0], text[-1], {*text[1:-1]}) == ("a", "b", {LONE})


def test_w3_what_is_no_json_is_still_an_error() -> None:
    """W3: the slower reader takes half a character, and nothing else that is wrong."""
    for broken in (b'{"a": "\\ud83d"', b'{"a": NaN, "b": "\\ud83d"}', b"[" * 100_000 + b'"\\ud83d"'):
        with pytest.raises(ValueError, match=r".+"):
            [*WIRES["openai_chat"]().decoder("msg_r").feed(broken)]
    assert parse_arguments('{"a": "\\ud83d",, }') is None


@given(st.text(st.sampled_from(["a", "é", EMOJI, HIGH, LOW]), max_size=6))
def test_joining_leaves_whole_text_alone_and_nothing_torn_behind(text: str) -> None:
    joined = join_halves(text)
    assert is_whole(joined)
    assert join_halves(joined) == joined
    assert joined == text or not is_whole(text)
    head, half = split_half(text)
    assert join_halves(head + half) == joined
