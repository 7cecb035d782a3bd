"""What a store promises of live events: numbered, for followers in other processes, gone with their turn."""

from __future__ import annotations

from pathlib import Path

from dragoman.errors import NotFound
from dragoman.store.conformance import scene
from dragoman.store.conformance.scene import refused
from dragoman.store.conformance.suite import Suite


class EventConformance(Suite):
    """E2: each once, in order, from where a follower was."""

    async def test_a_follower_reads_on_from_where_it_was(self, tmp_path: Path) -> None:
        """E2, N3: in another process."""
        async with self.opened(tmp_path) as owner, self.opened(tmp_path) as follower:
            await scene.begun(owner)
            assert await follower.events("turn_1") == []
            await owner.put_events("turn_1", [(n, f'{{"n":{n}}}') for n in (3, 1, 2)])
            assert await follower.events("turn_1") == [(n, f'{{"n":{n}}}') for n in (1, 2, 3)]
            await owner.put_events("turn_1", [(4, "four"), (5, "five")])
            assert await follower.events("turn_1", after=3) == [(4, "four"), (5, "five")]
            assert await follower.events("turn_1", after=1, limit=2) == [(2, '{"n":2}'), (3, '{"n":3}')]
            assert await follower.events("turn_1", after=5) == []
            assert await follower.events("turn_2") == []

    async def test_a_number_is_there_once(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await scene.begun(store)
            await store.put_events("turn_1", [(1, "old"), (2, "two")])
            await store.put_events("turn_1", [(1, "new")])
            await store.put_events("turn_1", [])
            assert await store.events("turn_1") == [(1, "new"), (2, "two")]

    async def test_events_go_when_they_are_dropped_and_with_their_conversation(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await scene.begun(store)
            await store.put_events("turn_1", [(1, "one")])
            await store.drop_events("turn_1")
            assert await store.events("turn_1") == []
            await store.put_events("turn_1", [(2, "two")])
            await store.delete_conversation("conv_1")
            assert await store.events("turn_1") == []
            with refused(NotFound, "turn_1"):
                await store.put_events("turn_1", [(3, "three")])

    async def test_events_of_turns_that_ended_are_gone_when_a_store_is_opened(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await scene.begun(store)
            await store.start(scene.start(2, root=True))
            for turn in ("turn_1", "turn_2"):
                await store.put_events(turn, [(1, "one"), (2, "two")])
            await scene.ended(store)
            assert len(await store.events("turn_1")) == 2  # whoever follows reads them to the end
        async with self.opened(tmp_path) as store:
            assert await store.events("turn_1") == []
            assert len(await store.events("turn_2")) == 2
