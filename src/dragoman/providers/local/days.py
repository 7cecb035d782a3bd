"""Finds the day that a request speaks of: "tomorrow", "am 3. Dezember", "周五"."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

FORTNIGHT = 14

_WEEKDAYS = {
    word: at
    for words in (
        "monday tuesday wednesday thursday friday saturday sunday",
        "montag dienstag mittwoch donnerstag freitag samstag sonntag",
    )
    for at, word in enumerate(words.split())
}
_MONTHS = {
    word: at
    for words in (
        "january february march april may june july august september october november december",
        "januar februar märz april mai juni juli august september oktober november dezember",
        "jan feb mar apr may jun jul aug sep oct nov dec",
    )
    for at, word in enumerate(words.split(), 1)
}
_AHEAD = {
    **{"the day after tomorrow": 2, "day after tomorrow": 2, "tomorrow": 1, "today": 0, "tonight": 0},
    **{"yesterday": -1, "übermorgen": 2, "morgen": 1, "heute": 0, "gestern": -1},
    **{"后天": 2, "明天": 1, "今天": 0, "昨天": -1},
}
_ANY_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))


@dataclass(slots=True, frozen=True)
class Day:
    """A day, the words that name it, and what they leave open: the next one of that name is taken."""

    on: date
    words: str
    leaves_open: Literal["", "week", "year"] = ""

    def fits(self, other: date) -> bool:
        """Whether another day goes by the same words: an earlier Friday, or that of another year."""
        match self.leaves_open:
            case "week":
                return other.weekday() == self.on.weekday() and abs((other - self.on).days) <= FORTNIGHT
            case "year":
                return (other.month, other.day) == (self.on.month, self.on.day)
            case _:
                return other == self.on


def days_in(text: str, today: date) -> list[Day]:
    """The days that a text names; none where one of them depends on who speaks ("next Friday")."""
    if _OPEN.search(text):
        return []
    found: list[Day] = []
    rest = text
    for pattern, read in _PATTERNS:
        for match in pattern.finditer(rest):
            try:
                found.append(read(match, today))
            except ValueError:  # the 31st of June
                return []
        rest = pattern.sub(lambda match: " " * len(match[0]), rest)
    return found


def _ahead(match: re.Match[str], today: date) -> Day:
    return Day(today + timedelta(days=_AHEAD[match[0].lower()]), match[0])


def _weekday(match: re.Match[str], today: date) -> Day:
    return _next(_WEEKDAYS[match[1].lower()], match[0], today)


def _chinese_weekday(match: re.Match[str], today: date) -> Day:
    return _next(min("一二三四五六日天".index(match[1]), 6), match[0], today)


def _next(weekday: int, words: str, today: date) -> Day:
    ahead = (weekday - today.weekday()) % 7
    if ahead == 0:
        raise ValueError("today, or in a week")
    return Day(today + timedelta(days=ahead), words, "week")


def _later(match: re.Match[str], today: date) -> Day:
    weeks = match[2].lower().startswith(("w", "周"))
    return Day(today + timedelta(days=int(match[1]) * (7 if weeks else 1)), match[0])


def _iso(match: re.Match[str], today: date) -> Day:
    return Day(date.fromisoformat(match[0]), match[0])


def _of_month(match: re.Match[str], today: date) -> Day:
    day, month, year = match["day"], match["month"].lower(), match["year"]
    number = int(month) if month.isdigit() else _MONTHS[month]
    if year is not None:
        return Day(date(int(year), number, int(day)), match[0])
    meant = date(today.year, number, int(day))
    return Day(meant if meant >= today else date(today.year + 1, number, int(day)), match[0], "year")


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_NAMES = "|".join(_WEEKDAYS)
_TURNS = "next|last|letzte[nr]?|nächste[nrs]?|vorige[nr]?|kommende[nr]?|every|each|jeden"
_OPEN = _compiled(
    rf"\b(?:{_TURNS})\s+(?:week|month|year|woche|monat|jahr|{_NAMES})|[上下每](?:周|星期|个?月)|\b(?:{_NAMES})s\b"
)
_PLAIN_WEEKDAY = _compiled(rf"\b({_NAMES})\b")
_DAY, _MONTH, _YEAR = r"(?P<day>\d{1,2})", rf"(?P<month>{_ANY_MONTH})\b\.?", r"(?P<year>\d{4})"
_NEAR = "tomorrow|today|tonight|yesterday|übermorgen|morgen|heute|gestern"
_PATTERNS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], date], Day]], ...] = (
    (_compiled(r"(?<![\w-])\d{4}-\d{2}-\d{2}(?!\d)"), _iso),
    (_compiled(rf"\b{_DAY}(?:st|nd|rd|th|\.)?\s+(?:of\s+)?{_MONTH}(?:,?\s+{_YEAR})?"), _of_month),
    (_compiled(rf"\b{_MONTH}\s+(?:the\s+)?{_DAY}(?:st|nd|rd|th)?(?![\d:])(?:,?\s+{_YEAR})?"), _of_month),
    (_compiled(rf"(?<![\d.]){_DAY}\.(?P<month>\d{{1,2}})\.{_YEAR}"), _of_month),
    (_compiled(rf"(?:{_YEAR}年)?(?P<month>\d{{1,2}})月{_DAY}[日号]"), _of_month),
    (_compiled(r"\bin (\d{1,3}) (days|weeks|tagen|wochen)\b"), _later),
    (_compiled(r"(\d{1,3})(天|周)后"), _later),
    (_compiled(r"\b(?:the )?day after tomorrow\b|后天|明天|今天|昨天"), _ahead),
    (_compiled(rf"(?<!guten )(?<!am )(?<!jeden )\b(?:{_NEAR})\b"), _ahead),
    (_PLAIN_WEEKDAY, _weekday),
    (_compiled(r"(?:周|星期|礼拜)([一二三四五六日天])"), _chinese_weekday),
)


def distinct(days: list[Day]) -> Iterator[Day]:
    """Each day once."""
    yield from {day.on: day for day in days}.values()
