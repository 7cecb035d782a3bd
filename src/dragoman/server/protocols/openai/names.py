"""The ids that OpenAI's objects have here: each says which turn it is, and where in it."""

from __future__ import annotations

import re

from dragoman.errors import NotFound
from dragoman.server.protocols.openai.begin import ReplyPlace

_RESPONSE = re.compile(r"resp_([0-9a-z]{1,40})(?:_([0-9a-z]{1,40}))?")


def suffix_of(place: ReplyPlace) -> str:
    turn = place.turn.removeprefix("turn_")
    return f"{turn}_{place.after.removeprefix('msg_')}" if place.after else turn


def response_id(place: ReplyPlace) -> str:
    return f"resp_{suffix_of(place)}"


def parse_response_id(id: str) -> tuple[str, str | None]:
    """The turn, and the message of it behind which the response begins."""
    found = _RESPONSE.fullmatch(id)
    if found is None:
        raise NotFound("response", id)
    turn, after = found.groups()
    return f"turn_{turn}", f"msg_{after}" if after else None


def headers_of(place: ReplyPlace) -> dict[str, str]:
    """Where it can be seen and answered, for who wants to know."""
    return {
        "x-request-id": place.turn,
        "x-dragoman-turn": place.turn,
        "x-dragoman-conversation": place.conversation,
    }
