"""Tests for every store: conversations and their messages."""

from __future__ import annotations

from pathlib import Path

from dragoman.conversation.tree import LOCAL, Conversation
from dragoman.errors import BadRequest, NotFound
from dragoman.messages.message import CallState, File, MadeIn, Text, ToolCall, ToolResult
from dragoman.messages.questions import Answer
from dragoman.messages.usage import Usage
from dragoman.store.codecs import MESSAGE
from dragoman.store.turns import Start

from . import scene
from .scene import refused
from .suite import Suite


class ConversationConformance(Suite):
    """Written once, read the same, changed, listed, deleted."""

    # ── conversations ───────────────────────────────────────────────────────────────────────────────

    async def test_half_a_character_is_refused_and_changes_nothing(self, tmp_path: Path) -> None:
        """Every engine raises the same error for half a surrogate pair, in a write and in a search (S1)."""
        async with self.opened(tmp_path) as store:
            await store.add_conversation(scene.CONVERSATION)
            for work in (
                lambda: store.set_title("conv_1", "\ud83d"),
                lambda: store.add_conversation(Conversation("conv_2", user="\ud83d")),
                lambda: store.conversation("\ud83d"),
                lambda: store.grants(user="\ud83d"),
            ):
                with refused(BadRequest, "half a character"):
                    await work()
            assert await store.conversations() == [scene.CONVERSATION]

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
            assert await store.owner_of("conv_1") == "ada"
            await store.add_conversation(Conversation("conv_2"))
            assert await store.owner_of("conv_2") == LOCAL
        async with self.opened(tmp_path) as store:
            assert await store.conversation("conv_1") == whole
            assert await store.messages("conv_1") == ([], await scene.revision(store))

    async def test_what_is_not_there_is_missed_by_name(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            for look in (
                store.conversation,
                store.owner_of,
                store.messages,
                store.delete_conversation,
                store.message,
                store.call,
                store.turn,
                store.turn_of_call,
                store.claim,
                store.is_abandoned,
                store.question,
                store.revoke,
                store.blob,
                lambda key: store.set_title(key, "x"),
                lambda key: store.change_settings(key, dict),
                lambda key: store.set_leaf("conv_1", key, 1.0),
                lambda key: store.answer(key, Answer("allow")),
                lambda key: store.post(key, "cancel", {}),
                lambda key: store.start(Start("turn_1", key, "{}", 1.0, scene.user("msg_1"))),
            ):
                with refused(NotFound, "nowhere"):
                    await look("nowhere")
            assert await store.start_queued("nowhere") is None
            assert not await store.is_queued("nowhere")
            assert not await store.change_queued("nowhere", [Text("x")])
            assert not await store.withdraw_steering("nowhere", 1)
            assert await store.facts("nowhere") == []
            assert await store.signals("nowhere") == []

    async def test_the_list_is_paged_and_each_conversation_is_on_one_page(self, tmp_path: Path) -> None:
        """Each conversation is on one page, also if several were used at the same moment."""
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
            await store.add_conversation(
                scene.CONVERSATION, [scene.user("msg_1"), scene.user("msg_2", "msg_1")]
            )
            await store.add_conversation(Conversation("conv_2"), [scene.user("msg_3", conversation="conv_2")])
            assert await store.replace_title("conv_1", None, "newer")
            assert not await store.replace_title("conv_1", None, "newest")
            assert await store.replace_title("conv_1", "newer", "newest")
            await store.set_title("conv_1", "new")
            await store.change_settings("conv_1", lambda before: {**before, "mode": "off"})
            await store.set_leaf("conv_1", "msg_1", 9.0)
            found = await store.conversation("conv_1")
            assert (found.title, found.settings, found.leaf) == ("new", {"mode": "off"}, "msg_1")
            assert found.updated == 9.0
            assert await store.set_leaf("conv_1", "msg_2", 1.0)
            assert (await store.conversation("conv_1")).updated == 9.0
            assert not await store.set_leaf("conv_1", "msg_1", 1.0, before="msg_1")
            assert (await store.conversation("conv_1")).leaf == "msg_2"
            assert await store.set_leaf("conv_1", "msg_1", 1.0, before="msg_2")
            with refused(NotFound, "msg_3"):
                await store.set_leaf("conv_1", "msg_3", 9.0)

    async def test_pins_archive_and_tags_are_kept_and_found_by(self, tmp_path: Path) -> None:
        """Fields that a call does not name stay, and a conversation can come out of the archive (S1)."""
        async with self.opened(tmp_path) as store:
            for place in (1, 2, 3):
                await store.add_conversation(Conversation(f"conv_{place}", user="ada", updated=float(place)))
            await store.label_conversation("conv_1", pinned=True, tags=["work", 'a "b'])
            await store.label_conversation("conv_1", archived=False)
            await store.label_conversation("conv_2", archived=True, tags=["workshop"])
            one = await store.conversation("conv_1")
            assert (one.pinned, one.archived, one.tags) == (True, False, ("work", 'a "b'))
            assert [one.id for one in await store.conversations(archived=False)] == ["conv_3", "conv_1"]
            assert [one.id for one in await store.conversations(archived=True)] == ["conv_2"]
            assert [one.id for one in await store.conversations(pinned=True)] == ["conv_1"]
            for tag in one.tags:
                assert [found.id for found in await store.conversations(tag=tag)] == ["conv_1"]
            assert await store.conversations(tag="b") == []  # the end of another one
            assert await store.tags("ada") == ['a "b', "work", "workshop"]
            assert await store.tags("bob") == []
            assert [one.id async for one in store.untouched(10.0)] == ["conv_2", "conv_3"]
            with refused(NotFound):
                await store.label_conversation("conv_9", pinned=True)
            await store.label_conversation("conv_1", archived=True)
            await store.start(scene.start(1))
            assert not (await store.conversation("conv_1")).archived

    async def test_a_conversation_is_added_whole_or_not_at_all(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            with refused(Exception):
                await store.add_conversation(
                    scene.CONVERSATION, [scene.user("msg_1"), scene.user("msg_2", "nowhere")]
                )
            with refused(NotFound):
                await store.conversation("conv_1")
            with refused(NotFound):
                await store.message("msg_1")

    async def test_what_calls_opened_is_found_with_what_was_opened_in_there(self, tmp_path: Path) -> None:
        opened = [
            Conversation("conv_2", parent="conv_1", call="call_1", usage=Usage(5, 7)),
            Conversation("conv_3", parent="conv_1", call="call_2"),
            Conversation("conv_4", parent="conv_2", call="call_3"),
        ]
        async with self.opened(tmp_path) as store:
            for one in (Conversation("conv_1"), *opened):
                await store.add_conversation(one)
            assert await store.opened_by("conv_1", ["call_1"]) == [opened[0], opened[2]]
            assert await store.opened_by("conv_1", ["call_2", "call_3"]) == [opened[1]]
            assert await store.opened_by("conv_1", []) == await store.opened_by("conv_9", ["call_1"]) == []

    # ── messages ────────────────────────────────────────────────────────────────────────────────────

    async def test_messages_are_read_as_they_were_written_calls_and_all(self, tmp_path: Path) -> None:
        messages = [
            scene.user(
                "msg_1",
                parts=(Text("hi \0 «ü» 🎉\r\n"), File("image/png", blob="0" * 64, name="a.png", size=3)),
            ),
            scene.reply("msg_2", "msg_1", *scene.every_part()),
            scene.reply("msg_3", "msg_1", Text("")),
        ]
        async with self.opened(tmp_path) as store:
            await store.add_conversation(scene.CONVERSATION, messages)
        async with self.opened(tmp_path) as store:
            assert (await store.messages("conv_1"))[0] == messages
            for message in messages:
                assert await store.message(message.id) == message
            for call in messages[1].calls:
                assert await store.call(call.id) == (call, "conv_1", None)

    async def test_calls_of_a_program_are_read_in_their_order(self, tmp_path: Path) -> None:
        """The files of their results, and of the program's own, are mentioned as long as they exist (S4)."""
        async with self.opened(tmp_path) as store:
            await scene.asked(store)
            key = await store.put_blob(b"a picture")
            done = ToolResult("done", attachments=(File("image/png", blob=key),))
            outer, *inner = [
                ToolCall(id, "add", state=CallState.COMPLETED, result=done, made_in=made_in)
                for id, made_in in (
                    ("call_1", None),
                    ("call_2", MadeIn("call_1", 1, 2)),
                    ("call_3", MadeIn("call_1", 1, 1)),
                )
            ]
            await store.append("turn_1", 1, 4, scene.change("c", calls=[outer], made=inner))
            for message in (await store.message("msg_r1"), (await store.messages("conv_1"))[0][-1]):
                assert [call.id for call in message.all_calls] == ["call_1", "call_3", "call_2"]
            mentions = [(one.noun, one.id) for one in await store.mentions(key, "ada")]
            assert sorted(mentions) == [("call", call.id) for call in (outer, *inner)]
            await store.delete_conversation("conv_1")
            assert await store.mentions(key, "ada") == []

    async def test_messages_are_read_as_json_as_well(self, tmp_path: Path) -> None:
        """S1: the same ones, in the same order, of the same revision, with their calls as they are now."""
        async with self.opened(tmp_path) as store:
            await scene.asked(store)
            messages, revision = await store.messages("conv_1")
            assert any(message.calls for message in messages)
            texts = {message.id: MESSAGE.dump(message) for message in messages}
            assert await store.message_texts("conv_1") == (texts, revision)
            assert [*(await store.message_texts("conv_1"))[0]] == [*texts]
            with refused(NotFound):
                await store.message_texts("conv_9")
