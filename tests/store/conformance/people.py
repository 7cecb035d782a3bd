"""Tests for every store: users, their prompts and spending, and pins of external tools."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from dragoman.conversation.tree import Conversation
from dragoman.errors import BadRequest, NotFound
from dragoman.messages.message import CallState, ToolCall, ToolResult
from dragoman.messages.questions import Rule
from dragoman.messages.usage import Spending, Usage
from dragoman.store.store import AuditEntry, Busy, Identity, Person, Start

from . import scene
from .scene import refused
from .suite import Suite


class PeopleConformance(Suite):
    """Pins, keys, prompts, spending."""

    async def test_a_pin_is_the_last_one_set(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            assert await store.pin("ada", "mcp.maps.find") is None
            await store.set_pin("ada", "mcp.maps.find", "one")
            await store.set_pin("ada", "mcp.maps.find", "two")
        async with self.opened(tmp_path) as store:
            assert await store.pin("ada", "mcp.maps.find") == "two"
            assert await store.pin("bob", "mcp.maps.find") is None

    async def test_a_person_is_known_by_the_hash_of_a_key_until_removed(self, tmp_path: Path) -> None:
        """U2"""
        async with self.opened(tmp_path) as store:
            await store.add_person("ada", "hash", 1.0)
            with refused(BadRequest, "'ada' exists already"):
                await store.add_person("ada", "other", 2.0)
            assert await store.people() == [Person("ada", 1.0)]
            assert await store.person_with_key("hash") == "ada"
            assert await store.key_of("ada") == "hash"
            assert await store.key_of("bob") is None
            assert await store.person_with_key("other") is None
            await store.remove_person("ada")
            assert await store.person_with_key("hash") is None
            with refused(NotFound):
                await store.remove_person("ada")

    async def test_the_name_of_a_removed_user_is_given_to_nobody_by_accident(self, tmp_path: Path) -> None:
        """A removed user's conversations come with the name, so adding that name needs a confirmation
        (V4)."""
        async with self.opened(tmp_path) as store:
            await store.add_conversation(Conversation("conv_1", user="bob"))
            await store.add_person("ada", "hash", 1.0)
            before = await store.access_revision()
            await store.remove_person("ada")
            assert await store.access_revision() != before
            assert [await store.is_removed(name) for name in ("ada", "bob")] == [True, False]
            for name in ("ada", "bob"):  # he never had a key here, and conversations
                with refused(BadRequest, "was used before"):
                    await store.add_person(name, "other", 2.0)
                await store.add_person(name, f"{name}'s", 2.0, restore=True)
            assert not await store.is_removed("ada")
            with refused(BadRequest, "'ada' exists already"):
                await store.add_person("ada", "again", 3.0, restore=True)

    async def test_a_removed_user_begins_no_turn_and_may_do_nothing(self, tmp_path: Path) -> None:
        """The removal also stops a running turn, whatever was allowed before (V4)."""
        async with self.opened(tmp_path) as store:
            await store.add_person("ada", "hash", 1.0)
            await scene.asked(store)
            await store.remove_person("ada")
            (grant,) = await store.grants("conv_1")
            assert (grant.rule, grant.user) == (Rule("*", "*", "deny"), "ada")
            with refused(NotFound, "ada"):
                await store.start(Start("turn_9", "conv_1", "{}", 2.0, again="msg_1"))
            await store.add_person("ada", "new", 2.0, restore=True)
            assert await store.grants("conv_1") == []

    async def test_an_account_keeps_its_user(self, tmp_path: Path) -> None:
        """V4: by issuer and subject. No account gets the name that another user has or had."""
        async with self.opened(tmp_path) as store:
            await store.add_person("ada", "hash", 1.0)
            first = await store.identify("https://one", "7", name="ada", key="k1", epoch="e1", created=1.0)
            assert first == Identity("ada-2", "e1", new=True)
            again = await store.identify("https://one", "7", name="eve", key="k2", epoch="e2", created=2.0)
            assert again == Identity("ada-2", "e1")
            other = await store.identify("https://two", "7", name="ada", key="k3", epoch="e3", created=3.0)
            assert other == Identity("ada-3", "e3", new=True)
            assert await store.epoch_of_identity("ada") is None
            assert await store.end_sessions_of_identity("https://one", "8", "e4") is None
            assert await store.end_sessions_of_identity("https://one", "7", "e4") == "ada-2"
            assert await store.epoch_of_identity("ada-2") == "e4"
            await store.remove_person("ada-2")
        async with self.opened(tmp_path) as store:
            assert (
                await store.identify("https://one", "7", name="ada", key="k1", epoch="e1", created=1.0)
                is None
            )

    async def test_accounts_that_come_at_the_same_time_get_names_of_their_own(self, tmp_path: Path) -> None:
        """V4: one account that comes twice is one user, and no account gets the name of a user with a key."""
        async with self.opened(tmp_path) as store, self.opened(tmp_path) as other:
            stores = [store, other] * 4
            adding = asyncio.gather(
                *(
                    each.identify(
                        "https://one", f"{n % 5}", name="ada", key=f"k{n}", epoch=f"e{n}", created=1.0
                    )
                    for n, each in enumerate(stores)
                ),
                store.add_person("ada", "hash", 1.0),
                return_exceptions=True,
            )
            *found, added = await adding
            users = [one.person for one in found if isinstance(one, Identity)]
            assert len(users) == len(stores)
            assert [users[n] for n in range(3)] == [users[n + 5] for n in range(3)]
            assert len({*users}) == 5
            assert ("ada" in users) == isinstance(added, BadRequest)
            assert len(await store.people()) == 5 + (added is None)

    async def test_what_counts_once_counts_once(self, tmp_path: Path) -> None:
        """V4"""
        async with self.opened(tmp_path) as store:
            assert [await store.use_once("a", 100.0, 1.0) for _ in range(2)] == [True, False]
            assert await store.use_once("b", 300.0, 200.0)
            assert await store.use_once("a", 400.0, 200.0)

    async def test_the_audit_log_is_read_from_its_end(self, tmp_path: Path) -> None:
        """V4"""
        entries = [
            AuditEntry(float(n), "sign_in.done", "ada", "::1", "key", {"n": n, "é": [n]}) for n in range(5)
        ]
        async with self.opened(tmp_path) as store:
            for entry in entries:
                await store.add_audit(entry)
            newest = await store.audit(limit=2)
            assert [replace(one, seq=0) for one in newest] == [entries[4], entries[3]]
            older = await store.audit(1.0, before=newest[-1].seq)
            assert [replace(one, seq=0) for one in older] == [entries[2], entries[1]]
            assert await store.forget_audit(3.0) == 3
            assert len(await store.audit()) == 2

    async def test_a_session_that_was_ended_stays_so_until_its_cookie_expires(self, tmp_path: Path) -> None:
        """V4, U2"""
        async with self.opened(tmp_path) as store:
            await store.end_session("one", 100.0, 1.0)
            await store.end_session("one", 100.0, 1.0)
        async with self.opened(tmp_path) as store:
            assert await store.is_session_ended("one")
            assert await store.is_session_ended("two", "one")
            assert not await store.is_session_ended("two")
            await store.end_session("two", 300.0, 200.0)
            assert [await store.is_session_ended(one) for one in ("one", "two")] == [False, True]

    async def test_models_with_native_calls_are_known_after_a_restart(self, tmp_path: Path) -> None:
        """D6"""
        async with self.opened(tmp_path) as store:
            assert await store.native_models() == set()
            await store.add_native_model("acme/large")
            await store.add_native_model("acme/large")
        async with self.opened(tmp_path) as store:
            assert await store.native_models() == {"acme/large"}

    async def test_prompts_belong_to_one_person(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await store.set_prompt("ada", "review", "Read this.")
            await store.set_prompt("ada", "review", "Read this again.")
            assert await store.prompts("ada") == {"review": "Read this again."}
            assert await store.prompts("bob") == {}
            with refused(NotFound):
                await store.remove_prompt("bob", "review")
            await store.remove_prompt("ada", "review")
            assert await store.prompts("ada") == {}

    async def test_what_replies_used_is_known_by_model_and_day(self, tmp_path: Path) -> None:
        """T11"""
        used = replace(scene.user("msg_1", None), model="m", usage=Usage(1, 2, cost=0.5), created=86_400.0)
        async with self.opened(tmp_path) as store:
            await store.add_conversation(scene.CONVERSATION, [used, scene.user("msg_2", "msg_1")])
            (spent,) = await store.spending(user="ada")
            assert (spent.model, spent.day, spent.usage) == ("m", "1970-01-02", Usage(1, 2, cost=0.5))
            assert await store.spending(user="bob") == []

    async def test_pictures_and_sound_without_a_price_are_counted_as_such(self, tmp_path: Path) -> None:
        """T11, M1: they may have used no token at all."""
        picture = replace(scene.user("msg_1", None), model="m", usage=Usage(images=1), created=86_400.0)
        heard = replace(scene.user("msg_2", "msg_1"), model="m", usage=Usage(seconds=2.5), created=86_401.0)
        paid = replace(
            scene.user("msg_3", "msg_2"), model="m", usage=Usage(characters=5, cost=0.5), created=86_402.0
        )
        async with self.opened(tmp_path) as store:
            await store.add_conversation(scene.CONVERSATION, [picture, heard, paid])
            (spent,) = await store.spending(user="ada")
            assert (spent.replies, spent.unpriced, spent.cost) == (3, 2, 0.5)

    async def test_what_was_spent_is_told_by_day_person_model_and_tool(self, tmp_path: Path) -> None:
        """Usage without a price counts, and does not spoil the sum (T11, O3)."""
        day = 86_400.0
        known = replace(scene.user("msg_1", None), model="m", usage=Usage(1, 2, cost=0.5), created=day)
        unknown = replace(scene.user("msg_2", "msg_1"), model="m", usage=Usage(3, 4), created=day + 1)
        called = ToolCall("call_1", "delete", {}, state=CallState.COMPLETED, result=ToolResult("gone"))
        later = replace(
            scene.reply("msg_3", "msg_2", called),
            model="other",
            usage=Usage(10, 10, cost=1.0),
            created=2 * day,
        )
        async with self.opened(tmp_path) as store:
            conversation = replace(scene.CONVERSATION, updated=2 * day)
            await store.add_conversation(conversation, [known, unknown, later])
            whole = await store.spending()
            assert whole[:2] == [
                Spending("1970-01-02", "ada", "m", replies=2, input=4, output=6, cost=0.5, unpriced=1),
                Spending("1970-01-03", "ada", "other", replies=1, input=10, output=10, cost=1.0),
            ]
            assert [(one.tool, one.calls) for one in whole[2:]] == [("delete", 1)]
            assert [one.model for one in await store.spending(since=1.5 * day, user="ada")] == [
                "other",
                "other",
            ]
            assert await store.spending(user="bob") == []
            assert await store.spending(since=3 * day) == []
            assert await store.spending(since=1e12) == []  # after the last year that has a name
            await store.delete_conversation(conversation.id)
            assert await store.spending() == whole  # a user has paid for deleted conversations too
            assert await store.spending(since=3 * day) == []
            again = replace(conversation, id="conv_2")
            await store.add_conversation(again, [replace(known, id="msg_9", conversation=again.id)])
            await store.delete_conversation(again.id)
            assert (await store.spending(user="ada"))[0].replies == 3

    async def test_what_goes_on_is_known_of_each_conversation(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await scene.asked(store)
            await store.add_conversation(Conversation("conv_2"))
            assert list(await store.revisions(["conv_2", "conv_9"])) == ["conv_2"]
            assert await store.busy(["conv_1", "conv_2"]) == {"conv_1": Busy(True, 1), "conv_2": Busy()}
