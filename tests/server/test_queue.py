"""Check messages that no turn has taken yet: every client sees them, and can change, reorder and cancel them
(T13)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import ToolContext, tool
from dragoman.errors import StoreUnavailable
from dragoman.messages.questions import Question
from dragoman.server.auth import key_hash
from dragoman.store.sqlite import SqliteStore
from dragoman.store.store import Queued
from dragoman.wire.scripted import calls, says
from tests.patience import PATIENCE
from tests.runtimes import model_of, runtime_with
from tests.server.site import Received, Site, served

pytestmark = pytest.mark.slow


class Gate:
    """A tool that runs until the test opens it."""

    def __init__(self) -> None:
        self.open = asyncio.Event()

        @tool(cancellable=True)
        async def wait(context: ToolContext) -> str:
            """Wait."""
            await self.open.wait()
            return "ready"

        self.tool = wait


async def at_the_gate(site: Site) -> tuple[str, str]:
    """Return a conversation and a turn in it that runs until the gate is opened."""
    id = await site.conversation()
    turn = await site.say("go", id)
    await site.until(f"/api/turns/{turn}/events", "call.start")
    return id, turn


async def next_of(events: AsyncIterator[Received], type: str) -> Any:
    async for event in events:
        if event.type == type:
            return event.data
    raise AssertionError(f"there was no {type}")


def texts(queue: dict[str, Any]) -> list[str]:
    return [one["message"]["parts"][0]["text"] for one in queue["queued"]]


async def test_what_is_queued_is_changed_and_reordered_and_begins_so(tmp_path: Path) -> None:
    """T13"""
    gate = Gate()
    script = [calls("wait"), says("done"), says("one"), says("two")]
    async with served(tmp_path, script, tools=[gate.tool]) as site:
        id, _ = await at_the_gate(site)
        first, second, third = [await site.say(text, id, queue=True) for text in ("a", "b", "c")]
        changed = await site.ask("PATCH", f"/api/turns/{second}", {"text": "better"})
        assert (changed.status, changed.body["message"]["parts"][0]["text"]) == (200, "better")
        order = {"turns": [third, second, "turn_gone"]}
        assert texts((await site.ask("PUT", f"/api/conversations/{id}/queue", order)).body) == [
            "c",
            "better",
            "a",
        ]
        assert await site.post(f"/api/turns/{first}/cancel") == {"cancelled": True}
        tree = await site.get(f"/api/conversations/{id}/tree")
        assert texts(tree) == texts(await site.get(f"/api/conversations/{id}/queue")) == ["c", "better"]
        blank = await site.ask("PATCH", f"/api/turns/{second}", {"text": " "})
        assert (blank.status, "blank" in blank.body["detail"]) == (422, True)
        async with site.events(f"/api/conversations/{id}/events") as events:
            await anext(events)  # else the turn may end before anybody listens
            gate.open.set()
            async for event in events:
                if event.type == "turn.end" and event.data["turn"] == second:
                    break
        tree = await site.get(f"/api/conversations/{id}/tree")
        said = [m["parts"][0]["text"] for m in tree["messages"] if m["role"] == "user"]
        assert said == ["go", "c", "better"]
        late = await site.ask("PATCH", f"/api/turns/{second}", {"text": "too late"})
        assert (late.status, "is over" in late.body["detail"]) == (409, True)


async def test_what_is_queued_is_followed_from_its_beginning(tmp_path: Path) -> None:
    """The stream waits for the turn, and ends in order if the message is cancelled instead (T13 × E1)."""
    gate = Gate()
    async with served(tmp_path, [calls("wait"), says("done"), says("later")], tools=[gate.tool]) as site:
        id, _ = await at_the_gate(site)
        first, second = [await site.say(text, id, queue=True) for text in ("a", "b")]
        one, two = f"/api/turns/{first}/events", f"/api/turns/{second}/events"
        async with site.events(one) as waiting, site.events(two) as called_off, asyncio.timeout(PATIENCE):
            await site.post(f"/api/turns/{second}/cancel")
            assert [event async for event in called_off] == []
            gate.open.set()
            told = [event async for event in waiting]
        assert (told[0].type, told[-1].type, told[-1].data["text"]) == ("turn.start", "turn.end", "later")
        assert (await site.ask("GET", two)).status == 404


async def test_a_turn_that_has_begun_is_not_changed(tmp_path: Path) -> None:
    """The server answers 409 and suggests steering. An unknown message gives 404 (T13)."""
    gate = Gate()
    async with served(tmp_path, [calls("wait"), says("done")], tools=[gate.tool]) as site:
        _, turn = await at_the_gate(site)
        refused = await site.ask("PATCH", f"/api/turns/{turn}", {"text": "other"})
        assert (refused.status, "steer it" in refused.body["detail"]) == (409, True)
        assert (await site.ask("PATCH", "/api/turns/turn_x", {"text": "other"})).status == 404
        gate.open.set()


async def test_every_client_sees_what_is_queued_and_what_will_steer(tmp_path: Path) -> None:
    """The queue is in the snapshot, changes are published, and a taken message leaves the queue (T13)."""
    gate = Gate()
    script = [calls("wait"), says("done"), says("later")]
    async with served(tmp_path, script, tools=[gate.tool]) as site:
        id, turn = await at_the_gate(site)
        async with site.events(f"/api/conversations/{id}/events") as events, asyncio.timeout(PATIENCE):
            assert (await anext(events)).data["queued"] == []
            await site.say("later", id, queue=True)
            queue = await next_of(events, "queue.changed")
            assert (queue["conversation"], texts(queue), queue["steering"]) == (id, ["later"], [])
            await site.post(f"/api/turns/{turn}/steer", {"text": "hurry"})
            # the reason why the first message waits can be published again before
            while not queue["steering"]:
                queue = await next_of(events, "queue.changed")
            assert [(one["turn"], one["message"]["role"]) for one in queue["steering"]] == [(turn, "user")]
            late = await site.until(f"/api/conversations/{id}/events", "snapshot")
            assert late[0].data["steering"] == queue["steering"]
            (steering,) = queue["steering"]
            assert (await site.ask("DELETE", f"/api/turns/{turn}/steering/{steering['id']}")).status == 204
            while queue["steering"]:
                queue = await next_of(events, "queue.changed")
            await site.post(f"/api/turns/{turn}/steer", {"text": "now"})
            gate.open.set()
            while queue["queued"] or queue["steering"]:
                queue = await next_of(events, "queue.changed")


class InterruptedStore(SqliteStore):
    """A store in which something happens during the read of a conversation, between its queue and its
    approval requests."""

    meanwhile: Callable[[], Awaitable[None]] | None = None

    async def questions(self, **which: Any) -> list[Question]:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            await meanwhile()
        return await super().questions(**which)


async def test_who_comes_while_the_queue_changes_learns_what_it_is(tmp_path: Path) -> None:
    """A change that was published during the read of the snapshot used to count as seen without being in it
    (T13 × E2)."""
    gate, store = Gate(), InterruptedStore(tmp_path / "chat.db")
    script = [calls("wait"), says("done"), says("later")]
    async with served(tmp_path, script, tools=[gate.tool], store=store) as site, asyncio.timeout(PATIENCE):
        id, _ = await at_the_gate(site)
        async with site.events(f"/api/conversations/{id}/events") as first:
            await anext(first)

            async def queue_something() -> None:
                await site.say("later", id, queue=True)
                await next_of(first, "queue.changed")

            store.meanwhile = queue_something
            async with site.events(f"/api/conversations/{id}/events") as second:
                assert (await anext(second)).data["queued"] == []
                assert texts(await next_of(second, "queue.changed")) == ["later"]
        gate.open.set()


class SlowQueueStore(SqliteStore):
    """The first look at a queue takes longer than those that come after it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.looks = 0
        self.first_is_over = asyncio.Event()

    async def queued(self, *, turn: str | None = None, conversation: str | None = None) -> list[Queued]:
        found = await super().queued(turn=turn, conversation=conversation)
        if found and conversation is not None:
            self.looks += 1
            if self.looks == 1:
                await asyncio.sleep(0.5)
                self.first_is_over.set()
        return found


