"""Dragoman refuses an impossible request with a reason, before it stores anything (U2)."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dragoman import (
    Agent,
    Limits,
    Output,
    Plugin,
    ProviderError,
    Runtime,
    ScriptedModel,
    ToolContext,
    reply,
    tool,
)
from dragoman.errors import BadRequest, ConfigError, NotFound, Unreadable
from dragoman.messages.message import File, Message, Reasoning, Text
from dragoman.tools.mcp.servers import McpServer
from dragoman.turn.api.conversation_handle import ConversationHandle
from dragoman.turn.drivers.jobs import TurnLimits
from dragoman.turn.plugin import Appender
from dragoman.turn.view import TurnView
from dragoman.wire.scripted import calls, fails, says
from tests.runtimes import add, runtime_with


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


class PlainEnd(Plugin):
    def on_turn_end(self, turn: TurnView) -> None:  # type: ignore[override]
        """It is not async."""


class AsyncData(Plugin):
    async def on_stream_data(self, event: Any, draft: Any, turn: TurnView) -> None:  # type: ignore[override]
        """It is async."""


class TakesNothing(Plugin):
    async def on_turn_end(self) -> None:  # type: ignore[override]
        """It has no parameter."""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"plugins": [object()]}, "is not a plugin"),
        ({"plugins": [PlainEnd()]}, "define on_turn_end with `async def`"),
        ({"plugins": [AsyncData()]}, "define on_stream_data with `def`"),
        ({"plugins": [TakesNothing()]}, r"on_turn_end must take \(self, turn\)"),
        ({"mode": "loud"}, "Unknown mode 'loud'"),
        ({"on_reject": "shout"}, "Unknown on_reject 'shout'"),
        ({"concurrency": 0}, "'concurrency' must be at least 1, not 0"),
        ({"review": "loud"}, "loud"),
    ],
)
def test_a_runtime_is_not_made_with_wrong_options(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Runtime(tmp_path / "chat.db", model=ScriptedModel([]), **options)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Agent(name="a", allow="add"), "allow must be a list of rules, not 'add'"),
        (lambda: Limits(max_rounds=True), "max_rounds"),
        (lambda: Limits(max_seconds=0), "max_seconds"),
        (lambda: Limits(max_seconds=float("inf")), "max_seconds"),
        (lambda: Output(int, retries=-1), "'retries' must be a whole number of 0 or more"),
    ],
)
def test_wrong_fields_are_told_where_they_are_given(make: Callable[[], object], said: str) -> None:
    with pytest.raises((ConfigError, ValueError), match=said):
        make()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"metadata": {"a": 1}}, "metadata"),
        ({"private": {"": "x"}}, "private"),
        ({"private": {"a": " "}}, "private"),
        ({"tools": {"add": "on"}}, "tools"),
        ({"history": -1}, "history"),
        ({"dialect": "loud"}, "loud"),
        ({"review": "loud"}, "loud"),
    ],
)
async def test_settings_that_cannot_be_are_refused(
    tmp_path: Path, settings: dict[str, Any], said: str
) -> None:
    async with runtime_with(tmp_path, []) as runtime:
        chat = await runtime.conversation()
        with pytest.raises(BadRequest, match=said):
            await chat.change(**settings)
        assert (await chat.info()).settings == {}


async def test_what_a_turn_cannot_do_is_told(tmp_path: Path) -> None:
    """Its handle and its questions refuse what does not fit."""

    @tool
    async def asks(context: ToolContext) -> str:
        """Ask."""
        return str(await context.ask("Well?"))

    async with runtime_with(tmp_path, [calls("asks"), fails("down")], tools=[asks]) as runtime:
        chat = await runtime.conversation()
        with pytest.raises(BadRequest, match="5"):
            await chat.send("go", client_tools=[5])  # type: ignore[list-item]
        turn = await chat.send("go")
        assert await turn.reached("waiting")
        with pytest.raises(BadRequest, match="asleep"):
            await turn.reached("asleep")
        with pytest.raises(BadRequest, match="yes"):
            await turn.answer(turn.question, "yes")  # type: ignore[arg-type]
        with pytest.raises(BadRequest, match=turn.question):
            await turn.arguments_for_hunks(turn.question, [0])
        with pytest.raises(BadRequest, match="first"):
            await turn.arguments_for_hunks(turn.question, ["first"])  # type: ignore[list-item]
        with pytest.raises(NotFound, match="gone"):
            await turn.steer([Text("see"), File("image/png", blob="gone")])
        queued = await chat.send("later", queue=True)
        with pytest.raises(NotFound, match="gone"):
            await runtime.commands.change_queued(queued.id, [File("image/png", blob="gone")])
        assert await queued.cancel()
        await turn.answer(turn.question, reply("yes"))
        with pytest.raises(ProviderError, match="down"):
            await turn.result()
    async with runtime_with(tmp_path, [says("again")]) as runtime:
        with pytest.raises(ProviderError, match="down") as raised:
            await runtime.turn(turn.id).result()
        assert type(raised.value) is ProviderError
        with pytest.raises(LookupError, match="does not run in this process"):
            runtime.turn(turn.id).subscribe(print)
        with closing(sqlite3.connect(tmp_path / "chat.db")) as db, db:
            db.execute("UPDATE facts SET body = '{}' WHERE turn = ?", [turn.id])
        with pytest.raises(Unreadable, match=turn.id):
            await runtime.turn(turn.id).trace()
        chat = await runtime.conversation(chat.id)
        question = (await chat.messages())[0]
        with pytest.raises(BadRequest, match="no workspace to copy"):
            await runtime.fork(chat.id, question.id, own_folder=True)
        assert (await (await chat.rerun(question.id)).result()).text == "again"


async def test_no_file_is_added_to_a_turn_that_cannot_be_read(tmp_path: Path) -> None:
    """Its model is unknown, so nobody can tell whether it takes the file. A text is kept (M2 × S3)."""
    async with runtime_with(tmp_path, [calls("add", a=1, b=1)], tools=[add], allow=()) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        for damage, says_why in (
            ("UPDATE facts SET body = '{}'", f"{turn.id}.*this version does not know"),
            ("DELETE FROM facts WHERE seq = 1", f"{turn.id}.*fact 1 is missing"),
        ):
            with closing(sqlite3.connect(tmp_path / "chat.db")) as db, db:
                db.execute(damage)
            with pytest.raises(Unreadable, match=says_why):
                await turn.steer([File("image/png", url="https://example.com/a.png")])
        await turn.steer("stop")
        assert [signal.kind for signal in await runtime.store.signals(turn.id)] == ["steer"]


class TakesNoFile(ScriptedModel):
    """A custom model that checks files, and nothing else of a message."""

    def check_files(self, files: Sequence[File]) -> None:
        raise BadRequest(f"No {files[0].media_type} here.")


async def test_a_model_that_checks_only_files_is_asked_about_them(tmp_path: Path) -> None:
    """M2"""
    model = TakesNoFile([says("hi")])
    async with Runtime(tmp_path / "chat.db", model=model) as runtime:
        with pytest.raises(BadRequest, match=r"No image/png here\."):
            await runtime.send([File("image/png", url="https://example.com/a.png")])
        assert (await (await runtime.send("hello")).result()).text == "hi"


async def test_a_dialect_that_is_gone_is_told_when_a_send_is_repeated(tmp_path: Path) -> None:
    """T14: before anything is stored."""
    async with runtime_with(tmp_path, [says("Hello.")]) as runtime:
        chat = await runtime.conversation()
        turn = await chat.send("Hello?", dialect="native")
        messages = (await turn.result()).messages
        with closing(sqlite3.connect(tmp_path / "chat.db")) as db, db:
            db.execute("UPDATE facts SET body = replace(body, '\"native\"', '\"gone\"')")
        with pytest.raises(BadRequest, match="Unknown dialect 'gone'"):
            await chat.rerun(messages[-1].id)
        assert len(await runtime.store.turns(chat.id)) == 1


async def test_what_another_process_cannot_receive_is_not_handed_to_it(tmp_path: Path) -> None:
    """N1"""

    def fine(value: int) -> bool:
        return True

    async with runtime_with(tmp_path, [says("5")], turn_limits=TurnLimits(1)) as runtime:
        with pytest.raises(ConfigError, match="make_deps"):
            await runtime.send("go", deps=5)
        with pytest.raises(ConfigError, match="checks"):
            await runtime.send("go", output_type=Output(int, checks=[fine]))
        turn = await runtime.send("go", output_type=int)
        assert not runtime.services.inputs  # the stored schema is enough
        assert (await turn.result()).output == 5
