"""Check how a runtime is built: each fault is reported immediately, in words."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from dragoman import (
    Agent,
    BadRequest,
    ConfigError,
    Group,
    Plugin,
    Runtime,
    ScriptedModel,
    TurnView,
    allow_always,
    allow_once,
    run_sync,
    tool,
)
from dragoman.errors import EngineError, Forbidden, NotFound, StoreUnavailable
from dragoman.messages.events import Event
from dragoman.store.postgres.store import PostgresStore
from dragoman.store.sqlite import SqliteStore
from dragoman.store.store import TurnRow
from dragoman.turn.drivers.jobs import TurnLimits
from dragoman.wire.scripted import calls, says
from tests.patience import PATIENCE, eventually
from tests.postgres import Server, schema_of
from tests.runtimes import add, model_of, runtime_with


class Misspelled(Plugin):
    async def on_turn_begin(self, turn: TurnView) -> None: ...


class Close(Plugin):
    async def befor_tool(self, call: Any, turn: TurnView) -> None: ...

    def names(self) -> None:
        """A method of the plugin itself, like `_before_tool`."""

    def _before_tool(self) -> None: ...


class Plain(Plugin):
    def on_turn_end(self, turn: TurnView) -> None: ...  # type: ignore[override]


class Unheard(Plugin):
    async def on_event(self, event: Event, turn: TurnView) -> None: ...  # type: ignore[override]


class Short(Plugin):
    async def on_turn_end(self) -> None: ...  # type: ignore[override]


@pytest.mark.parametrize(
    ("options", "says_what"),
    [
        ({"allow": "shell"}, "allow takes a list"),
        ({"allow": {"shell": "git *"}}, "allow takes a list"),  # its names alone would allow every line
        ({"deny": [5]}, "5 is not a rule"),
        ({"tools": add}, "tools takes a list"),
        ({"system": 5}, "'system' must be a string"),
        ({"options": "hot"}, "'options' must be a table"),
        ({"private": ["x"]}, "'private' must be a table"),
        ({"private": {"gap": " "}}, "each field needs a name and a value"),  # it would mask every space
        ({"private": {"pin": 5}}, "each field needs a name and a value"),
        ({"workspace": 5}, "A workspace must be the path of a folder"),
        ({"plugins": [5]}, "5 is not a plugin"),
        ({"plugins": [Misspelled()]}, "Plugin 'misspelled': unknown hook 'on_turn_begin'"),
        ({"plugins": [Close()]}, r"Plugin 'close': unknown hook 'befor_tool'. Did you mean before_tool\?"),
        ({"plugins": [Plain()]}, "Plugin 'plain': define on_turn_end with `async def`"),
        ({"plugins": [Unheard()]}, "Plugin 'unheard': define on_event with `def`"),
        (
            {"plugins": [Short()]},
            r"Plugin 'short': on_turn_end must take \(self, turn\)",
        ),  # its turns never ended
        ({"agents": ["clerk"]}, "'clerk' is not an agent"),
        ({"agents": [Agent(name="clerk"), Agent(name="clerk")]}, "Two agents are named 'clerk'"),
        ({"workspace": "nowhere"}, "'nowhere' is not a folder"),
        ({"mode": "yolo"}, "mode 'yolo'"),
        ({"on_reject": "cry"}, "on_reject 'cry'"),
        ({"concurrency": 0}, "'concurrency' must be at least 1"),
        ({"max_cost": -1}, "max_cost is a number above 0"),
        ({"max_tokens": float("nan")}, "max_tokens is a whole number above 0"),
        ({"max_calls": 1.5}, "max_calls is a whole number above 0"),
        ({"max_cost": float("inf")}, "max_cost is a number above 0"),
        ({"retention": 0}, "'retention' must be a number of seconds above 0"),
        ({"retention": float("nan")}, "'retention' must be a number of seconds above 0"),
        ({"compact_at": 3}, "The compaction threshold"),
        ({"tool_history": "some"}, "tool history 'some'"),
        ({"private": {"": "x"}}, "privacy"),
    ],
)
def test_what_cannot_be_is_refused_at_construction(options: dict[str, Any], says_what: str) -> None:
    with pytest.raises(ConfigError, match=says_what):
        Runtime("chat.db", model=ScriptedModel([]), **options)


@pytest.mark.parametrize(
    ("settings", "says_what"),
    [
        ({"mode": "Manual"}, "mode 'Manual'"),
        ({"colour": "red"}, "no setting 'colour'"),
        ({"colour": None}, "no setting 'colour'"),
        ({"model": 5}, "The setting model must be a string"),
        ({"tools": "clock"}, "The setting tools must be a table"),
        ({"tools": {"clock": "off"}}, "true or false"),
    ],
)
async def test_a_misspelled_setting_of_a_conversation_is_refused(
    tmp_path: Path, settings: dict[str, Any], says_what: str
) -> None:
    """An unknown mode must not mean that every call can run (P8)."""
    async with runtime_with(tmp_path, []) as runtime:
        with pytest.raises(BadRequest, match=says_what):
            await runtime.conversation(**settings)
        assert await runtime.conversations() == []
        chat = await runtime.conversation()
        with pytest.raises(BadRequest, match=says_what):
            await chat.change(**settings)


async def test_a_conversation_can_be_opened_with_settings_that_say_nothing(tmp_path: Path) -> None:
    """A value of None means no setting, as in `change`."""
    async with runtime_with(tmp_path, []) as runtime:
        chat = await runtime.conversation(agent=None, system="Be kind.")
        assert (await chat.info()).settings == {"system": "Be kind."}


async def test_settings_can_be_changed_and_taken_away(tmp_path: Path) -> None:
    async with runtime_with(tmp_path, [says("a"), says("b")], tools=[add]) as runtime:
        chat = await runtime.conversation(mode="off", system="Be kind.")
        await (await chat.send("one")).result()
        await chat.change(mode=None, system="Be brief.")
        await (await chat.send("two")).result()
        first, second = model_of(runtime).requests
    assert (bool(first.tools), bool(second.tools)) == (False, True)
    assert first.system.endswith("Be kind.")
    assert second.system.endswith("Be brief.")


async def test_what_is_no_message_or_answer_is_refused(tmp_path: Path) -> None:
    async with runtime_with(tmp_path, [calls("add", a=1, b=2)], tools=[add], allow=()) as runtime:
        chat = await runtime.conversation()
        for nonsense in (None, 5, [5]):
            with pytest.raises(BadRequest, match="A message of a user is a string"):
                await chat.send(nonsense)  # type: ignore[arg-type]
        with pytest.raises(BadRequest, match="Unknown plugin nothing"):
            await chat.send("hi", disable=["nothing"])
        turn = await chat.send("go")
        assert await turn.reached("waiting")
        with pytest.raises(BadRequest, match="'yes' is not an answer"):
            await turn.answer(turn.question, "yes")  # type: ignore[arg-type]
        await turn.cancel()


async def test_a_model_may_be_given_by_name(tmp_path: Path) -> None:
    """The catalog knows the model, and reports the missing key at the first request (W2)."""
    async with Runtime(tmp_path / "chat.db", model="acme/large") as runtime:
        with pytest.raises(BadRequest, match="acme"):
            await runtime.send("hi")
    async with Runtime(tmp_path / "chat.db") as runtime:
        with pytest.raises(ConfigError, match="Name a model"):
            await runtime.send("hi")


def test_without_an_event_loop_a_call_that_nobody_allowed_does_not_run(tmp_path: Path) -> None:
    model = ScriptedModel([calls("add", a=1, b=2), says("sorry")])
    result = run_sync("go", model=model, store=tmp_path / "chat.db", tools=[add])
    (call,) = result.messages[1].calls
    assert result.text == "sorry"
    assert call.result is not None
    assert (
        call.result.text == "No rule allows this call, and no user was there to approve it: it did not run."
    )


async def test_a_house_must_be_opened_first(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="async with"):
        await Runtime(tmp_path / "chat.db", model=ScriptedModel([])).send("hi")


_LIMITS = TurnLimits(per_node=1, per_person=1)


@pytest.mark.parametrize(
    ("engine", "limits"), [("sqlite", None), ("sqlite", _LIMITS), ("postgres", None), ("postgres", _LIMITS)]
)
def test_a_house_may_be_opened_again_in_another_event_loop(
    tmp_path: Path, engine: str, limits: TurnLimits | None, request: pytest.FixtureRequest
) -> None:
    """It resumes its turns, receives events, and starts queued messages (S3)."""
    script = [says("hello"), calls("add", a=1, b=1), says("2"), says("later")]
    server: Server | None = request.getfixturevalue("postgres") if engine == "postgres" else None
    store = PostgresStore(server.url(schema_of(tmp_path))) if server else SqliteStore(tmp_path / "chat.db")
    runtime = Runtime(store, model=ScriptedModel(script), tools=[add], turn_limits=limits)

    async def ask() -> tuple[str, str]:
        async with runtime:
            await (await runtime.send("hi")).result()
            chat = await runtime.conversation()
            turn = await chat.send("1 + 1?")
            assert await turn.reached("waiting")
            return turn.id, (await chat.send("And then?", queue=True)).id

    async def answer(asked: str, queued: str) -> list[str]:
        async with runtime, asyncio.timeout(PATIENCE):
            (question,) = await runtime.questions()
            await runtime.answer(question.id, allow_once())
            return [(await runtime.turn(id).result()).text for id in (asked, queued)]

    assert asyncio.run(answer(*asyncio.run(ask()))) == ["2", "later"]


async def test_a_grant_that_was_revoked_while_a_house_was_closed_is_gone(tmp_path: Path) -> None:
    """P3"""
    runtime = runtime_with(tmp_path, [calls("add", a=1, b=1), says("2")] * 2, tools=[add], allow=[])
    async with runtime:
        chat = await runtime.conversation()
        turn = await chat.send("go")
        assert await turn.reached("waiting")
        await turn.answer(turn.question, allow_always())
        await turn.result()
    async with runtime_with(tmp_path, []) as other:
        (grant,) = await other.grants()
        await other.revoke(grant.id)
    async with runtime:
        turn = await (await runtime.conversation(chat.id)).send("again")
        assert await turn.reached("waiting")


async def test_an_open_house_is_not_opened_once_more(tmp_path: Path) -> None:
    """The first one to leave would close it for the other."""
    async with runtime_with(tmp_path, [says("hello")]) as runtime:
        with pytest.raises(ConfigError, match="already open"):
            async with runtime:
                pass
        assert (await (await runtime.send("hi")).result()).text == "hello"


async def test_a_house_that_is_left_in_a_cancelled_scope_is_closed(tmp_path: Path) -> None:
    """In such a scope of anyio, every wait is cancelled, also the one for the closing (N4)."""
    with anyio.CancelScope() as scope:
        async with runtime_with(tmp_path, [says("x" * 400, waits=0.01)]) as runtime:
            turn = await runtime.send("go")
            assert await turn.reached("streaming")
            scope.cancel()
            await turn.result()
    assert scope.cancelled_caught
    async with runtime_with(tmp_path, [says("again")]) as second:
        assert (await second.turn(turn.id).result()).text == "again"


class Stuck:
    """A source of tools that cannot be closed."""

    name = "stuck"

    def group(self) -> Group:
        return Group(self.name, ())

    async def ready(self) -> None: ...

    async def close(self) -> None:
        raise OSError("it does not let go")


async def test_the_rest_is_closed_where_one_part_cannot_be(tmp_path: Path) -> None:
    runtime = runtime_with(tmp_path, [], tools=[Stuck()])
    with pytest.raises(OSError, match="does not let go"):
        async with runtime:
            pass
    with pytest.raises(EngineError, match="The store is closed"):
        await runtime.send("hi")


async def test_what_was_opened_is_closed_where_the_rest_cannot_be(tmp_path: Path) -> None:
    class Torn(SqliteStore):
        async def abandoned_turns(self, *, waiting: bool = True) -> list[TurnRow]:
            raise StoreUnavailable("the disk is gone", "wait")

    store = Torn(tmp_path / "chat.db")
    with pytest.raises(StoreUnavailable, match="the disk is gone"):
        async with runtime_with(tmp_path, [], store=store):
            pass
    with pytest.raises(EngineError, match="The store is closed"):
        await store.conversations()


def test_a_house_that_cannot_be_opened_again_says_why(tmp_path: Path) -> None:
    """S3: in another event loop, with what the first one left."""

    class Torn(SqliteStore):
        torn = False

        async def abandoned_turns(self, *, waiting: bool = True) -> list[TurnRow]:
            if self.torn:
                raise StoreUnavailable("the disk is gone", "wait")
            return await super().abandoned_turns(waiting=waiting)

    store = Torn(tmp_path / "chat.db")
    runtime = runtime_with(tmp_path, [], store=store, turn_limits=TurnLimits())

    async def open_and_close() -> None:
        async with runtime:
            pass

    asyncio.run(open_and_close())
    store.torn = True
    with pytest.raises(StoreUnavailable, match="the disk is gone"):
        asyncio.run(open_and_close())


async def test_a_denial_of_nothing_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A misspelled word protects nothing. The tools of a caller are known only later (P1)."""
    with caplog.at_level("WARNING", logger="dragoman.runtime"):
        async with Runtime(
            tmp_path / "a.db", model=ScriptedModel([]), tools=[add], deny=["ad", "add:1", "a*", "client.*"]
        ):
            pass
    assert [record.getMessage() for record in caplog.records] == [
        "no tool has the permission of the rule 'deny ad': it denies nothing"
    ]


