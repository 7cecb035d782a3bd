"""Decide whether a call may run. No other module decides it. All inputs arrive as values.

Called when a call arrives, when a user has edited it, and when a process resumes it. Also called when a tool
finds something new (a file in a search, a redirect), and when a grant could settle other approval requests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, get_args

from dragoman.messages.questions import Action, Answer, Cause, Mode, Rule
from dragoman.sentences import sentence, together
from dragoman.tools.cage.policy import NET, OUTSIDE, PERMISSIONS, READ, WRITE, Cage, path_patterns
from dragoman.tools.permissions import Ruling, changes_files, changes_program, decide, matches
from dragoman.tools.tool import Review, Tool


@dataclass(slots=True, frozen=True)
class Reason:
    """Why Dragoman asks the user. `text` is the question in the words of its source, if it has any."""

    cause: Cause
    text: str = ""


@dataclass(slots=True, frozen=True)
class Run:
    """The call may run. `because` records the reason for later. `cage` is what its programs run in (K4)."""

    because: str
    cage: Cage | None = None


@dataclass(slots=True, frozen=True)
class Ask:
    """The call may run if a user approves it. A reason that no grant removes comes first."""

    reasons: tuple[Reason, ...]
    format: str = ""  # the pattern for a `format` rule, if the call was guessed from text
    cage: Cage | None = None  # the cage of its programs, if it runs
    beyond: tuple[Rule, ...] = ()  # requests beyond the cage that no rule allows
    line: bool = True  # whether the user is also asked about what the call does inside the cage

    @property
    def because(self) -> Cause:
        return self.reasons[0].cause


@dataclass(slots=True, frozen=True)
class Refuse:
    """The call does not run, and no answer changes that. The model reads the text."""

    text: str


Verdict: TypeAlias = Run | Ask | Refuse


@dataclass(slots=True, frozen=True, kw_only=True)
class Authority:
    """Everything besides the call itself that affects the decision."""

    rules: Sequence[Rule] = ()  # from the settings, then from the agent: the last match wins
    bounds: Sequence[Rule] = ()  # nothing overrides these
    # rules of the agents this call runs for: what they deny or ask stays denied or asked
    outer: Sequence[Sequence[Rule]] = ()
    grants: Sequence[Rule] = ()  # rules that a user allowed or denied by an answer
    mode: Mode = "auto"
    pinned: str | None = (
        None  # the fingerprint of the tool's definition when it was first offered, or last allowed
    )
    wishes: Sequence[Reason] = ()  # approvals that plugins request
    format: str = (
        ""  # for a call guessed from text (D7): the format and the model, as `format` rules name them
    )
    cage: Cage | None = None  # for its programs; None: without a cage
    beyond: Sequence[Rule] = ()  # requests of the call beyond the cage
    impossible: str = ""  # why something that the call requests cannot be opened


def authorize(tool: Tool, patterns: Sequence[str], authority: Authority) -> Verdict:
    """Return whether this tool may be used on these patterns.

    Denials from any source come first. Then all reasons to ask are collected. A grant removes only the reason
    that comes from the rules.
    """
    bound = _bound(tool, patterns, authority.bounds)
    cage, outside = _opened(authority), any(rule.permission == OUTSIDE for rule in authority.beyond)
    if tool.caged and cage is not None and cage.missing:
        if cage.settings.use == "always":
            return Refuse(sentence("cage.missing", why=cage.missing))
        cage = None
    weakest = [_unasked(tool)] if tool.caged and cage is not None and cage.runs_unasked else []
    sets = [[*weakest, *rules] for rules in (authority.rules, *authority.outer)]
    said = [decide_with_grants(tool.permission, patterns, rules, authority.grants) for rules in sets]
    for ruling in (bound, *said):
        if ruling.action == "deny":
            return Refuse(f"A rule forbids {tool.permission} here: the call did not run.")
    asked = [
        (rule, decide_beyond(rule.permission, _patterns_beyond(rule), authority)) for rule in authority.beyond
    ]
    if cage is not None and authority.impossible:
        return Refuse(sentence("cage.impossible", why=authority.impossible))
    for rule, ruling in asked if cage is not None else ():
        if ruling.action == "deny" or (cage is not None and not cage.opens(rule)):
            return Refuse(f"A rule forbids {rule.permission} on {rule.pattern}: the call did not run.")
    wanted = tuple(rule for rule, ruling in asked if ruling.action == "ask") if cage is not None else ()
    if outside:
        cage = None
    loop = _loop(tool, authority)
    if loop.action == "deny":
        return Refuse(f"A rule forbids {tool.name} to repeat itself: the call did not run.")
    format = _format(authority)
    if format.action == "deny":
        return Refuse(f"A rule says that {authority.format.partition(' ')[0]} is text here.")
    reasons = []
    if format.action == "ask":
        reasons.append(Reason("format", _looks_like(tool, authority.format)))
    if tool.fingerprint is not None and authority.pinned not in (None, tool.fingerprint):
        reasons.append(Reason("redefined", _redefined(tool)))
    reasons += [wish for wish in authority.wishes if wish.cause != "loop" or loop.action != "allow"]
    if bound.action == "ask" or changes_program(tool.permission, patterns):
        reasons.append(Reason("bounds"))
    if authority.mode in ("ask", "manual"):
        reasons.append(Reason("mode"))
    line = any(ruling.action == "ask" for ruling in said)
    if line or wanted:
        reasons.append(Reason("rule", _why_asked(wanted, cage if tool.caged and line else None)))
    if reasons:
        return Ask(tuple(reasons), authority.format, cage, wanted, line)
    for rules, ruling in zip(sets, said, strict=True):
        if decide(tool.permission, patterns, rules).action != "allow":
            return Run(_because("grant", ruling), cage)
    return Run(_because("rule", said[0]), cage)


def decide_beyond(permission: str, patterns: Sequence[str], authority: Authority) -> Ruling:
    """Return what the rules decide about one thing outside the cage, checked under each of its names.

    A rule on everything does not apply to it. A denial under any name denies it.
    """
    said = [_named(permission, pattern, authority) for pattern in patterns]
    first = {ruling.action: ruling for ruling in reversed(said)}
    return first.get("deny") or first.get("allow") or said[0]


def authorize_beyond(rule: Rule, authority: Authority) -> Verdict:
    """Return whether a running call may reach one thing outside its cage."""
    ruling = decide_beyond(rule.permission, _patterns_beyond(rule), authority)
    match ruling.action:
        case "deny":
            return Refuse(f"A rule forbids {rule.permission} on {rule.pattern}.")
        case "ask":
            return Ask((Reason("rule"),))
        case "allow":
            return Run(_because("rule", ruling))


def _opened(authority: Authority) -> Cage | None:
    """Return the cage with the rules that open it, unless a stricter rule closes it again.

    It also contains what the call requests. The call gets that only if the request is allowed.
    """
    if authority.cage is None:
        return None
    stricter = [
        rule for rules in (*authority.outer, authority.bounds) for rule in rules if rule.action != "allow"
    ]
    given = [rule for rule in (*authority.grants, *authority.beyond) if rule.action == "allow"]
    every = [*authority.rules, *stricter, *authority.grants]
    denied = [rule for rule in every if rule.action == "deny"]
    rules = (
        rule
        for rule in (*authority.rules, *stricter, *given, *denied)
        if rule.permission in PERMISSIONS or (rule.action != "allow" and _means_cage(rule))
    )
    return replace(authority.cage, rules=tuple(rules))


def _means_cage(rule: Rule) -> bool:
    """Return whether a rule applies to the cage.

    `cage.*` does. A rule on everything does only if it denies.
    """
    if rule.permission == "*" and rule.action == "ask":
        return False
    return any(matches(rule.permission, one) for one in PERMISSIONS)


def _patterns_beyond(rule: Rule) -> tuple[str, ...]:
    if rule.permission == NET:
        host, colon, _ = rule.pattern.rpartition(":")
        return (rule.pattern, host) if colon else (rule.pattern,)
    return path_patterns(rule.pattern) if rule.permission in (READ, WRITE) else (rule.pattern,)


def _unasked(tool: Tool) -> Rule:
    """Return the weakest rule of all: any other rule on the tool overrides it (K3)."""
    return Rule(tool.permission, "*", "allow", sentence("rule.cage"))


def _why_asked(wanted: Sequence[Rule], cage: Cage | None) -> str:
    texts = [cage.doubt] if cage is not None and cage.doubt else []
    for rule in wanted:
        match rule.permission:
            case "cage.net":
                texts.append(sentence("cage.wants_net", pattern=rule.pattern))
            case "cage.read":
                texts.append(sentence("cage.wants_read", pattern=rule.pattern))
            case "cage.write":
                texts.append(sentence("cage.wants_write", pattern=rule.pattern))
            case _:
                texts.append(sentence("cage.wants_outside", pattern=rule.pattern))
    return together(texts) if texts else ""


def decide_with_grants(
    permission: str, patterns: Sequence[str], rules: Sequence[Rule], grants: Sequence[Rule]
) -> Ruling:
    """Return what the rules decide, then the grants if the rules ask. A denial by either is final, regardless
    of which was given later."""
    ruled = decide(permission, patterns, rules)
    given = decide(permission, patterns, [rule for rule in grants if rule.action == "deny"])
    if ruled.action != "deny" and given.action == "deny":
        return given
    return decide(permission, patterns, [*rules, *grants]) if ruled.action == "ask" else ruled


def may_be_shown(tool: Tool, pattern: str, authority: Authority) -> bool:
    """Return whether an allowed tool may also show what it found on the way, such as a file in a folder.

    If no rule covers the find, the call's own permission covers it. If a rule denies it or asks, it is not
    shown.
    """
    found = replace(authority, mode="auto", pinned=None, wishes=(), format="")
    match authorize(tool, (pattern,), found):
        case Run():
            return True
        case Refuse():
            return False
        case Ask():
            sets = (authority.rules, *authority.outer)
            named = [
                decide(tool.permission, (pattern,), authority.bounds),
                *(decide_with_grants(tool.permission, (pattern,), rules, authority.grants) for rules in sets),
            ]
            return all(ruling.rule is None or ruling.action == "allow" for ruling in named)


def _bound(tool: Tool, patterns: Sequence[str], bounds: Sequence[Rule]) -> Ruling:
    """Return what the bounds decide. Without a matching bound, allow. Bounds on writing apply to every tool
    that changes files."""
    permissions = dict.fromkeys(
        (tool.permission, "files.write") if changes_files(tool.permission) else (tool.permission,)
    )
    rulings = [
        decide(permission, (pattern,), bounds) for permission in permissions for pattern in patterns or ("*",)
    ]
    strictest: tuple[Action, ...] = ("deny", "ask")
    for action in strictest:
        for ruling in rulings:
            if ruling.rule is not None and ruling.action == action:
                return ruling
    return Ruling("allow")


def _loop(tool: Tool, authority: Authority) -> Ruling:
    """Return what `loop` rules decide about a tool that repeats itself."""
    repeats = any(wish.cause == "loop" for wish in authority.wishes)
    return _named("loop", tool.name, authority) if repeats else Ruling("allow")


def _format(authority: Authority) -> Ruling:
    """Return what `format` rules decide about text that looks like a call."""
    return _named("format", authority.format, authority) if authority.format else Ruling("allow")


def _named(permission: str, pattern: str, authority: Authority) -> Ruling:
    """Return what the rules that name this permission decide. A rule on everything does not name it.

    The strictest of all rule sets wins, and no grant overrides a denial.
    """

    def naming(rules: Sequence[Rule]) -> list[Rule]:
        return [rule for rule in rules if rule.permission == permission]

    grants, bound = naming(authority.grants), decide(permission, (pattern,), naming(authority.bounds))
    said = [
        decide_with_grants(permission, (pattern,), naming(rules), grants)
        for rules in (authority.rules, *authority.outer)
    ]
    denials = [ruling for ruling in (bound, *said) if ruling.action == "deny"]
    asks = [ruling for ruling in said if ruling.action == "ask"]
    return next(iter((*denials, *asks, *said)))


def _looks_like(tool: Tool, format: str) -> str:
    name, _, model = format.partition(" ")
    return sentence("question.format", tool=tool.name, format=name, model=model)


def _because(source: str, ruling: Ruling) -> str:
    origin = ruling.rule.origin if ruling.rule is not None else ""
    where = sentence("because.origin", origin=origin) if origin else ""
    return sentence("because", kind=source, said=ruling.rule, where=where)


def _redefined(tool: Tool) -> str:
    """Ask again: the user allowed the tool by its earlier description, and the description has changed."""
    return sentence("question.redefined", tool=tool.name, description=tool.description.strip())


# Select the results that a user sees before the model: those of all tools, or by patterns of tool names.


ReviewPolicy: TypeAlias = Review | Mapping[str, Review]
"""One word for all tools, or one for each pattern: `{"shell": "always", "mcp.*": "on_error"}`."""

REVIEWS: tuple[Review, ...] = get_args(Review)  # from lenient to strict


def review_of(tool: Tool, *policies: ReviewPolicy | None, offered_as: str = "") -> Review:
    """Return the strictest review that the tool itself and these policies set, under any of the
    tool's names."""
    wanted = [tool.review]
    for policy in policies:
        if isinstance(policy, str):
            wanted.append(policy)
        elif policy is not None:
            wanted += [
                review for pattern, review in policy.items() if concerns_tool(pattern, tool, offered_as)
            ]
    return max(wanted, key=REVIEWS.index)


