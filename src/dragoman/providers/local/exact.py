"""Correct a small model's copying errors: expressions, long words and quotations become exactly what was
typed, and a sentence about results may contain only numbers from them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from pydantic import JsonValue

from dragoman.messages.message import Arguments, ToolCall

SHORTEST = 6  # minimum characters of a copy whose errors can be distinguished from another word
ALIKE = 0.85  # minimum similarity of a copy
SLIP = 2  # characters that may be missing, or extra
FEWEST_WORDS = 3  # minimum words of a text that is searched as a whole
ALIKE_SPAN = 0.9  # its minimum similarity
LONGEST_SPAN = 400  # its maximum characters
IDEOGRAPHS = range(3, 41)  # characters of a Chinese text in which a wrong one is searched

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
# without numerals, positions and pronouns, which can differ intentionally
_IDEOGRAPH = "(?![一二两三四五六七八九十百千半上下前后大小我你您他她它])[\u3400-\u9fff]"


def typed_expression(request: str) -> str:
    """Return the expression in a request, if it has one and no other number: "(12 + 8) * 3" of "What
    is …?"."""
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
        return ""  # a date, a page fraction, or a number with thousands separators
    balanced = expression.count("(") == expression.count(")")
    return expression.replace("^", "**") if balanced else ""


def restore_copies(arguments: Arguments, read: str) -> Arguments:
    """Return the arguments, with miscopied texts and long numbers replaced by what was read."""
    words = [word.strip(_MARKS) for word in read.split()]
    known = [word for word in words if len(word) >= SHORTEST - 1] + _QUOTATION.findall(read)
    numbers = {number for number in _numbers(read) if re.fullmatch(_NUMBER, number)}

    def restored(value: JsonValue) -> JsonValue:
        match value:
            case str() if "\n" not in value and value != value.strip(" "):
                return restored(value.strip(" "))
            case str() if value not in read and (text := _nearest_ideographs(value, read)):
                return text
            case str() if len(value) >= SHORTEST and value not in read:
                return _nearest(value, known) or _nearest_span(value, read) or value
            case int() | float() if not isinstance(value, bool) and value > 0:
                return _nearest_number(value, numbers)
            case list():
                return [restored(item) for item in value]
            case dict():
                return {name: restored(item) for name, item in value.items()}
            case _:
                return value

    return {name: restored(value) for name, value in arguments.items()}


def _nearest(value: str, known: list[str]) -> str:
    """Return the only text of which this is a miscopy. If both are all letters, only names can be judged."""
    near = {
        text
        for text in known
        if abs(len(text) - len(value)) <= SLIP
        and (
            _is_slip(value, text) if not (text.isalpha() and value.isalpha()) else _is_name_slip(value, text)
        )
    }
    return near.pop() if len(near) == 1 else ""


def _is_name_slip(value: str, text: str) -> bool:
    """Return whether a letter inside a name is missing or extra. A different end may be another form of the
    word."""
    longer, shorter = sorted((value, text), key=len, reverse=True)
    if len(longer) != len(shorter) + 1 or not text[0].isupper() or value[-1] != text[-1]:
        return False
    return any(longer[:at] + longer[at + 1 :] == shorter for at in range(1, len(shorter)))


def _nearest_span(value: str, read: str) -> str:
    """Return the consecutive words of which this is a miscopy, if there is exactly one place."""
    count = len(value.split())
    if count < FEWEST_WORDS or len(value) > LONGEST_SPAN:
        return ""
    found: dict[str, float] = {}
    for line in read.split("\n"):
        words = list(re.finditer(r"\S+", line))
        for size in (count - 1, count, count + 1):
            for at in range(len(words) - size + 1):
                text = line[words[at].start() : words[at + size - 1].end()]
                for span in {text, text.strip(_MARKS)}:
                    matcher = SequenceMatcher(None, span, value, autojunk=False)
                    if matcher.real_quick_ratio() >= ALIKE_SPAN and matcher.quick_ratio() >= ALIKE_SPAN:
                        found[span] = matcher.ratio()
    best = max(found.values(), default=0.0)
    nearest = [span for span, ratio in found.items() if ratio == best]
    return nearest[0] if best >= ALIKE_SPAN and len(nearest) == 1 else ""


def _nearest_ideographs(value: str, read: str) -> str:
    """Return the only text that differs from this in one Chinese character: rare ones are generated byte by
    byte."""
    if len(value) not in IDEOGRAPHS:
        return ""
    ways = [
        re.escape(value[:at]) + _IDEOGRAPH + re.escape(value[at + 1 :])
        for at, character in enumerate(value)
        if re.fullmatch(_IDEOGRAPH, character)
    ]
    near = set(re.findall(f"(?=({'|'.join(ways)}))", read)) if ways else set[str]()
    return near.pop() if len(near) == 1 else ""


def _nearest_number(value: float, known: set[str]) -> float:
    """Return the only long number that differs from this in one digit: missing, extra or wrong."""
    written = str(value)
    if len(written) < SHORTEST or any(float(number) == value for number in known):
        return value
    near = {number for number in known if abs(len(number) - len(written)) <= 1 and _is_slip(written, number)}
    if len(near) != 1:
        return value
    number = near.pop()
    return float(number) if "." in number else int(number)


def _is_slip(value: str, text: str) -> bool:
    return SequenceMatcher(None, text, value, autojunk=False).ratio() >= ALIKE


def restore_failure(sentence: str, failure: str) -> str:
    """Return the sentence, with its repetition of a failure after a colon replaced by the exact text."""
    failure, mark = failure.strip().rstrip("."), "。" if sentence.endswith("。") else "."
    if "\n" in failure or len(failure) > LONGEST_SPAN:
        return sentence
    for colon in re.finditer("[:：] ?", sentence):
        if _is_slip(sentence[colon.end() :], failure):
            return sentence[: colon.end()] + failure + mark
    return sentence


def tells_truly(sentence: str, *sources: str) -> bool:
    """Return whether every number of a sentence occurs in the sources."""
    known = {beginning for number in _numbers(" ".join(sources)) for beginning in _beginnings(number)}
    return all(number in known for number in _numbers(sentence))


def _numbers(text: str) -> Iterator[str]:
    """Yield the numbers of a text, without thousands separators."""
    yield from (match[0].rstrip(".,:").replace(",", "") for match in _FIGURES.finditer(text))


def _beginnings(number: str) -> Iterator[str]:
    """Yield the prefixes of a number such as a time: 07:54:16 can be reported as 07:54."""
    parts = number.split(":")
    yield from (":".join(parts[:count]) for count in range(1, len(parts) + 1))


def is_asked_for(tool: str, arguments: Arguments, said: str, done: Sequence[ToolCall]) -> bool:
    """Return whether the user described this change of a file.

    A model this small invents no text for files, and after reading one it may "edit" what it should
    summarize. So each replaced text must be the user's. Written text must be the user's, or the result of
    other calls for a file that was not read.
    """
    if tool == "edit_file":
        return _is_in(arguments.get("old"), said)
    if tool != "write_file" or _is_in(arguments.get("text"), said):
        return True
    paths = {call.arguments.get("path") for call in done}
    found = "\n".join(call.result.text for call in done if call.result is not None)
    return arguments.get("path") not in paths and _is_in(arguments.get("text"), found)


def _is_in(text: JsonValue, source: str) -> bool:
    """Compare word by word: list marks, case and spacing do not count."""
    return isinstance(text, str) and _words(text) in _words(source)


def _words(text: str) -> str:
    words = re.findall(r"\w+", text.casefold())
    return f" {' '.join(words)} " if words else ""
