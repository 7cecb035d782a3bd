"""Define routes to monitor a server without a sign-in: liveness, readiness and metrics."""

from __future__ import annotations

import asyncio
import logging
from typing import Literal, TypeAlias

from fastapi import APIRouter, FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from dragoman.conversation.tree import LOCAL
from dragoman.errors import DragomanError, StoreUnavailable
from dragoman.runtime import Runtime
from dragoman.server.auth import SIGN_IN_FIRST
from dragoman.telemetry.observer import Telemetry
from dragoman.telemetry.registry import CONTENT_TYPE, Registry, prometheus_text
from dragoman.wire.http_client.network import is_loopback

PATHS = ("/healthz", "/readyz")
_METHODS = ["GET", "HEAD"]  # Many monitoring systems request no body.
router = APIRouter(tags=["health"], include_in_schema=False)
_log = logging.getLogger("dragoman.server")
# Seconds that the store's answer stays cached, because unauthenticated clients can send any number of
# requests.
_FRESH = 1.0
_LONGEST = 5.0  # maximum seconds for the store's answer


@router.api_route("/healthz", methods=_METHODS)
async def alive() -> Response:
    """Answer that the process and its event loop are running."""
    return JSONResponse({"status": "alive"})


@router.api_route("/readyz", methods=_METHODS)
async def ready(request: Request) -> Response:
    """Answer whether the store can be read, with 503 if it cannot. The log has the reason."""
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


# ── metrics for Prometheus ────────────────────────────────────────────────────────────────────────


Reach: TypeAlias = Literal["owner", "loopback", "off"]
"""Which clients can read the metrics: the admin with a key, programs on this machine, or none."""

_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip")


def install(app: FastAPI, runtime: Runtime, reach: Reach) -> None:
    """Start to count and add the route, unless metrics are off."""
    if reach == "off":
        return
    registry = Registry()
    telemetry = runtime.telemetry
    if telemetry is None:
        telemetry = runtime.telemetry = Telemetry()
        telemetry.join(runtime.bus, runtime.background, runtime.store)
        telemetry.open()
    telemetry.meters.append(registry)

    @app.get("/metrics", include_in_schema=False)
    async def metrics(request: Request) -> Response:
        person = await request.app.state.context.who(request)
        if person != LOCAL and not (reach == "loopback" and _is_from_here(request)):
            raise (
                HTTPException(401, SIGN_IN_FIRST)
                if person is None
                else HTTPException(403, "not yours to see")
            )
        try:
            await telemetry.tell()
            await telemetry.look()
        except StoreUnavailable:
            pass  # Metrics matter most when the store is unavailable.
        return Response(prometheus_text(registry, telemetry.gauges), media_type=CONTENT_TYPE)


def _is_from_here(request: Request) -> bool:
    """Return whether the request is from a program on this machine. Requests through a local proxy do not
    count."""
    forwarded = any(name in request.headers for name in _FORWARDED)
    return not forwarded and request.client is not None and is_loopback(request.client.host)
