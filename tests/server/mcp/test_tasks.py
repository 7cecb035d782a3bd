"""Calls that a client comes back for: tasks, to the SDK's own client with an extension for them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter

from tests.patience import PATIENCE, eventually
from tests.server.mcp.client import PlayedPerson, over_stdio, settings, text_of

pytestmark = pytest.mark.slow
MODERN = "2026-07-28"
TASKS = "io.modelcontextprotocol/tasks"
SLOW = {"command": "touch begun; while [ ! -e go ]; do sleep 0.05; done; echo all done"}
ANY: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])


class Created(types.Result):
    """The handle of a task."""

    result_type: Literal["task"] = "task"
    task_id: str
    status: str


class TaskRequest(types.Request[dict[str, Any], str]):
    name_param: ClassVar[str | None] = "taskId"
    method: str
    params: dict[str, Any]


class Tasks(ClientExtension):
    """Keeps the handles it gets, and gives the caller something else in their place."""

    identifier = TASKS

    def __init__(self) -> None:
        self.handles: list[Created] = []

    def claims(self) -> Sequence[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=Created, resolve=self._resolve)]

    async def _resolve(self, created: Created, context: ClaimContext) -> types.CallToolResult:
        self.handles.append(created)
        return types.CallToolResult(content=[types.TextContent(type="text", text="a task")])


async def ask(client: Client, method: str, task: str, **more: Any) -> dict[str, Any]:
    request = TaskRequest(method=f"tasks/{method}", params={"taskId": task, **more})
    return await client.session.send_request(request, ANY)  # type: ignore[type-var]  # it is any JSON


async def over(client: Client, task: str) -> dict[str, Any]:
    """The task when it is over."""
    async with asyncio.timeout(PATIENCE):
        while (found := await ask(client, "get", task))["status"] == "working":  # noqa: ASYNC110 - as clients do
            await asyncio.sleep(0.05)
    return found


async def test_a_call_that_takes_long_is_a_task_and_comes_to_its_result(tmp_path: Path) -> None:
    """F2: a quick one is none."""
    settings(tmp_path)
    tasks = Tasks()
    flags = ("--allow", "shell", "--allow", "basics.*")
    async with over_stdio(tmp_path, *flags, mode=MODERN, extensions=[tasks]) as client:
        quick = await client.call_tool("calculator", {"expression": "6 * 7"})
        assert (text_of(quick).strip(), tasks.handles) == ("42", [])
        assert text_of(await client.call_tool("shell", SLOW)) == "a task"
        (task,) = tasks.handles
        assert (await ask(client, "get", task.task_id))["status"] == "working"
        (tmp_path / "go").touch()
        found = await over(client, task.task_id)
        assert found["status"] == "completed"
        assert "all done" in found["result"]["content"][0]["text"]


async def test_a_task_is_cancelled(tmp_path: Path) -> None:
    """T6"""
    settings(tmp_path)
    tasks = Tasks()
    async with over_stdio(tmp_path, "--allow", "shell", mode=MODERN, extensions=[tasks]) as client:
        await client.call_tool("shell", SLOW)
        (task,) = tasks.handles
        await ask(client, "cancel", task.task_id)
        assert (await over(client, task.task_id))["status"] == "cancelled"
        with pytest.raises(MCPError, match="Unknown task"):
            await ask(client, "get", "turn_of_somebody")


async def test_a_task_waits_for_an_answer_also_over_a_restart(tmp_path: Path) -> None:
    """The task contains the approval request, and the client sends its answer to the task (S3, P6)."""
    settings(tmp_path)
    tasks, person = Tasks(), PlayedPerson("Allow once")
    write = {"path": "a.txt", "text": "one\n"}
    async with over_stdio(tmp_path, mode=MODERN, extensions=[tasks], elicitation_callback=person) as client:
        parked = await client.session.call_tool("write_file", write, allow_input_required=True)
        assert isinstance(parked, types.InputRequiredResult)
        assert parked.request_state is not None
    async with over_stdio(tmp_path, mode=MODERN, extensions=[tasks], elicitation_callback=person) as client:
        found = await ask(client, "get", parked.request_state)
        assert found["status"] == "input_required"
        (question,) = found["inputRequests"]
        answer = {"action": "accept", "content": {"answer": "Allow once"}}
        responses = {question: answer, "nothing": answer}
        await ask(client, "update", parked.request_state, inputResponses=responses)
        found = await over(client, parked.request_state)
        assert found["status"] == "completed"
    assert (tmp_path / "a.txt").read_text() == "one\n"


async def test_a_client_without_the_extension_gets_no_task(tmp_path: Path) -> None:
    """F3: it waits, and tasks/get names what is missing."""
    settings(tmp_path)
    async with over_stdio(tmp_path, "--allow", "shell", mode=MODERN) as client:
        calling = asyncio.create_task(client.call_tool("shell", SLOW))
        await eventually((tmp_path / "begun").exists)
        with pytest.raises(MCPError, match="does not declare support for"):
            await ask(client, "get", "turn_1")
        (tmp_path / "go").touch()
        assert "all done" in text_of(await calling)
