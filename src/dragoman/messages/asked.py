"""Calls and questions as events, and what a person is asked in words: why, and about what (P14)."""

from __future__ import annotations

import json

from dragoman.messages.events import CallAsked, CallEnd, CallProgress, Event
from dragoman.messages.message import Arguments, ToolCall
from dragoman.messages.questions import Cause, Question
from dragoman.visible_text import visible

_CAUSES: dict[Cause, str] = {
    "rule": "no rule allows it",
    "bounds": "what it would change is protected: programs execute or obey it later",
    "mode": "the mode is to ask about every call",
    "plugin": "a plugin wants you to look",
    "redefined": "the tool changed its description since it was first offered, or last allowed",
    "loop": "the model repeats itself",
    "format": "the model is not known to write calls in this format",
    "interrupted": "the program stopped while it ran",
    "review": "you see this result before the model does",
    "tool": "the tool itself asks",
}


def cause(question: Question | CallAsked) -> str:
    """Why a person is asked, for them to read."""
    return f"asked because {_CAUSES[question.because]}"  # type: ignore[index]  # an event has it as a string


def untold(question: Question | CallAsked) -> Arguments:
    """The arguments a person has to see: all, except those that are in the diff to the last character.
    A question of the tool itself is about its text."""
    if question.kind == "tool":
        return {}
    return {name: value for name, value in question.arguments.items() if name not in question.told}


def approval_text(question: Question | CallAsked) -> str:
    """Everything a person answers about, with nothing invisible in it: for clients that fold nothing.
    The event of a review does not carry its result; the stored question does."""
    parts = [question.text, cause(question), question.diff]
    if (rest := untold(question)) or not (question.diff or question.kind == "tool"):
        parts.append(f"{question.tool} {json.dumps(rest, ensure_ascii=False)}")
    if isinstance(question, Question) and question.result is not None:
        files = (f"[{file.name or 'a file'}: {file.media_type}]" for file in question.result.attachments)
        parts += [question.result.text, *files]
    return "\n\n".join(visible(part) for part in parts if part)


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
