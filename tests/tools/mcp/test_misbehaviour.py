"""Check servers that hang, die, flood and send garbage: the call fails with a message, and no other call is
affected (C7)."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from dragoman.errors import ToolFailed
from dragoman.messages.message import CallState
from dragoman.tools.mcp import contents
from dragoman.tools.mcp.servers import McpServer
from dragoman.tools.mcp.source import McpSource
from dragoman.tools.tool import tool as as_tool
from dragoman.tools.toolbox import Group, Toolbox
from tests.fork_server import python
from tests.patience import PATIENCE
from tests.tools.bench import Bench
from tests.tools.mcp.npm import NODE, script
from tests.tools.mcp.rig import call, everything, free_port, listening, raw, source, tool
from tests.tools.mcp.servers import MODERN

pytestmark = pytest.mark.slow


async def test_a_server_that_hangs_at_its_start_holds_nobody_up() -> None:
    async with source(raw("hangs", start_timeout=3.0), ready=False, patience=0.2) as server:
        await server.ready()
        await server.ready()  # the second request of the turn waits no more
        assert (server.state, server.group().tools) == ("starting", ())
        await _settled(server)
        assert (server.state, server.error) == ("failed", "it did not start within 3 s")


async def test_a_server_that_is_switched_off_is_told_in_words() -> None:
    async with source(raw(enabled=False), ready=False) as server:
        await server.ready()
        assert server.state == "idle"
        with pytest.raises(ToolFailed, match="MCP server 'it' is not available: it is switched off"):
            await server.prompts()


async def test_a_late_server_joins_when_it_is_there(tmp_path: Path) -> None:
    async with source(raw("late", tmp_path / "go"), ready=False, patience=0.1) as server:
        await server.ready()
        assert server.group().tools == ()
        (tmp_path / "go").touch()
        await _settled(server)
        assert [one.name for one in server.group().tools] == ["it_echo"]


async def test_a_tool_whose_every_name_is_taken_gets_another_and_ends_nobodys_turn() -> None:
    """C11"""

    @as_tool
    def it_echo() -> None: ...

    @as_tool
    def it_it_echo() -> None: ...

    async with source(raw()) as server:
        tools = Toolbox([Group("own", (it_echo, it_it_echo))], [server]).offer().tools
        assert tools == {"it_echo": it_echo, "it_it_echo": it_it_echo, "it_it_echo_2": tool(server, "echo")}


async def test_a_server_that_is_closed_while_it_starts_is_gone_at_once() -> None:
    async with (
        asyncio.timeout(PATIENCE),
        source(raw("hangs", start_timeout=10 * PATIENCE), ready=False, patience=0.1) as server,
    ):
        await server.ready()


async def test_a_server_that_dies_in_a_call_is_started_again_by_the_next() -> None:
    async with source(raw("dies")) as server:
        before = tool(server, "echo")
        outcome = await call(server, "echo", text="x")
        assert outcome.state is CallState.FAILED
        assert outcome.result.text == (
            "the server it went away while the call ran: it ended, or closed the connection. "
            "Its last words: out of memory. Whether the call took effect is not known."
        )
        assert server.state == "failed"
        assert server.group().tools == (before,)  # the known list stays
        await server.ready()
        assert "went away while the call ran" in (await call(server, "echo", text="x")).result.text


async def test_who_fails_again_and_again_gets_longer_and_longer_pauses(tmp_path: Path) -> None:
    starts, now = tmp_path / "starts", asyncio.get_running_loop().time
    program = f"open({str(starts)!r}, 'a').write('x'); raise SystemExit('no key')"
    ends = McpServer(command=sys.executable, args=("-c", program))
    pauses: list[float] = []
    async with source(ends, ready=False, patience=PATIENCE) as server:
        while not pauses or pauses[-1] < 1.5:
            await asyncio.sleep(max(server._not_before - now(), 0))
            began = now()
            await server.ready()
            assert server.error == "it ended, or closed the connection. Its last words: no key"
            pauses.append(server._not_before - began)  # and the time that the attempt took
        tried = starts.read_text()
        await server.ready()
        assert starts.read_text() == tried  # in a pause it is not even tried


async def test_a_line_without_an_end_is_not_read_to_its_end() -> None:
    async with source(raw("floods")) as server:
        outcome = await call(server, "echo", text="x")
        assert "it wrote a line of more than 32 MB" in outcome.result.text


async def test_noise_is_fine_and_a_flood_of_it_is_not() -> None:
    async with source(raw("greets")) as server:
        assert (await call(server, "echo", text="x")).state is CallState.COMPLETED
    async with source(raw("noise")) as server:
        outcome = await call(server, "echo", text="x")
        assert "it floods its standard output" in outcome.result.text


async def test_a_flood_of_progress_is_thinned_out() -> None:
    bench = Bench()
    async with source(raw("progress")) as server:
        assert (await call(server, "echo", bench, text="x")).state is CallState.COMPLETED
    assert 1 <= len(bench.progress) < 200


async def test_a_result_without_measure_is_cut() -> None:
    async with source(raw("long")) as server:
        text = (await call(server, "echo", text="x")).result.text
    assert len(text) < contents.MOST_TEXT + 100
    assert text.endswith("[… 2000000 more characters were not kept …]")


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("error", "the disk is full"),
        ("protocol error", "it says: no such tool"),
        ("nonsense", "it: it sent invalid MCP data: content.0"),
    ],
)
async def test_what_goes_wrong_in_a_call_reaches_the_model(how: str, said: str) -> None:
    async with source(raw(how)) as server:
        outcome = await call(server, "echo", text="x")
        assert outcome.state is CallState.FAILED
        assert outcome.result.text.startswith(said)
        assert server.state == "running"


async def test_a_list_that_is_none_is_told_in_words() -> None:
    async with source(raw("invalid"), ready=False) as server:
        await server.ready()
        assert server.state == "failed"
        assert server.error.startswith("it sent invalid MCP data: tools.0")


async def test_an_answer_that_cannot_be_read_is_told_to_who_waits_for_it() -> None:
    """C7: nested without measure, with a number that is none, or cut in the middle of a character."""
    async with source(raw("deep"), ready=False) as server:
        await server.ready()
        assert server.state == "failed"
        assert server.error.startswith("it sent invalid MCP data: Invalid JSON: recursion limit")
    async with source(raw("value")) as server:
        for odd in ("[" * 300 + "]" * 300, "9" * 5000, "[" * 50_000 + "]" * 50_000):
            outcome = await call(server, "echo", text=odd)
            assert outcome.state is CallState.FAILED
            assert outcome.result.text.startswith("it: it sent invalid MCP data: Invalid JSON:")
        assert (await call(server, "echo", text='"half \\ud83d"')).result.text == '{"it": "half \ufffd"}'
        for odd in ('1}}, "result": [1], "x": {"y": {"z": 1', '1}}, "result": null, "x": {"y": {"z": 1'):
            outcome = await call(server, "echo", text=odd)
            assert outcome.result.text == (
                "it: it sent invalid MCP data: an answer that is neither a result nor an error"
            )
        assert server.state == "running"


async def test_a_tool_that_cannot_be_offered_is_left_out_alone() -> None:
    async with source(raw("schema")) as server:
        assert [one.name for one in server.group().tools] == ["it_echo"]
        assert server.left_out == [
            "Tool 'it_odd' has an invalid JSON Schema at properties.a.type: 'strin' is not valid under any "
            "of the given schemas: it is left out"
        ]
    async with source(raw("twice")) as server:
        assert [one.description for one in server.group().tools] == ["Say it again"]


async def test_a_server_without_tools_is_not_asked_for_them() -> None:
    async with source(raw("bare")) as server:
        assert server.group().tools == ()


async def test_a_list_without_an_end_is_stopped() -> None:
    async with source(raw("pages")) as server:
        assert len(server.group().tools) == 100


async def test_names_are_valid_and_kept_apart() -> None:
    async with source(raw("names")) as server:
        names = [one.name for one in server.group().tools]
        permissions = {one.permission for one in server.group().tools}
    assert names[0] == "it_plain"
    assert names[2] == "it_a_b"
    assert len({*names}) == len(permissions) == 7
    assert all(len(name) <= 64 and name.replace("_", "").replace("-", "").isalnum() for name in names)
    assert not any("*" in permission for permission in permissions)  # no rule made from one means another


async def test_the_program_gets_a_small_environment_and_what_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "not for it")
    monkeypatch.setenv("ITS_KEY", "for it")
    async with source(raw("env", env={"KEY": "${ITS_KEY}", "LEVEL": "${NOBODY_SET_THIS:-low}"})) as server:
        given = json.loads((await call(server, "echo", text="x")).result.text)
    assert "GROQ_API_KEY" not in given
    assert (given["KEY"], given["LEVEL"], given["PATH"]) == ("for it", "low", os.environ["PATH"])


async def test_a_secret_that_is_not_there_is_told_by_its_name() -> None:
    async with source(raw(env={"KEY": "${NOBODY_SET_THIS}"}), ready=False) as server:
        await server.ready()
        assert server.error.startswith("NOBODY_SET_THIS is missing. Set it in the environment")


async def test_nothing_at_an_address_is_told_in_words() -> None:
    async with source(McpServer(url="http://127.0.0.1:9/mcp"), ready=False) as server:
        await server.ready()
        assert server.error.startswith("nothing answers there")


@pytest.mark.parametrize("who", [pytest.param("everything", marks=pytest.mark.long), "sdk"])
async def test_a_server_that_was_started_anew_is_greeted_again(who: str) -> None:
    """The restarted server never saw the call of the old session, so the call is made again."""
    file = script("server-everything", "dist/index.js")
    command = (NODE, file, "streamableHttp") if who == "everything" else python(MODERN, "http")
    port = free_port()
    settings = McpServer(url=f"http://127.0.0.1:{port}/mcp", protocol="legacy")
    async with AsyncExitStack() as stack:
        with listening(*command, port=port):
            server = await stack.enter_async_context(source(settings))
        with listening(*command, port=port):
            said = {"message": "x"} if who == "everything" else {"text": "x"}
            assert "x" in (await Bench().run(tool(server, "echo"), {**said})).result.text
            await server.close()


async def test_an_http_server_that_is_gone_fails_the_call_and_nothing_else() -> None:
    async with AsyncExitStack() as stack:
        with everything("http") as settings:
            server = await stack.enter_async_context(source(settings))
        outcome = await call(server, "echo", message="x")
        assert outcome.state is CallState.FAILED
        assert outcome.result.text.startswith(
            "the server it went away while the call ran: nothing answers there"
        )


async def test_many_servers_start_together(tmp_path: Path) -> None:
    """Each waits at its start until all have started: one after the other they would never be there."""
    servers = [McpSource(f"s{n}", raw("meets", tmp_path / "met"), patience=PATIENCE) for n in range(6)]
    try:
        await asyncio.gather(*(one.ready() for one in servers))
        assert [one.state for one in servers] == ["running"] * 6
    finally:
        await asyncio.gather(*(one.close() for one in servers))


async def _settled(server: McpSource) -> None:
    attempt = server._attempt
    assert attempt is not None
    async with asyncio.timeout(PATIENCE):
        await asyncio.wait({attempt.settled})
        if server._task is not None and server.connection is None:
            await asyncio.wait({server._task})
