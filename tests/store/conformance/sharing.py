"""Tests for every store: conversations shared by several users, and their permissions at each moment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dragoman.conversation.sharing import Member, Right, Share
from dragoman.conversation.tree import LOCAL, Conversation
from dragoman.errors import BadRequest, Forbidden, NotFound
from dragoman.messages.questions import Answer, Grant, Rule
from dragoman.store.store import ListChange, Start

from . import scene
from .lists import heard
from .scene import refused
from .suite import Suite

BOB = Member("bob", "takes_part", "ada", 2.0)
TASK = Conversation("conv_2", user="somebody", parent="conv_1", call="call_1")
INVITED = Share(id="share_1", conversation="conv_1", hash="h", kind="invitation", role="answers", expires=4e9)


class SharingConformance(Suite):
    """V1, V2."""

    async def test_a_member_has_the_right_of_the_role_until_removed(self, tmp_path: Path) -> None:
        """V1: also in conversations that calls opened, before and after."""
        async with self.opened(tmp_path) as store:
            await store.add_conversation(scene.CONVERSATION)
            await store.add_conversation(TASK)
            rights = {"ada": Right.OWN, "bob": Right.TAKE_PART, "eve": Right.NONE, LOCAL: Right.NONE}
            await store.set_member("conv_2", BOB)
            await store.add_conversation(replace(TASK, id="conv_3", parent="conv_2"))
            for id in ("conv_1", "conv_2", "conv_3"):
                assert {user: await store.right_of(id, user) for user in rights} == rights
                assert await store.members(id) == [BOB]
                assert await store.owner_of(id) == "ada"
            await store.set_member("conv_1", replace(BOB, role="reads"))
            assert await store.right_of("conv_3", "bob") is Right.READ
            with refused(BadRequest, "ada"):
                await store.set_member("conv_1", Member("ada", "reads"))
            await store.remove_member("conv_3", "bob")
            with refused(NotFound, "bob"):
                await store.remove_member("conv_1", "bob")
            for look in (store.sent_by("conv_x", "bob"), store.right_of("conv_x", "bob")):
                with refused(NotFound, "conv_x"):
                    await look
            assert {
                id: await store.right_of(id, "bob") for id in ("conv_1", "conv_2", "conv_3")
            } == dict.fromkeys(("conv_1", "conv_2", "conv_3"), Right.NONE)
            with refused(NotFound, "conv_9"):
                await store.right_of("conv_9", "bob")

    async def test_a_user_who_is_removed_shares_nothing_any_more(self, tmp_path: Path) -> None:
        """V1, V4: neither invitations and links that they made, nor those of what was theirs."""
        async with self.opened(tmp_path) as store:
            await store.add_conversation(scene.CONVERSATION)
            await store.add_conversation(Conversation("conv_2", user="bob"))
            for user in ("ada", "bob"):
                await store.add_person(user, f"hash of {user}", 1.0, restore=True)
            made = (
                ("1", "conv_1", "ada"),
                ("2", "conv_1", "eve"),
                ("3", "conv_2", "ada"),
                ("4", "conv_2", "bob"),
            )
            for id, conversation, user in made:
                share = replace(INVITED, id=id, hash=id, conversation=conversation, created_by=user)
                await store.add_share(share)
            await store.remove_person("ada")
            found = [one.id for id in ("conv_1", "conv_2") for one in await store.shares(id, 2.0)]
            assert found == ["4"]

    async def test_what_is_shared_is_listed_found_and_asked_with_what_is_ones_own(
        self, tmp_path: Path
    ) -> None:
        """V1: in one order, and only for who wants it so."""
        async with self.opened(tmp_path) as store:
            await scene.asked(store)
            await store.set_title("conv_1", "raven")
            await store.label_conversation("conv_1", tags=["bird"])
            await store.add_conversation(Conversation("conv_8", title="raven", user="bob", updated=0.5))
            await store.add_conversation(Conversation("conv_9", title="raven", user="bob", updated=99.0))
            await store.set_member("conv_1", BOB)
            listed = await store.conversations(user="bob", shared=True)
            assert [one.id for one in listed] == ["conv_9", "conv_1", "conv_8"]
            assert [one.id for one in await store.conversations(user="bob", shared=True, limit=2)] == [
                "conv_9",
                "conv_1",
            ]
            page = await store.conversations(user="bob", shared=True, before=(99.0, "conv_9"), tag="bird")
            assert [one.id for one in page] == ["conv_1"]
            assert [one.id for one in await store.conversations(user="bob")] == ["conv_9", "conv_8"]
            assert await store.tags("bob", shared=True) == ["bird"]
            assert await store.tags("bob") == []
            for word, count in (("raven", 3), ("hello", 1)):
                hits = await store.search(word, user="bob", shared=True, distinct=True)
                assert len({hit.conversation for hit in hits}) == count, word
            assert {hit.conversation for hit in await store.search("raven", user="bob")} == {
                "conv_8",
                "conv_9",
            }
            assert [one.id for one in await store.questions(user="bob", shared=True)] == ["ask_1"]
            assert await store.questions(user="bob") == []
            await store.set_member("conv_1", replace(BOB, role="reads"))
            assert await store.questions(user="bob", shared=True) == []

    async def test_another_process_learns_what_is_shared_and_what_no_longer(self, tmp_path: Path) -> None:
        """A change names each user who gains or loses access (V1 × N3)."""
        bobs = {ListChange("conv_1", "bob"), ListChange("conv_2", "bob")}
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as other:
            await one.add_conversation(scene.CONVERSATION)
            await one.add_conversation(TASK)
            await other.list_changes()
            await heard(one, other)
            await one.set_member("conv_1", BOB)
            assert await heard(one, other) == bobs
            await one.set_title("conv_2", "new")
            assert await heard(one, other) == {ListChange("conv_2", "ada"), ListChange("conv_2", "bob")}
            await one.remove_member("conv_1", "bob")
            assert await heard(one, other) == bobs

    async def test_nothing_begins_in_the_name_of_who_was_removed(self, tmp_path: Path) -> None:
        """No turn, queued turn or answer of a removed user starts (V1)."""
        async with self.opened(tmp_path) as store:
            await store.add_conversation(scene.CONVERSATION)
            with refused(NotFound, "conv_1"):
                await store.start(start("turn_0", "msg_0"))
            await store.set_member("conv_1", BOB)
            assert await store.start(start("turn_1", "msg_1")) is not None
            assert (await store.turn("turn_1")).sender == "bob"
            assert await store.start(replace(start("turn_2", "msg_2"), queue=True)) is None
            assert [one.sender for one in await store.queued()] == ["bob"]
            assert sorted(await store.sent_by("conv_1", "bob")) == ["turn_1", "turn_2"]
            assert sorted(await store.remove_member("conv_1", "bob")) == ["turn_1", "turn_2"]
            await scene.ended(store)
            assert await store.start_queued("turn_2") is None
            assert await store.queued() == []

    async def test_who_may_not_answer_does_not(self, tmp_path: Path) -> None:
        """V2: and a removed person is another one when the name comes again."""
        async with self.opened(tmp_path) as store:
            await scene.asked(store)
            await store.set_member("conv_1", replace(BOB, role="reads"))
            with refused(Forbidden):
                await store.answer("ask_1", Answer("allow"), by="bob")
            await store.add_person("bob", "hash", 1.0)
            await store.remove_person("bob")
            assert await store.members("conv_1") == []
            await store.set_member("conv_1", replace(BOB, role="answers"))
            assert (await store.answer("ask_1", Answer("allow"), by="bob")).answer is not None

    async def test_a_rule_is_for_what_its_giver_sends_but_what_the_owner_denies(self, tmp_path: Path) -> None:
        """V2"""
        async with self.opened(tmp_path) as store:
            await store.add_conversation(scene.CONVERSATION)
            for user, action in (("ada", "allow"), ("ada", "deny"), ("bob", "allow"), ("bob", "deny")):
                rule = Rule("shell", "*", "allow" if action == "allow" else "deny")
                await store.add_grant(Grant(f"{user} {action}", rule, user=user))
            await store.set_member("conv_1", BOB)
            assert {one.id for one in await store.grants("conv_1")} == {"ada allow", "ada deny"}
            assert {one.id for one in await store.grants("conv_1", user="ada")} == {"ada allow", "ada deny"}
            assert {one.id for one in await store.grants("conv_1", user="bob")} == {
                "bob allow",
                "bob deny",
                "ada deny",
            }
            await store.set_member("conv_1", replace(BOB, role="answers"))
            assert (await store.grants("conv_1", user="bob"))[-1].rule == Rule("*", "*", "deny")

    async def test_a_new_owner_owns_all_of_it_and_nothing_that_was_sent(self, tmp_path: Path) -> None:
        """V1, V2"""
        async with self.opened(tmp_path) as store:
            await scene.asked(store)
            await store.add_conversation(TASK)
            with refused(NotFound, "bob"):
                await store.transfer("conv_1", "bob", 5.0)
            await store.set_member("conv_1", BOB)
            await store.add_share(INVITED)
            await store.transfer("conv_1", "bob", 5.0)
            assert await store.share(INVITED.hash, 1.0) is None  # the old owner has given away nothing more
            for id in ("conv_1", "conv_2"):
                assert await store.right_of(id, "bob") is Right.OWN
                assert await store.right_of(id, "ada") is Right.TAKE_PART
            assert (await store.turn("turn_1")).sender == "ada"
            await store.set_member("conv_1", Member(LOCAL, "reads"))
            await store.transfer("conv_1", LOCAL, 6.0)
            assert (await store.conversation("conv_1")).user is None

    async def test_an_invitation_makes_one_member_until_it_ends(self, tmp_path: Path) -> None:
        """A used, expired or revoked invitation, or one to a deleted conversation, has no effect (V1)."""
        async with self.opened(tmp_path) as store:
            await store.add_conversation(scene.CONVERSATION)
            await store.add_conversation(TASK)
            with refused(BadRequest):
                await store.add_share(replace(INVITED, conversation="conv_2"))
            await store.add_share(INVITED)
            assert await store.shares("conv_1", 1.0) == [INVITED]
            assert await store.use_invitation("h", "ada", 1.0) == "conv_1"  # the owner uses nothing up
            assert await store.use_invitation("h", "bob", 4e9) is None
            assert await store.use_invitation("h", "bob", 1.0) == "conv_1"
            assert await store.right_of("conv_1", "bob") is Right.ANSWER
            assert await store.use_invitation("h", "eve", 1.0) is None
            await store.add_share(replace(INVITED, id="share_2", hash="i", kind="link", omits=("files",)))
            assert await store.use_invitation("i", "eve", 1.0) is None
            state = await store.share("i", 1.0)
            assert state is not None
            assert (state.share.omits, state.share.kind) == (("files",), "link")
            with refused(NotFound):
                await store.remove_share("conv_2", "share_2")
            await store.add_share(replace(INVITED, id="share_4", hash="k", created_by="carol"))
            assert await store.share("k", 1.0) is not None
            await store.add_person("carol", "hash", 1.0)
            await store.remove_person("carol")
            assert await store.share("k", 1.0) is None  # V4
            await store.remove_share("conv_1", "share_2")
            assert await store.share("i", 1.0) is None
            await store.add_share(replace(INVITED, id="share_3", hash="j"))
            await store.delete_conversation("conv_1")
            assert await store.share("j", 1.0) is None
            assert await store.use_invitation("j", "eve", 1.0) is None


def start(turn: str, message: str) -> Start:
    said = scene.user(message, turn=turn)
    return Start(turn, "conv_1", '{"type": "turn_started"}', 1.0, said, by="bob")
