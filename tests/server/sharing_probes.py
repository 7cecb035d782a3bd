"""Check which data users see of shared conversations by every route, and which facts they must not infer."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dragoman.conversation.sharing import Right
from dragoman.server.auth import key_hash
from tests.patience import PATIENCE
from tests.server.sharing_world import KINDS, Scene, Talk, World, play
from tests.server.site import Answer, served
from tests.server.test_sharing import BODIES, OTHERS, RIGHTS, look, wipe

ROUTES = [route for route in RIGHTS if "ai-sdk" not in route]
CHATS = [route for route in RIGHTS if "ai-sdk" in route]  # a client names these itself: they are not missing

# Routes that a user can read without naming an object. Actions among other users never change their answers.
LISTS = [path for method, _, path in (one.partition(" ") for one in sorted(OTHERS)) if method == "GET"]
LISTS = [
    path for path in LISTS if "{" not in path and not path.startswith(("/oidc", "/callback", "/sandbox"))
]
LISTS = [path for path in LISTS if path not in ("/api/events", "/healthz", "/readyz", "/preview", "/")]
QUERIES = {
    "/api/conversations": "?limit=200",
    "/api/usage": "?by=day,person,model,agent,tool",
    "/api/rules/decision": "?permission=wipe",
    "/api/rules/covered": "?rule=wipe:*",
}
# Requests about something of the user's own that name something of a conversation that is not.
STRANGE: dict[str, tuple[Right, list[Any]]] = {
    "POST /api/conversations/{id}/turns": (
        Right.TAKE_PART,
        [
            {"text": "x", "parent": "{message'}"},
            {"parts": [{"type": "file", "media_type": "text/plain", "blob": "{blob'}"}]},
        ],
    ),
    "PATCH /api/conversations/{id}": (Right.TAKE_PART, [{"leaf": "{message'}"}]),
    "POST /api/conversations/{id}/fork": (Right.READ, [{"message": "{message'}"}]),
    "POST /api/conversations/{id}/links": (Right.OWN, [{"upto": "{message'}"}]),
    "PUT /api/conversations/{id}/queue": (Right.TAKE_PART, [{"turns": ["{turn'}"]}]),
    "DELETE /api/conversations/{id}/shares/{share'}": (Right.OWN, [None]),
    "GET /v1/conversations/{id}/items?after={message'}": (Right.READ, [None]),
    "GET /v1/conversations/{id}/items/{message'}": (Right.READ, [None]),
    "GET /api/questions?after={question'}": (Right.NONE, [None]),
    "GET /api/questions?after={question'}&conversation={id}": (Right.READ, [None]),
    "GET /api/conversations?search=w1z&before=1-{id'}": (Right.NONE, [None]),
    "GET /v1/files?after={file'}": (Right.NONE, [None]),
    "GET /v1/files/{file'}": (Right.NONE, [None]),
    "GET /v1/files/{file'}/content": (Right.NONE, [None]),
    "DELETE /v1/files/{file'}": (Right.NONE, [None]),
    "DELETE /api/grants/{grant'}": (Right.NONE, [None]),
    "GET /c/{id'}": (Right.NONE, [None]),
    "POST /api/invitations/accept": (Right.NONE, [{"token": "{id'}"}]),
    "POST /v1/responses": (
        Right.NONE,
        [
            {"input": "x", "model": "scripted/model", "conversation": "{id'}"},
            {"input": "x", "model": "scripted/model", "previous_response_id": "resp_{turn#'}"},
            {
                "input": [{"type": "function_call_output", "call_id": "{call'}", "output": "x"}],
                "model": "scripted/model",
            },
            {
                "input": [
                    {"role": "user", "content": [{"type": "input_file", "file_id": "{file'}"}]},
                ],
                "model": "scripted/model",
            },
        ],
    ),
    "POST /v1/chat/completions": (
        Right.NONE,
        [
            {
                "model": "scripted/model",
                "messages": [{"role": "user", "content": "x"}],
                "metadata": {"conversation": "{id'}"},
            },
        ],
    ),
}
# Other routes. Some create an object of the user, and a step below covers them. The rest name no object.
STEPS_OR_NOTHING = {
    *("POST /api/conversations", "POST /api/import", "POST /api/files", "POST /api/grants", "POST /v1/files"),
    *("PUT /api/prompts/{name}", "DELETE /api/prompts/{name}", "POST /v1/conversations", "GET /api/events"),
    *(f"POST /api/{one}" for one in ("ai-sdk/chat", "ai-sdk/v5/chat", "ag-ui", "ag-ui/{agent}", "links")),
    *("GET /api/shared/{token}", "GET /api/shared/{token}/events", "POST /api/login", "POST /api/logout"),
    *("GET /api/models/{provider}", "POST /api/server-prompts/{server}/{name:path}"),
    *("GET /api/evaluations/{name}", "GET /api/evaluations/{name}/cases/{case:path}"),
    *("GET /oidc/login", "GET /oidc/callback", "POST /oidc/logout", "GET /callback", "GET /sandbox"),
    *(f"{method} {path}" for method in ("GET", "HEAD") for path in ("/healthz", "/readyz", "/")),
    *("HEAD /c/{conversation}", "GET /preview"),
}


class WatchedWorld(World):
    """A world in which a user looks at everything after each step."""

    async def look_around(self, user: str) -> None:
        """Check that the lists contain exactly the conversations shared with the user, and that search
        agrees."""
        theirs = [talk for talk in self.talks if talk.right(user)]
        page = await self.good(user, "GET /api/conversations?limit=200")
        listed = {(one["id"], one["role"], one["owner"]) for one in page["items"]}
        assert listed == {(talk.id, talk.right(user).role, talk.owner) for talk in theirs}, (self.seed, user)
        asked = (await self.good(user, "GET /api/questions"))["items"]
        may = {talk.id for talk in theirs if talk.right(user) >= Right.ANSWER}
        assert {one["conversation"] for one in asked} <= may
        for word in self.random.sample([f"w{n}z" for n in range(self.seed * 1000 + 1, self.count + 1)], 1):
            found = await self.good(user, f"GET /api/conversations?search={word}")
            assert {one["id"] for one in found["items"]} <= {t.id for t in theirs if word in t.marks}
        known = [
            talk for talk in self.talks if talk.right(user) in (Right.READ, Right.ANSWER, Right.TAKE_PART)
        ]
        for talk in (self.random.choice(self.talks), self.random.choice(known or self.talks)):
            await self.probe(user, talk)
        await self.strange(user)
        await self.read_links()

    def names(self, talk: Talk) -> dict[str, str]:
        """One of each kind of what is in it."""
        names = {kind: self.random.choice(talk.of(kind) or [f"{KINDS[kind]}_" + "0" * 16]) for kind in KINDS}
        names |= {"id": talk.id, "number": "1", "response": names["turn"].replace("turn_", "resp_")}
        names["turn#"] = names["turn"].removeprefix("turn_")
        names["blob"] = self.random.choice(talk.blobs or ["0" * 64])
        names["share"] = self.random.choice(sorted(talk.shares) or ["share_" + "0" * 16])
        names["user"] = self.random.choice(self.people)
        mine = [mark for marks in self.own.values() for mark in marks]
        for kind in ("file", "grant"):
            names[kind] = self.random.choice(
                [m for m in mine if m.startswith(f"{kind}_")] or [f"{kind}_none"]
            )
        return names

    async def probe(self, user: str, talk: Talk) -> None:
        """Some route of all that name something of a conversation."""
        right, names = talk.right(user), self.names(talk)
        beyond = [route for route in RIGHTS if Right.NONE < right < RIGHTS[route]]
        pool = beyond if beyond and self.random.random() < 0.5 else ROUTES + CHATS
        for route in self.random.sample(pool, min(3, len(pool))):
            body = BODIES.get(route)
            if right and "0" * 16 in "".join(map(str, filled(route, body, names))):
                continue  # there is none in it yet
            if right is Right.NONE:
                if "{blob}" in route and names["blob"] in self.visible(user):
                    continue
                if route in CHATS and (user, talk.id) in self.begun:
                    continue
                self.seen[f"hidden {route}"] += 1
                await self.same_as_missing(user, route, body, names, hidden=route in ROUTES)
            elif right < RIGHTS[route] and not (names["user"] == user and "{user}" in route):
                self.seen[f"beyond {route}"] += 1
                answer = await self.ask(user, *filled(route, body, names))
                # a stream that was started and stopped is missing for the owner, too
                if answer.status != 403:
                    owner = self.reader(talk) or ""
                    said = await self.ask(owner, *filled(route, body, names))
                    assert answer.status == said.status == 404, (self.seed, user, route, answer, said)
            elif route.startswith("GET") and not re.search("events|/stream|sound", route):
                self.seen[f"within {route}"] += 1
                answer = await self.ask(user, *filled(route, body, names))
                assert answer.status != 403, (self.seed, user, route, answer)

    async def strange(self, user: str) -> None:
        """Send one of the user's own requests with the name of an object that the user cannot see."""
        hidden = [talk for talk in self.talks if not talk.right(user)]
        if not hidden:
            return
        theirs = self.names(self.random.choice(hidden))
        if {theirs["blob"], theirs["file"], theirs["grant"]} & self.visible(user):
            return
        route = self.random.choice([*STRANGE])
        right, bodies = STRANGE[route]
        mine = [talk for talk in self.talks if talk.right(user) >= max(right, Right.READ)]
        if right and not mine:
            return
        own = self.names(self.random.choice(mine)) if mine else theirs
        names = own | {f"{name}'": value for name, value in theirs.items()}
        self.seen[f"strange {route}"] += 1
        await self.same_as_missing(user, route, self.random.choice(bodies), names)

    async def same_as_missing(
        self, user: str, route: str, body: Any, names: dict[str, str], *, hidden: bool = False
    ) -> None:
        """Check that a hidden object is answered like a missing one: status, body and headers."""
        nowhere = {name: missing(value) for name, value in names.items()}
        if any(name.endswith("'") for name in names):
            nowhere = {name: nowhere[name] if name.endswith("'") else names[name] for name in names}
        first = await self.ask(user, *filled(route, body, names))
        second = await self.ask(user, *filled(route, body, nowhere))
        if 429 in (first.status, second.status):
            return  # too many wrong tokens
        assert not hidden or first.status == 404, (self.seed, user, route, first)
        said = [blank(one, its) for one, its in ((first, names), (second, nowhere))]
        assert said[0] == said[1], (self.seed, user, route, body, *said)

    async def read_links(self) -> None:
        for talk in [talk for talk in self.talks if talk.links][:2]:
            token = self.random.choice([*talk.links])
            _, _, frozen = talk.links[token]
            may = talk.words if frozen is None else frozen
            answer = await self.ask(None, f"GET /api/shared/{token}", may=may)
            assert answer.status == 200, (self.seed, answer)
            self.seen["links read"] += 1

    async def step(self, act: Callable[[], Awaitable[None]]) -> None:
        """Check that actions in conversations hidden from a user change no answer that the user receives."""
        user = self.random.choice(self.people) if self.random.random() < 0.12 else None
        before = await self.everything(user) if user is not None else []
        rights = {talk: talk.right(user or "") for talk in self.talks}
        self.touched, self.actors = set(), set()
        await act()
        apart = not self.actors & {user} and act not in (self.wait, self.remove_person)
        if user not in self.people or not apart:
            return
        if not any(rights.get(talk) or talk.right(user) for talk in self.touched):
            self.seen["nothing inferred"] += 1
            assert await self.everything(user) == before, (self.seed, user, act)

    async def everything(self, user: str) -> list[object]:
        """Return every answer that a user receives without naming an object."""
        return [blank(await self.ask(user, f"GET {path}{QUERIES.get(path, '')}"), {}) for path in LISTS]

    async def play(self, steps: int) -> None:
        acts = [self.begin, self.say, self.say, self.say, self.share, self.share, self.invite, self.accept]
        acts += [self.remove, self.race, self.transfer, self.fork, self.carry, self.link, self.revoke]
        acts += [self.answer, self.answer, self.change, self.change, self.keep, self.by_protocol, self.wait]
        acts += [self.replay, self.replay, self.delete, self.listen, self.listen, self.remove_person]
        for act in (self.begin, self.begin, self.share, self.share, self.invite, self.link):
            await act()
        for _ in range(steps):
            await self.step(self.random.choice(acts))
            if self.random.random() < 0.7:
                await self.look_around(self.random.choice(self.people))
        await self.end()
        self.scene.marks.update(self.where, *self.own.values())

    async def end(self) -> None:
        """Check that removed members have received nothing since, and that the streams of the others are
        open."""
        for talk in self.talks:
            await self.settle(talk)
        for listener in self.listeners:
            assert listener.task is not None
            if not listener.open:
                async with asyncio.timeout(PATIENCE):
                    await listener.task
            else:
                assert not listener.task.done(), (self.seed, listener.user)
                listener.task.cancel()
            # readers receive the deletion after the fact
            may = listener.may | self.knew.get(listener.user, set())
            self.check_marks(listener.user, bytes(listener.heard), may, "a stream")


