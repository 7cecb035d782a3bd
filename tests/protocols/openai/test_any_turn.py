"""Any turn, cut anywhere, is replies that the types of the SDK accept."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from dragoman.messages import events as e
from dragoman.messages.fold import fold
from dragoman.messages.message import CallState, Part, Reasoning, Text, ToolCall, ToolResult
from dragoman.messages.usage import Usage
from dragoman.server.protocols.event_reader import PartDelta
from dragoman.server.protocols.openai.chat import ChatCompletion
from dragoman.server.protocols.openai.reply import BROKEN, Piece, ReplyOver, ReplyReader
from dragoman.server.protocols.openai.response_object import ResponseObject
from tests.later import Later
from tests.messages.test_fold import Cut

if TYPE_CHECKING:
    import openai
    from openai.types import responses
else:
    openai, responses = Later("openai"), Later("openai.types.responses")

pytestmark = pytest.mark.slow

HEAD: dict[str, Any] = {
    "id": "resp_1",
    "created_at": 1,
    "model": "some/model",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
}
TOOLS = frozenset({"where"})


@st.composite
def replies(draw: st.DrawFn, step: int) -> list[e.Event]:
    """Draw a request with its reply and the outcome of its calls."""
    events: list[e.Event] = [e.StepStart(step, 1, f"msg_{step}", None, "some/model")]
    calls: list[tuple[str, str]] = []
    for number in range(draw(st.integers(0, 4))):
        pieces = draw(st.lists(st.text(max_size=4), max_size=3))
        text, id = "".join(pieces), f"call_{step}_{number}"
        tool = draw(st.sampled_from(["where", "add"]))
        kinds: list[Part] = [Text(text), Reasoning(text), ToolCall(id, tool, {"n": 1})]
        kind = draw(st.sampled_from(kinds))
        events += Cut(kind, pieces).events()
        if isinstance(kind, Text) and draw(st.booleans()):
            events[-1] = e.TextEnd(was_reasoning=True)
        calls += [(id, tool)] if isinstance(kind, ToolCall) else []
    finish = draw(st.sampled_from(["stop", "length", "refusal", "tool_calls"]))
    events.append(e.MessageEnd(finish, Usage(input=3, output=1), f"msg_{step}"))
    for id, tool in calls:
        if draw(st.booleans()):
            events.append(e.CallAsked(id, "ask_1", "approve", tool, {"n": 1}, "?"))
        rejected = draw(st.booleans())
        if not rejected:
            events.append(e.CallStart(id, tool, {"n": 1}, client=tool == "where", at=1.0))
        state = CallState.REJECTED if rejected else CallState.COMPLETED
        if tool != "where" or rejected:
            events.append(e.CallEnd(id, tool, {"n": 1}, state, ToolResult("done")))
    for id, tool in calls:  # calls that the caller ran come back last
        if any(isinstance(event, e.CallStart) and event.call == id and event.client for event in events):
            events.append(e.CallEnd(id, tool, {"n": 1}, CallState.COMPLETED, ToolResult("done")))
    return [*events, e.StepEnd(step, Usage())]


@st.composite
def turns(draw: st.DrawFn) -> list[e.Event]:
    events: list[e.Event] = [e.TurnStart("turn_1", "conv_1", "msg_0")]
    for step in range(1, draw(st.integers(1, 3)) + 1):
        events += draw(replies(step))
    state = draw(st.sampled_from(["completed", "error", "cancelled"]))
    texts = [message.text for message in fold(events)]
    return [*events, e.TurnEnd(state, texts[-1] if texts else "", Usage(), "no luck", finish="stop")]


def read(events: Sequence[e.Event], reader: ReplyReader) -> list[Piece]:
    pieces = [piece for event in events for piece in reader.feed(event)]
    return [*pieces, *reader.interrupt("the line is cut")]


def all_replies(events: Sequence[e.Event], *, typed: bool = False) -> list[list[Piece]]:
    """The replies that a turn is for a caller who runs `where`: each but the last ends with calls."""
    found: list[list[Piece]] = []
    after: str | None = None
    while True:
        reader = ReplyReader(TOOLS, typed, after)
        found.append(read(events, reader))
        over = found[-1][-1]
        if not isinstance(over, ReplyOver) or over.outcome != "tool_calls":
            return found
        after = reader._message


def chat(pieces: Sequence[Piece]) -> ChatCompletion:
    """Written as a completion, each chunk of which the SDK takes."""
    completion = ChatCompletion("chatcmpl-1", "some/model", 1, with_usage=True)
    chunks = [completion.begin(), *(chunk for piece in pieces for chunk in completion.chunks(piece))]
    *rest, last = chunks
    for chunk in rest if "error" in last else chunks:
        openai.types.chat.ChatCompletionChunk.model_validate(chunk, strict=True)
    openai.types.chat.ChatCompletion.model_validate(completion.whole(), strict=True)
    return completion


@cache
def _event() -> TypeAdapter[Any]:
    return TypeAdapter(responses.ResponseStreamEvent)


def response(pieces: Sequence[Piece]) -> list[Any]:
    """Written as a response, each event of which the SDK takes."""
    found = ResponseObject(dict(HEAD))
    events = [*found.begin(), *(event for piece in pieces for event in found.events(piece))]
    assert [event["sequence_number"] for event in events] == [*range(len(events))]
    return [_event().validate_python(event) for event in events]


@given(turns(), st.booleans(), st.data())
def test_any_turn_is_replies_of_the_sdks_types_at_any_cut(
    turn: list[e.Event], typed: bool, data: st.DataObject
) -> None:
    """F1, F2"""
    cut = data.draw(st.integers(0, len(turn)))
    for pieces in [*all_replies(turn, typed=typed), *all_replies(turn[:cut], typed=typed)]:
        assert isinstance(pieces[-1], ReplyOver)
        chat(pieces)
        last = response(pieces)[-1]
        assert last.type in ("response.completed", "response.failed", "response.incomplete")


@given(turns())
def test_the_replies_of_a_turn_say_all_it_said_once(turn: list[e.Event]) -> None:
    """F1 × C6"""
    answers = [chat(pieces).whole()["choices"][0]["message"] for pieces in all_replies(turn)]
    shown = "".join(answer["content"] or "" for answer in answers)
    whole = "".join(message.text for message in fold(turn))
    assert "".join(shown.split()) == "".join(whole.split())


@given(turns())
def test_a_stored_turn_reads_as_it_did_while_it_ran(turn: list[e.Event]) -> None:
    """F1 × S3: from its messages alone."""
    stored: list[e.Event] = [e.MessageAdded(message) for message in fold(turn, "conv_1", "turn_1")]
    live, later = all_replies(turn), all_replies([*stored, turn[-1]])
    assert [_items(pieces) for pieces in live] == [_items(pieces) for pieces in later]


@given(turns(), st.data())
def test_a_turn_that_goes_on_elsewhere_reads_as_one(turn: list[e.Event], data: st.DataObject) -> None:
    """Output that the first owner showed and the second one has stored is shown once. Output that was only
    begun aborts the reply (F1 × S3)."""
    steps = [at for at, event in enumerate(turn) if isinstance(event, e.StepStart)]
    cut = data.draw(st.integers(0, len(turn) - 1))
    begun = max((at for at in steps if at <= cut), default=cut)
    before = [e.MessageAdded(message) for message in fold(turn[:begun], "conv_1", "turn_1")]
    again = [*turn[:cut], e.TurnStart("turn_1", "conv_1", "msg_0", resumed=True), *before, *turn[begun:]]
    whole = read(turn, ReplyReader(frozenset()))
    seen = read(again, ReplyReader(frozenset()))
    over = seen[-1]
    assert isinstance(over, ReplyOver)
    assert over.error == BROKEN or _texts(seen) == _texts(whole)


def _items(pieces: Sequence[Piece]) -> list[Any]:
    found = ResponseObject(dict(HEAD))
    for piece in pieces:
        _ = [*found.events(piece)]
    responses.Response.model_validate(found.whole())
    return found.output


def _texts(pieces: Sequence[Piece]) -> str:
    """Return the text. Reasoning can come twice, since no client takes it for the answer."""
    return "".join(piece.text for piece in pieces if isinstance(piece, PartDelta) and piece.kind == "text")
