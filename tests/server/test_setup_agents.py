"""Check agents that are written over HTTP: available immediately, and stored in the user's own file."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tomllib
from typing import Any

from dragoman.turn.agent import Agent
from dragoman.wire.scripted import calls
from tests.server.test_setup import Folder, folder, set_up

__all__ = ["folder"]


async def test_an_agent_is_written_changed_and_removed(folder: Folder) -> None:
    """The agent is available immediately and after a restart, and every other byte of the file stays (P11,
    U3)."""
    async with set_up(folder) as site:
        before = folder.file.read_text()
        body = {
            "description": "Reads.",
            "prompt": 'You "read".\nNothing else.',
            "tools": ["files.read_file", "grep"],
            "allow": ["files.read"],
            "deny": ["files.*:secrets/*"],
        }
        made = (await site.ask("PUT", "/api/setup/agents/reader", body)).body
        assert (made["own"], [rule["pattern"] for rule in made["rules"]]) == (True, ["*", "secrets/*"])
        assert folder.file.read_text().startswith(before)
        assert tomllib.loads(folder.file.read_text())["agents"]["reader"] == body
        names = [one["name"] for one in (await site.get("/api/agents"))["items"]]
        assert names == ["coder", "reader"]
        groups = {one["name"]: one for one in (await site.get("/api/tools"))["groups"]}
        offered = {tool["name"]: tool["description"] for tool in groups["agents"]["tools"]}
        assert "- reader: Reads." in offered["task"]
    folder.file.write_text(folder.file.read_text() + "[agents.reader.limits]\nmax_rounds = 3\n")
    async with set_up(folder) as site:
        assert site.runtime.services.agents["reader"].limits.max_rounds == 3
        changed = (await site.ask("PUT", "/api/setup/agents/reader", {"prompt": "You read aloud."})).body
        assert (changed["description"], changed["tools"], changed["rules"]) == ("", None, [])
        assert tomllib.loads(folder.file.read_text())["agents"]["reader"] == {
            "prompt": "You read aloud.",
            "limits": {"max_rounds": 3},
        }
        assert site.runtime.services.agents["reader"].limits.max_rounds == 3
        for name in ("reader", "coder"):
            assert (await site.ask("DELETE", f"/api/setup/agents/{name}")).status == 204
        assert "agents" not in tomllib.loads(folder.file.read_text())
        assert "agents" not in [one["name"] for one in (await site.get("/api/tools"))["groups"]]
        assert (await site.ask("DELETE", "/api/setup/agents/coder")).status == 404


async def test_an_agent_that_cannot_be_written_is_not_used(folder: Folder) -> None:
    """A restart would lose the agent (U3)."""
    async with set_up(folder) as site:
        in_the_way = folder.file.with_name(f"{folder.file.name}.{os.getpid()}.new")
        in_the_way.mkdir()
        refused = await site.ask("PUT", "/api/setup/agents/reader", {"prompt": "Read."})
        assert (refused.status, "directory" in refused.body["detail"]) == (422, True)
        assert [one["name"] for one in (await site.get("/api/agents"))["items"]] == ["coder"]
        in_the_way.rmdir()
        assert (await site.ask("PUT", "/api/setup/agents/reader", {"prompt": "Read."})).status == 200


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("a.b", {}, "letters, digits"),
    ("x" * 41, {}, "letters, digits"),
    ("reader", {"tools": ["files.reed_file"]}, "Did you mean files.read_file"),
    ("reader", {"model": "nobody/x"}, "nobody"),
    ("reader", {"allow": [":x"]}, "is not a rule"),
    ("reader", {"tools": "files"}, "tools"),
    ("reader", {"limits": {"max_rounds": 3}}, "limits"),
]


async def test_an_agent_that_cannot_be_is_refused(folder: Folder) -> None:
    """The answer names the fault, and nothing is written (P11)."""
    async with set_up(folder) as site:
        before = folder.file.read_bytes()
        for name, body, said in REFUSED:
            refused = await site.ask("PUT", f"/api/setup/agents/{name}", body)
            assert refused.status == 422, name
            assert said in json.dumps(refused.body)
            assert folder.file.read_bytes() == before
            assert [*site.runtime.services.agents] == ["coder"]


async def test_an_agent_of_another_file_is_edited_there(folder: Folder) -> None:
    """P11: so is one that others hand over to taken out only after them."""
    async with set_up(folder) as site:
        agents = [*site.runtime.services.agents.values()]
        site.runtime.use_agents([*agents, Agent(name="guide", handoffs=("coder",))])
        refused = await site.ask("PUT", "/api/setup/agents/guide", {"prompt": "x"})
        assert (refused.status, "Edit it there" in refused.body["detail"]) == (422, True)
        assert (await site.ask("DELETE", "/api/setup/agents/guide")).status == 422
        kept = await site.ask("DELETE", "/api/setup/agents/coder")
        assert (kept.status, "hands over to 'coder'" in kept.body["detail"]) == (422, True)
        assert "agents" in tomllib.loads(folder.file.read_text())


async def test_an_agent_that_works_in_a_turn_is_not_removed(folder: Folder) -> None:
    """The agent can be changed anyway, and removed when the turn is over (T14 × P11)."""
    async with set_up(folder, reply=lambda _: calls("write_file", path="a.txt", text="x")) as site:
        await site.ask("PUT", "/api/setup/providers/acme/key", {"key": "sk-open-sesame"})
        turn = await site.say("go", agent="coder")
        await site.until(f"/api/turns/{turn}/events", "call.asked")
        refused = await site.ask("DELETE", "/api/setup/agents/coder")
        assert (refused.status, "works in 1 unfinished turns" in refused.body["detail"]) == (422, True)
        assert (await site.ask("PUT", "/api/setup/agents/coder", {"prompt": "You rest."})).status == 200
        assert (await site.ask("POST", f"/api/turns/{turn}/cancel", {})).status == 200
        await site.until(f"/api/turns/{turn}/events", "turn.end")
        assert (await site.ask("DELETE", "/api/setup/agents/coder")).status == 204
        assert "agents" not in tomllib.loads(folder.file.read_text())


async def test_agents_that_are_written_at_the_same_time_are_all_there(folder: Folder) -> None:
    """No agent is missing until the next start because another one was written at the same time (P11)."""
    async with set_up(folder) as site:
        names = [f"agent{number}" for number in range(8)]
        made = await asyncio.gather(
            *(site.ask("PUT", f"/api/setup/agents/{name}", {"prompt": "x"}) for name in names)
        )
        assert [one.status for one in made] == [200] * len(names)
        assert {*site.runtime.services.agents} == {"coder", *names}
        gone = await asyncio.gather(*(site.ask("DELETE", f"/api/setup/agents/{name}") for name in names))
        assert [one.status for one in gone] == [204] * len(names)
        assert (
            {*site.runtime.services.agents}
            == {"coder"}
            == {*tomllib.loads(folder.file.read_text())["agents"]}
        )


async def test_an_agent_that_was_written_by_hand_meanwhile_is_not_overwritten(folder: Folder) -> None:
    """The server has not read the edit yet (P11)."""
    async with set_up(folder) as site:
        folder.file.write_text(folder.file.read_text() + '[agents.reader]\nprompt = "by hand"\n')
        refused = await site.ask("PUT", "/api/setup/agents/reader", {"prompt": "x"})
        assert (refused.status, "since the start" in refused.body["detail"]) == (422, True)
        assert 'prompt = "by hand"' in folder.file.read_text()


async def test_no_agent_is_written_with_which_the_server_could_not_start_again(folder: Folder) -> None:
    """P11 x C11: a server of that name has the group in which tools for agents would be."""
    async with set_up(folder):
        text = folder.file.read_text()
    folder.file.write_text(text[: text.index("[agents")] + f'[mcp.agents]\ncommand = "{sys.executable}"\n')
    async with set_up(folder) as site:
        before = folder.file.read_bytes()
        refused = await site.ask("PUT", "/api/setup/agents/reader", {"prompt": "x"})
        assert (refused.status, "Two tool groups have the name 'agents'" in refused.body["detail"]) == (
            422,
            True,
        )
        assert folder.file.read_bytes() == before
        assert not site.runtime.services.agents
