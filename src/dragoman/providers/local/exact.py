"""Exactness for a model that copies almost right: expressions, long words and quotations as they were typed,
and no number in a sentence about results that is in none of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher

from pydantic import JsonValue

from dragoman.messages.parts import Arguments

SHORTEST = 6  # characters of a copy in which a slip can be told from another word
ALIKE = 0.85  # how much of it is right
SLIP = 2  # characters that may be missing, or too many

_OPERATORS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-"})
_NUMBER = r"\d+(?:\.\d+)?"
_NAMES = "sqrt|sin|cos|log|exp|round|abs|min|max|pi|e"
_EXPRESSION = re.compile(
    rf"(?<![\w.$€£/:-])[-(]*(?:{_NUMBER}|(?:{_NAMES})\b)(?:(?:\s*(?:\*\*|//|[-+*/%^(),])\s*)+"
    rf"(?:{_NUMBER}|(?:{_NAMES})\b))+[)\s]*"
)
_MARKS = "\"'“”‘’`«»„()[]{}<>.,;:!?。，！？"
_QUOTATION = re.compile(r"[\"“„«']([^\"“”„«»'\n]{6,})[\"”“»']")
_FIGURES = re.compile(r"\d[\d.,:]*")


def typed_expression(request: str) -> str:
    """The expression in a request, if it has one and no other number: "(12 + 8) * 3" of "What is …?"."""
    text = request.translate(_OPERATORS)
    found = [match for match in _EXPRESSION.finditer(text) if re.search(r"\d", match[0])]
    if len(found) != 1 or re.search(r"\d", text[: found[0].start()] + text[found[0].end() :]):
        return ""
    expression = found[0][0].strip().rstrip("=").strip()
    others = text[: found[0].start()] + text[found[0].end() :]
    if re.search(
        r"%|percent|prozent|squared|cubed|half|twice|root|quadrat|wurzel|百分|平方", others, re.IGNORECASE
    ):
        return ""
    if re.fullmatch(rf"{_NUMBER}(?:[-/]{_NUMBER}){{1,2}}", expression) or "," in re.sub(
        r"\(.*\)", "", expression
    ):
        return ""  # a date, a fraction of a page, or a number with its thousands
    balanced = expression.count("(") == expression.count(")")
    return expression.replace("^", "**") if balanced else ""


def restore_copies(arguments: Arguments, read: str) -> Arguments:
    """The arguments, with each word or quotation that was copied with a slip as it stands in the text."""
    words = [word.strip(_MARKS) for word in read.split()]
    known = [word for word in words if len(word) >= SHORTEST] + _QUOTATION.findall(read)

    def restored(value: JsonValue) -> JsonValue:
        match value:
            case str() if len(value) >= SHORTEST and value not in read:
                return _nearest(value, known) or value
            case list():
                return [restored(item) for item in value]
            case dict():
                return {name: restored(item) for name, item in value.items()}
            case _:
                return value

    return {name: restored(value) for name, value in arguments.items()}


def _nearest(value: str, known: list[str]) -> str:
    """The one text that this is a slip of. Of words that are all letters nobody can know."""
    near = {
        text
        for text in known
        if abs(len(text) - len(value)) <= SLIP
        and not (text.isalpha() and value.isalpha())
        and SequenceMatcher(None, text, value, autojunk=False).ratio() >= ALIKE
    }
    return near.pop() if len(near) == 1 else ""


def tells_truly(sentence: str, *sources: str) -> bool:
    """Whether every number of a sentence is in what it speaks of."""
    known = {beginning for number in _numbers(" ".join(sources)) for beginning in _beginnings(number)}
    return all(number in known for number in _numbers(sentence))


def _numbers(text: str) -> Iterator[str]:
    """The numbers of a text, without the marks between their thousands."""
    yield from (match[0].rstrip(".,:").replace(",", "") for match in _FIGURES.finditer(text))


def _beginnings(number: str) -> Iterator[str]:
    """07:54:16 may be told as 07:54."""
    parts = number.split(":")
    yield from (":".join(parts[:count]) for count in range(1, len(parts) + 1))
