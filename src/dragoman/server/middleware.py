"""Refuse requests with a foreign host or origin, and bodies that are compressed, too long or not JSON."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection, Mapping
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.errors import DragomanError
from dragoman.sentences import sentence
from dragoman.server.auth import SIGN_IN_FIRST, Auth
from dragoman.server.connections import ADMIN, SESSION, STILL_IN, recognise
from dragoman.server.problems import SHARED, problem, problem_of
from dragoman.server.protocols.openai.api_errors import error_response, response_to
from dragoman.server.proxies import Proxies, put_below
from dragoman.server.routes.monitoring import PATHS
from dragoman.server.routes.oidc import LOGOUT

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
JSON_LIMIT = 2_000_000
IMPORT_LIMIT = 50_000_000
# Clients of these protocols send the whole history with each request.
_PROTOCOLS = ("/api/ai-sdk/", "/api/ag-ui")
_MCP = "/mcp"  # the path of `dragoman mcp serve`, which applies a limit of 4 MiB itself
_OWN_PAGE = "/api/setup"  # The setup is only open to the server's web UI, whatever the key.
_SLOWEST = 30.0  # maximum seconds between two chunks of a body
_SIGN_IN = "/api/login"
_STRANGERS = frozenset({_SIGN_IN, LOGOUT})  # paths whose bodies are read without a sign-in
_SIGN_IN_LIMIT = 10_000  # bytes
_SIGN_IN_TIME = 10.0  # seconds until an unauthenticated client's body is complete
_LOOK_AGAIN = 15.0  # seconds between checks whether the reader of a live stream may still read it
_PORTS = {"http": 80, "https": 443}
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_STOPPING = sentence("server.stops")
_PERSON = "dragoman.person"  # scope key: the user of the request
_CHANGES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


class Middleware:
    """Protects the app: requests come from the server's web UI, or from no web page at all.

    Without a sign-in, the body of a request is read only to sign in.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: Collection[str] = LOOPBACK,
        upload_limit: int,
        auth: Auth | None = None,
        proxies: Proxies | None = None,
        origins: Collection[str] = (),
        path: str = "",
        look_again: float = _LOOK_AGAIN,
    ) -> None:
        """`origins` are other origins whose pages may send requests, with a key but never with a cookie.

        `path` is the path prefix of a proxy that does not send it.
        """
        self._app = app
        self._origins = frozenset(origins)
        self._hosts = frozenset(hosts)
        self._upload_limit = upload_limit
        self._auth = auth
        self._proxies = proxies or Proxies()
        self._below = path
        self._look_again = look_again

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        if self._below:
            put_below(scope, self._below)
        self._proxies.resolve(scope)
        path, headers = _path(scope), Headers(scope=scope)
        refuse = error_response if _is_openai(path) else problem
        refusal = self._refusal(scope, path, headers)
        if refusal is not None:
            return await refuse(*refusal)(scope, receive, send)
        if headers.get("origin") in self._origins:
            scope["headers"] = [one for one in scope["headers"] if one[0] != b"cookie"]
        if self._auth is not None:
            try:
                found = await self._auth.signed_in(HTTPConnection(scope))
                scope[_PERSON] = found.person if found is not None else None
                scope[ADMIN] = found is not None and found.is_admin
            except DragomanError as error:  # The store is not reachable.
                if _private(path):
                    answer_to = response_to if _is_openai(path) else problem_of
                    return await answer_to(error)(scope, receive, send)
            if scope.get(_PERSON) is not None:
                scope[SESSION] = self._auth.session(HTTPConnection(scope))
                scope[STILL_IN] = lambda: self._is_still_in(scope)
                recognise(scope)
            elif _private(path):
                return await refuse(401, SIGN_IN_FIRST)(scope, receive, send)
        limit = self._limit(path)
        if int(headers.get("content-length") or 0) > limit:
            return await refuse(413, sentence("request.too_big", most=limit))(scope, receive, send)
        answer = _Answer(send, lambda: self._is_still_in(scope), self._look_again)
        try:
            await self._app(scope, _bounded(receive, limit, path), answer)
        except asyncio.CancelledError:  # The server is stopping and has waited long enough for this request.
            if answer.begun:
                raise
            await refuse(503, _STOPPING, headers={"retry-after": "1"})(scope, receive, send)

    async def _is_still_in(self, scope: Scope) -> bool:
        """Return whether the user may still read the answer. A store that is briefly unreachable ends no
        answer."""
        if self._auth is None or (person := person_in(scope)) is None:
            return True
        try:
            return await self._auth.person(HTTPConnection(scope)) == person
        except DragomanError:
            return True

    def _refusal(self, scope: Scope, path: str, headers: Headers) -> tuple[int, str] | None:
        host = headers.get("host", "")
        if path in PATHS:
            return None  # Monitoring systems of multiple servers call each by its address.
        for name in headers.getlist("host") or [""]:
            if hostname(name) not in self._hosts:
                return 421, f"this server is not {name!r}: use the address it printed when it started"
        if not headers.get("content-length", "0").isdecimal():
            return 400, "the length of the body is not a number"
        if not path.startswith("/api") and not _is_openai(path):
            return None
        origin = headers.get("origin")
        if origin not in self._origins or path.startswith(_OWN_PAGE):
            if origin is not None and not _is_ours(origin, scope["scheme"], host):
                hint = "name it in [server] origins, or a proxy that speaks HTTPS in proxies"
                return 403, f"pages of another origin may not use this server ({hint})"
            if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
                return 403, "other pages may not use this server"
        body = has_body(scope)
        if scope["method"] in _CHANGES and body and not _fits(path, headers):
            return 415, "the body has to be JSON, with content-type application/json"
        if body and headers.get("content-encoding", "identity").lower() != "identity":
            return (
                415,
                "The server does not accept compressed bodies. Send the body without content-encoding.",
            )
        return None

    def _limit(self, path: str) -> int:
        if path == "/api/files":
            return self._upload_limit
        if path in _STRANGERS:
            return _SIGN_IN_LIMIT
        if _is_openai(path):  # Files are embedded as base64.
            return JSON_LIMIT + self._upload_limit * 4 // 3
        brings_history = path in ("/api/import", _MCP) or path.startswith(_PROTOCOLS)
        return IMPORT_LIMIT if brings_history else JSON_LIMIT


