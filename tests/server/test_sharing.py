"""V1, V2: several users share a conversation, and each sees and does what the role allows, by every route."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from fastapi.routing import APIRoute

from dragoman import tool
from dragoman.conversation.sharing import Right
from dragoman.server.app import _API, _BESIDE_THE_API
from dragoman.server.auth import ONE, key_hash
from dragoman.server.protocols.openai import chat, conversation_items, files, responses
from dragoman.store.postgres import PostgresStore
from dragoman.store.sqlite import SqliteStore
from dragoman.store.store import Store
from dragoman.wire.scripted import calls, says
from tests.patience import PATIENCE
from tests.postgres import Server, schema_of
from tests.runtimes import model_of, runtime_with, with_tables
from tests.server.site import Site, served
from tests.server.test_oidc import audited

READ, ANSWER, TAKE_PART, OWN = Right.READ, Right.ANSWER, Right.TAKE_PART, Right.OWN

# Every route that names an object of a conversation, and the right that it needs.
RIGHTS: dict[str, Right] = {
    "GET /api/conversations/{id}": READ,
    "PATCH /api/conversations/{id}": OWN,
    "DELETE /api/conversations/{id}": OWN,
    "POST /api/conversations/{id}/fork": READ,
    "GET /api/conversations/{id}/tree": READ,
    "GET /api/conversations/{id}/export": READ,
    "GET /api/conversations/{id}/raw": OWN,
    "GET /api/events?conversation={id}": READ,
    "GET /api/conversations/{id}/events": READ,
    "GET /api/conversations/{id}/members": READ,
    "PUT /api/conversations/{id}/members/{user}": OWN,
    "DELETE /api/conversations/{id}/members/{user}": OWN,
    "GET /api/conversations/{id}/presence": READ,
    "POST /api/conversations/{id}/typing": TAKE_PART,
    "POST /api/conversations/{id}/transfer": OWN,
    "GET /api/conversations/{id}/shares": OWN,
    "POST /api/conversations/{id}/invitations": OWN,
    "POST /api/conversations/{id}/links": OWN,
    "DELETE /api/conversations/{id}/shares/{share}": OWN,
    "POST /api/conversations/{id}/turns": TAKE_PART,
    "GET /api/conversations/{id}/queue": READ,
    "PUT /api/conversations/{id}/queue": TAKE_PART,
    "GET /api/conversations/{id}/ratings": READ,
    "GET /api/conversations/{id}/diff": READ,
    "POST /api/conversations/{id}/redo": OWN,
    "GET /api/turns/{turn}": READ,
    "GET /api/turns/{turn}/facts": OWN,
    "GET /api/turns/{turn}/context": READ,
    "GET /api/turns/{turn}/trace": READ,
    "GET /api/turns/{turn}/events": READ,
    "POST /api/turns/{turn}/cancel": TAKE_PART,
    "POST /api/turns/{turn}/continue": TAKE_PART,
    "POST /api/turns/{turn}/steer": TAKE_PART,
    "PATCH /api/turns/{turn}": TAKE_PART,
    "DELETE /api/turns/{turn}/steering/{number}": TAKE_PART,
    "PUT /api/turns/{turn}/rating": READ,
    "DELETE /api/turns/{turn}/rating": READ,
    "GET /api/turns/{turn}/sound": READ,
    "GET /api/turns/{turn}/diff": READ,
    "POST /api/turns/{turn}/revert": OWN,
    "POST /api/messages/{message}/edit": TAKE_PART,
    "POST /api/messages/{message}/rerun": TAKE_PART,
    "GET /api/messages/{message}/diff": READ,
    "POST /api/messages/{message}/revert": OWN,
    "GET /api/calls/{call}": READ,
    "GET /api/calls/{call}/output": READ,
    "POST /api/calls/{call}/rerun": TAKE_PART,
    "POST /api/calls/{call}/result": TAKE_PART,
    "GET /api/calls/{call}/diff": READ,
    "POST /api/calls/{call}/revert": OWN,
    "GET /api/questions?conversation={id}": READ,
    "GET /api/questions/{question}": READ,
    "POST /api/questions/{question}/answer": ANSWER,
    "POST /api/questions/{question}/hunks": ANSWER,
    "GET /api/rules/decision?permission=x&conversation={id}": READ,
    "GET /api/rules/covered?rule=x&question={question}": ANSWER,
    "GET /api/tools?conversation={id}": READ,
    "GET /api/files/{blob}": READ,
    "GET /api/ai-sdk/chat/{id}": READ,
    "GET /api/ai-sdk/v5/chat/{id}": READ,
    "GET /api/ai-sdk/chat/{id}/stream": READ,
    "GET /api/ai-sdk/v5/chat/{id}/stream": READ,
    "POST /api/ai-sdk/chat/{id}/stop": TAKE_PART,
    "GET /v1/conversations/{id}": READ,
    "POST /v1/conversations/{id}": OWN,
    "DELETE /v1/conversations/{id}": OWN,
    "GET /v1/conversations/{id}/items": READ,
    "GET /v1/conversations/{id}/items/{message}": READ,
    "POST /v1/conversations/{id}/items": READ,
    "DELETE /v1/conversations/{id}/items/{message}": READ,
    "GET /v1/responses/{response}": READ,
    "POST /v1/responses/{response}/cancel": TAKE_PART,
    "DELETE /v1/responses/{response}": OWN,
    "GET /v1/responses/{response}/input_items": READ,
}
# Every other route: it names nothing of a conversation in its address.
OTHERS = {
    f"{method} {path}"
    for line in """
    GET POST /api/conversations
    GET /api/audit
    GET /oidc/login
    GET /oidc/callback
    POST /oidc/logout
    POST /api/import
    GET /api/events
    GET /api/questions
    POST /api/invitations/accept
    GET /api/evaluations
    GET /api/evaluations/{name}
    GET /api/evaluations/{name}/cases/{case:path}
    POST /api/files
    GET POST /api/grants
    DELETE /api/grants/{id}
    GET /api/rules
    GET /api/rules/decision
    GET /api/rules/covered
    GET /api/tools
    GET /api/agents
    GET /api/server-prompts
    POST /api/server-prompts/{server}/{name:path}
    GET /api/models
    GET /api/models/{provider}
    GET /api/me
    GET /api/usage
    GET /api/prompts
    PUT DELETE /api/prompts/{name}
    POST /api/ai-sdk/chat
    POST /api/ai-sdk/v5/chat
    POST /api/ag-ui
    POST /api/ag-ui/{agent}
    GET POST /api/login
    POST /api/links
    POST /api/logout
    GET /api/shared/{token}
    GET /api/shared/{token}/events
    GET HEAD /healthz
    GET HEAD /readyz
    GET HEAD /c/{conversation}
    GET HEAD /
    GET /callback
    GET /shared
    GET /sandbox
    GET /preview
    POST /v1/chat/completions
    POST /v1/responses
    POST /v1/conversations
    GET POST /v1/files
    GET DELETE /v1/files/{id}
    GET /v1/files/{id}/content
    """.splitlines()
    if (words := line.split())
    for path in words[-1:]
    for method in words[:-1]
}
BODIES: dict[str, Any] = {
    "PATCH /api/conversations/{id}": {"title": "mine now"},
    "POST /api/conversations/{id}/fork": {"message": "{message}"},
    "PUT /api/conversations/{id}/members/{user}": {"role": "takes_part"},
    "POST /api/conversations/{id}/transfer": {"user": "eve"},
    "POST /api/conversations/{id}/turns": {"text": "hello"},
    "PUT /api/conversations/{id}/queue": {"turns": []},
    "POST /api/turns/{turn}/steer": {"text": "hello"},
    "PATCH /api/turns/{turn}": {"text": "hello"},
    "PUT /api/turns/{turn}/rating": {"value": "good"},
    "POST /api/messages/{message}/edit": {"text": "hello"},
    "POST /api/calls/{call}/result": {"text": "mine"},
    "POST /api/questions/{question}/answer": {"verdict": "allow"},
    "POST /api/questions/{question}/hunks": {"hunks": [{"hunk": 0, "text": None}]},
    "POST /v1/conversations/{id}": {"metadata": {"a": "b"}},
    "POST /v1/conversations/{id}/items": {"items": []},
}
ROLES = {"reads": READ, "answers": ANSWER, "takes_part": TAKE_PART}


@tool(permission="wipe")
def wipe(disk: str) -> str:
    """Wipe a disk."""
    return f"wiped {disk}"


@tool
def look(at: str) -> str:
    """Look at something."""
    return f"{at} is fine"


def shape(path: str) -> str:
    """Return an address with placeholders for the names in it."""
    return "/".join("*" if piece.startswith("{") else piece for piece in path.partition("?")[0].split("/"))


def routes() -> Iterable[tuple[str, str]]:
    openai = [*chat.router.routes, *files.router.routes, *responses.router.routes]
    openai += conversation_items.router.routes
    for route in (*_API, *_BESIDE_THE_API, *openai):
        if isinstance(route, APIRoute) and not route.path.startswith(("/api/setup", "/v1/{path")):
            path = f"/v1{route.path}" if route in openai else route.path
            for method in route.methods or ():
                yield method, path


def test_every_route_says_which_right_it_needs() -> None:
    """A new route must be added to one of the tables above (V1)."""
    known = {f"{one.split()[0]} {shape(one.split()[1])}" for one in (*RIGHTS, *OTHERS) if one.strip()}
    assert (
        sorted(f"{method} {path}" for method, path in routes() if f"{method} {shape(path)}" not in known)
        == []
    )


@dataclass
class Shared:
    """A conversation of the admin, in which a call waits for approval and another has run."""

    site: Site
    names: Mapping[str, str]

    def person(self, name: str) -> Site:
        return replace(self.site, key=f"key of {name}")

    @property
    def id(self) -> str:
        return self.names["id"]

    async def share(self, user: str, role: str) -> None:
        answer = await self.site.ask("PUT", f"/api/conversations/{self.id}/members/{user}", {"role": role})
        assert answer.status == 200, answer.body

    async def status(self, name: str, route: str) -> int:
        method, path = route.split()
        body = json.loads(_filled(json.dumps(BODIES[route]), self.names)) if route in BODIES else None
        if body is None and method in ("POST", "PUT", "PATCH"):
            body = {}
        person = self.person(name)
        headers = {"authorization": f"Bearer {person.key}", "content-type": "application/json"}
        data = json.dumps(body).encode() if body is not None else None
        url = person.url + _filled(path, self.names)
        async with person.http.request(method, url, headers=headers, data=data) as response:
            return response.status


def _filled(text: str, names: Mapping[str, str]) -> str:
    for name, value in names.items():
        text = text.replace(f"{{{name}}}", value)
    return text


@asynccontextmanager
async def shared(folder: Path, *more: Any, **options: Any) -> AsyncIterator[Shared]:
    script = [calls("look", at="sda"), calls("wipe", disk="sda"), *more, *[says("done")] * 20]
    options = {"allow": ["look"], "ask": ["wipe"]} | options
    async with served(folder, script, tools=[wipe, look], **options) as site, asyncio.timeout(PATIENCE):
        for name in ("ada", "bob", "eve"):
            await site.runtime.store.add_person(name, key_hash(f"key of {name}"), 1.0)
        file = await site.ask(
            "POST",
            "/api/files?name=a.txt&type=text/plain",
            b"of the admin",
            headers={"content-type": "application/octet-stream"},
        )
        id = await site.conversation()
        parts = [{"type": "text", "text": "go"}, file.body]
        turn = (await site.post(f"/api/conversations/{id}/turns", {"parts": parts}))["turn"]
        question = await site.question()
        tree = await site.get(f"/api/conversations/{id}/tree")
        call = next(one for m in tree["messages"] for one in m["parts"] if one["type"] == "call")
        names = {
            "id": id,
            "turn": turn,
            "message": tree["messages"][0]["id"],
            "call": call["id"],
            "question": question["id"],
            "blob": file.body["blob"],
            "user": "bob",
            "share": "share_x",
            "number": "1",
            "response": f"resp_{turn.removeprefix('turn_')}",
        }
        yield Shared(site, names)


async def test_who_does_not_share_it_finds_nothing(tmp_path: Path) -> None:
    """No route reveals to another user that the conversation exists (V1)."""
    async with shared(tmp_path) as scene:
        await scene.share("bob", "takes_part")
        named = {**scene.names, "id": "conv_nowhere"}
        for route in RIGHTS:
            status = await scene.status("eve", route)
            if "ai-sdk" in route:  # where a client names conversations itself, this is one that has not begun
                assert status == await replace(scene, names=named).status("eve", route), route
            else:
                assert status == 404, route


@pytest.mark.parametrize("role", ROLES)
async def test_a_role_does_what_it_includes_and_nothing_more(tmp_path: Path, role: str) -> None:
    """A route that needs a higher role answers 403, and no route of the role is refused (V1)."""
    async with shared(tmp_path) as scene:
        await scene.share("bob", role)
        beyond = [route for route in RIGHTS if RIGHTS[route] > ROLES[role] and "members/{user}" not in route]
        found = {route: await scene.status("bob", route) for route in beyond}
        assert {route: status for route, status in found.items() if status != 403} == {}
        within = [route for route in RIGHTS if RIGHTS[route] <= ROLES[role]]
        within = [
            one for one in within if one.startswith("GET") and "sound" not in one and "items/" not in one
        ]
        found = {route: await scene.status("bob", route) for route in within}
        assert {route: status for route, status in found.items() if status in (403, 404)} == {}
        assert (await scene.site.get(f"/api/conversations/{scene.id}"))["title"] != "mine now"


async def test_what_is_shared_is_in_the_lists_until_it_is_no_longer(tmp_path: Path) -> None:
    """V1: the list, its tags, a search, the inbox and a live list."""
    async with shared(tmp_path) as scene:
        site, bob = scene.site, scene.person("bob")
        await site.ask("PATCH", f"/api/conversations/{scene.id}", {"tags": ["disks"], "title": "Cleaning"})

        async def seen() -> dict[str, Any]:
            page = await bob.get("/api/conversations")
            found = await bob.get("/api/conversations?search=cleaning")
            return {
                "list": [(one["id"], one["role"], one["owner"]) for one in page["items"]],
                "tags": page["tags"],
                "search": [one["id"] for one in found["items"]],
                "inbox": [one["id"] for one in (await bob.get("/api/questions"))["items"]],
            }

        nothing: dict[str, Any] = {"list": [], "tags": [], "search": [], "inbox": []}
        assert await seen() == nothing
        async with bob.events("/api/events") as events:
            await scene.share("bob", "answers")
            assert (await anext(events)).type == "conversation.changed"
            everything = {
                "list": [(scene.id, "answers", "local")],
                "tags": ["disks"],
                "search": [scene.id],
                "inbox": [scene.names["question"]],
            }
            assert await seen() == everything
            await scene.share("bob", "reads")
            assert (await seen())["inbox"] == []
            assert (await anext(events)).data["role"] == "reads"
            await site.ask("DELETE", f"/api/conversations/{scene.id}/members/bob")
            gone = await anext(events)
            assert (gone.type, gone.data["id"]) == ("conversation.deleted", scene.id)
        assert await seen() == nothing
        assert await scene.status("bob", "GET /api/files/{blob}") == 404


async def test_a_removed_member_hears_nothing_more(tmp_path: Path) -> None:
    """The member's streams of the conversation, of its turn and by other protocols end, and those of others
    stay (V1)."""
    async with shared(tmp_path) as scene:
        await scene.share("bob", "takes_part")
        await scene.share("ada", "reads")
        paths = [
            f"/api/conversations/{scene.id}/events",
            f"/api/events?conversation={scene.id}",
            f"/api/turns/{scene.names['turn']}/events",
            f"/api/ai-sdk/v5/chat/{scene.id}/stream",
        ]
        bob, ada = scene.person("bob"), scene.person("ada")

        async def read(person: Site, path: str, begun: asyncio.Event) -> str:
            headers = {"authorization": f"Bearer {person.key}"}
            heard = b""
            async with person.http.get(person.url + path, headers=headers) as response:
                assert response.status == 200, path
                with suppress(aiohttp.ClientError):
                    async for chunk in response.content.iter_any():
                        heard += chunk
                        begun.set()
            return heard.decode()

        begun = [asyncio.Event() for _ in paths]
        readers = [
            asyncio.create_task(read(bob, path, event)) for path, event in zip(paths, begun, strict=True)
        ]
        other = asyncio.Event()
        stays = asyncio.create_task(read(ada, paths[0], other))
        await asyncio.gather(*(event.wait() for event in (*begun, other)))
        await scene.site.ask("DELETE", f"/api/conversations/{scene.id}/members/bob")
        heard = await asyncio.gather(*readers)
        await scene.site.ask("POST", f"/api/questions/{scene.names['question']}/answer", {"verdict": "allow"})
        await scene.site.until(paths[2], "turn.end")
        assert all("wiped" not in one for one in heard)
        assert not stays.done()
        stays.cancel()


async def test_a_message_runs_with_the_rules_of_its_sender(tmp_path: Path) -> None:
    """A grant of the owner does not allow a member's message, and a denial of the owner blocks it (V2)."""
    more = [says("done"), calls("wipe", disk="b"), says("bob's"), calls("wipe", disk="c"), says("mine")]
    async with shared(tmp_path, *more) as scene:
        site, bob = scene.site, scene.person("bob")
        await scene.share("bob", "takes_part")
        path = f"/api/questions/{scene.names['question']}/answer"
        await site.post(path, {"verdict": "allow", "scope": "always", "rules": []})
        await site.until(f"/api/turns/{scene.names['turn']}/events", "turn.end")

        turn = await bob.say("wipe it", scene.id)
        asked = await bob.question()
        assert asked["turn"] == turn
        trace = (await bob.get(f"/api/turns/{turn}/trace"))["trace"]
        assert trace["by"] == "bob"
        await site.post("/api/grants", {"permission": "wipe", "pattern": "*", "action": "deny"})
        await bob.post(f"/api/questions/{asked['id']}/answer", {"verdict": "allow"})
        await bob.until(f"/api/turns/{turn}/events", "turn.end")
        tree = await bob.get(f"/api/conversations/{scene.id}/tree")
        states = [p["state"] for m in tree["messages"] for p in m["parts"] if p["type"] == "call"]
        assert states == ["completed", "completed", "rejected"]
        senders = [m["by"] for m in tree["messages"] if m["role"] == "user"]
        assert senders == ["local", "bob"]


