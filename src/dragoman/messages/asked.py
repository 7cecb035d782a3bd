"""Turns calls and approval requests into events and readable text: the reason and the subject (P14)."""

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
    """Describe for the user why Dragoman asks."""
    return f"asked because {_CAUSES[question.because]}"  # type: ignore[index]  # an event has it as a string


def untold(question: Question | CallAsked) -> Arguments:
    """Return the arguments a user must see: all except those fully contained in the diff.

    A question by the tool itself is only about its text, so it has none.
    """
    if question.kind == "tool":
        return {}
    return {name: value for name, value in question.arguments.items() if name not in question.told}


def approval_text(question: Question | CallAsked) -> str:
    """Return the full text of a request with invisible characters made visible, for clients that show only
    text.

    The event of a review lacks its result. The stored question has it.
    """
    parts = [question.text, cause(question), question.diff]
    if (rest := untold(question)) or not (question.diff or question.kind == "tool"):
        parts.append(f"{question.tool} {json.dumps(rest, ensure_ascii=False)}")
    if isinstance(question, Question) and question.result is not None:
        files = (f"[{file.name or 'a file'}: {file.media_type}]" for file in question.result.attachments)
        parts += [question.result.text, *files]
    return "\n\n".join(visible(part) for part in parts if part)


def call_end(call: ToolCall) -> CallEnd:
    """Return the event for a settled call."""
    assert call.result is not None
    return CallEnd(call.id, call.tool, call.arguments, call.state, call.result, call.original, call.ended)


def call_asked(question: Question) -> CallAsked:
    """Return the event for a question."""
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
    """Return the ID of the question in an event, including a question by a call of a task."""
    return event.question if isinstance(event, CallAsked) else question_within(event)


def question_to_read(event: Event) -> str | None:
    """Return the ID of a question that its event contains only in part: one within a task, or a review."""
    if isinstance(event, CallAsked):
        return event.question if event.kind == "review" else None
    return question_within(event)


def question_within(event: Event) -> str | None:
    """Return the ID of a question asked by a call of a task, which works in a separate conversation."""
    asked = None if isinstance(event, CallAsked) else asked_in(event)
    return asked[0] if asked is not None else None


def asked_in(event: Event) -> tuple[str, str] | None:
    """Return the ID and the text of the question in an event.

    Tools can report any progress. The progress of a task names its open question.
    """
    match event:
        case CallAsked(question=question, text=text):
            return question, text
        case CallProgress(value={"asks": str(question), "text": str(text), "turn": str()}):
            return question, text
        case _:
            return None
