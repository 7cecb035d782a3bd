"""Build the ASGI applications: the API alone for mounting, and the server behind `dragoman serve`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from pydantic import TypeAdapter
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman.conversation.tree import LOCAL
from dragoman.runtime import Runtime
from dragoman.server import page, problems
from dragoman.server.auth import Auth, Guesses
from dragoman.server.context import Context, Knows, Who
from dragoman.server.middleware import LOOPBACK, Middleware, has_body, person_in
from dragoman.server.protocols.ag_ui import routes as ag_ui
from dragoman.server.protocols.ai_sdk import routes as ai_sdk
from dragoman.server.protocols.openai import routes as openai
from dragoman.server.protocols.turn_readers import TurnReaders
from dragoman.server.proxies import Proxies
from dragoman.server.publisher import Publisher
from dragoman.server.routes import (
    approvals,
    conversations,
    evaluation,
    files,
    models,
    monitoring,
    oidc,
    people,
    shared,
    sharing,
    tools,
    turns,
)
from dragoman.server.setup import agents, downloads, mcp_servers, providers, skills
from dragoman.server.setup.own_settings import OwnSettings
from dragoman.server.shapes import CurrentModel, Problem
from dragoman.trace_context import HEADER, parse_header, within

UPLOAD_LIMIT = 25_000_000
# These types are sent uncompressed: they keep their length, so that a download shows its progress.
_SENT_AS_IS = (*DEFAULT_EXCLUDED_CONTENT_TYPES, "application/octet-stream", "application/pdf")
# Response headers that a script of another origin can read.
_FOR_SCRIPTS = (
    "x-resumable-stream-id",
    "x-dragoman-turn",
    "x-dragoman-conversation",
    "x-request-id",
    "retry-after",
    # An SDK that cannot read this header retries failed requests, and with them the effects of their tools.
    "x-should-retry",
)


# The routes are copied one by one: if FastAPI includes a router, it builds all its validators again.
_API = [
    route
    for router in (
        conversations.router,
        conversations.live,
        sharing.router,
        shared.router,
        turns.router,
        evaluation.router,
        files.router,
        approvals.router,
        tools.router,
        tools.prompt_routes,
        models.router,
        people.router,
        providers.router,
        downloads.router,
        mcp_servers.router,
        agents.router,
        skills.router,
        ai_sdk.router,
        ag_ui.router,
    )
    for route in router.routes
]
# Routes that only the server has. A mounted API does not include them.
_BESIDE_THE_API = [
    route
    for router in (people.sign_in, oidc.router, monitoring.router, openai.router, page.router)
    for route in router.routes
]


def routes() -> FastAPI:
    """Return an app with the API routes and their description, but without a runtime."""
    app = FastAPI(
        title="Dragoman",
        version=version("dragoman"),
        description="Conversations in which a language model calls tools, and people decide about the calls.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        routes=[*_API],
    )
    app.openapi_version = "3.2.0"  # Version 3.2.0 is the first that describes the items of a stream.
    app.openapi = describe(app, app.openapi)  # type: ignore[method-assign]  # FastAPI's own way
    return app


def api(
    runtime: Runtime,
    *,
    who: Who,
    upload_limit: int = UPLOAD_LIMIT,
    model: CurrentModel | None = None,
    needs_password: bool = False,
    own_settings: OwnSettings | None = None,
    knows: Knows | None = None,
) -> FastAPI:
    """Return the API alone, for mounting in your application.

    `who` returns the user of a request. `knows` tells whether a user of this name exists and a conversation
    can be shared with them; without it, every user exists. You open the runtime before and close it
    afterwards.
    """
    app = routes()
    app.state.context = Context(
        runtime=runtime,
        publisher=Publisher(runtime),
        readers=TurnReaders(runtime),
        who=who,
        upload_limit=upload_limit,
        model=model,
        needs_password=needs_password,
        own_settings=own_settings,
        guesses=Guesses(),
        knows=knows or everybody_is_known,
    )
    app.state.shared_views = shared.SharedViews()
    problems.install(app)
    if runtime.telemetry is not None and runtime.telemetry.spans is not None:
        app.add_middleware(IncomingTrace)
    return app


def server(
    runtime: Runtime,
    auth: Auth,
    *,
    hosts: Collection[str] = LOOPBACK,
    proxies: Proxies | None = None,
    origins: Collection[str] = (),
    path: str = "",
    upload_limit: int = UPLOAD_LIMIT,
    model: CurrentModel | None = None,
    metrics: monitoring.Reach = "owner",
    own_settings: OwnSettings | None = None,
) -> FastAPI:
    """Return the app that `dragoman serve` runs: the API and the web UI, for signed-in users. With
    `own_settings`, the admin sets the server up in the web UI."""

    async def who(request: Request) -> str | None:
        if person_in(request.scope) is None or not has_body(request.scope):
            return person_in(request.scope)  # The middleware has authenticated this request.
        return await auth.person(request)  # Authenticate again: the body may have taken long to arrive.

    async def knows(user: str) -> bool:
        return user == LOCAL or any(one.name == user for one in await runtime.store.people())

    app = api(
        runtime,
        who=who,
        knows=knows,
        upload_limit=upload_limit,
        model=model,
        needs_password=auth.needs_password,
        own_settings=own_settings,
    )
    app.state.auth = auth
    app.router.routes.extend(_BESIDE_THE_API)
    monitoring.install(app, runtime, metrics)
    page.mount_assets(app)
    app.add_middleware(GZipMiddleware, minimum_size=2_000, compresslevel=4, exclude_content_types=_SENT_AS_IS)
    app.add_middleware(
        Middleware,
        hosts=hosts,
        upload_limit=upload_limit,
        auth=auth,
        proxies=proxies,
        origins=origins,
        path=path,
    )
    if origins:  # The CORS middleware is outermost: a browser's preflight request carries no key.
        app.add_middleware(
            CORSMiddleware,
            allow_origins=[*origins],
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=_FOR_SCRIPTS,
        )
    return app


async def everybody_is_known(user: str) -> bool:
    """Return True: the surrounding application manages its own users."""
    return True


def everybody_is_local() -> Who:
    """Return a `who` for a single-user runtime behind an application that authenticates its user."""

    async def who(request: Request) -> str | None:
        return LOCAL

    return who


class IncomingTrace:
    """Continues the caller's trace: turns that a request starts become children of the caller's span. It
    wraps the API, inside the middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        theirs = parse_header(Headers(scope=scope).get(HEADER)) if scope["type"] == "http" else None
        with within(theirs):
            await self._app(scope, receive, send)


