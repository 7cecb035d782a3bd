"""Who may see a blob: whoever may see a message or a result that holds it, and who uploaded it."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman.errors import NotFound, Unreadable
from dragoman.messages.message import Message
from dragoman.messages.parts import File, ToolCall, ToolResult
from dragoman.store.store import Mention, Store


async def may_see(store: Store, blob: str, user: str) -> bool:
    """Whether one of this person's conversations holds it, or they uploaded it within the last day.

    That a row mentions it is not enough: arguments and values, too, may hold any text.
    """
    for mention in await store.mentions(blob, user):
        if mention.noun == "upload":
            return True
        try:
            if blob in await _held(store, mention):
                return True
        except (NotFound, Unreadable):
            continue
    return False


async def _held(store: Store, mention: Mention) -> set[str]:
    match mention.noun:
        case "message":
            return set(blobs_of(await store.message(mention.id)))
        case "call":
            call, _, under_review = await store.call(mention.id)
            return {*_of_result(call.result), *_of_result(under_review)}
        case "queue":
            queued = await store.queued(turn=mention.id)
            return {blob for one in queued for blob in blobs_of(one.message)}
        case _:
            return set()


def blobs_of(message: Message) -> Iterator[str]:
    """The blobs that a message and the results of its calls hold."""
    for part in message.parts:
        if isinstance(part, File) and part.blob:
            yield part.blob
        if isinstance(part, ToolCall):
            yield from _of_result(part.result)


def _of_result(result: ToolResult | None) -> Iterator[str]:
    if result is not None:
        if result.blob:
            yield result.blob
        yield from (file.blob for file in result.attachments if file.blob)
