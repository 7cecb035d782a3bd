"""AG-UI's own client, as published, against a real server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman import Agent
from dragoman.messages import events as e
from dragoman.messages.message import CallState, Message, ToolCall, ToolResult
from dragoman.messages.usage import Usage
from dragoman.server.protocols.ag_ui.run_writer import AgentRun, RunEvent, thread_messages
from dragoman.wire.scripted import calls, fails, says, thinks
from tests.protocols.published import read_by_client, run_client
from tests.protocols.turns import snapshot_of, text_after, turns
from tests.runtimes import add, calls_of, model_of
from tests.server.site import Site, served
from tests.sweeps import examples

pytestmark = pytest.mark.slow
STORY = ("Once upon a time. " * 40).strip()


async def at_the_client(site: Site, scene: str, agent: str = "") -> dict[str, Any]:
    return await run_client("ag_ui.mjs", f"{site.url}/api/ag-ui{agent}", site.key, scene)


def said(shown: dict[str, Any], role: str = "assistant") -> list[str]:
    return [
        message["content"]
        for message in shown["messages"]
        if message["role"] == role and message.get("content")
    ]


async def test_thoughts_calls_and_an_answer_are_shown(tmp_path: Path) -> None:
    """F2"""
    script = [thinks("Let me add.") + says("One moment.") + calls("add", a=1, b=2), says("It is 3.")]
    async with served(tmp_path, script, tools=[add]) as site:
        shown = await at_the_client(site, "chat")
    assert (said(shown), said(shown, "reasoning"), said(shown, "tool")) == (
        ["One moment.", "It is 3."],
        ["Let me add."],
        ["3"],
    )
    made = [call for message in shown["messages"] for call in message.get("toolCalls", ())]
    assert [(call["function"]["name"], call["function"]["arguments"]) for call in made] == [
        ("add", '{"a": 1, "b": 2}')
    ]
    assert (shown["outcomes"], shown["usage"][0]["inputTokens"]) == (["success"], 20)


async def test_a_second_message_is_said_in_the_same_conversation(tmp_path: Path) -> None:
    """F1: the thread's own name stands for it."""
    async with served(tmp_path, [says("First."), says("Second.")]) as site:
        shown = await at_the_client(site, "two")
        (conversation,) = await site.runtime.conversations()
        stored, _ = await site.runtime.store.messages(conversation.id)
    assert said(shown) == ["First.", "Second."]
    assert [message.text for message in stored] == ["Hello", "First.", "And?", "Second."]


@pytest.mark.parametrize(
    ("scene", "state", "result"),
    [
        ("allow", CallState.COMPLETED, "3"),
        ("edit", CallState.COMPLETED, "30"),
        ("refuse", CallState.REJECTED, "not today"),
    ],
)
async def test_an_interrupt_is_answered_and_the_turn_goes_on(
    tmp_path: Path, scene: str, state: CallState, result: str
) -> None:
    """The answer uses the protocol's own messages, also with changed arguments (F2, P4)."""
    async with served(tmp_path, [calls("add", a=1, b=2), says("Done.")], tools=[add], allow=()) as site:
        shown = await at_the_client(site, scene)
        (conversation,) = await site.runtime.conversations()
        stored, _ = await site.runtime.store.messages(conversation.id)
    (call,) = calls_of(stored)
    assert call.result is not None
    assert (call.state, result in call.result.text) == (state, True)
    assert (said(shown), shown["outcomes"]) == (["Done."], ["interrupt", "success"])


async def test_a_tool_of_the_client_is_run_by_the_client(tmp_path: Path) -> None:
    """F2, C6"""
    async with served(tmp_path, [calls("where"), says("In Rome.")], allow=()) as site:
        shown = await at_the_client(site, "tool")
        (conversation,) = await site.runtime.conversations()
        assert len(await site.runtime.store.turns(conversation.id)) == 1
    assert (said(shown), shown["outcomes"]) == (["In Rome."], ["success", "success"])


async def test_who_lost_the_connection_and_asks_the_same_gets_the_whole_answer(tmp_path: Path) -> None:
    """F2, E2: of the turn that runs, not of another one."""
    async with served(tmp_path, [says(STORY, waits=0.02)]) as site:
        shown = await at_the_client(site, "again")
        (conversation,) = await site.runtime.conversations()
        assert len(await site.runtime.store.turns(conversation.id)) == 1
    assert said(shown) == [STORY]