# ── the OpenAPI description ───────────────────────────────────────────────────────────────────────


_SECURITY = {
    "key": {"type": "http", "scheme": "bearer", "description": "a key, or the token of the launch link"},
    "cookie": {
        "type": "apiKey",
        "in": "cookie",
        "name": "dragoman_XXXXXXXX",
        "description": "from the launch link",
    },
}
_COMPONENT = "#/components/schemas/"


def describe(app: FastAPI, plain: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
    """Return a replacement for `app.openapi`."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _corrected(plain())
        return app.openapi_schema

    return openapi


def _corrected(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with security schemes, the error format, stream items and the required properties."""
    components = schema.setdefault("components", {})
    components["securitySchemes"] = _SECURITY
    problem = TypeAdapter(Problem).json_schema(mode="serialization")
    components["schemas"] = dict(sorted({**components["schemas"], "Problem": problem}.items()))
    schema["security"] = [{name: []} for name in _SECURITY]
    for operations in schema["paths"].values():
        for operation in operations.values():
            for response in operation["responses"].values():
                _describe_stream(response.get("content", {}))
    for union in _unions(schema):
        # This property alone tells the options apart, so each option requires it.
        for option in union["oneOf"]:
            _require(components["schemas"][option["$ref"].removeprefix(_COMPONENT)], union["discriminator"])
    sent = set(_used(_bodies(schema), components["schemas"]))
    for name, component in components["schemas"].items():
        _drop_titles(component)
        # `Problem` is left out because it omits an empty `errors`.
        if name not in sent and name != "Problem":
            _require_all(component)
    return schema


def _describe_stream(content: dict[str, Any]) -> None:
    if "text/event-stream" in content and "application/json" in content:
        event = content.pop("application/json")["schema"]
        content["text/event-stream"] = {"schema": {"type": "string"}, "itemSchema": event}


def _require_all(component: dict[str, Any]) -> None:
    """Mark all properties as required: every value that the server sends has them, even those with defaults.
    Only `said` is optional: a sentence without a code leaves it out."""
    if component.get("properties"):
        component["required"] = [name for name in component["properties"] if name != "said"]


def _require(component: dict[str, Any], discriminator: dict[str, Any]) -> None:
    name = discriminator["propertyName"]
    component["required"] = sorted({*component.get("required", ()), name})


def _unions(part: object) -> Iterator[dict[str, Any]]:
    """Yield the union schemas that have a discriminator."""
    match part:
        case dict():
            if "oneOf" in part and "discriminator" in part:
                yield part
            for inner in part.values():
                yield from _unions(inner)
        case list():
            for inner in part:
                yield from _unions(inner)


def _drop_titles(component: dict[str, Any]) -> None:
    """Remove titles, which only repeat the property's name."""
    for property in component.get("properties", {}).values():
        property.pop("title", None)


def _bodies(schema: dict[str, Any]) -> list[Any]:
    return [
        operation["requestBody"]
        for operations in schema["paths"].values()
        for operation in operations.values()
        if "requestBody" in operation
    ]


def _used(part: object, components: dict[str, Any], seen: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield the components that this part of the description refers to, directly or indirectly."""
    match part:
        case {"$ref": str(ref)}:
            name = ref.removeprefix(_COMPONENT)
            if name not in seen:
                yield name
                yield from _used(components[name], components, seen | {name})
        case dict():
            for inner in part.values():
                yield from _used(inner, components, seen)
        case list():
            for inner in part:
                yield from _used(inner, components, seen)
