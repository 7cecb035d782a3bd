"""Serves the built page, with headers that let it run no script and reach no host but its own."""

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
CALLBACK = "/callback"  # as where the terminal waits: who is registered with one is so with the other

_PAGE = {
    "content-security-policy": "; ".join(
        (
            "default-src 'self'",
            "script-src 'self'",
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob: https:",  # remote ones are put in only when the person asks for them
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

# What the model's JavaScript runs in. An origin of its own, no network, nowhere to go.
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

# What a page that a model wrote is shown in: its own scripts and styles, and nothing from anywhere else.
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
    """What the page is made of: as small as it was packed when it was built, and never asked for twice."""

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
    """The launch link signs in, and goes on without its token."""
    auth: Auth = request.app.state.auth
    token = request.query_params.get("token")
    # Who only looks whether it is there (HEAD) uses no link up.
    if token is not None and request.method == "GET":
        return await _sign_in_by_link(request, auth, token)
    return _index(request, _PAGE)


@router.get(CALLBACK)
async def callback(request: Request) -> Response:
    """Where a browser comes back from a sign-in, without its cookie: the page goes on from here."""
    return _index(request, {**_PAGE, "cache-control": "no-store"})


@router.get("/shared")
async def shared(request: Request) -> Response:
    """What a read-only link opens. Its token follows a `#`, and is not sent with this request."""
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
    """Once: who opens it again is in already, or is somebody else."""
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
    """Scripts and styles are named by whole paths, since it is shown at several depths. From their own
    addresses they know the rest."""
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
