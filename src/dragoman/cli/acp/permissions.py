"""Our questions as an editor's permission requests, and what a person chose there as our answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dragoman.cli.terminal.causes import cause
from dragoman.cli.terminal.choices import rule_options
from dragoman.messages.questions import (
    Answer,
    Question,
    Rule,
    allow_always,
    allow_for_conversation,
    allow_once,
    reject,
    release,
    reply,
    stop,
    withhold,
)
from dragoman.tools.permissions import rules_in_words

_WIDER = 2  # rules that cover more than the call, for a conversation: more would be a wall of buttons


@dataclass(slots=True, frozen=True)
class PermissionChoice:
    """A button: its label, the editor's word for what it is, and the answer it stands for."""

    name: str
    kind: str
    answer: Answer


def choices_for(question: Question) -> dict[str, PermissionChoice]:
    """What can be answered by a button, by its id. Empty where a person would have to write something."""
    match question.kind:
        case "approve":
            return _approval(question)
        case "run":
            return _yes_or_no("Run it", "Reject")
        case "interrupted":
            return _yes_or_no("Run it again", "Leave it")
        case "loop":
            more = PermissionChoice("Once more", "allow_once", allow_once())
            here = PermissionChoice("Do not ask again here", "allow_always", allow_for_conversation())
            end = PermissionChoice("Stop its calls", "reject_once", stop())
            return {"once": more, "conversation": here, "stop": end}
        case "review":
            return {
                "release": PermissionChoice("Show the model the result", "allow_once", release()),
                "withhold": PermissionChoice("Keep it from the model", "reject_once", withhold()),
            }
        case "tool":
            if not question.choices:
                return {}
            offered = {
                f"choice-{number}": PermissionChoice(choice, "allow_once", reply(choice))
                for number, choice in enumerate(question.choices)
            }
            return {**offered, "reject": PermissionChoice("None of these", "reject_once", reject())}


def permission_request(
    session: str, question: Question, tool_call: dict[str, Any], contents: list[dict[str, Any]]
) -> dict[str, Any]:
    """The parameters of `session/request_permission`. `contents` are the diffs of what it would write."""
    words = f"{question.text}\n\n{cause(question)}"
    if question.result is not None:
        words = f"{words}\n\n{question.result.text}"
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


def _yes_or_no(yes: str, no: str) -> dict[str, PermissionChoice]:
    return {
        "once": PermissionChoice(yes, "allow_once", allow_once()),
        "reject": PermissionChoice(no, "reject_once", reject()),
    }


def _approval(question: Question) -> dict[str, PermissionChoice]:
    found = {"once": PermissionChoice("Allow once", "allow_once", allow_once())}
    no = PermissionChoice("Reject", "reject_once", reject())
    end = PermissionChoice("Reject, and stop its calls", "reject_once", stop())
    if not question.rules:  # where no rule would help, an answer is for this once
        return {**found, "reject": no, "stop": end}
    exact, *wider = rule_options(question)
    words = _on(exact)
    found["conversation"] = PermissionChoice(
        f"Allow in this conversation: {words}", "allow_always", allow_for_conversation(*exact)
    )
    for number, rules in enumerate(wider[:_WIDER], 1):
        found[f"conversation-{number}"] = PermissionChoice(
            f"Allow in this conversation: {_on(rules)}", "allow_always", allow_for_conversation(*rules)
        )
    found["always"] = PermissionChoice(f"Allow always: {words}", "allow_always", allow_always(*exact))
    found["reject"] = no
    found["stop"] = end
    found["reject-always"] = PermissionChoice(
        f"Deny always: {words}", "reject_always", reject(scope="always", rules=exact)
    )
    return found


def _on(rules: tuple[Rule, ...]) -> str:
    return "; ".join(part.removeprefix("allow ") for part in rules_in_words(rules).split("; "))
