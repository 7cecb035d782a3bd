"""The route that Prometheus reads: the numbers of this process, for whoever runs the server."""

from __future__ import annotations

from typing import Literal, TypeAlias

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from dragoman.conversation.tree import LOCAL
from dragoman.errors import StoreUnavailable
from dragoman.runtime import Runtime
from dragoman.server.auth import SIGN_IN_FIRST
from dragoman.telemetry.observer import Telemetry
from dragoman.telemetry.registry import CONTENT_TYPE, Registry, prometheus_text
from dragoman.wire.http_client.network import is_loopback

Reach: TypeAlias = Literal["owner", "loopback", "off"]
"""Who may read them: whoever runs the server, with its key; every program of this machine, too; nobody."""

_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip")


def install(app: FastAPI, runtime: Runtime, reach: Reach) -> None:
    """Count from now on, unless nobody may read it."""
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
            pass  # the numbers of a server in need are the last that should be missing
        return Response(prometheus_text(registry, telemetry.gauges), media_type=CONTENT_TYPE)


def _is_from_here(request: Request) -> bool:
    """A program of this machine, and nobody from elsewhere whom a proxy of this machine lets through."""
    forwarded = any(name in request.headers for name in _FORWARDED)
    return not forwarded and request.client is not None and is_loopback(request.client.host)
