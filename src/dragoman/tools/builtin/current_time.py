"""`current_time`: date and time of day, here or in another time zone."""

from __future__ import annotations

from datetime import datetime
from difflib import get_close_matches
from typing import Annotated
from zoneinfo import ZoneInfo, available_timezones

from pydantic import Field

from dragoman.errors import ToolFailed
from dragoman.tools.tool import tool


@tool(
    permission="basics.current_time",
    writes="nothing",
    replay="safe",
    repeats=True,
    timeout=5,
    examples=[{}, {"zone": "Europe/Vienna"}],
)
def current_time(
    zone: Annotated[
        str | None, Field(description="an IANA name, such as Europe/Vienna; left out: this machine's")
    ] = None,
) -> str:
    """Tell the date, the weekday and the time of day."""
    now = datetime.now(_zone(zone)) if zone else datetime.now().astimezone()
    return f"{now:%A}, {now.isoformat(' ', 'seconds')} ({zone or now.tzname()})"


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError) as error:  # no such zone, no such name, a folder of zones
        near = get_close_matches(name, available_timezones(), n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else "names are such as Europe/Vienna or UTC"
        raise ToolFailed(f"there is no time zone {name!r}: {hint}") from error
