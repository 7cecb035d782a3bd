"""V1, V2: attacks by users with few rights, or with rights that they lost."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from dragoman.server.routes import shared as link_routes
from dragoman.wire.scripted import calls, says
from tests.server.test_sharing import BY_BODY, Shared, read_link, shared


async def transferred(scene: Shared) -> None:
    await scene.share("bob", "reads")
    await scene.site.post(f"/api/conversations/{scene.id}/transfer", {"user": "bob"})


async def put_out_after_transfer(scene: Shared) -> None:
    await transferred(scene)
    await scene.person("bob").ask("DELETE", f"/api/conversations/{scene.id}/members/local")


async def deleted(scene: Shared) -> None:
    await scene.site.ask("DELETE", f"/api/conversations/{scene.id}")


async def owner_removed(scene: Shared) -> None:
    await scene.share("ada", "reads")
    await transferred(scene)
    path = f"/api/conversations/{scene.id}"
    made = [await scene.person("bob").post(f"{path}/{kind}", {}) for kind in ("invitations", "links")]
    await scene.site.runtime.remove_person("bob")
    for one in made:
        assert (await read_link(scene.site, one["token"]))[0] == 404
    assert (await scene.person("ada").ask("GET", path)).status == 200  # members stay


@pytest.mark.parametrize("how", [transferred, put_out_after_transfer, deleted, owner_removed])
async def test_invitations_and_links_end_with_the_rights_of_who_made_them(
    tmp_path: Path, how: Callable[[Shared], Awaitable[None]]
) -> None:
    """A token from before cannot bring a user back or let others in (V1)."""
    async with shared(tmp_path) as scene:
        path = f"/api/conversations/{scene.id}"
        invitation = await scene.site.post(f"{path}/invitations", {"role": "takes_part"})
        link, frozen = [await scene.site.post(f"{path}/links", {"frozen": one}) for one in (False, True)]
        await how(scene)
        for user in ("eve", "local"):
            if user == "local" and how is transferred:
                continue  # a member, by the transfer itself
            body = {"token": invitation["token"]}
            person = scene.site if user == "local" else scene.person(user)
            assert (await person.ask("POST", "/api/invitations/accept", body)).status == 404, user
        for one in (link, frozen):
            assert (await read_link(scene.site, one["token"]))[0] == 404
        assert await scene.status("eve", "GET /api/conversations/{id}") == 404


async def test_a_member_repeats_what_another_sent_with_rules_of_their_own(tmp_path: Path) -> None:
    """V2: a rerun and an edit of the owner's message, and a rerun of the owner's call, ask again."""
    more = [says("done"), *[calls("wipe", disk="sda")] * 3]
    async with shared(tmp_path, *more) as scene:
        site, bob = scene.site, scene.person("bob")
        await scene.share("bob", "takes_part")
        path = f"/api/questions/{scene.names['question']}/answer"
        await site.post(path, {"verdict": "allow", "scope": "always"})
        await site.until(f"/api/turns/{scene.names['turn']}/events", "turn.end")
        message = scene.names["message"]
        tree = await site.get(f"/api/conversations/{scene.id}/tree")
        answer, wiped = next(
            (one["id"], part["id"])
            for one in tree["messages"]
            for part in one["parts"]
            if part["type"] == "call" and part["tool"] == "wipe"
        )
        attempts: list[tuple[str, dict[str, Any]]] = [
            (f"/api/messages/{answer}/rerun", {}),
            (f"/api/messages/{message}/edit", {"text": "again"}),
            (f"/api/calls/{wiped}/rerun", {"arguments": {"disk": "everything"}}),
        ]
        for at, body in attempts:
            begun = await bob.post(at, body)
            asked = await bob.question()
            assert asked["turn"] == begun["turn"], at
            info = await bob.get(f"/api/turns/{begun['turn']}")
            assert (info["by"], info["state"]) == ("bob", "waiting")
            await bob.post(f"/api/turns/{begun['turn']}/cancel", {})
            await bob.until(f"/api/turns/{begun['turn']}/events", "turn.end")
        assert (await site.get(f"/api/turns/{scene.names['turn']}"))["by"] == "local"


async def test_turns_that_wait_name_their_sender(tmp_path: Path) -> None:
    """V2"""
    async with shared(tmp_path) as scene:
        await scene.share("bob", "takes_part")
        turn = await scene.person("bob").say("later", scene.id, queue=True)
        info = await scene.site.get(f"/api/turns/{turn}")
        assert (info["state"], info["by"]) == ("queued", "bob")


async def test_who_answers_does_nothing_else(tmp_path: Path) -> None:
    """An upload belongs to the user, and a fork belongs to the user and reveals nothing to the owner (V1)."""
    async with shared(tmp_path) as scene:
        site, bob = scene.site, scene.person("bob")
        await scene.share("bob", "answers")
        kind = {"content-type": "application/octet-stream"}
        file = (await bob.ask("POST", "/api/files?name=b.txt&type=text/plain", b"bob's", headers=kind)).body
        assert (await site.ask("GET", f"/api/files/{file['blob']}")).status == 404
        body: dict[str, Any] = {"parts": [{"type": "text", "text": "see"}, file]}
        path = f"/api/conversations/{scene.id}"
        for method, route, wanted in (
            ("POST", f"{path}/turns", body),
            ("POST", f"/api/messages/{scene.names['message']}/edit", body),
            ("PATCH", path, {"title": "bob's"}),
            ("PATCH", path, {"settings": {"mode": "auto"}}),
            ("POST", f"{path}/typing", {}),
        ):
            assert (await bob.ask(method, route, wanted)).status == 403, route
        fork = await bob.post(f"{path}/fork", {"message": scene.names["message"]})
        assert (await site.ask("GET", f"/api/conversations/{fork['id']}")).status == 404
        assert [one["id"] for one in (await site.get("/api/conversations"))["items"]] == [scene.id]


async def test_live_streams_of_links_are_counted_in_one_step(tmp_path: Path) -> None:
    """V1, U1: of many that come at the same moment no more are open than may be, and each end makes room."""
    async with shared(tmp_path, proxies=["127.0.0.1"]) as scene:
        site, most = scene.site, link_routes._MOST
        made = await site.post(f"/api/conversations/{scene.id}/links", {})
        url = f"{site.url}/api/shared/{made['token']}/events"
        site.http.connector._limit = 2 * most  # type: ignore[union-attr]  # at the same time

        async def follow(place: int) -> aiohttp.ClientResponse:
            return await site.http.get(url, headers={"x-forwarded-for": f"10.0.{place // 50}.{place % 50}"})

        answers = await asyncio.gather(*map(follow, range(most + 20)))
        assert Counter(answer.status for answer in answers) == {200: most, 503: 20}
        for answer in answers:
            answer.close()
        statuses = []
        while 200 not in statuses:
            async with await follow(1000) as again:
                statuses.append(again.status)
            await asyncio.sleep(0.5)
        assert {*statuses} <= {200, 503}


@pytest.mark.parametrize("protocol", ["ai-sdk", "ag-ui"])
@pytest.mark.parametrize("how", ["given away", "deleted"])
async def test_a_name_of_a_client_can_be_used_again(tmp_path: Path, protocol: str, how: str) -> None:
    """This holds if the conversation that the name meant now belongs to another user, or is deleted (V1)."""
    async with shared(tmp_path) as scene:
        ada, bob = scene.person("ada"), scene.person("bob")
        path, body = BY_BODY[protocol]("a-name-of-mine")
        for round in range(2):
            sent = json.loads(json.dumps(body).replace('"m1"', f'"m{round}"').replace('"r1"', f'"r{round}"'))
            answer = await ada.ask("POST", path, sent)
            assert answer.status == 200, answer
            assert b"error" not in answer.body.lower(), answer.body
            (own,) = [one["id"] for one in (await ada.get("/api/conversations"))["items"]]
            if how == "deleted":
                await ada.ask("DELETE", f"/api/conversations/{own}")
                continue
            await ada.ask("PUT", f"/api/conversations/{own}/members/bob", {"role": "reads"})
            await ada.post(f"/api/conversations/{own}/transfer", {"user": "bob"})
            await bob.ask("DELETE", f"/api/conversations/{own}/members/ada")
        theirs = (await bob.get("/api/conversations"))["items"]
        assert len(theirs) == (2 if how == "given away" else 0)
