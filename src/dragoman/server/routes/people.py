"""Define routes about the user: identity, usage, prompts, sign-in and sign-out."""

from __future__ import annotations

import time
from importlib.metadata import version
from typing import Annotated

from fastapi import Path, Query, Request
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from dragoman.messages.usage import Spending, dimensions, group
from dragoman.plugins.limits import RoundLimit
from dragoman.sentences import sentence
from dragoman.server import bodies, shapes
from dragoman.server.audit import audit
from dragoman.server.auth import Auth
from dragoman.server.context import TheContext, api_router
from dragoman.server.links import LIFETIME
from dragoman.server.routes.oidc import base_address
from dragoman.server.routes.tools import agent_view
from dragoman.turn.services import Services

router = api_router("people")
PromptName = Annotated[str, Path(pattern=r"^[\w .-]{1,60}$", examples=["review"])]


@router.get("/me")
async def me(context: TheContext) -> shapes.Me:
    """Return what a client needs to know first."""
    services = await context.services()
    return shapes.Me(
        context.person,
        version("dragoman"),
        await context.current_model(),
        services.mode,
        [agent_view(agent, services) for agent in services.agents.values()],
        shapes.UploadLimits(context.upload_limit, _rounds(services)),
        services.workspaces.main.folder.resolve().name if services.workspaces.main is not None else None,
        list(services.workspaces.named),
        signed_in=True,
        needs_password=context.needs_password,
    )


def _rounds(services: Services) -> int | None:
    return next((plugin.max_rounds for plugin in services.plugins if isinstance(plugin, RoundLimit)), None)


@router.get("/usage")
async def usage(
    context: TheContext,
    by: Annotated[str, Query(max_length=100, examples=["day,model"])] = "",
    since: Annotated[float, Query(ge=0, le=10**12)] = 0.0,
    everybody: bool = False,
    team: Annotated[str | None, Query(max_length=100)] = None,
) -> shapes.UsageView:
    """Return tokens and cost of all your answers, by model and by day.

    With `by` (day, person, model, agent, tool, separated by commas), `rows` has the usage since `since` by
    these dimensions. Only the admin can use `everybody`, and `team` for the usage of a team's members.
    """
    if (everybody or team is not None) and not context.is_admin:
        raise HTTPException(403, sentence("usage.of_others"))
    store, names = context.runtime.store, dimensions(by)
    members = None if team is None else await context.runtime.members(team)
    whose = context.person if not everybody and members is None else None
    spent = await store.spending(since, whose) if names else []
    rows = group([one for one in spent if members is None or one.person in members], names)
    mine = await store.spending(user=context.person)
    return shapes.UsageView(
        sum(mine, Spending()).usage,
        [shapes.ModelSpent(one.model, one.usage, one.replies) for one in group(mine, ("model",))],
        [shapes.DaySpent(one.day or "", one.usage) for one in group(mine, ("day",))],
        rows,
    )


@router.get("/audit")
async def read_audit(
    context: TheContext,
    since: Annotated[float, Query(ge=0, le=10**12)] = 0.0,
    before: Annotated[int | None, Query(ge=1, le=2**53, description="entries older than this one")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> shapes.AuditLog:
    """Return the audit log, newest first: sign-ins, users, rules, answers and deletions. Admin only."""
    if not context.is_admin:
        raise HTTPException(403, sentence("audit.not_yours"))
    return shapes.AuditLog(await context.runtime.store.audit(since, before=before, limit=limit))


@router.get("/prompts")
async def prompts(context: TheContext) -> shapes.PromptList:
    """List your reusable prompts, and `shared` ones from the settings."""
    own = await context.runtime.store.prompts(context.person)
    mine = [shapes.NamedPrompt(name, text) for name, text in own.items()]
    shared = (await context.services()).prompts.items()
    theirs = [shapes.NamedPrompt(name, one.text, shared=True) for name, one in shared if name not in own]
    return shapes.PromptList([*mine, *theirs])


@router.put("/prompts/{name}")
async def set_prompt(context: TheContext, name: PromptName, body: bodies.Prompt) -> shapes.NamedPrompt:
    await context.runtime.store.set_prompt(context.person, name, body.text)
    return shapes.NamedPrompt(name, body.text)


@router.delete("/prompts/{name}", status_code=204)
async def remove_prompt(context: TheContext, name: PromptName) -> None:
    await context.runtime.store.remove_prompt(context.person, name)


# ── sign-in, unless the API is mounted in an app ──────────────────────────────────────────────────

sign_in = api_router("people")


@sign_in.get("/login")
async def ways_to_sign_in(request: Request) -> shapes.WaysToSignIn:
    """Return the ways to sign in other than a password or a key."""
    auth: Auth = request.app.state.auth
    return shapes.WaysToSignIn(auth.oidc.settings.name if auth.oidc is not None else None)


@sign_in.post("/login", responses={429: {"description": "Too many tries; `Retry-After` says when"}})
async def login(request: Request, body: bodies.Credentials) -> Response:
    """Exchange a password or key for a cookie."""
    auth: Auth = request.app.state.auth
    person = await auth.sign_in(body.password, request)
    if person is None:
        raise HTTPException(401, sentence("sign_in.wrong"))
    response = JSONResponse({"user": person})
    await auth.set_cookie(response, person, request)
    address = request.client.host if request.client is not None else ""
    store = request.app.state.context.runtime.store
    await audit(store, "sign_in.done", person=person, address=address, object="password")
    return response


@sign_in.post("/links", status_code=201)
async def new_link(request: Request, context: TheContext) -> shapes.Link:
    """Create a link that signs one other browser in as you, within ten minutes."""
    auth: Auth = request.app.state.auth
    token = await auth.add_link(context.person, LIFETIME)
    await context.audit("link.made")
    return shapes.Link(f"{request.scope.get('root_path', '')}/?token={token}", time.time() + LIFETIME)


@sign_in.post(
    "/logout",
    status_code=204,
    responses={200: {"model": shapes.SignedOut, "description": "Where to sign out of the provider, too"}},
)
async def logout(request: Request, context: TheContext) -> Response:
    """End the sign-in on every server of this store, together with its live streams."""
    auth: Auth = request.app.state.auth
    signed_in = await auth.signed_in(request)
    url = None
    if signed_in is not None and signed_in.at_provider and auth.oidc is not None:
        url = await auth.oidc.logout_address(f"{base_address(request)}/")
    response = Response(status_code=204) if url is None else JSONResponse({"url": url})
    await auth.sign_out(response, request)
    if (session := auth.session(request)) is not None:
        context.publisher.streams.end_session(session)
        await context.audit("sign_out.done")
    return response
