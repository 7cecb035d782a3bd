"""Tests for every store: a turn's facts are complete, in order, and from one owner."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from dragoman.errors import Fenced, StoreUnavailable
from dragoman.messages.message import CallState, Text, ToolCall, ToolResult
from dragoman.messages.usage import Usage
from dragoman.store.turns import SignalKind

from . import scene
from .scene import refused
from .suite import Suite


class FactConformance(Suite):
    """A fact and the rows written with it are stored together or not at all."""

    # ── facts and what is written with them ─────────────────────────────────────────────────────────

    async def test_facts_are_stored_in_order_with_what_they_change(self, tmp_path: Path) -> None:
        call = ToolCall("call_1", "add", {"a": 1})
        async with self.opened(tmp_path) as store:
            await scene.begun(store)
            reply = scene.reply("msg_r1", "msg_1", Text("let me see"), call, turn="turn_1")
            await store.append(
                "turn_1",
                1,
                2,
                scene.change("a", "b", messages=[reply], leaf=("msg_1", "msg_r1"), state="tool_call"),
            )
            done = replace(call, state=CallState.COMPLETED, result=ToolResult("1", 1), arguments={"a": 2})
            await store.append("turn_1", 1, 4, scene.change("c", calls=[done], state="streaming"))
        async with self.opened(tmp_path) as store:
            assert await store.facts("turn_1") == [scene.fact(name) for name in (1, "a", "b", "c")]
            assert (await store.turn("turn_1")).state == "streaming"
            assert (await store.conversation("conv_1")).leaf == "msg_r1"
            assert await store.message("msg_r1") == replace(reply, parts=(Text("let me see"), done))
            assert (await store.turn_of_call("call_1")).id == "turn_1"

    async def test_a_change_is_written_whole_or_not_at_all(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await scene.replied(store)
            before = await scene.everything(store)
            good = scene.reply("msg_r2", "msg_r1", Text("fine"), turn="turn_1")
            for broken in (
                scene.change("x", messages=[good, scene.reply("msg_r3", "nowhere", Text("lost"))]),
                scene.change("x", messages=[good, replace(good, parts=())]),
                scene.change("x", messages=[good], calls=[ToolCall("nowhere", "add")]),
                scene.change("x", messages=[good], closed={"nowhere": "why"}),
                scene.change(
                    "x", messages=[good], questions=[scene.question("ask_9"), scene.question("ask_9")]
                ),
            ):
                broken.leaf, broken.state, broken.usage = ("msg_r1", "msg_r2"), "finalizing", Usage(1)
                with refused(Exception):
                    await store.append("turn_1", 1, 3, broken)
                assert await scene.everything(store) == before
            await store.append("turn_1", 1, 3, scene.change("x", messages=[good]))
            assert (await store.facts("turn_1"))[-1] == scene.fact("x")

    async def test_only_the_next_fact_can_be_written(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await scene.begun(store)
            for wrong in (1, 3):
                with refused(StoreUnavailable, "turn_1"):
                    await store.append("turn_1", 1, wrong, scene.change("x"))
            assert await store.facts("turn_1") == [scene.fact(1)]

    async def test_writes_keep_their_order_and_fail_together(self, tmp_path: Path) -> None:
        """An append gets its position when it is called, without waiting for the write."""
        async with self.opened(tmp_path) as store:
            await scene.begun(store)
            first = store.append("turn_1", 1, 2, scene.change("a"))
            second = store.append("turn_1", 1, 3, scene.change("b"))
            await second
            assert first.done()
            assert await store.facts("turn_1") == [scene.fact(name) for name in (1, "a", "b")]
            failing = store.append("turn_1", 1, 4, scene.change("c", calls=[ToolCall("nowhere", "add")]))
            after = store.append("turn_1", 1, 5, scene.change("d"))
            with refused(StoreUnavailable):
                await after
            assert failing.exception() is not None
            assert await store.facts("turn_1") == [scene.fact(name) for name in (1, "a", "b")]

    async def test_an_old_owner_cannot_write(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await scene.begun(store)
            await store.release("turn_1", 1)
            assert await store.claim("turn_1") == 2
            before = await scene.everything(store)
            with refused(Fenced, "turn_1", "epoch 1"):
                await store.append(
                    "turn_1", 1, 2, scene.change("x", messages=[scene.reply("msg_r1", "msg_1", Text("late"))])
                )
            assert await scene.everything(store) == before
            await store.append("turn_1", 2, 2, scene.change("y"))

    async def test_the_leaf_follows_only_a_person_who_still_looks(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await store.add_conversation(scene.CONVERSATION, [scene.user("msg_other")])
            await store.start(scene.start(1, root=True))
            await store.set_leaf("conv_1", "msg_other", 1.0)
            reply = scene.reply("msg_r1", "msg_1", Text("hi"), turn="turn_1")
            await store.append("turn_1", 1, 2, scene.change("a", messages=[reply], leaf=("msg_1", "msg_r1")))
            assert (await store.conversation("conv_1")).leaf == "msg_other"

    async def test_a_change_of_messages_or_calls_is_seen_by_the_revision(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            started = await scene.replied(store, ToolCall("call_1", "add"))
            assert await scene.revision(store) == started.revision + 1
            await store.append("turn_1", 1, 3, scene.change("b"))
            assert await scene.revision(store) == started.revision + 1
            await store.append("turn_1", 1, 4, scene.change("c", calls=[ToolCall("call_1", "add", {"a": 2})]))
            messages, revision = await store.messages("conv_1")
            assert revision == await scene.revision(store) == started.revision + 2
            assert messages[-1].calls[0].arguments == {"a": 2}

    async def test_a_result_under_review_is_there_until_it_is_settled(self, tmp_path: Path) -> None:
        held = ToolResult("secret", {"n": 1})
        async with self.opened(tmp_path) as store:
            await scene.replied(store, call := ToolCall("call_1", "add"))
            reviewing = replace(call, state=CallState.REVIEWING)
            await store.append("turn_1", 1, 3, scene.change("b", calls=[reviewing], held={"call_1": held}))
            assert await store.call("call_1") == (reviewing, "conv_1", held)
            assert (await store.message("msg_r1")).calls == (reviewing,)
            settled = replace(call, state=CallState.WITHHELD, result=ToolResult("not shown"))
            await store.append("turn_1", 1, 4, scene.change("c", calls=[settled]))
            assert await store.call("call_1") == (settled, "conv_1", None)

    async def test_what_turns_used_adds_up(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await scene.begun(store)
            await store.append("turn_1", 1, 2, scene.change("a", usage=Usage(10, 5, cost=0.25)))
            await store.append("turn_1", 1, 3, scene.change("b", usage=Usage(1, 1, cost=0.5)))
            assert (await store.conversation("conv_1")).usage == Usage(11, 6, cost=0.75)
            await store.append("turn_1", 1, 4, scene.change("c", usage=Usage(1)))
            assert (await store.conversation("conv_1")).usage == Usage(12, 6, cost=None)

    async def test_a_turn_that_is_over_is_over(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await scene.begun(store)
            await store.post("turn_1", "cancel", {})
            await scene.ended(store, state="cancelled")
            turn = await store.turn("turn_1")
            assert (turn.live, turn.steerable, turn.state) == (False, False, "cancelled")
            assert await store.live_turns() == []
            assert await store.signals("turn_1") == []
            assert await store.turns_with_signals() == []
            assert await store.claim("turn_1") is None
            kinds: tuple[SignalKind, ...] = ("steer", "cancel", "result", "answer", "follow")
            for kind in kinds:
                assert not await store.post("turn_1", kind, {})

    # ── owners ──────────────────────────────────────────────────────────────────────────────────────

    async def test_a_turn_is_taken_only_from_an_owner_that_is_gone(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as second:
            async with self.opened(tmp_path) as first:
                await scene.begun(first)
                assert await second.claim("turn_1") is None
                assert await first.claim("turn_1") is None
            assert await second.claim("turn_1") == 2
            taken = await second.turn("turn_1")
            assert (taken.epoch, taken.owner is not None) == (2, True)
            async with self.opened(tmp_path) as third:
                assert await third.claim("turn_1") is None
                await second.release("turn_1", 1)  # an old epoch leaves nothing
                assert await third.claim("turn_1") is None
                await second.release("turn_1", 2)
                assert (await third.turn("turn_1")).owner is None
                assert await third.claim("turn_1") == 3
            assert await second.facts("turn_1") == [scene.fact(1)]

    async def test_of_two_that_take_a_turn_one_gets_it(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as other:
            await scene.begun(one)
            await one.release("turn_1", 1)
            epochs = await asyncio.gather(one.claim("turn_1"), other.claim("turn_1"))
            assert sorted(epochs, key=str) == [2, None]

    async def test_it_is_known_whether_anybody_runs_a_turn(self, tmp_path: Path) -> None:
        """A turn without an owner, or with a dead one, is abandoned. A finished turn is not (T14)."""
        async with self.opened(tmp_path) as store:
            await scene.begun(store)
            async with self.opened(tmp_path) as other:
                assert [await one.is_abandoned("turn_1") for one in (store, other)] == [False, False]
            await store.release("turn_1", 1)
            assert await store.is_abandoned("turn_1")
            assert await store.claim("turn_1") == 2
            assert not await store.is_abandoned("turn_1")
        async with self.opened(tmp_path) as store:  # a later process
            assert await store.is_abandoned("turn_1")
            assert [turn.id for turn in await store.live_turns("conv_1")] == ["turn_1"]
            assert await store.live_turns("conv_2") == []
            assert await store.claim("turn_1") == 3
            await scene.ended(store, epoch=3)
            assert not await store.is_abandoned("turn_1")
            assert await store.live_turns("conv_1") == []

    async def test_what_waits_for_a_person_is_not_looked_through_until_it_is_answered(
        self, tmp_path: Path
    ) -> None:
        """A follow signal does not count as an answer, and a cancel does. A caller can still list every turn
        (T14, N2)."""
        async with self.opened(tmp_path) as store:
            await scene.begun(store)
            await store.release("turn_1", 1)

            async def found(*, waiting: bool) -> list[str]:
                return [turn.id for turn in await store.abandoned_turns(waiting=waiting)]

            assert await found(waiting=False) == ["turn_1"]
            await store.append("turn_1", 1, 2, scene.change("a", state="waiting"))
            assert (await found(waiting=False), await found(waiting=True)) == ([], ["turn_1"])
            await store.post("turn_1", "follow", {})
            assert await found(waiting=False) == []
            await store.post("turn_1", "cancel", {})
            assert await found(waiting=False) == ["turn_1"]
            assert await store.claim("turn_1") == 2
            assert await found(waiting=False) == []

    async def test_what_waits_for_a_tool_that_is_gone_does_not_only_wait(self, tmp_path: Path) -> None:
        """An approval request outlives its process, but a question from a running tool does not (S3)."""
        async with self.opened(tmp_path) as store:
            await scene.asked(store)
            (question,) = await store.questions()
            call, _, _ = await store.call(question.call)
            await store.release("turn_1", 1)
            await store.append("turn_1", 1, 4, scene.change("c", state="waiting"))
            assert await store.abandoned_turns(waiting=False) == []
            running = replace(call, state=CallState.RUNNING)
            await store.append("turn_1", 1, 5, scene.change("d", calls=[running], state="waiting"))
            assert [turn.id for turn in await store.abandoned_turns(waiting=False)] == ["turn_1"]
            settled = replace(call, state=CallState.INTERRUPTED, result=ToolResult("nobody knows"))
            closed = {question.id: "it is gone"}
            last = scene.change("e", calls=[settled], closed=closed, state="waiting")
            await store.append("turn_1", 1, 6, last)
            assert await store.abandoned_turns(waiting=False) == []
