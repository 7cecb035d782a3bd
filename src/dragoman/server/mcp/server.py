"""The MCP server: which method does what, over standard input and output or streamable HTTP."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib.metadata import version
from typing import Any

import mcp_types as types
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman.config.project_prompt import Template
from dragoman.conversation.tree import LOCAL
from dragoman.runtime import Runtime
from dragoman.server.addresses import Proxies
from dragoman.server.auth import SIGN_IN_FIRST, Auth
from dragoman.server.connections import session_in
from dragoman.server.mcp import resources
from dragoman.server.mcp.calls import Caller, ToolCalls, Unfinished
from dragoman.server.mcp.tasks import CallTasks
from dragoman.server.middleware import Middleware, person_in

_INSTRUCTIONS = """\
Tools of Dragoman. A call may need a person's permission: they are asked where this client can ask, and else \
the call is refused with the rule that would allow it. Conversations are resources."""


def mcp_server(runtime: Runtime, templates: Mapping[str, Template]) -> Server:
    """A server of this runtime. `templates` are the person's commands, offered as prompts."""
    calls = ToolCalls(runtime)

    async def list_tools(
        context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=await calls.list_tools())

    tasks = CallTasks(runtime, calls, lambda context: Caller(context, _person(context)))

    async def call_tool(
        context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult | dict[str, Any]:
        result = await calls.call(Caller(context, _person(context)), params)
        return await tasks.created(result.turn) if isinstance(result, Unfinished) else result

    async def list_resources(
        context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        cursor = params.cursor if params is not None else None
        found, following = await resources.list_conversations(runtime, _person(context), cursor)
        return types.ListResourcesResult(resources=found, next_cursor=following)

    async def list_templates(
        context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=[resources.TEMPLATE])

    async def read_resource(
        context: ServerRequestContext[Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        found = await resources.read_conversation(runtime, _person(context), params.uri)
        return types.ReadResourceResult(contents=[found])

    async def list_prompts(
        context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=await resources.list_prompts(runtime, templates))

    async def get_prompt(
        context: ServerRequestContext[Any], params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        return await resources.read_prompt(runtime, templates, params.name, params.arguments or {})

    server = Server(
        "dragoman",
        title="Dragoman",
        version=version("dragoman"),
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )
    server.add_request_handler("tools/call", types.CallToolRequestParams, call_tool)
    tasks.join(server)
    return server


async def serve_stdio(server: Server) -> None:
    """Until the other side closes. Whatever else the program prints goes to standard error."""
    try:
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())
    except* ConnectionError:
        pass  # the other side went away in the middle of an answer


def http_app(server: Server, auth: Auth, hosts: Collection[str], proxies: Proxies | None = None) -> ASGIApp:
    """At `/mcp`, for who has a key, and only under our own names: no page of another site can ask us. Around
    it is the middleware of `dragoman serve`."""
    names = [name for host in hosts for name in (host, f"{host}:*")]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=names,
        allowed_origins=[f"http://{name}" for name in names],
    )
    app = WithKey(server.streamable_http_app(transport_security=security))
    return Middleware(app, hosts=hosts, upload_limit=0, auth=auth, proxies=proxies)


class WithKey:
    """Lets in who has a key of the server; a cookie, which a browser sends unasked, is none. Whoever opens
    a session owns it: to anybody else it does not exist."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            person = person_in(scope)
            if person is None or session_in(scope) is not None:
                challenge = {"www-authenticate": "Bearer"}
                refused = JSONResponse({"error": SIGN_IN_FIRST}, status_code=401, headers=challenge)
                return await refused(scope, receive, send)
            scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=person, scopes=[]))
        return await self._app(scope, receive, send)


def _person(context: ServerRequestContext[Any]) -> str:
    """Who asks: of a request over HTTP the owner of its key, else whoever started us."""
    request = context.request
    return person_in(request.scope) or LOCAL if request is not None else LOCAL
