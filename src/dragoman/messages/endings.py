"""Defines how replies end: Dragoman's words, the possible continuations, and the user's notices.

Every wire maps its provider's reasons to these words (`FINISH` in `wire/*/shapes.py`):

stop, tool_calls   normal end
length             truncated by the token limit. It can be continued
context            truncated because the context is full. It can be continued once there is room
pause              the provider's tools took long. It continues when it is sent back
refusal            the model refused to answer
filter, safety, recitation
                   a provider filter: general content, safety, protected text
malformed          it ended in a call that the provider could not parse
thoughts, empty    it has no answer
error              the provider interrupted it
cancelled          a user or a caller cancelled it
unknown            the provider gave no reason, or an unlisted one
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from dragoman.messages.message import Error, Message
from dragoman.sentences import Sentence, sentence

REFUSED = frozenset({"refusal", "filter", "safety", "recitation"})  # Calls of such a reply are not run.
# The reply is unfinished, and the text of the next reply belongs to the same answer.
INCOMPLETE = frozenset({"length", "context", "pause"})
# Partial text of such a reply is not an answer, whatever the turn's state.
FAILED = frozenset({"malformed", "error"})
WITHOUT_ANSWER = frozenset({"malformed", "thoughts", "empty", "error"})

BROKEN_OFF = REFUSED | {"length", "context", "malformed", "error", "cancelled"}
"""Endings after which the last call may be incomplete."""

Finish: TypeAlias = str

_NOTICES: dict[Finish, Callable[[str], Sentence]] = {
    "length": lambda model: sentence("ending.length", model=model),
    "context": lambda model: sentence("ending.context", model=model),
    "pause": lambda model: sentence("ending.pause", model=model),
    "refusal": lambda model: sentence("ending.refusal", model=model),
    "filter": lambda model: sentence("ending.filter", model=model),
    "safety": lambda model: sentence("ending.safety", model=model),
    "recitation": lambda model: sentence("ending.recitation", model=model),
    "malformed": lambda model: sentence("ending.malformed", model=model),
    "thoughts": lambda model: sentence("ending.thoughts", model=model),
    "empty": lambda model: sentence("ending.empty", model=model),
    "error": lambda model: sentence("ending.error", model=model),
    "unknown": lambda model: sentence("ending.unknown", model=model),
}
_KINDS = {"empty": "empty_reply"}  # Notice kinds that differ from the finish.


def notice_of(finish: Finish, model: str, reason: str = "") -> str | None:
    """Return the user's notice for such an ending. None for a normal one."""
    if finish not in _NOTICES or (finish == "unknown" and not reason):
        return None
    text = _NOTICES[finish](model)
    return sentence("ending.with_reason", ending=text, reason=reason) if reason else text


def ending_of(reply: Message, following: Message | None) -> str | None:
    """Return the notice below a stored reply, once it is known whether the reply was continued."""
    went_on = following is not None and following.turn == reply.turn
    if reply.finish is None or any(isinstance(part, Error) for part in reply.parts):
        return None
    if reply.finish in INCOMPLETE and went_on:
        return None
    return notice_of(reply.finish, reply.model or "the model", str(reply.metadata.get("reason", "")))


def notice_kind(finish: Finish) -> str:
    return _KINDS.get(finish, finish)


def reason_of(finish: Finish, word: str | None, *details: str | None) -> str:
    """Return the provider's reason and its details, if the finish alone does not tell everything."""
    if finish in ("stop", "tool_calls", *INCOMPLETE) or not word:
        return ""
    return ": ".join(one.strip() for one in (word, *details) if one and one.strip())
