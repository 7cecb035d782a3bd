"""Serve conversations as OpenAI's API does: create them with items, read, list their items, and delete."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import Field, JsonValue

from dragoman.conversation.sharing import Right
from dragoman.conversation.tree import Conversation
from dragoman.errors import NotFound
from dragoman.messages.ids import new_id
from dragoman.server.context import Context, TheContext
from dragoman.server.protocols.openai.api_errors import ApiRefusal, OpenAIRoute, not_offered
from dragoman.server.protocols.openai.find_conversation import MARK
from dragoman.server.protocols.openai.request_input import Brought, Metadata, StrictBody, messages_of
from dragoman.server.protocols.openai.response_object import items_of
from dragoman.server.protocols.openai.responses import InputItem, read_items
from dragoman.turn.facts import options_in
from dragoman.turn.settings import unchecked

router = APIRouter(prefix="/conversations", route_class=OpenAIRoute, include_in_schema=False)
_MOST = 20  # OpenAI's maximum number of initial items


class ConversationBody(StrictBody):
    items: Annotated[list[InputItem] | None, Field(max_length=_MOST)] = None
    metadata: Metadata | None = None


class MetadataBody(StrictBody):
    metadata: Metadata


@router.post("")
async def create_conversation(context: TheContext, body: ConversationBody | None = None) -> dict[str, Any]:
    body = body or ConversationBody()
    brought = Brought()
    await read_items(context, body.items or [], brought, "items")
    if brought.system:
        raise ApiRefusal("A conversation has no prompt. Send instructions with each response.", "items")
    now = context.runtime.services.clock()
    settings: dict[str, JsonValue] = {"metadata": {**body.metadata}} if body.metadata else {}
    new = Conversation(new_id("conv"), settings=settings, user=context.user, created=now, updated=now)
    messages = await messages_of(brought.entries, new.id, context)
    if messages:
        messages[0] = replace(messages[0], metadata={MARK: {}})
        new = replace(new, leaf=messages[-1].id)
    await context.runtime.store.add_conversation(new, messages)
    context.publisher.changed(new.id)
    return _view(new)


@router.get("/{id}")
async def read_conversation(context: TheContext, id: str) -> dict[str, Any]:
    return _view(await context.conversation(id, Right.READ))


@router.post("/{id}")
async def change_conversation(context: TheContext, id: str, body: MetadataBody) -> dict[str, Any]:
    """Replace the metadata as a whole."""
    before = (await context.conversation(id, Right.OWN)).settings.get("metadata")
    removed = dict.fromkeys(before) if isinstance(before, dict) else {}
    handle = await context.runtime.conversation(id)
    await handle.change(**unchecked({"metadata": {**removed, **body.metadata}}))
    context.publisher.changed(id)
    return _view(await context.conversation(id, Right.OWN))


@router.delete("/{id}")
async def delete_conversation(context: TheContext, id: str) -> dict[str, Any]:
    """Delete a conversation with everything in it. Its running turns are cancelled first."""
    await context.check(id, Right.OWN)
    await context.delete(id)
    return {"id": id, "object": "conversation.deleted", "deleted": True}


@router.get("/{id}/items")
async def list_items(
    context: TheContext,
    id: str,
    *,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    order: Literal["asc", "desc"] = "desc",
    after: str | None = None,
) -> dict[str, Any]:
    """List the items of the branch that is shown."""
    items = await _items(context, id)
    if order == "desc":
        items.reverse()
    if after is not None:
        ids = [item["id"] for item in items]
        if after not in ids:
            raise NotFound("item", after)
        items = items[ids.index(after) + 1 :]
    data = items[:limit]
    ends = {"first_id": data[0]["id"] if data else None, "last_id": data[-1]["id"] if data else None}
    return {"object": "list", "data": data, "has_more": len(items) > limit, **ends}


@router.get("/{id}/items/{item}")
async def read_item(context: TheContext, id: str, item: str) -> dict[str, Any]:
    for found in await _items(context, id):
        if found["id"] == item:
            return found
    raise NotFound("item", item)


@router.post("/{id}/items")
async def add_items(context: TheContext, id: str) -> None:
    await context.check(id, Right.READ)
    raise not_offered(
        "items", "You cannot add items to a conversation. Send them as the input of a response."
    )


@router.delete("/{id}/items/{item}")
async def delete_item(context: TheContext, id: str, item: str) -> None:
    await context.check(id, Right.READ)
    raise not_offered("item", "You cannot delete items. Continue from an earlier response instead.")


def _view(one: Conversation) -> dict[str, Any]:
    metadata = one.settings.get("metadata") or {}
    return {"id": one.id, "object": "conversation", "created_at": int(one.created), "metadata": metadata}


async def _items(context: Context, id: str) -> list[dict[str, Any]]:
    """Return the items for a caller: messages, and calls of client tools with their outputs.

    Turns that are not stored belong to a history that a caller sent. All calls of theirs are returned.
    """
    await context.check(id, Right.READ)
    store = context.runtime.store
    tools = {
        turn.id: {spec.name for spec in options_in(await store.facts(turn.id)).client_tools}
        for turn in await store.turns(id)
    }
    path = await (await context.runtime.conversation(id)).messages()
    return [item for message in path for item in items_of(message, tools.get(message.turn or ""))]
