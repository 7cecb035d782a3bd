"""A server on the loopback address that wants a login, and the one that gives logins, in one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias
from urllib.parse import urlencode

from aiohttp import web

Said: TypeAlias = Literal["yes", "no", "nothing"]


@dataclass
class Guarded:
    """A server that requires a login. `asked` are the token requests it received, and a token lasts `lasts`
    seconds."""

    base: str = ""
    lasts: int = 3600
    valid: set[str] = field(default_factory=set)
    asked: list[dict[str, Any]] = field(default_factory=list)
    registered: int = 0
    redirects: dict[str, list[str]] = field(default_factory=dict)  # where clients may come back to
    person_says: Said = "yes"  # when asked whether we may

    @property
    def url(self) -> str:
        return f"{self.base}/mcp"

    async def resource(self, _: web.Request) -> web.Response:
        return web.json_response({"resource": self.url, "authorization_servers": [self.base]})

    async def issuer(self, _: web.Request) -> web.Response:
        places = {"authorization": "authorize", "token": "a/place/for/tokens", "registration": "register"}
        return web.json_response(
            {
                "issuer": self.base,
                **{f"{name}_endpoint": f"{self.base}/{path}" for name, path in places.items()},
                "response_types_supported": ["code"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "code_challenge_methods_supported": ["S256"],
            }
        )

    async def register(self, request: web.Request) -> web.Response:
        self.registered += 1
        client = {**await request.json(), "client_id": f"client-{self.registered}"}
        self.redirects[client["client_id"]] = client["redirect_uris"]
        return web.json_response({**client, "token_endpoint_auth_method": "none"}, status=201)

    async def authorize(self, request: web.Request) -> web.Response:
        back_to = request.query["redirect_uri"]
        if back_to not in self.redirects.get(request.query["client_id"], [back_to]):
            return web.Response(status=400, text="this client does not come back there")
        if self.person_says == "nothing":
            return web.Response(text="May Dragoman come in?")
        said = {"code": "the-code"} if self.person_says == "yes" else {"error": "access_denied"}
        back = urlencode({**said, "state": request.query["state"]})
        raise web.HTTPFound(f"{back_to}?{back}")

    async def token(self, request: web.Request) -> web.Response:
        said = {key: str(value) for key, value in (await request.post()).items()}
        self.asked.append(said)
        token = f"token-{len(self.asked)}"
        self.valid = {token}
        return web.json_response(
            {
                "access_token": token,
                "token_type": "Bearer",
                "expires_in": self.lasts,
                "refresh_token": "again",
            }
        )

    async def mcp(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization", "").removeprefix("Bearer ") not in self.valid:
            place = f'Bearer resource_metadata="{self.base}/.well-known/oauth-protected-resource/mcp"'
            return web.Response(status=401, headers={"WWW-Authenticate": place})
        if request.method != "POST":
            return web.Response(status=405)
        message = await request.json()
        results: dict[str, Any] = {
            "initialize": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "guarded", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "secret", "inputSchema": {"type": "object"}}]},
        }
        if "id" not in message:
            return web.Response(status=202)
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] not in results:
            return web.json_response({**reply, "error": {"code": -32601, "message": "no such method"}})
        return web.json_response({**reply, "result": results[message["method"]]})


@asynccontextmanager
async def guarded() -> AsyncIterator[Guarded]:
    server = Guarded()
    app = web.Application()
    app.router.add_get("/.well-known/oauth-protected-resource/mcp", server.resource)
    app.router.add_get("/.well-known/oauth-authorization-server", server.issuer)
    app.router.add_post("/register", server.register)
    app.router.add_get("/authorize", server.authorize)
    app.router.add_post("/a/place/for/tokens", server.token)
    app.router.add_route("*", "/mcp", server.mcp)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        server.base = "http://{}:{}".format(*runner.addresses[0][:2])
        yield server
    finally:
        await runner.cleanup()
