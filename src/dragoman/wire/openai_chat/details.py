"""OpenRouter's `reasoning_details`: put together from pieces, as they have to be sent back."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import JsonValue

from dragoman.wire.openai_chat.shapes import ReasoningDetail

GROWING = ("text", "summary")
WORTH_KEEPING = (*GROWING, "data", "signature")


def merge(pieces: Iterable[ReasoningDetail]) -> list[JsonValue]:
    """The details, each once. Those of one index belong together; encrypted data comes whole."""
    details: list[ReasoningDetail] = []
    for piece in pieces:
        detail = None if piece.get("data") else _begun(details, piece)
        if detail is None:
            details.append(dict(piece))
        else:
            _add(detail, piece)
    return [detail for detail in details if any(detail.get(key) for key in WORTH_KEEPING)]


def readable(details: Iterable[ReasoningDetail]) -> str:
    """The text in them that can be read."""
    return "".join(text for detail in details for key in GROWING if isinstance(text := detail.get(key), str))


def _begun(details: list[ReasoningDetail], piece: ReasoningDetail) -> ReasoningDetail | None:
    index, type = piece.get("index"), piece.get("type")
    for detail in reversed(details):
        if detail.get("index") == index and detail.get("type") == (type or detail.get("type")):
            return None if detail.get("data") else detail
        if index is None:  # only the order says where it belongs
            return None
    return None


def _add(detail: ReasoningDetail, piece: ReasoningDetail) -> None:
    for key, value in piece.items():
        held = detail.get(key)
        if key in GROWING and isinstance(held, str) and isinstance(value, str):
            detail[key] = held + value
        elif value or held is None:
            detail[key] = value
