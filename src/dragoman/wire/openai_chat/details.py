"""OpenRouter's `reasoning_details` in pieces, in; whole, and fit to be sent back, out."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import JsonValue

from dragoman.wire.openai_chat.shapes import Detail

GROWING = ("text", "summary")
WORTH_KEEPING = (*GROWING, "data", "signature")


def merged(pieces: Iterable[Detail]) -> list[JsonValue]:
    """The details, each once. Those of one index belong together; sealed data comes whole."""
    details: list[Detail] = []
    for piece in pieces:
        detail = None if piece.get("data") else _begun(details, piece)
        if detail is None:
            details.append(dict(piece))
        else:
            _add(detail, piece)
    return [detail for detail in details if any(detail.get(key) for key in WORTH_KEEPING)]


def said(details: Iterable[Detail]) -> str:
    """What can be read of them."""
    return "".join(text for detail in details for key in GROWING if isinstance(text := detail.get(key), str))


def _begun(details: list[Detail], piece: Detail) -> Detail | None:
    index, type = piece.get("index"), piece.get("type")
    for detail in reversed(details):
        if detail.get("index") == index and detail.get("type") == (type or detail.get("type")):
            return None if detail.get("data") else detail
        if index is None:  # nothing but the order tells where it belongs
            return None
    return None


def _add(detail: Detail, piece: Detail) -> None:
    for key, value in piece.items():
        held = detail.get(key)
        if key in GROWING and isinstance(held, str) and isinstance(value, str):
            detail[key] = held + value
        elif value or held is None:
            detail[key] = value
