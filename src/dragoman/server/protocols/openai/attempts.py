"""Requests that a client sends again of its own accord: what the first one began is not begun twice."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from starlette.requests import Request

from dragoman.messages.message import Message
from dragoman.store.store import SendKey, Store
from dragoman.turn.send import send_key

_COUNTED = 3600.0  # seconds; the SDKs wait ten minutes for an answer, unless they are told otherwise
_UNCOUNTED = 60.0  # of clients that do not say whether they ask again


async def attempt_of(request: Request, now: float, conversation: str | None = None) -> SendKey:
    """What the turn of a request is known by: the caller's idempotency key, else a hash of the request. One
    that an SDK counts as a retry joins the turn of the first; one that it counts as the first joins none that
    was begun before it came."""
    sent = f"{request.url.path} {conversation or ''} ".encode() + await request.body()
    if (named := request.headers.get("idempotency-key")) is not None:
        return send_key(named, sent, now)
    counted = request.headers.get("x-stainless-retry-count")
    window = 0.0 if counted == "0" else _UNCOUNTED if counted is None else _COUNTED
    sum = hashlib.sha256(sent).hexdigest()
    return SendKey(f"request {sum}", sum, now - window)


def is_retry(request: Request) -> bool:
    """Whether an SDK says so."""
    return request.headers.get("x-stainless-retry-count", "0") != "0"


async def answer_begins_behind(store: Store, turn: str) -> str | None:
    """The message behind which the answer of a turn begins. A turn that answers what the caller brought
    begins with copies of the replies that were made before."""
    row = await store.turn(turn)
    messages, _ = await store.messages(row.conversation)
    before = next(message.turn for message in messages if message.id == row.message)
    return _last_copied(messages, turn, before)


def _last_copied(messages: Sequence[Message], turn: str, before: str | None) -> str | None:
    replies = [message for message in messages if message.role == "assistant"]
    own = [reply.id for reply in replies if reply.turn == turn]
    copied = sum(reply.turn == before for reply in replies) if before != turn else 0
    return own[copied - 1] if 0 < copied <= len(own) else None
