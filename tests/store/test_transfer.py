"""S1: a conversation exported and imported again, and printed as Markdown."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from dragoman import Agent, BadRequest, NotFound, StoreUnavailable, tool
from dragoman.conversation.tree import Conversation
from dragoman.messages.message import (
    CallState,
    Error,
    File,
    MadeIn,
    Message,
    Reasoning,
    Summary,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.store.sqlite.store import SqliteStore
from dragoman.store.transfer import import_conversation, markdown, may_see
from dragoman.wire.scripted import calls, says
from tests.runtimes import calls_of, model_of, runtime_with
from tests.store.conformance import scene


@tool(max_lines=2)
def much() -> str:
    """Prints much."""
    return "one\ntwo\nthree\n"


SCRIPT = [calls("much"), says("I read it."), says("I read it again."), says("You are welcome.")]


async def test_a_conversation_goes_on_in_another_store(tmp_path: Path) -> None:
    """A file carries every branch, and the calls with their whole outputs (S1)."""
    async with runtime_with(tmp_path / "here", SCRIPT, tools=[much]) as here:
        chat = await here.conversation(mode="auto", system="Be brief.")
        await (await chat.send("read")).result()
        await (await chat.rerun((await chat.messages())[-1].id)).result()
        await chat.rename("Reading")
        written = json.dumps(await here.export(chat.id))
        leaf = (await chat.messages())[-1].text
    async with runtime_with(tmp_path / "there", SCRIPT[3:], tools=[much]) as there:
        copy = await there.import_conversation(json.loads(written), user="ada")
        info = await copy.info()
        assert (info.title, info.user, info.settings) == ("Reading", "ada", {"system": "Be brief."})
        assert [m.text for m in await copy.messages()] == ["read", leaf]
        tree = await copy.tree()
        assert sorted(m.text for m in tree) == ["", "I read it again.", "I read it.", "read"]
        (call,) = calls_of(list(tree))
        assert call.result is not None
        assert call.result.blob is not None
        assert await there.store.blob(call.result.blob) == b"one\ntwo\nthree\n"
        assert (await (await copy.send("thanks")).result()).text == "You are welcome."
        assert len(model_of(there).requests[0].messages) == 3
        bare = await there.import_conversation({**json.loads(written), "blobs": {}}, user="bob")
        (lost,) = calls_of(list(await bare.tree()))
        assert lost.result is not None
        assert lost.result.blob not in (None, call.result.blob)  # bob never saw those bytes


async def test_a_fork_is_the_path_alone_and_lives_its_own_life(tmp_path: Path) -> None:
    """S1"""
    async with runtime_with(tmp_path, SCRIPT, tools=[much]) as runtime:
        chat = await runtime.conversation()
        await (await chat.send("read")).result()
        path = await chat.messages()
        await (await chat.rerun(path[-1].id)).result()
        spent = await runtime.store.spending()
        fork = await runtime.fork(chat.id, path[-1].id)
        assert await runtime.store.spending() == spent  # a copy costs nothing
        assert [m.text for m in await fork.messages()] == ["read", "", "I read it."]
        assert len(await fork.tree()) == 3
        await (await fork.send("thanks")).result()
        assert len(await chat.tree()) == 4
        await runtime.delete(chat.id)
        assert len(await fork.messages()) == 5
        with pytest.raises(NotFound):
            await runtime.fork(fork.id, path[0].id)


async def test_tags_that_come_along_are_tags(tmp_path: Path) -> None:
    """S1: an import brings none that a person could not have given."""
    async with runtime_with(tmp_path, [says("hi")]) as runtime:
        chat = await runtime.conversation()
        await chat.label(tags=["work", "two  words"])
        data = json.loads(json.dumps(await runtime.export(chat.id)))
        assert data["conversation"]["tags"] == ["work", "two words"]
        data["conversation"]["tags"] += ["", " ", "work ", "x" * 41, *map(str, range(100))]
        copy = await runtime.import_conversation(data)
        tags = (await copy.info()).tags
        assert (tags[:3], len(tags)) == (("work", "two words", "0"), 20)
        with pytest.raises(BadRequest, match="at most 20 tags"):
            await chat.label(tags=[*map(str, range(21))])


async def test_an_export_is_refused_in_words(tmp_path: Path) -> None:
    """S1"""
    async with runtime_with(tmp_path, [says("hi")]) as runtime:
        chat = await runtime.conversation()
        await (await chat.send("hello")).result()
        good = await runtime.export(chat.id)
        assert isinstance(good["messages"], list)
        question, answer = good["messages"]
        about = good["conversation"]
        assert isinstance(answer, dict)
        assert isinstance(about, dict)
        damages: tuple[tuple[dict[str, JsonValue], str], ...] = (
            ({"format": "2"}, "not an export of a conversation"),
            (
                {"messages": [question, {**answer, "role": "system"}]},
                "invalid at messages.1.role: Input",
            ),
            ({"messages": [answer]}, "belongs below"),
            ({"messages": [question, answer, answer]}, "it has a message twice"),
            ({"blobs": {"0" * 64: "eA=="}}, "does not match its name"),
        )
        things: list[Any] = [[], None, "x"]
        for thing in things:
            with pytest.raises(BadRequest, match="not an export of a conversation"):
                await runtime.import_conversation(thing)
        for damage, words in damages:
            with pytest.raises(BadRequest, match=words):
                await runtime.import_conversation({**good, **damage})
        wrong: list[JsonValue] = [
            {"system": 5},
            {"options": "hot"},
            {"private": ["x"]},
            {"private": {"x": 1}},
        ]
        for settings in wrong:
            with pytest.raises(BadRequest, match="invalid: its setting"):
                await runtime.import_conversation({**good, "conversation": {**about, "settings": settings}})
        assert len(await runtime.conversations()) == 1


async def test_what_is_private_stays_so_in_a_conversation_that_is_brought(tmp_path: Path) -> None:
    """S1 × R3: its messages hold the text itself, and the next request would tell it."""
    async with runtime_with(tmp_path, [says("noted"), says("again")]) as runtime:
        chat = await runtime.conversation(private={"phone": "+43 660 1234"}, mode="off")
        await (await chat.send("mine is +43 660 1234")).result()
        brought = await runtime.import_conversation(await runtime.export(chat.id))
        assert (await brought.info()).settings == {"private": {"phone": "+43 660 1234"}}
        await (await brought.send("what is it?")).result()
        assert "660" not in str(model_of(runtime).requests[-1].messages)


# ── Markdown ──────────────────────────────────────────────────────────────────────────────────────

CALL = ToolCall("call_1", "add", {"a": 1}, state=CallState.COMPLETED, result=ToolResult("2"))


def message(*parts: object, role: str = "assistant", model: str | None = "some/model") -> Message:
    return Message("msg_1", "conv_1", None, role, parts, model=model)  # type: ignore[arg-type]


def test_markdown_is_for_reading() -> None:
    """S1"""
    path = [
        message(
            Text("What is 1 + 1?"),
            File("image/png", url="https://example.org/a.png", name="sum"),
            role="user",
        ),
        message(Reasoning("Easy.\nVery."), Text("Let me see."), CALL),
        message(Summary("They add.", None), Text("It is **2**."), Error("gone"), model=None),
    ]
    assert markdown(Conversation("conv_1", title="Sums"), path) == (
        "# Sums\n\n"
        "## Person\n\nWhat is 1 + 1?\n\n[sum](https://example.org/a.png)\n\n"
        '## some/model\n\n> Easy.\n> Very.\n\nLet me see.\n\n**add** `{"a":1}` · completed\n\n```\n2\n```\n\n'
        "## Model\n\n*Summary of what came before:* They add.\n\nIt is **2**.\n\n**Error:** gone\n"
    )


def test_markdown_is_not_broken_by_what_is_in_it() -> None:
    """S1: a fence is longer than any inside of it."""
    tricky = replace(CALL, arguments={"code": "`x` ``y``"}, result=ToolResult("```\ncode\n````"))
    text = markdown(Conversation("conv_1"), [message(tricky)])
    assert text.startswith("# Conversation\n")
    assert "\n`````\n```\ncode\n````\n`````\n" in text
    assert '```{"code":"`x` ``y``"}```' in text
    assert "no result yet" in markdown(Conversation("conv_1"), [message(ToolCall("c", "add"))])
    file = File("text/plain", url="https://example.org/a b(1).txt", name="a [1].txt")
    assert "\n[a \\[1\\].txt](https://example.org/a%20b%281%29.txt)\n" in markdown(
        Conversation("conv_1"), [message(file)]
    )


@pytest.mark.parametrize(
    ("text", "closed"),
    [
        ("See:\n```python\nprint(1)", "print(1)\n```\n\n## Person"),
        ("1. See:\n   ~~~~\n   ```\n   ~~~", "~~~\n   ~~~~\n\n## Person"),
        ("```\na\n```\n\n``` b ``` c", "``` b ``` c\n\n## Person"),
        ("````\n```\n````", "````\n\n## Person"),
    ],
)
def test_code_that_a_text_leaves_open_ends_with_it(text: str, closed: str) -> None:
    """Markdown closes the code of a stopped answer before the user's next message (S1 × T6)."""
    told = markdown(Conversation("conv_1"), [message(Text(text)), message(Text("And now?"), role="user")])
    assert f"{closed}\n\nAnd now?" in told


