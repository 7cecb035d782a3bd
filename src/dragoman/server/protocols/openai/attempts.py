"""Requests that an SDK sends again of its own accord: what the first one began is not begun twice."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request

from dragoman.errors import DragomanError
from dragoman.messages.message import Message
from dragoman.runtime import Runtime
from dragoman.server.protocols.openai.history import MARK, NEWEST
from dragoman.store.store import TurnRow

ATTEMPT = "request"  # in what is stored of a request: the sum of its bytes
_RECENT = 3600.0  # seconds; the SDKs wait ten minutes for an answer, unless they are told otherwise


@dataclass(slots=True, frozen=True)
class Attempt:
    """One of several requests that are the same. `again`: the SDK had no answer to the one before."""

    sum: str
    again: bool


async def attempt_of(request: Request, conversation: str | None = None) -> Attempt:
    seen = hashlib.sha256(f"{request.url.path} {conversation or ''} ".encode())
    seen.update(await request.body())
    again = request.headers.get("x-stainless-retry-count", "0") != "0"
    return Attempt(seen.hexdigest(), again)


async def find_begun(runtime: Runtime, person: str, attempt: Attempt) -> tuple[TurnRow, str | None] | None:
    """The turn that the request began before the process died which was to answer it, and the message behind
    which its answer begins. (Where none died, who hung up has cancelled it.)"""
    store, now = runtime.store, runtime.services.clock()
    for conversation in await store.conversations(user=person, limit=NEWEST):
        if conversation.updated < now - _RECENT:
            break
        try:
            messages, _ = await store.messages(conversation.id)
        except DragomanError:
            continue  # one that cannot be read is not gone on with
        for message in reversed(messages):
            mark = message.metadata.get(MARK)
            if not isinstance(mark, dict) or mark.get(ATTEMPT) != attempt.sum:
                continue
            for row in await store.turns(conversation.id):
                if row.message == message.id and row.epoch > 1 and (row.live or row.state == "completed"):
                    return row, _answer_begins_behind(messages, row.id, message.turn)
    return None


def _answer_begins_behind(messages: Sequence[Message], turn: str, before: str | None) -> str | None:
    """A turn that answers what the caller brought begins with copies of the replies that `before` made."""
    replies = [message for message in messages if message.role == "assistant"]
    own = [reply.id for reply in replies if reply.turn == turn]
    copied = sum(reply.turn == before for reply in replies) if before != turn else 0
    return own[copied - 1] if 0 < copied <= len(own) else None
