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

from typing import TypeAlias

from dragoman.messages.message import Message
from dragoman.messages.parts import Error

REFUSED = frozenset({"refusal", "filter", "safety", "recitation"})  # what it calls is not run
# More would have come, and the text of the next reply belongs to the same answer.
INCOMPLETE = frozenset({"length", "context", "pause"})
FAILED = frozenset({"malformed", "error"})  # what there is of it is no answer, whatever the turn's state
WITHOUT_ANSWER = frozenset({"malformed", "thoughts", "empty", "error"})

BROKEN_OFF = REFUSED | {"length", "context", "malformed", "error", "cancelled"}
"""A call at the end of these may be half written."""

Finish: TypeAlias = str

_NOTICES: dict[Finish, str] = {
    "length": "the reply of {model} is cut off: it came to its limit of tokens",
    "context": "the reply of {model} is cut off: its context is full",
    "pause": "{model} paused, and was not asked to go on",
    "refusal": "{model} refused to answer",
    "filter": "the provider's content filter ended the reply of {model}",
    "safety": "the provider's safety filter ended the reply of {model}",
    "recitation": "the provider ended the reply of {model}, which repeated a text that is protected",
    "malformed": "{model} made a call that its provider could not read",
    "thoughts": "{model} thought, and gave no answer",
    "empty": "{model} sent an empty reply",
    "error": "the provider broke off the reply of {model}",
    "unknown": "{model} ended its reply for a reason that is not known here",
}
_KINDS = {"empty": "empty_reply"}  # of notices, where they have another name than the finish


def notice_of(finish: Finish, model: str, reason: str = "") -> str | None:
    """What a person is told of a reply that ended like this; None where it ended as it should."""
    if finish not in _NOTICES or (finish == "unknown" and not reason):
        return None
    text = _NOTICES[finish].format(model=model)
    return f"{text} ({reason})" if reason else text


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
