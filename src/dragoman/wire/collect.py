"""Collects a whole reply: for requests beside a conversation, such as titles and summaries."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing

from dragoman.messages.events import StepRetry
from dragoman.messages.fold import Draft
from dragoman.messages.ids import new_id
from dragoman.messages.message import Message
from dragoman.messages.request import Request
from dragoman.wire.wire import Model


async def collect_reply(
    model: Model,
    request: Request,
    conversation: str = "",
    *,
    on_retry: Callable[[StepRetry], None] | None = None,
) -> Message:
    """The reply as a message. Nothing of it is stored or shown; `on_retry` hears why it takes so long."""
    draft = Draft(Message(new_id("msg"), conversation, None, "assistant", (), model=model.name))
    async with aclosing(model.stream(request, draft.id)) as replies:
        async for events in replies:
            for event in events:
                if on_retry is not None and isinstance(event, StepRetry):
                    on_retry(event)
                for one in request.read_reply(event) if request.filters else (event,):
                    draft.apply(one)
    return draft.message