async def test_an_answer_of_another_lends_nothing(tmp_path: Path) -> None:
    """The answer lets this one call run, the rule belongs to the user who answers, and the first answer
    counts (V2)."""
    more = [says("done"), calls("wipe", disk="again")]
    async with shared(tmp_path, *more) as scene:
        site, bob, ada = scene.site, scene.person("bob"), scene.person("ada")
        await scene.share("bob", "answers")
        await scene.share("ada", "answers")
        path = f"/api/questions/{scene.names['question']}/answer"
        edited = {"verdict": "allow", "arguments": {"disk": "everything"}}
        assert (await bob.ask("POST", path, edited)).status == 403
        settled = await bob.post(path, {"verdict": "allow", "scope": "always"})
        assert (settled["answer"]["by"], settled["answer"]["lent"]) == ("bob", True)
        late = await ada.ask("POST", path, {"verdict": "reject"})
        assert late.status == 409
        assert "bob" in late.body["detail"]
        await site.until(f"/api/turns/{scene.names['turn']}/events", "turn.end")
        assert [one.user for one in await site.runtime.grants()] == ["bob"]
        assert (await site.get("/api/grants"))["items"] == []
        await site.say("once more", scene.id)
        assert (await site.question())["because"] == "rule"  # the owner must approve again


