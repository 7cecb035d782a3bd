"""Tests for every store: live events have numbers, reach followers in other processes, and go with their
turn."""

from __future__ import annotations

import asyncio
from pathlib import Path

from dragoman.store.store import Store, StoredEvent
from tests.patience import PATIENCE

from . import scene
from .suite import Suite

OWNED = {"turn_1": 1, "turn_2": 1}


class EventConformance(Suite):
    """E2: each once, in order, from where a follower was."""

    async def test_a_follower_reads_on_from_where_it_was(self, tmp_path: Path) -> None:
        """E2, N3: in another process."""
        async with self.opened(tmp_path) as owner, self.opened(tmp_path) as follower:
            await scene.begun(owner)
            assert await follower.events({"turn_1": 0}) == []
            await owner.put_events(events("turn_1", 3, 1, 2), OWNED)
            assert await follower.events({"turn_1": 0}) == events("turn_1", 1, 2, 3)
            await owner.put_events(events("turn_1", 4, 5), OWNED)
            assert await follower.events({"turn_1": 3}) == events("turn_1", 4, 5)
            assert await follower.events({"turn_1": 1}, limit=2) == events("turn_1", 2, 3)
            assert await follower.events({"turn_1": 5}) == []
            assert await follower.events({"turn_2": 0}) == await follower.events({}) == []

    async def test_events_of_many_turns_are_written_and_read_at_once(self, tmp_path: Path) -> None:
        """Each turn's events are read from a separate number on (N3)."""
        async with self.opened(tmp_path) as owner, self.opened(tmp_path) as follower:
            await scene.begun(owner)
            await owner.start(scene.start(2, root=True))
            await owner.put_events([*events("turn_2", 1, 2), *events("turn_1", 1, 2, 3)], OWNED)
            found = await follower.events({"turn_1": 2, "turn_2": 0, "turn_9": 0})
            assert found == [*events("turn_1", 3), *events("turn_2", 1, 2)]

    async def test_who_waits_for_events_hears_of_them_in_time(self, tmp_path: Path) -> None:
        """N3: and of none after a while."""
        async with (
            self.opened(tmp_path) as owner,
            self.opened(tmp_path) as follower,
            asyncio.timeout(PATIENCE),
        ):
            await scene.begun(owner)
            await follower.wait_for_events(0.05)
            await owner.put_events(events("turn_1", 1), OWNED)
            await follower.wait_for_events(0.05)
            await follower.wait_for_writes(0.05)
            assert await follower.events({"turn_1": 0}) == events("turn_1", 1)

    async def test_who_does_not_own_a_turn_any_more_tells_nothing_of_it(self, tmp_path: Path) -> None:
        """E2, N2: else one follower would hear it before the new owner's events, and another never."""
        async with self.opened(tmp_path) as old:
            await scene.begun(old)
        async with self.opened(tmp_path) as new, self.opened(tmp_path) as old:
            assert await new.claim("turn_1") == 2
            await old.put_events(events("turn_1", 1), {"turn_1": 1})
            await new.put_events(events("turn_1", 2), {"turn_1": 2})
            assert await old.events({"turn_1": 0}) == events("turn_1", 2)

    async def test_a_number_is_there_once(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await scene.begun(store)
            await store.put_events(events("turn_1", 1, 2), OWNED)
            await store.put_events([StoredEvent("turn_1", 1, "new")], OWNED)
            await store.put_events([], OWNED)
            assert [one.body for one in await store.events({"turn_1": 0})] == ["new", "body of 2"]

    async def test_events_go_when_they_are_dropped_and_with_their_conversation(self, tmp_path: Path) -> None:
        """The store keeps no event of a deleted turn, whatever else the same call writes."""
        async with self.opened(tmp_path) as store:
            await scene.begun(store)
            await store.put_events(events("turn_1", 1), OWNED)
            await store.drop_events("turn_1")
            assert await store.events({"turn_1": 0}) == []
            await store.put_events(events("turn_1", 2), OWNED)
            await store.delete_conversation("conv_1")
            assert await store.events({"turn_1": 0}) == []
            await store.put_events(events("turn_1", 3), OWNED)
            assert await store.events({"turn_1": 0}) == []

    async def test_events_of_turns_that_ended_are_gone_when_a_store_is_opened(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await scene.begun(store)
            await store.start(scene.start(2, root=True))
            await store.put_events([*events("turn_1", 1, 2), *events("turn_2", 1, 2)], OWNED)
            await scene.ended(store)
            assert await count(store, "turn_1") == 2  # a follower reads them to the end
        async with self.opened(tmp_path) as store:
            assert await count(store, "turn_1") == 0
            assert await count(store, "turn_2") == 2


def events(turn: str, *numbers: int) -> list[StoredEvent]:
    return [StoredEvent(turn, number, f"body of {number}") for number in numbers]


async def count(store: Store, turn: str) -> int:
    return len(await store.events({turn: 0}))
