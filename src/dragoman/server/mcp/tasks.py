"""Tasks, an extension of the Model Context Protocol: calls that a client comes back for.

A call is a turn, so a task is its turn, by the same id: it is stored before the client hears of it, goes on
when the client or this program is gone, and waits for an answer as long as that takes.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from dragoman.errors import NotFound
from dragoman.messages.questions import Question
from dragoman.runtime import Runtime
from dragoman.server.mcp.calls import TASKS, Caller, ToolCalls
from dragoman.server.mcp.questions import form_of
from dragoman.store.store import TurnRow
from dragoman.turn.api.turn_handle import TurnHandle

_POLL = 1000  # milliseconds between two looks
_MISSING_CAPABILITY = -32021
_NEEDED: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS: {}}}}

CallerOf: TypeAlias = Callable[[ServerRequestContext[Any]], Caller]
TaskStatus: TypeAlias = Literal["working", "input_required", "completed", "cancelled"]


class TaskParams(types.RequestParams):
    """Which task is meant."""

    task_id: str


class TaskAnswers(TaskParams):
    """What a client brings for a task that waits."""

    input_responses: types.InputResponses


class CallTasks:
    """The methods of the extension."""

    def __init__(self, runtime: Runtime, calls: ToolCalls, caller_of: CallerOf) -> None:
        self._runtime = runtime
        self._calls = calls
        self._caller_of = caller_of

    def join(self, server: Server) -> None:
        """Offer them."""
        server.extensions[TASKS] = {}
        server.add_request_handler("tasks/get", TaskParams, self._get)
        server.add_request_handler("tasks/update", TaskAnswers, self._update)
        server.add_request_handler("tasks/cancel", TaskParams, self._cancel)

    async def created(self, turn: str) -> dict[str, Any]:
        """What a client gets in the place of a result."""
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
        """What is not asked, or not any more, is left alone."""
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
            raise MCPError(types.METHOD_NOT_FOUND, "tasks came with the protocol of 2026-07-28")
        if not caller.has_tasks:
            raise MCPError(_MISSING_CAPABILITY, f"this client does not say that it knows {TASKS}", _NEEDED)
        try:
            return caller, await self._calls.turn_of(caller, params.task_id)
        except NotFound:
            raise MCPError(types.INVALID_PARAMS, f"there is no task {params.task_id!r}") from None

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
        "ttlMs": None,  # it is there until the person deletes the conversation
        "pollIntervalMs": _POLL,
    }
