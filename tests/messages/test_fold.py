"""Events fold into the same message, however they were cut."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from dragoman.messages import events as e
from dragoman.messages.fold import Draft, fold
from dragoman.messages.message import (
    CallState,
    Citation,
    Error,
    Message,
    Part,
    ProviderItem,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.messages.usage import Usage

EMPTY = Message("msg_1", "conv_1", None, "assistant", (), turn="turn_1", model="some/model")


def drafted(events: Iterable[e.Event]) -> Draft:
    draft = Draft(EMPTY)
    for event in events:
        draft.apply(event)
    return draft


def parts_of(*events: e.Event) -> tuple[Part, ...]:
    return drafted(events).message.parts


# ── any cut ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Cut:
    """A part of a reply, and the positions where its text is cut."""

    part: Part
    pieces: Sequence[str]

    def events(self) -> Iterator[e.Event]:
        match self.part:
            case Text():
                yield e.TextStart()
                yield from map(e.TextDelta, self.pieces)
                yield e.TextEnd()
            case Reasoning(signature=signature, wire=wire, opaque=opaque, seconds=seconds):
                yield e.ReasoningStart()
                yield from map(e.ReasoningDelta, self.pieces)
                yield e.ReasoningEnd(signature, wire, opaque, seconds)
            case ToolCall(id=id, tool=tool):
                yield e.CallInputStart(id, tool[:1], provider_id=self.part.provider_id)
                yield from (e.CallInputDelta(id, piece) for piece in self.pieces)
                yield e.CallInputEnd(id, tool, self.part.arguments, self.part.raw, self.part.signature)


@st.composite
def cuts(draw: st.DrawFn) -> list[Cut]:
    reply = []
    for number in range(draw(st.integers(0, 5))):
        pieces = draw(st.lists(st.text(max_size=4), max_size=4))
        text = "".join(pieces)
        kinds: list[Part] = [
            Text(text),
            Reasoning(text, "signed", "some wire", "some/model", {"raw": 1}, 0.5),
            ToolCall(
                f"call_{number}", "add", {"n": number}, provider_id="p", signature="s", signed_by="some/model"
            ),
            ToolCall(f"call_{number}", "add", raw=text),
        ]
        reply.append(Cut(draw(st.sampled_from(kinds)), pieces))
    return reply


@given(cuts())
def test_any_cut_of_a_reply_gives_the_same_message(reply: list[Cut]) -> None:
    """W1"""
    events = [event for cut in reply for event in cut.events()]
    end = e.MessageEnd("stop", Usage(input=3))
    message = drafted([*events, end]).message
    assert message == replace(
        EMPTY, parts=tuple(cut.part for cut in reply), finish="stop", usage=Usage(input=3)
    )


@given(cuts(), st.data())
def test_looking_at_a_draft_shows_what_came_and_changes_nothing(
    reply: list[Cut], data: st.DataObject
) -> None:
    """T6, E2: a snapshot at any moment is a beginning of the whole."""
    events = [event for cut in reply for event in cut.events()]
    draft = Draft(EMPTY)
    for event in events[: data.draw(st.integers(0, len(events)))]:
        draft.apply(event)
        assert draft.message is draft.message
    seen = draft.message
    whole = drafted(events).message
    assert whole.text.startswith(seen.text)
    assert whole.reasoning.startswith(seen.reasoning)
    assert [call.id for call in whole.calls[: len(seen.calls)]] == [call.id for call in seen.calls]


# ── open ends ─────────────────────────────────────────────────────────────────────────────────────


def test_what_was_never_ended_is_kept() -> None:
    """T6"""
    assert parts_of(e.TextStart(), e.TextDelta("half an ans")) == (Text("half an ans"),)
    assert parts_of(e.ReasoningStart(), e.ReasoningDelta("hm")) == (Reasoning("hm", model="some/model"),)
    assert parts_of(e.TextDelta("no start"), e.MessageEnd("length")) == (Text("no start"),)


def test_sources_belong_to_the_text_before_them_and_items_are_parts() -> None:
    """A source named during the text or after it belongs to that text (W1)."""
    first, second = Citation("https://a.example", "A"), Citation("https://b.example")
    parts = parts_of(
        e.ItemAdded("web_search_call", "rivers", "openai_responses", {"id": "ws_1"}),
        e.TextDelta("two"),
        e.TextCited([first]),
        e.TextEnd(phase="final_answer"),
        e.TextCited([second]),
    )
    item, text = parts
    assert isinstance(item, ProviderItem)
    assert (item.kind, item.opaque) == ("web_search_call", {"id": "ws_1"})
    assert text == Text("two", (first, second), "final_answer")
    assert parts_of(e.TextDelta("half"), e.TextCited([first])) == (Text("half", (first,)),)
    assert parts_of(e.TextCited([first])) == (Text("", (first,)),)


def test_log_probabilities_are_kept_token_by_token() -> None:
    """H4: in the message's metadata, as both of OpenAI's protocols send them."""
    first: dict[str, JsonValue] = {"token": "a", "logprob": -0.1}
    second: dict[str, JsonValue] = {"token": "b", "logprob": -0.2}
    draft = drafted(
        [
            e.TextDelta("a"),
            e.ProviderData("openai_chat", {"logprobs": {"content": [first], "refusal": None}}),
            e.ProviderData("openai_responses", {"logprobs": [second]}),
            e.ProviderData("openai_chat", {"service_tier": "flex"}),
            e.MessageEnd("stop", reason="done"),
        ]
    )
    assert draft.message.metadata == {"logprobs": [first, second], "reason": "done"}


def test_reasoning_that_is_begun_twice_does_not_become_an_answer() -> None:
    """W4"""
    seen = parts_of(e.ReasoningStart(), e.ReasoningDelta("hm"), e.ReasoningStart(), e.ReasoningDelta("so"))
    assert seen == (Reasoning("hm", model="some/model"), Reasoning("so", model="some/model"))


def test_text_and_reasoning_may_be_open_at_the_same_time() -> None:
    """W4"""
    seen = parts_of(
        e.TextStart(),
        e.ReasoningStart(),
        e.TextDelta("said "),
        e.ReasoningDelta("thought"),
        e.TextDelta("aloud"),
        e.ReasoningEnd(),
        e.TextEnd(),
    )
    assert seen == (Text("said aloud"), Reasoning("thought", model="some/model"))


def test_a_message_that_broke_off_ends_with_its_error() -> None:
    """T8"""
    draft = drafted([e.TextStart(), e.TextDelta("half")])
    draft.fail(Error("gone"))
    assert draft.message.parts == (Text("half"), Error("gone"))
    assert not draft.message.says_nothing


# ── a call's life ─────────────────────────────────────────────────────────────────────────────────

MADE = (e.CallInputStart("c", "add"), e.CallInputEnd("c", "add", {"a": 1}))


def call_after(*events: e.Event) -> ToolCall:
    (call,) = drafted([*MADE, *events]).message.calls
    return call


@pytest.mark.parametrize(
    ("kind", "state"),
    [
        ("approve", CallState.ASKED),
        ("run", CallState.ASKED),
        ("loop", CallState.ASKED),
        ("review", CallState.REVIEWING),
        ("tool", CallState.PENDING),
    ],
)
def test_a_question_moves_the_call_it_is_about(kind: str, state: CallState) -> None:
    """A tool that asks a question itself stays running (C1)."""
    assert call_after(e.CallAsked("c", "ask_1", kind, "add", {"a": 1}, "May it?")).state is state


def test_a_call_runs_and_ends_with_what_it_ran_with() -> None:
    """C1, P3"""
    running = call_after(e.CallStart("c", "add", {"a": 2}, at=1.0))
    assert (running.state, running.arguments, running.started) == (CallState.RUNNING, {"a": 2}, 1.0)
    ended = call_after(
        e.CallStart("c", "add", {"a": 2}, at=1.0),
        e.CallProgress("c", 0.5),
        e.CallEnd("c", "Add", {"a": 2}, CallState.COMPLETED, ToolResult("2"), {"a": 1}, 2.0),
    )
    assert (ended.tool, ended.original, ended.result) == ("Add", {"a": 1}, ToolResult("2"))
    assert (ended.started, ended.ended, ended.state) == (1.0, 2.0, CallState.COMPLETED)


# ── a whole turn ──────────────────────────────────────────────────────────────────────────────────


def step(number: int, attempt: int = 1, message: str = "") -> e.StepStart:
    return e.StepStart(number, attempt, message or f"msg_{number}", None, "some/model")


def test_a_turn_folds_into_its_messages_in_order() -> None:
    """E1: results find their call, also when the next message has begun."""
    added = Message("msg_added", "conv_1", "msg_1", "user", (Text("also"),))
    messages = fold(
        [
            e.TurnStart("turn_1", "conv_1", "msg_0"),
            step(1),
            *MADE,
            e.MessageEnd("tool_calls"),
            e.MessageAdded(added),
            step(2),
            e.TextDelta("so"),
            e.CallEnd("c", "add", {}, CallState.FAILED, ToolResult("no")),
            e.MessageEnd("stop"),
            e.TurnEnd("completed", "so", Usage()),
        ],
        "conv_1",
        "turn_1",
    )
    assert [m.id for m in messages] == ["msg_1", "msg_added", "msg_2"]
    assert messages[0].calls[0].state is CallState.FAILED
    assert (messages[1], messages[2].text, messages[2].turn) == (added, "so", "turn_1")


def test_a_step_that_is_asked_again_drops_what_came_before() -> None:
    """An empty message is dropped (S3)."""
    torn: list[e.Event] = [step(1), e.TextDelta("to"), *MADE]
    again: list[e.Event] = [step(1, attempt=2, message="msg_1"), e.TextDelta("whole"), e.MessageEnd("stop")]
    (message,) = fold([*torn, *again, step(2)])
    assert message.parts == (Text("whole"),)