def filled(route: str, body: Any, names: dict[str, str]) -> tuple[str, Any]:
    text = json.dumps(body)
    for name, value in names.items():
        route, text = route.replace(f"{{{name}}}", value), text.replace(f"{{{name}}}", value)
    return route, json.loads(text)


def missing(name: str) -> str:
    """A name as long as this one, of nothing."""
    head, mark, rest = name.rpartition("_")
    return head + mark + ("0" * len(rest) if len(rest) >= 16 else rest)


def blank(answer: Answer, names: dict[str, str]) -> tuple[int, str, str]:
    """Return the answer without the names that were sent and without values that differ each time."""
    told = {name: value for name, value in answer.headers.items() if name not in ("date", "x-request-id")}
    body = (
        answer.body.decode("utf-8", "replace") if isinstance(answer.body, bytes) else json.dumps(answer.body)
    )
    text, head = body, json.dumps(told)
    for name, value in sorted(names.items(), key=lambda one: -len(one[1])):
        if len(value) >= 16:
            text, head = text.replace(value, f"<{name.rstrip(chr(39))}>"), head.replace(value, "<>")
    return answer.status, text, head


@asynccontextmanager
async def scene_in(folder: Path) -> AsyncIterator[Scene]:
    later = [0.0]
    options: dict[str, Any] = {"tools": [wipe, look], "allow": ["look"], "ask": ["wipe"]}
    options |= {"proxies": ["127.0.0.1"], "clock": lambda: time.time() + later[0]}
    async with served(folder, play, **options) as site:
        yield Scene(site, later)


async def play_sequence(scene: Scene, seed: int, steps: int) -> None:
    world = WatchedWorld(scene, seed)
    for name in world.people:
        await scene.site.runtime.store.add_person(name, key_hash(f"key of {name}"), 1.0)
    async with asyncio.timeout(PATIENCE):
        await world.play(steps)
