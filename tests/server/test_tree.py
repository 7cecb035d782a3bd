"""Check that a whole conversation matches what was published and is read once, however much happens (E2)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from dragoman import Runtime, ScriptedModel, tool
from dragoman.conversation.tree import Conversation
from dragoman.errors import StoreUnavailable
from dragoman.messages.message import Message, Text
from dragoman.server.snapshots import Trees, TreeSnapshot
from dragoman.store.sqlite import SqliteStore
from dragoman.store.turns import Change
from dragoman.wire.scripted import calls, says
from tests.patience import PATIENCE


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class BusyStore(SqliteStore):
    """A store in which, while messages are read, a turn begins and ends there and another one elsewhere."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.runtime: Runtime | None = None
        self.reads: list[str] = []

    async def messages(self, conversation: str) -> tuple[list[Message], int]:
        found = await super().messages(conversation)
        await self._read_meanwhile(conversation)
        return found

    async def message_texts(self, conversation: str) -> tuple[dict[str, str], int]:
        found = await super().message_texts(conversation)
        await self._read_meanwhile(conversation)
        return found

    async def _read_meanwhile(self, conversation: str) -> None:
        self.reads.append(conversation)
        runtime, self.runtime = self.runtime, None  # the turn reads messages, too
        if runtime is not None:
            await (await runtime.send("elsewhere")).result()
            await (await runtime.send("meanwhile", conversation)).result()
            self.runtime = runtime


def long(messages: int) -> tuple[Conversation, list[Message]]:
    made: list[Message] = []
    for n in range(messages):
        parent = made[-1].id if made else None
        role: Any = "assistant" if n % 2 else "user"
        made.append(Message(f"msg_{n}", "conv_1", parent, role, (Text(f"number {n}, «é», 🐦"),)))
    return Conversation("conv_1", leaf=made[-1].id if made else None), made


def read(tree: TreeSnapshot) -> dict[str, Any]:
    whole: dict[str, Any] = json.loads(b"".join(tree))
    assert whole == json.loads(tree.text())
    return whole


async def test_a_tree_is_read_once_also_where_turns_begin_and_end_all_the_time(tmp_path: Path) -> None:
    """The tree contains the messages of those turns (E2)."""
    store = BusyStore(tmp_path / "chat.db")
    async with Runtime(store, model=ScriptedModel(lambda _: says("ok"))) as runtime:
        await store.add_conversation(*long(20))
        store.runtime, store.reads = runtime, []
        tree = read(await Trees(runtime).read("conv_1"))
        store.runtime = None
        assert store.reads.count("conv_1") == 1 + 1  # the second one by the turn that began
        assert [message["parts"][0]["text"] for message in tree["messages"][-2:]] == ["meanwhile", "ok"]
        assert len(tree["messages"]) == 22
        assert (tree["turns"], tree["conversation"]["leaf"]) == ([], tree["messages"][-1]["id"])


async def test_what_was_read_is_used_again_until_something_changes(tmp_path: Path) -> None:
    """E2"""
    store = BusyStore(tmp_path / "chat.db")
    async with Runtime(store, model=ScriptedModel(lambda _: says("ok"))) as runtime:
        await store.add_conversation(*long(50))
        trees, chat = Trees(runtime), await runtime.conversation("conv_1")
        first = read(await trees.read("conv_1"))
        await chat.rename("Another title")
        second = read(await trees.read("conv_1"))
        assert store.reads == ["conv_1"]
        assert second["messages"] == first["messages"]
        assert second["conversation"]["title"] == "Another title"
        await (await chat.send("more")).result()
        store.reads.clear()
        third = read(await trees.read("conv_1"))
        assert store.reads == ["conv_1"]
        assert [message["id"] for message in third["messages"]][:50] == [f"msg_{n}" for n in range(50)]
        assert len(third["messages"]) == 52
        trees.forget("conv_1")
        assert read(await trees.read("conv_1")) == third


