"""The answers a person can give to a question by choosing one, for clients with buttons or lists."""

from __future__ import annotations

from dataclasses import dataclass

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
from dragoman.visible_text import visible

_WIDER = 2  # rules that cover more than the call, for a conversation: more would be a wall of buttons


@dataclass(slots=True, frozen=True)
class AnswerChoice:
    """Its label, what kind of answer it is, in the words of the Agent Client Protocol, and the answer."""

    name: str
    kind: str
    answer: Answer


def choices_for(question: Question) -> dict[str, AnswerChoice]:
    """What can be answered by a button, by its id. Empty where a person would have to write something."""
    match question.kind:
        case "approve":
            return _approval(question)
        case "run":
            return _yes_or_no("Run it", "Reject")
        case "interrupted":
            return _yes_or_no("Run it again", "Leave it")
        case "loop":
            more = AnswerChoice("Once more", "allow_once", allow_once())
            here = AnswerChoice("Do not ask again here", "allow_always", allow_for_conversation())
            end = AnswerChoice("Stop its calls", "reject_once", stop())
            return {"once": more, "conversation": here, "stop": end}
        case "review":
            return {
                "release": AnswerChoice("Show the model the result", "allow_once", release()),
                "withhold": AnswerChoice("Keep it from the model", "reject_once", withhold()),
            }
        case "tool":
            if not question.choices:
                return {}
            offered = {
                f"choice-{number}": AnswerChoice(visible(choice), "allow_once", reply(choice))
                for number, choice in enumerate(question.choices)
            }
            return {**offered, "reject": AnswerChoice("None of these", "reject_once", reject())}


def _yes_or_no(yes: str, no: str) -> dict[str, AnswerChoice]:
    return {
        "once": AnswerChoice(yes, "allow_once", allow_once()),
        "reject": AnswerChoice(no, "reject_once", reject()),
    }


def _approval(question: Question) -> dict[str, AnswerChoice]:
    found = {"once": AnswerChoice("Allow once", "allow_once", allow_once())}
    no = AnswerChoice("Reject", "reject_once", reject())
    end = AnswerChoice("Reject, and stop its calls", "reject_once", stop())
    if not question.rules:  # where no rule would help, an answer is for this once
        return {**found, "reject": no, "stop": end}
    exact, wider = question.rules, [(rule,) for rule in question.wider]
    words = _on(exact)
    found["conversation"] = AnswerChoice(
        f"Allow in this conversation: {words}", "allow_always", allow_for_conversation(*exact)
    )
    for number, rules in enumerate(wider[:_WIDER], 1):
        found[f"conversation-{number}"] = AnswerChoice(
            f"Allow in this conversation: {_on(rules)}", "allow_always", allow_for_conversation(*rules)
        )
    found["always"] = AnswerChoice(f"Allow always: {words}", "allow_always", allow_always(*exact))
    found["reject"] = no
    found["stop"] = end
    found["reject-always"] = AnswerChoice(
        f"Deny always: {words}", "reject_always", reject(scope="always", rules=exact)
    )
    return found


def _on(rules: tuple[Rule, ...]) -> str:
    return visible("; ".join(part.removeprefix("allow ") for part in rules_in_words(rules).split("; ")))
