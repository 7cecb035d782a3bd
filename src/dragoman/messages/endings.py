"""How replies end: our words for it, what may follow each, and what a person is told.

Every wire maps its provider's reasons to these words (`FINISH` in `wire/*/shapes.py`):

stop, tool_calls   as it should
length             cut off by the limit of tokens; it can go on
context            cut off because the model's context is full; it can go on once there is room
pause              the provider's own tools took long; it goes on when it is sent back
refusal            the model did not want to answer
filter, safety, recitation
                   a filter of the provider: of content in general, for safety, for protected text
malformed          it ended in a call that the provider itself could not read
thoughts, empty    there is no answer in it
error              the provider broke it off
cancelled          somebody here did
unknown            the provider's reason is none of these, or it gave none
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from dragoman.messages.message import Error, Message
from dragoman.sentences import Sentence, sentence

REFUSED = frozenset({"refusal", "filter", "safety", "recitation"})  # what it calls is not run
# More would have come, and the text of the next reply belongs to the same answer.
INCOMPLETE = frozenset({"length", "context", "pause"})
FAILED = frozenset({"malformed", "error"})  # what there is of it is no answer, whatever the turn's state
WITHOUT_ANSWER = frozenset({"malformed", "thoughts", "empty", "error"})

BROKEN_OFF = REFUSED | {"length", "context", "malformed", "error", "cancelled"}
"""A call at the end of these may be half written."""

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
_KINDS = {"empty": "empty_reply"}  # of notices, where they have another name than the finish


def notice_of(finish: Finish, model: str, reason: str = "") -> str | None:
    """What a person is told of a reply that ended like this; None where it ended as it should."""
    if finish not in _NOTICES or (finish == "unknown" and not reason):
        return None
    text = _NOTICES[finish](model)
    return sentence("ending.with_reason", ending=text, reason=reason) if reason else text


def ending_of(reply: Message, following: Message | None) -> str | None:
    """What is to be said below a stored reply, once it is known whether it went on."""
    went_on = following is not None and following.turn == reply.turn
    if reply.finish is None or any(isinstance(part, Error) for part in reply.parts):
        return None
    if reply.finish in INCOMPLETE and went_on:
        return None
    return notice_of(reply.finish, reply.model or "the model", str(reply.metadata.get("reason", "")))


def notice_kind(finish: Finish) -> str:
    return _KINDS.get(finish, finish)


def reason_of(finish: Finish, word: str | None, *details: str | None) -> str:
    """The provider's own word, with what it says of it, where ours does not tell all."""
    if finish in ("stop", "tool_calls", *INCOMPLETE) or not word:
        return ""
    return ": ".join(one.strip() for one in (word, *details) if one and one.strip())