async def test_nobody_speaks_in_the_turn_of_another(tmp_path: Path) -> None:
    """V2: steering, results of the sender's tools, and files that go back."""
    async with shared(tmp_path) as scene:
        bob = scene.person("bob")
        await scene.share("bob", "takes_part")
        for route, status in (
            ("POST /api/turns/{turn}/steer", 403),
            ("POST /api/calls/{call}/result", 403),
            ("POST /api/turns/{turn}/revert", 403),
        ):
            assert await scene.status("bob", route) == status, route
        body = {"text": "mine", "revert_files": True}
        assert (await bob.ask("POST", f"/api/messages/{scene.names['message']}/edit", body)).status == 403
        queued = await scene.site.post(
            f"/api/conversations/{scene.id}/turns", {"text": "next", "queue": True}
        )
        assert (await bob.ask("PATCH", f"/api/turns/{queued['turn']}", {"text": "mine"})).status == 403
        assert (await bob.ask("POST", f"/api/turns/{queued['turn']}/cancel", {})).status == 200


@pytest.mark.parametrize("how", ["removed", "only reads"])
async def test_what_a_removed_member_sent_ends(tmp_path: Path, how: str) -> None:
    """A running turn is cancelled, and a queued one never begins (V1)."""
    async with shared(tmp_path, says("done"), calls("wipe", disk="b")) as scene:
        site, bob = scene.site, scene.person("bob")
        await scene.share("bob", "takes_part")
        await site.post(f"/api/questions/{scene.names['question']}/answer", {"verdict": "allow"})
        await site.until(f"/api/turns/{scene.names['turn']}/events", "turn.end")
        turn = await bob.say("wipe it", scene.id)
        await bob.question()
        queued = await bob.say("and more", scene.id, queue=True)
        if how == "removed":
            await site.ask("DELETE", f"/api/conversations/{scene.id}/members/bob")
        else:
            await scene.share("bob", "reads")
        await site.until(f"/api/turns/{turn}/events", "turn.end")
        assert await site.state(turn) == "cancelled"
        assert (await site.ask("GET", f"/api/turns/{queued}")).status == 404
        facts = await site.get(f"/api/turns/{turn}/facts")
        assert (facts[-1]["type"], facts[-1]["by"]) == ("turn_cancelled", "local")


