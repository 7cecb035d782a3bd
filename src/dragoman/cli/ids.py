"""The beginning of an id, or "last", in; the conversation or question that is meant out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

from dragoman.conversation.tree import Conversation
from dragoman.errors import BadRequest, NotFound
from dragoman.messages.questions import Question
from dragoman.store.store import Store

LAST = "last"
_PAGE = 200


async def conversation_named(store: Store, name: str) -> Conversation:
    """The conversation of this id, of the only id that begins like this, or the one that was used last."""
    if name == LAST:
        async for conversation in all_conversations(store):
            return conversation
        raise NotFound("conversation", LAST, "there are none yet")
    try:
        return await store.conversation(name)
    except NotFound:
        found = {conversation.id: conversation async for conversation in all_conversations(store, inner=True)}
        return found[only("conversation", name, found)]


async def question_named(store: Store, name: str) -> Question:
    """An open question, likewise; an answered one by its whole id."""
    open = {question.id: question for question in await store.questions()}
    if name == LAST and open:
        return list(open.values())[-1]
    if name in open:
        return open[name]
    try:
        return await store.question(name)
    except NotFound:
        return open[only("question", name, open)]


def only(noun: str, beginning: str, ids: Iterable[str]) -> str:
    """The one id that begins like this, with or without the word in front."""
    known = list(ids)
    meant = [id for id in known if beginning and beginning in (id[: len(beginning)], _bare(id, beginning))]
    if len(meant) > 1:
        raise BadRequest(f"{beginning!r} is the beginning of {len(meant)} ids: {', '.join(meant[:5])}")
    if not meant:
        raise NotFound(noun, beginning)
    return meant[0]


async def all_conversations(store: Store, *, inner: bool = False) -> AsyncIterator[Conversation]:
    """The last used first. Those that calls opened only where they are wanted."""
    before: tuple[float, str] | None = None
    while page := await store.conversations(limit=_PAGE, before=before):
        for conversation in page:
            if inner or conversation.parent is None:
                yield conversation
        before = (page[-1].updated, page[-1].id)


def _bare(id: str, beginning: str) -> str:
    """As many letters, without the word in front."""
    return id.partition("_")[2][: len(beginning)]
