"""The Conversations API, by OpenAI's own SDK."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dragoman.server.auth import key_hash
from dragoman.wire.scripted import says
from tests.later import Later
from tests.protocols.openai.callers import MODEL, called, client_of
from tests.runtimes import model_of

if TYPE_CHECKING:
    import openai
else:
    openai = Later("openai")

pytestmark = pytest.mark.slow
CALL = {"type": "function_call", "call_id": "c", "name": "add", "arguments": '{"a": "ä"}'}
ITEMS: list[Any] = [
    {"role": "user", "content": "Hello."},
    CALL,
    {"type": "function_call_output", "call_id": "c", "output": "3"},
    {"role": "assistant", "content": "It is 3."},
]


async def test_a_conversation_begins_with_items_and_goes_on(tmp_path: Path) -> None:
    """F1"""
    async with called(tmp_path, [says("Second.")]) as (ai, site):
        begun = await ai.conversations.create(items=ITEMS)
        answer = await ai.responses.create(model=MODEL, input="And?", conversation=begun.id)
        listed = await ai.conversations.items.list(begun.id, order="asc")
        kinds = [item.type for item in listed.data]
        assert '"ä"' in repr(listed.data[1])
        last = await ai.conversations.items.retrieve(listed.data[-1].id, conversation_id=begun.id)
        page = await ai.conversations.items.list(begun.id, limit=2)
        pages = [item.id async for item in page]
        (request,) = model_of(site.runtime).requests
        assert (await ai.conversations.retrieve(begun.id)).id == begun.id
        assert (await ai.conversations.delete(begun.id)).deleted
        assert await site.runtime.conversations() == []
    assert (answer.output_text, answer.conversation and answer.conversation.id) == ("Second.", begun.id)
    assert kinds == ["message", "function_call", "function_call_output", *["message"] * 3]
    assert last == listed.data[-1]
    assert pages == [item.id for item in reversed(listed.data)]
    assert "It is 3." in repr(request.messages)


async def test_metadata_of_a_conversation_is_kept_and_replaced(tmp_path: Path) -> None:
    """F1"""
    async with called(tmp_path, [says("Hi.")]) as (ai, site):
        begun = await ai.conversations.create(metadata={"topic": "x", "owner": "me"})
        changed = await ai.conversations.update(begun.id, metadata={"topic": "y"})
        await ai.responses.create(model=MODEL, input="Hello", conversation=begun.id)
        assert begun.metadata == {"topic": "x", "owner": "me"}
        assert changed.metadata == (await ai.conversations.retrieve(begun.id)).metadata == {"topic": "y"}
        (request,) = model_of(site.runtime).requests
        assert "topic" not in repr(request)


async def test_what_a_tree_cannot_do_is_refused_in_openais_form(tmp_path: Path) -> None:
    """F3"""
    async with called(tmp_path, []) as (ai, site):
        begun = await ai.conversations.create(items=ITEMS)
        item = (await ai.conversations.items.list(begun.id)).data[0].id
        refused = [
            ai.conversations.create(items=[{"role": "system", "content": "Be brief."}]),
            ai.conversations.create(items=[{**CALL, "type": "function_call"}]),
            ai.conversations.items.create(begun.id, items=ITEMS),
            ai.conversations.items.delete(item, conversation_id=begun.id),
        ]
        for one in refused:
            with pytest.raises(openai.BadRequestError):
                await one
        assert [one.id for one in await site.runtime.conversations()] == [begun.id]


async def test_somebody_elses_is_not_there(tmp_path: Path) -> None:
    """U2"""
    async with called(tmp_path, []) as (ai, site):
        begun = await ai.conversations.create(items=ITEMS)
        await site.runtime.store.add_person("ada", key_hash("key of ada"), 1.0)
        async with client_of(site, "key of ada") as ada:
            for asked in (
                ada.conversations.retrieve(begun.id),
                ada.conversations.items.list(begun.id),
                ada.conversations.delete(begun.id),
                ada.conversations.items.delete("x", conversation_id=begun.id),
                ai.conversations.items.list(begun.id, after="msg_x"),
                ai.conversations.items.retrieve("msg_x", conversation_id=begun.id),
            ):
                with pytest.raises(openai.NotFoundError):
                    await asked
        assert (await ai.conversations.retrieve(begun.id)).id == begun.id
