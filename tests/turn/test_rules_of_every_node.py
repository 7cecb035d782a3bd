"""A denial binds every later decision, and of nodes that differ the strictest applies (P13, P14)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, Rule, Runtime, ScriptedModel, allow_once, reject, tool
from dragoman.config.build import build_runtime
from dragoman.config.settings import load
from dragoman.messages.message import CallState
from dragoman.messages.questions import Answer
from dragoman.store.postgres.store import PostgresStore
from dragoman.store.sqlite import SqliteStore
from dragoman.store.store import Store
from dragoman.wire.scripted import calls, says
from tests.patience import PATIENCE
from tests.postgres import Server, schema_of
from tests.runtimes import calls_of, runtime_with, with_tables

MakeStore = Callable[[], Store]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def another_store(request: pytest.FixtureRequest, tmp_path: Path) -> MakeStore:
    """The same store, opened once more: as another process does."""
    if request.param == "postgres":
        server: Server = request.getfixturevalue("postgres")
        return lambda: PostgresStore(server.url(schema_of(tmp_path)))
    path = with_tables(tmp_path / "chat.db")
    return lambda: SqliteStore(path)


class Shell:
    """A tool that counts its runs, and one that stops the turn until the test releases it."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.held = asyncio.Event()
        self.go = asyncio.Event()

        @tool(pattern="command")
        async def shell(command: str) -> str:
            """Run."""
            self.ran.append(command)
            return "ran"

        @tool
        async def hold() -> str:
            """Hold on."""
            self.held.set()
            await self.go.wait()
            return "held"

        self.tools = [shell, hold]


SCRIPT = [calls("hold"), calls("shell", command="ls"), says("done")]


# ── a denial × a running turn ─────────────────────────────────────────────────────────────────────


async def test_a_denial_given_at_another_node_binds_a_running_turn(
    tmp_path: Path, another_store: MakeStore
) -> None:
    """A denial applies to the next decision, and no cached older answer is used (P13)."""
    shell = Shell()
    async with (
        runtime_with(tmp_path, SCRIPT, store=another_store(), tools=shell.tools) as runs,
        runtime_with(tmp_path, [], store=another_store(), adopts=False) as other,
    ):
        turn = await runs.send("go")
        async with asyncio.timeout(PATIENCE):
            await shell.held.wait()
            denied = Rule("shell", "*", "deny")
            await other.commands.grant(denied, Answer("reject", "always"), user=None, owner="local")
            shell.go.set()
            result = await turn.result()
    assert [call.state for call in calls_of(result.messages)] == [CallState.COMPLETED, CallState.REJECTED]
    assert shell.ran == []


async def test_deny_always_in_one_folder_holds_in_every_folder(
    tmp_path: Path, another_store: MakeStore
) -> None:
    """A user's denial for always applies in every other folder too (P13)."""
    shell = Shell()
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    script = [calls("shell", command="ls"), says("no"), calls("shell", command="ls"), says("no")]
    options: dict[str, Any] = {"tools": shell.tools, "allow": (), "workspaces": {"one": one, "two": two}}
    async with runtime_with(tmp_path, script, store=another_store(), **options) as runtime:
        for folder in ("one", "two"):
            turn = await (await runtime.conversation(workspace=folder)).send("go")
            asked = 0
            async with asyncio.timeout(PATIENCE):
                async for question in turn.asked():
                    asked += 1
                    await turn.answer(question, replace(reject(scope="always"), rules=question.rules))
                await turn.result()
            assert asked == (1 if folder == "one" else 0)
    assert shell.ran == []


async def test_an_agent_that_is_denied_something_meanwhile_is_denied_it(tmp_path: Path) -> None:
    """A turn keeps its prompt, and a new denial of its agent applies, also to the tasks it gave (P13 ×
    T14)."""
    shell = Shell()
    seen: list[str] = []

    def script(request: Any) -> Any:
        seen.append(request.system)
        results = [call.tool for message in request.messages for call in message.calls]
        if "Task" in request.messages[0].text:
            return [calls("hold"), calls("shell", command="ls"), says("done")][len(results)]
        return says("over") if results else calls("task", agent="clerk", request="Task")

    boss, clerk = Agent(name="boss", prompt="BOSS"), Agent(name="clerk", prompt="CLERK")
    async with runtime_with(tmp_path, script, tools=shell.tools, agents=[boss, clerk]) as runtime:
        turn = await (await runtime.conversation(agent="boss")).send("go")
        async with asyncio.timeout(PATIENCE):
            await shell.held.wait()
            denied = replace(boss, prompt="NEW", rules=(Rule("shell", "*", "deny"),))
            runtime.use_agents([denied, replace(clerk, prompt="NEW")])
            shell.go.set()
            await turn.result()
    assert shell.ran == []
    assert not [system for system in seen if "NEW" in system]


