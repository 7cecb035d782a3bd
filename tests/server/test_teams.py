"""V2: agents, prompts, skills and MCP servers that are given to teams exist only for their members."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, Runtime, ScriptedModel, ToolContext, tool
from dragoman.errors import ConfigError
from dragoman.plugins.limits import Team
from dragoman.server.auth import key_hash
from dragoman.tools.mcp.source import McpSource
from dragoman.tools.skills import Skills
from dragoman.turn.services import SharedPrompt
from dragoman.wire.scripted import Line, calls, says
from tests.patience import PATIENCE
from tests.runtimes import model_of
from tests.server.site import Site, served
from tests.tools.mcp.rig import raw

TEAM = ("support",)
SKILL = "---\nname: {name}\ndescription: What {name} is for.\n{more}---\n\nThe text of {name}.\n"
AGENTS = [
    Agent(name="desk", prompt="At the desk.", handoffs=("insider", "clerk")),
    Agent(name="clerk", prompt="A clerk."),
    Agent(name="insider", prompt="Knows the prices.", teams=TEAM, deny=["insider-only"]),
]
HIDDEN = ("insider", "refund", "crm", "price-list")  # an agent, a prompt, a server and a skill of the team


def skills_in(folder: Path) -> Skills:
    for name, front in (("manners", ""), ("price-list", "teams: [support]\n")):
        file = folder / "skills" / name / "SKILL.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(SKILL.format(name=name, more=front))
    return Skills([folder / "skills"])


@asynccontextmanager
async def office(
    folder: Path, script: Sequence[Line] = (), **more: Any
) -> AsyncIterator[tuple[Site, Site, Site]]:
    """→ the admin, ada of the team, and bob."""
    options: dict[str, Any] = {
        "agents": AGENTS,
        "teams": {"support": Team(members=frozenset({"ada"}))},
        "prompts": {"hello": SharedPrompt("Say hello."), "refund": SharedPrompt("Refund it.", TEAM)},
        "tools": [
            skills_in(folder),
            McpSource("crm", replace(raw(), teams=TEAM), patience=PATIENCE),
        ],
    }
    async with served(folder, script, **options | more) as site, asyncio.timeout(PATIENCE):
        for name in ("ada", "bob"):
            await site.runtime.store.add_person(name, key_hash(f"key of {name}"), 1.0)
        await site.runtime.services.toolbox.ready()
        yield site, replace(site, key="key of ada"), replace(site, key="key of bob")


LISTS = (
    "/api/me",
    "/api/agents",
    "/api/tools",
    "/api/prompts",
    "/api/rules",
    "/v1/models",
    "/api/server-prompts",
)


async def test_usage_is_for_who_caused_it_and_for_the_admin(tmp_path: Path) -> None:
    """V2: of a team, that of its members."""
    async with office(tmp_path, [says("x")] * 3) as people:
        admin, _, bob = people
        for one in people:
            await one.until(f"/api/turns/{await one.say('hi')}/events", "turn.end")

        async def whose(who: Site, query: str = "") -> list[str]:
            rows = (await who.get(f"/api/usage?by=person{query}"))["rows"]
            return sorted(row["person"] for row in rows)

        assert [await whose(one) for one in people] == [["local"], ["ada"], ["bob"]]
        assert await whose(admin, "&everybody=true") == ["ada", "bob", "local"]
        assert await whose(admin, "&team=support") == ["ada"]
        assert await whose(admin, f"&everybody=true&since={time.time() + 60}") == []
        assert (await admin.get("/api/usage"))["rows"] == []
        for query in ("everybody=true", "team=support"):
            assert (await bob.ask("GET", f"/api/usage?{query}")).status == 403


async def test_lists_have_what_is_for_the_user(tmp_path: Path) -> None:
    """V2: all of them, for a member, the admin, and another user."""
    async with office(tmp_path) as (admin, ada, bob):
        seen = {
            person.key: "\n".join([json.dumps(await person.get(path)) for path in LISTS])
            for person in (admin, ada, bob)
        }
        names = {key: [name for name in (*HIDDEN, "hello", "manners") if name in seen[key]] for key in seen}
        assert [one["shared"] for one in (await bob.get("/api/prompts"))["items"]] == [True]
    assert names["key of ada"] == names["key of local"] == [*HIDDEN, "hello", "manners"]
    assert names["key of bob"] == ["hello", "manners"]


async def test_a_name_that_is_for_others_is_no_name(tmp_path: Path) -> None:
    """V1, V2: refused like one that nothing has, by every route that takes one."""
    async with office(tmp_path, [says("ok")] * 20) as (_, ada, bob):
        talk = await bob.conversation()
        turns = f"/api/conversations/{talk}/turns"
        hi = [{"role": "user", "content": "hi"}]
        run = {"threadId": "t", "runId": "r", "messages": [{"id": "m", **hi[0]}], "tools": [], "context": []}
        requests: list[tuple[str, str, Any]] = [
            ("POST", turns, {"text": "hi", "agent": "{agent}"}),
            ("POST", turns, {"text": "hi", "tools": {"{server}": False}}),
            ("POST", "/api/conversations", {"settings": {"agent": "{agent}"}}),
            ("PATCH", f"/api/conversations/{talk}", {"settings": {"agent": "{agent}"}}),
            ("PATCH", f"/api/conversations/{talk}", {"settings": {"tools": {"{server}": True}}}),
            ("POST", "/v1/chat/completions", {"model": "{agent}", "messages": hi}),
            ("POST", "/v1/responses", {"model": "{agent}", "input": "hi"}),
            ("GET", "/v1/models/{agent}", None),
            ("POST", "/api/ag-ui/{agent}", {**run, "state": None, "forwardedProps": None}),
            ("POST", "/api/server-prompts/{server}/any", {}),
        ]
        for method, path, body in requests:
            told = []
            for agent, server in (("insider", "crm"), ("nothing", "xyz")):
                text = json.dumps(body).replace("{agent}", agent).replace("{server}", server)
                answer = await bob.ask(
                    method, path.replace("{agent}", agent).replace("{server}", server), json.loads(text)
                )
                plain = json.dumps(answer.body) if isinstance(answer.body, dict) else answer.body.decode()
                told.append((answer.status, plain.replace(agent, "?").replace(server, "?")))
            assert told[0] == told[1], (path, told)
            assert told[0][0] >= 400 or "RUN_ERROR" in told[0][1], (path, told)
        for body in ({"text": "hi", "agent": "insider"}, {"text": "hi", "tools": {"crm": False}}):
            id = await ada.conversation()
            assert (await ada.ask("POST", f"/api/conversations/{id}/turns", body)).status == 202


async def test_the_rights_of_the_sender_count(tmp_path: Path) -> None:
    """In a shared conversation, objects of a team are available to messages that its members send (V2)."""
    script = [says("one"), says("plain"), says("two"), says("three")]
    async with office(tmp_path, script) as (_, ada, bob):
        talk = (await ada.post("/api/conversations", {"settings": {"agent": "insider"}}))["id"]
        await ada.ask("PUT", f"/api/conversations/{talk}/members/bob", {"role": "takes_part"})
        turn = await ada.say("hi", talk)
        await ada.until(f"/api/turns/{turn}/events", "turn.end")
        turn = await bob.say("hi", talk)  # an agent that is not for bob does not answer him
        await bob.until(f"/api/turns/{turn}/events", "turn.end")
        tools = await bob.get(f"/api/tools?conversation={talk}")
        assert "crm" not in json.dumps(tools)
        begun = await bob.post(f"/api/conversations/{talk}/turns", {"text": "hi", "agent": "clerk"})
        await bob.until(f"/api/turns/{begun['turn']}/events", "turn.end")
        first, plain, second = model_of(ada.runtime).requests
    assert ["price-list" in one.system for one in (first, plain, second)] == [True, False, False]
    assert ["Knows the prices" in one.system for one in (first, plain)] == [True, False]
    assert "A clerk." in second.system


@pytest.mark.parametrize(("user", "offered"), [("ada", ["insider", "clerk"]), ("bob", ["clerk"])])
async def test_agents_give_work_to_agents_that_are_for_the_sender(
    tmp_path: Path, user: str, offered: list[str]
) -> None:
    """This covers handovers and delegated tasks (V2 × agents)."""
    script = [
        calls("hand_off", agent="insider"),
        calls("task", agent="insider", request="price?"),
        says("a"),
        says("b"),
    ]
    async with office(tmp_path, script, allow=["*"]) as (site, *_):
        person = replace(site, key=f"key of {user}")
        talk = (await person.post("/api/conversations", {"settings": {"agent": "desk"}}))["id"]
        turn = await person.say("hi", talk)
        await person.until(f"/api/turns/{turn}/events", "turn.end")
        requests = model_of(site.runtime).requests
        specs = {spec.name: json.dumps(spec.parameters) for spec in requests[0].tools}
        states = [
            part["state"]
            for message in (await person.get(f"/api/conversations/{talk}/tree"))["messages"]
            for part in message["parts"]
            if part["type"] == "call"
        ]
    assert [name for name in ("insider", "clerk") if name in specs["hand_off"]] == offered
    assert ("insider" in specs["task"]) is (user == "ada")
    assert states == (["completed"] * 2 if user == "ada" else ["failed"] * 2)


async def test_teams_of_a_provider_count(tmp_path: Path) -> None:
    """V4: a user whose group has the name of a team is in it, from the sign-in on."""
    async with office(tmp_path) as (*_, bob):
        assert "insider" not in json.dumps(await bob.get("/api/agents"))
        await bob.runtime.store.set_teams("bob", {"support"})
        assert "insider" in json.dumps(await bob.get("/api/agents"))
        await bob.runtime.store.set_teams("bob", set())
        assert "insider" not in json.dumps(await bob.get("/api/agents"))


def test_teams_that_are_unknown_are_an_error() -> None:
    """V2: a misspelled team would hide it from everybody."""
    with pytest.raises(ConfigError, match="Unknown teams: suport"):
        Runtime("memory", model=ScriptedModel([]), agents=[Agent(name="a", teams=("suport",))])


async def test_a_skill_for_a_team_that_is_nowhere_hinders_nobody(tmp_path: Path, caplog: Any) -> None:
    """Such a skill can come with a folder from elsewhere, and only the admin sees it (V2)."""
    nothing: dict[str, Any] = {"teams": {}, "agents": [], "prompts": {}}
    async with office(tmp_path, tools=[skills_in(tmp_path)], **nothing) as (admin, _, bob):
        seen = [json.dumps(await person.get("/api/tools")) for person in (admin, bob)]
    assert ["price-list" in one for one in seen] == [True, False]
    assert "Unknown teams: support" in caplog.text


async def test_what_comes_for_a_team_while_a_turn_runs_is_not_for_others(tmp_path: Path) -> None:
    """This covers the first skill and the first agent that a team is given (V2 × T14)."""
    folder = tmp_path / "skills"
    folder.mkdir()

    @tool
    def arrive(context: ToolContext) -> str:
        """Let them come."""
        file = folder / "price-list" / "SKILL.md"
        file.parent.mkdir()
        file.write_text(SKILL.format(name="price-list", more="teams: [support]\n"))
        site.runtime.use_agents([AGENTS[1], AGENTS[2]])
        return "there"

    nothing: dict[str, Any] = {"agents": [AGENTS[1]], "prompts": {}, "allow": ["*"]}
    script = [calls("arrive"), says("done")]
    async with office(tmp_path, script, tools=[Skills([folder]), arrive], **nothing) as (site, _, bob):
        turn = await bob.say("go")
        await bob.until(f"/api/turns/{turn}/events", "turn.end")
        requests = model_of(site.runtime).requests
        seen = [one.system + json.dumps([spec.parameters for spec in one.tools]) for one in requests]
    assert [name in seen[1] for name in ("price-list", "insider", "clerk")] == [False, False, True]


async def test_nobody_finds_out_about_tools_of_others(tmp_path: Path) -> None:
    """V1, V2: by what filled a context, by a call with other arguments, or by a switch."""
    made = [[calls(name, text="a"), says("ok"), says("again")] for name in ("crm_echo", "xyz_echo")]
    async with office(tmp_path, [says("ok"), *made[0], *made[1], says("ok")]) as (_, ada, bob):
        turn = await bob.say("hi")
        await bob.until(f"/api/turns/{turn}/events", "turn.end")
        assert "crm" not in json.dumps(await bob.get(f"/api/turns/{turn}/context"))

        told = []
        for name in ("crm_echo", "xyz_echo"):
            talk = await bob.conversation()
            turn = await bob.say(name, talk)
            await bob.until(f"/api/turns/{turn}/events", "turn.end")
            tree = (await bob.get(f"/api/conversations/{talk}/tree"))["messages"]
            (id,) = [part["id"] for one in tree for part in one["parts"] if part["type"] == "call"]
            answer = await bob.ask("POST", f"/api/calls/{id}/rerun", {"arguments": {"zzz": 1}})
            told.append(answer.status)
        assert told[0] == told[1]

        talk = await ada.conversation()
        await ada.ask("PATCH", f"/api/conversations/{talk}", {"settings": {"tools": {"crm": False}}})
        await ada.ask("PUT", f"/api/conversations/{talk}/members/bob", {"role": "takes_part"})
        turn = await ada.say("hi", talk)
        await ada.until(f"/api/turns/{turn}/events", "turn.end")
        (leaf,) = [one["id"] for one in (await ada.get(f"/api/conversations/{talk}/tree"))["messages"][-1:]]
        fork = (await bob.post(f"/api/conversations/{talk}/fork", {"message": leaf}))["id"]
        switches = {"settings": {"tools": {"crm": False, "skills": False}}}
        not_his = {"settings": {"tools": {"crm": True}}}
        assert (await bob.ask("PATCH", f"/api/conversations/{fork}", switches)).status == 200
        assert (await bob.ask("PATCH", f"/api/conversations/{fork}", not_his)).status == 422
