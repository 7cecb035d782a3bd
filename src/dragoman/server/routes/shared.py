"""Routes for anyone who has a read-only link: what it shows, once or live."""

from __future__ import annotations

import asyncio
import hmac
from collections import OrderedDict
from collections.abc import AsyncGenerator

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dragoman.background import in_thread
from dragoman.conversation.sharing import SharedState
from dragoman.conversation.tree import Tree
from dragoman.errors import NotFound, StoreUnavailable
from dragoman.messages.message import canonical
from dragoman.sentences import sentence
from dragoman.server.auth import TooManyTries
from dragoman.server.context import Context, api_router, stream_of
from dragoman.server.event_stream import EventStream
from dragoman.store.store import Store
from dragoman.turn.api.shared_view import SharedConversation, shown_to_anyone
from dragoman.turn.api.sharing import token_hash

router = api_router("shared")
_HEADERS = {"cache-control": "no-store", "x-robots-tag": "noindex"}
_LOOK = 1.0  # seconds between looks whether something has changed, and whether the link is still valid
_LONGEST = 45.0  # seconds of a live stream: who is not signed in is disconnected after 60, and connects again
_MOST = 100  # live streams of links at a time: each asks the store once a second
_KEPT = 100  # views, since anyone may ask for them again and again
_NOT_THERE = NotFound("link", "…")


class SharedViews:
    """What links show, as JSON that is made once for each change of their conversations: the views that were
    asked for last. And how many streams of them are open."""

    def __init__(self) -> None:
        self._made: OrderedDict[str, tuple[object, str]] = OrderedDict()
        self.streams = 0

    async def of(self, store: Store, state: SharedState) -> str:
        share = state.share
        if share.frozen is not None:
            return share.frozen
        info = await store.conversation(share.conversation)
        private = canonical(info.settings.get("private"))
        now = (state.revision, info.leaf, info.title, private)
        made = self._made.get(share.id)
        if made is None or made[0] != now:
            messages, _ = await store.messages(share.conversation)
            path = Tree(messages).path(info.leaf)
            text = await in_thread(lambda: shown_to_anyone(info, path, share.upto, share.omits))
            made = self._made[share.id] = now, text
            while len(self._made) > _KEPT:
                self._made.popitem(last=False)
        return made[1]


async def _valid(request: Request, token: str) -> tuple[Context, str]:
    """→ the hash of a token that is valid now. Wrong ones are counted, and slowed, like wrong passwords."""
    context: Context = request.app.state.context
    try:
        attempt = context.guesses.begin(request.client.host if request.client else "")
    except TooManyTries as error:
        wait = {"retry-after": str(int(error.seconds) + 1)}
        raise HTTPException(429, sentence("share.too_often"), headers=wait) from error
    await asyncio.sleep(attempt.wait)
    hash = token_hash(token)
    if await _state(context, hash) is None:
        raise _NOT_THERE
    attempt.was_right()
    return context, hash


async def _state(context: Context, hash: str) -> SharedState | None:
    found = await context.runtime.store.share(hash, context.runtime.services.clock())
    if found is None or found.share.kind != "link" or not hmac.compare_digest(found.share.hash, hash):
        return None
    return found


@router.get("/shared/{token}", response_model=SharedConversation)
async def read_shared(request: Request, token: str) -> Response:
    """What a link shows: nobody need sign in. 404 for one that is revoked, has expired, or was never made."""
    context, hash = await _valid(request, token)
    if (state := await _state(context, hash)) is None:
        raise _NOT_THERE
    views: SharedViews = request.app.state.shared_views
    shown = await views.of(context.runtime.store, state)
    return Response(shown, media_type="application/json", headers=_HEADERS)


@router.get("/shared/{token}/events", response_class=Response, responses=stream_of(SharedConversation))
async def follow_shared(request: Request, token: str) -> Response:
    """The same as `snapshot` events: now, and whenever it is not what it was. The stream ends after 45
    seconds, to be opened again, or when the link is no longer valid."""
    context, hash = await _valid(request, token)
    return LinkStream(context, request.app.state.shared_views, hash)


class LinkStream(EventStream):
    """One of the streams that may be open at a time: it counts itself in the step that finds it may be."""

    def __init__(self, context: Context, views: SharedViews, hash: str) -> None:
        chunks = _follow(context, views, hash)
        super().__init__(chunks, context.publisher.streams, _HEADERS, reader=None)
        self._views = views

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._views.streams >= _MOST:
            raise HTTPException(503, sentence("share.busy"), headers={"retry-after": "5"})
        self._views.streams += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._views.streams -= 1


async def _follow(context: Context, views: SharedViews, hash: str) -> AsyncGenerator[bytes, None]:
    told = ""
    try:
        yield b"retry: 1000\n\n"
        until = asyncio.get_running_loop().time() + _LONGEST
        while asyncio.get_running_loop().time() < until:
            state = await _state(context, hash)
            if state is None:
                return
            if (text := await views.of(context.runtime.store, state)) != told:
                told = text
                yield f"event: snapshot\ndata: {text}\n\n".encode("utf-8", "replace")
            await asyncio.sleep(_LOOK)
    except (NotFound, StoreUnavailable):
        return  # deleted meanwhile, or out of reach: who opens it again learns that
