"""The ASGI applications: the API alone, to be mounted, and what `dragoman serve` serves."""

from __future__ import annotations

from collections.abc import Collection
from importlib.metadata import version

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request

from dragoman.conversation.tree import LOCAL
from dragoman.runtime import Runtime
from dragoman.server import page, problems
from dragoman.server.addresses import Proxies
from dragoman.server.auth import Auth
from dragoman.server.context import Context, Who
from dragoman.server.description import describe
from dragoman.server.incoming_trace import IncomingTrace
from dragoman.server.middleware import LOOPBACK, Middleware, person_in
from dragoman.server.protocols.ag_ui import routes as ag_ui
from dragoman.server.protocols.ai_sdk import routes as ai_sdk
from dragoman.server.protocols.openai import routes as openai
from dragoman.server.protocols.turn_readers import TurnReaders
from dragoman.server.publisher import Publisher
from dragoman.server.routes import (
    calls,
    conversations,
    events,
    files,
    health,
    messages,
    models,
    people,
    prometheus,
    questions,
    queue,
    server_prompts,
    setup,
    sound,
    tools,
    turns,
    way_back,
)
from dragoman.server.setup.own_settings import OwnSettings
from dragoman.server.shapes import CurrentModel

UPLOAD_LIMIT = 25_000_000
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
    for noun in (
        conversations,
        turns,
        way_back,
        messages,
        queue,
        server_prompts,
        calls,
        events,
        questions,
        tools,
        models,
        files,
        sound,
        people,
        setup,
        ai_sdk,
        ag_ui,
    )
    for route in noun.router.routes
]
# What a server has, and an application of somebody's own has not.
_BESIDE_THE_API = [
    route for router in (people.sign_in, health.router, openai.router, page.router) for route in router.routes
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
) -> FastAPI:
    """The API alone, to be mounted in an application of your own: `who` tells whose a request is.

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
    )
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
    metrics: prometheus.Reach = "owner",
    own_settings: OwnSettings | None = None,
) -> FastAPI:
    """What `dragoman serve` serves: the API and the page, for people who have signed in. With `own_settings`,
    whoever runs the server sets it up in the page."""

    async def who(request: Request) -> str | None:
        return person_in(request.scope)  # the middleware has found out

    app = api(
        runtime,
        who=who,
        upload_limit=upload_limit,
        model=model,
        needs_password=auth.needs_password,
        own_settings=own_settings,
    )
    app.state.auth = auth
    app.router.routes.extend(_BESIDE_THE_API)
    prometheus.install(app, runtime, metrics)
    page.mount_assets(app)
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


def everybody_is_local() -> Who:
    """For a runtime of one person behind an application that has let them in already."""

    async def who(request: Request) -> str | None:
        return LOCAL

    return who
