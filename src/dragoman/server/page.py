"""Serve the built web UI, with headers that restrict scripts and connections to this server."""

from __future__ import annotations

import re
from mimetypes import guess_type
from pathlib import Path

from fastapi import APIRouter, FastAPI, Request
from starlette.datastructures import Headers
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from dragoman.server.audit import audit
from dragoman.server.auth import Auth

BUILT = Path(__file__).with_name("page")
CALLBACK = "/callback"  # The terminal uses the same path, so a client registered for one works for the other.

_PAGE = {
    "content-security-policy": "; ".join(
        (
            "default-src 'self'",
            "script-src 'self'",
            "style-src 'self' 'unsafe-inline'",
            # The web UI loads remote images only when the user asks for them.
            "img-src 'self' data: blob: https:",
            "media-src 'self' blob:",
            "connect-src 'self'",
            "frame-src 'self'",
            "object-src 'none'",
            "base-uri 'none'",
            "form-action 'self'",
            "frame-ancestors 'none'",
        )
    ),
    "cache-control": "no-cache",
}

# Headers of the sandbox for the model's JavaScript: a separate origin, no network and no navigation.
_SANDBOX = {
    "content-security-policy": "; ".join(
        (
            "sandbox allow-scripts",
            "default-src 'none'",
            "script-src 'unsafe-inline' 'unsafe-eval' blob:",
            "worker-src blob:",
            "connect-src 'none'",
            "frame-ancestors 'self'",
        )
    ),
    "cache-control": "no-cache",
    "cross-origin-resource-policy": "same-origin",
}

# Headers of the preview for a page that a model wrote: it has its scripts and styles, and no other sources.
_PREVIEW = {
    "content-security-policy": "; ".join(
        (
            "sandbox allow-scripts",
            "default-src 'none'",
            "script-src 'unsafe-inline' 'unsafe-eval' blob:",
            "style-src 'unsafe-inline'",
            "img-src data: blob:",
            "font-src data:",
            "media-src data: blob:",
            "connect-src 'none'",
            "form-action 'none'",
            "base-uri 'none'",
            "webrtc 'block'",
            "frame-ancestors 'self'",
        )
    ),
    "cache-control": "no-cache",
    "cross-origin-resource-policy": "same-origin",
    "x-dns-prefetch-control": "off",
}

_USED = (
    "This link is no longer valid: each is for one browser. `dragoman link` prints another, "
    "and so does the server when you press Enter where it runs."
)
_NOT_BUILT = "The web UI is not built. Run `make page`, or install a wheel. The API is at /api."


_HASHED = re.compile(r"-[\w-]{8}\.\w+$")
_PACKED = {"br": ".br", "gzip": ".gz"}  # the smaller one first
_FOR_EVER = "public, max-age=31536000, immutable"


class Assets(StaticFiles):
    """Serves the files of the web UI, compressed at build time. Browsers cache files with hashed names
    forever."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        encodings = Headers(scope=scope).get("accept-encoding", "").replace(" ", "").split(",")
        for encoding, suffix in _PACKED.items():
            if encoding in encodings and self.lookup_path(path + suffix)[1] is not None:
                response = await super().get_response(path + suffix, scope)
                response.headers["content-encoding"] = encoding
                response.headers["content-type"] = guess_type(path)[0] or "application/octet-stream"
                break
        else:
            response = await super().get_response(path, scope)
        response.headers["vary"] = "accept-encoding"
        if response.status_code in (200, 304):
            response.headers["cache-control"] = _FOR_EVER if _HASHED.search(path) else "no-cache"
        return response


router = APIRouter(include_in_schema=False)


@router.api_route("/", methods=["GET", "HEAD"])
@router.api_route("/c/{conversation}", methods=["GET", "HEAD"])
async def page(request: Request) -> Response:
    """Serve the web UI. A launch link signs in and redirects to the address without its token."""
    auth: Auth = request.app.state.auth
    token = request.query_params.get("token")
    # A HEAD request must not use a link up.
    if token is not None and request.method == "GET":
        return await _sign_in_by_link(request, auth, token)
    return _index(request, _PAGE)


@router.get(CALLBACK)
async def callback(request: Request) -> Response:
    """Serve the web UI to a browser that returns from a sign-in without its cookie. The web UI
    completes it."""
    return _index(request, {**_PAGE, "cache-control": "no-store"})


@router.get("/shared")
async def shared(request: Request) -> Response:
    """Serve the page of a read-only link. The link's token follows a `#`, so this request does not contain
    it."""
    return _index(request, {**_PAGE, "x-robots-tag": "noindex"}, "shared.html")


@router.get("/sandbox")
async def sandbox() -> Response:
    return _file("sandbox.html", _SANDBOX)


@router.get("/preview")
async def preview() -> Response:
    return _file("preview.html", _PREVIEW)


def mount_assets(app: FastAPI) -> None:
    app.mount("/assets", Assets(directory=BUILT / "assets", check_dir=False), name="assets")


async def _sign_in_by_link(request: Request, auth: Auth, token: str) -> Response:
    """Sign a browser in by a link that works once. Returns 403 if the link is used and the browser not signed
    in."""
    person = await auth.use_link(token)
    if person is None and await auth.person(request) is None:
        return PlainTextResponse(_USED, 403, headers={"cache-control": "no-store"})
    response = RedirectResponse(request.url.path, 303, headers={"cache-control": "no-store"})
    if person is not None:
        await auth.set_cookie(response, person, request)
        address = request.client.host if request.client is not None else ""
        store = request.app.state.context.runtime.store
        await audit(store, "sign_in.done", person=person, address=address, object="link")
    return response


def _index(request: Request, headers: dict[str, str], file: str = "index.html") -> Response:
    """Return the HTML with absolute asset paths, because it is served at several depths. The assets find each
    other by relative paths."""
    try:
        written = (BUILT / file).read_text("utf-8")
    except FileNotFoundError:
        return PlainTextResponse(_NOT_BUILT, 503)
    below = str(request.scope.get("root_path", ""))
    return HTMLResponse(written.replace('"./assets/', f'"{below}/assets/'), headers=headers)


def _file(name: str, headers: dict[str, str]) -> Response:
    file = BUILT / name
    if not file.is_file():
        return PlainTextResponse(_NOT_BUILT, 503)
    return FileResponse(file, headers=headers, media_type="text/html")
