"""Check `current_time`: the local time of a place, and suggestions for its name."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import pytest

from dragoman.messages.message import CallState
from dragoman.tools.builtin.basics import current_time
from tests.tools.bench import run, text_of


def moment(told: str) -> datetime:
    found = re.fullmatch(r"(\w+), (.+) \((.+)\)", told)
    assert found is not None
    read = datetime.fromisoformat(found[2])
    assert found[1] == f"{read:%A}"
    return read


@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Kathmandu", "America/New_York"])
async def test_it_is_now_in_every_zone(zone: str | None) -> None:
    told = await text_of(current_time, **({} if zone is None else {"zone": zone}))
    assert abs(moment(told) - datetime.now().astimezone()) < timedelta(seconds=5)


async def test_the_zone_decides_the_hour_and_is_named() -> None:
    told = await text_of(current_time, zone="Asia/Kathmandu")
    assert told.endswith("+05:45 (Asia/Kathmandu)")


@pytest.mark.parametrize(
    ("zone", "says"),
    [
        ("Europe/Viena", "Did you mean Europe/Vienna"),
        ("Mars/Olympus", "Unknown time zone 'Mars/Olympus'"),
        ("America", "Unknown time zone 'America'"),
        ("../../etc/passwd", "Unknown time zone"),
        ("/etc/localtime", "Unknown time zone"),
        ("a\0b", "Unknown time zone"),
        ("x" * 5000, "Unknown time zone"),
    ],
)
async def test_a_zone_that_is_not_there_is_explained(zone: str, says: str) -> None:
    outcome = await run(current_time, zone=zone)
    assert outcome.state is CallState.FAILED
    assert says in outcome.result.text
