"""Define routes to list, search, create, change, watch, fork, export, import and delete conversations."""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Annotated, Any, cast
from urllib.parse import quote

from fastapi import Query, Request
from pydantic import JsonValue
from pydantic_core import from_json
from starlette.responses import JSONResponse, Response, StreamingResponse

from dragoman.conversation.sharing import Right
from dragoman.conversation.tree import Conversation
from dragoman.errors import BadRequest, NotFound, Unreadable
from dragoman.sentences import sentence
from dragoman.server import bodies, shapes
from dragoman.server.context import Context, LastEventId, TheContext, api_router, stream_of
from dragoman.server.event_stream import EventStream, LiveEvent, Subject, follow
from dragoman.server.snapshots import TreeSnapshot, right_in, summaries, summary, without_private
from dragoman.store.store import Busy, Found
from dragoman.turn.settings import known
from dragoman.workspace.workspaces import OWN

router = api_router("conversations")
_MARKS = str.maketrans("«»", "\x02\x03")
_NO_CURSOR = sentence("page.no_cursor")


@router.get("/conversations")
async def list_conversations(
    context: TheContext,
    *,
    search: Annotated[str, Query(max_length=500, description="words of titles, messages and calls")] = "",
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    before: Annotated[str, Query(max_length=200, description="`next` of the page before")] = "",
    archived: Annotated[bool, Query(description="those in the archive, and no others")] = False,
    pinned: Annotated[bool | None, Query()] = None,
    tag: Annotated[str | None, Query(min_length=1, max_length=40)] = None,
) -> shapes.Page:
    """List conversations, most recently used first. With `search`, list those that contain these words, best
    first, including the archive."""
    store = context.runtime.store
    if search.strip():
        return await _search(context, search, limit, before)
    page = await store.conversations(
        user=context.person,
        limit=limit + 1,
        before=_parse_cursor(before),
        archived=archived,
        pinned=pinned,
        tag=tag,
        shared=True,
    )
    lines = await summaries(context.runtime, page[:limit], context.person)
    more = len(page) > limit and bool(lines)
    # The first page contains all tags.
    tags = [] if before or pinned else await store.tags(context.person, shared=True)
    return shapes.Page(lines, _cursor(lines[-1]) if more else None, tags)


@router.post("/conversations", status_code=201)
async def new_conversation(context: TheContext, body: bodies.NewConversation) -> shapes.ConversationSummary:
    settings = await _settings(context, body.settings)
    handle = await context.runtime.conversation(user=context.user, **settings)
    if body.title:
        await handle.rename(body.title)
    context.publisher.changed(handle.id)
    return await _line(context, handle.id)


@router.get("/conversations/{id}")
async def conversation(context: TheContext, id: str) -> shapes.ConversationSummary:
    await context.conversation(id, Right.READ)
    return await _line(context, id)


@router.patch("/conversations/{id}")
async def change_conversation(
    context: TheContext, id: str, body: bodies.ConversationChange
) -> shapes.ConversationSummary:
    """Change a conversation's title, settings or shown branch. A member who takes part can choose the branch.
    Only the owner can change the rest."""
    only_leaf = body.model_fields_set <= {"leaf"}
    await context.check(id, Right.TAKE_PART if only_leaf else Right.OWN)
    handle = await context.runtime.conversation(id)
    before = (await handle.info()).settings if body.settings else None
    settings = await _settings(context, body.settings or {}, before)
    if body.leaf is not None:
        # The move can be refused, so it comes first. Then nothing is changed.
        await handle.move_to(body.leaf)
    if settings:
        await handle.change(**settings)
    if body.title is not None:
        await handle.rename(body.title)
    if (body.pinned, body.archived, body.tags) != (None, None, None):
        await handle.label(pinned=body.pinned, archived=body.archived, tags=body.tags)
    context.publisher.changed(id)
    return await _line(context, id)


@router.delete("/conversations/{id}", status_code=204)
async def delete_conversation(context: TheContext, id: str) -> None:
    """Delete a conversation with everything in it. Its running turns are cancelled first."""
    await context.check(id, Right.OWN)
    await context.delete(id)


