"""Check that ID prefixes work."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.cli.lookup import find_turn, match_id
from dragoman.errors import BadRequest, NotFound
from dragoman.wire.scripted import says
from tests.runtimes import runtime_with


def test_ids_may_be_shortened_as_long_as_one_is_meant() -> None:
    ids = ["conv_abc", "conv_abd", "conv_x"]
    assert match_id("conversation", "conv_x", ids) == match_id("conversation", "x", ids) == "conv_x"
    with pytest.raises(BadRequest, match="2 ids: conv_abc, conv_abd"):
        match_id("conversation", "ab", ids)
    with pytest.raises(NotFound):
        match_id("conversation", "", ids)


async def test_the_latest_turn_is_found_behind_a_conversation_without_any(tmp_path: Path) -> None:
    """An imported conversation is the last used one, and has no turn here (S1)."""
    async with runtime_with(tmp_path, [says("one"), says("two")]) as runtime:
        first = await runtime.send("1")
        await first.result()
        second = await runtime.send("2")
        await second.result()
        where = (await runtime.store.turn(first.id)).conversation
        copy = await runtime.import_conversation(await runtime.export(where))
        assert (await runtime.store.conversations(limit=1))[0].id == copy.id
        assert (await find_turn(runtime.store)).id == second.id
        assert (await find_turn(runtime.store, where)).id == first.id
        assert (await find_turn(runtime.store, first.id[:-3])).id == first.id
        with pytest.raises(NotFound, match="That conversation has no turns here"):
            await find_turn(runtime.store, copy.id)
        with pytest.raises(NotFound, match="Unknown turn or conversation 'nope'"):
            await find_turn(runtime.store, "nope")