async def test_a_new_owner_gets_the_conversation_and_not_what_was_sent(tmp_path: Path) -> None:
    """Turns keep their sender, and the old owner becomes a member (V1, V2)."""
    async with shared(tmp_path) as scene:
        site, bob = scene.site, scene.person("bob")
        await scene.share("bob", "reads")
        assert (await site.ask("DELETE", f"/api/conversations/{scene.id}/members/local")).status == 422
        async with bob.events("/api/events") as his, site.events("/api/events") as ours:
            await site.post(f"/api/conversations/{scene.id}/transfer", {"user": "bob"})
            assert [(await anext(one)).data["role"] for one in (his, ours)] == ["owns", "takes_part"]
        assert (await audited(site))[-1] == ("conversation.transferred", "local", scene.id)
        listed = (await bob.get(f"/api/conversations/{scene.id}/members"))["items"]
        assert [(one["user"], one["role"]) for one in listed] == [("bob", "owns"), ("local", "takes_part")]
        path = f"/api/questions/{scene.names['question']}/answer"
        assert (await bob.ask("POST", path, {"verdict": "allow", "arguments": {"disk": "x"}})).status == 403
        await site.post(path, {"verdict": "allow", "arguments": {"disk": "x"}})
        assert (await site.ask("DELETE", f"/api/conversations/{scene.id}")).status == 403
        assert (await site.runtime.store.turn(scene.names["turn"])).sender == "local"


