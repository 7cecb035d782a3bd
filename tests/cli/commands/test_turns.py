"""Turns from a script: signals end a run, and `resume`, `cancel`, `steer`, `queue` reach one."""

from __future__ import annotations

import asyncio
import json
import signal
from asyncio.subprocess import Process
from pathlib import Path

import pytest

from dragoman import Runtime
from dragoman.cli.terminal.follow import ENDING, Interrupts
from dragoman.wire.scripted import calls, says
from tests.cli.program import Ended, program, started
from tests.fork_server import KILL
from tests.loopback import DONE, Loopback, Stream, delta, loopback, sse, stream
from tests.patience import PATIENCE, eventually

pytestmark = pytest.mark.slow

STALLS = stream(delta(content="Once upon"), finish=None, done=False, then="stalls")
SETTINGS = """model = "acme/m"
store = "chat.db"
[providers.acme]
base_url = "{url}"
local = true
"""


async def dragoman(folder: Path, *arguments: str, status: int = 0, stdin: str = "") -> Ended:
    ended = await program(*arguments, folder=folder, stdin=stdin)
    assert ended.status == status, ended.err
    return ended


async def run_until_it_writes(folder: Path, server: Loopback, *arguments: str) -> Process:
    (folder / "dragoman.toml").write_text(SETTINGS.format(url=server.url), "utf-8")
    process = await started("run", *arguments, "Tell me.", folder=folder)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    await asyncio.wait_for(process.stdout.readuntil(b"Once upon"), PATIENCE)
    return process


