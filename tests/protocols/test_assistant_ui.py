"""assistant-ui's two runtimes, AI SDK and AG-UI, as published, in a page against a real server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman.messages.message import CallState
from dragoman.wire.scripted import calls, says, thinks
from tests.protocols.published import FRONTENDS, run_client
from tests.runtimes import add, calls_of
from tests.server.site import Site, served

pytestmark = pytest.mark.slow
BOTH = pytest.mark.parametrize("protocol", ["ai-sdk/chat", "ag-ui"])
STORY = ("Once upon a time. " * 40).strip()


async def at_the_page(site: Site, scene: str, protocol: str = "ai-sdk/chat") -> dict[str, Any]:
    """Return what the page shows at the end."""
    url = f"{site.url}/api/{protocol}"
    return await run_client("assistant_ui.mjs", url, site.key, scene, packages=FRONTENDS)


def parts(shown: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """Return the parts of the last answer that have this type."""
    return [part for part in shown["answer"] if part["type"] == kind]


def text(shown: dict[str, Any]) -> str:
    return "".join(part["text"] for part in parts(shown, "text"))


@BOTH
async def test_thoughts_calls_and_an_answer_are_shown(tmp_path: Path, protocol: str) -> None:
    """F2"""
    script = [thinks("Let me add.") + says("One moment.") + calls("add", a=1, b=2), says("It is 3.")]
    async with served(tmp_path, script, tools=[add]) as site:
        shown = await at_the_page(site, "chat", protocol)
    assert (shown["errors"], text(shown)) == ([], "One moment.It is 3.")
    assert [part["text"] for part in parts(shown, "reasoning")] == ["Let me add."]
    (call,) = parts(shown, "tool-call")
    assert (call["toolName"], call["args"], call["result"]) == ("add", {"a": 1, "b": 2}, 3)


@BOTH
async def test_a_second_message_is_said_in_the_same_conversation(tmp_path: Path, protocol: str) -> None:
    """F1: the thread's own name stands for it."""
    async with served(tmp_path, [says("First."), says("Second.")]) as site:
        await at_the_page(site, "two", protocol)
        (conversation,) = await site.runtime.conversations()
        stored, _ = await site.runtime.store.messages(conversation.id)
    assert [message.text for message in stored] == ["Hello", "First.", "And?", "Second."]


@BOTH
@pytest.mark.parametrize("scene", ["allow", "refuse"])
async def test_an_approval_is_asked_for_and_answered(tmp_path: Path, scene: str, protocol: str) -> None:
    """The page's own messages are used, and the turn resumes (F2, P4)."""
    async with served(tmp_path, [calls("add", a=1, b=2), says("Done.")], tools=[add], allow=()) as site:
        shown = await at_the_page(site, scene, protocol)
        (conversation,) = await site.runtime.conversations()
        (call,) = calls_of((await site.runtime.store.messages(conversation.id))[0])
    assert (shown["errors"], text(shown)) == ([], "Done.")
    if scene == "allow":
        assert (call.state, parts(shown, "tool-call")[0]["result"]) == (CallState.COMPLETED, 3)
    else:
        assert call.state is CallState.REJECTED
        assert call.result is not None
        assert "not today" in call.result.text


@BOTH
async def test_a_tool_of_the_page_is_run_by_the_page(tmp_path: Path, protocol: str) -> None:
    """The tool runs once, and the page sends its result by itself (F2, C6)."""
    async with served(tmp_path, [calls("where"), says("In Rome.")], allow=()) as site:
        shown = await at_the_page(site, "tool", protocol)
    assert (shown["errors"], shown["ran"], text(shown)) == ([], [{}], "In Rome.")


async def test_a_page_that_is_loaded_again_gets_the_whole_answer(tmp_path: Path) -> None:
    """F2, E2: it asks for the stream whose id it has kept."""
    async with served(tmp_path, [says(STORY, waits=0.02)]) as site:
        shown = await at_the_page(site, "reload")
        (conversation,) = await site.runtime.conversations()
        (turn,) = await site.runtime.store.turns(conversation.id)
    assert (text(shown), turn.state) == (STORY, "completed")


@BOTH
async def test_who_stops_and_says_something_else_gets_an_answer(tmp_path: Path, protocol: str) -> None:
    """The disconnected turn is cancelled (F2, T6)."""
    async with served(tmp_path, [says(STORY, waits=0.05), says("Gladly.")]) as site:
        shown = await at_the_page(site, "stop", protocol)
        (conversation,) = await site.runtime.conversations()
        turns = await site.runtime.store.turns(conversation.id)
    assert (text(shown), [turn.state for turn in turns]) == ("Gladly.", ["cancelled", "completed"])
