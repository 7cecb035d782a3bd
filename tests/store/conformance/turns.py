"""Tests for every store: where and in which order turns start."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path

from dragoman.conversation.tree import Conversation
from dragoman.errors import KeyReused, NotFound, TurnBusy
from dragoman.messages.message import Text
from dragoman.store.store import Rating, SendKey, SentBefore, Start, Started

from . import scene
from .scene import refused
from .suite import Suite


class TurnConformance(Suite):
    """A branch runs one turn at a time, and refuses or queues other sends."""

    async def test_a_rating_is_kept_until_its_user_changes_it(self, tmp_path: Path) -> None:
        """Each user has one rating per answer, and none for a deleted conversation (Q1)."""
        bad, good = Rating("turn_1", "ada", "bad", "too long", 1.0), Rating("turn_1", "bob", "good", at=2.0)
        async with self.opened(tmp_path) as store:
            await scene.begun(store)
            await scene.ended(store)
            for rating in (replace(bad, note=""), good, bad):
                await store.rate(rating)
            with refused(NotFound):
                await store.rate(replace(bad, turn="turn_0"))
        async with self.opened(tmp_path) as store:
            assert await store.ratings() == await store.ratings("conv_1") == [bad, good]
            assert await store.ratings("conv_0") == []
            await store.remove_rating("turn_1", "bob")
            assert await store.ratings() == [bad]
            await store.delete_conversation("conv_1")
            assert await store.ratings() == []

    # ── a turn begins ───────────────────────────────────────────────────────────────────────────────

    async def test_a_turn_begins_with_its_message_at_the_leaf(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            started = await scene.begun(store)
            turn = started.turn
            assert started.message == scene.user("msg_1", turn="turn_1")
            assert started.revision == await scene.revision(store)
            assert (turn.id, turn.conversation, turn.message) == ("turn_1", "conv_1", "msg_1")
            assert (turn.state, turn.live, turn.steerable, turn.epoch) == ("preparing", True, True, 1)
            assert turn.owner is not None
            assert await store.turn("turn_1") == turn
            assert await store.live_turns() == await store.turns("conv_1") == [turn]
            assert await store.facts("turn_1") == [scene.fact(1)]
            assert (await store.conversation("conv_1")).leaf == "msg_1"
            assert started.revision == await scene.revision(store)
            await scene.ended(store)
            second = await store.start(scene.start(2))
            assert second is not None
            assert second.message is not None
            assert second.message.parent == "msg_1"
            assert second.revision > started.revision

    async def test_a_turn_may_begin_anywhere_in_its_own_conversation(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await store.add_conversation(
                scene.CONVERSATION, [scene.user("msg_a"), scene.reply("msg_b", "msg_a", Text("b"))]
            )
            below = await store.start(scene.start(1, parent="msg_b"))
            root = await store.start(scene.start(2, root=True))
            again = await store.start(Start("turn_3", "conv_1", "{}", 1.0, again="msg_a"))
            assert below is not None and root is not None and again is not None  # noqa: PT018 - for the type checker
            assert below.message is not None and root.message is not None  # noqa: PT018
            assert (below.message.parent, root.message.parent) == ("msg_b", None)
            assert (again.message, again.turn.message) == (None, "msg_a")
            assert (await store.conversation("conv_1")).leaf == "msg_a"

    async def test_a_key_is_taken_once_and_with_its_turn(self, tmp_path: Path) -> None:
        """One of several simultaneous sends in two processes starts. A turn that cannot start leaves no key,
        and a key belongs to the conversation's owner."""
        key, now = SendKey("k", "sum", since=0.0), time.time()
        async with self.opened(tmp_path) as store, self.opened(tmp_path) as other:
            missing = replace(scene.start(9, parent="msg_9"), key=key, opens=scene.CONVERSATION)
            with refused(NotFound, "msg_9"):
                await store.start(missing)
            assert await store.conversations() == []
            assert await store.turn_of_key("ada", key) is None
            starts = []
            for number, node in enumerate((store, other, store, other), 1):
                opens = replace(scene.CONVERSATION, id=f"conv_{number}")
                message = scene.user(f"msg_{number}", conversation=opens.id)
                start = Start(f"turn_{number}", opens.id, "{}", now, message, key=key, opens=opens)
                starts.append(node.start(start))
            done = await asyncio.gather(*starts, return_exceptions=True)
            (begun,) = [one for one in done if isinstance(one, Started)]
            assert {one.turn for one in done if isinstance(one, SentBefore)} == {begun.turn.id}
            assert len(await store.conversations()) == 1
            assert await other.turn_of_key("ada", key) == begun.turn.id
            assert await other.turn_of_key("bob", key) is None
            assert await other.turn_of_key("ada", replace(key, since=now + 1)) is None
            with refused(KeyReused, "'k'"):
                await other.turn_of_key("ada", replace(key, sum="other"))

    async def test_a_turn_that_cannot_begin_stores_nothing(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await store.add_conversation(scene.CONVERSATION)
            await store.add_conversation(Conversation("conv_2"), [scene.user("msg_2", conversation="conv_2")])
            with refused(NotFound, "msg_2"):
                await store.start(scene.start(1, parent="msg_2"))
            with refused(NotFound, "nowhere"):
                await store.start(scene.start(1, parent="nowhere"))
            with refused(NotFound, "nowhere"):
                await store.start(Start("turn_1", "conv_1", "{}", 1.0, again="nowhere"))
            assert await store.live_turns() == []
            assert (await store.messages("conv_1"))[0] == []

    async def test_a_branch_that_runs_is_busy_and_another_is_not(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await scene.replied(store)
            for busy in (
                scene.start(2),
                scene.start(2, parent="msg_1"),
                scene.start(2, parent="msg_r1"),
                Start("turn_2", "conv_1", "{}", 1.0, again="msg_1"),
                Start("turn_2", "conv_1", "{}", 1.0, again="msg_1", queue=True),
            ):
                with refused(TurnBusy, "turn_1"):
                    await store.start(busy)
            assert [turn.id for turn in await store.turns("conv_1")] == ["turn_1"]
            assert await store.start(scene.start(2, root=True)) is not None
            with refused(TurnBusy, "turn_2"):
                await store.start(scene.start(3))

    async def test_an_answer_is_made_beside_another_and_the_leaf_stays(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await scene.replied(store)
            leaf = (await store.conversation("conv_1")).leaf
            beside = Start("turn_2", "conv_1", "{}", 1.0, again="msg_1", parallel=True)
            assert await store.start(beside) is not None
            assert [turn.message for turn in await store.live_turns("conv_1")] == ["msg_1", "msg_1"]
            assert (await store.conversation("conv_1")).leaf == leaf
            with refused(TurnBusy, "turn_1"):
                await store.start(scene.start(3))

    async def test_of_two_that_begin_at_once_one_is_refused(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as other:
            await scene.begun(one)
            await scene.ended(one)
            outcomes = await asyncio.gather(
                one.start(scene.start(2)), other.start(scene.start(3)), return_exceptions=True
            )
            assert {type(outcome) for outcome in outcomes} == {Started, TurnBusy}

    # ── the queue ───────────────────────────────────────────────────────────────────────────────────

    async def test_queued_turns_begin_one_after_another_where_the_one_before_ended(
        self, tmp_path: Path
    ) -> None:
        async with self.opened(tmp_path) as store:
            await scene.replied(store)
            assert await store.start(scene.start(2, queue=True)) is None
            assert await store.start(scene.start(3, queue=True)) is None
            assert await store.is_queued("turn_2")
            assert await store.queue() == []
            with refused(NotFound):
                await store.turn("turn_2")
            await store.renew_queued("conv_9", lambda _: "not there")
            await store.renew_queued("conv_1", lambda fact: fact.replace("1", "11"))
            await store.renew_queued("conv_1", lambda fact: fact.replace("11", "1"))
        async with self.opened(tmp_path) as store:  # a queue outlives its process
            await store.claim("turn_1")
            await scene.ended(store, epoch=2, seq=3)
            assert await store.queue() == ["turn_2", "turn_3"]
            second = await store.start_queued("turn_2")
            assert second is not None
            assert second.message is not None
            assert (second.message.id, second.message.parent) == ("msg_2", "msg_r1")
            assert await store.facts("turn_2") == [scene.fact(1)]
            assert await store.start_queued("turn_2") is None
            assert await store.queue() == []
            await scene.ended(store, 2)
            assert await store.queue() == ["turn_3"]
            third = await store.start_queued("turn_3")
            assert third is not None
            assert third.message is not None
            assert third.message.parent == "msg_2"

    async def test_a_queued_turn_that_finds_its_branch_busy_waits_again(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await scene.replied(store)
            await store.start(scene.start(2, queue=True))
            await scene.ended(store, seq=3)
            assert await store.start(scene.start(3)) is not None  # another send was faster
            assert await store.start_queued("turn_2") is None
            assert await store.is_queued("turn_2")
            assert await store.queue() == []
            await scene.ended(store, 3)
            assert await store.queue() == ["turn_2"]
            started = await store.start_queued("turn_2")
            assert started is not None
            assert started.message is not None
            assert started.message.parent == "msg_3"

    async def test_nobody_passes_those_who_wait_in_line(self, tmp_path: Path) -> None:
        """A later turn cannot pass one that is queued before it, neither while the next one has not started,
        nor when a caller starts it early (T4)."""
        async with self.opened(tmp_path) as store:
            await scene.replied(store)
            for number in (2, 3):
                await store.start(scene.start(number, queue=True))
            await scene.ended(store, seq=3)
            assert await store.start(scene.start(4, queue=True)) is None
            assert await store.queue() == ["turn_2", "turn_3", "turn_4"]
            assert await store.start_queued("turn_2") is not None
            assert await store.start_queued("turn_3") is None
            assert [one.turn for one in await store.queued()] == ["turn_3", "turn_4"]
            await scene.ended(store, 2)
            assert await store.start(scene.start(5, queue=True)) is None
            # as a caller does who read the queue while turn_2 was in it
            assert await store.start_queued("turn_4") is None
            assert await store.start_queued("turn_3") is not None
            assert [one.turn for one in await store.queued()] == ["turn_4", "turn_5"]

    async def test_a_queued_message_stays_on_the_branch_it_was_sent_to(self, tmp_path: Path) -> None:
        """The user can have switched to another branch, and stays on it."""
        async with self.opened(tmp_path) as store:
            await store.add_conversation(scene.CONVERSATION, [scene.user("msg_other")])
            await store.start(scene.start(1, root=True))
            await store.start(scene.start(2, queue=True))
            await store.set_leaf("conv_1", "msg_other", 1.0)
            await scene.ended(store)
            started = await store.start_queued("turn_2")
            assert started is not None
            assert started.message is not None
            assert started.message.parent == "msg_1"
            assert (await store.conversation("conv_1")).leaf == "msg_other"

    async def test_what_is_queued_can_be_changed_reordered_and_called_off_until_it_begins(
        self, tmp_path: Path
    ) -> None:
        """T13"""
        async with self.opened(tmp_path) as store:
            await scene.replied(store)
            for number in (2, 3, 4, 5):
                await store.start(scene.start(number, queue=True))
            assert await store.change_queued("turn_3", [Text("another text")])
            await store.reorder_queue("conv_1", ["turn_4", "gone", "turn_3"])
            queued = await store.queued(conversation="conv_1")
            assert [one.turn for one in queued] == ["turn_4", "turn_3", "turn_2", "turn_5"]
            assert [one.message.text for one in queued] == ["hello", "another text", "hello", "hello"]
            assert await store.unqueue("turn_2")
            await store.reorder_queue("conv_2", ["turn_5", "turn_4"])  # another conversation's: nothing to do
            await scene.ended(store, seq=3)
            assert await store.queue() == ["turn_4", "turn_3", "turn_5"]
            assert await store.start_queued("turn_4") is not None
            assert not await store.change_queued("turn_4", [Text("too late")])
            await scene.ended(store, 4)
            assert await store.queue() == ["turn_3", "turn_5"]
            begun = await store.start_queued("turn_3")
            assert begun is not None
            assert begun.message is not None
            assert (begun.message.id, begun.message.text) == ("msg_3", "another text")
