"""Check that a removed user loses access at every server of the store: keys, sign-ins, links, streams, turns
(V4)."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from dragoman import Runtime, tool
from dragoman.messages.message import CallState
from dragoman.messages.questions import allow_once
from dragoman.server.audit import FailedSignIns
from dragoman.server.auth import key_hash
from dragoman.wire.scripted import calls, says
from tests.cli.program import program
from tests.fleet import Fleet, node
from tests.loopback import Body, Reply, Stream, delta, loopback, sse
from tests.patience import PATIENCE
from tests.postgres import Server, schema_of
from tests.server.site import Site, served
from tests.server.test_oidc import audited

pytestmark = pytest.mark.slow


@tool
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def play(body: Body) -> Reply:
    """Return a reply that stays incomplete, or a call that needs approval."""
    if "slowly" in str(body["messages"][-1]):
        return Stream((sse(delta(content="Half of it")),), then="stalls")
    return (
        says("Done.")
        if body["messages"][-1]["role"] == "tool"
        else calls("shell", command="echo x > effects")
    )


@pytest.mark.parametrize("engine", [pytest.param("sqlite", marks=pytest.mark.long), "postgres"])
async def test_a_removed_user_is_out_at_every_server(
    tmp_path: Path, engine: str, request: pytest.FixtureRequest
) -> None:
    """V4, N3: by a command in another process, while two servers run."""
    store = str(tmp_path / "chat.db")
    if engine == "postgres":
        server: Server = request.getfixturevalue("postgres")
        store = server.url(schema_of(tmp_path))
    async with (
        loopback(play) as model,
        node(fleet := Fleet(tmp_path, store, model.url)) as first,
        node(fleet) as second,
        asyncio.timeout(PATIENCE),
    ):
        key = (await program("people", "add", "ada", "--store", store, folder=fleet.work)).out.strip()
        bob = (await program("people", "add", "bob", "--store", store, folder=fleet.work)).out.strip()
        hers = {"authorization": f"Bearer {key}"}
        async with aiohttp.ClientSession() as http:

            async def ask(url: str, method: str, path: str, body: Any = None, **headers: str) -> Any:
                async with http.request(method, url + path, json=body, headers=headers) as answer:
                    assert answer.status < 300, await answer.text()
                    return answer.cookies, await answer.json()

            turns = []
            for url, text in ((first.url, "slowly"), (second.url, "call")):
                _, made = await ask(url, "POST", "/api/conversations", {}, **hers)
                path = f"/api/conversations/{made['id']}/turns"
                turns.append((await ask(url, "POST", path, {"text": text}, **hers))[1]["turn"])
                await ask(url, "POST", path, {"text": "later", "queue": True}, **hers)
            while not (await ask(first.url, "GET", "/api/questions", **hers))[1]["items"]:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            given, _ = await ask(second.url, "POST", "/api/login", {"password": key})
            cookie = {"cookie": "; ".join(f"{name}={one.value}" for name, one in given.items())}
            _, link = await ask(second.url, "POST", "/api/links", {}, **hers)
            token = {"authorization": f"Bearer {link['path'].partition('=')[2]}"}
            readers = [
                await http.get(f"{url}/api/events", headers=headers)
                for url, headers in ((first.url, hers), (second.url, cookie), (second.url, token))
            ]
            other = await http.get(f"{first.url}/api/events", headers={"authorization": f"Bearer {bob}"})
            assert [one.status for one in (*readers, other)] == [200] * 4

            removed = await program("people", "remove", "ada", "--store", store, folder=fleet.work)
            began = time.monotonic()
            assert "Cancelled turns: 4" in removed.out
            await asyncio.gather(*(reader.read() for reader in readers))
            assert time.monotonic() - began < 12  # sooner than the next regular check
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await other.read()
            for url in (first.url, second.url):
                for headers in (hers, cookie, token):
                    async with http.get(f"{url}/api/me", headers=headers) as answer:
                        assert answer.status == 401
            for reader in (*readers, other):
                reader.close()
        async with Runtime(store, adopts=False) as runtime:
            while await runtime.store.live_turns():  # noqa: ASYNC110 - other processes end them
                await asyncio.sleep(0.02)
            assert {(await runtime.store.turn(turn)).state for turn in turns} == {"cancelled"}
            assert await runtime.store.queue() == []
        assert not (fleet.work / "effects").exists()


async def test_a_turn_of_a_removed_user_may_call_nothing_more(tmp_path: Path) -> None:
    """This holds before the turn is cancelled, for every permission and every user who answers (V4)."""
    script = [calls("shell", command="touch effects"), says("It is over.")]
    folder = tmp_path / "work"
    folder.mkdir()
    async with served(tmp_path, script, tools=["shell"], workspace=folder, ask=["shell"]) as site:
        store = site.runtime.store
        await store.add_person("ada", key_hash("key of ada"), 1.0)
        ada = Site(site.url, site.runtime, site.auth, site.http, "key of ada")
        turn = await ada.say("do it")
        question = await ada.question()
        await store.remove_person("ada")
        await site.runtime.answer(question["id"], allow_once())
        assert (await site.runtime.turn(turn).result()).text == "It is over."
        assert [*folder.iterdir()] == []
        messages, _ = await store.messages(question["conversation"])
        assert [call.state for one in messages for call in one.calls] == [CallState.REJECTED]


async def test_what_a_removed_member_sent_ends_and_the_owner_goes_on(tmp_path: Path) -> None:
    """V1, V4: in a conversation that two share. The links into it end with the owner."""
    script = [calls("pay", amount=1), calls("pay", amount=2), says("Paid.")]
    async with served(tmp_path, script, tools=[pay], ask=["pay"]) as site:
        people = {}
        for name in ("ada", "bob"):
            await site.runtime.store.add_person(name, key_hash(f"key of {name}"), 1.0)
            people[name] = Site(site.url, site.runtime, site.auth, site.http, f"key of {name}")
        ada, bob = people["ada"], people["bob"]
        shared = await ada.conversation()
        await ada.ask("PUT", f"/api/conversations/{shared}/members/bob", {"role": "takes_part"})
        link = await ada.post(f"/api/conversations/{shared}/links")
        turn = await bob.say("pay", shared)
        assert await site.runtime.turn(turn).reached("waiting")
        assert await site.runtime.remove_person("bob") == 1
        while (await site.runtime.store.turn(turn)).live:  # noqa: ASYNC110 - its runner tells the store
            await asyncio.sleep(0.01)
        assert await ada.state(turn) == "cancelled"
        again = await ada.say("pay", shared)
        assert await site.runtime.turn(again).reached("waiting")
        members = (await ada.get(f"/api/conversations/{shared}/members"))["items"]
        assert [one["user"] for one in members] == ["ada"]
        assert (await site.ask("GET", f"/api/shared/{link['token']}")).status == 200
        await site.runtime.remove_person("ada")
        assert (await site.ask("GET", f"/api/shared/{link['token']}")).status == 404


async def test_a_body_that_arrives_late_does_nothing_for_a_removed_user(tmp_path: Path) -> None:
    """The sender was authenticated before the removal (V4)."""
    async with served(tmp_path, [says("x")]) as site:
        await site.runtime.store.add_person("ada", key_hash("key of ada"), 1.0)
        sent = asyncio.Event()

        async def body() -> Any:
            yield b'{"title": '
            await sent.wait()
            yield b'"late"}'

        headers = {"authorization": "Bearer key of ada", "content-type": "application/json"}
        url = f"{site.url}/api/conversations"
        asked = asyncio.create_task(site.http.post(url, data=body(), headers=headers))
        await asyncio.sleep(0.1)
        await site.runtime.remove_person("ada")
        sent.set()
        async with await asked as answer:
            assert answer.status == 401
        assert await site.runtime.store.conversations(user="ada") == []


async def test_what_matters_to_others_is_in_the_audit_log(tmp_path: Path) -> None:
    """Entries name the user and the address. Only the admin reads the log, and guesses grow it only up to a
    limit (V4)."""
    script = [calls("pay", amount=1), says("Paid.")]
    async with served(tmp_path, script, tools=[pay], ask=["pay"], password="open sesame") as site:
        await site.runtime.store.add_person("ada", key_hash("key of ada"), 1.0)
        ada = Site(site.url, site.runtime, site.auth, site.http, "key of ada")
        turn = await ada.say("pay")
        asked = await ada.question()
        await ada.post(f"/api/questions/{asked['id']}/answer", {"verdict": "allow", "scope": "always"})
        await site.runtime.turn(turn).result()
        (grant,) = (await ada.get("/api/grants"))["items"]
        await ada.ask("DELETE", f"/api/grants/{grant['id']}")
        await ada.get(f"/api/conversations/{asked['conversation']}/export")
        await ada.ask("DELETE", f"/api/conversations/{asked['conversation']}")
        nobody = {"authorization": ""}
        for password in ("wrong", "open sesame"):
            await site.ask("POST", "/api/login", {"password": password}, headers=nobody)
        assert await audited(site) == [
            ("answer.given", "ada", asked["id"]),
            ("rule.removed", "ada", grant["id"]),
            ("conversation.exported", "ada", asked["conversation"]),
            ("conversation.deleted", "ada", asked["conversation"]),
            ("sign_in.failed", "", "password"),
            ("sign_in.done", "local", "password"),
        ]
        assert (await ada.ask("GET", "/api/audit")).status == 403
        newest = (await site.get("/api/audit?limit=2"))["items"]
        assert [(one["action"], one["address"]) for one in newest] == [
            ("sign_in.done", "127.0.0.1"),
            ("sign_in.failed", "127.0.0.1"),
        ]


async def test_failed_sign_ins_are_listed_up_to_sixty_a_minute(tmp_path: Path) -> None:
    """V4: the rest is counted, because anybody can cause them."""
    times = iter([*[1.0] * 40, *[60.9] * 40, 61.0])
    async with served(tmp_path, []) as site:
        failed = FailedSignIns(site.runtime.store, lambda: next(times))
        for _ in range(81):
            await failed.add("192.0.2.9", "password", "wrong")
        listed = [(one.object, one.details.get("count")) for one in await site.runtime.store.audit()]
    assert listed[::-1] == [("password", None)] * 60 + [("not listed", 20), ("password", None)]