async def test_private_texts_stay_with_the_owner(tmp_path: Path) -> None:
    """V1 × R3: in lines, snapshots, trees, exports and forks."""
    async with shared(tmp_path) as scene:
        site, bob = scene.site, scene.person("bob")
        settings = {"private": {"name": "Rumpelstiltskin"}}
        await site.ask("PATCH", f"/api/conversations/{scene.id}", {"settings": settings})
        await scene.share("bob", "takes_part")
        made = await bob.post(f"/api/conversations/{scene.id}/fork", {"message": scene.names["message"]})
        for path in (
            "/api/conversations",
            f"/api/conversations/{scene.id}",
            f"/api/conversations/{scene.id}/tree",
            f"/api/conversations/{scene.id}/export",
            f"/api/conversations/{made['id']}",
            f"/api/conversations/{made['id']}/tree",
        ):
            assert b"Rumpel" not in json.dumps((await bob.ask("GET", path)).body).encode(), path
        first = (await bob.until(f"/api/conversations/{scene.id}/events", "snapshot"))[0]
        assert "Rumpel" not in json.dumps(first.data)
        own = await site.until(f"/api/conversations/{scene.id}/events", "snapshot")
        assert own[0].data["conversation"]["settings"] == settings
        assert made["owner"] == "bob"
        await scene.share("bob", "reads")
        fork = {"message": scene.names["message"], "own_folder": True}
        assert (await bob.ask("POST", f"/api/conversations/{scene.id}/fork", fork)).status == 403
        assert (await site.ask("GET", f"/api/conversations/{made['id']}")).status == 404


