"""The AI SDK's own chat, as published, against a real server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman import ToolContext, tool
from dragoman.messages import events as e
from dragoman.messages.message import CallState, Citation, Message
from dragoman.messages.usage import Usage
from dragoman.server.protocols.ai_sdk.ui_writer import Chunk, UIMessageStream
from dragoman.wire.scripted import calls, fails, says, thinks
from tests.protocols.published import read_by_client, run_client
from tests.protocols.turns import snapshot_of, text_after, turns
from tests.runtimes import add, calls_of, model_of
from tests.server.site import Site, served
from tests.sweeps import examples, some

pytestmark = pytest.mark.slow
VERSIONS = some(["5", "6", "7"], 2)  # the readers at the end are of all three, always
NEWEST = some(["7", "6", "5"], 3)  # for tests about stored state
STORY = "Once upon a time. " * 40


async def at_the_chat(site: Site, version: str, scene: str) -> dict[str, Any]:
    """Return what the chat shows at the end."""
    where = "/api/ai-sdk/v5/chat" if version == "5" else "/api/ai-sdk/chat"
    return await run_client("ai_sdk.mjs", version, site.url + where, site.key, scene)


async def path_of(site: Site, conversation: str) -> list[Message]:
    """Return the last message and those before it."""
    tree = await (await site.runtime.conversation(conversation)).tree()
    return list(tree.path((await site.runtime.store.conversation(conversation)).leaf))


def parts(shown: dict[str, Any], *types: str) -> list[dict[str, Any]]:
    """Return the parts of the last message that have these types."""
    return [part for part in shown["messages"][-1]["parts"] if not types or part["type"] in types]


def text(shown: dict[str, Any]) -> str:
    return "".join(part["text"] for part in parts(shown, "text"))


@pytest.mark.parametrize("version", VERSIONS)
async def test_thoughts_calls_and_an_answer_are_shown(tmp_path: Path, version: str) -> None:
    """F2"""
    script = [thinks("Let me add.") + says("One moment.") + calls("add", a=1, b=2), says("It is 3.")]
    async with served(tmp_path, script, tools=[add]) as site:
        shown = await at_the_chat(site, version, "chat")
    assert (shown["status"], shown["errors"], text(shown)) == ("ready", [], "One moment.It is 3.")
    assert [part["text"] for part in parts(shown, "reasoning")] == ["Let me add."]
    (call,) = parts(shown, "dynamic-tool")
    assert (call["toolName"], call["state"]) == ("add", "output-available")
    assert (call["input"], call["output"]) == ({"a": 1, "b": 2}, 3)
    assert shown["messages"][-1]["metadata"]["usage"]["input"] == 20


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_page_that_is_loaded_again_shows_the_same_chat(tmp_path: Path, version: str) -> None:
    """Data parts and metadata, which no model sees, are included. Then the chat continues (F1 × S3)."""
    script = [thinks("Let me add.") + calls("add", a=1, b=2), says("It is 3."), says("Second.")]
    async with served(tmp_path, script, tools=[add]) as site:
        shown = await at_the_chat(site, version, "reloaded")
        (conversation,) = await site.runtime.conversations()
        tree = await path_of(site, conversation.id)
        sent = repr(model_of(site.runtime).requests)
    assert [_as_shown(one) for one in shown["after"]] == [_as_shown(one) for one in shown["before"]]
    assert shown["after"][0]["metadata"] == {"mood": "glad"}
    assert "Rome" not in sent
    assert [message.text for message in tree if message.role == "user"] == ["Hello", "And?"]
    assert text(shown) == "Second."


def _as_shown(message: dict[str, Any]) -> Any:
    """Without what the client alone writes."""
    named = {name: message[name] for name in ("id", "role")}
    more = ("type", "text", "state", "toolName", "toolCallId", "input", "output", "data")
    return named, [{name: part[name] for name in more if name in part} for part in message["parts"]]


@pytest.mark.parametrize("version", NEWEST)
async def test_a_second_message_is_said_in_the_same_conversation(tmp_path: Path, version: str) -> None:
    """F1: the chat's own name stands for it."""
    async with served(tmp_path, [says("First."), says("Second.")]) as site:
        shown = await at_the_chat(site, version, "two")
        (conversation,) = await site.runtime.conversations()
        tree = await path_of(site, conversation.id)
    assert [message["role"] for message in shown["messages"]] == ["user", "assistant"] * 2
    assert [message.text for message in tree] == ["Hello", "First.", "And?", "Second."]