@router.post("/conversations/{id}/fork", status_code=201)
async def fork(context: TheContext, id: str, body: bodies.Fork) -> shapes.ConversationSummary:
    """Create a conversation of yours with the path to this message. A copy of the folder requires that you
    take part, because the folder contains more than you can read here."""
    place = (await context.conversation(id, Right.READ)).settings.get("workspace")
    if body.own_folder or (isinstance(place, str) and place.endswith(OWN)):
        await context.check(id, Right.TAKE_PART)
    made = await context.runtime.fork(id, body.message, own_folder=body.own_folder, user=context.person)
    context.publisher.changed(made.id)
    return await _line(context, made.id)


@router.get("/conversations/{id}/tree", response_model=shapes.TreeView)
async def tree(context: TheContext, id: str) -> Response:
    """Return every message on every branch, the running turns, the queue and the approval requests."""
    right = await context.check(id, Right.READ)
    read = await context.publisher.trees.read(id)
    if right is not Right.OWN:
        return Response(without_private(b"".join(read)), media_type="application/json")
    return StreamingResponse(_sent(read), media_type="application/json")


@router.get("/conversations/{id}/export", responses={200: {"content": {"text/markdown": {}}}})
async def export(
    context: TheContext, id: str, format: Annotated[str, Query(pattern="^(json|markdown)$")] = "json"
) -> Response:
    """Export a conversation: as JSON, which can be imported again, or as Markdown for reading."""
    shown = await context.conversation(id, Right.READ)
    name = {
        "content-disposition": _attachment(shown.title or id, "md" if format == "markdown" else "json", id)
    }
    await context.audit("conversation.exported", id, format=format)
    if format == "markdown":
        return Response(await context.runtime.export_markdown(id), media_type="text/markdown", headers=name)
    owns = await context.check(id, Right.READ) is Right.OWN
    return JSONResponse(await context.runtime.export(id, private=owns), headers=name)


@router.get("/conversations/{id}/raw")
async def export_raw(context: TheContext, id: str) -> dict[str, JsonValue]:
    """Export every stored row of a conversation, readable or not. This is the last resort for a
    damaged one."""
    await context.check(id, Right.OWN)
    await context.audit("conversation.exported", id, format="raw")
    return await context.runtime.store.export_raw(id)