async def test_an_invitation_is_used_once(tmp_path: Path) -> None:
    """A guessed, replayed, revoked or expired invitation is not found, and guesses are slowed (V1)."""
    async with shared(tmp_path) as scene:
        site, bob, eve = scene.site, scene.person("bob"), scene.person("eve")
        path = f"/api/conversations/{scene.id}/invitations"
        made = await site.post(path, {"role": "takes_part"})
        token = {"token": made["token"]}
        assert made["token"] not in json.dumps(
            (await site.ask("GET", f"/api/conversations/{scene.id}/shares")).body
        )
        assert (
            await site.ask("POST", "/api/invitations/accept", token)
        ).status == 200  # the owner uses none up
        async with bob.events("/api/events") as events:
            assert (await bob.post("/api/invitations/accept", token))["role"] == "takes_part"
            assert (await anext(events)).data["id"] == scene.id
        assert (await audited(site))[-3:] == [
            ("share.made", "local", made["share"]["id"]),
            ("invitation.accepted", "local", scene.id),
            ("invitation.accepted", "bob", scene.id),
        ]
        began = time.monotonic()
        assert (await eve.ask("POST", "/api/invitations/accept", token)).status == 404
        revoked = await site.post(path, {"role": "reads"})
        await site.ask("DELETE", f"/api/conversations/{scene.id}/shares/{revoked['share']['id']}")
        assert (await audited(site))[-1] == ("share.revoked", "local", revoked["share"]["id"])
        expired = await site.post(path, {"role": "reads", "seconds": 1})
        await asyncio.sleep(1.1)
        for one in (revoked, expired, {"token": "guessed"}, {"token": "again"}):
            answer = await eve.ask("POST", "/api/invitations/accept", {"token": one["token"]})
            assert answer.status == 404
        slowed = await eve.ask("POST", "/api/invitations/accept", {"token": "more"})
        assert slowed.status == 429
        wait = 1 / ONE.rate
        assert wait - (time.monotonic() - began) <= int(slowed.headers["retry-after"]) <= wait - 0.1
        assert await scene.status("eve", "GET /api/conversations/{id}") == 404
        member = f"/api/conversations/{scene.id}/members/bob"
        await site.ask("PUT", member, {"role": "reads"})
        await site.ask("DELETE", member)
        done = [("member.set", "local", scene.id), ("member.removed", "local", scene.id)]
        assert (await audited(site))[-2:] == done


async def test_members_see_who_is_there_and_who_types(tmp_path: Path) -> None:
    """This holds until they are removed. In an unshared conversation, no presence is published (V3)."""
    async with shared(tmp_path) as scene:
        site, bob, path = scene.site, scene.person("bob"), f"/api/conversations/{scene.id}"

        async def seen(events: AsyncIterator[Any], users: list[tuple[str, bool]]) -> None:
            async for event in events:
                told = event.data.get("users", ()) if event.type == "presence" else ()
                if told and [(one["user"], one["typing"]) for one in told] == users:
                    return

        async with site.events(f"{path}/events") as events:
            assert (await site.get(f"{path}/presence"))["users"] == []
            await scene.share("bob", "takes_part")
            async with bob.events(f"{path}/events") as theirs:
                await seen(theirs, [("bob", False), ("local", False)])
                await bob.ask("POST", f"{path}/typing", {})
                await seen(events, [("bob", True), ("local", False)])
                await bob.ask("POST", f"{path}/typing", {"on": False})
                await seen(events, [("bob", False), ("local", False)])
            await scene.share("ada", "reads")
            assert (await site.ask("PUT", f"{path}/members/nobody", {"role": "reads"})).status == 422
            await site.ask("DELETE", f"{path}/members/bob")
            await seen(events, [("local", False)])


async def read_link(site: Site, token: str) -> tuple[int, bytes]:
    """As anyone does who has not signed in."""
    async with site.http.get(f"{site.url}/api/shared/{token}") as response:
        return response.status, await response.read()


SECRETS = (b"Rumpel", b"sk-abcdefghijkl", b"of the admin")