async def test_who_aborts_and_says_something_else_gets_an_answer(tmp_path: Path) -> None:
    """F2, T6"""
    async with served(tmp_path, [says(STORY, waits=0.05), says("Gladly.")]) as site:
        shown = await at_the_client(site, "abort")
        (conversation,) = await site.runtime.conversations()
        turns = await site.runtime.store.turns(conversation.id)
    assert (said(shown)[-1], [turn.state for turn in turns]) == ("Gladly.", ["cancelled", "completed"])


async def test_what_fails_is_an_error_of_the_run(tmp_path: Path) -> None:
    """F3"""
    async with served(tmp_path, [fails(RuntimeError("no more words"), after="So far ")]) as site:
        shown = await at_the_client(site, "chat")
    assert "no more words" in shown["errors"][0]


UPDATE = calls("update_state", changes={"notes": {"~new": ["bread"], "old": None}})
CHANGED = {"notes": {"a/b": "milk", "~new": ["bread"]}}


async def test_the_model_sees_the_state_and_changes_it(tmp_path: Path) -> None:
    """The client's own state changes by the protocol's patches, in an ordinary call that needs no approval
    (F2)."""
    async with served(tmp_path, [UPDATE, says("Added.")], allow=()) as site:
        shown = await at_the_client(site, "state")
        first, second = model_of(site.runtime).requests
    assert (shown["state"], said(shown), shown["outcomes"]) == (CHANGED, ["Added."], ["success"])
    assert '"a/b":"milk"' in first.system
    assert "update_state" in [tool.name for tool in second.tools]


async def test_a_state_may_need_a_person_to_change(tmp_path: Path) -> None:
    """F2 × P1: a rule speaks of it as of every tool of the client."""
    async with served(tmp_path, [UPDATE, says("No.")], allow=(), deny=["client.update_state"]) as site:
        shown = await at_the_client(site, "state")
    assert shown["state"] == {"notes": {"a/b": "milk", "old": 1}}


@pytest.mark.parametrize("value", ["NaN", "1e999", '"\\ud800"', "[" * 190 + "]" * 190, f'"{"x" * 100_000}"'])
async def test_a_state_that_cannot_be_stored_is_refused_whenever_it_comes(tmp_path: Path, value: str) -> None:
    """F2 × E3: also with the answer that a run waited for."""
    script = [calls("add", a=1, b=2), says("Done.")]
    async with served(tmp_path, script, tools=[add], allow=()) as site:
        said = '"threadId":"t","runId":"r","messages":[{"id":"1","role":"user","content":"Add bread."}]'
        first = await site.ask("POST", "/api/ag-ui", f'{{{said},"state":{{"a":1}}}}'.encode())
        assert first.status == 200
        (question,) = await site.runtime.questions()
        answer = (
            f'"resume":[{{"interruptId":"{question.id}","status":"resolved","payload":{{"approved":true}}}}]'
        )
        bad = await site.ask("POST", "/api/ag-ui", f'{{{said},{answer},"state":{{"a":{value}}}}}'.encode())
        assert bad.status in (400, 422), bad.body
        assert await site.runtime.questions()


async def test_without_a_state_there_is_no_tool_for_it(tmp_path: Path) -> None:
    """F3"""
    async with served(tmp_path, [says("Hello.")]) as site:
        await at_the_client(site, "chat")
        (request,) = model_of(site.runtime).requests
    assert not [tool for tool in request.tools if tool.name == "update_state"]


@pytest.mark.parametrize("scene", ["forgotten", "connect"])
async def test_who_has_nothing_but_the_name_of_a_thread_gets_all_of_it(tmp_path: Path, scene: str) -> None:
    """The response has the messages and the state, also from a restarted server (F2 × S3)."""
    async with served(tmp_path, [UPDATE, says("Added.")], allow=()) as site:
        await at_the_client(site, "state")
    async with served(tmp_path, [], allow=()) as site:
        shown = await at_the_client(site, scene)
    assert (shown["state"], said(shown), said(shown, "user")) == (CHANGED, ["Added."], ["Add bread."])
    assert [call["function"]["name"] for one in shown["messages"] for call in one.get("toolCalls", ())] == [
        "update_state"
    ]


