"""Dragoman refuses an impossible request with a reason, before it stores anything (U2)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import Plugin, Runtime
from dragoman.errors import BadRequest, ConfigError, NotFound
from dragoman.messages.message import File, Message, Reasoning, Text
from dragoman.tools.mcp.servers import McpServer
from dragoman.turn.api.conversation_handle import ConversationHandle
from dragoman.turn.plugin import Appender
from dragoman.turn.view import TurnView
from dragoman.wire.scripted import says
from tests.runtimes import runtime_with


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mode": "loud"}, "Unknown mode 'loud'. Choose one of: auto, ask, manual, off"),
        ({"dialect": "loud"}, "Unknown dialect 'loud'. Choose one of: auto, native"),
        ({"tools": {"loud": True}}, "loud"),
        ({"agent": "loud"}, "loud"),
    ],
)
async def test_a_word_that_nobody_knows_begins_no_turn(
    tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    async with runtime_with(tmp_path, [says("Hello.")]) as runtime:
        chat = await runtime.conversation()
        with pytest.raises((BadRequest, NotFound, ConfigError), match=said):
            await chat.send("Hello?", **options)
        assert await chat.messages() == []
        assert await runtime.store.turns(chat.id) == []


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ("", "blank"),
        ([], "blank"),
        ([Text(" "), Text("")], "blank"),
        ([File("image/png")], "file"),
        ([Text("see"), File("image/png", url="file:///etc/passwd")], "address"),
        ([Text("see"), Reasoning("hm")], "Reasoning"),
        (5, "5"),
    ],
)
async def test_a_message_that_says_nothing_begins_no_turn(tmp_path: Path, parts: Any, said: str) -> None:
    async with runtime_with(tmp_path, [says("Hello.")]) as runtime:
        chat = await runtime.conversation()
        with pytest.raises(BadRequest, match=said):
            await chat.send(parts)
        assert await runtime.store.turns(chat.id) == []


async def test_a_message_of_another_conversation_is_not_found(tmp_path: Path) -> None:
    def ways(chat: ConversationHandle, message: str) -> list[Callable[[], Awaitable[Any]]]:
        return [
            lambda: chat.edit(message, "Other."),
            lambda: chat.rerun(message),
            lambda: chat.diff(message),
            lambda: chat.revert_to(message),
            lambda: chat.move_to(message),
        ]

    async with runtime_with(tmp_path, lambda _: says("Hello.")) as runtime:
        one, other = await runtime.conversation(), await runtime.conversation()
        messages = (await (await one.send("Hello?")).result()).messages
        await (await other.send("Hello?")).result()
        before = await other.messages()
        for way in ways(other, messages[-1].id):
            with pytest.raises(NotFound, match=messages[-1].id):
                await way()
        assert await other.messages() == before


@pytest.mark.parametrize(
    ("hook", "said"),
    [
        ("befor_tool", "Did you mean before_tool"),
        ("on_nothing", "on_nothing"),
        ("after_all", "after_all"),
    ],
)
def test_a_hook_that_is_none_is_named(tmp_path: Path, hook: str, said: str) -> None:
    async def method(self: Plugin) -> None: ...

    kind = type("Mine", (Plugin,), {hook: method})
    with pytest.raises(ConfigError, match=said):
        Runtime(tmp_path / "chat.db", plugins=[kind()])


async def test_a_plugin_appends_texts_or_parts_and_no_mixture(tmp_path: Path) -> None:
    told: list[str] = []

    class Mixed(Plugin):
        async def on_after_request(self, reply: Message, turn: TurnView, append: Appender) -> None:
            try:
                await append(["a text", Text("a part")])  # type: ignore[arg-type]
            except ConfigError as error:
                told.append(str(error))

    async with runtime_with(tmp_path, [says("Hello.")], plugins=[Mixed()]) as runtime:
        assert (await (await runtime.send("Hello?")).result()).text == "Hello."
    assert told == [
        "'append' takes a string, the parts of one message, or a list of strings, but not a mixture."
    ]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "either a command or a url"),
        ({"command": "a", "url": "http://127.0.0.1/"}, "either a command or a url"),
        ({"command": " "}, "the command is empty"),
        ({"url": "127.0.0.1"}, "http"),
        ({"url": "http://127.0.0.1/", "transport": "stdio"}, "not stdio"),
        ({"command": "a", "transport": "sse"}, "needs stdio"),
        ({"command": "a", "headers": {"a": "b"}}, "need a url"),
        ({"url": "http://127.0.0.1/", "args": ("a",)}, "a command"),
        ({"url": "http://127.0.0.1/", "env": {"a": "b"}}, "a command"),
        ({"url": "http://127.0.0.1/", "cwd": "a"}, "a command"),
    ],
)
def test_an_mcp_server_has_the_fields_of_its_kind(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        McpServer(**fields)