@pytest.mark.parametrize("version", some(["6", "7"], 2, 1))
@pytest.mark.parametrize("scene", ["allow", "refuse"])
async def test_an_approval_is_asked_for_and_answered(tmp_path: Path, version: str, scene: str) -> None:
    """The protocol's own messages are used, and the turn resumes (F2, P4)."""
    script = [calls("add", a=1, b=2), says("Done.")]
    async with served(tmp_path, script, tools=[add], allow=()) as site:
        shown = await at_the_chat(site, version, scene)
        (conversation,) = await site.runtime.conversations()
        stored = await path_of(site, conversation.id)
    (call,) = calls_of(stored)
    (part,) = parts(shown, "dynamic-tool")
    if scene == "allow":
        assert (call.state, part["state"], part["output"]) == (CallState.COMPLETED, "output-available", 3)
    else:
        assert (call.state, part["state"]) == (CallState.REJECTED, "output-denied")
        assert call.result is not None
        assert "not today" in call.result.text
    assert (text(shown), len(shown["messages"])) == ("Done.", 2)


async def test_where_the_protocol_has_no_approvals_the_stream_waits(tmp_path: Path) -> None:
    """In version 5, the approval request comes as data and is answered over the API (F3)."""
    async with served(tmp_path, [calls("add", a=1, b=2), says("Done.")], tools=[add], allow=()) as site:
        shown = await at_the_chat(site, "5", "asked")
    assert (shown["asked"], text(shown)) == (200, "Done.")


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_tool_of_the_page_is_run_by_the_page(tmp_path: Path, version: str) -> None:
    """F2, C6: once."""
    async with served(tmp_path, [calls("where"), says("In Rome.")], allow=()) as site:
        shown = await at_the_chat(site, version, "tool")
    assert (shown["ran"], text(shown)) == ([{}], "In Rome.")
    (part,) = parts(shown, "tool-where")
    assert (part["state"], part["output"]) == ("output-available", "Rome")


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_page_that_is_loaded_again_gets_the_whole_answer(tmp_path: Path, version: str) -> None:
    """F2, E2"""
    async with served(tmp_path, [says(STORY.strip(), waits=0.02)]) as site:
        shown = await at_the_chat(site, version, "reload")
    assert (text(shown), len(parts(shown, "text"))) == (STORY.strip(), 1)


@pytest.mark.parametrize("version", VERSIONS)
async def test_who_stops_and_says_something_else_gets_an_answer(tmp_path: Path, version: str) -> None:
    """The disconnected turn is cancelled (F2, T6)."""
    async with served(tmp_path, [says(STORY, waits=0.05), says("Gladly.")]) as site:
        shown = await at_the_chat(site, version, "stop")
        (conversation,) = await site.runtime.conversations()
        turns = await site.runtime.store.turns(conversation.id)
    assert (text(shown), [turn.state for turn in turns]) == ("Gladly.", ["cancelled", "completed"])


@pytest.mark.parametrize("version", NEWEST)
async def test_a_turn_that_is_cancelled_elsewhere_is_not_sent_in_again(tmp_path: Path, version: str) -> None:
    """F2 × T6: pages send by themselves whatever ends in results of calls."""

    @tool
    async def leave(context: ToolContext) -> str:
        """Cancel the turn that calls it."""
        (conversation,) = await site.runtime.conversations()
        (turn,) = await site.runtime.store.live_turns(conversation.id)
        await site.runtime.commands.cancel(turn.id, "elsewhere")
        await asyncio.Event().wait()
        return ""

    async with served(tmp_path, [calls("leave")], tools=[leave]) as site:
        shown = await at_the_chat(site, version, "cancelled")
    assert (shown["status"], shown["requests"]) == ("ready", 1)
    (call,) = parts(shown, "dynamic-tool")
    assert call["state"] == "output-error"


@pytest.mark.parametrize("version", NEWEST)
@pytest.mark.parametrize(("scene", "said"), [("again", ["Hello"]), ("edit", ["Hello", "And?"])])
async def test_an_answer_is_made_once_more(tmp_path: Path, version: str, scene: str, said: list[str]) -> None:
    """The new answer is a version next to the first one (F2)."""
    async with served(tmp_path, [says("First."), says("Second.")]) as site:
        shown = await at_the_chat(site, version, scene)
        (conversation,) = await site.runtime.conversations()
        stored, _ = await site.runtime.store.messages(conversation.id)
    assert text(shown) == "Second."
    assert [message.text for message in stored if message.role == "user"] == said
    assert [message.text for message in stored if message.role == "assistant"] == ["First.", "Second."]


@pytest.mark.parametrize("version", NEWEST)
async def test_a_file_of_a_message_is_stored(tmp_path: Path, version: str) -> None:
    """M3"""
    async with served(tmp_path, [says("It says hello.")]) as site:
        await at_the_chat(site, version, "file")
        (conversation,) = await site.runtime.conversations()
        first, *_ = await path_of(site, conversation.id)
        (file,) = first.files
        assert file.blob is not None
        assert await site.runtime.store.blob(file.blob) == b"hello"
    assert (first.text, file.name, file.media_type) == ("Read it.", "a.txt", "text/plain")


