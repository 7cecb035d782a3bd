"""CopilotKit's client, as published, against a real server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman.messages.message import CallState
from dragoman.wire.scripted import calls, says, thinks
from tests.protocols.published import FRONTENDS, run_client
from tests.runtimes import add, calls_of, model_of
from tests.server.site import Site, served

pytestmark = pytest.mark.slow


async def at_the_front_end(site: Site, scene: str) -> dict[str, Any]:
    return await run_client("copilotkit.mjs", f"{site.url}/api/ag-ui", site.key, scene, packages=FRONTENDS)


def said(shown: dict[str, Any], role: str = "assistant") -> list[str]:
    return [one["content"] for one in shown["messages"] if one["role"] == role and one.get("content")]


async def test_an_answer_is_shown_and_what_the_page_knows_is_known(tmp_path: Path) -> None:
    """F2: its context comes after the prompts."""
    script = [thinks("Let me add.") + says("One moment.") + calls("add", a=1, b=2), says("It is 3.")]
    async with served(tmp_path, script, tools=[add]) as site:
        shown = await at_the_front_end(site, "chat")
        request, *_ = model_of(site.runtime).requests
    assert (shown["errors"], said(shown), said(shown, "tool")) == ([], ["One moment.", "It is 3."], ["3"])
    assert "The person's name: Ada" in request.system


async def test_a_tool_of_the_page_is_run_and_the_turn_goes_on(tmp_path: Path) -> None:
    """F2, C6: once, and in one turn."""
    async with served(tmp_path, [calls("where"), says("In Rome.")], allow=()) as site:
        shown = await at_the_front_end(site, "tool")
        (conversation,) = await site.runtime.conversations()
        assert len(await site.runtime.store.turns(conversation.id)) == 1
    assert (shown["errors"], shown["ran"], said(shown)) == ([], [{}], ["In Rome."])


@pytest.mark.parametrize(("scene", "state"), [("allow", CallState.COMPLETED), ("refuse", CallState.REJECTED)])
async def test_an_interrupt_is_answered_and_the_turn_goes_on(
    tmp_path: Path, scene: str, state: CallState
) -> None:
    """F2, P4"""
    async with served(tmp_path, [calls("add", a=1, b=2), says("Done.")], tools=[add], allow=()) as site:
        shown = await at_the_front_end(site, scene)
        (conversation,) = await site.runtime.conversations()
        (call,) = calls_of((await site.runtime.store.messages(conversation.id))[0])
    assert (shown["errors"], shown["interrupts"], said(shown)) == ([], ["tool_call"], ["Done."])
    assert call.state is state


async def test_the_model_changes_the_state_of_the_page(tmp_path: Path) -> None:
    """The previous state stays, and each change is published (F2)."""
    update = calls("update_state", changes={"notes": ["milk", "bread"]})
    async with served(tmp_path, [update, says("Added.")], allow=()) as site:
        shown = await at_the_front_end(site, "state")
    assert (shown["errors"], shown["state"], said(shown)) == ([], {"notes": ["milk", "bread"]}, ["Added."])


async def test_a_tool_of_the_page_is_not_run_before_a_person_has_allowed_it(tmp_path: Path) -> None:
    """A front end runs every call that it is shown, so the call is hidden until then (F2 × P)."""
    script = [calls("where"), says("In Rome.")]
    async with served(tmp_path, script, allow=(), ask=["client.where"]) as site:
        shown = await at_the_front_end(site, "tool-asked")
    assert (shown["errors"], shown["ran"], said(shown)) == ([], [{}], ["In Rome."])
    assert shown["interrupts"] == ["tool_call"]