def test_files_that_a_call_made_are_among_what_is_read() -> None:
    """S1 with M3"""
    result = ToolResult("painted", attachments=(File("image/png", blob="abc", name="cat.png"),))
    told = markdown(Conversation("conv_1"), [message(replace(CALL, result=result))])
    assert told.endswith("```\npainted\n```\n\n[cat.png](abc)\n")


def test_each_program_is_followed_by_its_own_calls() -> None:
    """S1"""
    programs = [ToolCall(name, name) for name in ("first", "second")]
    inner = tuple(
        replace(CALL, id=f"in {one.id}", tool=f"in {one.id}", made_in=MadeIn(one.id, 7, 0))
        for one in programs
    )
    told = markdown(Conversation("conv_1"), [replace(message(*programs), inner=inner)])
    assert re.findall(r"\*\*(.*?)\*\*", told) == ["first", "in first", "second", "in second"]
    assert told.count("· line 7 of the program") == 2


async def test_the_path_to_the_leaf_is_what_is_printed(tmp_path: Path) -> None:
    """S1"""
    async with runtime_with(tmp_path, [says("first"), says("second")]) as runtime:
        chat = await runtime.conversation()
        await (await chat.send("question")).result()
        await (await chat.rerun((await chat.messages())[-1].id)).result()
        text = await runtime.export_markdown(chat.id)
    assert "second" in text
    assert "first" not in text


