"""Parse a user's input at an approval request: its keys, the rules to keep, and the answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from dragoman.cli.terminal.text import count, parse_json
from dragoman.messages.questions import (
    Answer,
    Kind,
    Question,
    Rule,
    Scope,
    allow_once,
    reject,
    release,
    stop,
    withhold,
)
from dragoman.tools.permissions import rules_in_words
from dragoman.visible_text import visible


@dataclass(slots=True, frozen=True)
class MenuItem:
    """A key, its synonyms, and its label in the menu."""

    key: str
    words: tuple[str, ...]
    label: str


ONCE = MenuItem("y", ("yes", "once", "allow", "run"), "once")
CONVERSATION = MenuItem("c", ("conversation",), "this conversation")
HOUR = MenuItem("h", ("hour",), "an hour")
ALWAYS = MenuItem("a", ("always",), "always")
DENY = MenuItem("d", ("deny",), "deny (dh an hour, da always)")
EDIT = MenuItem("e", ("edit",), "edit [JSON]")
PART = MenuItem("p", ("part", "hunks"), "part of it [1 3]")
REJECT = MenuItem("n", ("no", "reject"), "reject [N why]")
STOP = MenuItem("s", ("stop",), "stop the calls [S why]")
RELEASE = MenuItem("r", ("release", "yes", "y"), "release")
WITHHOLD = MenuItem("w", ("withhold", "no", "n"), "withhold [W why]")
MORE = MenuItem("m", ("more",), "show everything")

_MENUS: dict[Kind, tuple[MenuItem, ...]] = {
    "approve": (ONCE, CONVERSATION, HOUR, ALWAYS, DENY, PART, EDIT, REJECT),
    "run": (replace(ONCE, label="run it"), PART, EDIT, REJECT),
    "loop": (replace(ONCE, label="once more"), CONVERSATION, STOP, REJECT),
    "interrupted": (replace(ONCE, label="run it again"), replace(REJECT, label="leave it [N why]")),
    "review": (RELEASE, EDIT, WITHHOLD),
}
_KEEPS_A_RULE = (CONVERSATION, HOUR, ALWAYS, DENY)
_SCOPES: dict[str, Scope] = {"c": "conversation", "h": "hour", "a": "always"}
_NUMBER_FIRST = re.compile(r"^([0-9]+)([cha])$")
_KEPT = re.compile(r"(d?)([cha]?) ?([0-9]*)")

Choice: TypeAlias = Answer | tuple[int, ...] | Literal["edit", "part", "why", "more"]
"""The meaning of the input: an answer, hunks of the diff (counted from 0), an edit, a part of the changes, a
rejection without a reason yet, or a request to show everything.
"""


class NotAChoice(ValueError):
    """Invalid input. The text names valid input."""


def menu(question: Question) -> tuple[MenuItem, ...]:
    """Return the possible answers. Keys that keep a rule are left out if no rule would help."""
    items = tuple(one for one in _MENUS[question.kind] if one is not PART or question.in_parts)
    if question.kind == "approve" and not question.rules:
        return tuple(item for item in items if item not in _KEEPS_A_RULE)
    return items


def menu_lines(question: Question, hidden: int = 0) -> Iterator[str]:
    """Yield the number of hidden lines, the numbered rules if there are several, and the keys."""
    if hidden:
        yield f"{MORE.key} {MORE.label}: {count(hidden, 'more line')}. Read them before you allow it"
    options = rule_options(question)
    for number, rules in enumerate(options, 1):
        if len(options) > 1:
            yield f"  {number}  {visible(rules_in_words(rules))}"
    items = menu(question)
    if len(options) > 1:
        kept = " · ".join(f"{one.key} {one.label}" for one in items if one in _KEEPS_A_RULE)
        yield f"{kept}: rule 1, or with a number before the key: 2a"
        items = tuple(one for one in items if one not in _KEEPS_A_RULE)
    yield " · ".join(f"{one.key} {_label(one, question)}" for one in items)


def instant_keys(question: Question, hidden: int = 0) -> str:
    """Return the keys that answer immediately: nothing else is typed after them."""
    keys = [one.key for one in menu(question) if one not in (DENY, EDIT, PART)]
    return "".join([*keys, *(MORE.key if hidden else "")])


def parse_choice(question: Question, line: str, hidden: int = 0) -> Choice:
    """Parse `y`, `a2`, `dh`, `n because …`. Raises NotAChoice for other input, and for any approval while
    lines are `hidden`."""
    choice = _parse(question, line)
    is_no = choice.verdict not in ("allow", "release") if isinstance(choice, Answer) else choice == "why"
    if hidden and not is_no and choice != "more":  # (P14)
        raise NotAChoice(
            f"You have not seen {count(hidden, 'line')}. Type {MORE.key} to read everything first."
        )
    return choice


def _parse(question: Question, line: str) -> Choice:
    line = _NUMBER_FIRST.sub(r"\2\1", line.strip())
    word, _, rest = line.partition(" ")
    if word.lower() in (MORE.key, *MORE.words):
        return "more"
    items = menu(question)
    if question.rules and question.kind == "approve" and (kept := _kept(question, line)) is not None:
        return kept
    item = next((one for one in items if word and word.lower() in (one.key, *one.words)), None)
    why = rest.strip() or None
    match item.key if item is not None else None:
        case "y":
            return allow_once()
        case "c":
            return Answer("allow", scope="conversation")
        case "e":
            return _parse_edit(question, why) if why else "edit"
        case "p":
            return _parse_hunks(why) if why else "part"
        case "n" if word == "N":
            return reject(why) if why else "why"
        case "n":
            return reject(why)
        case "s":
            return stop(why)
        case "r":
            return release()
        case "w":
            return withhold(why)
        case _:
            raise NotAChoice(f"Type one of {', '.join(one.key for one in items)}.")


def _parse_edit(question: Question, text: str) -> Answer:
    if question.kind == "review":
        return release(text)
    try:
        arguments = parse_json(text)
    except ValueError as error:
        raise NotAChoice(f"Invalid JSON: {error}") from None
    if not isinstance(arguments, dict):
        raise NotAChoice("Arguments must be an object: { … }.")
    return allow_once(arguments)


def _parse_hunks(text: str) -> tuple[int, ...]:
    numbers = text.replace(",", " ").split()
    if not all(one.isdecimal() for one in numbers):
        raise NotAChoice("Type the numbers of the changes to make: p 1 3 makes the first and the third.")
    return tuple(int(one) - 1 for one in numbers)


def _kept(question: Question, line: str) -> Answer | None:
    """Return an answer that keeps a rule, or None for other input."""
    typed = line.strip().lower()
    for item in _KEEPS_A_RULE:
        for word in item.words:
            typed = re.sub(rf"^{word}\b", item.key, typed)
    found = _KEPT.fullmatch(typed)
    if found is None or not (found[1] or found[2]):
        return None
    options = rule_options(question)
    number = int(found[3] or 1)
    if not 1 <= number <= len(options):
        many = f"Choose 1 to {len(options)}." if len(options) > 1 else "The request offers one rule."
        raise NotAChoice(f"Unknown rule {number}. {many}")
    scope, rules = _SCOPES.get(found[2], "conversation"), options[number - 1]
    if found[1]:
        return reject(scope=scope, rules=rules)
    return Answer("allow", scope=scope, rules=rules)


def rule_options(question: Question) -> list[tuple[Rule, ...]]:
    """Return the rules that can be kept: for exactly this call, or for more."""
    if question.kind != "approve" or not question.rules:
        return []
    return [question.rules, *((rule,) for rule in question.wider)]


def _label(item: MenuItem, question: Question) -> str:
    if item is ALWAYS and question.rules:
        return f"always ({visible(rules_in_words(question.rules))})"
    return item.label
