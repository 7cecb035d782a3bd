"""Tests for every store: if a row cannot be read, the rest can, and the row can be removed.

A row is unreadable if its disk failed or a newer version wrote it. Both look the same from here.
"""

from __future__ import annotations

import json
from pathlib import Path

from dragoman.conversation.tree import Conversation, Tree
from dragoman.errors import Unreadable
from dragoman.messages.message import CallState, Error, Message, Text, ToolCall, ToolResult
from dragoman.messages.questions import Answer, Grant, Rule
from dragoman.messages.usage import Usage
from dragoman.store.conversations import Busy

from . import scene
from .scene import refused
from .suite import Suite


def unreadable(message: Message, noun: str, id: str) -> bool:
    """Return whether the message reports this unreadable row, and nothing else."""
    (part,) = message.parts
    return (
        isinstance(part, Error) and part.kind == "unreadable" and f"cannot read {noun} {id}" in part.message
    )


class DamageConformance(Suite):
    """One unreadable row stops no other."""

    async def test_a_message_that_cannot_be_read_has_its_place_in_the_tree(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await store.add_conversation(
                scene.CONVERSATION,
                [scene.user("msg_1"), scene.user("msg_2", "msg_1"), scene.user("msg_3", "msg_2")],
            )
            await self.damage(tmp_path, "message", "msg_2")
            messages, _ = await store.messages("conv_1")
            assert [message.id for message in Tree(messages).path("msg_3")] == ["msg_1", "msg_2", "msg_3"]
            assert [message.text for message in messages] == ["hello", "", "hello"]
            assert unreadable(messages[1], "message", "msg_2")
            assert messages[1].role == "user"
            assert await store.message("msg_2") == messages[1]
            assert [found.message for found in await store.search("hello")][-1] == "msg_1"
            assert await store.start(scene.start(9, parent="msg_3")) is not None

    async def test_a_call_that_cannot_be_read_is_missing_from_its_message_alone(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            fine = ToolCall("call_2", "add", {"a": 1})
            await scene.replied(store, Text("let me see"), ToolCall("call_1", "add"), fine)
            await self.damage(tmp_path, "call", "call_1")
            for message in ((await store.messages("conv_1"))[0][-1], await store.message("msg_r1")):
                assert message.text == "let me see"
                assert message.calls == (fine,)
                assert any(isinstance(part, Error) and "call_1" in part.message for part in message.parts)
            with refused(Unreadable, "call call_1"):
                await store.call("call_1")
            done = ToolCall("call_1", "add", state=CallState.FAILED, result=ToolResult("nobody knows"))
            await store.append("turn_1", 1, 3, scene.change("b", calls=[done]))
            assert await store.call("call_1") == (done, "conv_1", None)

    async def test_a_conversation_that_cannot_be_read_is_listed_and_nothing_begins_in_it(
        self, tmp_path: Path
    ) -> None:
        """Nothing runs under settings that cannot be read (P9)."""
        async with self.opened(tmp_path) as store:
            await scene.replied(store)
            await scene.ended(store, seq=3)
            await store.add_conversation(Conversation("conv_2", title="fine", user="ada"))
            await self.damage(tmp_path, "conversation", "conv_1")
            listed = {one.id: one for one in await store.conversations(user="ada")}
            assert listed["conv_2"].title == "fine"
            assert listed["conv_1"].title == "untitled (cannot be read)"
            assert (listed["conv_1"].leaf, listed["conv_1"].settings) == ("msg_r1", {})
            assert len((await store.messages("conv_1"))[0]) == 2
            assert len(await store.search("hello")) == 2
            for refusal in (
                store.conversation("conv_1"),
                store.start(scene.start(2)),
                store.change_settings("conv_1", dict),
            ):
                with refused(Unreadable, "conversation conv_1"):
                    await refusal

    async def test_a_turn_ends_also_where_its_conversation_cannot_be_read(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await scene.asked(store)
            await self.damage(tmp_path, "conversation", "conv_1")
            await self.damage(tmp_path, "question", "ask_1")
            last = scene.change("end", closed={"ask_1": "over"}, usage=Usage(1), live=False, steerable=False)
            await store.append("turn_1", 1, 4, last)
            assert await store.live_turns() == []
            assert (await store.busy(["conv_1"]))["conv_1"] == Busy()

    async def test_a_turn_whose_facts_cannot_be_read_says_so_and_is_listed(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await scene.replied(store)
            await store.start(scene.start(2, root=True))
            await self.damage(tmp_path, "fact", "turn_1")
            with refused(Unreadable, "turn turn_1", "fact 2"):
                await store.facts("turn_1")
            assert await store.facts("turn_2") == [scene.fact(1)]
            assert {turn.id for turn in await store.live_turns()} == {"turn_1", "turn_2"}
            assert await store.post("turn_1", "cancel", {})

    async def test_a_question_that_cannot_be_read_is_in_no_list_and_takes_no_answer(
        self, tmp_path: Path
    ) -> None:
        async with self.opened(tmp_path) as store:
            await scene.asked(store)
            await store.append("turn_1", 1, 4, scene.change("c", questions=[scene.question("ask_2")]))
            await self.damage(tmp_path, "question", "ask_1")
            assert [question.id for question in await store.questions()] == ["ask_2"]
            assert [question.id for question in await store.questions_of("turn_1")] == ["ask_2"]
            for refusal in (store.question("ask_1"), store.answer("ask_1", Answer("allow"))):
                with refused(Unreadable, "question ask_1"):
                    await refusal
            assert await store.signals("turn_1") == []
            await store.append("turn_1", 1, 5, scene.change("d", closed={"ask_1": "x", "ask_2": "x"}))
            assert (await store.busy(["conv_1"]))["conv_1"].waiting == 0

    async def test_a_grant_that_cannot_be_read_grants_nothing(self, tmp_path: Path) -> None:
        """P3"""
        async with self.opened(tmp_path) as store:
            await scene.asked(store)
            grants = [Grant(f"grant_{n}", Rule("add", "*", "allow"), "conv_1", n, "ada") for n in (1.0, 2.0)]
            await store.answer("ask_1", Answer("allow"), grants)
            await self.damage(tmp_path, "grant", "grant_1.0")
            assert [grant.id for grant in await store.grants("conv_1")] == ["grant_2.0"]
            await store.revoke("grant_1.0")

    async def test_a_signal_that_cannot_be_read_does_not_stop_its_turn_from_ending(
        self, tmp_path: Path
    ) -> None:
        async with self.opened(tmp_path) as store:
            await scene.begun(store)
            await store.post("turn_1", "steer", {"text": "wait"})
            await self.damage(tmp_path, "signal", "turn_1")
            await store.post("turn_1", "result", {"call": "call_1"})
            assert [signal.kind for signal in await store.signals("turn_1")] == ["result"]
            await scene.ended(store)
            assert await store.turns_with_signals() == []

    async def test_a_queued_turn_that_cannot_be_read_does_not_stop_the_next(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await scene.replied(store)
            await store.start(scene.start(2, queue=True))
            await store.start(scene.start(3, queue=True))
            await self.damage(tmp_path, "queued turn", "turn_2")
            await scene.ended(store, seq=3)
            assert await store.queue() == ["turn_3"]
            assert [one.turn for one in await store.queued(conversation="conv_1")] == ["turn_3"]
            assert await store.is_queued("turn_2")
            assert await store.start_queued("turn_3") is not None
            assert await store.unqueue("turn_2")

    async def test_what_others_spent_is_known_also_where_a_reply_cannot_be_read(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            replies = [scene.reply("msg_2", "msg_1", Text("a")), scene.reply("msg_3", "msg_1", Text("b"))]
            await store.add_conversation(scene.CONVERSATION, [scene.user("msg_1"), *replies])
            await self.damage(tmp_path, "message", "msg_2")
            assert len(await store.spending(user="ada")) == 1

    async def test_a_damaged_conversation_can_be_exported_raw_and_deleted(self, tmp_path: Path) -> None:
        """The export holds every stored row as JSON, and the owner of the conversation is still known
        (S1)."""
        async with self.opened(tmp_path) as store:
            await scene.asked(store)
            await self.damage(tmp_path, "conversation", "conv_1")
            await self.damage(tmp_path, "message", "msg_1")
            await self.damage(tmp_path, "call", "call_1")
            await self.damage(tmp_path, "question", "ask_1")
            await self.damage(tmp_path, "fact", "turn_1")
            assert await store.owner_of("conv_1") == "ada"
            written = json.dumps(await store.export_raw("conv_1"))
            for id in ("conv_1", "msg_1", "msg_r1", "call_1", "turn_1", "ask_1"):
                assert f'"{id}"' in written
            await store.delete_conversation("conv_1")
            assert await store.conversations() == []
            assert await store.live_turns() == []
