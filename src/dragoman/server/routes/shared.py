"""Define the routes that anyone with a read-only link can use: its content, once or live."""

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
_LOOK = 1.0  # seconds between checks for changes, and whether the link is still valid
# Seconds of a live stream. Unauthenticated clients are disconnected after 60, so these reconnect before.
_LONGEST = 45.0
_MOST = 100  # Maximum number of live streams of links: each queries the store once a second.
_KEPT = 100  # maximum number of cached views, because any client can request them
_NOT_THERE = NotFound("link", "…")


class SharedViews:
    """A cache of the JSON that links show, rebuilt when a conversation changes, and the number of open
    streams."""

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
    """Return the context and the hash of a valid token. Wrong tokens are rate-limited like wrong
    passwords."""
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
    """Return what a link shows, without a sign-in. Returns 404 for an unknown, revoked or expired link."""
    context, hash = await _valid(request, token)
    if (state := await _state(context, hash)) is None:
        raise _NOT_THERE
    views: SharedViews = request.app.state.shared_views
    shown = await views.of(context.runtime.store, state)
    return Response(shown, media_type="application/json", headers=_HEADERS)


@router.get("/shared/{token}/events", response_class=Response, responses=stream_of(SharedConversation))
async def follow_shared(request: Request, token: str) -> Response:
    """Stream what a link shows as `snapshot` events: now, and after each change. The stream ends after 45
    seconds, so that clients reconnect, or when the link becomes invalid."""
    context, hash = await _valid(request, token)
    return LinkStream(context, request.app.state.shared_views, hash)


class LinkStream(EventStream):
    """A live stream of a link. Checking the limit and counting the stream are one step."""

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
        # The conversation was deleted or the store is unreachable. The next client that opens it learns that.
        return
