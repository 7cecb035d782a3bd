"""Why a person is asked, in words."""

from __future__ import annotations

from dragoman.messages.questions import Cause, Question

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


def cause(question: Question) -> str:
    """Why a person is asked, for them to read."""
    return f"asked because {_CAUSES[question.because]}"