def concerns_tool(pattern: str, tool: Tool, offered_as: str = "") -> bool:
    """Return whether a pattern matches the tool's name, its permission, or the longer name it is offered by.

    A tool gets a longer name if another tool has the same one.
    """
    return any(matches(pattern, name) for name in (tool.name, tool.permission, offered_as) if name)


def wrong_with(policy: object) -> str:
    """Return why this is not a valid review policy. Empty if it is valid."""
    words = ", ".join(REVIEWS)
    if not isinstance(policy, Mapping):
        return "" if policy in REVIEWS else f"review {policy!r}: it is one of {words}, or a table of patterns"
    for pattern, review in policy.items():
        if not isinstance(pattern, str) or not pattern.strip():
            return f"review {pattern!r}: a pattern is a tool's name or permission, such as 'mcp.*'"
        if review not in REVIEWS:
            return f"review {pattern!r} = {review!r}: it is one of {words}"
    return ""


def answer_by_rule(verdict: Verdict | None, made: Answer) -> Answer | None:
    """Return the answer that the current rules give to an approval request that exists because of rules.

    The answer lasts as long as `made` does. None if a user still has to answer.
    """
    match verdict:
        case Run():
            return replace(made, verdict="allow")
        case Refuse():
            return replace(made, verdict="reject", reason="a rule denies it now")
    return None
