"""Poll calls that a server continues as tasks until they have a result.

The extension `io.modelcontextprotocol/tasks` of 2026-07-28. The server decides for each call. The older tasks
of 2025-11-25 are not part of the SDK: tools that need them are left out (`server_tools.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Literal, TypeVar

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.session import ClientRequestContext, ClientSession
from pydantic import JsonValue

from dragoman.errors import ToolFailed
from dragoman.tools.mcp.contents import LONGEST_REPORT
from dragoman.tools.mcp.diagnostics import UNKNOWN_EFFECT

_PAUSE = 1.0  # seconds between two polls, unless the server sets them
_SHORTEST, _LONGEST = 0.05, 30.0
_CANCEL = 2.0  # seconds to cancel the task at the server

_R = TypeVar("_R", bound=types.Result)


class _Created(types.Result):
    """A task that the server sends instead of a result."""

    result_type: Literal["task"] = "task"
    task_id: str


class _Found(types.Result):
    """The state of a task."""

    status: str
    status_message: str | None = None
    poll_interval_ms: float | None = None
    input_requests: dict[str, types.InputRequest] | None = None
    result: types.CallToolResult | None = None
    error: types.ErrorData | None = None


class _Asked(types.Request[dict[str, Any], str]):
    name_param: ClassVar[str | None] = "taskId"
    method: str
    params: dict[str, Any]


class TaskExtension(ClientExtension):
    """The client side of the extension. `tell` shows progress to the user of the call."""

    identifier = "io.modelcontextprotocol/tasks"

    def __init__(self, tell: Callable[[JsonValue], None]) -> None:
        self._tell = tell

    def claims(self) -> Sequence[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=_Created, resolve=self._resolve)]

    async def _resolve(self, created: _Created, context: ClaimContext) -> types.CallToolResult:
        session, task = context.session, created.task_id
        try:
            return await self._result(session, task)
        except BaseException as error:
            with anyio.move_on_after(_CANCEL, shield=True), suppress(Exception):
                await _ask(session, "cancel", types.EmptyResult, task)
            # The task has started, so the call is not repeated, whatever failed.
            if isinstance(error, MCPError):
                why = f"the task that the server made of it: {error.message[:2000]}. {UNKNOWN_EFFECT}"
                raise ToolFailed(why) from error
            raise

    async def _result(self, session: ClientSession, task: str) -> types.CallToolResult:
        told, answered = "", set[str]()
        while True:
            found = await _ask(session, "get", _Found, task)
            if found.result is not None:
                return found.result
            if found.error is not None:
                raise ToolFailed(f"The task failed: {found.error.message[:2000]}")
            if found.status not in ("working", "input_required"):
                raise ToolFailed(f"The server ended the task without a result: {found.status}.")
            if found.status_message and found.status_message[:LONGEST_REPORT] != told:
                told = found.status_message[:LONGEST_REPORT]
                self._tell({"message": told})
            if asked := {id: one for id, one in (found.input_requests or {}).items() if id not in answered}:
                answers = await _answers(session, asked)
                await _ask(session, "update", types.EmptyResult, task, inputResponses=answers)
                answered |= asked.keys()
                continue
            pause = _PAUSE if found.poll_interval_ms is None else found.poll_interval_ms / 1000
            await anyio.sleep(min(max(pause, _SHORTEST), _LONGEST))


async def _answers(session: ClientSession, asked: dict[str, types.InputRequest]) -> dict[str, Any]:
    """Answer the requests one after another: they are for the same user."""
    answers: dict[str, Any] = {}
    for id, request in asked.items():
        meta = request.params.meta if request.params else None
        context = ClientRequestContext(session=session, request_id=id, meta=meta)
        answer = await session.dispatch_input_request(context, request)
        if isinstance(answer, types.ErrorData):
            raise MCPError.from_error_data(answer)
        answers[id] = answer.model_dump(mode="json", by_alias=True, exclude_none=True)
    return answers


async def _ask(session: ClientSession, what: str, result: type[_R], task: str, **more: Any) -> _R:
    request = _Asked(method=f"tasks/{what}", params={"taskId": task, **more})
    return await session.send_request(request, result)
