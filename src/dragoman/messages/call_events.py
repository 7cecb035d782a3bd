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
        list(question.told),
        question.in_parts,
        question.free,
    )


def question_in(event: Event) -> str | None:
    """The id of what a person is asked, also by a call that works in a conversation of its own."""
    return event.question if isinstance(event, CallAsked) else question_within(event)


def question_to_read(event: Event) -> str | None:
    """The id of a question that its event tells only in part: one within a task, or a review."""
    if isinstance(event, CallAsked):
        return event.question if event.kind == "review" else None
    return question_within(event)


def question_within(event: Event) -> str | None:
    """The id of what a person is asked by the calls of a task, which work in a conversation of their own."""
    asked = None if isinstance(event, CallAsked) else asked_in(event)
    return asked[0] if asked is not None else None


def asked_in(event: Event) -> tuple[str, str] | None:
    """The same id, and the text of that question. A tool may report what it likes: a task says where."""
    match event:
        case CallAsked(question=question, text=text):
            return question, text
        case CallProgress(value={"asks": str(question), "text": str(text), "turn": str()}):
            return question, text
        case _:
            return None
