"""Turns as anything might have happened in them, for what makes streams of them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from pydantic import JsonValue

from dragoman.messages import events as e
from dragoman.messages.fold import fold
from dragoman.messages.message import Arguments, CallState, Citation, File, ToolResult
from dragoman.messages.questions import Question
from dragoman.messages.usage import Usage
from dragoman.turn.live.log import Snapshot
from dragoman.turn.machine import State, Turn
from tests.messages.test_fold import cuts

_RESULT = ToolResult("text", value={"a": [1]}, attachments=(File("image/png", blob="0" * 64),))


@st.composite
def _call(draw: st.DrawFn, call: str, tool: str) -> list[e.Event]:
    """Draw the outcome of a call: with or without approval, run or not, perhaps with other arguments."""
    events: list[e.Event] = []
    choices: list[Arguments] = [{"n": 1}, {"n": 2}, {}]
    arguments = draw(st.sampled_from(choices))
    kind = draw(st.sampled_from([None, "approve", "run", "review", "tool", "interrupted"]))
    if kind is not None:
        events.append(e.CallAsked(call, f"ask_{call}", kind, tool, arguments, "May it?"))
        events.append(e.CallAnswered(call, f"ask_{call}", "allow"))
    state = draw(st.sampled_from([state for state in CallState if state.settled]))
    if state not in (CallState.REJECTED, CallState.SKIPPED):
        events.append(e.CallStart(call, tool, arguments, at=1.0))
        values: list[JsonValue] = [None, 0.5, "half", {"a": 1}]
        events.append(e.CallProgress(call, draw(st.sampled_from(values))))
    events.append(e.CallEnd(call, tool, arguments, state, _RESULT))
    return events


@st.composite
def turns(draw: st.DrawFn) -> list[e.Event]:
    """The events of a turn, numbered."""
    events: list[e.Event] = [e.TurnStart("turn_1", "conv_1", "msg_0"), e.TurnState("streaming")]
    for step in range(draw(st.integers(1, 3))):
        for attempt in range(1, draw(st.integers(1, 2)) + 1):
            events.append(e.StepStart(step, attempt, f"msg_{step}", None, "some/model"))
            reply = [event for cut in draw(cuts()) for event in cut.events()]
            if attempt == 1 and draw(st.booleans()):
                reply = reply[: draw(st.integers(0, len(reply)))]
            for event in reply:
                if isinstance(event, e.CallInputStart | e.CallInputDelta | e.CallInputEnd):
                    event.call = f"{event.call}_{step}_{attempt}"
            events += reply
        if draw(st.booleans()):
            events.append(e.TextCited([Citation("https://a.example", "A"), Citation(quote="so it says")]))
        events.append(e.MessageEnd("stop", Usage(input=1)))
        made = [event for event in reply if isinstance(event, e.CallInputEnd)]
        for one in made:
            events += draw(_call(one.call, one.tool))
        events.append(e.StepEnd(step, Usage(input=1)))
    state = draw(st.sampled_from(["completed", "cancelled", "error"]))
    events.append(e.TurnEnd(state, "", Usage(), "it broke" if state == "error" else None, finish="stop"))
    for number, event in enumerate(events, 1):
        event.seq = number
    return events


def snapshot_of(events: list[e.Event]) -> Snapshot:
    """Return the snapshot of a turn with these events."""
    asked: dict[str, e.CallAsked] = {}
    state = State.PREPARING
    for event in events:
        match event:
            case e.TurnState():
                state = State(event.state)
            case e.CallAsked():
                asked[event.question] = event
            case e.CallAnswered():
                asked.pop(event.question, None)
    messages = tuple(fold(events, "conv_1", "turn_1"))
    questions = tuple(map(_question, asked.values()))
    return Snapshot("turn_1", "conv_1", Turn(state=state), messages, questions, len(events))


def _question(asked: e.CallAsked) -> Question:
    named: Any = {"call": asked.call, "kind": asked.kind, "tool": asked.tool, "text": asked.text}
    return Question(asked.question, "conv_1", "turn_1", arguments=asked.arguments, hash="hash", **named)


def text_after(events: list[e.Event], cut: int) -> str:
    """Return the text that a reader who connects at this moment sees: the text so far and the text from then
    on."""
    before = "".join(message.text for message in fold(events[:cut]))
    return before + "".join(event.text for event in events[cut:] if isinstance(event, e.TextDelta))
