"""A message carries contexts (seed B), switches of known tools, and a setting for who can cancel it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman import Runtime, client_tool
from dragoman.errors import BadRequest
from dragoman.messages.message import File, Text
from dragoman.messages.request import RequestMessage
from dragoman.tools.toolbox import Group
from dragoman.wire.files.file_parts import NO_ATTACHMENTS, text_of
from dragoman.wire.scripted import ScriptedModel, calls, says
from tests.runtimes import add, model_of, runtime_with


async def test_contexts_are_stored_with_the_message_and_sent_before_its_text(tmp_path: Path) -> None:
    async with runtime_with(tmp_path, [says("ok"), says("again")]) as runtime:
        chat = await runtime.conversation()
        turn = await chat.send("What is wrong?", contexts={"a.py": "x = 1\n", "log": "boom"})
        await turn.result()
        message = (await chat.messages())[0]
        await (await chat.send("And?")).result()
        sent = model_of(runtime).requests[-1].messages[0]
    assert [part.type for part in message.parts] == ["file", "file", "text"]
    assert message.text == "What is wrong?"
    assert [file.name for file in message.files] == ["a.py", "log"]
    assert isinstance(sent, RequestMessage)
    files = [part for part in sent.parts if isinstance(part, File)]
    assert [text_of(file, NO_ATTACHMENTS) for file in files] != []
    assert isinstance(sent.parts[-1], Text)


@pytest.mark.parametrize("name", ["ad", "fils", "nope.add"])
async def test_a_switch_of_a_tool_that_does_not_exist_is_refused(tmp_path: Path, name: str) -> None:
    """A misspelled name would leave the tool on."""
    async with runtime_with(tmp_path, [says("ok")], tools=[add]) as runtime:
        chat = await runtime.conversation()
        for attempt in (
            chat.send("hi", tools={name: False}),
            chat.change(tools={name: False}),
            runtime.conversation(tools={name: False}),
        ):
            with pytest.raises(BadRequest, match=f"Unknown group or tool '{name}'"):
                await attempt
        await (await chat.send("hi", tools={"add": False})).result()
        assert model_of(runtime).requests[-1].tools == ()


async def test_a_switch_of_a_tool_that_is_gone_may_be_given_again(tmp_path: Path) -> None:
    """A client that gives all switches can still change the others."""
    other = client_tool("other", "Another tool.", {})
    async with runtime_with(tmp_path, [], tools=[add, other]) as runtime:
        chat = await runtime.conversation(tools={"add": False})
    async with runtime_with(tmp_path, [], tools=[other]) as runtime:
        chat = await runtime.conversation(chat.id)
        await chat.change(tools={"add": False, "other": False})
        assert (await chat.info()).settings["tools"] == {"add": False, "other": False}
        with pytest.raises(BadRequest, match="Unknown group or tool 'add'"):
            await chat.change(tools={"add": True})


async def test_t6_a_runtime_that_adopts_nothing_can_cancel_a_turn_that_nobody_runs(tmp_path: Path) -> None:
    async with runtime_with(tmp_path, [calls("add", a=1, b=2)], tools=[add], allow=[]) as runtime:
        turn = await runtime.send("add them")
        assert await turn.reached("waiting")
    async with Runtime(tmp_path / "chat.db", model=ScriptedModel([]), adopts=False) as looker:
        handle = looker.turn(turn.id)
        assert await handle.cancel("not wanted")
        assert (await handle.result()).state == "cancelled"
        assert not await handle.cancel()


async def test_r2_the_privacy_rule_stands_before_the_rules_of_tools(tmp_path: Path) -> None:
    group = Group("math", (add,), rules="Add with add.")
    privacy = {"name": "Ada"}
    async with runtime_with(
        tmp_path, [says("ok")], tools=[group], private=privacy, system="Be kind."
    ) as runtime:
        await (await runtime.send("hi")).result()
        system = model_of(runtime).requests[-1].system
    assert system.index("Be kind.") < system.index("[[name]]") < system.index("Add with add.")
