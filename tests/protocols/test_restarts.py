"""Clients of other protocols come back to a server that was started again meanwhile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.server.auth import key_hash
from dragoman.wire.scripted import calls, says
from tests.runtimes import add
from tests.server.site import Site, served

pytestmark = pytest.mark.slow
ASKS = [calls("add", a=1, b=2), says("Done.")]
PARTS = [{"type": "text", "text": "Add."}]


async def told(site: Site, path: str, body: Any) -> list[dict[str, Any]]:
    """What comes back, to the end of the response."""
    answer = await site.ask("POST", path, body)
    assert answer.status == 200, answer.body
    frames = [frame.removeprefix("data: ") for frame in answer.body.decode().split("\n\n")]
    return [json.loads(frame) for frame in frames if frame.startswith("{")]


def written(chunks: list[dict[str, Any]]) -> str:
    return "".join(chunk["delta"] for chunk in chunks if chunk["type"] == "text-delta")


async def test_an_approval_of_the_ai_sdk_is_answered_after_a_restart(tmp_path: Path) -> None:
    """F2 × S3: and what was said before it is not said twice."""
    chat: dict[str, Any] = {"id": "a", "messages": [{"id": "1", "role": "user", "parts": PARTS}]}
    async with served(tmp_path, ASKS[:1], tools=[add], allow=()) as site:
        chunks = await told(site, "/api/ai-sdk/chat", chat)
        (asked,) = [chunk for chunk in chunks if chunk["type"] == "tool-approval-request"]
    answered = {
        "type": "dynamic-tool",
        "toolCallId": asked["toolCallId"],
        "state": "approval-responded",
        "approval": {"id": asked["approvalId"], "approved": True},
    }
    chat["messages"].append({"id": chunks[0]["messageId"], "role": "assistant", "parts": [answered]})
    async with served(tmp_path, ASKS[1:], tools=[add], allow=()) as site:
        rest = await told(site, "/api/ai-sdk/chat", chat)
    assert [chunk["output"] for chunk in rest if chunk["type"] == "tool-output-available"] == [3]
    assert written(rest) == "Done."
    assert not [chunk for chunk in rest if chunk["type"] == "tool-input-start"]


async def test_an_interrupt_of_ag_ui_is_answered_after_a_restart(tmp_path: Path) -> None:
    """F2 × S3"""
    run: dict[str, Any] = {
        "threadId": "a",
        "runId": "1",
        "messages": [{"id": "1", "role": "user", "content": "Add."}],
        "tools": [],
        "context": [],
    }
    async with served(tmp_path, ASKS[:1], tools=[add], allow=()) as site:
        *_, end = await told(site, "/api/ag-ui", run)
    (interrupt,) = end["outcome"]["interrupts"]
    resume = [{"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": True}}]
    async with served(tmp_path, ASKS[1:], tools=[add], allow=()) as site:
        rest = await told(site, "/api/ag-ui", {**run, "runId": "2", "resume": resume})
    assert [one["content"] for one in rest if one["type"] == "TOOL_CALL_RESULT"] == ["3"]
    assert rest[-1]["outcome"] == {"type": "success"}
    assert not [one for one in rest if one["type"] == "TOOL_CALL_START"]


async def test_what_is_somebody_elses_is_not_there(tmp_path: Path) -> None:
    """U1: neither by the name of a chat, nor by a turn, a question or a conversation; a name is one's own."""
    chat: dict[str, Any] = {"id": "a", "messages": [{"id": "1", "role": "user", "parts": PARTS}]}
    async with served(tmp_path, [*ASKS[:1], says("Hello, Ada.")], tools=[add], allow=()) as site:
        chunks = await told(site, "/api/ai-sdk/chat", chat)
        (asked,) = [chunk for chunk in chunks if chunk["type"] == "tool-approval-request"]
        (conversation,) = await site.runtime.conversations()
        await site.runtime.store.add_person("ada", key_hash("key of ada"), 1.0)
        ada = Site(site.url, site.runtime, site.auth, site.http, key="key of ada")
        for name in ("a", conversation.id):
            assert (await ada.ask("GET", f"/api/ai-sdk/chat/{name}/stream")).status == 204
        answered = {
            "type": "dynamic-tool",
            "toolCallId": asked["toolCallId"],
            "state": "approval-responded",
            "approval": {"id": asked["approvalId"], "approved": True},
        }
        mine = {"id": chunks[0]["messageId"], "role": "assistant", "parts": [answered]}
        theirs = {"id": "a", "messages": [*chat["messages"], mine]}
        assert (await ada.ask("POST", "/api/ai-sdk/chat", theirs)).status == 404
        hers = await told(ada, "/api/ai-sdk/chat", chat)
        assert written(hers) == "Hello, Ada."
        assert len(await site.runtime.store.questions(user="local")) == 1
