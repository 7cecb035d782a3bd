"""Our tools over the Model Context Protocol, to a stock client: calls, questions, resources, prompts."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from contextlib import suppress
from pathlib import Path

import httpx2
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from dragoman import Runtime, ScriptedModel
from dragoman.conversation.sharing import Member
from dragoman.store.store import Store
from dragoman.wire.scripted import says
from tests.cli.program import clean_environment, program
from tests.fork_server import python
from tests.loopback import loopback
from tests.patience import PATIENCE, eventually
from tests.server.mcp.client import (
    SERVE,
    PlayedPerson,
    http_server,
    names,
    over_http,
    over_stdio,
    settings,
    text_of,
)

pytestmark = pytest.mark.slow
MODES = ["legacy", "2026-07-28"]


async def stored(folder: Path) -> tuple[Store, str]:
    """The store, open, and the only conversation in it."""
    runtime = Runtime(folder / "home" / "chat.db", model=ScriptedModel([]), adopts=False)
    async with runtime:
        (found,) = await runtime.conversations()
        messages = await (await runtime.conversation(found.id)).messages()
        return runtime.store, "\n".join(f"{call.tool} {call.state}" for one in messages for call in one.calls)


@pytest.mark.parametrize("mode", MODES)
async def test_a_tool_is_called_and_the_call_is_stored(tmp_path: Path, mode: str) -> None:
    """In both versions of the protocol, an allowed call runs and is stored as a turn like any other
    (F1, F2)."""
    settings(tmp_path)
    (tmp_path / "a.txt").write_text("hello\n")
    async with over_stdio(tmp_path, "--allow", "files.read", mode=mode) as client:
        offered = names((await client.list_tools()).tools)
        assert {"read_file", "write_file", "shell", "calculator"} <= {*offered}
        assert "browser_js_eval" not in offered
        result = await client.call_tool("read_file", {"path": "a.txt"})
        again = await client.call_tool("read_file", {"path": "b.txt"})
    assert "hello" in text_of(result)
    assert not result.is_error
    assert again.is_error
    assert "b.txt is not in the workspace" in text_of(again)
    _, calls = await stored(tmp_path)
    assert calls == "read_file completed\nread_file failed"


@pytest.mark.parametrize("mode", MODES)
async def test_what_no_rule_allows_is_asked_about(tmp_path: Path, mode: str) -> None:
    """A client that can ask shows the diff of the pending write, and its answer covers this client
    once (P3)."""
    settings(tmp_path)
    person = PlayedPerson("Allow in this conversation")
    async with over_stdio(tmp_path, mode=mode, elicitation_callback=person) as client:
        result = await client.call_tool("write_file", {"path": "a.txt", "text": "one\n"})
        assert not result.is_error, text_of(result)
        (tmp_path / "a.txt").unlink()
        await client.call_tool("write_file", {"path": "a.txt", "text": "two\n"})
    assert len(person.asked) == 1
    assert "+one" in person.asked[0].message
    assert "no rule allows it" in person.asked[0].message
    assert (tmp_path / "a.txt").read_text() == "two\n"


async def test_who_is_asked_by_a_tool_may_answer_in_other_words(tmp_path: Path) -> None:
    """A form cannot offer choices with free text, so the choices are listed in the description of the field
    (F3)."""
    settings(tmp_path, 'allow = ["*"]')
    person = PlayedPerson("Neither")
    async with over_stdio(tmp_path, elicitation_callback=person) as client:
        result = await client.call_tool("ask_person", {"question": "Which?", "choices": ["Ada", "Bob"]})
    (form,) = person.asked
    assert "Ada; Bob" in form.requested_schema["properties"]["answer"]["description"]
    assert "Neither" in text_of(result)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("answer", ["Reject", None])
async def test_a_no_is_a_no(tmp_path: Path, mode: str, answer: str | None) -> None:
    """P3: also where the person closes the question."""
    settings(tmp_path)
    person = PlayedPerson(answer)
    async with over_stdio(tmp_path, mode=mode, elicitation_callback=person) as client:
        result = await client.call_tool("write_file", {"path": "a.txt", "text": "one\n"})
    assert result.is_error
    assert not (tmp_path / "a.txt").exists()


@pytest.mark.parametrize(
    "answer",
    [
        {"result": {"bogus": 1}},
        {"result": {"action": "perhaps"}},
        {"result": {"action": "accept", "content": {"answer": ["Allow"]}}},
        {"error": {"code": -1, "message": "no window"}},
    ],
)
async def test_an_answer_that_is_no_filled_form_is_a_no(tmp_path: Path, answer: dict[str, object]) -> None:
    """P3, F2: line by line, since no stock client sends one."""
    settings(tmp_path)
    process = await asyncio.create_subprocess_exec(
        *python("-m", "dragoman"),
        *SERVE,
        cwd=tmp_path,
        env=clean_environment(tmp_path),
        stdin=-1,
        stdout=-1,
        stderr=-1,
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def send(**message: object) -> None:
        assert process.stdin is not None
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    able = {"capabilities": {"elicitation": {}}, "clientInfo": {"name": "raw", "version": "1"}}
    send(id=1, method="initialize", params={"protocolVersion": "2025-06-18", **able})
    send(method="notifications/initialized")
    arguments = {"path": "a.txt", "text": "one\n"}
    send(id=2, method="tools/call", params={"name": "write_file", "arguments": arguments})
    result = None
    async with asyncio.timeout(PATIENCE):
        while result is None and (line := await process.stdout.readline()):
            message = json.loads(line)
            if message.get("method") == "elicitation/create":
                send(id=message["id"], **answer)
            elif message.get("id") == 2:
                result = message
        process.stdin.close()
        _, errors = await process.communicate()
    assert result is not None
    assert result["result"]["isError"] is True
    assert "TaskGroup" not in json.dumps(result) + errors.decode()
    assert not (tmp_path / "a.txt").exists()


@pytest.mark.parametrize("mode", MODES)
async def test_where_nobody_can_be_asked_the_rule_is_named_that_would_allow_it(
    tmp_path: Path, mode: str
) -> None:
    """A foreign protocol cannot bypass a permission (P, F3)."""
    settings(tmp_path, 'allow = ["files.write"]', 'deny = ["files.write:secret*"]')
    async with over_stdio(tmp_path, mode=mode) as client:
        result = await client.call_tool("shell", {"command": "touch b.txt"})
        denied = await client.call_tool("write_file", {"path": "secret.txt", "text": ""})
        protected = await client.call_tool("write_file", {"path": ".git/config", "text": ""})
    assert result.is_error
    assert 'allow = ["shell:touch b.txt"]' in text_of(result)
    assert denied.is_error
    assert "cannot ask a person. It is asked because what it would change is protected" in text_of(protected)
    assert not (tmp_path / "b.txt").exists()
    assert not (tmp_path / "secret.txt").exists()


async def test_a_question_outlives_the_server(tmp_path: Path) -> None:
    """A call that the client repeats with the answer resumes in a new process without another approval
    request. A client that lost the result, or whose request was answered elsewhere, receives the result
    (S3, P6)."""
    settings(tmp_path)
    arguments = {"path": "a.txt", "text": "one\n"}
    able = PlayedPerson("Allow once")
    async with over_stdio(tmp_path, mode="2026-07-28", elicitation_callback=able) as client:
        parked = await client.session.call_tool("write_file", arguments, allow_input_required=True)
        assert isinstance(parked, types.InputRequiredResult)
    (question,) = parked.input_requests or {}
    answer = types.ElicitResult(action="accept", content={"answer": "Allow once"})
    async with over_stdio(tmp_path, mode="2026-07-28", elicitation_callback=able) as client:
        for wrong in ({"path": "b.txt", "text": "one\n"}, {"path": "a.txt", "text": "two\n"}):
            with pytest.raises(MCPError, match="No call has this state"):
                await client.session.call_tool(
                    "write_file",
                    wrong,
                    input_responses={question: answer},
                    request_state=parked.request_state,
                )
        result = await client.session.call_tool(
            "write_file", arguments, input_responses={question: answer}, request_state=parked.request_state
        )
        again = await client.session.call_tool(
            "write_file", arguments, input_responses={question: answer}, request_state=parked.request_state
        )
    assert not result.is_error
    assert again.content == result.content
    assert (tmp_path / "a.txt").read_text() == "one\n"


def _number_in(path: Path) -> int | None:
    return int(path.read_text()) if path.exists() and path.read_text().endswith("\n") else None


async def test_several_calls_run_at_the_same_time_and_one_can_be_stopped(tmp_path: Path) -> None:
    """C3, T6"""
    settings(tmp_path)
    async with over_stdio(tmp_path, "--allow", "shell", "--allow", "basics.*", mode="legacy") as client:
        sleeping = asyncio.create_task(
            client.call_tool("shell", {"command": "sleep 100 & echo $! > begun; wait"})
        )
        await eventually(lambda: _number_in(tmp_path / "begun") is not None)
        process = f"/proc/{_number_in(tmp_path / 'begun')}"
        assert os.path.exists(process)  # noqa: ASYNC240, PTH110 - /proc is no disk
        assert text_of(await client.call_tool("calculator", {"expression": "6 * 7"})).strip() == "42"
        sleeping.cancel()
        await asyncio.gather(sleeping, return_exceptions=True)
        await eventually(lambda: not Path(process).exists())


async def test_a_client_that_dies_leaves_no_error_behind(tmp_path: Path) -> None:
    """When a client dies, the program ends as it does after an orderly close (F2)."""
    settings(tmp_path)
    reading, writing = os.pipe()
    os.close(reading)  # no client reads the answers
    process = await asyncio.create_subprocess_exec(
        *python("-m", "dragoman", *SERVE),
        cwd=tmp_path,
        env=clean_environment(tmp_path),
        stdin=asyncio.subprocess.PIPE,
        stdout=writing,
        stderr=asyncio.subprocess.PIPE,
    )
    os.close(writing)
    params = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    }
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    _, errors = await process.communicate(json.dumps(hello).encode() + b"\n")
    assert (process.returncode, errors.decode()) == (0, "")


async def test_conversations_are_resources_and_commands_are_prompts(tmp_path: Path) -> None:
    """F1, F3"""
    settings(tmp_path)
    commands = tmp_path / "home" / "config" / "dragoman" / "commands"
    commands.mkdir(parents=True)
    (commands / "review.md").write_text("# Review it\n\nReview $ARGUMENTS with care.")
    editor = types.Implementation(name="editor " * 9, version="1")
    async with over_stdio(tmp_path, client_info=editor) as client:
        await client.call_tool("calculator", {"expression": "1 + 1"})
        (resource,) = (await client.list_resources()).resources
        assert resource.title == f"MCP: {editor.name}"[:60]
        assert (await client.list_resources(cursor="9e9 conv")).resources == [resource]
        assert (await client.list_resources(cursor="0 conv")).resources == []
        with pytest.raises(MCPError, match="Unknown page 'x'"):
            await client.list_resources(cursor="x")
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "dragoman://conversations/{id}"
        (read,) = (await client.read_resource(str(resource.uri))).contents
        assert "**calculator**" in read.text  # type: ignore[union-attr]
        with pytest.raises(MCPError, match="Unknown resource") as refused:
            await client.read_resource("dragoman://nowhere")
        assert (refused.value.error.code, refused.value.error.data) == (-32602, {"uri": "dragoman://nowhere"})
        (prompt,) = (await client.list_prompts()).prompts
        assert prompt.description == "Review it"
        filled = await client.get_prompt("review", {"arguments": "main.py"})
        assert "Review main.py with care." in filled.messages[0].content.text  # type: ignore[union-attr]
        with pytest.raises(MCPError, match="Unknown prompt"):
            await client.get_prompt("nothing")
        with pytest.raises(MCPError, match="Unknown tool"):
            await client.call_tool("nothing", {})


@pytest.mark.parametrize("mode", [pytest.param(MODES[0], marks=pytest.mark.long), MODES[1]])
async def test_the_same_over_http_for_who_has_the_key(tmp_path: Path, mode: str) -> None:
    """U1, U2: a key, and our own name, or nothing."""
    settings(tmp_path)
    person = PlayedPerson("Allow once")
    async with http_server(tmp_path) as (url, key):
        async with over_http(url, key, mode=mode, elicitation_callback=person) as client:
            result = await client.call_tool("write_file", {"path": "a.txt", "text": "one\n"})
            assert not result.is_error, text_of(result)
        async with httpx2.AsyncClient() as http:
            without = await http.post(url, json={})
            foreign = await http.post(
                url, json={}, headers={"authorization": f"Bearer {key}", "host": "evil.example"}
            )
    assert without.status_code == 401
    assert foreign.status_code in (403, 421)
    assert (tmp_path / "a.txt").read_text() == "one\n"


async def test_somebody_elses_conversations_are_not_there(tmp_path: Path) -> None:
    """U2: each key sees and calls as its own person."""
    settings(tmp_path)
    added = await program("people", "add", "eve", folder=tmp_path)
    assert added.status == 0, added.err
    theirs = re.findall(r"\S{20,}", added.out)[-1]
    async with http_server(tmp_path) as (url, key):
        async with over_http(url, key) as mine:
            await mine.call_tool("calculator", {"expression": "1 + 1"})
            (resource,) = (await mine.list_resources()).resources
        async with over_http(url, theirs) as eve:
            assert (await eve.list_resources()).resources == []
            with pytest.raises(MCPError, match="Unknown resource"):
                await eve.read_resource(str(resource.uri))
            await eve.call_tool("calculator", {"expression": "2 + 2"})
            (own,) = (await eve.list_resources()).resources
            shared = str(resource.uri)
            async with Runtime(
                tmp_path / "home" / "chat.db", model=ScriptedModel([]), adopts=False
            ) as runtime:
                await runtime.store.set_member(shared.rpartition("/")[2], Member("eve", "reads"))
            assert {str(one.uri) for one in (await eve.list_resources()).resources} == {str(own.uri), shared}
    assert str(own.uri) != shared


async def test_a_client_whose_conversation_is_deleted_costs_no_other_client_its_answers(
    tmp_path: Path,
) -> None:
    """P3: "in this conversation" means this client."""
    settings(tmp_path)
    person = PlayedPerson("Allow in this conversation")
    async with (
        http_server(tmp_path) as (url, key),
        over_http(url, key, mode="legacy", elicitation_callback=person) as one,
        over_http(url, key, mode="legacy") as other,
    ):
        await one.call_tool("shell", {"command": "true"})
        (kept,) = (await one.list_resources()).resources
        await other.call_tool("calculator", {"expression": "1 + 1"})
        (gone,) = {each.uri for each in (await one.list_resources()).resources} - {kept.uri}
        database = tmp_path / "home" / "chat.db"
        async with Runtime(database, model=ScriptedModel([]), adopts=False) as runtime:
            await runtime.delete(str(gone).rpartition("/")[2])
        assert text_of(await other.call_tool("calculator", {"expression": "2 + 2"})) == "4"
        again = await one.call_tool("shell", {"command": "true"})
    assert not again.is_error, text_of(again)
    assert len(person.asked) == 1


async def test_agents_are_tools_that_are_asked_about(tmp_path: Path) -> None:
    """A call of an agent is a task in a separate conversation (F1, P3)."""
    person = PlayedPerson("Allow once")
    async with loopback(says("I have looked.")) as model:
        settings(tmp_path, "[agents.helper]", 'description = "It helps."', base_url=model.url)
        async with over_stdio(tmp_path, elicitation_callback=person) as client:
            offered = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert "task" not in offered
            assert "It helps." in str(offered["ask_helper"].description)
            result = await client.call_tool("ask_helper", {"request": "Look around."})
    assert text_of(result) == "I have looked."
    assert len(person.asked) == 1
    assert model.messages()[-1]["content"] == "Look around."


async def test_what_is_for_a_team_is_offered_to_its_members_alone(tmp_path: Path) -> None:
    """V2: agents as tools, and skills as prompts."""
    skill = tmp_path / "skills" / "prices" / "SKILL.md"
    lines = ["[teams.support]", 'members = ["ada"]', "[agents.insider]", 'teams = ["support"]']
    settings(tmp_path, *lines, "[agents.helper]", 'prompt = "Help."')
    skill.parent.mkdir(parents=True)
    skill.write_text("---\ndescription: What it costs.\nteams: [support]\n---\n\nMuch.\n")
    keys = {}
    for name in ("ada", "eve"):
        added = await program("people", "add", name, folder=tmp_path)
        keys[name] = re.findall(r"\S{20,}", added.out)[-1]
    seen = {}
    async with http_server(tmp_path) as (url, _):
        for name, key in keys.items():
            async with over_http(url, key) as client:
                tools = {tool.name for tool in (await client.list_tools()).tools}
                prompts = {prompt.name for prompt in (await client.list_prompts()).prompts}
                seen[name] = sorted({"ask_insider", "ask_helper", "prices"} & (tools | prompts))
                if name == "eve":
                    with pytest.raises(MCPError, match="Unknown tool 'ask_insider'"):
                        await client.call_tool("ask_insider", {"request": "How much?"})
                    with pytest.raises(MCPError, match="Unknown prompt 'prices'"):
                        await client.get_prompt("prices")
    assert seen == {"ada": ["ask_helper", "ask_insider", "prices"], "eve": ["ask_helper"]}


async def test_agents_that_a_rule_denies_are_not_there(tmp_path: Path) -> None:
    """A denied agent is not offered. If tasks are denied, no agent is offered, and if writes are denied, no
    tool that writes files is offered (P2)."""
    settings(tmp_path, "[agents.helper]", 'prompt = "Help."', "[agents.idler]", 'prompt = "Wait."')
    async with over_stdio(tmp_path, "--deny", "task:idler") as client:
        offered = {tool.name for tool in (await client.list_tools()).tools}
        assert {"ask_helper", "write_file"} <= offered
        assert "ask_idler" not in offered
        with pytest.raises(MCPError, match="Unknown tool 'ask_idler'"):
            await client.call_tool("ask_idler", {"request": "Wait."})
    async with over_stdio(tmp_path, "--deny", "*") as client:
        assert (await client.list_tools()).tools == []
        with pytest.raises(MCPError, match="Unknown tool 'ask_helper'"):
            await client.call_tool("ask_helper", {"request": "Help."})


async def test_an_always_is_remembered_and_holds_for_the_next_client(tmp_path: Path) -> None:
    """The rule is listed like every other rule (P3)."""
    settings(tmp_path)
    person = PlayedPerson("Allow always")
    async with over_stdio(tmp_path, elicitation_callback=person) as client:
        await client.call_tool("shell", {"command": "true"})
    async with over_stdio(tmp_path) as client:
        again = await client.call_tool("shell", {"command": "true"})
        other = await client.call_tool("shell", {"command": "false"})
    assert not again.is_error
    assert other.is_error
    assert 'allow = ["shell:false"]' in text_of(other)


async def test_what_a_tool_reports_is_progress(tmp_path: Path) -> None:
    """F2, C6"""
    settings(tmp_path)
    reported: list[str | None] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        reported.append(message)

    async with over_stdio(tmp_path, "--allow", "shell", mode="legacy") as client:
        command = {"command": "echo one; sleep 0.2; echo two"}
        await client.call_tool("shell", command, progress_callback=report)
        await eventually(lambda: "two" in "".join(one or "" for one in reported))


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    },
}


async def test_a_session_belongs_to_the_user_who_opened_it(tmp_path: Path) -> None:
    """U2: for another user with its ID it does not exist, and they cannot end it."""
    settings(tmp_path)
    added = await program("people", "add", "eve", folder=tmp_path)
    theirs = re.findall(r"\S{20,}", added.out)[-1]
    accept = {"accept": "application/json, text/event-stream"}
    async with http_server(tmp_path) as (url, key), httpx2.AsyncClient(headers=accept) as http:
        mine, eve = {"authorization": f"Bearer {key}"}, {"authorization": f"Bearer {theirs}"}
        opened = await http.post(url, json=INITIALIZE, headers=mine)
        session = {"mcp-session-id": opened.headers["mcp-session-id"]}
        ask = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        assert (await http.post(url, json=ask, headers={**eve, **session})).status_code == 404
        assert (await http.delete(url, headers={**eve, **session})).status_code == 404
        assert (await http.post(url, json=ask, headers={**mine, **session})).status_code == 200
        assert (await http.delete(url, headers={**mine, **session})).status_code == 200
        assert (await http.post(url, json=ask, headers={**mine, **session})).status_code == 404


@pytest.mark.skipif(sys.platform == "win32", reason="it has no ulimit")
async def test_half_heads_of_strangers_lock_nobody_out(tmp_path: Path) -> None:
    """U1: 300 of them did, under `ulimit -n 256`, as long as they liked. The limits are those of `serve`."""
    settings(tmp_path)
    accept = {"accept": "application/json, text/event-stream"}
    async with http_server(tmp_path, files=256) as (url, key):
        port = int(url.rpartition(":")[2].partition("/")[0])
        strangers = []
        for _ in range(300):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /mcp HTTP/1.1\r\nHost: 127")
            strangers.append((reader, writer))
        headers = {"authorization": f"Bearer {key}", **accept}
        async with httpx2.AsyncClient(headers=headers, timeout=8) as http:
            assert (await http.post(url, json=INITIALIZE)).status_code == 200
            http.headers["content-type"] = "application/json"
            large = await http.post(url, content=b" " * 5_000_000)
            assert large.status_code == 413
        for reader, writer in strangers:
            with suppress(ConnectionError):
                # the server disconnects, or has done so after ten seconds
                assert await asyncio.wait_for(reader.read(), PATIENCE) == b""
            writer.close()