async def listed(folder: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads((await dragoman(folder, "list", "--json")).out)
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_that_ends_a_program_cancels_its_turn(tmp_path: Path, number: signal.Signals) -> None:
    """No turn is left that looks as if it were running (T6)."""
    async with loopback(STALLS) as server:
        process = await run_until_it_writes(tmp_path, server)
        process.send_signal(number)
        _, err = await asyncio.wait_for(process.communicate(), PATIENCE)
        assert process.returncode == 130, err
        (conversation,) = await listed(tmp_path)
    assert (conversation["running"], conversation["interrupted"]) == (False, False)


async def test_a_signal_that_is_ignored_stays_so() -> None:
    """The case is `nohup dragoman run … &` with a terminal that closes (T6)."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts(*ENDING):
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


async def test_a_reader_that_goes_away_cancels_the_turn(tmp_path: Path) -> None:
    """T6: `dragoman run … | head -c 20`"""
    async with loopback(says("word " * 400, waits=0.02), says("Again.")) as server:
        (tmp_path / "dragoman.toml").write_text(SETTINGS.format(url=server.url), "utf-8")
        process = await started("run", "Tell me.", folder=tmp_path)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        await asyncio.wait_for(process.stdout.readuntil(b"word"), PATIENCE)
        process.stdout._transport.close()  # type: ignore[attr-defined]
        await asyncio.wait_for(process.wait(), PATIENCE)
        (conversation,) = await listed(tmp_path)
        ended = await dragoman(tmp_path, "run", "--continue", "last", "And?")
    assert process.returncode == 130
    assert (conversation["running"], conversation["interrupted"]) == (False, False)
    assert ended.out == "Again.\n"


async def test_a_killed_run_is_listed_as_interrupted_and_resumed_by_its_own_model(tmp_path: Path) -> None:
    """T14: also where the settings name another one by now, and standard input is not a message."""
    async with loopback(STALLS, says("a time.")) as server:
        process = await run_until_it_writes(tmp_path, server, "--model", "acme/first")
        process.send_signal(KILL)
        await process.communicate()
        (conversation,) = await listed(tmp_path)
        assert (conversation["running"], conversation["interrupted"]) == (False, True)
        assert "interrupted" in (await dragoman(tmp_path, "list")).out
        ended = await dragoman(tmp_path, "resume", "last", stdin="not a message")
    assert ended.out == "a time.\n"
    assert [body["model"] for body in server.bodies] == ["first", "first"]


async def test_a_turn_goes_on_with_its_own_tools_where_nothing_names_a_model(tmp_path: Path) -> None:
    """The bundled model would be the default there, offers fewer tools, and does not take part (T14)."""
    async with loopback(STALLS, says("a time.")) as server:
        process = await run_until_it_writes(tmp_path, server, "--model", "acme/first")
        process.send_signal(KILL)
        await process.communicate()
        settings = (tmp_path / "dragoman.toml").read_text("utf-8")
        (tmp_path / "dragoman.toml").write_text(settings.partition("\n")[2], "utf-8")
        ended = await dragoman(tmp_path, "resume", "last")
    first, second = ([tool["function"]["name"] for tool in body["tools"]] for body in server.bodies)
    assert "shell" in first
    assert second == first
    assert ended.err.startswith("· continuing with turn "), ended.err


async def test_a_turn_of_a_model_at_an_address_goes_on_where_both_are_named_again(tmp_path: Path) -> None:
    """T14: no settings know it."""
    async with loopback(STALLS, says("a time.")) as server:
        flags = ("--model", "elsewhere/first", "--base-url", server.url, "--api-key", "sk-elsewhere")
        process = await run_until_it_writes(tmp_path, server, *flags)
        process.send_signal(KILL)
        await process.communicate()
        ended = await dragoman(tmp_path, "resume", "last", *flags)
    assert ended.out == "a time.\n"
    assert [body["model"] for body in server.bodies] == ["first", "first"]


@pytest.mark.long
async def test_an_interrupted_turn_can_be_cancelled(tmp_path: Path) -> None:
    """T14: then there is nothing left to cancel, or to resume."""
    async with loopback(STALLS) as server:
        process = await run_until_it_writes(tmp_path, server)
        process.send_signal(KILL)
        await process.communicate()
        assert "cancelled turn_" in (await dragoman(tmp_path, "cancel", "last")).out
        assert "No turn is running in conv_" in (await dragoman(tmp_path, "cancel", "last", status=1)).err
        assert "has no interrupted turn" in (await dragoman(tmp_path, "resume", "last", status=1)).err
        (conversation,) = await listed(tmp_path)
    assert (conversation["running"], conversation["interrupted"]) == (False, False)


async def test_a_running_turn_is_steered_queued_behind_and_cancelled_from_outside(tmp_path: Path) -> None:
    """T13, T6"""
    async with loopback(STALLS) as server:
        process = await run_until_it_writes(tmp_path, server)
        assert "before its next step" in (await dragoman(tmp_path, "steer", "last", "in", "French")).out
        assert "begins when" in (await dragoman(tmp_path, "queue", "last", "then test it")).out
        (waiting,) = json.loads((await dragoman(tmp_path, "queue", "--json")).out)
        assert waiting["text"] == "then test it"
        await dragoman(tmp_path, "queue", "--drop", waiting["turn"])
        assert "Nothing waits" in (await dragoman(tmp_path, "queue")).err
        await dragoman(tmp_path, "cancel", "last", "--reason", "enough")
        await asyncio.wait_for(process.communicate(), PATIENCE)
    assert process.returncode == 130


async def test_what_is_queued_behind_a_run_is_answered_by_it(tmp_path: Path) -> None:
    """T13: it does not begin only to break off."""
    queued = asyncio.Event()
    story = Stream((sse(delta(content="Once upon a time.")), queued, sse(delta("stop")), DONE))
    async with loopback(story, says("The end.")) as server:
        process = await run_until_it_writes(tmp_path, server)
        assert "begins when" in (await dragoman(tmp_path, "queue", "last", "And then?")).out
        queued.set()
        out, err = await asyncio.wait_for(process.communicate(), PATIENCE)
        assert (process.returncode, out.decode().splitlines()[-1]) == (0, "The end."), err
    async with Runtime(tmp_path / "chat.db", adopts=False) as runtime:
        assert await runtime.store.live_turns() == []


async def test_a_subagent_that_was_interrupted_goes_on_with_the_turn_that_called_it(tmp_path: Path) -> None:
    """T14, S3"""
    agents = """allow = ["agents.*", "task"]\n[agents.helper]\nprompt = "help"\n"""
    async with loopback(
        calls("task", agent="helper", request="look"), STALLS, says("seen"), says("done")
    ) as server:
        (tmp_path / "dragoman.toml").write_text(
            SETTINGS.format(url=server.url).replace("[providers", f"{agents}[providers", 1), "utf-8"
        )
        process = await started("run", "--allow", "*", "Tell me.", folder=tmp_path)
        assert process.stdin is not None
        process.stdin.close()
        await eventually(lambda: len(server.bodies) == 2)
        process.send_signal(KILL)
        await process.communicate()
        ended = await dragoman(tmp_path, "resume", "last", "--allow", "*")
    assert ended.out == "done\n"


async def test_a_chat_does_not_go_on_unasked_with_what_others_left(tmp_path: Path) -> None:
    """The chat reports such a turn instead. A request costs money, and could go to a model that is meant for
    another purpose (T14)."""
    from tests.cli.person import Person

    async with loopback(STALLS) as server:
        process = await run_until_it_writes(tmp_path, server)
        process.send_signal(KILL)
        await process.communicate()
        somebody = Person("chat", folder=tmp_path)
        await asyncio.to_thread(somebody.sees, "A turn in another conversation was interrupted")
        assert await asyncio.to_thread(somebody.leaves) == 0
        assert len(server.bodies) == 1
