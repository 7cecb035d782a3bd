"""The conversations of a folder, as the sessions that an editor lists."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

from pydantic import JsonValue

from dragoman.conversation.tree import LOCAL, Conversation
from dragoman.errors import BadRequest, DragomanError
from dragoman.store.store import Store
from dragoman.turn.facts import options_in

_PAGE = 50


async def list_sessions(store: Store, folder: str | None, cursor: str | None) -> JsonValue:
    """One page, the most recently used first: of a folder, or of all."""
    before = _before(cursor) if cursor is not None else None
    page = await store.conversations(user=LOCAL, limit=_PAGE, before=before)
    sessions: list[JsonValue] = []
    for each in page:
        where = await _folder_of(store, each)
        if where is not None and folder in (None, where):
            at = datetime.fromtimestamp(each.updated, UTC).isoformat()
            sessions.append({"sessionId": each.id, "cwd": where, "title": each.title, "updatedAt": at})
    more = {"nextCursor": f"{page[-1].updated!r} {page[-1].id}"} if len(page) == _PAGE else {}
    return {"sessions": sessions, **more}


def _before(cursor: str) -> tuple[float, str]:
    updated, _, id = cursor.partition(" ")
    try:
        return float(updated), id
    except ValueError:
        raise BadRequest(f"there is no page {cursor!r}") from None


async def _folder_of(store: Store, conversation: Conversation) -> str | None:
    """Where its turns work. None where nobody knows, or nothing was said in it."""
    with suppress(DragomanError, ValueError):
        for row in reversed(await store.turns(conversation.id)):
            return options_in(await store.facts(row.id)).workspace
    return None
