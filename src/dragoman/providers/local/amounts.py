"""Finds amounts with a unit in a request ("half an hour", "1.5 km", "两小时"), as numbers of another unit.

So small a model cannot be relied on to multiply: what a parameter wants in minutes is worked out here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

# each dimension with its units: how many of the smallest they are, and their words
_UNITS: dict[str, tuple[tuple[float, str], ...]] = {
    "time": (
        (1, "s|sec|secs|second|seconds|sekunde|sekunden|秒|秒钟"),
        (60, "min|mins|minute|minutes|minuten|分钟"),
        (3600, "h|hr|hrs|hour|hours|stunde|stunden|小时|个小时|钟头"),
        (86_400, "day|days|tag|tage|tagen|天"),
        (604_800, "week|weeks|woche|wochen|周|个星期"),
    ),
    "length": (
        (1, "cm|centimeter|centimeters|centimetres|zentimeter|厘米"),
        (100, "m|meter|meters|metre|metres|metern|米"),
        (100_000, "km|kilometer|kilometers|kilometre|kilometres|kilometern|公里"),
    ),
    "weight": (
        (1, "g|gram|grams|gramm|克"),
        (1000, "kg|kilo|kilos|kilogram|kilograms|kilogramm|公斤"),
    ),
    "data": ((1, "kb|kilobytes"), (1000, "mb|megabyte|megabytes"), (1_000_000, "gb|gigabyte|gigabytes")),
}
_BY_WORD = {
    word: (dimension, factor)
    for dimension, units in _UNITS.items()
    for factor, words in units
    for word in words.split("|")
}
_SHORT = frozenset(("s", "m", "g", "h", "min", "sec"))  # in a name, only after something else: radius_m
_CLOCK = frozenset(("second", "minute", "hour", "day", "week"))  # of a moment, rather than a duration
_LASTING = frozenset(("duration", "time", "length", "delay", "timeout", "interval", "for"))  # not `price_min`
_NUMBERS = {
    **{
        word: at
        for at, word in enumerate(["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"], 2)
    },
    **{
        word: at
        for at, word in enumerate(
            ["zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn"], 2
        )
    },
    **{word: at for at, word in enumerate("一二三四五六七八九十", 1)},
    **{"one": 1, "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40},
    **{"forty-five": 45, "fifty": 50, "sixty": 60, "ninety": 90, "fünfzehn": 15, "zwanzig": 20},
    **{"dreißig": 30, "elf": 11, "zwölf": 12, "两": 2},
}
_ARTICLES = {"a": 1, "an": 1, "eine": 1, "einer": 1, "einen": 1, "ein": 1}
_PARTS = {
    **{"half a": 0.5, "half an": 0.5, "eine halbe": 0.5, "einer halben": 0.5, "ein halbes": 0.5, "半": 0.5},
    **{"半个": 0.5, "anderthalb": 1.5, "eineinhalb": 1.5, "a quarter of an": 0.25, "a quarter": 0.25},
}
_WORDS = "|".join(sorted((re.escape(word) for word in _BY_WORD), key=len, reverse=True))
_HEADS = "|".join(
    sorted((re.escape(word) for word in (*_NUMBERS, *_ARTICLES, *_PARTS)), key=len, reverse=True)
)
_AMOUNT = re.compile(
    rf"(?<![\w.,:])(?P<head>\d+(?:[.,]\d+)?|{_HEADS})(?P<half>\s+and\s+a\s+half|\s*个半)?[\s-]*"
    rf"(?P<unit>{_WORDS})(?P<after>\s+and\s+a\s+half)?(?![a-zäöüß\d/])",
    re.IGNORECASE,
)
_ASIDE = re.compile(
    r"(?:\b(?:in|within|every|each|per|after|before|alle|nach|vor|seit)|每|再过)\s*$", re.IGNORECASE
)
_TIMES = re.compile(r"(?:\b(?:times|once|twice|ago|mal)|次)\s*$", re.IGNORECASE)
_GROUPED = re.compile(r"\d{1,3},\d{3}")


@dataclass(slots=True, frozen=True)
class Amount:
    """So many of the smallest unit of a dimension, and the words that say it."""

    dimension: str
    number: float
    words: str
    aside: bool  # when something happens, or how often, rather than how long it takes


def amounts_in(text: str) -> Iterator[Amount]:
    """The amounts of a text; "2 hours and 15 minutes" is one."""
    found: list[tuple[Amount, int, int]] = []
    for match in _AMOUNT.finditer(text):
        number = _number(match)
        before, after = text[: match.start()], text[match.end() :]
        if number is None or _TIMES.search(before):
            continue
        dimension, factor = _BY_WORD[match["unit"].lower()]
        aside = bool(_ASIDE.search(before)) or after.lower().startswith((" ago", "后", "前"))
        amount = Amount(dimension, number * factor, match[0], aside)
        if found and _goes_on(found[-1][0], amount, text[found[-1][2] : match.start()]):
            first, begin, _ = found.pop()
            whole = Amount(dimension, first.number + amount.number, text[begin : match.end()], first.aside)
            found.append((whole, begin, match.end()))
        else:
            found.append((amount, match.start(), match.end()))
    yield from (amount for amount, _, _ in found)


def unit_of(name: str, schema: Mapping[str, Any]) -> tuple[str, float] | None:
    """The unit that a parameter is in, by its name or by what is said of it: its dimension, and its size."""
    words = re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    if "per" in words:
        return None
    for before, word in reversed(list(zip(["", *words], words, strict=False))):
        if word in _BY_WORD and word not in _CLOCK and (word not in _SHORT or before):
            return _BY_WORD[word] if word != "min" or before in _LASTING else None
    about = str(schema.get("description", "")).lower()
    said = re.findall(r"\b(?:in|many|number of)\s+([a-zäöüß]+)\b(?!\s+per)", about)
    units = {_BY_WORD[word] for word in said if word in _BY_WORD and word not in (_SHORT | _CLOCK)}
    return units.pop() if len(units) == 1 else None


def _number(match: re.Match[str]) -> float | None:
    head = match["head"].lower()
    if _GROUPED.fullmatch(head):
        number: float = int(head.replace(",", ""))
    elif head[0].isdigit():
        number = float(head.replace(",", "."))
    else:
        number = _NUMBERS.get(head) or _ARTICLES.get(head) or _PARTS[head]
    if match["unit"].lower() in _SHORT and not head[0].isdigit():
        return None  # "a g": no amount
    return number + 0.5 if match["half"] or match["after"] else number


def _goes_on(first: Amount, second: Amount, between: str) -> bool:
    joined = re.fullmatch(r"\s*(?:,|and|und|零)?\s*", between, re.IGNORECASE) is not None
    return joined and first.dimension == second.dimension and second.number < first.number
