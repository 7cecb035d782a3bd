"""Build the MCP server with its methods and tasks, over standard input and output or over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Literal, TypeAlias

import mcp_types as types
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman.config.project_prompt import Template
from dragoman.conversation.tree import LOCAL
from dragoman.errors import NotFound
from dragoman.messages.questions import Question
from dragoman.runtime import Runtime
from dragoman.server.auth import SIGN_IN_FIRST, Auth
from dragoman.server.connections import session_in
from dragoman.server.mcp import resources
from dragoman.server.mcp.tool_calls import TASKS, Caller, ToolCalls, Unfinished, form_of
from dragoman.server.middleware import Middleware, person_in
from dragoman.server.proxies import Proxies
from dragoman.store.store import TurnRow
from dragoman.turn.api.turn_handle import TurnHandle

_INSTRUCTIONS = """\
Tools of Dragoman. A call may need a person's permission: they are asked where this client can ask, and else \
the call is refused with the rule that would allow it. Conversations are resources."""


def mcp_server(runtime: Runtime, templates: Mapping[str, Template]) -> Server:
    """Return a server of this runtime. `templates` are the user's commands, offered as prompts."""
    calls = ToolCalls(runtime)

    async def list_tools(
        context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=await calls.list_tools(_person(context)))

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
        found = await resources.list_prompts(runtime, _person(context), templates)
        return types.ListPromptsResult(prompts=found)

    async def get_prompt(
        context: ServerRequestContext[Any], params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        person, arguments = _person(context), params.arguments or {}
        return await resources.read_prompt(runtime, person, templates, params.name, arguments)

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
    """Serve until the client closes the pipe. Other output of the program goes to standard error."""
    try:
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())
    except* ConnectionError:
        pass  # The client disconnected in the middle of an answer.


def http_app(server: Server, auth: Auth, hosts: Collection[str], proxies: Proxies | None = None) -> ASGIApp:
    """Return the app that serves `/mcp` to clients with a key, inside the middleware of `dragoman serve`.

    It accepts only the server's own host names, so that pages of other sites cannot send requests.
    """
    names = [name for host in hosts for name in (host, f"{host}:*")]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=names,
        allowed_origins=[f"http://{name}" for name in names],
    )
    app = WithKey(server.streamable_http_app(transport_security=security))
    return Middleware(app, hosts=hosts, upload_limit=0, auth=auth, proxies=proxies)


class WithKey:
    """Admits requests with a key of the server. A cookie does not suffice, because browsers send it unasked.
    Each session belongs to the user who opened it and does not exist for others."""

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
    """Return the user: the owner of the key over HTTP, otherwise `local`."""
    request = context.request
    return person_in(request.scope) or LOCAL if request is not None else LOCAL


# ── tasks: calls that a client polls ──────────────────────────────────────────────────────────────


_POLL = 1000  # milliseconds between two polls of a task
_MISSING_CAPABILITY = -32021
_NEEDED: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS: {}}}}

CallerOf: TypeAlias = Callable[[ServerRequestContext[Any]], Caller]
TaskStatus: TypeAlias = Literal["working", "input_required", "completed", "cancelled"]


class TaskParams(types.RequestParams):
    """The ID of a task."""

    task_id: str


class TaskAnswers(TaskParams):
    """A client's answers for a waiting task."""

    input_responses: types.InputResponses


class CallTasks:
    """The methods of the tasks extension.

    A call is a turn, so a task is that turn, under the same ID. It is stored before the client learns of it.
    It continues without the client or this program, and waits for an answer as long as that takes.
    """

    def __init__(self, runtime: Runtime, calls: ToolCalls, caller_of: CallerOf) -> None:
        self._runtime = runtime
        self._calls = calls
        self._caller_of = caller_of

    def join(self, server: Server) -> None:
        """Register the methods with the server."""
        server.extensions[TASKS] = {}
        server.add_request_handler("tasks/get", TaskParams, self._get)
        server.add_request_handler("tasks/update", TaskAnswers, self._update)
        server.add_request_handler("tasks/cancel", TaskParams, self._cancel)

    async def created(self, turn: str) -> dict[str, Any]:
        """Return the response that a client gets instead of a result."""
        return {"resultType": "task", **_task(await self._runtime.store.turn(turn), "working")}

    async def _get(self, context: ServerRequestContext[Any], params: TaskParams) -> dict[str, Any]:
        caller, turn = await self._task_of(context, params)
        row = await self._runtime.store.turn(turn.id)
        if not row.live:
            if row.state == "cancelled":
                return _task(row, "cancelled")
            result = (await self._calls.stored_result(turn)).model_dump(
                mode="json", by_alias=True, exclude_none=True
            )
            return {**_task(row, "completed"), "result": result}
        asked = await self._open_questions(turn)
        if asked and not caller.can_ask:
            for question in asked:
                await self._calls.refuse(question)
            asked = []
        if not asked:
            return _task(row, "working")
        forms = {one.id: types.ElicitRequest(params=form_of(one)) for one in asked}
        requests = {
            id: form.model_dump(mode="json", by_alias=True, exclude_none=True) for id, form in forms.items()
        }
        return {**_task(row, "input_required"), "inputRequests": requests}

    async def _update(self, context: ServerRequestContext[Any], params: TaskAnswers) -> dict[str, Any]:
        """Pass answers on to open approval requests. Others are ignored."""
        _, turn = await self._task_of(context, params)
        asked = {question.id for question in await self._open_questions(turn)}
        given = {id: response for id, response in params.input_responses.items() if id in asked}
        await self._calls.take_answers(turn, given)
        return {}

    async def _cancel(self, context: ServerRequestContext[Any], params: TaskParams) -> dict[str, Any]:
        _, turn = await self._task_of(context, params)
        await turn.cancel("the program that called it stopped it")
        return {}

    async def _task_of(
        self, context: ServerRequestContext[Any], params: TaskParams
    ) -> tuple[Caller, TurnHandle]:
        caller = self._caller_of(context)
        if not caller.asks_by_result:
            raise MCPError(types.METHOD_NOT_FOUND, "Tasks need protocol version 2026-07-28.")
        if not caller.has_tasks:
            raise MCPError(_MISSING_CAPABILITY, f"This client does not declare support for {TASKS}.", _NEEDED)
        try:
            return caller, await self._calls.turn_of(caller, params.task_id)
        except NotFound:
            raise MCPError(types.INVALID_PARAMS, f"Unknown task {params.task_id!r}.") from None

    async def _open_questions(self, turn: TurnHandle) -> list[Question]:
        turns = await self._calls.turns_of(turn)
        store = self._runtime.store
        owner = await store.owner_of((await store.turn(turn.id)).conversation)
        return [one for one in await store.questions(user=owner) if one.turn in turns and one.open]


def _task(row: TurnRow, status: TaskStatus) -> dict[str, Any]:
    at = datetime.fromtimestamp(row.created, UTC).isoformat()
    now = datetime.now(UTC).isoformat() if row.live else at
    return {
        "taskId": row.id,
        "status": status,
        "createdAt": at,
        "lastUpdatedAt": now,
        "ttlMs": None,  # The task exists until the user deletes the conversation.
        "pollIntervalMs": _POLL,
    }
