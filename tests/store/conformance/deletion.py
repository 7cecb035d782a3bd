"""Tests for every store: a deleted conversation disappears for every user immediately, with its contents."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from dragoman.conversation.tree import Conversation
from dragoman.errors import Fenced, NotFound
from dragoman.messages.message import File, ProviderFile
from dragoman.messages.questions import Answer, Grant, Rule
from dragoman.store.store import UploadedFile

from . import scene
from .scene import refused
from .suite import Suite


class DeletionConformance(Suite):
    """No query finds a deleted row, and other rows stay."""

    async def test_deleting_a_conversation_leaves_nothing_of_it(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await scene.asked(store)
            grant = Grant("grant_1", Rule("x"), "conv_1", 1.0)
            await store.answer("ask_1", Answer("allow"), [grant])
            await store.start(scene.start(2, parent="msg_r1", queue=True))
            await store.add_conversation(
                Conversation("conv_2"), [scene.user("msg_9", conversation="conv_2", text="hello")]
            )
            assert len(await store.search("hello")) == 2
            await store.delete_conversation("conv_1")
            assert [found.conversation for found in await store.search("hello")] == ["conv_2"]
            assert await store.live_turns() == []
            assert await store.turns("conv_1") == []
            assert await store.questions() == []
            assert await store.grants() == []
            assert await store.turns_with_signals() == []
            assert not await store.is_queued("turn_2")
            for look, id in ((store.message, "msg_1"), (store.call, "call_1"), (store.question, "ask_1")):
                with refused(NotFound):
                    await look(id)
            await scene.begun(store)  # its ids are free again
            assert len(await store.search("hello")) == 2

    async def test_a_conversation_is_deleted_with_those_its_calls_opened(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            for id, parent in (("conv_1", None), ("conv_2", "conv_1"), ("conv_3", "conv_2")):
                messages = [scene.user(f"{id}_a", None, id), scene.user(f"{id}_b", f"{id}_a", id)]
                await store.add_conversation(Conversation(id, parent=parent, call="call_1"), messages)
            await store.add_conversation(Conversation("conv_4"))
            assert await store.within("conv_1") == ["conv_3", "conv_2", "conv_1"]
            assert (await store.conversation("conv_2")).parent == "conv_1"
            await store.delete_conversation("conv_1")
            assert [one.id for one in await store.conversations()] == ["conv_4"]

    async def test_whoever_runs_a_turn_in_it_is_fenced_off(self, tmp_path: Path) -> None:
        """S3: also in another process."""
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as other:
            await scene.begun(one)
            await other.delete_conversation("conv_1")
            with refused(Fenced, "turn_1"):
                await one.append("turn_1", 1, 2, scene.change("x"))
            with refused(NotFound):
                await one.start(scene.start(2))

    async def test_of_two_that_delete_one_finds_nothing(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as other:
            await scene.replied(one)
            outcomes = await asyncio.gather(
                one.delete_conversation("conv_1"), other.delete_conversation("conv_1"), return_exceptions=True
            )
            assert [type(outcome) for outcome in outcomes if outcome] == [NotFound]
            assert await one.conversations() == []

    async def test_others_write_while_a_long_conversation_is_deleted(self, tmp_path: Path) -> None:
        """The store removes it in steps, and no reader sees half of it (S2)."""
        messages = [scene.user("msg_0"), *(scene.user(f"msg_{n}", f"msg_{n - 1}") for n in range(1, 1000))]
        async with self.opened(tmp_path) as store:
            await store.add_conversation(scene.CONVERSATION, messages)
            await store.add_conversation(Conversation("conv_2"))
            deletion = asyncio.create_task(store.delete_conversation("conv_1"))
            seen, writes = set(), 0

            async def look() -> None:
                while not deletion.done():
                    try:
                        seen.add(len((await store.messages("conv_1"))[0]))
                    except NotFound:
                        seen.add(0)

            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(look())
                while not deletion.done():
                    await store.set_title("conv_2", str(writes))
                    writes += 1
            await deletion
            assert seen <= {0, 1000}
            assert writes > 1
            assert [one.id for one in await store.conversations()] == ["conv_2"]

    async def test_a_file_that_others_mention_stays(self, tmp_path: Path) -> None:
        """A file stays as long as a message, a queued message or a forked conversation mentions it (S4)."""
        async with self.opened(tmp_path) as store:
            key = await store.put_blob(b"a picture")
            files = (File("image/png", blob=key),)
            await store.add_conversation(scene.CONVERSATION, [scene.user("msg_1", parts=files)])
            await store.add_conversation(
                Conversation("conv_2"), [scene.user("msg_2", None, "conv_2", parts=files)]
            )
            await store.delete_conversation("conv_1")
            assert await store.blob(key) == b"a picture"

    async def test_uploaded_files_are_their_users_until_removed_or_expired(self, tmp_path: Path) -> None:
        """Deleting another conversation leaves the bytes, and a user's limit applies to their sum (S4,
        U2)."""
        end = time.time() + 1000.0  # not expired yet: opening a store removes expired files
        async with self.opened(tmp_path) as store, self.opened(tmp_path) as second:
            key = await store.put_blob(b"notes")
            known: Any = {
                "blob": key,
                "name": "n.txt",
                "media_type": "text/plain",
                "size": 5,
                "purpose": "user_data",
            }
            one = UploadedFile(id="file_1", created=1.0, **known)
            soon = UploadedFile(id="file_2", created=2.0, expires=end, **known)
            assert await store.add_uploaded_file(one, "ada", 10)
            assert await second.add_uploaded_file(soon, "ada", 10)
            assert not await store.add_uploaded_file(
                UploadedFile(id="file_3", created=3.0, **known), "ada", 14
            )
            assert await second.uploaded_files("ada", end - 1) == [one, soon]
            assert await second.uploaded_files("ada", end) == [one]
            assert [mention.noun for mention in await second.mentions(key, "ada")] == ["upload", "upload"]
            assert await second.mentions(key, "bob") == []
            for id, user, now in (("file_1", "bob", 1.0), ("file_2", "ada", end)):
                with refused(NotFound, "file", id):
                    await second.uploaded_file(id, user, now)
            with refused(NotFound, "file_1"):
                await store.remove_uploaded_file("file_1", "bob")
            files = (File("text/plain", blob=key),)
            await store.add_conversation(scene.CONVERSATION, [scene.user("msg_1", parts=files)])
            await store.delete_conversation("conv_1")
            assert await second.blob(key) == b"notes"
            await second.remove_uploaded_file("file_1", "ada")
            with refused(NotFound, "file_1"):
                await store.remove_uploaded_file("file_1", "ada")

    async def test_files_at_providers_are_known_until_nobody_needs_them(self, tmp_path: Path) -> None:
        """Every process knows the file, the first of two identical uploads counts, and none is used after it
        expires (M3 × S1)."""
        now = time.time()
        end = now + 1000.0
        mine, other = (ProviderFile("acme:key", "a" * 64, f"file-{n}", expires=end) for n in (1, 2))
        for_ever = ProviderFile("acme:key", "b" * 64, "file-3")
        async with self.opened(tmp_path) as store, self.opened(tmp_path) as second:
            files = tuple(File("image/png", blob=one.blob) for one in (mine, for_ever))
            await store.add_conversation(scene.CONVERSATION, [scene.user("msg_1", parts=files)])
            assert await store.add_provider_file(mine, now) == mine
            assert await second.add_provider_file(other, now - 1) == mine  # its clock is behind
            assert await store.add_provider_file(mine, now + 1) == mine
            assert await store.add_provider_file(for_ever, now + 2) == for_ever
            assert await second.provider_file("acme:key", mine.blob, end - 1) == mine
            assert await second.provider_file("acme:key", mine.blob, end) is None
            assert await second.provider_file("acme:another key", mine.blob, now) is None
            assert await second.unwanted_provider_files(now) == []
            await second.forget_provider_file(mine)
            assert await store.provider_file("acme:key", mine.blob, now) == other
            await store.delete_conversation("conv_1")
            assert await second.unwanted_provider_files(now) == [other, for_ever]
            assert await second.unwanted_provider_files(end) == [for_ever]

    async def test_what_nobody_touched_is_found_and_deleted(self, tmp_path: Path) -> None:
        """The oldest conversations go first, with those that their calls opened. Newer ones stay (S1)."""
        async with self.opened(tmp_path) as store:
            for number in range(130):  # more than a page
                await store.add_conversation(Conversation(f"conv_{number}", updated=float(number)))
            inner = Conversation("conv_inner", parent="conv_3", call="call_1", updated=2.0)
            await store.add_conversation(inner, [scene.user("msg_1", None, "conv_inner", text="hello")])
            found = [one.id async for one in store.untouched(120.0)]
            assert found == [f"conv_{number}" for number in range(120)]
            assert {*await store.delete_untouched(120.0)} == {*found, "conv_inner"}
            left = await store.conversations(limit=200)
            assert {one.id for one in left} == {f"conv_{number}" for number in range(120, 130)}
            assert await store.search("hello") == []
            assert await store.delete_untouched(120.0) == []

    async def test_nothing_that_runs_waits_or_is_queued_is_taken_for_untouched(self, tmp_path: Path) -> None:
        """S1: a person may answer after years."""
        async with self.opened(tmp_path) as store:
            await scene.asked(store)
            assert [one async for one in store.untouched(1e12)] == []
            assert await store.delete_untouched(1e12) == []
            assert len(await store.questions()) == 1

    async def test_one_that_is_talked_in_further_inside_is_not_untouched(self, tmp_path: Path) -> None:
        """S1"""
        async with self.opened(tmp_path) as store:
            await store.add_conversation(Conversation("conv_1", updated=1.0))
            await store.add_conversation(Conversation("conv_2", parent="conv_1", call="c", updated=9.0))
            assert await store.delete_untouched(5.0) == []
            await store.label_conversation("conv_2", pinned=True)
            assert await store.delete_untouched(10.0) == []
            await store.label_conversation("conv_2", pinned=False)
            assert {*await store.delete_untouched(10.0)} == {"conv_1", "conv_2"}

    async def test_two_may_delete_what_is_untouched_at_once(self, tmp_path: Path) -> None:
        """Each conversation is deleted once, and neither caller gets an error (S1, N1)."""
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as other:
            for number in range(30):
                await one.add_conversation(Conversation(f"conv_{number}", updated=1.0))
            both = await asyncio.gather(one.delete_untouched(5.0), other.delete_untouched(5.0))
            assert sorted(both[0] + both[1]) == sorted(f"conv_{number}" for number in range(30))
            assert await one.conversations() == []