@pytest.mark.parametrize("version", VERSIONS)
async def test_what_fails_is_an_error_of_the_chat(tmp_path: Path, version: str) -> None:
    """F3"""
    async with served(tmp_path, [fails(RuntimeError("no more words"), after="So far ")]) as site:
        shown = await at_the_chat(site, version, "two")
    assert any("no more words" in error for error in shown["errors"])


@pytest.mark.parametrize(
    ("end", "told"),
    [
        (e.TurnEnd("completed", "x", Usage(), finish="stop"), ["finish stop"]),
        (e.TurnEnd("completed", "x", Usage(), finish="refusal"), ["finish content-filter"]),
        (e.TurnEnd("completed", "x", Usage(), finish="of tomorrow"), ["finish other"]),
        (
            e.TurnEnd("completed", "x", Usage(), limit="10 rounds", finish="stop"),
            ["data-notice", "finish stop"],
        ),
        (e.TurnEnd("error", "", Usage(), "boom", finish="stop"), ["error", "finish error"]),
        (e.TurnEnd("cancelled", "", Usage()), ["abort"]),
    ],
)
def test_a_chat_is_told_how_a_turn_ended(end: e.TurnEnd, told: list[str]) -> None:
    """F1, T7, T8"""
    stream = UIMessageStream("turn_1", "conv_1", brought=(), approvals=False)
    chunks = list(stream.events(end))
    assert [f"{chunk['type']} {chunk.get('finishReason', '')}".rstrip() for chunk in chunks] == told


def test_sources_are_told_with_an_id_of_their_own() -> None:
    """F1: under one ID, a page shows the last of them alone."""
    stream = UIMessageStream("turn_1", "conv_1", brought=(), approvals=False)
    first = [Citation("https://a.example", "A"), Citation("https://b.example"), Citation(quote="it says")]
    told = [
        *stream.events(e.TextCited(first)),
        *stream.events(e.TextCited([Citation(title="T"), Citation()])),
    ]
    document = {"type": "source-document", "mediaType": "text/plain"}
    assert told == [
        {"type": "source-url", "sourceId": "source-1", "url": "https://a.example", "title": "A"},
        {"type": "source-url", "sourceId": "source-2", "url": "https://b.example"},
        {**document, "sourceId": "source-3", "title": "it says"},
        {**document, "sourceId": "source-4", "title": "T"},
    ]


def test_whatever_happens_in_a_turn_every_version_reads_its_stream() -> None:
    """Their schemas and readers accept the stream, with all of the text (F1, W1)."""
    told: list[tuple[bool, list[Chunk], str]] = []

    @given(turns(), st.booleans())
    @settings(max_examples=examples(30, 150), deadline=None, suppress_health_check=list(HealthCheck))
    def tell(events: list[e.Event], approvals: bool) -> None:
        stream = UIMessageStream("turn_1", "conv_1", brought=(), approvals=approvals)
        chunks = [stream.begin(), *(chunk for event in events for chunk in stream.events(event))]
        texts = "".join(event.text for event in events if isinstance(event, e.TextDelta))
        told.append((approvals, chunks, texts))

    tell()
    read = read_by_client(
        "ai_sdk_reads.mjs", [{"approvals": approvals, "chunks": chunks} for approvals, chunks, _ in told]
    )
    expected = [text for approvals, _, text in told for _ in range(2 if approvals else 3)]
    assert ["".join(texts) for texts in read] == expected


def test_whenever_a_page_is_loaded_again_every_version_reads_the_rest() -> None:
    """F1 × E2: at any moment of any turn, also of one whose tools the page runs."""
    told: list[tuple[bool, list[Chunk], str]] = []

    @given(turns(), st.booleans(), st.booleans(), st.data())
    @settings(max_examples=examples(30, 150), deadline=None, suppress_health_check=list(HealthCheck))
    def tell(events: list[e.Event], approvals: bool, theirs: bool, data: st.DataObject) -> None:
        cut = data.draw(st.integers(1, len(events) - 1))
        brought = {"add"} if theirs else ()
        stream = UIMessageStream("turn_1", "conv_1", brought=brought, approvals=approvals)
        chunks = [stream.begin(), *stream.replay(snapshot_of(events[:cut]))]
        chunks += [chunk for event in events[cut:] for chunk in stream.events(event)]
        told.append((approvals, chunks, text_after(events, cut)))

    tell()
    read = read_by_client(
        "ai_sdk_reads.mjs", [{"approvals": approvals, "chunks": chunks} for approvals, chunks, _ in told]
    )
    expected = [text for approvals, _, text in told for _ in range(2 if approvals else 3)]
    assert ["".join(texts) for texts in read] == expected
