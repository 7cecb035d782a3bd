"""Check turns that have lost their readers."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from dragoman.server.protocols.turn_readers import TurnReaders
from dragoman.wire.scripted import says
from tests.runtimes import runtime_with

STORY = says("Once upon a time. " * 400, waits=0.05)


async def test_a_turn_that_nobody_comes_back_for_is_cancelled(tmp_path: Path) -> None:
    """Its reader has disconnected, which is the only signal it can send (T6)."""
    async with runtime_with(tmp_path, [STORY]) as runtime:
        readers = TurnReaders(runtime, grace=0.01)
        turn = await runtime.send("Tell me.")
        readers.began(turn.id)
        with suppress(ConnectionError), readers.reading(turn.id):
            raise ConnectionError
        assert (await turn.result()).state == "cancelled"


async def test_who_comes_back_finds_it_running(tmp_path: Path) -> None:
    """A page that reloads disconnects, too (E2)."""
    async with runtime_with(tmp_path, [says("Once upon a time.")]) as runtime:
        readers = TurnReaders(runtime, grace=60)
        turn = await runtime.send("Tell me.")
        readers.began(turn.id)
        with suppress(ConnectionError), readers.reading(turn.id):
            raise ConnectionError
        with readers.reading(turn.id):
            assert (await turn.result()).state == "completed"
        assert not await readers.stop_if_left(turn.id)


async def test_who_says_something_else_meanwhile_does_not_wait_for_it(tmp_path: Path) -> None:
    """T6"""
    async with runtime_with(tmp_path, [STORY]) as runtime:
        readers = TurnReaders(runtime, grace=60)
        turn = await runtime.send("Tell me.")
        readers.began(turn.id)
        with suppress(ConnectionError), readers.reading(turn.id):
            raise ConnectionError
        assert await readers.stop_if_left(turn.id)
        assert (await turn.result()).state == "cancelled"


async def test_a_turn_that_others_asked_for_goes_on(tmp_path: Path) -> None:
    """Another client watched the turn and has disconnected (T6)."""
    async with runtime_with(tmp_path, [says("Once upon a time.")]) as runtime:
        readers = TurnReaders(runtime, grace=0.01)
        turn = await runtime.send("Tell me.")
        with suppress(ConnectionError), readers.reading(turn.id):
            raise ConnectionError
        assert not await readers.stop_if_left(turn.id)
        assert (await turn.result()).state == "completed"
