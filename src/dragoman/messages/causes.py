"""What a person is asked, in words: why, and all that they approve, review or release (P14)."""

from __future__ import annotations

import json

from dragoman.messages.events import CallAsked
from dragoman.messages.parts import Arguments
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
