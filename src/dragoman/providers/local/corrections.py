"""Corrects the arguments of a call by what the request says beyond doubt: days, amounts, choices, codes.

Only what can be told from the schema and the words is touched. Where a request names two days, or two amounts
of one kind, nobody but the model can know which is which, and its own value stays.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from pydantic import JsonValue
from pydantic_core import to_json

from dragoman.messages.parts import Arguments
from dragoman.messages.request import ToolSpec
from dragoman.providers.local.amounts import amounts_in, unit_of
from dragoman.providers.local.days import days_in, distinct
from dragoman.providers.local.exact import restore_copies
from dragoman.providers.local.languages import CODES, is_currency
from dragoman.providers.local.prompt import choices_of, kind_of, resolve
from dragoman.providers.local.reply import WrittenCall

SHORTEST_CHOICE = 3  # letters of a choice that is looked for in a request

_DATE = re.compile(r"YYYY-MM-DD", re.IGNORECASE)
_DATE_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T(\d{2}:\d{2})(?::\d{2})?Z?")
_DAY = re.compile(
    r"\d{4}-\d|\d{1,2}[./]\d{1,2}[./]|\b\d{1,2}(?:st|nd|rd|th)\b|\b\d{1,2}\. ?[A-Z]|[天周月日号明后今年]"
    r"|\b(?:mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
    r"|\b(?:mo|di|mi|do|fr|sa|so)(?:ntag|nnerstag|enstag|ttwoch|eitag|mstag|nntag|nnabend)"
    r"|\b(?:mär|mai|okt|dez|heut|gest|morgen|vorgest|übermorgen|ende)"
    r"|\b(?:to(?:day|night|morrow)|yesterday|days?|weeks?\w*|months?|years?|end|noon|now|next|last|ago)\b"
    r"|\b(?:tag\w*|woche\w*|monat\w*|jahr\w*|nächste\w*|letzte\w*|christmas|easter|weihnacht\w*|ostern)\b",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"iso.?639|language code|code of the (?:target |source )?language|two.letter", re.IGNORECASE
)
_NUMERAL = re.compile(
    r"[\d一二两三四五六七八九十百千半]"
    r"|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|\w+ty|hundred|thousand|million"
    r"|dozen|couple|pair|few|half|quarter|once|twice|double|single|both|zero|no|first|second|third|last"
    r"|an? \w+|eine?[mnrs]?|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|\w+zehn|\w+zig"
    r"|hundert|tausend|paar|halb\w*|doppelt|dutzend|all\w*|max\w*|min\w*)\b",
    re.IGNORECASE,
)
_SEARCH = re.compile(r"regular expression|search(?:ed)? for|look(?:ed)? for", re.IGNORECASE)
_SEVERAL = re.compile(r"([A-Z]{2,})'?s")  # TODOs, FIXMEs
_EMPTY = re.compile(r"\b(?:empty|blank|leer\w*|nothing in it)\b|空", re.IGNORECASE)


@dataclass(slots=True, frozen=True)
class Asked:
    """What corrections go by: the last request, all that the model could read, and the day."""

    request: str
    read: str
    today: date


def merge_calls(calls: Sequence[WrittenCall], tools: Sequence[ToolSpec]) -> list[WrittenCall]:
    """One call for several of the same tool that agree on what is required and say different things besides.

    "SUP-9 is urgent and waiting" is one change of one ticket, not two.
    """
    specs = {tool.name: tool.parameters for tool in tools}
    merged: list[WrittenCall] = []
    for call in calls:
        before = merged[-1] if merged else None
        both = None if before is None else _merged(before, call, specs.get(call.tool, {}))
        if both is None:
            merged.append(call)
        else:
            merged[-1] = replace(call, raw=to_json(both).decode(), arguments=both)
    return merged


def _merged(one: WrittenCall, other: WrittenCall, schema: Mapping[str, Any]) -> Arguments | None:
    if one.tool != other.tool or one.arguments is None or other.arguments is None:
        return None
    first, second = one.arguments, other.arguments
    required = set(schema.get("required") or ())
    common = first.keys() & second.keys()
    if not required or not required <= common or common != required:
        return None
    if any(first[name] != second[name] for name in common):
        return None
    every = {**first, **second}
    return {name: every[name] for name in schema.get("properties") or {} if name in every}


def calls_for_now(calls: Sequence[WrittenCall], tools: Sequence[ToolSpec], request: str) -> list[WrittenCall]:
    """Without those whose text is still empty because another call has to find it first.

    "Look up the time and save it in now.txt": what is to be saved is known when the time is.
    """
    specs = {tool.name: tool.parameters for tool in tools}
    if _EMPTY.search(request):
        return list(calls)
    ready = [call for call in calls if not _lacks_text(call, specs.get(call.tool, {}))]
    return ready or list(calls)


def _lacks_text(call: WrittenCall, schema: Mapping[str, Any]) -> bool:
    arguments = call.arguments or {}
    return any(arguments.get(name) == "" for name in schema.get("required") or ())


def correct(arguments: Arguments, tool: ToolSpec, asked: Asked, *, alone: bool) -> Arguments:
    """The arguments of a call. With `alone` it is the only one, so that all of the request speaks of it."""
    schema: Mapping[str, Any] = tool.parameters
    members = {name: resolve(member, schema) for name, member in (schema.get("properties") or {}).items()}
    required = set[str](schema.get("required") or ())
    found = {
        name: _written_as_asked(value, members.get(name, {}))
        for name, value in restore_copies(arguments, asked.read).items()
    }
    if alone:
        found = _with_day(found, members, asked)
        found = _with_amount(found, members, asked)
        found = _with_choices(found, members, asked.request)
        found = _without_inventions(found, members, required, asked.read)
    return {name: found[name] for name in (*members, *found) if name in found}


def _written_as_asked(value: JsonValue, member: Mapping[str, Any]) -> JsonValue:
    """A language as its code, a time without its day, one of what is looked for: as the parameter says."""
    about = str(member.get("description", ""))
    if not isinstance(value, str) or choices_of(member):
        return value
    if _CODE.search(about):
        return CODES.get(value.lower(), value)
    if re.search(r"HH:MM\b", about) and not _DATE.search(about) and (both := _DATE_TIME.fullmatch(value)):
        return both[1]
    if _SEARCH.search(about) and (one := _SEVERAL.fullmatch(value)):
        return one[1]
    return value


def _with_day(arguments: Arguments, members: Mapping[str, Any], asked: Asked) -> Arguments:
    wanted = [name for name, member in members.items() if _wants_date(member)]
    named = [
        day for day in days_in(asked.request, asked.today) if not _is_said_in(day.words, arguments, wanted)
    ]
    days = list(distinct(named))
    if len(wanted) != 1 or len(days) != 1:
        return arguments
    (name,), (day,) = wanted, days
    given = arguments.get(name)
    if given is None and day.on == asked.today:
        return arguments  # nobody has to say that
    try:
        if day.fits(date.fromisoformat(str(given))):
            return arguments
    except ValueError:
        pass  # the model wrote no day
    return {**arguments, name: day.on.isoformat()}


def _wants_date(member: Mapping[str, Any]) -> bool:
    if kind_of(member) != "string" or choices_of(member):
        return False
    about = str(member.get("description", ""))
    return member.get("format") == "date" or bool(_DATE.search(about) and not re.search("HH|T00", about))


def _with_amount(arguments: Arguments, members: Mapping[str, Any], asked: Asked) -> Arguments:
    found = dict(arguments)
    units = {
        name: unit
        for name, member in members.items()
        if kind_of(member) in ("integer", "number") and (unit := unit_of(name, member)) is not None
    }
    said = [amount for amount in amounts_in(asked.request) if not _is_said_in(amount.words, arguments, ())]
    for dimension in {amount.dimension for amount in said}:
        amounts = [amount for amount in said if amount.dimension == dimension]
        names = [name for name, unit in units.items() if unit[0] == dimension]
        if len(amounts) != 1 or len(names) != 1 or (names[0] not in found and amounts[0].aside):
            continue
        number = round(amounts[0].number / units[names[0]][1], 6)
        if number.is_integer():
            found[names[0]] = int(number)
        elif kind_of(members[names[0]]) == "number":
            found[names[0]] = number
    return found


def _with_choices(arguments: Arguments, members: Mapping[str, Any], request: str) -> Arguments:
    """With each choice that the request names and the call has left out."""
    first, *others = re.findall(r"[\w-]+", request.lower()) or [""]
    words = {first, *others}
    found = dict(arguments)
    every = [choice for member in members.values() for choice in choices_of(member)]
    for name, member in members.items():
        named = [
            choice
            for choice in choices_of(member)
            if isinstance(choice, str)
            and len(choice) >= SHORTEST_CHOICE
            and (choice.lower() in words or is_currency(choice, request))
        ]
        if name in found or len(named) != 1 or every.count(named[0]) > 1 or named[0] == member.get("default"):
            continue
        if named[0].lower() == first and first not in others:
            continue  # what a request begins with is rather what is to be done
        if named[0] not in arguments.values() and not _is_said_in(named[0], arguments, ()):
            found[name] = named[0]
    return found


def _without_inventions(
    arguments: Arguments, members: Mapping[str, Any], required: set[str], read: str
) -> Arguments:
    """Without what is optional and nobody spoke of, nor what was said once and is written twice."""
    found: Arguments = {}
    for name, value in arguments.items():
        member = members.get(name, {})
        optional = name not in required and not choices_of(member)
        others = [
            other for key, other in arguments.items() if key != name and (key in required or key in found)
        ]
        if optional and (_is_invented(value, member, read) or (value in others and _said_once(value, read))):
            continue
        found[name] = value
    return found


def _is_invented(value: JsonValue, member: Mapping[str, Any], read: str) -> bool:
    """A number where there is no numeral, a day where nobody spoke of one, a text of other words."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return not _NUMERAL.search(read)
    if not isinstance(value, str):
        return False
    if _wants_date(member):
        return not _DAY.search(read)
    if not read.isascii() or not value.isascii() or "/" in value or re.search(r"\d", value):
        return False  # said in other words, or worked out
    words = re.findall(r"[a-z]{4,}", value.lower())
    return bool(words) and not any(word[:4] in read.lower() for word in words)


def _said_once(value: JsonValue, read: str) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    if isinstance(value, str):
        return len(value) >= SHORTEST_CHOICE and read.lower().count(value.lower()) == 1
    return len(re.findall(rf"(?<![\w.,]){re.escape(str(value))}(?![\w]|[.,]\d)", read)) == 1


def _is_said_in(words: str, arguments: Arguments, but: Sequence[str]) -> bool:
    """Whether these words are part of a text that is one of the arguments."""
    return any(
        isinstance(value, str) and words.lower() in value.lower() and len(value) > len(words)
        for name, value in arguments.items()
        if name not in but
    )
