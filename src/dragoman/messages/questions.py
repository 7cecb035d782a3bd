"""Questions to a person, the answers they give, and the rules that make a question unnecessary."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pydantic import JsonValue

from dragoman.messages.message import Arguments, ToolResult
from dragoman.sentences import SaidFields, Spoken

Action: TypeAlias = Literal["allow", "ask", "deny"]

Mode: TypeAlias = Literal["auto", "ask", "manual", "off"]
"""Who decides about calls: the rules; a person, for each; a person, who runs each by hand; there are none."""

MODES: tuple[Mode, ...] = ("auto", "ask", "manual", "off")  # the stricter, the later

Kind: TypeAlias = Literal[
    "approve",  # may this call run?
    "run",  # manual mode: the person runs it by a click
    "loop",  # the model repeats itself: once more?
    "interrupted",  # the process died while it ran: run it again?
    "review",  # may the model see this result?
    "tool",  # the tool itself asks
]

Cause: TypeAlias = Literal[
    "rule",  # a rule says ask, or none says anything: the only cause that a grant takes away
    "bounds",  # it would change what this program, or another, executes or obeys later
    "mode",  # every call is asked about
    "plugin",  # a plugin wants a person to look
    "redefined",  # the tool describes itself in other words than when it was first offered, or last allowed
    "loop",  # the model repeats itself
    "format",  # text looks like a call in a format that the model is not known to write
    "interrupted",  # the process died while it ran
    "review",  # the result is to be looked at
    "tool",  # the tool has a question of its own
]

Verdict: TypeAlias = Literal["allow", "reject", "stop", "release", "withhold", "reply"]

Scope: TypeAlias = Literal["once", "conversation", "hour", "always"]

NOBODY = "nobody"  # who answers where there is no person

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
    """`permission` is a tool's permission name, `pattern` what the call touches. The last matching rule
    decides."""

    permission: str
    pattern: str = "*"
    action: Action = "ask"
    origin: str = field(default="", compare=False)  # the file and line, or the code, it comes from
    said: SaidFields = field(default=None, compare=False)

    def __str__(self) -> str:
        on = "" if self.pattern == "*" else f" on {self.pattern}"
        return f"{self.action} {self.permission}{on}"


@dataclass(slots=True, frozen=True)
class Grant:
    """A rule somebody gave by an answer: listed, and revocable. Without a conversation it holds in all."""

    id: str
    rule: Rule
    conversation: str | None = None
    created: float = 0.0
    user: str | None = None  # whose it is; None: the person at the machine
    workspace: str | None = None  # the folder it was given in: elsewhere the same names are other files
    expires: float | None = None  # the time after which it counts no more


@dataclass(slots=True, frozen=True)
class Answer:
    """A user's decision. The functions below make one."""

    verdict: Verdict
    scope: Scope = "once"
    arguments: Arguments | None = None  # run with these instead
    rules: tuple[Rule, ...] = ()  # the rules to keep, of those the question offers; none: its own
    reason: str | None = None  # for the model
    value: JsonValue = None  # the reply to a tool's question, or the text to release instead
    hash: str | None = None  # of the arguments the person saw; checked where given
    by: str | None = None
    at: float = 0.0
    lent: bool = False  # by another user than the sender of the turn: it leaves nothing behind for the sender


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
    server: str | None = None  # where the tool lives, if not here
    because: Cause = "rule"  # why it is asked
    patterns: tuple[str, ...] = ()  # what the rules were asked about
    rules: tuple[Rule, ...] = ()  # what "always" would add; empty where it would add nothing
    wider: tuple[Rule, ...] = ()  # what it could add instead, each covering more than this call
    choices: tuple[str, ...] = ()
    free: bool = False  # whether an answer in the person's own words does as well as one of the choices
    schema: dict[str, JsonValue] = field(default_factory=dict)  # of the arguments, for whoever edits them
    result: ToolResult | None = None  # what is to be reviewed
    diff: str = ""  # what it would do to files, as a unified diff, where the tool can tell
    told: tuple[str, ...] = ()  # arguments of which every character is in the diff: it can stand for them
    in_parts: bool = False  # whether some hunks of that can be chosen
    fingerprint: str | None = None  # how the tool described itself when this was asked
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
    """Do not run the call. The model reads the reason. With a scope, calls like it are denied from now on."""
    return Answer("reject", scope=scope, reason=reason, rules=rules)


def nobody_to_ask() -> Answer:
    """For programs that run alone: the call does not run, and the model reads why."""
    return Answer("reject", by=NOBODY)


def stop(reason: str | None = None) -> Answer:
    """Run neither this call nor any other of this turn. The model gives its answer."""
    return Answer("stop", reason=reason)


def release(text: str | None = None) -> Answer:
    """Show the result to the model; with `text`, show that instead."""
    return Answer("release", value=text)


def withhold(reason: str | None = None) -> Answer:
    """Hide the result from the model. It learns only that a result exists."""
    return Answer("withhold", reason=reason)


def reply(value: JsonValue) -> Answer:
    """Answer a tool that asked."""
    return Answer("reply", value=value)
