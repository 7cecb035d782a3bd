"""`dragoman run` with a settings file: its store, tools and agents, and flags over all of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dragoman import Runtime, ScriptedModel
from dragoman.wire.scripted import calls, says
from tests.cli.program import program
from tests.loopback import loopback

pytestmark = pytest.mark.slow


async def test_a_conversation_goes_on_in_the_store_of_the_settings(stage: Path) -> None:
    first = await program("run", "--json", "hello", folder=stage)
    conversation = first.events("turn.start")[0]["conversation"]
    more = await program("run", "--json", "--continue", conversation[:14], "think", folder=stage)
    assert more.events("turn.start")[0]["conversation"] == conversation
    shown = await program("show", "last", folder=stage)
    assert shown.out.count("you: ") == 2
    lost = await program("run", "--continue", "conv_none", "hello", folder=stage)
    assert (lost.status, lost.err) == (1, "dragoman: Unknown conversation 'conv_none'.\n")


async def test_a_conversation_is_answered_by_its_own_model_or_by_the_one_that_is_named_now(
    tmp_path: Path,
) -> None:
    """A model that is not used is not mentioned (R1)."""
    settings = 'store = "chat.db"\n[providers.acme]\nbase_url = "{}"\nlocal = true\n'
    async with loopback(says("One."), says("Two.")) as server:
        (tmp_path / "dragoman.toml").write_text(settings.format(server.url), "utf-8")
        async with Runtime(tmp_path / "chat.db", model=ScriptedModel([])) as runtime:
            await runtime.conversation(model="acme/first", mode="off")
        own = await program("run", "--continue", "last", "Hi", folder=tmp_path)
        other = await program(
            "run", "--continue", "last", "--model", "acme/second", "--mode", "auto", "Hi", folder=tmp_path
        )
    assert [(ended.status, ended.out, ended.err) for ended in (own, other)] == [
        (0, "One.\n", ""),
        (0, "Two.\n", ""),
    ]
    assert [(body["model"], "tools" in body) for body in server.bodies] == [
        ("first", False),
        ("second", True),
    ]


async def test_flags_hold_with_an_agent_that_has_its_own(tmp_path: Path) -> None:
    """This holds in a new conversation and in a resumed one (R1)."""
    settings = 'store = "chat.db"\nmodel = "acme/one"\n[providers.acme]\nbase_url = "{}"\nlocal = true\n'
    agent = '[agents.coder]\ndescription = "Codes."\nprompt = "Code."\nmodel = "acme/its"\nmode = "off"\n'
    async with loopback(says("One."), says("Two.")) as server:
        (tmp_path / "dragoman.toml").write_text(settings.format(server.url) + agent, "utf-8")
        for flags in ((), ("--model", "acme/second", "--mode", "auto")):
            await program("run", "--agent", "coder", *flags, "Hi", folder=tmp_path)
    assert [(body["model"], "tools" in body) for body in server.bodies] == [("its", False), ("second", True)]


async def test_what_is_to_be_forgotten_is_kept_nowhere(stage: Path) -> None:
    ended = await program("run", "--forget", "hello", folder=stage)
    assert (ended.status, ended.out) == (0, "Hello! How can I help?\n")
    assert not (stage / "chat.db").exists()


async def test_flags_stand_over_the_settings_and_files_go_along(stage: Path) -> None:
    (stage / "notes.txt").write_text("remember the milk")
    async with loopback(calls("note", text="x"), says("Done.")) as server:
        flags = (
            "--base-url",
            server.url,
            "--allow",
            "notes.*",
            "--system",
            "Be brief.",
            "--attach",
            "notes.txt",
        )
        ended = await program("run", "--json", *flags, "Go.", folder=stage)
    assert [call["state"] for call in ended.events("call.end")] == ["completed"]
    assert "Be brief." in server.messages(0)[0]["content"]
    assert "remember the milk" in json.dumps(server.messages(0))


async def test_questions_of_another_agents_work_do_not_hang_either(stage: Path) -> None:
    ended = await program("run", "--json", "task", folder=stage)
    assert (ended.status, ended.result["text"]) == (0, "The helper is done.")


async def test_words_and_what_comes_in_beside_them_are_one_message(stage: Path) -> None:
    async with loopback(says("Fine.")) as server:
        options = ("run", "--forget", "--base-url", server.url)
        ended = await program(*options, "Review", "this:", "-", folder=stage, stdin="+ a line")
    assert (ended.status, ended.out) == (0, "Fine.\n")
    assert server.messages()[-1]["content"] == "Review this:\n\n+ a line"
