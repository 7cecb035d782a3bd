"""Define what a case expects, and compare it with a turn. Rubrics and functions are judged elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import islice

from pydantic import JsonValue

from dragoman.messages.message import canonical
from dragoman.messages.usage import Usage
from dragoman.redaction import HIDDEN, redact_value

_STRICT = {"extra": "forbid"}  # A misspelled expectation would otherwise expect nothing.


@dataclass(slots=True, frozen=True)
class MadeCall:
    """A call that a turn made, with its result as the model read it."""

    tool: str
    arguments: dict[str, JsonValue] = field(default_factory=dict)
    result: JsonValue = None
    failed: bool = False
    unrecorded: bool = False  # the recording has no result for it
    simulated: bool = False  # a model wrote the result

    __pydantic_config__ = _STRICT

    @property
    def identity(self) -> str:
        """A string that is equal for calls of the same tool with equal arguments."""
        return f"{self.tool} {canonical(self.arguments)}"

    def is_same(self, made: MadeCall) -> bool:
        """Return whether the other call repeats this recorded one."""
        return self.tool == made.tool and same(self.arguments, made.arguments)


@dataclass(slots=True, frozen=True)
class Answered:
    """The result of a turn: answer, calls and usage. `seconds` counts only the time of the model."""

    model: str = ""
    text: str = ""
    calls: tuple[MadeCall, ...] = ()
    rounds: int = 0
    input: int = 0
    output: int = 0
    cost: float | None = None
    seconds: float = 0.0
    error: str = ""

    __pydantic_config__ = _STRICT

    @property
    def usage(self) -> Usage:
        return Usage(self.input, self.output, cost=self.cost)


@dataclass(slots=True, frozen=True)
class Divergence:
    """The first call in which two answers differ. None means that one of them has no call there."""

    at: int
    before: MadeCall | None
    after: MadeCall | None

    def __str__(self) -> str:
        def shown(call: MadeCall | None) -> str:
            return call.identity if call is not None else "no call"

        return f"call {self.at + 1}: {shown(self.before)} → {shown(self.after)}"


@dataclass(slots=True, frozen=True)
class ExpectedCall:
    """An expected call of a tool. `schema` is a JSON schema for the arguments, as an alternative to
    `arguments`."""

    tool: str
    arguments: dict[str, JsonValue] | None = None
    schema: dict[str, JsonValue] | None = None

    __pydantic_config__ = _STRICT

    def __post_init__(self) -> None:
        _check_schema(self.schema)

    def is_met(self, call: MadeCall, *, exactly: bool) -> bool:
        """Return whether this is the call. Without `exactly`, the call can have more arguments."""
        if call.tool != self.tool:
            return False
        if self.schema is not None and _faults(call.arguments, self.schema):
            return False
        if self.arguments is None:
            return True
        given = (
            call.arguments if exactly else {n: v for n, v in call.arguments.items() if n in self.arguments}
        )
        return same(self.arguments, given)

    def __str__(self) -> str:
        if self.schema is not None:
            return f"{self.tool} {canonical(self.schema)}"
        return self.tool if self.arguments is None else f"{self.tool} {canonical(self.arguments)}"


@dataclass(slots=True, frozen=True)
class MostUsed:
    """Upper limits for the usage of a turn."""

    rounds: int | None = None
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None

    __pydantic_config__ = _STRICT


@dataclass(slots=True, frozen=True)
class Rubric:
    """Instructions for a judging model. The majority of its votes counts. `model` None stands for the run's
    judge."""

    text: str
    model: str | None = None
    votes: int = 1

    __pydantic_config__ = _STRICT


@dataclass(slots=True, frozen=True)
class Expected:
    """The expectations of a case. All given ones must be met.

    `exactly` lists the calls in order, and `any_order` lists them in any order. An empty list expects no
    calls. The calls must include `at_least` and must not include `never`. `changed` expects an answer that
    differs from the recorded one. `checks` are names of functions that the run provides.
    """

    equals: str | None = None
    contains: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    schema: dict[str, JsonValue] | None = None
    exactly: tuple[ExpectedCall, ...] | None = None
    any_order: tuple[ExpectedCall, ...] | None = None
    at_least: tuple[ExpectedCall, ...] = ()
    never: tuple[ExpectedCall, ...] = ()
    changed: bool = False
    most: MostUsed | None = None
    rubrics: tuple[Rubric, ...] = ()
    checks: tuple[str, ...] = ()

    __pydantic_config__ = _STRICT

    def __post_init__(self) -> None:
        _check_schema(self.schema)


@dataclass(slots=True, frozen=True)
class Vote:
    """One vote of a judge."""

    passed: bool
    reason: str


@dataclass(slots=True, frozen=True)
class Met:
    """Whether an expectation was met, with the reason if not. A judgment also has `prompt`, `model` and
    `votes`."""

    name: str
    passed: bool
    reason: str = ""
    prompt: str = ""
    model: str = ""
    votes: tuple[Vote, ...] = ()


def same(kept: JsonValue, made: JsonValue) -> bool:
    """Return whether two values are equal, ignoring secrets that the case keeps hidden."""
    wanted = canonical(kept)
    return canonical(made) == wanted or (HIDDEN in wanted and canonical(redact_value(made)) == wanted)


def diverges(before: Answered, after: Answered) -> Divergence | None:
    """Return the first call in which two answers differ, or None if all calls are equal."""
    for at in range(max(len(before.calls), len(after.calls))):
        one = before.calls[at] if at < len(before.calls) else None
        other = after.calls[at] if at < len(after.calls) else None
        if one is None or other is None or not one.is_same(other):
            return Divergence(at, one, other)
    return None


def compare_with(expected: Expected, answered: Answered, recorded: Answered | None) -> Iterator[Met]:
    """Yield the results of all expectations that need neither a judge nor a function."""
    text = answered.text
    if expected.equals is not None:
        yield _met("equals", text.strip() == expected.equals.strip(), f"the answer is {_short(text)}")
    for part in expected.contains:
        yield _met("contains", part in text, f"{part!r} is not in the answer {_short(text)}")
    for part in expected.lacks:
        yield _met("lacks", part not in text, f"{part!r} is in the answer {_short(text)}")
    if expected.schema is not None:
        yield _fits_schema(text, expected.schema)
    yield from _calls_met(expected, answered.calls)
    if expected.changed and recorded is not None:
        as_it_was = same(recorded.text.strip(), text.strip())
        if not text.strip():  # The answer consists of calls only.
            as_it_was = as_it_was and diverges(recorded, answered) is None
        yield _met("changed", not as_it_was, "the answer is as it was recorded")
    if expected.most is not None:
        yield from _within(expected.most, answered)
    if missing := [call.identity for call in answered.calls if call.unrecorded]:
        yield Met("recorded", False, f"no result is recorded for {', '.join(missing)}")


def _calls_met(expected: Expected, calls: Sequence[MadeCall]) -> Iterator[Met]:
    made = ", ".join(call.identity for call in calls) or "no calls"
    if expected.exactly is not None:
        pairs = zip(expected.exactly, calls, strict=False)
        fits = len(calls) == len(expected.exactly) and all(w.is_met(c, exactly=True) for w, c in pairs)
        yield _met("exactly", fits, f"expected {_listed(expected.exactly)}, made {made}")
    if expected.any_order is not None:
        fits = len(calls) == len(expected.any_order) and not _unmet(expected.any_order, calls, exactly=True)
        yield _met("any_order", fits, f"expected {_listed(expected.any_order)}, made {made}")
    if expected.at_least:
        unmet = _unmet(expected.at_least, calls, exactly=False)
        yield _met("at_least", not unmet, f"expected {_listed(unmet)}, made {made}")
    for one in expected.never:
        wrong = [call.identity for call in calls if one.is_met(call, exactly=False)]
        yield _met("never", not wrong, f"made {', '.join(wrong)}")


def _unmet(wanted: Sequence[ExpectedCall], calls: Sequence[MadeCall], *, exactly: bool) -> list[ExpectedCall]:
    """Return the expectations that no call is left for, when as many as possible are met (augmenting
    paths)."""
    taken: dict[int, int] = {}  # from calls to expectations

    def place(one: int, seen: set[int]) -> bool:
        for at, call in enumerate(calls):
            if at not in seen and wanted[one].is_met(call, exactly=exactly):
                seen.add(at)
                if at not in taken or place(taken[at], seen):
                    taken[at] = one
                    return True
        return False

    return [wanted[one] for one in range(len(wanted)) if not place(one, set())]


def _within(most: MostUsed, answered: Answered) -> Iterator[Met]:
    used: Mapping[str, tuple[float | None, float | None]] = {
        "rounds": (most.rounds, answered.rounds),
        "tokens": (most.tokens, answered.usage.total),
        "cost": (most.cost, answered.cost),
        "seconds": (most.seconds, answered.seconds),
    }
    for name, (limit, value) in used.items():
        if limit is not None:
            shown = "unknown" if value is None else f"{value:g}"
            yield _met(name, value is not None and value <= limit, f"{shown}, at most {limit:g} expected")


def _fits_schema(text: str, schema: Mapping[str, JsonValue]) -> Met:
    try:
        value = json.loads(text)
    except ValueError:
        return Met("schema", False, f"the answer is not valid JSON: {_short(text)}")
    faults = _faults(value, schema)
    return _met("schema", not faults, "".join(faults))


def _faults(value: JsonValue, schema: Mapping[str, JsonValue]) -> list[str]:
    """Return the first fault, if any. The library takes 0.15 s to import, so it is imported only for
    schemas."""
    registry = import_module("referencing").Registry()  # An empty registry fetches no references.
    validator = import_module("jsonschema").Draft202012Validator(schema, registry=registry)
    try:
        return [str(error.message) for error in islice(validator.iter_errors(value), 1)]
    except Exception as error:  # A reference is missing or refers to itself, so no value can match.
        return [f"the schema cannot be followed: {error}"]


def _check_schema(schema: Mapping[str, JsonValue] | None) -> None:
    if schema is not None:
        jsonschema = import_module("jsonschema")
        try:
            jsonschema.Draft202012Validator.check_schema(schema)
        except jsonschema.SchemaError as error:
            raise ValueError(f"Invalid JSON schema: {error.message}") from error


def _met(name: str, passed: bool, reason: str) -> Met:
    return Met(name, passed, "" if passed else reason)


def _listed(calls: Sequence[ExpectedCall]) -> str:
    return ", ".join(map(str, calls)) or "no calls"


def _short(text: str) -> str:
    return repr(text if len(text) <= 120 else f"{text[:120]}…")
