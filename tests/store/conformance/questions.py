"""Tests for every store: questions, signals and grants."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from dragoman.conversation.tree import Conversation
from dragoman.errors import AlreadyAnswered, NotFound
from dragoman.messages.questions import Answer, Grant, Question, Rule
from dragoman.store.store import Store
from dragoman.store.turns import Unread

from . import scene
from .scene import refused
from .suite import Suite


class QuestionConformance(Suite):
    """A question has one answer, and a signal exists until it is a fact."""

    async def test_a_question_is_open_until_it_is_answered(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await scene.asked(store)
        async with self.opened(tmp_path) as store:
            question = scene.question("ask_1")
            assert await store.question("ask_1") == question
            assert await store.questions() == await store.questions_of("turn_1") == [question]
            assert await store.questions(conversation="conv_1", user="ada") == [question]
            assert await store.questions(conversation="conv_2") == await store.questions(user="bob") == []
            answer = Answer("allow", arguments={"a": 2}, by="ada", at=3.0)
            settled = await store.answer("ask_1", answer)
            assert settled == replace(question, answer=answer)
            assert await store.question("ask_1") == settled
            assert await store.questions() == []
            assert await store.questions_of("turn_1") == [settled]
            assert [(signal.kind, signal.body) for signal in await store.signals("turn_1")] == [
                ("answer", {"question": "ask_1"})
            ]
            assert [one.turn for one in await store.turns_with_signals()] == ["turn_1"]

    async def test_a_question_is_answered_once(self, tmp_path: Path) -> None:
        """Two people, two processes, one answer: the other one learns of it."""
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as other:
            await scene.asked(one)
            grant = Grant("grant_1", Rule("add", "*", "allow"))
            outcomes = await asyncio.gather(
                one.answer("ask_1", Answer("allow"), [grant]),
                other.answer("ask_1", Answer("reject"), [replace(grant, id="grant_2")]),
                return_exceptions=True,
            )
            won = [outcome for outcome in outcomes if isinstance(outcome, Question)]
            lost = [outcome for outcome in outcomes if isinstance(outcome, AlreadyAnswered)]
            assert (len(won), len(lost)) == (1, 1)
            assert await other.question("ask_1") == await one.question("ask_1") == won[0]
            assert len(await one.signals("turn_1")) == len(await one.grants()) == 1
            assert won[0].answer is not None
            with refused(AlreadyAnswered, "ask_1", won[0].answer.verdict):
                await one.answer("ask_1", Answer("allow"))

    async def test_a_question_that_is_closed_takes_no_answer(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await scene.asked(store)
            await store.append("turn_1", 1, 4, scene.change("d", closed={"ask_1": "the turn ended"}))
            assert await store.questions() == []
            assert (await store.question("ask_1")).closed == "the turn ended"
            with refused(AlreadyAnswered, "the turn ended"):
                await store.answer("ask_1", Answer("allow"))
            assert await store.signals("turn_1") == []

    async def test_a_question_that_was_answered_is_not_closed(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await scene.asked(store)
            answered = await store.answer("ask_1", Answer("allow"))
            await store.append("turn_1", 1, 4, scene.change("d", closed={"ask_1": "the turn ended"}))
            assert await store.question("ask_1") == answered

    async def test_signals_are_read_in_order_until_they_are_among_the_facts(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await scene.begun(store)
            assert await store.post("turn_1", "steer", {"text": "ü", "n": None})
            assert await store.post("turn_1", "result", {"call": "call_1"})
        async with self.opened(tmp_path) as store:
            steer, result = await store.signals("turn_1")
            assert (steer.kind, steer.body) == ("steer", {"text": "ü", "n": None})
            assert (result.kind, result.body, result.seq > steer.seq) == ("result", {"call": "call_1"}, True)
            with refused(AlreadyAnswered, "call_1", "there is a result already"):
                await store.post("turn_1", "result", {"call": "call_1"})
            assert [one.turn for one in await store.turns_with_signals()] == ["turn_1"]
            await store.append("turn_1", 1, 2, scene.change("a", signals=[steer.seq]))
            assert await store.signals("turn_1") == [result]

    async def test_a_turn_that_stops_taking_steering_messages_has_read_them_all(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await scene.begun(store)
            await store.post("turn_1", "steer", {"text": "wait"})
            before = await scene.everything(store)
            with refused(Unread):
                await store.append("turn_1", 1, 2, scene.change("a", state="finalizing", steerable=False))
            assert await scene.everything(store) == before
            (signal,) = await store.signals("turn_1")
            last = scene.change("a", signals=[signal.seq], state="finalizing", steerable=False)
            await store.append("turn_1", 1, 2, last)
            assert not await store.post("turn_1", "steer", {"text": "too late"})
            assert await store.post("turn_1", "cancel", {})
            assert not (await store.turn("turn_1")).steerable

    async def test_a_cancelled_turn_takes_nothing_else_and_is_not_completed(self, tmp_path: Path) -> None:
        """T6 × P6 × C6: though its owner has not heard of the cancel yet."""
        async with self.opened(tmp_path) as owner, self.opened(tmp_path) as other:
            await scene.asked(owner)
            assert await other.post("turn_1", "cancel", {})
            before = await scene.everything(owner)
            with refused(AlreadyAnswered, "ask_1", "its turn is cancelled"):
                await other.answer("ask_1", Answer("allow"), [Grant("grant_1", Rule("add"))])
            with refused(AlreadyAnswered, "call_2", "its turn is cancelled"):
                await other.post("turn_1", "result", {"call": "call_2"})
            with refused(Unread):
                await scene.ended(owner, seq=4)
            assert await scene.everything(owner) == before
            await scene.ended(owner, seq=4, state="cancelled")

    async def test_a_steering_message_can_be_taken_back_until_it_is_among_the_facts(
        self, tmp_path: Path
    ) -> None:
        """T13"""
        async with self.opened(tmp_path) as store:
            await scene.begun(store)
            for text in ("one", "two"):
                assert await store.post("turn_1", "steer", {"text": text})
            assert await store.post("turn_1", "cancel", {})
            one, two, cancel = await store.signals("turn_1")
            assert await store.withdraw_steering("turn_1", one.seq)
            assert not await store.withdraw_steering("turn_1", one.seq)
            assert not await store.withdraw_steering("turn_1", cancel.seq)
            await store.append("turn_1", 1, 2, scene.change("b", signals=[two.seq]))
            assert not await store.withdraw_steering("turn_1", two.seq)
            assert await store.signals("turn_1") == [cancel]

    async def test_a_turn_is_asked_once_to_be_followed(self, tmp_path: Path) -> None:
        """N3: however many want to, and as long as it lives."""
        async with self.opened(tmp_path) as owner, self.opened(tmp_path) as follower:
            await scene.begun(owner)
            assert await follower.post("turn_1", "follow", {})
            assert await follower.post("turn_1", "follow", {})
            (signal,) = await owner.signals("turn_1")
            assert (signal.kind, signal.body) == ("follow", {})
            assert [one.turn for one in await owner.turns_with_signals()] == ["turn_1"]
            assert [one.turn for one in await owner.turns_with_signals(own=["turn_1"])] == ["turn_1"]
            assert await follower.turns_with_signals(own=[]) == []  # it concerns no other process
            await follower.post("turn_1", "cancel", {})
            assert [one.turn for one in await follower.turns_with_signals(own=[])] == ["turn_1"]
            await scene.ended(owner, state="cancelled")
            assert not await follower.post("turn_1", "follow", {})

    async def test_whoever_asks_learns_that_something_was_written(self, tmp_path: Path) -> None:
        """A store also reports its writes on opening, and nothing after them."""
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as other:
            await _until_quiet(one)
            await other.add_conversation(scene.CONVERSATION)
            assert await one.has_new_writes()
            await _until_quiet(one)
            await one.set_title("conv_1", "mine")
            assert await one.has_new_writes()

    async def test_where_a_question_is_asked_is_known_by_itself(self, tmp_path: Path) -> None:
        """The conversation of an unreadable question is known, so it can be deleted (P6)."""
        async with self.opened(tmp_path) as store:
            await scene.asked(store)
            assert await store.conversation_of_question("ask_1") == "conv_1"
            await self.damage(tmp_path, "question", "ask_1")
            assert await store.conversation_of_question("ask_1") == "conv_1"
            with refused(NotFound, "ask_9"):
                await store.conversation_of_question("ask_9")

    async def test_grants_hold_everywhere_or_in_one_conversation(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await scene.asked(store)
            here = Grant("grant_1", Rule("add", "a*", "deny"), "conv_1", 1.0, "ada")
            everywhere = Grant("grant_2", Rule("add", "*", "allow"), None, 2.0, "ada")
            await store.answer("ask_1", Answer("allow"), [here, everywhere])
            assert await store.grants("conv_1") == await store.grants() == [everywhere, here]
            await store.add_conversation(Conversation("conv_2", user="ada"))
            assert await store.grants("conv_2") == [everywhere]
            await store.revoke("grant_2")
            assert await store.grants() == [here]
            await store.add_grant(everywhere)  # without a question
            assert await store.grants("conv_1") == [everywhere, here]

    async def test_what_is_denied_in_a_conversation_is_denied_in_those_its_calls_opened(
        self, tmp_path: Path
    ) -> None:
        """A task has no more permissions than its giver, and allowing something there does not allow it here
        (P9)."""
        async with self.opened(tmp_path) as store:
            await store.add_conversation(Conversation("conv_1"))
            await store.add_conversation(Conversation("conv_2", parent="conv_1", call="call_1"))
            await store.add_conversation(Conversation("conv_3", parent="conv_2", call="call_2"))
            denied = Grant("grant_1", Rule("add", "*", "deny"), "conv_1", 1.0)
            await store.add_grant(denied)
            await store.add_grant(Grant("grant_2", Rule("add"), "conv_1", 2.0))
            assert await store.grants("conv_2") == await store.grants("conv_3") == [denied]

    async def test_what_one_person_grants_does_not_hold_for_another(self, tmp_path: Path) -> None:
        """Conversations without a user belong to the local user (P3, U2)."""
        async with self.opened(tmp_path) as store:
            await scene.asked(store)
            hers = Grant("grant_1", Rule("add"), None, 1.0, "ada")
            local = Grant("grant_2", Rule("add"), None, 2.0)
            await store.answer("ask_1", Answer("allow"), [hers, local])
            await store.add_conversation(Conversation("conv_2", user="bob"))
            await store.add_conversation(Conversation("conv_3"))
            assert await store.grants("conv_1") == await store.grants(user="ada") == [hers]
            assert await store.grants("conv_2") == await store.grants(user="bob") == []
            assert await store.grants("conv_3") == await store.grants(user="local") == [local]


async def _until_quiet(store: Store) -> None:
    for _ in range(1000):
        if not await store.has_new_writes():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("something is written all the time")