@pytest.mark.slow
async def test_a_long_tree_comes_in_pieces_that_are_one_json_text(tmp_path: Path) -> None:
    """E2: no piece is so large that sending it would hold others up."""
    async with Runtime(tmp_path / "chat.db", model=ScriptedModel([])) as runtime:
        conversation, messages = long(3000)
        await runtime.store.add_conversation(conversation, messages)
        tree = await Trees(runtime).read("conv_1")
        pieces = list(tree)
        assert len(pieces) > 10
        assert max(map(len, pieces)) < 200_000
        whole = read(tree)
        assert [message["id"] for message in whole["messages"]] == [message.id for message in messages]
        assert whole["messages"][1]["parts"][0]["text"] == messages[1].text


class PatientStore(SqliteStore):
    """A store that counts how often it yields to other tasks in the middle of a read."""

    gave_way = 0

    def _give_way(self) -> None:
        self.gave_way += 1
        super()._give_way()


async def test_others_get_their_turn_while_a_long_tree_is_read(tmp_path: Path) -> None:
    """E2: counted, not timed. No machine makes five thousand messages of rows in a few moments."""
    store = PatientStore(tmp_path / "chat.db")
    async with Runtime(store, model=ScriptedModel([])) as runtime:
        await store.add_conversation(*long(5000))
        assert len((await Trees(runtime).read("conv_1")).messages) == 5000
        assert store.gave_way > 5


async def test_a_tree_in_the_middle_of_a_turn_has_what_is_published_and_no_more(tmp_path: Path) -> None:
    """E2, P6: with its question."""
    script = [calls("add", a=1, b=2), says("3")]
    async with Runtime(tmp_path / "chat.db", model=ScriptedModel(script), tools=[add]) as runtime:
        chat = await runtime.conversation()
        turn = await chat.send("go")
        assert await turn.reached("waiting")
        tree = read(await Trees(runtime).read(chat.id))
        assert [(one["id"], one["state"]) for one in tree["turns"]] == [(turn.id, "waiting")]
        assert [question["id"] for question in tree["questions"]] == [turn.question]
        assert tree["messages"][-1]["parts"][0]["state"] == "asked"
        assert tree["conversation"]["waiting"] == 1
        await turn.cancel()
        await turn.result()
        tree = read(await Trees(runtime).read(chat.id))
        assert (tree["turns"], tree["questions"], tree["conversation"]["live"]) == ([], [], False)


class GoneAtTheRequest(SqliteStore):
    """A store that refuses to store that a request was built."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.refused = asyncio.Event()

    def append(
        self, turn: str, epoch: int, seq: int, change: Change, *, sync: bool = False
    ) -> asyncio.Future[None]:
        if not any("request_built" in fact for fact in change.facts):
            return super().append(turn, epoch, seq, change, sync=sync)
        failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        failed.set_exception(StoreUnavailable("the store", "it is gone for a moment", retryable=True))
        failed.add_done_callback(lambda _: self.refused.set())
        return failed


async def test_a_tree_shows_nothing_of_a_turn_that_its_store_refused(tmp_path: Path) -> None:
    """A reply that began after a failed write is not in the tree. The next owner of the turn starts another
    (E2 × S3)."""
    model = ScriptedModel([says("never ", waits=PATIENCE)])
    store = GoneAtTheRequest(tmp_path / "chat.db")
    async with Runtime(store, model=model) as runtime, asyncio.timeout(PATIENCE):
        turn = await runtime.send("go")
        row = await runtime.store.turn(turn.id)
        live = runtime.bus.here(turn.id)
        assert live is not None
        await store.refused.wait()
        await asyncio.sleep(0)  # and that is heard
        assert live.log.draft is not None
        tree = json.loads((await Trees(runtime).read(row.conversation)).text())
    assert [message["role"] for message in tree["messages"]] == ["user"]
    assert [shown["id"] for shown in tree["turns"]] == [turn.id]