async def test_a_link_shows_what_it_says_and_leads_nowhere(tmp_path: Path) -> None:
    """V1: no id, no blob, no other branch, no secret, in the bytes of the reply and of the stream."""
    key = "the key is sk-abcdefghijkl and I am Rumpelstiltskin"
    async with shared(tmp_path, says("the answer"), says(key)) as scene:
        site = scene.site
        await site.ask(
            "PATCH",
            f"/api/conversations/{scene.id}",
            {"settings": {"private": {"name": "Rumpelstiltskin"}}, "title": "Cleaning"},
        )
        await site.post(f"/api/questions/{scene.names['question']}/answer", {"verdict": "allow"})
        await site.until(f"/api/turns/{scene.names['turn']}/events", "turn.end")
        path = f"/api/conversations/{scene.id}/links"
        whole = await site.post(path, {})
        omits = ["arguments", "results", "files", "reasoning"]
        bare = await site.post(path, {"omits": omits})
        first = await site.post(path, {"upto": scene.names["message"]})
        frozen = await site.post(path, {"frozen": True})
        assert (await audited(site))[-1] == ("share.made", "local", frozen["share"]["id"])
        path = f"/api/messages/{scene.names['message']}/edit"
        edited = await site.post(path, {"text": "another branch"})
        await site.until(f"/api/turns/{edited['turn']}/events", "turn.end")

        status, body = await read_link(site, whole["token"])
        shown = json.loads(body)
        assert (status, shown["title"]) == (200, "Cleaning")
        assert [one["role"] for one in shown["messages"]] == ["user", "assistant"]
        assert b"\xe2\x80\xb9hidden\xe2\x80\xba" in body
        _, kept = await read_link(site, frozen["token"])
        calls_shown = [p for m in json.loads(kept)["messages"] for p in m["parts"] if p["kind"] == "call"]
        assert [(p["tool"], p["arguments"]) for p in calls_shown] == [
            ("look", {"at": "sda"}),
            ("wipe", {"disk": "sda"}),
        ]
        assert b"a.txt" in kept
        assert b"another branch" not in kept
        await site.ask("PATCH", f"/api/conversations/{scene.id}", {"leaf": scene.names["message"]})
        _, nothing = await read_link(site, bare["token"])
        assert b"wipe" in nothing
        for left_out in (b"sda", b"a.txt", b"is fine"):
            assert left_out not in nothing
        _, beginning = await read_link(site, first["token"])
        assert [one["role"] for one in json.loads(beginning)["messages"]] == ["user"]
        names = [
            value.encode() for name, value in scene.names.items() if name not in ("user", "number", "share")
        ]
        for seen in (body, kept, nothing, beginning):
            assert not [
                one for one in (*SECRETS, *names, b"conv_", b"msg_", b"call_", b"local") if one in seen
            ]


async def test_a_link_that_is_no_longer_valid_shows_nothing(tmp_path: Path, caplog: Any) -> None:
    """A link can be revoked, expired, or for a deleted conversation. Its stream ends, and no token is logged
    (V1)."""
    async with shared(tmp_path) as scene:
        site = scene.site
        path = f"/api/conversations/{scene.id}/links"
        kept, expired, revoked = [await site.post(path, {"seconds": s}) for s in (None, 1, None)]

        async def listen(token: str) -> bytes:
            async with site.http.get(f"{site.url}/api/shared/{token}/events") as response:
                assert response.status == 200
                return await response.read()

        streams = [asyncio.create_task(listen(one["token"])) for one in (revoked, expired)]
        await asyncio.sleep(0.1)
        await site.ask("DELETE", f"/api/conversations/{scene.id}/shares/{revoked['share']['id']}")
        for heard in await asyncio.gather(*streams):
            assert heard.count(b"event: snapshot") == 1
            assert not [one for one in scene.names.values() if len(one) > 8 and one.encode() in heard]
        began = time.monotonic()
        for one in (revoked, expired):
            assert (await read_link(site, one["token"]))[0] == 404
        invitation = await site.post(f"/api/conversations/{scene.id}/invitations", {})
        assert (await read_link(site, invitation["token"]))[0] == 404
        assert (await read_link(site, kept["token"]))[0] == 200
        await site.ask("DELETE", f"/api/conversations/{scene.id}")
        assert (await read_link(site, kept["token"]))[0] == 404
        assert [(await read_link(site, f"guess-{n}"))[0] for n in range(3)][-1] == 429
        slowed = await site.ask("GET", "/api/shared/guess")
        wait = 1 / ONE.rate
        assert wait - (time.monotonic() - began) <= int(slowed.headers["retry-after"]) <= wait
        assert kept["token"] not in caplog.text


@pytest.fixture(params=["a file", "postgresql"])
def opens(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[], Store]:
    """One store, for each process that uses it."""
    if request.param == "a file":
        return lambda: SqliteStore(with_tables(tmp_path / "chat.db"))
    server: Server = request.getfixturevalue("postgres")
    return lambda: PostgresStore(server.url(schema_of(tmp_path)), lease=PATIENCE)


@pytest.mark.slow
async def test_a_member_is_removed_at_every_server(tmp_path: Path, opens: Callable[[], Store]) -> None:
    """Streams at another server end, those of others stay, and the conversation leaves the list there (V1 ×
    N3)."""
    first_folder, second_folder = tmp_path / "one", tmp_path / "two"
    for folder in (first_folder, second_folder):
        folder.mkdir()
    async with (
        served(first_folder, [], store=opens()) as first,
        served(second_folder, [], store=opens()) as second,
        asyncio.timeout(PATIENCE),
    ):
        for name in ("ada", "bob"):
            await first.runtime.store.add_person(name, key_hash(f"key of {name}"), 1.0)
        id = await first.conversation()
        for name in ("ada", "bob"):
            await first.ask("PUT", f"/api/conversations/{id}/members/{name}", {"role": "reads"})
        bob, ada = replace(second, key="key of bob"), replace(second, key="key of ada")
        path = f"/api/conversations/{id}/events"
        async with bob.events(path) as heard, bob.events("/api/events") as listed, ada.events(path) as others:
            assert (await anext(heard)).type == (await anext(others)).type == "snapshot"
            await first.ask("DELETE", f"/api/conversations/{id}/members/bob")
            assert [event.type async for event in heard if event.type != "presence"] == []
            async for event in listed:
                if event.type == "conversation.deleted":
                    break
            await first.ask("PATCH", f"/api/conversations/{id}", {"title": "still here"})
            link = await first.post(f"/api/conversations/{id}/links", {})
            assert (await read_link(second, link["token"]))[0] == 200
            waiting = asyncio.ensure_future(anext(others))
            await asyncio.sleep(0.2)
            assert not waiting.done() or waiting.result().type == "presence"
            waiting.cancel()


