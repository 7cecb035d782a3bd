"""Takes up the trace that whoever asks belongs to: the turns that a request begins hang below their span."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman.trace_context import HEADER, parse_header, within


class IncomingTrace:
    """Around the API, inside whatever lets people in."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        theirs = parse_header(Headers(scope=scope).get(HEADER)) if scope["type"] == "http" else None
        with within(theirs):
            await self._app(scope, receive, send)