async def test_what_nobody_touched_is_deleted_and_what_waits_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """S1, P6: as soon as a runtime with a retention is open, and by none that only looks."""
    year = 365 * 24 * 3600.0

    @tool
    def pay() -> str:
        """Pay."""
        return "paid"

    def runtime(**options: Any) -> Runtime:
        script = [says("hello"), calls("pay")]
        return Runtime(tmp_path / "chat.db", model=ScriptedModel(script), tools=[pay], ask=["pay"], **options)

    async with runtime(clock=lambda: time.time() - year) as past:
        over = await past.send("hi")
        await over.result()
        waiting = await past.send("pay")
        assert await waiting.reached("waiting")
    async with runtime(adopts=False, retention=year / 2):
        pass
    async with runtime(retention=2 * year) as lenient:
        await lenient._delete_old()
        assert len(await lenient.conversations()) == 2
        new = await lenient.conversation()
    ahead = 0.0
    async with runtime(retention=year / 2, clock=lambda: time.time() + ahead) as strict:
        await eventually(lambda: "1 conversations were deleted" in caplog.text)
        left = {one.id for one in await strict.conversations()}
        assert left == {new.id, (await strict.store.question((await strict.questions())[0].id)).conversation}
        over = await strict.send("hi")
        await over.result()
        ahead = year
        await strict._delete_old()
        assert strict.bus.rest(over.id, 0) is None


async def test_an_application_can_separate_its_users(tmp_path: Path) -> None:
    """V1: a conversation, its requests and their answers belong to its owner and its members."""
    script = [calls("add", a=1, b=2), says("3.")]
    async with runtime_with(tmp_path, script, tools=[add], allow=()) as runtime:
        chat = await runtime.conversation(user="ada")
        turn = await chat.send("1 + 2?")
        await turn.reached("waiting")
        assert (await runtime.conversation(chat.id, user="ada")).id == chat.id
        with pytest.raises(NotFound, match="Unknown conversation"):
            await runtime.conversation(chat.id, user="eve")
        (asked,) = await runtime.questions(user="ada")
        assert (await runtime.questions(user="eve"), await runtime.questions()) == ([], [asked])
        with pytest.raises(Forbidden):
            await runtime.answer(asked, allow_once(), by="eve")
        await runtime.sharing.add(chat.id, "eve", "answers", by="ada")
        assert (await runtime.conversation(chat.id, user="eve")).id == chat.id
        assert await runtime.questions(user="eve") == [asked]
        await runtime.answer(asked, allow_once(), by="eve")
        assert (await turn.result()).text == "3."
