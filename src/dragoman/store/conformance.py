"""A store in, a verdict out: the suite that any store must pass.

Subclass it among your tests, and say how a store is made:

    class TestMine(StoreConformance):
        async def make(self, folder: Path) -> Store:
            return MyStore(folder / "memory")

Two stores that were made for the same folder share one memory, as two processes would. The tests are
coroutines that take pytest's `tmp_path`; run them with pytest-asyncio in its `auto` mode.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from dragoman.conversation.tree import Conversation, Tree
from dragoman.errors import AlreadyAnswered, BadRequest, Fenced, NotFound, TurnBusy
from dragoman.messages.message import Message
from dragoman.messages.parts import (
    CallState,
    Error,
    File,
    Part,
    Reasoning,
    StepBoundary,
    Summary,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.messages.questions import Answer, Grant, Question, Rule
from dragoman.messages.usage import Usage
from dragoman.store.store import Change, LetterKind, Start, Started, Store, Unread
from dragoman.store.transfer import exported, imported


class StoreConformance:
    """Each method is one promise of the protocol in `store.py`."""

    async def make(self, folder: Path) -> Store:
        """A store whose memory is in this folder, not yet open. Yours to override."""
        raise NotImplementedError

    @asynccontextmanager
    async def opened(self, folder: Path) -> AsyncIterator[Store]:
        store = await self.make(folder)
        await store.open()
        try:
            yield store
        finally:
            await store.close()

    # ── conversations ─────────────────────────────────────────────────────────────────────────────

    async def test_a_conversation_is_read_as_it_was_written(self, tmp_path: Path) -> None:
        whole = Conversation(
            "conv_1",
            "Titel «ü»",
            None,
            "ada",
            {"mode": "ask", "n": [None, 1.5]},
            Usage(1, 2, 3, 4, 5, 0.5),
            1.5,
            2.5,
        )
        async with self.opened(tmp_path) as store:
            await store.add_conversation(whole)
            assert await store.conversation("conv_1") == whole
        async with self.opened(tmp_path) as store:
            assert await store.conversation("conv_1") == whole
            assert await store.messages("conv_1") == ([], await store.revision("conv_1"))

    async def test_what_is_not_there_is_missed_by_name(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            for look in (
                store.conversation,
                store.messages,
                store.revision,
                store.delete_conversation,
                store.message,
                store.call,
                store.turn,
                store.turn_of_call,
                store.take,
                store.question,
                store.revoke,
                store.blob,
                lambda key: store.set_title(key, "x"),
                lambda key: store.set_settings(key, {}),
                lambda key: store.set_leaf("conv_1", key, 1.0),
                lambda key: store.answer(key, Answer("allow")),
                lambda key: store.post(key, "cancel", {}),
                lambda key: store.start(Start("turn_1", key, "{}", 1.0, _user("msg_1"))),
            ):
                with _refused(NotFound, "nowhere"):
                    await look("nowhere")
            assert await store.begin_queued("nowhere") is None
            assert not await store.is_queued("nowhere")
            assert await store.facts("nowhere") == []
            assert await store.letters("nowhere") == []

    async def test_the_list_is_paged_and_each_conversation_is_on_one_page(self, tmp_path: Path) -> None:
        """Also where several were used at the same moment."""
        async with self.opened(tmp_path) as store:
            for n, updated in enumerate([5.0, 3.0, 3.0, 3.0, 1.0]):
                await store.add_conversation(Conversation(f"conv_{n}", user="ab"[n % 2], updated=updated))
            pages, last = [], None
            while page := await store.conversations(limit=2, before=last):
                pages.append([one.id for one in page])
                last = (page[-1].updated, page[-1].id)
            assert pages == [["conv_0", "conv_1"], ["conv_2", "conv_3"], ["conv_4"]]
            assert [one.id for one in await store.conversations(user="b")] == ["conv_1", "conv_3"]
            assert await store.conversations(user="nobody") == []

    async def test_title_settings_and_leaf_can_be_changed(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await store.add_conversation(_CONVERSATION, [_user("msg_1"), _user("msg_2", "msg_1")])
            await store.add_conversation(Conversation("conv_2"), [_user("msg_3", conversation="conv_2")])
            await store.set_title("conv_1", "new")
            await store.set_settings("conv_1", {"mode": "off"})
            await store.set_leaf("conv_1", "msg_1", 9.0)
            found = await store.conversation("conv_1")
            assert (found.title, found.settings, found.leaf) == ("new", {"mode": "off"}, "msg_1")
            assert found.updated == 9.0
            await store.set_leaf("conv_1", "msg_2", 1.0)
            assert (await store.conversation("conv_1")).updated == 9.0
            with _refused(BadRequest, "msg_3", "another conversation"):
                await store.set_leaf("conv_1", "msg_3", 9.0)

    async def test_a_conversation_is_added_whole_or_not_at_all(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            with _refused(Exception):
                await store.add_conversation(_CONVERSATION, [_user("msg_1"), _user("msg_2", "nowhere")])
            with _refused(NotFound):
                await store.conversation("conv_1")
            with _refused(NotFound):
                await store.message("msg_1")

    async def test_deleting_a_conversation_leaves_nothing_of_it(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await _asked(store)
            grant = Grant("grant_1", Rule("x"), "conv_1", 1.0)
            await store.answer("ask_1", Answer("allow"), [grant])
            await store.start(_start(2, parent="msg_r1", queue=True))
            await store.add_conversation(
                Conversation("conv_2"), [_user("msg_9", conversation="conv_2", text="hello")]
            )
            assert len(await store.search("hello")) == 2
            await store.delete_conversation("conv_1")
            assert [found.conversation for found in await store.search("hello")] == ["conv_2"]
            assert await store.live_turns() == []
            assert await store.turns("conv_1") == []
            assert await store.questions() == []
            assert await store.grants() == []
            assert await store.with_letters() == []
            assert not await store.is_queued("turn_2")
            for look, id in ((store.message, "msg_1"), (store.call, "call_1"), (store.question, "ask_1")):
                with _refused(NotFound):
                    await look(id)
            await _begun(store)  # its ids are free again
            assert len(await store.search("hello")) == 2

    # ── messages ──────────────────────────────────────────────────────────────────────────────────

    async def test_messages_are_read_as_they_were_written_calls_and_all(self, tmp_path: Path) -> None:
        messages = [
            _user(
                "msg_1",
                parts=(Text("hi \0 «ü» 🎉\r\n"), File("image/png", blob="0" * 64, name="a.png", size=3)),
            ),
            _reply("msg_2", "msg_1", *_every_part()),
            _reply("msg_3", "msg_1", Text("")),
        ]
        async with self.opened(tmp_path) as store:
            await store.add_conversation(_CONVERSATION, messages)
        async with self.opened(tmp_path) as store:
            assert (await store.messages("conv_1"))[0] == messages
            for message in messages:
                assert await store.message(message.id) == message
            for call in messages[1].calls:
                assert await store.call(call.id) == (call, "conv_1", None)

    # ── a turn begins ─────────────────────────────────────────────────────────────────────────────

    async def test_a_turn_begins_with_its_message_at_the_leaf(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            started = await _begun(store)
            turn = started.turn
            assert started.message == _user("msg_1", turn="turn_1")
            assert (turn.id, turn.conversation, turn.message) == ("turn_1", "conv_1", "msg_1")
            assert (turn.state, turn.live, turn.steerable, turn.epoch) == ("preparing", True, True, 1)
            assert turn.owner is not None
            assert await store.turn("turn_1") == turn
            assert await store.live_turns() == await store.turns("conv_1") == [turn]
            assert await store.facts("turn_1") == ["fact 1"]
            assert (await store.conversation("conv_1")).leaf == "msg_1"
            assert started.revision == await store.revision("conv_1")
            await _ended(store)
            second = await store.start(_start(2))
            assert second is not None
            assert second.message is not None
            assert second.message.parent == "msg_1"
            assert second.revision > started.revision

    async def test_a_turn_may_begin_anywhere_in_its_own_conversation(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await store.add_conversation(_CONVERSATION, [_user("msg_a"), _reply("msg_b", "msg_a", Text("b"))])
            below = await store.start(_start(1, parent="msg_b"))
            root = await store.start(_start(2, root=True))
            again = await store.start(Start("turn_3", "conv_1", "{}", 1.0, again="msg_a"))
            assert below is not None and root is not None and again is not None  # noqa: PT018 - for the type checker
            assert below.message is not None and root.message is not None  # noqa: PT018
            assert (below.message.parent, root.message.parent) == ("msg_b", None)
            assert (again.message, again.turn.message) == (None, "msg_a")
            assert (await store.conversation("conv_1")).leaf == "msg_a"

    async def test_a_turn_that_cannot_begin_stores_nothing(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await store.add_conversation(_CONVERSATION)
            await store.add_conversation(Conversation("conv_2"), [_user("msg_2", conversation="conv_2")])
            with _refused(BadRequest, "msg_2", "another conversation"):
                await store.start(_start(1, parent="msg_2"))
            with _refused(NotFound, "nowhere"):
                await store.start(_start(1, parent="nowhere"))
            with _refused(NotFound, "nowhere"):
                await store.start(Start("turn_1", "conv_1", "{}", 1.0, again="nowhere"))
            assert await store.live_turns() == []
            assert (await store.messages("conv_1"))[0] == []

    async def test_a_branch_that_runs_is_busy_and_another_is_not(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await _replied(store)
            for busy in (
                _start(2),
                _start(2, parent="msg_1"),
                _start(2, parent="msg_r1"),
                Start("turn_2", "conv_1", "{}", 1.0, again="msg_1"),
                Start("turn_2", "conv_1", "{}", 1.0, again="msg_1", queue=True),
            ):
                with _refused(TurnBusy, "turn_1"):
                    await store.start(busy)
            assert [turn.id for turn in await store.turns("conv_1")] == ["turn_1"]
            assert await store.start(_start(2, root=True)) is not None
            with _refused(TurnBusy, "turn_2"):
                await store.start(_start(3))

    async def test_of_two_that_begin_at_once_one_is_refused(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as other:
            await _begun(one)
            await _ended(one)
            outcomes = await asyncio.gather(
                one.start(_start(2)), other.start(_start(3)), return_exceptions=True
            )
            assert {type(outcome) for outcome in outcomes} == {Started, TurnBusy}

    # ── the queue ─────────────────────────────────────────────────────────────────────────────────

    async def test_queued_turns_begin_one_after_another_where_the_one_before_ended(
        self, tmp_path: Path
    ) -> None:
        async with self.opened(tmp_path) as store:
            await _replied(store)
            assert await store.start(_start(2, queue=True)) is None
            assert await store.start(_start(3, queue=True)) is None
            assert await store.is_queued("turn_2")
            assert await store.queue() == []
            with _refused(NotFound):
                await store.turn("turn_2")
        async with self.opened(tmp_path) as store:  # a queue outlives its process
            await store.take("turn_1")
            await _ended(store, epoch=2, seq=3)
            assert await store.queue() == ["turn_2", "turn_3"]
            second = await store.begin_queued("turn_2")
            assert second is not None
            assert second.message is not None
            assert (second.message.id, second.message.parent) == ("msg_2", "msg_r1")
            assert await store.facts("turn_2") == ["fact 1"]
            assert await store.begin_queued("turn_2") is None
            assert await store.queue() == []
            await _ended(store, 2)
            assert await store.queue() == ["turn_3"]
            third = await store.begin_queued("turn_3")
            assert third is not None
            assert third.message is not None
            assert third.message.parent == "msg_2"

    async def test_a_queued_turn_that_finds_its_branch_busy_waits_again(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await _replied(store)
            await store.start(_start(2, queue=True))
            await _ended(store, seq=3)
            assert await store.start(_start(3)) is not None  # somebody was faster
            assert await store.begin_queued("turn_2") is None
            assert await store.is_queued("turn_2")
            assert await store.queue() == []
            await _ended(store, 3)
            assert await store.queue() == ["turn_2"]
            started = await store.begin_queued("turn_2")
            assert started is not None
            assert started.message is not None
            assert started.message.parent == "msg_3"

    async def test_a_queued_message_stays_on_the_branch_it_was_sent_to(self, tmp_path: Path) -> None:
        """Also where the person looks at another one by then, and goes on looking."""
        async with self.opened(tmp_path) as store:
            await store.add_conversation(_CONVERSATION, [_user("msg_other")])
            await store.start(_start(1, root=True))
            await store.start(_start(2, queue=True))
            await store.set_leaf("conv_1", "msg_other", 1.0)
            await _ended(store)
            started = await store.begin_queued("turn_2")
            assert started is not None
            assert started.message is not None
            assert started.message.parent == "msg_1"
            assert (await store.conversation("conv_1")).leaf == "msg_other"

    # ── facts and what is written with them ───────────────────────────────────────────────────────

    async def test_facts_are_kept_in_order_with_what_they_change(self, tmp_path: Path) -> None:
        call = ToolCall("call_1", "add", {"a": 1})
        async with self.opened(tmp_path) as store:
            await _begun(store)
            reply = _reply("msg_r1", "msg_1", Text("let me see"), call, turn="turn_1")
            await store.append(
                "turn_1",
                1,
                2,
                _change("a", "b", messages=[reply], leaf=("msg_1", "msg_r1"), state="tool_call"),
            )
            done = replace(call, state=CallState.COMPLETED, result=ToolResult("1", 1), arguments={"a": 2})
            await store.append("turn_1", 1, 4, _change("c", calls=[done], state="streaming"))
        async with self.opened(tmp_path) as store:
            assert await store.facts("turn_1") == ["fact 1", "a", "b", "c"]
            assert (await store.turn("turn_1")).state == "streaming"
            assert (await store.conversation("conv_1")).leaf == "msg_r1"
            assert await store.message("msg_r1") == replace(reply, parts=(Text("let me see"), done))
            assert (await store.turn_of_call("call_1")).id == "turn_1"

    async def test_a_change_is_written_whole_or_not_at_all(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await _replied(store)
            before = await _everything(store)
            good = _reply("msg_r2", "msg_r1", Text("fine"), turn="turn_1")
            for broken in (
                _change("x", messages=[good, _reply("msg_r3", "nowhere", Text("lost"))]),
                _change("x", messages=[good, replace(good, parts=())]),
                _change("x", messages=[good], calls=[ToolCall("nowhere", "add")]),
                _change("x", messages=[good], closed={"nowhere": "why"}),
                _change("x", messages=[good], questions=[_question("ask_9"), _question("ask_9")]),
            ):
                broken.leaf, broken.state, broken.usage = ("msg_r1", "msg_r2"), "finalizing", Usage(1)
                with _refused(Exception):
                    await store.append("turn_1", 1, 3, broken)
                assert await _everything(store) == before
            await store.append("turn_1", 1, 3, _change("x", messages=[good]))
            assert (await store.facts("turn_1"))[-1] == "x"

    async def test_only_the_next_fact_can_be_written(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await _begun(store)
            for wrong in (1, 3):
                with _refused(Fenced, "turn_1"):
                    await store.append("turn_1", 1, wrong, _change("x"))
            assert await store.facts("turn_1") == ["fact 1"]

    async def test_writes_keep_their_order_and_fail_together(self, tmp_path: Path) -> None:
        """An append has its place when it is called; nobody need wait for it."""
        async with self.opened(tmp_path) as store:
            await _begun(store)
            first = store.append("turn_1", 1, 2, _change("a"))
            second = store.append("turn_1", 1, 3, _change("b"))
            await second
            assert first.done()
            assert await store.facts("turn_1") == ["fact 1", "a", "b"]
            failing = store.append("turn_1", 1, 4, _change("c", calls=[ToolCall("nowhere", "add")]))
            after = store.append("turn_1", 1, 5, _change("d"))
            with _refused(Fenced):
                await after
            assert failing.exception() is not None
            assert await store.facts("turn_1") == ["fact 1", "a", "b"]

    async def test_an_old_owner_cannot_write(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await _begun(store)
            await store.leave("turn_1", 1)
            assert await store.take("turn_1") == 2
            before = await _everything(store)
            with _refused(Fenced, "turn_1", "epoch 1"):
                await store.append(
                    "turn_1", 1, 2, _change("x", messages=[_reply("msg_r1", "msg_1", Text("late"))])
                )
            assert await _everything(store) == before
            await store.append("turn_1", 2, 2, _change("y"))

    async def test_the_leaf_follows_only_a_person_who_still_looks(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await store.add_conversation(_CONVERSATION, [_user("msg_other")])
            await store.start(_start(1, root=True))
            await store.set_leaf("conv_1", "msg_other", 1.0)
            reply = _reply("msg_r1", "msg_1", Text("hi"), turn="turn_1")
            await store.append("turn_1", 1, 2, _change("a", messages=[reply], leaf=("msg_1", "msg_r1")))
            assert (await store.conversation("conv_1")).leaf == "msg_other"

    async def test_a_change_of_messages_or_calls_is_seen_by_the_revision(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            started = await _replied(store, ToolCall("call_1", "add"))
            assert await store.revision("conv_1") == started.revision + 1
            await store.append("turn_1", 1, 3, _change("b"))
            assert await store.revision("conv_1") == started.revision + 1
            await store.append("turn_1", 1, 4, _change("c", calls=[ToolCall("call_1", "add", {"a": 2})]))
            messages, revision = await store.messages("conv_1")
            assert revision == await store.revision("conv_1") == started.revision + 2
            assert messages[-1].calls[0].arguments == {"a": 2}

    async def test_a_result_under_review_is_held_and_let_go(self, tmp_path: Path) -> None:
        held = ToolResult("secret", {"n": 1})
        async with self.opened(tmp_path) as store:
            await _replied(store, call := ToolCall("call_1", "add"))
            reviewing = replace(call, state=CallState.REVIEWING)
            await store.append("turn_1", 1, 3, _change("b", calls=[reviewing], held={"call_1": held}))
            assert await store.call("call_1") == (reviewing, "conv_1", held)
            assert (await store.message("msg_r1")).calls == (reviewing,)
            settled = replace(call, state=CallState.WITHHELD, result=ToolResult("not shown"))
            await store.append("turn_1", 1, 4, _change("c", calls=[settled]))
            assert await store.call("call_1") == (settled, "conv_1", None)

    async def test_what_turns_used_adds_up(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await _begun(store)
            await store.append("turn_1", 1, 2, _change("a", usage=Usage(10, 5, cost=0.25)))
            await store.append("turn_1", 1, 3, _change("b", usage=Usage(1, 1, cost=0.5)))
            assert (await store.conversation("conv_1")).usage == Usage(11, 6, cost=0.75)
            await store.append("turn_1", 1, 4, _change("c", usage=Usage(1)))
            assert (await store.conversation("conv_1")).usage == Usage(12, 6, cost=None)

    async def test_a_turn_that_is_over_is_over(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await _begun(store)
            await store.post("turn_1", "cancel", {})
            await _ended(store)
            turn = await store.turn("turn_1")
            assert (turn.live, turn.steerable, turn.state) == (False, False, "completed")
            assert await store.live_turns() == []
            assert await store.letters("turn_1") == []
            assert await store.with_letters() == []
            assert await store.take("turn_1") is None
            kinds: tuple[LetterKind, ...] = ("steer", "cancel", "result", "answer")
            for kind in kinds:
                assert not await store.post("turn_1", kind, {})

    # ── owners ────────────────────────────────────────────────────────────────────────────────────

    async def test_a_turn_is_taken_only_from_an_owner_that_is_gone(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as second:
            async with self.opened(tmp_path) as first:
                await _begun(first)
                assert await second.take("turn_1") is None
                assert await first.take("turn_1") is None
            assert await second.take("turn_1") == 2
            taken = await second.turn("turn_1")
            assert (taken.epoch, taken.owner is not None) == (2, True)
            async with self.opened(tmp_path) as third:
                assert await third.take("turn_1") is None
                await second.leave("turn_1", 1)  # an old epoch leaves nothing
                assert await third.take("turn_1") is None
                await second.leave("turn_1", 2)
                assert (await third.turn("turn_1")).owner is None
                assert await third.take("turn_1") == 3
            assert await second.facts("turn_1") == ["fact 1"]

    async def test_of_two_that_take_a_turn_one_gets_it(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as other:
            await _begun(one)
            await one.leave("turn_1", 1)
            epochs = await asyncio.gather(one.take("turn_1"), other.take("turn_1"))
            assert sorted(epochs, key=str) == [2, None]

    # ── questions, letters, grants ────────────────────────────────────────────────────────────────

    async def test_a_question_is_kept_until_it_is_answered(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await _asked(store)
        async with self.opened(tmp_path) as store:
            question = _question("ask_1")
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
            assert [(letter.kind, letter.body) for letter in await store.letters("turn_1")] == [
                ("answer", {"question": "ask_1"})
            ]
            assert await store.with_letters() == ["turn_1"]

    async def test_a_question_is_answered_once(self, tmp_path: Path) -> None:
        """Two people, two processes, one answer: the other one is told."""
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as other:
            await _asked(one)
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
            assert len(await one.letters("turn_1")) == len(await one.grants()) == 1
            assert won[0].answer is not None
            with _refused(AlreadyAnswered, "ask_1", won[0].answer.verdict):
                await one.answer("ask_1", Answer("allow"))

    async def test_a_question_that_is_closed_takes_no_answer(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await _asked(store)
            await store.append("turn_1", 1, 4, _change("d", closed={"ask_1": "the turn ended"}))
            assert await store.questions() == []
            assert (await store.question("ask_1")).closed == "the turn ended"
            with _refused(AlreadyAnswered, "the turn ended"):
                await store.answer("ask_1", Answer("allow"))
            assert await store.letters("turn_1") == []

    async def test_a_question_that_was_answered_is_not_closed(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await _asked(store)
            answered = await store.answer("ask_1", Answer("allow"))
            await store.append("turn_1", 1, 4, _change("d", closed={"ask_1": "the turn ended"}))
            assert await store.question("ask_1") == answered

    async def test_letters_are_read_in_order_until_they_are_among_the_facts(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await _begun(store)
            assert await store.post("turn_1", "steer", {"text": "ü", "n": None})
            assert await store.post("turn_1", "result", {"call": "call_1"})
        async with self.opened(tmp_path) as store:
            steer, result = await store.letters("turn_1")
            assert (steer.kind, steer.body) == ("steer", {"text": "ü", "n": None})
            assert (result.kind, result.body, result.seq > steer.seq) == ("result", {"call": "call_1"}, True)
            assert await store.with_letters() == ["turn_1"]
            await store.append("turn_1", 1, 2, _change("a", letters=[steer.seq]))
            assert await store.letters("turn_1") == [result]

    async def test_a_turn_does_not_close_its_box_on_an_unread_letter(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await _begun(store)
            await store.post("turn_1", "steer", {"text": "wait"})
            before = await _everything(store)
            with _refused(Unread):
                await store.append("turn_1", 1, 2, _change("a", state="finalizing", steerable=False))
            assert await _everything(store) == before
            (letter,) = await store.letters("turn_1")
            last = _change("a", letters=[letter.seq], state="finalizing", steerable=False)
            await store.append("turn_1", 1, 2, last)
            assert not await store.post("turn_1", "steer", {"text": "too late"})
            assert await store.post("turn_1", "cancel", {})
            assert not (await store.turn("turn_1")).steerable

    async def test_whoever_looks_sees_that_something_changed(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as other:
            await one.changed()
            assert not await one.changed()
            await other.add_conversation(_CONVERSATION)
            assert await one.changed()
            assert not await one.changed()
            await one.set_title("conv_1", "mine")
            assert await one.changed()

    async def test_grants_hold_everywhere_or_in_one_conversation(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await _asked(store)
            here = Grant("grant_1", Rule("add", "a*", "deny"), "conv_1", 1.0)
            everywhere = Grant("grant_2", Rule("add", "*", "allow"), None, 2.0)
            await store.answer("ask_1", Answer("allow"), [here, everywhere])
            assert await store.grants("conv_1") == await store.grants() == [everywhere, here]
            assert await store.grants("conv_2") == [everywhere]
            await store.revoke("grant_2")
            assert await store.grants() == [here]

    # ── search ────────────────────────────────────────────────────────────────────────────────────

    async def test_words_are_found_wherever_they_stand(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await _said(store, "Das Wetter in Wien ist SCHÖN", "北京的天气很好", "go to Vienna by train", "")
            for query, found in (
                ("wetter", [1]),
                ("schön", [1]),
                ("wien wetter", [1]),
                ("ette", [1]),
                ("天气", [2]),
                ("北京 天气", [2]),
                ("气很", [2]),
                ("Vienna go", [3]),
                ("by", [3]),
                ("BY", [3]),
                ("i", [1, 3]),
                ("wetter train", []),
                ("nowhere", []),
                ("", []),
                ("  ", []),
            ):
                hits = await store.search(query)
                assert sorted(hit.message for hit in hits) == [f"msg_{n}" for n in found], query
            assert "Wetter" in (await store.search("wetter"))[0].snippet.replace("«", "").replace("»", "")
            assert "天气" in (await store.search("天气"))[0].snippet

    async def test_no_query_breaks_the_search(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await _said(store, 'say "quoted" AND 100% (sure) NEAR/2 text:x it\'s; DROP TABLE messages -- *')
            for query in (
                '"quoted"',
                '"quo',
                "AND 100%",
                "(sure)",
                "NEAR/2",
                "text:x",
                "it's;",
                "DROP TABLE",
                "-- *",
            ):
                assert len(await store.search(query)) == 1, query
            for query in (
                '""""',
                "\0",
                "a\0b\0c",
                "NOT",
                "^abc",
                "{a b}: c",
                "%%%",
                "___",
                "\\",
                "🎉🎉🎉",
                "x" * 5000,
            ):
                assert await store.search(query) == [], query

    async def test_what_came_and_went_since_the_last_search_counts(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await _said(store, "the first raven")
            assert len(await store.search("raven")) == 1
            await store.add_conversation(
                Conversation("conv_2", user="bob"), [_user("msg_7", None, "conv_2", text="a raven")]
            )
            assert len(await store.search("raven")) == 2
            assert [hit.conversation for hit in await store.search("raven", user="bob")] == ["conv_2"]
            assert len(await store.search("raven", limit=1)) == 1
            await store.delete_conversation("conv_2")
            assert [hit.message for hit in await store.search("raven")] == ["msg_1"]
            await store.delete_conversation("conv_1")
            assert await store.search("raven") == await store.search("av") == []

    # ── blobs, and whole conversations out and in ─────────────────────────────────────────────────

    async def test_bytes_are_kept_under_their_own_name(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            keys = [await store.put_blob(data) for data in (b"", b"\0\xff", b"x" * 100_000, b"\0\xff")]
            assert keys[1] == keys[3] == hashlib.sha256(b"\0\xff").hexdigest()
            same = await asyncio.gather(*(store.put_blob(b"at once") for _ in range(5)))
            assert len(set(same)) == 1
        async with self.opened(tmp_path) as store:
            assert [await store.blob(key) for key in keys[:3]] == [b"", b"\0\xff", b"x" * 100_000]
            for wrong in ("", "0" * 64, "../../secret", "/etc/passwd", keys[0].upper(), keys[0] + "\n"):
                with _refused(NotFound, "blob"):
                    await store.blob(wrong)

    async def test_a_conversation_moves_to_another_store_with_everything(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path / "one") as one, self.opened(tmp_path / "other") as other:
            long, picture = await one.put_blob(b"a long output"), await one.put_blob(b"a picture")
            result = ToolResult(
                "a … t", blob=long, attachments=(File("image/png", blob=picture),), note="edited"
            )
            call = ToolCall("call_1", "add", {"a": None}, state=CallState.COMPLETED, result=result)
            messages = [
                _user("msg_1"),
                _reply("msg_2", "msg_1", call, turn="turn_1"),
                _reply("msg_3", "msg_1", *_every_part("other"), turn="turn_2"),
                _user(
                    "msg_4", "msg_2", parts=(Summary("so far", "msg_2"), File("text/plain", blob="0" * 64))
                ),
            ]
            known = replace(
                _CONVERSATION, title="T", leaf="msg_2", settings={"system": "Be brief."}, usage=Usage(3, cost=0.5)
            )
            await one.add_conversation(known, messages)
            id = await imported(other, await exported(one, "conv_1"), user="bob", now=9.0)
            copy = await other.conversation(id)
            assert (copy.title, copy.user, copy.settings, copy.usage) == (
                "T",
                "bob",
                known.settings,
                known.usage,
            )
            assert (copy.created, copy.updated) == (known.created, 9.0)
            moved, _ = await other.messages(id)
            assert [_shape(messages, m) for m in messages] == [_shape(moved, m) for m in moved]
            assert copy.leaf == moved[1].id
            assert Tree(moved).versions(moved[1].id) == [moved[1].id, moved[2].id]
            assert moved[1].calls[0] == replace(call, id=moved[1].calls[0].id)
            assert await other.blob(long) == b"a long output"
            assert await other.blob(picture) == b"a picture"
            again = await imported(other, await exported(other, id), user=None, now=9.0)
            assert [_shape(moved, m) for m in moved] == [_shape(*pair) for pair in await _pairs(other, again)]

    async def test_a_damaged_export_is_refused_and_nothing_is_stored(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path / "one") as one, self.opened(tmp_path / "other") as other:
            key = await one.put_blob(b"bytes")
            files = (File("a/b", blob=key),)
            reply = _reply("msg_2", "msg_1", ToolCall("call_1", "add"))
            await one.add_conversation(
                replace(_CONVERSATION, leaf="msg_2"), [_user("msg_1", parts=files), reply]
            )
            good: Any = await exported(one, "conv_1")
            first, second = good["messages"]
            lost = {**second, "parent": "nowhere"}
            settled = {**second, "parts": [{**second["parts"][0], "state": "completed"}]}
            damages: tuple[dict[str, Any], ...] = (
                {"format": "another/1"},
                {"conversation": None},
                {"conversation": {**good["conversation"], "leaf": "nowhere"}},
                {"messages": None},
                {"messages": [first, {**second, "role": "system"}]},
                {"messages": [first, lost]},
                {"messages": [second, first]},
                {"messages": [first, second, {**first, "parent": "msg_2"}]},
                {"messages": [first, {**second, "parts": [{"type": "song"}]}]},
                {"messages": [first, settled]},
                {"blobs": {key: "Ynl0ZX"}},
                {"blobs": {key: "!!!"}},
                {"blobs": {key: "b3RoZXI="}},
                {"blobs": {key: good["blobs"][key], "0" * 64: "b3RoZXI="}},
            )
            for damage in damages:
                with _refused(BadRequest):
                    await imported(other, {**good, **damage}, user=None, now=1.0)
                assert await other.conversations() == []
                for blob in (key, hashlib.sha256(b"other").hexdigest()):
                    with _refused(NotFound):
                        await other.blob(blob)
            assert await imported(other, good, user=None, now=1.0)


# ── what the tests are made of ────────────────────────────────────────────────────────────────────

_CONVERSATION = Conversation("conv_1", user="ada", created=1.0, updated=1.0)


@contextmanager
def _refused(kind: type[Exception], *words: str) -> Iterator[None]:
    """What happens inside has to raise this, with these words in it."""
    said = None
    try:
        yield
    except kind as error:
        said = str(error)
    assert said is not None, f"{kind.__name__} was not raised"
    assert [word for word in words if word not in said] == [], said


def _user(
    id: str,
    parent: str | None = None,
    conversation: str = "conv_1",
    *,
    turn: str | None = None,
    text: str = "hello",
    parts: tuple[Part, ...] = (),
) -> Message:
    return Message(id, conversation, parent, "user", parts or (Text(text),), turn=turn, created=1.0)


def _reply(id: str, parent: str, *parts: Part, turn: str | None = None) -> Message:
    usage = Usage(1, 2, cost=0.125)
    return Message(
        id,
        "conv_1",
        parent,
        "assistant",
        parts,
        turn=turn,
        model="some/model",
        finish="stop",
        usage=usage,
        created=2.0,
        metadata={"n": [None]},
    )


def _every_part(name: str = "any") -> tuple[Part, ...]:
    result = ToolResult(
        "done", {"n": [1, None, 0.5]}, "Title", {"k": True}, (File("a/b", url="u"),), None, "note"
    )
    return (
        Reasoning("hm", "signed", "some wire", "some/model", {"raw": ["x"]}, 0.5),
        Text("first"),
        StepBoundary(1),
        *(
            ToolCall(
                f"call_{name}_{state}",
                "add",
                {"a": None, "b": {"c": [1]}},
                raw='{"a"' if state == "failed" else None,
                state=state,
                result=result if state.settled else None,
                provider_id="p",
                signature="s",
                original={"a": 1},
                started=1.0,
                ended=2.0 if state.settled else None,
            )
            for state in CallState
            if name == "any" or state.settled
        ),
        Error("gone", "provider", True),
    )


def _start(number: int, **options: Any) -> Start:
    parent = options.pop("parent", None)
    message = _user(f"msg_{number}", parent, turn=f"turn_{number}")
    return Start(f"turn_{number}", "conv_1", "fact 1", float(number), message, **options)


def _change(*facts: str, **changes: Any) -> Change:
    return Change(**{"conversation": "conv_1", "facts": list(facts), "state": "streaming", **changes})


def _question(id: str) -> Question:
    return Question(
        id,
        "conv_1",
        "turn_1",
        "call_1",
        "approve",
        "add",
        "May it?",
        {"a": 1},
        "hash",
        rules=(Rule("add", "a", "allow"),),
        choices=("yes", "no"),
        schema={"type": "object"},
        asked=2.0,
    )


async def _begun(store: Store) -> Started:
    """A conversation with one turn in it."""
    await store.add_conversation(_CONVERSATION)
    started = await store.start(_start(1))
    assert started is not None
    return started


async def _replied(store: Store, *parts: Part) -> Started:
    """The same with a reply: facts 1 and 2."""
    started = await _begun(store)
    reply = _reply("msg_r1", "msg_1", *(parts or (Text("hello yourself"),)), turn="turn_1")
    await store.append("turn_1", 1, 2, _change("a", messages=[reply], leaf=("msg_1", "msg_r1")))
    return started


async def _asked(store: Store) -> None:
    """The same with a call that a person is asked about: facts 1 to 3."""
    call = ToolCall("call_1", "add", {"a": 1})
    await _replied(store, call)
    asked = _change("b", calls=[replace(call, state=CallState.ASKED)], questions=[_question("ask_1")])
    await store.append("turn_1", 1, 3, asked)


async def _ended(store: Store, number: int = 1, *, epoch: int = 1, seq: int = 2) -> None:
    last = _change("end", state="completed", live=False, steerable=False)
    await store.append(f"turn_{number}", epoch, seq, last)


async def _said(store: Store, *texts: str) -> None:
    messages = [_user(f"msg_{n}", text=text) for n, text in enumerate(texts, 1)]
    await store.add_conversation(_CONVERSATION, messages)


async def _everything(store: Store) -> tuple[object, ...]:
    """What a change that fails must leave as it was."""
    return (
        await store.conversation("conv_1"),
        await store.messages("conv_1"),
        await store.turns("conv_1"),
        await store.facts("turn_1"),
        await store.letters("turn_1"),
        await store.questions(),
    )


async def _pairs(store: Store, conversation: str) -> list[tuple[list[Message], Message]]:
    messages, _ = await store.messages(conversation)
    return [(messages, message) for message in messages]


def _shape(all: list[Message], message: Message) -> Message:
    """A message with places instead of ids: equal for a message and its copy."""
    places: dict[str | None, str | None] = {one.id: str(place) for place, one in enumerate(all)}
    turns = {one.turn: str(place) for place, one in reversed(list(enumerate(all)))}
    parts = tuple(
        replace(part, id="call")
        if isinstance(part, ToolCall)
        else replace(part, keeps_from=places.get(part.keeps_from))
        if isinstance(part, Summary)
        else part
        for part in message.parts
    )
    return replace(
        message,
        id=str(places[message.id]),
        conversation="",
        parent=places.get(message.parent),
        parts=parts,
        turn=turns[message.turn] if message.turn else None,
    )
