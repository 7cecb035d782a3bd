"""Routes for whoever watches over a server: is it alive, can it serve? No sign-in, and no word more."""

from __future__ import annotations

import asyncio
import logging

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from dragoman.errors import DragomanError

PATHS = ("/healthz", "/readyz")
_METHODS = ["GET", "HEAD"]  # many who watch over servers want no body
router = APIRouter(tags=["health"], include_in_schema=False)
_log = logging.getLogger("dragoman.server")
_FRESH = 1.0  # seconds for which an answer of the store is good: strangers may ask as often as they like
_LONGEST = 5.0  # seconds that it may take


@router.api_route("/healthz", methods=_METHODS)
async def alive() -> Response:
    """The process runs, and its event loop turns."""
    return JSONResponse({"status": "alive"})


@router.api_route("/readyz", methods=_METHODS)
async def ready(request: Request) -> Response:
    """The store can be read. 503 where it cannot; the reason is in the log."""
    state = request.app.state
    looked: asyncio.Future[Response] | None = getattr(state, "readiness", None)
    now = asyncio.get_running_loop().time()
    if looked is None or now - state.readiness_at > _FRESH:
        state.readiness_at = now
        looked = state.readiness = asyncio.ensure_future(_look(request))
    return await asyncio.shield(looked)


async def _look(request: Request) -> Response:
    try:
        async with asyncio.timeout(_LONGEST):
            await request.app.state.context.runtime.store.conversations(limit=1)
    except (DragomanError, TimeoutError) as error:
        _log.warning("not ready: %s", str(error) or "the store does not answer")
        return JSONResponse({"status": "the store cannot be read"}, 503)
    return JSONResponse({"status": "ready"})
