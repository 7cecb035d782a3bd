"""Check `GET /api/turns/ID/trace`: what a turn did, for its owner only."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman import tool
from dragoman.server.auth import key_hash
from dragoman.wire.scripted import calls, says
from tests.server.site import served

pytestmark = pytest.mark.slow


@tool(pattern="path")
def delete(path: str) -> str:
    """Delete a file."""
    return "gone"


async def test_the_trace_of_a_turn_is_typed_and_without_contents(tmp_path: Path) -> None:
    """O3, U5: the same that the terminal prints."""
    script = [calls("delete", path="secret.txt"), says("It is done.")]
    async with served(tmp_path, script, tools=[delete], allow=()) as site:
        turn = await site.say("Remove it.")
        question = await site.question()
        assert (await site.get(f"/api/turns/{turn}/trace"))["trace"]["state"] == "waiting"
        await site.post(f"/api/questions/{question['id']}/answer", {"verdict": "allow"})
        await site.runtime.turn(turn).result()
        shown = await site.get(f"/api/turns/{turn}/trace")
        (call,) = shown["trace"]["steps"][0]["calls"]
        assert (call["tool"], call["state"], call["because"]["kind"]) == ("delete", "completed", "answer")
        assert call["waits"][0]["verdict"] == "allow"
        assert shown["totals"]["seconds"] > 0
        for word in ("secret.txt", "Remove it", "It is done"):
            assert word not in str(shown)


async def test_somebody_elses_turn_is_not_there(tmp_path: Path) -> None:
    """U2"""
    async with served(tmp_path, [says("hi")]) as site:
        turn = await site.say("go")
        await site.runtime.turn(turn).result()
        await site.runtime.store.add_person("ada", key_hash("hers"), 0.0)
        other = await site.ask("GET", f"/api/turns/{turn}/trace", headers={"authorization": "Bearer hers"})
        assert other.status == 404
        assert (await site.ask("GET", "/api/turns/turn_none/trace")).status == 404