async def test_the_conversations_of_tasks_come_along(tmp_path: Path) -> None:
    """The conversation of each task follows the call that opened it, also for nested tasks. An older export
    has none (S1)."""
    script = [
        *(calls("task", agent="clerk", request="one"), calls("task", agent="clerk", request="two")),
        *(says("inner"), says("middle"), says("outer")),
    ]
    clerk = Agent(name="clerk", description="Works.")
    async with runtime_with(tmp_path / "here", script, agents=[clerk]) as here:
        chat = await here.conversation()
        await (await chat.send("go")).result()
        exported = json.loads(json.dumps(await here.export(chat.id)))
    async with runtime_with(tmp_path / "there", [], agents=[clerk]) as there:
        copy = await there.import_conversation(exported, user="ada")
        inner, middle, outer = await there.store.within(copy.id)
        assert outer == copy.id
        for within, above, said in ((inner, middle, "inner"), (middle, outer, "middle")):
            info = await there.store.conversation(within)
            (call,) = calls_of((await there.store.messages(above))[0])
            assert (info.parent, info.call, info.user) == (above, call.id, "ada")
            assert [one.text for one in (await there.store.messages(within))[0]][-1] == said
        older = await there.import_conversation({**exported, "tasks": []})
        assert await there.store.within(older.id) == [older.id]
        before = len(await there.store.conversations())
        first, second = exported["tasks"]
        damages: list[JsonValue] = ["x", [{}], [second], [{**first, "messages": 3}]]
        for damage in damages:
            with pytest.raises(BadRequest, match="invalid"):
                await there.import_conversation({**exported, "tasks": damage})
        assert len(await there.store.conversations()) == before
    store = Filling(tmp_path / "full.db")
    await store.open()
    try:
        with pytest.raises(StoreUnavailable, match="full"):
            await import_conversation(store, exported, user="ada", now=1.0)
        assert await store.conversations() == []
    finally:
        await store.close()


