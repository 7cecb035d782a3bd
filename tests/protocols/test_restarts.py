"""Check clients of other protocols that reconnect to a restarted server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from dragoman import Runtime, ScriptedModel, tool
from dragoman.messages.message import Text
from dragoman.messages.questions import reject
from dragoman.server.auth import key_hash
from dragoman.server.protocols.ag_ui.run_input import RunAgentInput
from dragoman.wire.scripted import calls, says
from tests.patience import PATIENCE
from tests.runtimes import add, runtime_with
from tests.server.site import Site, served, serving

pytestmark = pytest.mark.slow
ASKS = [calls("add", a=1, b=2), says("Done.")]
PARTS = [{"type": "text", "text": "Add."}]


async def told(site: Site, path: str, body: Any) -> list[dict[str, Any]]:
    """Return the response to its end."""
    answer = await site.ask("POST", path, body)
    assert answer.status == 200, answer.body
    frames = [frame.removeprefix("data: ") for frame in answer.body.decode().split("\n\n")]
    return [json.loads(frame) for frame in frames if frame.startswith("{")]


def written(chunks: list[dict[str, Any]]) -> str:
    return "".join(chunk["delta"] for chunk in chunks if chunk["type"] == "text-delta")


async def test_an_approval_of_the_ai_sdk_is_answered_after_a_restart(tmp_path: Path) -> None:
    """Text from before the restart is not sent twice (F2 × S3)."""
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


async def test_an_interrupt_of_a_turn_that_cannot_resume_here_is_a_conflict(tmp_path: Path) -> None:
    """Its answer is stored, and the turn resumes where its model is (F2 × T14)."""
    said = [{"id": "1", "role": "user", "content": "Add."}]
    run: dict[str, Any] = {"threadId": "a", "runId": "1", "messages": said, "tools": [], "context": []}
    async with served(tmp_path, ASKS[:1], tools=[add], allow=()) as site:
        *_, end = await told(site, "/api/ag-ui", run)
    (interrupt,) = end["outcome"]["interrupts"]
    run["resume"] = [{"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": True}}]
    elsewhere = Runtime(tmp_path / "chat.db", model=ScriptedModel([], name="other/model"), tools=[add])
    async with elsewhere as runtime, serving(tmp_path, runtime) as site:
        answer = await asyncio.wait_for(site.ask("POST", "/api/ag-ui", {**run, "runId": "2"}), PATIENCE)
    assert answer.status == 409, answer.body
    async with served(tmp_path, ASKS[1:], tools=[add], allow=()) as site:
        (turn,) = await site.runtime.store.turns((await site.runtime.conversations())[0].id)
        assert (await site.runtime.turn(turn.id).result()).text == "Done."


async def test_what_is_somebody_elses_is_not_there(tmp_path: Path) -> None:
    """It is hidden by the name of a chat, and by the ID of a turn, a request or a conversation. Names are
    separate for each user (U1)."""
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


async def test_an_approval_reaches_a_turn_that_another_process_runs(tmp_path: Path) -> None:
    """Text from before the approval is not sent again, and the request is made once (F2 × N3)."""
    body: dict[str, Any] = {"id": "", "messages": [{"id": "1", "role": "user", "parts": PARTS}]}
    async with runtime_with(tmp_path, ASKS, tools=[add], allow=()) as owner:
        turn = await owner.send("Add.")
        assert await turn.reached("waiting")
        async with served(tmp_path, [], tools=[add], allow=(), adopts=False) as site:
            (conversation,) = await owner.conversations()
            elsewhere = site.runtime.turn(turn.id).events()
            async for event in elsewhere:  # from here on, other processes receive it
                if event.type == "call.asked":
                    break
            await elsewhere.aclose()  # type: ignore[attr-defined]  # a generator
            snapshot = await turn.snapshot()
            answered = {
                "type": "dynamic-tool",
                "toolCallId": snapshot.questions[0].call,
                "state": "approval-responded",
                "approval": {"id": snapshot.questions[0].id, "approved": True},
            }
            said = {"id": turn.id, "role": "assistant", "parts": [answered]}
            body |= {"id": conversation.id, "messages": [*body["messages"], said]}
            rest = await told(site, "/api/ai-sdk/chat", body)
    types = [chunk["type"] for chunk in rest]
    assert written(rest) == "Done."
    assert not {"tool-approval-request", "tool-input-start"} & {*types}


async def test_who_comes_again_is_told_which_calls_wait_for_them(tmp_path: Path) -> None:
    """The run ends immediately, also if the client brings no results (F2)."""
    run: dict[str, Any] = {
        "threadId": "a",
        "runId": "1",
        "messages": [{"id": "1", "role": "user", "content": "Where?"}],
        "tools": [{"name": "where", "description": "Where.", "parameters": {"type": "object"}}],
        "context": [],
        "protocolVersion": "1.0",
    }
    async with served(tmp_path, [calls("where"), says("In Rome.")], allow=()) as site:
        *_, first = await told(site, "/api/ag-ui", run)
        *_, again = await told(site, "/api/ag-ui", {**run, "runId": "2"})
        assert again["outcome"] == first["outcome"]
        (call,) = first["outcome"]["pendingToolCallIds"]
        brings = [*run["messages"], {"id": "2", "role": "tool", "toolCallId": call, "content": "Rome"}]
        *_, end = await told(site, "/api/ag-ui", {**run, "runId": "3", "messages": brings})
    assert end["outcome"] == {"type": "success"}


async def test_a_change_of_the_state_that_nobody_read_is_made_when_its_client_comes_again(
    tmp_path: Path,
) -> None:
    """The change belongs to the client and waits for it. Then it is sent, and the turn resumes (F2 × S3)."""
    update = calls("update_state", changes={"notes": ["milk", "bread"]})
    run: dict[str, Any] = {
        "threadId": "",
        "runId": "1",
        "messages": [{"id": "1", "role": "user", "content": "Add bread."}],
        "state": {"notes": ["milk"]},
    }
    async with runtime_with(tmp_path, [update], allow=()) as first:
        conversation = await first.conversation()
        options = RunAgentInput.model_validate(run).turn_options(None, run["state"])
        turn = await first.commands.send(conversation.id, [Text("Add bread.")], options=options)
        assert await first.turn(turn).reached("waiting")
    run |= {"threadId": conversation.id, "state": {}}  # a page that has reloaded
    async with served(tmp_path, [says("Added.")], allow=()) as site:
        events = await told(site, "/api/ag-ui", run)
        other = {"id": "2", "role": "user", "content": "And?"}
        later = await site.ask("POST", "/api/ag-ui", {**run, "runId": "2", "messages": [other]})
    states = [one for one in events if one["type"].startswith("STATE_")]
    assert states == [
        {"type": "STATE_SNAPSHOT", "snapshot": {"notes": ["milk"]}},
        {"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "/notes", "value": ["milk", "bread"]}]},
    ]
    assert events[-1]["outcome"] == {"type": "success"}
    assert '"snapshot": {"notes": ["milk", "bread"]}' in later.body.decode()


async def test_an_approval_that_comes_too_late_brings_the_rest_of_the_answer(tmp_path: Path) -> None:
    """The request was answered elsewhere, or the response was lost. The client would otherwise ask forever
    (F2 × P4)."""
    script = [
        says("One moment.") + calls("add", a=1, b=2),
        says("Again.") + calls("add", a=3, b=4),
        says("7."),
    ]
    chat: dict[str, Any] = {"id": "a", "messages": [{"id": "1", "role": "user", "parts": PARTS}]}
    async with served(tmp_path, script, tools=[add], allow=()) as site:
        chunks = await told(site, "/api/ai-sdk/chat", chat)
        shown = [approval(chunks, state="approval-responded", approved=True)]
        chat["messages"].append({"id": chunks[0]["messageId"], "role": "assistant", "parts": shown})
        await told(site, "/api/ai-sdk/chat", chat)
        late = await told(site, "/api/ai-sdk/chat", chat)
        (question,) = await site.runtime.store.questions(user="local")
        await site.runtime.answer(question.id, reject("not these"))
        assert await site.runtime.turn(chunks[0]["messageId"]).reached("completed")
        over = await told(site, "/api/ai-sdk/chat", chat)
        shown[0]["state"] = "output-available"
        shown.append(approval(late, state="approval-responded", approved=True))
        rest = await told(site, "/api/ai-sdk/chat", chat)
    assert (written(late), written(over), written(rest)) == ("Again.", "Again.7.", "7.")
    ends = [
        [chunk["type"] for chunk in told if "tool-output" in chunk["type"]] for told in (late, over, rest)
    ]
    assert ends == [
        ["tool-output-available"],
        ["tool-output-available", "tool-output-denied"],
        ["tool-output-denied"],
    ]
    assert [told[-1]["type"] for told in (late, over, rest)] == ["finish"] * 3
    assert all(told[-1]["messageMetadata"]["model"] for told in (over, rest))


async def test_what_ag_ui_brings_too_late_shows_the_thread_as_it_is(tmp_path: Path) -> None:
    """This holds while the turn runs and when it is over, and nothing is sent again (F2 × P4)."""
    script = [calls("add", a=1, b=2), says("Again.") + calls("add", a=3, b=4), says("7.")]
    said = [{"id": "1", "role": "user", "content": "Add."}]
    run: dict[str, Any] = {"threadId": "a", "runId": "1", "messages": said, "tools": [], "context": []}
    async with served(tmp_path, script, tools=[add], allow=()) as site:
        *_, end = await told(site, "/api/ag-ui", run)
        (interrupt,) = end["outcome"]["interrupts"]
        resume = [{"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": True}}]
        await told(site, "/api/ag-ui", {**run, "runId": "2", "resume": resume})
        late = await told(site, "/api/ag-ui", {**run, "runId": "3", "resume": resume})
        (question,) = await site.runtime.store.questions(user="local")
        await site.runtime.answer(question.id, reject("not these"))
        (turn,) = await site.runtime.store.turns(question.conversation)
        assert await site.runtime.turn(turn.id).reached("completed")
        over = await told(site, "/api/ag-ui", {**run, "runId": "4", "resume": resume})
        brought = [*said, {"id": "2", "role": "tool", "toolCallId": question.call, "content": "7"}]
        again = await told(site, "/api/ag-ui", {**run, "runId": "5", "messages": brought})
        assert len(await site.runtime.store.turns(question.conversation)) == 1
    assert "".join(one["delta"] for one in late if one["type"] == "TEXT_MESSAGE_CONTENT") == "Again."
    assert late[-1]["outcome"]["interrupts"][0]["id"] == question.id
    (before,) = [one["messages"] for one in late if one["type"] == "MESSAGES_SNAPSHOT"]
    assert [(one["role"], one["content"]) for one in before] == [("user", "Add.")]
    for shown in (over, again):
        (thread,) = [one["messages"] for one in shown if one["type"] == "MESSAGES_SNAPSHOT"]
        assert [one["content"] for one in thread if one["role"] == "assistant" and one.get("content")][
            -1
        ] == "7."
        assert shown[-1]["outcome"] == {"type": "success"}
        assert shown[-1]["usage"][0]["model"]


def approval(chunks: list[dict[str, Any]], **answer: Any) -> dict[str, Any]:
    """Return the part of the call that needs approval, as a client sends it with its answer."""
    (asked,) = [chunk for chunk in chunks if chunk["type"] == "tool-approval-request"]
    state = answer.pop("state")
    given = {"id": asked["approvalId"], **answer}
    return {"type": "dynamic-tool", "toolCallId": asked["toolCallId"], "state": state, "approval": given}


USER = {"id": "1", "role": "user"}
STREAMS: dict[str, tuple[str, dict[str, Any]]] = {
    "ai_sdk": (
        "/api/ai-sdk/chat",
        {"id": "a", "messages": [{**USER, "parts": [{"type": "text", "text": "Wait."}]}]},
    ),
    "ag_ui": (
        "/api/ag-ui",
        {
            "threadId": "a",
            "runId": "1",
            "messages": [{**USER, "content": "Wait."}],
            "tools": [],
            "context": [],
        },
    ),
    "chat": (
        "/v1/chat/completions",
        {"model": "scripted/model", "stream": True, "messages": [{"role": "user", "content": "Wait."}]},
    ),
    "responses": ("/v1/responses", {"model": "scripted/model", "stream": True, "input": "Wait."}),
}


def says_that_it_stops(protocol: str, last: dict[str, Any]) -> bool:
    match protocol:
        case "ai_sdk":
            return last["type"] == "error" and "Connect again" in last["errorText"]
        case "ag_ui":
            return (last["type"], last["code"]) == ("RUN_ERROR", "server_stops")
        case "chat":
            return bool(last["error"]["code"] == "server_stops")
        case _:
            return (last["type"], last["code"]) == ("error", "server_stops")


@pytest.mark.parametrize("protocol", STREAMS)
async def test_a_server_that_stops_says_so_in_the_words_of_each_protocol(
    tmp_path: Path, protocol: str
) -> None:
    """F3: a plain end of the stream would look like the end of the answer."""
    running, path, body = asyncio.Event(), *STREAMS[protocol]

    @tool
    async def wait() -> str:
        """Wait."""
        running.set()
        await asyncio.Event().wait()
        return ""

    async with served(tmp_path, [says("One moment. ") + calls("wait")], tools=[wait]) as site:
        reading = asyncio.create_task(site.ask("POST", path, body))
        await asyncio.wait_for(running.wait(), PATIENCE)
        site.stop()
        lines = (await asyncio.wait_for(reading, PATIENCE)).body.decode().splitlines()
    (*_, last) = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    assert says_that_it_stops(protocol, json.loads(last)), last


@pytest.mark.parametrize("path", ["/api/events", "/api/conversations/{}/events", "/api/turns/{}/events"])
async def test_a_server_that_stops_says_so_on_its_own_streams(tmp_path: Path, path: str) -> None:
    async with served(tmp_path, [calls("add", a=1, b=2)], tools=[add], allow=()) as site:
        conversation = await site.conversation()
        turn = await site.say("Add.", conversation)
        await site.question()
        address = path.format(turn if "turns" in path else conversation)
        async with site.events(address) as events:
            site.stop()
            seen = [event async for event in events]
    assert (seen[-1].type, seen[-1].data["code"]) == ("server.stops", "server.stops")


def said(text: str, id: str) -> dict[str, Any]:
    return {"id": id, "role": "user", "parts": [{"type": "text", "text": text}]}


@pytest.mark.parametrize(
    ("second", "known"),
    [
        ({"messages": [said("And?", "2")]}, ["Hello", "First.", "And?", "Second."]),
        ({"message": said("And?", "2")}, ["Hello", "First.", "And?", "Second."]),
        ({"messages": [], "message": said("And?", "2")}, ["And?", "Second."]),
        ({"messages": [said("And?", "1")], "messageId": "1"}, ["And?", "Second."]),
    ],
)
async def test_a_message_alone_goes_on_with_the_chat_that_the_server_has(
    tmp_path: Path, second: dict[str, Any], known: list[str]
) -> None:
    """Such an application sends only the last message, and marks a restart or an edit (F1)."""
    async with served(tmp_path, [says("First."), says("Second.")]) as site:
        await told(site, "/api/ai-sdk/chat", {"id": "a", "messages": [said("Hello", "1")]})
        await told(site, "/api/ai-sdk/chat", {"id": "a", **second})
        (conversation,) = await site.runtime.conversations()
        chat = await site.runtime.conversation(conversation.id)
        assert [message.text for message in await chat.messages()] == known


async def test_a_chat_without_a_message_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path, []) as site:
        assert (await site.ask("POST", "/api/ai-sdk/chat", {"id": "a", "messages": []})).status == 422
