"""P9, P13: rules that name a format or a loop. No grant overrides a denial, wherever the denial is."""

from __future__ import annotations

import pytest

from dragoman import tool
from dragoman.messages.questions import Rule
from dragoman.tools.authorize import Ask, Authority, Reason, Refuse, Run, authorize


@tool
def send_mail(to: str) -> str:
    """Send mail."""
    return to


EVERYTHING = Rule("*", "*", "allow")
GRANT = {"format": Rule("format", "hermes m", "allow"), "loop": Rule("loop", "send_mail", "allow")}


def authority(name: str, **more: object) -> Authority:
    wishes = (Reason("loop", "again?"),) if name == "loop" else ()
    given = {
        "rules": [EVERYTHING],
        "wishes": wishes,
        "format": "hermes m" if name == "format" else "",
        **more,
    }
    return Authority(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", GRANT)
def test_a_rule_on_everything_does_not_mean_it(name: str) -> None:
    assert isinstance(authorize(send_mail, ("a",), authority(name)), Ask)
    assert isinstance(authorize(send_mail, ("a",), authority(name, grants=[GRANT[name]])), Run)


@pytest.mark.parametrize("name", GRANT)
@pytest.mark.parametrize("place", ["rules", "outer", "bounds"])
def test_no_grant_takes_a_denial_away(name: str, place: str) -> None:
    denial = Rule(name, "*", "deny")
    places = {"rules": [EVERYTHING, denial], "outer": [[EVERYTHING, denial]], "bounds": [denial]}
    asked = authority(name, grants=[GRANT[name]], **{place: places[place]})
    assert isinstance(authorize(send_mail, ("a",), asked), Refuse)