def person_in(scope: Scope) -> str | None:
    """Return the user that the middleware found."""
    person: str | None = scope.get(_PERSON)
    return person


def has_body(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


def hostname(host: str) -> str | None:
    """Return the name in a Host header without its port, or None if the header is invalid."""
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port  # raises ValueError if the port is not a number
    except ValueError:
        return None
    return parts.hostname if not parts.path and not parts.query and parts.username is None else None


def _is_ours(origin: str, scheme: str, host: str) -> bool:
    """Return whether the origin has the scheme, name and port of this request."""
    try:
        theirs, ours = urlsplit(origin), urlsplit(f"{scheme}://{host}")
        ports = [parts.port or _PORTS.get(parts.scheme) for parts in (theirs, ours)]
    except ValueError:
        return False
    return (theirs.scheme, theirs.hostname, ports[0]) == (ours.scheme, ours.hostname, ports[1])


def _private(path: str) -> bool:
    public = path in (_SIGN_IN, "/api/openapi.json") or path.startswith(SHARED)
    return _is_openai(path) or (path.startswith("/api") and not public)


def _is_openai(path: str) -> bool:
    return path.startswith("/v1/")


def _path(scope: Mapping[str, object]) -> str:
    """Return the path below the mount point."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path.removeprefix(root) if root else path


_BODIES = {"/api/files": "application/octet-stream", "/v1/files": "multipart/form-data"}


def _fits(path: str, headers: Headers) -> bool:
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == _BODIES.get(path, "application/json")


def _bounded(receive: Receive, limit: int, path: str) -> Receive:
    seen, more = 0, True
    clock = asyncio.get_running_loop().time
    until = clock() + _SIGN_IN_TIME if path in _STRANGERS else math.inf

    async def bounded() -> Message:
        nonlocal seen, more
        try:
            async with asyncio.timeout_at(min(clock() + _SLOWEST, until) if more else None):
                message = await receive()
        except TimeoutError as error:
            raise HTTPException(408, sentence("request.too_slow")) from error
        more = more and bool(message.get("more_body"))
        seen += len(message.get("body", b""))
        if seen > limit:  # The body is longer than its header declared.
            raise HTTPException(413, sentence("request.too_big", most=limit))
        return message

    return bounded


class _Answer:
    """Sends an answer with the security headers.

    An answer of unknown length ends when its reader loses access, because a key was revoked or a sign-in is
    void.
    """

    def __init__(self, send: Send, is_still_in: Callable[[], Awaitable[bool]], look_again: float) -> None:
        self._send = send
        self._is_still_in = is_still_in
        self._look_again = look_again
        self._clock = asyncio.get_running_loop().time
        self._looked = self._clock()
        self._lasts = False
        self._ended = False
        self.begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            self._lasts = "content-length" not in headers
        elif self._lasts and message.get("more_body") and self._clock() - self._looked >= self._look_again:
            self._looked = self._clock()
            if not self._ended and not await self._is_still_in():
                self._ended = True
                await self._send({"type": "http.response.body", "body": b""})
        if not self._ended:
            await self._send(message)
