"""Define routes for the sign-in at an OpenID Connect provider.

Browsers come from another site and go there. So the routes are outside the API, which pages of other sites
cannot use.
"""

from __future__ import annotations

import logging
import re
from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

from dragoman.errors import ProviderError
from dragoman.server.audit import audit
from dragoman.server.auth import Auth
from dragoman.server.oidc import ANY, Account, OidcProvider, SignInRefused

BELOW = "/oidc"
LOGOUT = f"{BELOW}/logout"  # the provider sends its logout notices here

_OURS = re.compile(r"/(c/\w{1,100})?")  # paths of the web UI that a sign-in can lead to
_PRIVATE = {"cache-control": "no-store"}
_AGAIN = "The sign-in did not work. Go back to the start page and try again. The server's log has the reason."
_STALE = "This sign-in is over, or began in another browser. Go back to the start page and try again."
_AWAY = "The provider cannot be reached now. Try again in a moment. The server's log has the reason."
_NOT_HERE = "Your account may not use this server. Ask the admin."

_log = logging.getLogger("dragoman.server")

router = APIRouter(include_in_schema=False)


@router.get(f"{BELOW}/login")
async def begin(request: Request, to: str = "/") -> Response:
    """Redirect to the provider, from which the browser returns to a page of the web UI."""
    auth, provider = _both(request)
    if provider is None:
        return _refused(404, "Users do not sign in at a provider here.")
    try:
        address, begun = await provider.begin(
            f"{base_address(request)}{BELOW}/callback", to if _OURS.fullmatch(to) else "/"
        )
    except (SignInRefused, ProviderError) as error:
        _log.warning("users cannot sign in at %s: %s", provider.settings.issuer, error)
        return _refused(502, _AWAY)
    response = RedirectResponse(address, 303, headers=_PRIVATE)
    auth.keep(response, begun, request)
    return response


@router.get(f"{BELOW}/callback")
async def callback(request: Request) -> Response:
    """Complete a sign-in of a browser that returns from the provider."""
    auth, provider = _both(request)
    returned = dict(request.query_params)
    if provider is None or len(returned) != len(request.query_params.multi_items()):
        return _refused(400, _AGAIN)
    response = Response()
    begun = await auth.take(response, returned.get("state", ""), request)
    if begun is None:
        return _refused(400, _STALE)
    attempt = await auth.attempt(request)  # Limits how often unusable codes are sent to the provider.
    try:
        account = await provider.finish(begun, returned)
    except (SignInRefused, ProviderError) as error:
        status, text = (502, _AWAY) if isinstance(error, ProviderError) else (403, _AGAIN)
        return await _failed(request, status, text, str(error))
    settings = provider.settings
    attempt.was_right()
    if ANY not in settings.allowed_groups and not settings.allowed_groups & account.groups:
        return await _failed(request, 403, _NOT_HERE, f"{account.subject!r} is in no group that may sign in")
    identity = await auth.identify(account)
    if identity is None:
        return await _failed(request, 403, _NOT_HERE, f"the user of {account.subject!r} was removed")
    leave = RedirectResponse(f"{request.scope.get('root_path', '')}{begun.to}", 303, headers=_PRIVATE)
    leave.raw_headers += [one for one in response.raw_headers if one[0] == b"set-cookie"]
    runtime = request.app.state.context.runtime
    await runtime.store.set_teams(identity.person, account.groups & runtime.teams.keys())
    await auth.set_oidc_cookie(leave, identity.person, account, request)
    store = runtime.store
    who = {"person": identity.person, "address": _address(request)}
    if identity.new:
        await audit(store, "user.added", object=identity.person, account=_named(account, provider), **who)
    await audit(store, "sign_in.done", object=_WAY, account=_named(account, provider), **who)
    return leave


@router.post(LOGOUT)
async def logout(request: Request) -> Response:
    """Handle a back-channel logout: the provider has ended a session, or all sessions of an account."""
    auth, provider = _both(request)
    tokens = parse_qs((await request.body()).decode("ascii", "replace")).get("logout_token", [])
    if provider is None or len(tokens) != 1:
        return JSONResponse({"error": "invalid_request"}, 400, headers=_PRIVATE)
    try:
        notice = await provider.logout_notice(tokens[0])
        person = await auth.end_at_provider(notice)
    except (SignInRefused, ProviderError) as error:
        _log.warning("refused a logout of %s: %s", provider.settings.issuer, error)
        return JSONResponse({"error": "invalid_request"}, 400, headers=_PRIVATE)
    context = request.app.state.context
    await context.publisher.recheck()
    await audit(
        context.runtime.store,
        "sign_out.done",
        person=person or "",
        address=_address(request),
        object=_WAY,
        account=f"{provider.settings.issuer} {notice.subject or notice.session}",
    )
    return Response(status_code=200, headers=_PRIVATE)


_WAY = "provider"


def base_address(request: Request) -> str:
    """Return the address by which the browser reached this server. The middleware has checked the host, and
    the scheme and path are the server's or a trusted proxy's."""
    scope = request.scope
    return f"{scope['scheme']}://{request.headers['host']}{scope.get('root_path', '')}"


def _both(request: Request) -> tuple[Auth, OidcProvider | None]:
    auth: Auth = request.app.state.auth
    return auth, auth.oidc


def _named(account: Account, provider: OidcProvider) -> str:
    return f"{provider.settings.issuer} {account.subject}"


def _address(request: Request) -> str:
    return request.client.host if request.client is not None else ""


async def _failed(request: Request, status: int, text: str, why: str) -> Response:
    _log.warning("a sign-in at the provider failed: %s", why)
    await request.app.state.auth.failed.add(_address(request), _WAY, why)
    return _refused(status, text)


def _refused(status: int, text: str) -> Response:
    return PlainTextResponse(text, status, headers=_PRIVATE)
