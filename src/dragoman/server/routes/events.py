"""Routes of the live streams: a person's list and a conversation, in one connection for each tab."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import Header, Query
from starlette.responses import Response

from dragoman.server.api_router import api_router
from dragoman.server.context import Context, Person, TheContext
from dragoman.server.stream import EventStream, Subject, follow
from dragoman.server.stream_events import LiveEvent

router = api_router("live")
After = Annotated[str, Query(max_length=500, description="the id of the last event that was seen")]
LastEventId = Annotated[str | None, Header(max_length=500)]


def stream_of(event: object) -> dict[int | str, dict[str, object]]:
    """How a stream of such events is described; `description.py` says that they are its items."""
    return {200: {"model": event, "content": {"text/event-stream": {}}}}


@router.get("/events", response_class=Response, responses=stream_of(LiveEvent))
async def events(
    context: TheContext,
    person: Person,
    conversation: Annotated[str | None, Query()] = None,
    after: After = "",
    last_event_id: LastEventId = None,
) -> Response:
    """Changes of the list; with `conversation`, also everything that happens in it, a snapshot first."""
    subjects = [await context.publisher.list_of(person)]
    if conversation is not None:
        await context.conversation(conversation, person)
        subjects.append(context.publisher.conversation(conversation))
    return _stream(context, subjects, last_event_id or after)


@router.get("/conversations/{id}/events", response_class=Response, responses=stream_of(LiveEvent))
async def conversation_events(
    context: TheContext, person: Person, id: str, after: After = "", last_event_id: LastEventId = None
) -> Response:
    """Everything that happens in one conversation, a snapshot first."""
    await context.conversation(id, person)
    return _stream(context, [context.publisher.conversation(id)], last_event_id or after)


def _stream(context: Context, subjects: Sequence[Subject], after: str) -> Response:
    publisher = context.publisher
    return EventStream(follow(subjects, publisher.pace, after), publisher.streams)