async def test_who_reads_what_mentions_a_file_may_see_it(tmp_path: Path) -> None:
    """U2: a message, a result, or a message that is queued. Arguments may contain any text."""
    store = SqliteStore(tmp_path / "chat.db")
    await store.open()
    sent, queued, made, said, steered = [await store.put_blob(bytes([n])) for n in range(5)]
    call = ToolCall(
        "call_1", "add", {"blob": said}, state=CallState.COMPLETED, result=ToolResult("", blob=made)
    )
    messages = [scene.user("msg_1", parts=(File("a/b", blob=sent),)), scene.reply("msg_2", "msg_1", call)]
    await store.add_conversation(replace(scene.CONVERSATION, user="ada"), messages)
    await store.start(scene.start(3, parent="msg_2"))
    waiting = scene.user("msg_4", "msg_3", parts=(File("a/b", blob=queued),))
    assert await store.start(replace(scene.start(4, queue=True), message=waiting)) is None
    await store.post("turn_3", "steer", {"blob": steered})
    every = (sent, queued, made, said, steered)
    assert [await may_see(store, one, "ada") for one in every] == [True, True, True, False, False]
    assert not any([await may_see(store, one, "bob") for one in every])
    assert await store.change_queued("turn_4", [File("a/b", blob=steered)])
    assert [await may_see(store, one, "ada") for one in (queued, steered)] == [False, True]
    again = scene.user("msg_9", None, "conv_2", parts=(File("a/b", blob=sent),))
    await store.add_conversation(Conversation("conv_2", user="ada"), [again])
    with closing(sqlite3.connect(tmp_path / "chat.db")) as db, db:
        db.execute("UPDATE blob_references SET owner = 'gone' WHERE owner = 'msg_1'")
    assert await may_see(store, sent, "ada")
    await store.close()


class Filling(SqliteStore):
    """A store that has room for one conversation."""

    async def add_conversation(self, conversation: Conversation, messages: Sequence[Message] = ()) -> None:
        if await self.conversations():
            raise StoreUnavailable("the disk is full", "make room", retryable=True)
        await super().add_conversation(conversation, messages)


class BetweenReads(SqliteStore):
    """A store to which another user adds a message after every read."""

    async def conversation(self, id: str) -> Conversation:
        found = await super().conversation(id)
        await self._add(id)
        return found

    async def messages(self, conversation: str) -> tuple[list[Message], int]:
        found = await super().messages(conversation)
        await self._add(conversation)
        return found

    async def _add(self, conversation: str) -> None:
        async with runtime_with(self.path.parent, [says("more")], adopts=False) as other:
            await (await (await other.conversation(conversation)).send("and more")).result()


async def test_what_is_exported_while_a_turn_writes_can_be_imported(tmp_path: Path) -> None:
    """S1"""
    async with runtime_with(tmp_path, SCRIPT, tools=[much]) as runtime:
        chat = await runtime.conversation()
        await (await chat.send("go")).result()
    async with runtime_with(tmp_path, [], store=BetweenReads(tmp_path / "chat.db")) as runtime:
        exported = await runtime.export(chat.id)
    async with runtime_with(tmp_path / "other", []) as runtime:
        assert (await (await runtime.import_conversation(exported)).messages())[-1].text
