"""Show a user what a call would write, as a diff, and narrow a call to the hunks the user chose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.errors import BadRequest, ToolFailed
from dragoman.messages.message import Arguments
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
from dragoman.sentences import sentence
from dragoman.tools.execute import whole_text
from dragoman.tools.permissions import rules_in_words
from dragoman.tools.tool import Tool
from dragoman.visible_text import visible
from dragoman.workspace.diff import FileDiff, is_whole, joined

_SHOWN = 200_000  # characters of a diff in an approval request


@dataclass(slots=True, frozen=True)
class Foreseen:
    """The preview of a call as a diff, and the names of the arguments that the diff shows in full.

    `told` has all arguments that the tool previews. It is empty if the diff is cut off, binary, or of a file
    that is not valid UTF-8.
    """

    diff: str = ""
    told: tuple[str, ...] = ()


def foresee(tool: Tool, arguments: Arguments, workspace: Path | None) -> Foreseen:
    """Return the preview of a call.

    Raises what the tool's preview raises: the call itself would then fail.
    """
    diffs = _preview(tool, arguments, workspace)
    whole = is_whole(diffs, _SHOWN) and not any(one.binary for one in diffs)
    told = tuple(name for name in tool.previewed if whole and name in arguments)
    return Foreseen(_shown(diffs), told)


def choose_hunks(
    tool: Tool, arguments: Arguments, workspace: Path | None, shown: str, chosen: Mapping[int, str | None]
) -> Arguments:
    """Return the arguments that apply only the chosen hunks of the diff that was shown.

    Raises BadRequest if the tool cannot do that or the diff has changed.
    """
    if tool.keep_hunks is None or not shown:
        raise BadRequest(sentence("part.unable", tool=tool.name))
    try:
        diffs = _preview(tool, arguments, workspace)
        if _shown(diffs) != shown:
            raise BadRequest(sentence("part.stale"))
        count = sum(line.startswith("@@ -") for line in shown.split("\n"))
        if not is_whole(diffs, _SHOWN):
            raise BadRequest(sentence("part.not_shown"))
        if not chosen:
            raise BadRequest(sentence("part.none"))
        if wrong := [place for place in chosen if not 0 <= place < count]:
            raise BadRequest(sentence("part.unknown", change=wrong[0], last=count - 1))
        made = tool.keep_hunks(arguments, workspace, chosen)
        if "\n@@ -" not in foresee(tool, made, workspace).diff:
            raise BadRequest(sentence("part.no_change"))
        return made
    except (ToolFailed, UnicodeError) as error:
        raise BadRequest(sentence("part.failed", error=error)) from error


def _preview(tool: Tool, arguments: Arguments, workspace: Path | None) -> Sequence[FileDiff]:
    assert tool.preview is not None
    return tool.preview(arguments, workspace)


def _shown(diffs: Sequence[FileDiff]) -> str:
    return whole_text(joined(diffs, _SHOWN))


# Build the answers that clients with buttons or lists offer for an approval request.


_WIDER = 2  # rules wider than the call, for one conversation: more would be too many buttons


@dataclass(slots=True, frozen=True)
class AnswerChoice:
    """A selectable answer: its label, its kind in the terms of the Agent Client Protocol, and the answer
    itself."""

    name: str
    kind: str
    answer: Answer


def choices_for(question: Question) -> dict[str, AnswerChoice]:
    """Return the answers that a button can give, by ID. Empty if the user would have to type something."""
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
    if not question.rules:  # Without a rule that would help, an answer applies only once.
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
