"""Tests for every store: a process that shows a user's list sees its changes, in any process."""

from __future__ import annotations

import asyncio
from pathlib import Path

from dragoman.conversation.tree import LOCAL, Conversation
from dragoman.messages.ids import new_id
from dragoman.messages.questions import Answer
from dragoman.store.store import ListChange, Store

from . import scene
from .suite import Suite

HERS = ListChange("conv_1", "ada")
_PATIENCE = 60.0  # seconds for a notification from a busy database


class ListConformance(Suite):
    """N3: by the line, and whose it is."""

    async def test_another_process_learns_which_lines_have_changed(self, tmp_path: Path) -> None:
        """Another process sees every change to a visible field, and no notification without one (N3)."""
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as other:
            assert await other.list_changes() == []
            await one.add_conversation(scene.CONVERSATION)
            assert await heard(one, other) == {HERS}
            await one.set_title("conv_1", "new")
            assert await heard(one, other) == {HERS}
            await one.label_conversation("conv_1", pinned=True)
            assert await heard(one, other) == {HERS}
            await one.label_conversation("conv_1", tags=["work"])
            assert await heard(one, other) == {HERS}
            await one.label_conversation("conv_1", pinned=True, tags=["work"])
            assert await heard(one, other) == set()
            await one.change_settings("conv_1", lambda before: {**before, "mode": "off"})
            assert await heard(one, other) == {HERS}
            await one.delete_conversation("conv_1")
            assert await heard(one, other) == {HERS}

    async def test_another_process_learns_what_goes_on_in_a_line(self, tmp_path: Path) -> None:
        """A turn begins and ends, and a question is asked and answered (N3, P6)."""
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as other:
            await other.list_changes()
            await scene.asked(one)
            assert await heard(one, other) == {HERS}
            await one.answer("ask_1", Answer("allow"))
            assert await heard(one, other) == {HERS}
            await one.append("turn_1", 1, 4, scene.change("c"))
            assert await heard(one, other) == set()
            await scene.ended(one, seq=5)
            assert await heard(one, other) == {HERS}

    async def test_who_asks_late_is_told_that_something_was_missed(self, tmp_path: Path) -> None:
        """N3: or everything, but never a part of it for the whole."""
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as other:
            await other.list_changes()
            for number in range(1200):
                await one.add_conversation(Conversation(f"conv_{number}"))
            found = await heard(one, other)
            assert found is None or len(found) == 1200
            await heard(one, other)  # drain pending changes
            await one.set_title("conv_7", "new")
            assert await heard(one, other) == {ListChange("conv_7", LOCAL)}


async def heard(one: Store, other: Store) -> set[ListChange] | None:
    """Return the changes that the other process sees up to now, or None if it missed some."""
    last = ListChange(new_id("conv"), LOCAL)
    await one.add_conversation(Conversation(last.conversation))  # this change comes after all the others
    found: set[ListChange] = set()
    missed = False
    async with asyncio.timeout(_PATIENCE):
        while not missed and last not in found:
            await other.has_new_writes()
            part = await other.list_changes()
            missed = part is None
            found |= set(part or ())
            await asyncio.sleep(0.01)
    return None if missed else found - {last}
