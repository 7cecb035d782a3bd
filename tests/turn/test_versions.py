"""T10: rerun and edit make new versions, and overwrite nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman import (
    BadRequest,
    ProviderError,
    Runtime,
)
from dragoman.turn.api.conversation_handle import ConversationHandle
from dragoman.wire.scripted import calls, fails, says
from tests.runtimes import add, model_of, runtime_with


async def _two_answers(runtime: Runtime) -> ConversationHandle:
    chat = await runtime.conversation()
    await (await chat.send("question")).result()
    return chat


async def test_rerun_makes_a_new_version_of_an_answer(tmp_path: Path) -> None:
    """T10"""
    async with runtime_with(tmp_path, [says("first"), says("second")]) as runtime:
        chat = await _two_answers(runtime)
        old = (await chat.messages())[-1]
        await (await chat.rerun(old.id)).result()
        tree = await chat.tree()
        assert [tree[id].text for id in tree.versions(old.id)] == ["first", "second"]
        assert [m.text for m in await chat.messages()] == ["question", "second"]


async def test_rerun_puts_an_answer_where_none_follows(tmp_path: Path) -> None:
    """T10"""
    async with runtime_with(tmp_path, [fails("down"), says("at last")]) as runtime:
        chat = await runtime.conversation()
        with pytest.raises(ProviderError):
            await (await chat.send("question")).result()
        question = (await chat.messages())[0]
        await (await chat.rerun(question.id)).result()
        assert (await chat.messages())[-1].text == "at last"


async def test_rerun_of_a_turn_with_tools_begins_at_its_question(tmp_path: Path) -> None:
    """T10"""
    script = [calls("add", a=1, b=1), says("2"), says("two")]
    async with runtime_with(tmp_path, script, tools=[add]) as runtime:
        chat = await _two_answers(runtime)
        await (await chat.rerun((await chat.messages())[-1].id)).result()
        assert len(model_of(runtime).requests[-1].messages) == 1
        assert [m.text for m in await chat.messages()] == ["question", "two"]


async def test_edit_makes_a_new_version_of_what_a_person_said(tmp_path: Path) -> None:
    """T10"""
    async with runtime_with(tmp_path, [says("first"), says("second")]) as runtime:
        chat = await _two_answers(runtime)
        old = (await chat.messages())[0]
        await (await chat.edit(old.id, "better question")).result()
        tree = await chat.tree()
        assert [tree[id].text for id in tree.versions(old.id)] == ["question", "better question"]
        assert len(tree) == 4
        await chat.move_to(old.id)
        assert [m.text for m in await chat.messages()] == ["question", "first"]
        with pytest.raises(BadRequest, match="Rerun it instead"):
            await chat.edit((await chat.messages())[-1].id, "x")
