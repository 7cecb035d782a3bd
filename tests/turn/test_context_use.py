"""The report shows what fills a model's context (O3)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest

from dragoman import Runtime, ScriptedModel, tool
from dragoman.errors import ProviderError
from dragoman.messages.events import Event, ItemAdded
from dragoman.messages.request import Request
from dragoman.wire.scripted import calls, fails, says
from tests.runtimes import runtime_with


@tool
def fetch(letters: int) -> str:
    """Fetch much."""
    return "x" * letters


async def test_who_brought_how_much_of_the_last_request(tmp_path: Path) -> None:
    """The shares describe the sent request and add up to the counted tokens (O3)."""
    script = [calls("fetch", letters=8000), says("ok"), says("again")]
    async with runtime_with(
        tmp_path, script, tools=[fetch], context=9000, system="Be short. " * 40
    ) as runtime:
        chat = await runtime.conversation()
        first = await chat.send("word " * 100)
        await first.result()
        use = await first.context()
        assert (use.turn, use.model, use.context, use.counted) == (first.id, "scripted/model", 9000, True)
        assert [share.tokens for share in use.shares] == sorted(
            (one.tokens for one in use.shares), reverse=True
        )
        assert (use.shares[0].kind, use.shares[0].name) == ("calls", "fetch")
        kinds = {(one.kind, one.name) for one in use.shares}
        assert {("prompt", "settings"), ("tools", "fetch"), ("person", "")} <= kinds
        assert ("answers", "") not in kinds  # the reply was not part of the request
        assert abs(sum(one.tokens for one in use.shares) - use.used) <= len(use.shares)

        without = await chat.send("and?", history=0, tools={"tools": False})
        await without.result()
        kinds = {(one.kind, one.name) for one in (await without.context()).shares}
        assert ("calls", "fetch") not in kinds
        assert ("tools", "fetch") not in kinds


class Searches(ScriptedModel):
    """A model whose first reply is nothing but a search by its provider."""

    async def stream(self, request: Request, reply: str) -> AsyncGenerator[Sequence[Event], None]:
        if not self.requests:
            yield (ItemAdded("search", "It searched for cats."),)
        async for events in super().stream(request, reply):
            yield events


async def test_an_item_of_a_provider_counts_as_an_answer(tmp_path: Path) -> None:
    """O3"""
    async with Runtime(tmp_path / "chat.db", model=Searches([says(""), says("ok")])) as runtime:
        chat = await runtime.conversation()
        await (await chat.send("cats?")).result()
        turn = await chat.send("and?")
        await turn.result()
        assert "answers" in [share.kind for share in (await turn.context()).shares]


async def test_before_a_reply_it_is_estimated(tmp_path: Path) -> None:
    """Failed turns, and models with an unknown limit, have an estimate too (O3 × T1)."""
    async with runtime_with(tmp_path, [fails("out of order")]) as runtime:
        turn = await runtime.send("word " * 400)
        with pytest.raises(ProviderError):
            await turn.result()
        use = await turn.context()
        assert (use.context, use.counted) == (None, False)
        assert 500 <= use.used <= 700
        assert use.shares[0].kind == "person"