async def test_an_agent_is_run_by_its_name(tmp_path: Path) -> None:
    """F1"""
    critic = Agent(name="critic", prompt="You are a critic.")
    async with served(tmp_path, [says("Weak.")], agents=[critic]) as site:
        shown = await at_the_client(site, "chat", "/critic")
        (request,) = model_of(site.runtime).requests
    assert (said(shown), "You are a critic." in request.system) == (["Weak."], True)


@pytest.mark.parametrize("state", [CallState.FAILED, CallState.REJECTED, CallState.WITHHELD])
def test_a_call_that_came_to_nothing_is_no_success(state: CallState) -> None:
    """F1: clients take `role` for success, and `error` of a stored message for a failure."""
    call = ToolCall("call_1", "add", state=state, result=ToolResult("It broke."))
    message = Message("msg_1", "conv_1", None, "assistant", (call,), created=1.0)
    run = AgentRun("a", "1")
    *_, event = run.events(e.CallEnd(call.id, call.tool, {}, state, ToolResult("It broke.")))
    *_, stored = thread_messages(message)
    assert ("role" in event, event["error"]) == (False, "It broke.")
    assert isinstance(stored, dict)
    assert (stored["role"], stored["error"]) == ("tool", "It broke.")


def test_a_run_whose_reply_was_broken_off_is_no_success() -> None:
    """F1"""
    ended = [*AgentRun("thread", "run").events(e.TurnEnd("completed", "Half", Usage(), finish="error"))]
    assert ended[-1]["type"] == "RUN_ERROR"
    assert str(ended[-1]["message"]) == "the provider broke off the reply of the model"


def test_the_first_text_of_a_message_has_its_id_and_no_two_parts_share_one() -> None:
    """F1: by it a client says which message it answers."""
    run = AgentRun("thread", "run")
    events: list[e.Event] = []
    for id in ("msg_1", "msg_2"):
        events += [e.StepStart(1, 1, id, None, "m"), e.TextStart(), e.TextDelta("a"), e.TextEnd()]
        events += [e.TextStart(), e.TextDelta("b"), e.TextEnd(), e.StepEnd(1, Usage())]
    written = [told for event in events for told in run.events(event)]
    ids = [told["messageId"] for told in written if told["type"] == "TEXT_MESSAGE_START"]
    assert ids == ["msg_1", "msg_1-2", "msg_2", "msg_2-2"]


def test_whatever_happens_in_a_turn_the_client_reads_its_run() -> None:
    """The client's schema and checks accept the run, with all of the text (F1, W1)."""
    told: list[tuple[list[RunEvent], str]] = []

    @given(turns())
    @settings(max_examples=examples(30, 150), deadline=None, suppress_health_check=list(HealthCheck))
    def tell(events: list[e.Event]) -> None:
        run = AgentRun("thread", "run")
        written = [run.begin(), *(told for event in events for told in run.events(event))]
        if written[-1]["type"] != "RUN_ERROR":
            text = "".join(event.text for event in events if isinstance(event, e.TextDelta))
            told.append((written, text))

    tell()
    read = read_by_client("ag_ui_reads.mjs", [events for events, _ in told])
    assert ["".join(texts) for texts in read] == [text for _, text in told]


@pytest.mark.parametrize("version", ["", "1.0"])
def test_whenever_a_client_comes_again_it_reads_the_rest(version: str) -> None:
    """F1 × E2: at any moment of any turn, also of one whose tools the client runs."""
    told: list[tuple[list[RunEvent], str]] = []

    @given(turns(), st.booleans(), st.data())
    @settings(max_examples=examples(30, 150), deadline=None, suppress_health_check=list(HealthCheck))
    def tell(events: list[e.Event], theirs: bool, data: st.DataObject) -> None:
        cut = data.draw(st.integers(1, len(events) - 1))
        run = AgentRun("thread", "run", {"add"} if theirs else (), version=version)
        written = [run.begin(), *run.replay(snapshot_of(events[:cut]))]
        written += [told for event in events[cut:] for told in run.events(event)]
        if written[-1]["type"] != "RUN_ERROR":
            told.append((written, text_after(events, cut)))

    tell()
    read = read_by_client("ag_ui_reads.mjs", [events for events, _ in told])
    assert ["".join(texts) for texts in read] == [text for _, text in told]
