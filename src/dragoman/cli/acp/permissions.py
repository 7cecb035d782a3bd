"""Our questions as an editor's permission requests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dragoman.messages.asked import approval_text
from dragoman.messages.questions import Question
from dragoman.tools.approval import choices_for


def permission_request(
    session: str, question: Question, tool_call: dict[str, Any], contents: list[dict[str, Any]]
) -> dict[str, Any]:
    """The parameters of `session/request_permission`. `contents` are the diffs of what it would write, in the
    editor's own form, where they can stand for the text of the question's diff."""
    words = approval_text(replace(question, diff="") if contents else question)
    return {
        "sessionId": session,
        "toolCall": {
            **tool_call,
            "status": "pending",
            "content": [{"type": "content", "content": {"type": "text", "text": words}}, *contents],
        },
        "options": [
            {"optionId": id, "name": choice.name, "kind": choice.kind}
            for id, choice in choices_for(question).items()
        ],
    }