async def test_a_queue_is_never_published_as_it_was_before(tmp_path: Path) -> None:
    """The last event about the queue that readers receive is its current state (T13 × E2)."""
    gate, store = Gate(), SlowQueueStore(tmp_path / "chat.db")
    script = [calls("wait"), says("done"), says("a"), says("b"), says("c")]
    async with served(tmp_path, script, tools=[gate.tool], store=store) as site, asyncio.timeout(PATIENCE):
        id, _ = await at_the_gate(site)
        async with site.events(f"/api/conversations/{id}/events") as events:
            await anext(events)
            for text in "ab":
                await site.say(text, id, queue=True)
            await store.first_is_over.wait()
            await site.say("c", id, queue=True)
            lengths = [0]
            while lengths[-1] < 3:
                lengths.append(len((await next_of(events, "queue.changed"))["queued"]))
        assert lengths == sorted(lengths)
        gate.open.set()


async def test_what_will_steer_is_called_off_and_no_request_contains_it(tmp_path: Path) -> None:
    """T13"""
    gate = Gate()
    async with served(tmp_path, [calls("wait"), says("done")], tools=[gate.tool]) as site:
        id, turn = await at_the_gate(site)
        for text in ("wrong", "right"):
            await site.post(f"/api/turns/{turn}/steer", {"text": text})
        wrong, right = (await site.get(f"/api/conversations/{id}/queue"))["steering"]
        path = f"/api/turns/{turn}/steering"
        assert (await site.ask("DELETE", f"{path}/{wrong['id']}")).status == 204
        assert (await site.ask("DELETE", f"{path}/{wrong['id']}")).status == 404
        assert (await site.ask("DELETE", f"{path}/x")).status == 422
        gate.open.set()
        await site.until(f"/api/turns/{turn}/events", "turn.end")
        assert (await site.ask("DELETE", f"{path}/{right['id']}")).status == 404
        last = str(model_of(site.runtime).requests[-1].messages)
        assert ("right" in last, "wrong" in last) == (True, False)


