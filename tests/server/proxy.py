"""A small reverse proxy, which shows a server below a path."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress

import aiohttp
from aiohttp import web

_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}


@asynccontextmanager
async def shown_below(
    path: str, server: str | Callable[[], str], *, strip: bool = True, says: Mapping[str, str] | None = None
) -> AsyncIterator[str]:
    """Yield the address of the proxy, with the path. With `strip`, the proxy removes the path before it
    forwards a request. `says` are headers that the proxy adds. A callable `server` returns the server that
    is currently up."""

    async def passes_on(request: web.Request) -> web.StreamResponse:
        target = request.rel_url.raw_path_qs
        target = target.removeprefix(path) if strip else target
        headers = {**request.headers, **(says or {})}
        async with session.request(
            request.method,
            (server if isinstance(server, str) else server()) + target,
            headers=headers,
            data=await request.read() or None,
            allow_redirects=False,
        ) as answer:
            kept = [(name, value) for name, value in answer.headers.items() if name.lower() not in _HOP]
            response = web.StreamResponse(status=answer.status, headers=kept)
            await response.prepare(request)
            with suppress(ConnectionError):  # the client has disconnected
                async for piece in answer.content.iter_any():
                    await response.write(piece)
            return response

    app = web.Application()
    app.router.add_route("*", f"{path}/{{rest:.*}}", passes_on)  # at all else there is nothing
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}{path}"
        finally:
            await runner.cleanup()