async def test_a_wide_rule_of_a_member_is_for_the_members_own_messages(tmp_path: Path) -> None:
    """The same holds for usage, and for the rights of a member's fork (V2)."""
    more = [says("done"), calls("wipe", disk="b"), says("bob's"), calls("wipe", disk="c"), says("mine")]
    async with shared(tmp_path, *more) as scene:
        site, bob = scene.site, scene.person("bob")
        await scene.share("bob", "takes_part")
        await bob.post(
            "/api/grants", {"permission": "wipe", "pattern": "*", "action": "allow", "scope": "always"}
        )
        question = await site.question()
        assert question["id"] == scene.names["question"]  # the owner's call still waits
        await site.post(f"/api/questions/{question['id']}/answer", {"verdict": "allow"})
        await site.until(f"/api/turns/{scene.names['turn']}/events", "turn.end")

        async def replies(person: Site) -> int:
            lines = (await person.get("/api/usage"))["models"]
            return sum(int(line["messages"]) for line in lines)

        before = await replies(site)
        turn = await bob.say("wipe it", scene.id)
        await bob.until(f"/api/turns/{turn}/events", "turn.end")  # no approval is requested
        assert (await replies(site), await replies(bob)) == (before, 2)
        mine = await site.say("wipe it", scene.id)
        assert (await site.question())["turn"] == mine


BY_BODY: dict[str, Callable[[str], tuple[str, dict[str, Any]]]] = {
    "responses": lambda talk: ("/v1/responses", {"input": "hi", "conversation": talk}),
    "completions": lambda talk: (
        "/v1/chat/completions",
        {
            "model": "scripted",
            "messages": [{"role": "user", "content": "hi"}],
            "metadata": {"conversation": talk},
        },
    ),
    "ai-sdk": lambda talk: (
        "/api/ai-sdk/chat",
        {
            "id": talk,
            "trigger": "submit-message",
            "messages": [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "hi"}]}],
        },
    ),
    "ag-ui": lambda talk: (
        "/api/ag-ui",
        {
            "threadId": talk,
            "runId": "r1",
            "messages": [{"id": "m1", "role": "user", "content": "hi"}],
            "state": None,
            "tools": [],
            "context": [],
            "forwardedProps": None,
        },
    ),
}


@pytest.mark.parametrize("protocol", BY_BODY)
async def test_a_client_of_another_protocol_has_the_rights_of_its_user(tmp_path: Path, protocol: str) -> None:
    """V1, V2 × F1: where the body names the conversation."""
    async with shared(tmp_path) as scene:
        site, bob = scene.site, scene.person("bob")
        await site.post(f"/api/questions/{scene.names['question']}/answer", {"verdict": "allow"})
        await site.until(f"/api/turns/{scene.names['turn']}/events", "turn.end")

        async def senders() -> list[str]:
            tree = await site.get(f"/api/conversations/{scene.id}/tree")
            return [one["by"] for one in tree["messages"] if one["role"] == "user"]

        path, body = BY_BODY[protocol](scene.id)
        if "/v1/" in path:
            body["model"] = site.runtime.services.model(None).name
        stranger = await bob.ask("POST", path, body)
        assert stranger.status == (404 if "/v1/" in path else 200)  # there, it is a name of the client's own
        assert await senders() == ["local"]
        for role in ("reads", "answers"):
            await scene.share("bob", role)
            assert (await bob.ask("POST", path, body)).status == 403, role
        await scene.share("bob", "takes_part")
        assert (await bob.ask("POST", path, body)).status == 200
        assert await senders() == ["local", "bob"]


async def test_nothing_is_asked_of_a_model_for_who_was_removed(tmp_path: Path) -> None:
    """V1 × S3: also where the process that removed them did not live to cancel their turn."""
    script = [calls("wait_here"), says("never")]
    held = asyncio.Event()

    @tool
    async def wait_here() -> str:
        """Wait."""
        await held.wait()
        return "waited"

    async with runtime_with(tmp_path / "other", script, tools=[wait_here]) as runtime:
        chat = await runtime.conversation()
        await chat.share("bob", "takes_part")
        turn = await chat.send("hi", by="bob")
        await turn.reached("tool_call")
        await runtime.store.remove_member(chat.id, "bob")  # as if it ended here
        held.set()
        await turn.result()
        assert (await turn.snapshot()).state == "cancelled"
        assert len(model_of(runtime).requests) == 1