@router.post(
    "/import",
    status_code=201,
    openapi_extra={"requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}}},
)
async def import_conversation(context: TheContext, request: Request) -> shapes.ConversationSummary:
    """Import a conversation. The body is the JSON of an export."""
    raw = await request.body()
    try:
        data = await asyncio.to_thread(from_json, raw)  # The text can be long.
    except ValueError as error:
        raise BadRequest(sentence("export.no_json", error=error)) from error
    if not isinstance(data, dict):
        raise BadRequest(sentence("export.no_object"))
    made = await context.runtime.import_conversation(data, user=context.user)
    context.publisher.changed(made.id)
    return await _line(context, made.id)


def _attachment(title: str, ending: str, id: str) -> str:
    """Return the header that names a download after the conversation: in full as RFC 6266 defines, and in
    ASCII for older browsers."""
    words = " ".join(re.sub(r"[^\w .,()+-]", " ", title).split()).strip(". ")[:80] or id
    plain = words.encode("ascii", "ignore").decode().strip(". ") or id
    return f"attachment; filename=\"{plain}.{ending}\"; filename*=UTF-8''{quote(f'{words}.{ending}')}"


async def _settings(
    context: Context, wanted: bodies.ConversationSettings, before: Mapping[str, JsonValue] | None = None
) -> dict[str, Any]:
    """Return the settings if they can be applied. Raises BadRequest or NotFound otherwise."""
    settings = known(cast("dict[str, JsonValue]", wanted))
    services = await context.services()
    services.toolbox.check_switches(settings.get("tools"), (before or {}).get("tools"))
    for name, find in (("agent", services.agent), ("model", services.model)):
        if isinstance(named := settings.get(name), str):
            try:
                find(named)
            except NotFound as error:
                raise BadRequest(str(error)) from error
    return dict(settings)


async def _sent(tree: TreeSnapshot) -> AsyncIterator[bytes]:
    for piece in tree:
        yield piece


async def _line(context: Context, id: str) -> shapes.ConversationSummary:
    found = await context.runtime.store.conversation(id)
    (line,) = await summaries(context.runtime, [found], context.person)
    return line


async def _search(context: Context, search: str, limit: int, before: str) -> shapes.Page:
    store = context.runtime.store
    place, last = _parse_place(before)
    far = place + limit if last else 0  # The last shown result can have moved down.
    found = await store.search(search, user=context.person, limit=far + limit + 1, distinct=True, shared=True)
    shown = [hit.conversation for hit in found[:far]]
    start = shown.index(last) + 1 if last in shown else max(0, place - limit)
    hits = found[start : start + limit]
    ids = [hit.conversation for hit in hits]
    busy, shared = await store.busy(ids), await store.shared_among(ids)
    lines = [
        summary(
            listed,
            busy.get(hit.conversation, Busy()),
            hit.snippet.translate(_MARKS),
            hit.message,
            right=right,
            shared=hit.conversation in shared,
        )
        for hit in hits
        if (listed := await _listed(context, hit)) is not None
        and (right := await right_in(context.runtime, listed, context.person)) is not Right.NONE
    ]
    more = len(found) > start + limit
    return shapes.Page(lines, f"{start + limit}-{hits[-1].conversation}" if more else None)


async def _listed(context: Context, hit: Found) -> Conversation | None:
    """Return a conversation as the list shows it, even if it is unreadable. None if it has been deleted
    since."""
    try:
        return await context.runtime.store.conversation(hit.conversation)
    except NotFound:
        return None
    except Unreadable:
        user = await context.runtime.store.owner_of(hit.conversation)
        return Conversation(hit.conversation, f"{hit.title or 'untitled'} (cannot be read)", user=user)


def _cursor(line: shapes.ConversationSummary) -> str:
    return base64.urlsafe_b64encode(f"{line.updated!r} {line.id}".encode()).decode()


def _parse_place(cursor: str) -> tuple[int, str]:
    """Return how many results have been shown, and the last of them.

    If that one has been deleted since, its page is shown again: otherwise, results that moved up would be
    missed.
    """
    if not cursor:
        return 0, ""
    if (place := re.fullmatch(r"([0-9]{1,6})-(.+)", cursor)) is None:
        raise BadRequest(_NO_CURSOR)
    return int(place[1]), place[2]


def _parse_cursor(cursor: str) -> tuple[float, str] | None:
    if not cursor:
        return None
    try:
        updated, _, id = base64.urlsafe_b64decode(cursor.encode()).decode().partition(" ")
        return float(updated), id
    except (ValueError, binascii.Error) as error:
        raise BadRequest(_NO_CURSOR) from error


# ── live streams ──────────────────────────────────────────────────────────────────────────────────


live = api_router("live")
After = Annotated[str, Query(max_length=2000, description="the ID of the last event you received")]


@live.get("/events", response_class=Response, responses=stream_of(LiveEvent))
async def events(
    context: TheContext,
    conversation: Annotated[str | None, Query()] = None,
    after: After = "",
    last_event_id: LastEventId = None,
) -> Response:
    """Stream changes of your list. With `conversation`, also stream its events, starting with a snapshot."""
    subjects = [await context.publisher.list_of(context.person)]
    if conversation is not None:
        subjects.append(await _subject(context, conversation, last_event_id or after))
    return _stream(context, subjects, last_event_id or after, conversation)


@live.get("/conversations/{id}/events", response_class=Response, responses=stream_of(LiveEvent))
async def conversation_events(
    context: TheContext, id: str, after: After = "", last_event_id: LastEventId = None
) -> Response:
    """Stream the events of one conversation, starting with a snapshot."""
    subject = await _subject(context, id, last_event_id or after)
    return _stream(context, [subject], last_event_id or after, id)


async def _subject(context: Context, id: str, after: str) -> Subject:
    right = await context.check(id, Right.READ)
    await context.runtime.store.conversation(id)  # raises Unreadable if the conversation is damaged
    subject = await context.publisher.conversation(id, after)
    if right is not Right.OWN:
        subject.shown = without_private
    return subject


def _stream(context: Context, subjects: Sequence[Subject], after: str, conversation: str | None) -> Response:
    publisher = context.publisher
    chunks = follow(subjects, publisher.pace, after)
    return EventStream(chunks, publisher.streams, reader=context.reader(conversation))