async def test_a_denial_written_into_the_settings_binds_a_running_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dragoman reads every settings file again. A file that cannot be read keeps its last denials (P13)."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    shell = Shell()
    file = tmp_path / "dragoman.toml"
    written = f'store = "{tmp_path}/chat.db"\ntools = []\nallow = ["*"]\n'
    file.write_text(written, "utf-8")
    script = [calls("hold"), *[calls("shell", command=one) for one in "abc"], says("done")]
    settings = load(file)
    async with build_runtime(settings, model=ScriptedModel(script), tools=shell.tools).runtime as runtime:
        turn = await runtime.send("go")
        async with asyncio.timeout(PATIENCE):
            await shell.held.wait()
            file.write_text(written + 'deny = ["shell:b"]\n[agents.x]\ndeny = ["shell:c"]\n', "utf-8")
            assert [rule.pattern for rule in runtime.services.later_denials(())] == ["b"]
            file.write_text("deny = [", "utf-8")  # half of it
            shell.go.set()
            await turn.result()
    assert shell.ran == ["a", "c"]


# ── nodes that differ ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("settings", [{"deny": ["shell"]}, {"ask": ["shell"]}, {"mode": "ask"}], ids=str)
async def test_the_rules_of_the_node_that_accepted_a_send_bind_who_goes_on_with_it(
    tmp_path: Path, another_store: MakeStore, settings: dict[str, Any]
) -> None:
    """The node that takes over would run the call without approval, but the denial or question stays
    (P14)."""
    shell = Shell()
    script = [calls("hold"), calls("shell", command="ls"), says("done")]
    strict = {"allow": ["*"], "ask": ["hold"], **settings}
    if "ask" in settings:
        strict["ask"] = ["hold", "shell"]
    async with runtime_with(tmp_path, script, store=another_store(), tools=shell.tools, **strict) as first:
        turn = await first.send("go")
        assert await turn.reached("waiting")
        question = turn.question
    shell.go.set()
    async with runtime_with(tmp_path, script[1:], store=another_store(), tools=shell.tools) as second:
        again = second.turn(turn.id)
        await second.answer(question, allow_once())
        async with asyncio.timeout(PATIENCE):
            if "deny" in settings:
                result = await again.result()
                assert calls_of(result.messages)[1].state is CallState.REJECTED
            else:
                assert (await anext(aiter(again.asked()))).tool == "shell"
    assert shell.ran == []


async def test_a_worker_keeps_to_the_denials_of_the_web_node(tmp_path: Path, postgres: Server) -> None:
    """Only the web node has `deny = ["shell"]`, unlike the worker and the process that answers (P14)."""
    shell = Shell()
    shell.go.set()
    url = postgres.url(schema_of(tmp_path))

    def node(role: str, **options: Any) -> Runtime:
        return runtime_with(
            tmp_path, SCRIPT, store=PostgresStore(url), tools=shell.tools, role=role, **options
        )

    async with node("web", deny=["shell"], ask=["hold"]) as web, node("worker"), node("web") as third:
        turn = await web.send("go")
        async with asyncio.timeout(PATIENCE):
            question = await anext(aiter(turn.asked()))
            assert question.tool == "hold"
            await third.answer(question.id, allow_once())
            result = await turn.result()
        states = {call.tool: call.state for call in calls_of(result.messages)}
    assert states["hold"] is CallState.COMPLETED
    assert states["shell"] is CallState.REJECTED
    assert shell.ran == []


async def test_a_task_keeps_to_the_node_that_accepted_its_giver(tmp_path: Path) -> None:
    """The giver came in at a node that denies shell, and the node that gives the task allows it (P13 ×
    P14)."""
    shell = Shell()
    shell.go.set()

    def script(request: Any) -> Any:
        made = [call.tool for message in request.messages for call in message.calls]
        if request.messages[0].text == "Task":
            return says("over") if made else calls("shell", command="ls")
        return [calls("hold"), calls("task", agent="clerk", request="Task"), says("done")][len(made)]

    options: dict[str, Any] = {"tools": shell.tools, "agents": [Agent(name="clerk")]}
    async with runtime_with(tmp_path, script, deny=["shell"], ask=["hold"], **options) as strict:
        turn = await strict.send("go")
        assert await turn.reached("waiting")
        question = turn.question
    async with runtime_with(tmp_path, script, **options) as loose, asyncio.timeout(PATIENCE):
        await loose.answer(question, allow_once())
        result = await loose.turn(turn.id).result()
        assert [call.state for call in calls_of(result.messages)] == [CallState.COMPLETED] * 2
    assert shell.ran == []
