"""`dragoman run --continue` where a process died in a turn, and a turn that others stop (T6, T14)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dragoman import Runtime
from dragoman.wire.scripted import calls, says
from tests.cli.program import Ended, program, started
from tests.fork_server import KILL
from tests.loopback import Loopback, Script, delta, loopback, stream
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow

STORE = "chat.db"
TORN = stream(delta(content="Once upon"), finish=None, then="stalls")
TOOL = '''
from dragoman import tool


@tool(permission="files.delete", pattern="path")
def delete(path: str) -> str:
    """Delete a file."""
    return f"{path} is gone"
'''


def at(server: Loopback, model: str = "mine/m") -> tuple[str, ...]:
    return ("--model", model, "--base-url", server.url, "--store", STORE, "--tools", "tools.py", "--json")


async def killed(folder: Path, server: Loopback) -> None:
    """The program dies while the model writes."""
    process = await started("run", *at(server), "Tell me.", folder=folder)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    await asyncio.wait_for(process.stdout.readuntil(b"Once upon"), PATIENCE)
    process.send_signal(KILL)
    await process.communicate()


async def again(folder: Path, *script: Script, model: str = "mine/m", said: tuple[str, ...] = ()) -> Ended:
    """After that death, the program once more, in the same conversation."""
    (folder / "tools.py").write_text(TOOL, "utf-8")
    async with loopback(TORN, *script) as server:
        await killed(folder, server)
        ended = await program("run", *at(server, model), "--continue", "last", *said, folder=folder)
    assert "Traceback" not in ended.err
    return ended


async def test_without_a_message_the_interrupted_turn_goes_on(tmp_path: Path) -> None:
    """T14"""
    ended = await again(tmp_path, says("a time."))
    assert (ended.status, ended.result["state"], ended.result["text"]) == (0, "completed", "a time.")
    assert "continuing with turn" in ended.err


async def test_with_a_message_the_interrupted_turn_is_closed(tmp_path: Path) -> None:
    """The new message is answered (T14)."""
    ended = await again(tmp_path, says("Hello."), said=("Hi!",))
    assert (ended.status, ended.result["text"]) == (0, "Hello.")
    assert "closed turn" in ended.err
    async with Runtime(tmp_path / STORE, adopts=False) as runtime:
        assert await runtime.store.live_turns() == []


async def test_a_turn_whose_model_is_not_there_is_not_given_to_another(tmp_path: Path) -> None:
    """The turn can be closed (T14)."""
    ended = await again(tmp_path, says("never"), model="other/m")
    assert ended.status != 0
    assert "mine" in ended.result["error"]
    async with loopback(says("Hello.")) as server:
        closed = await program("run", *at(server, "other/m"), "--continue", "last", "Hi!", folder=tmp_path)
    assert (closed.status, closed.result["text"]) == (0, "Hello.")


async def test_where_nothing_was_interrupted_something_has_to_be_said(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOL, "utf-8")
    async with loopback(says("Hello.")) as server:
        await program("run", *at(server), "Hi!", folder=tmp_path)
        ended = await program("run", *at(server), "--continue", "last", folder=tmp_path)
    assert ended.status != 0
    assert "has no interrupted turn" in ended.result["error"]


async def test_a_turn_of_the_terminal_is_stopped_from_another_process(tmp_path: Path) -> None:
    """T6"""
    (tmp_path / "tools.py").write_text(TOOL, "utf-8")
    async with loopback(calls("delete", path="a"), TORN) as server:
        process = await started("run", *at(server), "--allow", "files.delete", "Tell me.", folder=tmp_path)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        await asyncio.wait_for(process.stdout.readuntil(b"Once upon"), PATIENCE)
        async with Runtime(tmp_path / STORE, adopts=False) as runtime:
            (row,) = await runtime.store.live_turns()
            assert await runtime.turn(row.id).cancel("enough")
            out, err = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert process.returncode == 130, err
    assert b'"state": "cancelled"' in out or b'"state":"cancelled"' in out