class FaultyStore(SqliteStore):
    """A store that can be reached but fails to remove a queued message."""

    async def withdraw_steering(self, turn: str, signal: int) -> bool:
        raise StoreUnavailable("the store cannot be written", "the disk is full")


async def test_what_could_not_be_called_off_steers_the_turn(tmp_path: Path) -> None:
    """The message used to be forgotten although it was stored, and the turn never ended (T13 × S2)."""
    gate, store = Gate(), FaultyStore(tmp_path / "chat.db")
    async with served(tmp_path, [calls("wait"), says("done")], tools=[gate.tool], store=store) as site:
        id, turn = await at_the_gate(site)
        for text in ("one", "two", "three"):
            await site.post(f"/api/turns/{turn}/steer", {"text": text})
        first, *_ = (await site.get(f"/api/conversations/{id}/queue"))["steering"]
        assert (await site.ask("DELETE", f"/api/turns/{turn}/steering/{first['id']}")).status == 503
        gate.open.set()
        async with asyncio.timeout(PATIENCE):
            await site.until(f"/api/turns/{turn}/events", "turn.end")
        tree = await site.get(f"/api/conversations/{id}/tree")
        said = [m["parts"][0]["text"] for m in tree["messages"] if m["role"] == "user"]
        assert said == ["go", "one", "two", "three"]


async def test_what_another_process_has_taken_is_not_called_off_here(tmp_path: Path) -> None:
    """The server answers 409 rather than a promise that it cannot keep (T13)."""
    gate = Gate()
    async with served(tmp_path, []) as site:
        id = await site.conversation()
        # the process can learn of the message before or after its answer
        script = [calls("wait"), says("done"), says("done")]
        async with runtime_with(tmp_path, script, tools=[gate.tool]) as other:
            turn = await (await other.conversation(id)).send("go")
            async for event in turn.events():
                if event.type == "call.start":
                    break
            await site.post(f"/api/turns/{turn.id}/steer", {"text": "hurry"})
            (hurry,) = (await site.get(f"/api/conversations/{id}/queue"))["steering"]
            refused = await site.ask("DELETE", f"/api/turns/{turn.id}/steering/{hurry['id']}")
            assert refused.status == 409
            gate.open.set()
            assert (await turn.result()).text == "done"


class OvertakenStore(SqliteStore):
    """A store in which a turn always begins just before a client cancels it."""

    gate: Gate

    async def unqueue(self, turn: str) -> bool:
        self.gate.open.set()
        while await self.is_queued(turn):  # noqa: ASYNC110 - the store tells nobody
            await asyncio.sleep(0.01)
        return await super().unqueue(turn)


@tool(cancellable=True)
async def hold(context: ToolContext) -> str:
    """Wait for ever."""
    await asyncio.Event().wait()
    return "never"


async def test_a_turn_that_begins_while_it_is_called_off_is_cancelled(tmp_path: Path) -> None:
    """The server used to answer that the turn was not cancelled, and the turn continued (T13 × cancel)."""
    store = OvertakenStore(tmp_path / "chat.db")
    store.gate = gate = Gate()
    script = [calls("wait"), says("done"), calls("hold")]
    async with served(tmp_path, script, tools=[gate.tool, hold], store=store) as site:
        id, _ = await at_the_gate(site)
        later = await site.say("later", id, queue=True)
        async with asyncio.timeout(PATIENCE):
            assert await site.post(f"/api/turns/{later}/cancel") == {"cancelled": True}
            await site.until(f"/api/turns/{later}/events", "turn.end")
        assert await site.state(later) == "cancelled"


@pytest.mark.parametrize(
    ("method", "path"),
    [("PATCH", "/api/turns/{turn}"), ("POST", "/api/turns/{turn}/cancel"), ("GET", "/api/turns/{turn}")],
)
async def test_what_somebody_else_has_queued_is_not_there(tmp_path: Path, method: str, path: str) -> None:
    """U2, T13"""
    gate = Gate()
    async with served(tmp_path, [calls("wait"), says("done")], tools=[gate.tool]) as site:
        id, _ = await at_the_gate(site)
        turn = await site.say("later", id, queue=True)
        await site.runtime.store.add_person("bob", key_hash("key of bob"), 1.0)
        bob = Site(site.url, site.runtime, site.auth, site.http, key="key of bob")
        body = None if method == "GET" else {"text": "x"} if method == "PATCH" else {}
        assert (await bob.ask(method, path.format(turn=turn), body)).status == 404
        assert (await bob.ask("PUT", f"/api/conversations/{id}/queue", {"turns": []})).status == 404
        await site.post(f"/api/turns/{turn}/cancel")
        gate.open.set()
