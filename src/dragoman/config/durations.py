"""Lengths of time as people write them: `90 days`, `12w`, `36 hours`."""

from __future__ import annotations

import re

_SECONDS = {"h": 3600, "d": 24 * 3600, "w": 7 * 24 * 3600, "y": 365 * 24 * 3600}
_WORDS = {
    "h": "h",
    "hour": "h",
    "hours": "h",
    "d": "d",
    "day": "d",
    "days": "d",
    "w": "w",
    "week": "w",
    "weeks": "w",
    "y": "y",
    "year": "y",
    "years": "y",
}


def parse_duration(text: str) -> float:
    """Seconds. ValueError, in words, where it is none: a month has no length, and a number alone no unit."""
    found = re.fullmatch(r"\s*(\d{1,6})\s*([a-z]+)\s*", text, re.IGNORECASE)
    unit = _WORDS.get(found[2].lower()) if found else None
    if found is None or unit is None or not int(found[1]):
        raise ValueError(
            "a length of time is a number and hours, days, weeks or years, such as '90 days' or 90d"
        )
    return float(int(found[1]) * _SECONDS[unit])
