"""Events of a call, made of the call or its question; and which question an event asks."""

from __future__ import annotations

from dragoman.messages.events import CallAsked, CallEnd, CallProgress, Event
from dragoman.messages.parts import ToolCall
from dragoman.messages.questions import Question


def call_end(call: ToolCall) -> CallEnd:
    """The event for a settled call."""
    assert call.result is not None
    return CallEnd(call.id, call.tool, call.arguments, call.state, call.result, call.original, call.ended)


def call_asked(question: Question) -> CallAsked:
    """The event for a question."""
    return CallAsked(
        question.call,
        question.id,
        question.kind,
        question.tool,
        question.arguments,
        question.text,
        question.because,
        [str(rule) for rule in question.rules],
        list(question.choices),
        question.schema,
        question.diff,
        question.in_parts,
        question.free,
    )


def question_in(event: Event) -> str | None:
    """The id of what a person is asked, also by a call that works in a conversation of its own."""
    return event.question if isinstance(event, CallAsked) else question_within(event)


def question_within(event: Event) -> str | None:
    """The id of what a person is asked by the calls of a task, which work in a conversation of their own."""
    match event:
        case CallProgress(value={"asks": str(question)}):
            return question
        case _:
            return None
