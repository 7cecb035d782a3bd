"""Builds the ASGI applications: the API alone, to be mounted, and what `dragoman serve` serves."""

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
# Files keep their length, so that a download shows its progress.
_SENT_AS_IS = (*DEFAULT_EXCLUDED_CONTENT_TYPES, "application/octet-stream", "application/pdf")
# What a script of another origin may read of a reply, besides its body.
_FOR_SCRIPTS = (
    "x-resumable-stream-id",
    "x-dragoman-turn",
    "x-dragoman-conversation",
    "x-request-id",
    "retry-after",
    "x-should-retry",  # an SDK that cannot read it repeats what failed, and what its tools have done
)


# The routes as they are: where a router is included, FastAPI builds all its validators once more.
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
# What a server has, and an application of somebody's own has not.
_BESIDE_THE_API = [
    route
    for router in (people.sign_in, oidc.router, monitoring.router, openai.router, page.router)
    for route in router.routes
]


def routes() -> FastAPI:
    """The routes of the API and their description, without a runtime behind them."""
    app = FastAPI(
        title="Dragoman",
        version=version("dragoman"),
        description="Conversations in which a language model calls tools, and people decide about the calls.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        routes=[*_API],
    )
    app.openapi_version = "3.2.0"  # the first version that describes the items of a stream
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
    """The API alone, to be mounted in an application of your own: `who` tells whose a request is, and `knows`
    whether there is a user of a name, with whom a conversation can be shared; without it, there is.

    The runtime has to be open, and is yours to close.
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
    """What `dragoman serve` serves: the API and the page, for people who have signed in. With `own_settings`,
    whoever runs the server sets it up in the page."""

    async def who(request: Request) -> str | None:
        if person_in(request.scope) is None or not has_body(request.scope):
            return person_in(request.scope)  # the middleware has found out
        return await auth.person(request)  # once more: a body may have taken long to arrive

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
    if origins:  # outermost: a browser asks beforehand, without a key
        app.add_middleware(
            CORSMiddleware,
            allow_origins=[*origins],
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=_FOR_SCRIPTS,
        )
    return app


async def everybody_is_known(user: str) -> bool:
    """An application of somebody's own has its own users."""
    return True


def everybody_is_local() -> Who:
    """For a runtime of one person behind an application that has let them in already."""

    async def who(request: Request) -> str | None:
        return LOCAL

    return who


class IncomingTrace:
    """Takes up the trace of the caller: turns that a request begins hang below its span. Around the API,
    inside the middleware."""

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
    """To be put in the place of `app.openapi`."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _corrected(plain())
        return app.openapi_schema

    return openapi


def _corrected(schema: dict[str, Any]) -> dict[str, Any]:
    """With how one signs in, what an error looks like, what a stream is made of, and what is always there."""
    components = schema.setdefault("components", {})
    components["securitySchemes"] = _SECURITY
    problem = TypeAdapter(Problem).json_schema(mode="serialization")
    components["schemas"] = dict(sorted({**components["schemas"], "Problem": problem}.items()))
    schema["security"] = [{name: []} for name in _SECURITY]
    for operations in schema["paths"].values():
        for operation in operations.values():
            for status, response in operation["responses"].items():
                _correct_content(status, response.get("content", {}))
    for union in _unions(schema):
        for option in union["oneOf"]:  # which one it is, is told by this property alone
            _require(components["schemas"][option["$ref"].removeprefix(_COMPONENT)], union["discriminator"])
    sent = set(_used(_bodies(schema), components["schemas"]))
    for name, component in components["schemas"].items():
        _drop_titles(component)
        if name not in sent and name != "Problem":  # which leaves `errors` out where there are none
            _require_all(component)
    return schema


def _correct_content(status: str, content: dict[str, Any]) -> None:
    if status >= "400" and "application/json" in content:
        content["application/problem+json"] = content.pop("application/json")
    if "text/event-stream" in content and "application/json" in content:
        event = content.pop("application/json")["schema"]
        content["text/event-stream"] = {"schema": {"type": "string"}, "itemSchema": event}


def _require_all(component: dict[str, Any]) -> None:
    """A value that we send has all its properties; a default only means that nobody had to give one. Only the
    codes of sentences are left out where there are none."""
    if component.get("properties"):
        component["required"] = [name for name in component["properties"] if name != "said"]


def _require(component: dict[str, Any], discriminator: dict[str, Any]) -> None:
    name = discriminator["propertyName"]
    component["required"] = sorted({*component.get("required", ()), name})


def _unions(part: object) -> Iterator[dict[str, Any]]:
    """The schemas of values that a property tells apart."""
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
    """Those that only repeat a property's name."""
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
    """The components a part of the description refers to, and those that they refer to."""
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
