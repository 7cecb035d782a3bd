"""Defines questions to users, their answers, and the rules that make a question unnecessary."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pydantic import JsonValue

from dragoman.messages.message import Arguments, ToolResult
from dragoman.sentences import SaidFields, Spoken

Action: TypeAlias = Literal["allow", "ask", "deny"]

Mode: TypeAlias = Literal["auto", "ask", "manual", "off"]
"""The mode of deciding about calls: by rules, by a user for each, by a user who runs each manually, or no
calls.
"""

MODES: tuple[Mode, ...] = ("auto", "ask", "manual", "off")  # sorted, the strictest last

Kind: TypeAlias = Literal[
    "approve",  # May this call run?
    "run",  # Manual mode: the user runs it with a click.
    "loop",  # The model repeats itself. Continue?
    "interrupted",  # The process died while it ran. Run it again?
    "review",  # May the model see this result?
    "tool",  # The tool itself asks.
]

Cause: TypeAlias = Literal[
    "rule",  # A rule says ask, or no rule matches. A grant removes only this cause.
    "bounds",  # It would change files that this program, or another, runs or obeys later.
    "mode",  # every call needs approval
    "plugin",  # A plugin requests a user's decision.
    "redefined",  # The tool's description changed since it was first offered or last allowed.
    "loop",  # The model repeats itself.
    "format",  # Text looks like a call in a format that the model is not known to write.
    "interrupted",  # The process died while it ran.
    "review",  # The result needs a review.
    "tool",  # The tool has a question.
]

Verdict: TypeAlias = Literal["allow", "reject", "stop", "release", "withhold", "reply"]

Scope: TypeAlias = Literal["once", "conversation", "hour", "always"]

NOBODY = "nobody"  # the answering user if none is available

VERDICTS: dict[Kind, frozenset[Verdict]] = {
    "approve": frozenset({"allow", "reject", "stop"}),
    "run": frozenset({"allow", "reject", "stop"}),
    "loop": frozenset({"allow", "reject", "stop"}),
    "interrupted": frozenset({"allow", "reject", "stop"}),
    "review": frozenset({"release", "withhold"}),
    "tool": frozenset({"reply", "reject"}),
}


@dataclass(slots=True, frozen=True)
class Rule(Spoken):
    """A rule. `permission` is a tool's permission name, `pattern` what the call touches.

    The last matching rule decides.
    """

    permission: str
    pattern: str = "*"
    action: Action = "ask"
    origin: str = field(default="", compare=False)  # The file and line, or the code, it comes from.
    said: SaidFields = field(default=None, compare=False)

    def __str__(self) -> str:
        on = "" if self.pattern == "*" else f" on {self.pattern}"
        return f"{self.action} {self.permission}{on}"


@dataclass(slots=True, frozen=True)
class Grant:
    """A rule from a user's answer, which can be listed and revoked.

    Without a conversation it applies to all.
    """

    id: str
    rule: Rule
    conversation: str | None = None
    created: float = 0.0
    user: str | None = None  # The user it belongs to. None: the local user.
    workspace: str | None = None  # The folder it was given in. The same names are other files elsewhere.
    expires: float | None = None  # the time when it expires


@dataclass(slots=True, frozen=True)
class Answer:
    """A user's decision. The functions below make one."""

    verdict: Verdict
    scope: Scope = "once"
    arguments: Arguments | None = None  # arguments to use instead
    # The rules to keep, of those the question offers. If empty: its default rules.
    rules: tuple[Rule, ...] = ()
    reason: str | None = None  # for the model
    value: JsonValue = None  # the reply to a tool's question, or the text to release instead
    hash: str | None = None  # Hash of the arguments the user saw, checked if given.
    by: str | None = None
    at: float = 0.0
    lent: bool = False  # Given by another user than the turn's sender. It leaves no rule for the sender.


@dataclass(slots=True, frozen=True)
class Question(Spoken):
    """A decision that only a user can make. It is stored, outlives the process, and gets one answer."""

    id: str
    conversation: str
    turn: str
    call: str
    kind: Kind
    tool: str
    text: str
    arguments: Arguments
    hash: str
    server: str | None = None  # the server the tool runs on, if not here
    because: Cause = "rule"  # the reason for asking
    patterns: tuple[str, ...] = ()  # the patterns that the rules were checked against
    rules: tuple[Rule, ...] = ()  # The rules that "always" would add. Empty if it would add none.
    wider: tuple[Rule, ...] = ()  # Alternative rules, each covering more than this call.
    choices: tuple[str, ...] = ()
    free: bool = False  # whether the user can answer with free text instead of a choice
    schema: dict[str, JsonValue] = field(default_factory=dict)  # schema of the arguments, for editing them
    result: ToolResult | None = None  # the result to review
    diff: str = ""  # The changes it would make to files as a unified diff, if the tool can tell.
    told: tuple[str, ...] = ()  # Arguments fully contained in the diff, which can replace them.
    in_parts: bool = False  # whether single hunks of the diff can be chosen
    fingerprint: str | None = None  # fingerprint of the tool's description at that time
    asked: float = 0.0
    answer: Answer | None = None
    closed: str | None = None  # why the request is closed
    said: SaidFields = field(default=None, compare=False)

    @property
    def open(self) -> bool:
        return self.answer is None and self.closed is None


def allow_once(arguments: Arguments | None = None) -> Answer:
    """Run the call this time, with `arguments` if you edited them."""
    return Answer("allow", arguments=arguments)


def allow_for_conversation(*rules: Rule) -> Answer:
    """Run the call, and keep its rule in this conversation. `rules` names other rules that the question
    offers."""
    return Answer("allow", scope="conversation", rules=rules)


def allow_for_an_hour(*rules: Rule) -> Answer:
    """Run the call, and keep its rule for an hour."""
    return Answer("allow", scope="hour", rules=rules)


def allow_always(*rules: Rule) -> Answer:
    """Run the call, and keep its rule until you revoke it."""
    return Answer("allow", scope="always", rules=rules)


def reject(reason: str | None = None, *, scope: Scope = "once", rules: tuple[Rule, ...] = ()) -> Answer:
    """Do not run the call. The model reads the reason. With a scope, similar calls are denied from now on."""
    return Answer("reject", scope=scope, reason=reason, rules=rules)


def nobody_to_ask() -> Answer:
    """For programs that run alone: the call does not run, and the model reads why."""
    return Answer("reject", by=NOBODY)


def stop(reason: str | None = None) -> Answer:
    """Run neither this call nor any other of this turn. The model gives its answer."""
    return Answer("stop", reason=reason)


def release(text: str | None = None) -> Answer:
    """Show the result to the model. With `text`, show that instead."""
    return Answer("release", value=text)


def withhold(reason: str | None = None) -> Answer:
    """Hide the result from the model. It learns only that a result exists."""
    return Answer("withhold", reason=reason)


def reply(value: JsonValue) -> Answer:
    """Answer a tool's question."""
    return Answer("reply", value=value)
