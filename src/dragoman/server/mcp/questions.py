"""Our questions in the forms of MCP clients, and what to say where a client can ask nobody."""

from __future__ import annotations

from typing import Any

import mcp_types as types

from dragoman.messages.asked import approval_text, cause
from dragoman.messages.questions import NOBODY, Answer, Question, reject, reply, withhold
from dragoman.tools.approval import choices_for

_ANSWER = "answer"


def form_of(question: Question) -> types.ElicitRequestFormParams:
    """What the person is asked, and the answers there are."""
    return types.ElicitRequestFormParams(message=approval_text(question), requested_schema=_schema(question))


def answer_in(question: Question, filled: types.ElicitResult) -> Answer:
    """What the person chose. Who closed the form has not said yes."""
    content: dict[str, Any] = {**(filled.content or {})}
    if filled.action != "accept":
        return no(question, None if filled.action == "decline" else "the person closed the question")
    choices = choices_for(question)
    if not choices:
        return reply(content if question.schema else content.get(_ANSWER))
    chosen = content.get(_ANSWER)
    found = next((one for one in choices.values() if one.name == chosen), None)
    if found is None and question.free:
        return reply(chosen)
    return found.answer if found is not None else no(question, f"{chosen!r} was not one of the answers")


def refusal(question: Question) -> Answer:
    """Where nobody can be asked."""
    return Answer("withhold" if question.kind == "review" else "reject", by=NOBODY)


def how_to_allow(question: Question) -> str:
    """A sentence: which rule would let the call run."""
    if question.kind != "approve" or question.because != "rule" or not question.rules:
        return f"This client cannot ask a person. It is {cause(question)}."
    rules = ", ".join(f'"{_written(one.permission, one.pattern)}"' for one in question.rules)
    return f"This client cannot ask a person. A rule in dragoman.toml would allow it: allow = [{rules}]"


def no(question: Question, why: str | None) -> Answer:
    """The call does not run; of a result, the model does not see it."""
    return withhold(why) if question.kind == "review" else reject(why)


def _written(permission: str, pattern: str) -> str:
    escaped = pattern.replace("\\", "\\\\").replace('"', '\\"')
    return permission if pattern == "*" else f"{permission}:{escaped}"


def _schema(question: Question) -> dict[str, Any]:
    if question.kind == "tool" and question.schema:
        return dict(question.schema)
    field: dict[str, Any] = {"type": "string", "title": "Answer"}
    if choices := list(dict.fromkeys(choice.name for choice in choices_for(question).values())):
        if question.free:  # forms have no word for choices beside which one may write
            field["description"] = f"One of these, or your own words: {'; '.join(choices)}"
        else:
            field["enum"] = choices
    return {"type": "object", "properties": {_ANSWER: field}, "required": [_ANSWER]}
