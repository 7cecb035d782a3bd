"""Determine the kind of value for a parameter from a public data set, so that values can be generated.

A data set describes a parameter by its type, its name, a sentence, and the values that occurred.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

MOST_SEEN = 40  # maximum number of values kept per parameter
LONGEST_SEEN = 40  # characters of one
FEWEST_CHOICES, MOST_CHOICES = 3, 8

# The first match in the parameter's name decides.
_BY_NAME = (
    (r"(^|_)(start|end|due|birth|check_?in|check_?out|departure|return|arrival)?_?date$|^day$", "date"),
    (r"e_?mail", "email"),
    (r"phone", "phone"),
    (r"(^|_)(url|website|link)$", "url"),
    (r"(^|_)(file|path|file_?path|image_path|file_?name|filename)$", "path"),
    (r"(^|_)(id|isbn|number|code|sku|identifier|ref|serial)$", "id"),
    (r"(^|_)(password|token|api_key|secret)$", "key"),
    (r"country|nation", "country"),
    (r"(^|_)(city|location|destination|origin|place|town|region)$|^area$|^venue$", "city"),
    (r"(^|_)address$", "street"),
    (r"language", "language"),
    (r"currency", "currency"),
    (
        r"^(author|artist|director|patient|player|athlete|composer|philosopher|host|guest|student|teacher)$",
        "person",
    ),
    (
        r"(person|patient|customer|user|participant|student|employee|author|client|first|last|full)_?name$",
        "person",
    ),
    (r"(company|organi[sz]ation|manufacturer|brand|employer|supplier|vendor)(_name)?$", "company"),
    (r"(^|_)(song|track)(_name|_title)?$", "song"),
    (r"(^|_)(movie|film)(_name|_title)?$", "film"),
    (r"(^|_)book(_name|_title)?$", "book"),
    (r"(^|_)(text|message|content|body|comment|note|notes|feedback|sentence)$", "quoted"),
    (r"(^|_)(title|subject|topic|name|keywords?|query|project_name|event_name)$", "title"),
    (r"colou?r$", "color"),
)
_NUMBERS = (
    (r"(^|_)year$", (1950.0, 2030.0)),
    (r"years", (1.0, 40.0)),
    (r"(^|_)age$", (1.0, 95.0)),
    (r"percent|rate$|ratio|discount", (0.1, 95.0)),
    (r"lat(itude)?$", (-80.0, 80.0)),
    (r"lon(gitude)?$|lng$", (-170.0, 170.0)),
    (r"price|budget|amount|salary|income|cost|revenue|loan|principal|population", (10.0, 250_000.0)),
    (r"temperature|temp$", (1.0, 120.0)),
    (r"month$", (1.0, 12.0)),
    (r"hour", (1.0, 24.0)),
    (r"page|level|floor|rank|rooms|people|guests|passengers|tickets|days|players|rating", (1.0, 30.0)),
)
_EXAMPLES = re.compile(r"\(?\b(?:e\.?g\.?|for example|such as|like),?:? ([^()]+)\)?", re.IGNORECASE)
_PLAIN = re.compile(r"[\w][\w .,'&+-]*")


def kind_of(name: str, type: str, about: str, seen: Sequence[str], choices: Sequence[str] = ()) -> str:
    """Return the kind of a parameter, or "" if no value could be generated."""
    spelled = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    if choices:
        return "|".join(choices) if all(_PLAIN.fullmatch(one) for one in choices) else ""
    match type:
        case "bool" | "boolean":
            return "bool"
        case "int" | "integer":
            return _number(spelled, whole=True)
        case "float" | "number":
            return _number(spelled, whole=False)
        case "str" | "string":
            return _text(spelled, about, seen)
        case _:
            return ""


def examples_in(about: str) -> list[str]:
    """Return the examples in a sentence about a parameter."""
    found = _EXAMPLES.search(about)
    if found is None:
        return []
    words = re.split(r", (?:and |or |etc)?|/| or | and ", found[1].strip(" .)"))
    return [
        word.strip(" .'\"") for word in words if _is_value(word.strip(" .'\"")) and not word.startswith("etc")
    ]


def without_examples(about: str) -> str:
    return re.sub(r"\s*\([^()]*\)", "", about).strip(" .")


def _number(name: str, *, whole: bool) -> str:
    least, most = next(
        (limits for pattern, limits in _NUMBERS if re.search(pattern, name)),
        (1.0, 500.0) if whole else (0.5, 400.0),
    )
    if whole or (least.is_integer() and least >= 10):
        return f"int {int(least) or 1} {int(most)}"
    return f"float {least:g} {most:g}"


def _text(name: str, about: str, seen: Sequence[str]) -> str:
    for pattern, kind in _BY_NAME:
        if re.search(pattern, name):
            return kind
    examples = examples_in(about)
    words = [word for word in examples if re.fullmatch(r"[a-z][a-z_ -]*|[A-Z][a-z]+", word)]
    if (
        FEWEST_CHOICES <= len(words) == len(examples) and len(words[0]) % 2
    ):  # for some of them, a list of choices
        return "|".join(dict.fromkeys(word.lower().replace(" ", "_") for word in words[:MOST_CHOICES]))
    values = list(dict.fromkeys([*examples, *(one for one in seen if _is_value(one))]))[:MOST_SEEN]
    return f"like {'|'.join(values)}" if values else "title"


def _is_value(word: str) -> bool:
    return 1 < len(word) <= LONGEST_SEEN and bool(_PLAIN.fullmatch(word)) and " = " not in word
