"""`dragoman replay`: stored turns on another model, for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dragoman.tools.builtin import BUILTIN
from dragoman.wire.scripted import calls, says
from tests.cli.program import Ended, program
from tests.loopback import Script, loopback
from tests.runtimes import runtime_with
from tests.wire.endings.replies import chat

pytestmark = pytest.mark.slow


async def _replay(folder: Path, script: list[Script], *words: str) -> Ended:
    async with loopback(*script) as server:
        file = folder / "settings.toml"
        file.write_text(f'[providers.acme]\nbase_url = "{server.url}"\nlocal = true\n')
        options = ("--store", str(folder / "chat.db"), "--config", str(file), "--model", "acme/x")
        return await program("replay", *options, *words, folder=folder)


async def _turn(folder: Path) -> str:
    script = [calls("calculator", expression="17 * 23"), says("It is 391.")]
    async with runtime_with(folder, script, tools=[BUILTIN["basics"]()]) as runtime:
        turn = await runtime.send("What is 17 * 23?")
        await turn.result()
        return turn.id


async def test_a_turn_is_shown_beside_what_it_was(tmp_path: Path) -> None:
    await _turn(tmp_path)
    ended = await _replay(tmp_path, [chat("About 400.")])
    assert ended.status == 0
    assert "scripted/model" in ended.out
    assert "acme/x" in ended.out
    for line in ('- calculator {"expression":"17 * 23"} completed', "- It is 391.", "+ About 400."):
        assert line in ended.out
    assert "\x1b" not in ended.out  # piped: no colours


async def test_many_are_a_table_and_json_says_the_same(tmp_path: Path) -> None:
    turn = await _turn(tmp_path)
    table = await _replay(tmp_path, [chat("400.")], turn, turn)
    assert "0 of 2 with the same calls" in table.out
    (one,) = json.loads((await _replay(tmp_path, [chat("400.")], turn, "--json")).out)
    assert (one["same_calls"], one["before"]["text"], one["after"]["text"]) == (False, "It is 391.", "400.")


async def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    await _turn(tmp_path)
    ended = await _replay(tmp_path, [chat("x")], "turn_nothing")
    assert ended.status == 1
    assert "no turn 'turn_nothing'" in ended.err
