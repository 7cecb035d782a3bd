"""What a store promises of people's lists: whoever shows one learns what becomes of it, in any process."""

from __future__ import annotations

from pathlib import Path

from dragoman.conversation.tree import LOCAL, Conversation
from dragoman.messages.questions import Answer
from dragoman.store.conformance import scene
from dragoman.store.conformance.suite import Suite
from dragoman.store.store import ListChange, Store

HERS = ListChange("conv_1", "ada")


class ListConformance(Suite):
    """N3: by the line, and whose it is."""

    async def test_another_process_learns_which_lines_have_changed(self, tmp_path: Path) -> None:
        """N3: whatever a line shows; and nothing where nothing that it shows has changed."""
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as other:
            assert await changes(other) == set()
            await one.add_conversation(scene.CONVERSATION)
            await one.add_conversation(Conversation("conv_2"))
            assert await changes(other) == {HERS, ListChange("conv_2", LOCAL)}
            await one.set_title("conv_1", "new")
            assert await changes(other) == {HERS}
            await one.label_conversation("conv_1", pinned=True)
            assert await changes(other) == {HERS}
            await one.label_conversation("conv_1", tags=["work"])
            assert await changes(other) == {HERS}
            await one.label_conversation("conv_1", pinned=True, tags=["work"])
            assert await changes(other) == set()
            await one.change_settings("conv_2", lambda before: {**before, "mode": "off"})
            assert await changes(other) == {ListChange("conv_2", LOCAL)}
            await one.delete_conversation("conv_2")
            assert await changes(other) == {ListChange("conv_2", LOCAL)}

    async def test_another_process_learns_what_goes_on_in_a_line(self, tmp_path: Path) -> None:
        """N3, P6: a turn begins and ends, a question is asked and answered."""
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as other:
            assert await changes(other) == set()
            await scene.asked(one)
            assert await changes(other) == {HERS}
            assert await changes(other) == set()
            await one.answer("ask_1", Answer("allow"))
            assert await changes(other) == {HERS}
            await one.append("turn_1", 1, 4, scene.change("c"))
            assert await changes(other) == set()
            await scene.ended(one, seq=5)
            assert await changes(other) == {HERS}

    async def test_who_asks_late_is_told_that_something_was_missed(self, tmp_path: Path) -> None:
        """N3: or everything, but never a part of it for the whole."""
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as other:
            await other.list_changes()
            for number in range(1200):
                await one.add_conversation(Conversation(f"conv_{number}"))
            await other.has_new_writes()
            found = await other.list_changes()
            assert found is None or len(set(found)) == 1200
            await one.set_title("conv_7", "new")
            assert await changes(other) == {ListChange("conv_7", LOCAL)}


async def changes(store: Store) -> set[ListChange]:
    await store.has_new_writes()  # whoever looks at lists has heard that something was written
    found = await store.list_changes()
    assert found is not None
    return set(found)
