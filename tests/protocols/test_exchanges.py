"""Check messages that clients of other protocols send twice, too late, together with others, or
after a loss."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent
from dragoman.messages.events import MessageAdded
from dragoman.messages.message import Text
from dragoman.server.protocols.threads import events_after
from dragoman.wire.scripted import calls, fails, says
from tests.patience import PATIENCE
from tests.protocols.openai.callers import waiting
from tests.protocols.test_restarts import approval, told, written
from tests.runtimes import add, model_of, runtime_with
from tests.server.site import Site, served
from tests.server.test_api import secret

pytestmark = pytest.mark.slow
CHAT, RUN = "/api/ai-sdk/chat", "/api/ag-ui"
TOOL = {"description": "Where.", "parameters": {"type": "object"}}


def user(id: str, text: str) -> dict[str, Any]:
    return {"id": id, "role": "user", "parts": [{"type": "text", "text": text}]}


def answer(chunks: list[dict[str, Any]], *parts: dict[str, Any]) -> dict[str, Any]:
    """As the client has it."""
    return {"id": chunks[0]["messageId"], "role": "assistant", "parts": [*parts]}


def run(messages: list[dict[str, Any]], id: str, **more: Any) -> dict[str, Any]:
    return {"threadId": "a", "runId": id, "messages": messages, "tools": [], "context": [], **more}


def texts(events: list[dict[str, Any]]) -> str:
    return "".join(one["delta"] for one in events if one["type"] == "TEXT_MESSAGE_CONTENT")


async def turns(site: Site) -> list[str]:
    (conversation,) = await site.runtime.conversations()
    return [turn.state for turn in await site.runtime.store.turns(conversation.id)]


async def asked(site: Site, count: int) -> None:
    """Wait until the model has received this number of requests."""
    async with asyncio.timeout(PATIENCE):
        while len(model_of(site.runtime).requests) < count:  # noqa: ASYNC110 - the model tells nobody
            await asyncio.sleep(0.01)


async def test_a_message_of_the_ai_sdk_that_comes_twice_is_answered_once(tmp_path: Path) -> None:
    """It can come from two tabs at the same time, or from a client that lost the response. A failed message
    is retried (F2 × T4)."""
    gate = asyncio.Event()
    script = [calls("wait"), says("One."), fails("out of order"), says("Two.")]
    async with served(tmp_path, script, tools=[waiting(gate)]) as site:
        chat: dict[str, Any] = {"id": "a", "messages": [user("1", "Hello")]}
        both = [asyncio.create_task(told(site, CHAT, chat)) for _ in range(2)]
        await asked(site, 1)
        gate.set()
        first, second = await asyncio.gather(*both)
        late = await told(site, CHAT, chat)
        assert [written(one) for one in (first, second, late)] == ["One."] * 3
        assert {one[0]["messageId"] for one in (second, late)} == {first[0]["messageId"]}
        chat["messages"] += [answer(first), user("2", "And?")]
        failed = await told(site, CHAT, chat)
        assert "error" in [chunk["type"] for chunk in failed]
        assert written(await told(site, CHAT, chat)) == "Two."
        assert await turns(site) == ["completed", "error", "completed"]


async def test_a_request_with_nothing_to_answer_is_refused(tmp_path: Path) -> None:
    """F3: no user message, no chat, no such agent, or an answer that nothing waits for."""
    system = {"id": "1", "role": "system", "parts": [{"type": "text", "text": "Be brief."}]}
    resume = [{"interruptId": "q_1", "status": "resolved"}]
    said = [{"id": "1", "role": "user", "content": "Hello"}]
    async with served(tmp_path, []) as site:
        for path, body, words in (
            (CHAT, {"id": "a", "messages": [system]}, "no user message"),
            (CHAT, {"id": "x" * 501, "messages": [user("1", "Hello")]}, "1 to 500 characters"),
            (RUN, run([{"id": "1", "role": "system", "content": "Be brief."}], "1"), "no user message"),
            (RUN, run(said, "1", resume=resume), "waits for an answer"),
            (f"{RUN}/nobody", run(said, "1"), "agent 'nobody'"),
        ):
            answer = await site.ask("POST", path, body)
            assert answer.status == (404 if "nobody" in path else 422)
            assert words in answer.body["detail"]
        assert (await site.get(f"{CHAT}/a"), await site.runtime.conversations()) == ([], [])


async def test_a_chat_is_stopped(tmp_path: Path) -> None:
    """T6 × F2: also one that waits for an answer."""
    async with served(tmp_path, [calls("add", a=1, b=2)], tools=[add], allow=()) as site:
        assert await site.post(f"{CHAT}/a/stop") == {"cancelled": False}
        await told(site, CHAT, {"id": "a", "messages": [user("1", "Add.")]})
        assert await site.post(f"{CHAT}/a/stop") == {"cancelled": True}
        (conversation,) = await site.runtime.conversations()
        (turn,) = await site.runtime.store.turns(conversation.id)
        await site.runtime.turn(turn.id).result()
        assert await turns(site) == ["cancelled"]


@pytest.mark.parametrize(
    ("yes", "result"),
    [({"approved": True, "text": "redacted"}, "redacted"), ({"approved": True}, "swordfish")],
)
async def test_a_review_is_answered_over_ag_ui(tmp_path: Path, yes: dict[str, Any], result: str) -> None:
    """P5 × F2: the model gets the result as the person left it."""
    said = [{"id": "1", "role": "user", "content": "Tell me."}]
    async with served(tmp_path, [calls("secret"), says("Done.")], tools=[secret]) as site:
        first = await told(site, RUN, run(said, "1"))
        (asked_for,) = first[-1]["outcome"]["interrupts"]
        resume = [{"interruptId": asked_for["id"], "status": "resolved", "payload": yes}]
        assert texts(await told(site, RUN, run(said, "2", resume=resume))) == "Done."
        (call,) = model_of(site.runtime).requests[-1].messages[1].calls
    assert call.result is not None
    assert call.result.text == result


async def test_what_never_arrived_is_not_taken_for_the_message_before_it(tmp_path: Path) -> None:
    """A `regenerate` after a lost submit does not answer the message before it again (F2 × T10)."""
    async with served(tmp_path, [says("One."), says("Two."), says("Two again.")]) as site:
        first = await told(site, CHAT, {"id": "a", "messages": [user("1", "Hello")]})
        again = {
            "id": "a",
            "trigger": "regenerate-message",
            "messages": [user("1", "Hello"), answer(first), user("2", "And?")],
        }
        assert written(await told(site, CHAT, again)) == "Two."
        assert written(await told(site, CHAT, again)) == "Two again."
        said = [request.messages[-1].parts for request in model_of(site.runtime).requests]
    assert [part.text for (part,) in said] == ["Hello", "And?", "And?"]  # type: ignore[union-attr]


async def test_something_new_beside_a_result_of_the_ai_sdk_reaches_the_same_turn(tmp_path: Path) -> None:
    """Pages that do not send results by themselves send them with the next message (F2 × T13)."""
    async with served(tmp_path, [calls("where"), says("Rome, rainy.")], allow=()) as site:
        chat: dict[str, Any] = {"id": "a", "tools": {"where": TOOL}, "messages": [user("1", "Where am I?")]}
        first = await told(site, CHAT, chat)
        (call,) = [chunk["toolCallId"] for chunk in first if chunk["type"] == "tool-input-available"]
        done = {"type": "tool-where", "toolCallId": call, "state": "output-available", "output": "Rome"}
        chat["messages"] += [answer(first, done), user("2", "And the weather?")]
        rest = await told(site, CHAT, chat)
        late = await told(site, CHAT, chat)
        chat["messages"] += [answer(rest), user("3", "Thanks.")]
        refused = await site.ask("POST", CHAT, {**chat, "messages": [*chat["messages"][:-1]]})
        assert await turns(site) == ["completed"]
        last = model_of(site.runtime).requests[-1].messages
    assert (written(rest), written(late)) == ("Rome, rainy.", "Rome, rainy.")
    assert rest[0]["messageId"] == late[0]["messageId"] != first[0]["messageId"]
    assert not [chunk for chunk in rest if "toolCallId" in chunk or chunk["type"] == "data-steered"]
    assert [part.text for part in last[-1].parts] == ["And the weather?"]  # type: ignore[union-attr]
    assert (refused.status, b"abort" in refused.body) == (200, False)


async def test_an_approval_is_taken_also_where_something_was_said_behind_it(tmp_path: Path) -> None:
    """F2 × T4: the newest SDK names the message that it answers for."""
    async with served(tmp_path, [calls("add", a=1, b=2), says("3.")], tools=[add], allow=()) as site:
        chat: dict[str, Any] = {"id": "a", "messages": [user("1", "Add.")]}
        first = await told(site, CHAT, chat)
        assert (await site.ask("POST", CHAT, {**chat, "trigger": "regenerate-message"})).status == 409
        chat["messages"] += [answer(first), user("2", "Hurry.")]
        assert (await site.ask("POST", CHAT, chat)).status == 409
        chat["messages"][1] = answer(first, approval(first, state="approval-responded", approved=True))
        rest = await told(site, CHAT, {**chat, "messageId": first[0]["messageId"]})
    assert (written(rest), rest[0]["messageId"]) == ("3.", first[0]["messageId"])


async def test_who_hangs_up_after_an_approval_can_say_something_else(tmp_path: Path) -> None:
    """The turn belongs to the client as before the approval request (F2 × T6)."""
    gate = asyncio.Event()
    script = [calls("wait"), says("Gladly.")]
    async with served(tmp_path, script, tools=[waiting(gate)], allow=()) as site:
        chat: dict[str, Any] = {"id": "a", "messages": [user("1", "Wait.")]}
        first = await told(site, CHAT, chat)
        allowed = approval(first, state="approval-responded", approved=True)
        brings = {**chat, "messages": [*chat["messages"], answer(first, allowed)]}
        headers = {"authorization": f"Bearer {site.key}"}
        async with site.http.post(site.url + CHAT, json=brings, headers=headers) as response:
            await response.content.readline()
        chat["messages"] += [answer(first, allowed), user("2", "Something else.")]
        async with asyncio.timeout(PATIENCE):
            while (said := await site.ask("POST", CHAT, chat)).status == 409:  # noqa: ASYNC110 - until it is noticed
                await asyncio.sleep(0.01)
        assert b"Gladly." in said.body
        assert await turns(site) == ["cancelled", "completed"]


async def test_a_run_of_ag_ui_that_comes_twice_is_one(tmp_path: Path) -> None:
    """This also holds for a failed run. Another run with the same text is separate (F2 × T4)."""
    said = [{"id": "1", "role": "user", "content": "Hello"}]
    async with served(tmp_path, [says("One."), fails("out of order"), says("Two.")]) as site:
        await told(site, RUN, run(said, "1"))
        late = await told(site, RUN, run(said, "1"))
        said += [
            {"id": "2", "role": "assistant", "content": "One."},
            {"id": "3", "role": "user", "content": "And?"},
        ]
        await told(site, RUN, run(said, "2"))
        failed = await told(site, RUN, run(said, "2"))
        assert texts(await told(site, RUN, run(said, "3"))) == "Two."
        assert await turns(site) == ["completed", "error", "completed"]
    (thread,) = [one["messages"] for one in late if one["type"] == "MESSAGES_SNAPSHOT"]
    assert [one["content"] for one in thread] == ["Hello", "One."]
    assert late[-1]["outcome"] == {"type": "success"}
    assert (failed[-1]["type"], failed[-1]["message"]) == ("RUN_ERROR", "out of order")


async def test_something_new_beside_a_result_of_ag_ui_reaches_the_same_turn(tmp_path: Path) -> None:
    """A result that no call waits for begins nothing (F2 × T13)."""
    tools = [{"name": "where", **TOOL}]
    said: list[dict[str, Any]] = [{"id": "1", "role": "user", "content": "Where am I?"}]
    async with served(tmp_path, [calls("where"), says("Rome, rainy.")], allow=()) as site:
        first = await told(site, RUN, run(said, "1", tools=tools, protocolVersion="1.0"))
        (call,) = first[-1]["outcome"]["pendingToolCallIds"]
        said += [
            {"id": "2", "role": "assistant", "toolCalls": []},
            {"id": "3", "role": "tool", "toolCallId": call, "content": "Rome"},
            {"id": "4", "role": "user", "content": "And the weather?"},
        ]
        rest = await told(site, RUN, run(said, "2", tools=tools))
        late = await told(site, RUN, run(said, "2", tools=tools))
        assert await turns(site) == ["completed"]
        (conversation,) = await site.runtime.conversations()
        unknown = [*said[:2], {"id": "3", "role": "tool", "toolCallId": "call_x", "content": "Rome"}]
        lost = await site.ask("POST", RUN, run(unknown, "3"))
        await site.ask("DELETE", f"/api/conversations/{conversation.id}")
        deleted = await site.ask("POST", RUN, run(said[:3], "4"))
        assert not await site.runtime.conversations()
    assert texts(rest) == "Rome, rainy."
    assert [one["messages"][-1]["content"] for one in late if one["type"] == "MESSAGES_SNAPSHOT"] == [
        "Rome, rainy."
    ]
    assert (lost.status, deleted.status) == (422, 422)
    assert call in deleted.body["detail"]


async def test_what_the_calls_of_a_task_ask_is_told(tmp_path: Path) -> None:
    """This holds over both protocols. The client that sees the request can answer it, and the stream
    continues (F3 × P6)."""
    task = calls("task", agent="helper", request="Add.")
    script = [task, calls("add", a=1, b=2), says("3."), says("Done.")]
    helper = Agent(name="helper", description="Helps.")
    message = {"id": "1", "role": "user", "content": "Go."}
    for path, body in ((CHAT, {"id": "a", "messages": [user("1", "Go.")]}), (RUN, run([message], "1"))):
        folder = tmp_path / path.rpartition("/")[2]
        folder.mkdir()
        async with served(folder, script, tools=[add], agents=[helper], allow=("task",)) as site:
            told_it = asyncio.create_task(told(site, path, body))
            question = await site.question()
            await site.post(f"/api/questions/{question['id']}/answer", {"verdict": "allow"})
            frames = await told_it
        said = [one for one in frames if "question" in one.get("name", one["type"])]
        assert question["id"] in [(one.get("data") or one["value"])["id"] for one in said]


async def test_of_a_turn_that_ended_between_two_looks_the_rest_is_told(tmp_path: Path) -> None:
    """Events that the client already has are not sent again (E2)."""
    async with runtime_with(tmp_path, [calls("add", a=1, b=2), says("Rome, rainy.")], tools=[add]) as first:
        turn = await first.send("Where?")
        await turn.result()
    async with runtime_with(tmp_path, [], tools=[add]) as second:
        whole = await second.turn(turn.id).snapshot()
        *before, last = whole.messages
        for parts, lacking in (((Text("Rome"),), ", rainy."), ((), "Rome, rainy.")):
            known = replace(whole, messages=(*before, replace(last, parts=parts)))
            rest = [event async for event in events_after(second.turn(turn.id), known)]
            assert [one.message.text for one in rest if isinstance(one, MessageAdded)] == [lacking]
            assert [event.type for event in rest][-1] == "turn.end"
