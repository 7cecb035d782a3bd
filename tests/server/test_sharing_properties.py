"""V1: nobody reads, receives, finds or counts what is not theirs, whatever people do one after another."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import pytest

from dragoman.conversation.sharing import ROLES, Right
from dragoman.server.auth import key_hash
from dragoman.wire.scripted import says
from tests.patience import PATIENCE
from tests.server.site import Site, served
from tests.sweeps import examples

pytestmark = pytest.mark.slow

PEOPLE = ("local", "ada", "bob", "eve")
SEED = int(os.environ.get("DRAGOMAN_SHARING_SEED", "1"))
STEPS = 25


@dataclass
class Talk:
    """What the model of the test knows of a conversation."""

    id: str
    owner: str
    members: dict[str, Right] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    blobs: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    turns: list[str] = field(default_factory=list)
    links: dict[str, tuple[str, list[str] | None]] = field(
        default_factory=dict
    )  # token: its id, what is frozen

    def right(self, user: str) -> Right:
        return Right.OWN if user == self.owner else self.members.get(user, Right.NONE)


@dataclass
class Listener:
    """A stream that somebody opened, and the words it may have told."""

    user: str
    talk: Talk
    task: asyncio.Task[bytes]
    words: set[str]
    open: bool = True


@dataclass
class World:
    site: Site
    random: Random
    talks: list[Talk] = field(default_factory=list)
    gone: list[Talk] = field(default_factory=list)
    dead_links: list[str] = field(default_factory=list)
    uploaded: dict[str, set[str]] = field(default_factory=dict)
    listeners: list[Listener] = field(default_factory=list)
    count: int = 0

    def person(self, user: str) -> Site:
        return replace(self.site, key="key of local" if user == "local" else f"key of {user}")

    def pick(self, right: Right) -> tuple[str, Talk] | None:
        """Somebody who may do as much, somewhere."""
        found = [(user, talk) for talk in self.talks for user in PEOPLE if talk.right(user) >= right]
        return self.random.choice(found) if found else None

    # ── what people do ────────────────────────────────────────────────────────────────────────────

    async def begin(self) -> None:
        user = self.random.choice(PEOPLE)
        made = await self.person(user).post("/api/conversations", {"title": f"title{self.count}"})
        self.talks.append(Talk(made["id"], user))
        await self.speak(user, self.talks[-1])

    async def say(self) -> None:
        if (chosen := self.pick(Right.TAKE_PART)) is not None:
            await self.speak(*chosen)

    async def speak(self, user: str, talk: Talk) -> None:
        self.count += 1
        word, person = f"word{self.count}x", self.person(user)
        parts: list[dict[str, Any]] = [{"type": "text", "text": word}]
        if self.random.random() < 0.3:
            query = f"/api/files?name={word}.txt&type=text/plain"
            kind = {"content-type": "application/octet-stream"}
            file = (await person.ask("POST", query, f"bytes of {word}".encode(), headers=kind)).body
            parts.append(file)
            talk.blobs.append(file["blob"])
            self.uploaded.setdefault(file["blob"], set()).add(user)
        begun = await person.post(f"/api/conversations/{talk.id}/turns", {"parts": parts})
        for listener in self.listeners:
            if listener.talk is talk and listener.open:
                listener.words.add(word)
        talk.words.append(word)
        talk.turns.append(begun["turn"])
        await person.until(f"/api/turns/{begun['turn']}/events", "turn.end")
        tree = await person.get(f"/api/conversations/{talk.id}/tree")
        talk.messages = [one["id"] for one in tree["messages"]]

    async def share(self) -> None:
        if (chosen := self.pick(Right.OWN)) is not None:
            owner, talk = chosen
            other = self.random.choice([one for one in PEOPLE if one != owner])
            role = self.random.choice([*ROLES])
            await self._put(owner, talk, other, role)

    async def _put(self, owner: str, talk: Talk, other: str, role: str) -> None:
        path = f"/api/conversations/{talk.id}/members/{other}"
        assert (await self.person(owner).ask("PUT", path, {"role": role})).status == 200
        talk.members[other] = next(ROLES[one] for one in ROLES if one == role)

    async def invite(self) -> None:
        if (chosen := self.pick(Right.OWN)) is not None:
            owner, talk = chosen
            other = self.random.choice([one for one in PEOPLE if one != owner])
            role = self.random.choice([*ROLES])
            made = await self.person(owner).post(f"/api/conversations/{talk.id}/invitations", {"role": role})
            token = {"token": made["token"]}
            assert (await self.person(other).ask("POST", "/api/invitations/accept", token)).status == 200
            talk.members[other] = max(talk.right(other), ROLES[role])

    async def remove(self) -> None:
        shared = [talk for talk in self.talks if talk.members]
        if shared:
            talk = self.random.choice(shared)
            user = self.random.choice([*talk.members])
            by = self.random.choice([user, talk.owner])
            path = f"/api/conversations/{talk.id}/members/{user}"
            assert (await self.person(by).ask("DELETE", path)).status == 204
            del talk.members[user]
            self._closed(lambda one: one.talk is talk and one.user == user)

    async def transfer(self) -> None:
        shared = [talk for talk in self.talks if talk.members]
        if shared:
            talk = self.random.choice(shared)
            user = self.random.choice([*talk.members])
            await self.person(talk.owner).post(f"/api/conversations/{talk.id}/transfer", {"user": user})
            del talk.members[user]
            talk.members[talk.owner] = Right.TAKE_PART
            talk.owner = user

    async def fork(self) -> None:
        if (chosen := self.pick(Right.READ)) is not None and chosen[1].messages:
            user, talk = chosen
            place = self.random.randrange(len(talk.messages))
            path = f"/api/conversations/{talk.id}/fork"
            made = await self.person(user).post(path, {"message": talk.messages[place]})
            tree = await self.person(user).get(f"/api/conversations/{made['id']}/tree")
            texts = json.dumps(tree["messages"])
            words = [word for word in talk.words if word in texts]
            blobs = [blob for blob in talk.blobs if blob in texts]
            ids = [one["id"] for one in tree["messages"]]
            self.talks.append(Talk(made["id"], user, words=words, blobs=blobs, messages=ids))

    async def link(self) -> None:
        if (chosen := self.pick(Right.OWN)) is not None:
            owner, talk = chosen
            frozen = self.random.random() < 0.5
            made = await self.person(owner).post(f"/api/conversations/{talk.id}/links", {"frozen": frozen})
            talk.links[made["token"]] = (made["share"]["id"], [*talk.words] if frozen else None)

    async def revoke(self) -> None:
        linked = [talk for talk in self.talks if talk.links]
        if linked:
            talk = self.random.choice(linked)
            token = self.random.choice([*talk.links])
            share, _ = talk.links.pop(token)
            await self.person(talk.owner).ask("DELETE", f"/api/conversations/{talk.id}/shares/{share}")
            self.dead_links.append(token)

    async def delete(self) -> None:
        if len(self.talks) > 2:
            talk = self.random.choice(self.talks)
            assert (
                await self.person(talk.owner).ask("DELETE", f"/api/conversations/{talk.id}")
            ).status == 204
            self.talks.remove(talk)
            self.gone.append(talk)
            self.dead_links += talk.links
            self._closed(lambda one: one.talk is talk)

    async def listen(self) -> None:
        if (chosen := self.pick(Right.READ)) is not None and len(self.listeners) < 6:
            user, talk = chosen
            begun = asyncio.Event()
            task = asyncio.create_task(self._hear(user, talk, begun))
            await begun.wait()
            self.listeners.append(Listener(user, talk, task, {*talk.words}))

    async def _hear(self, user: str, talk: Talk, begun: asyncio.Event) -> bytes:
        person, heard = self.person(user), b""
        headers = {"authorization": f"Bearer {person.key}"}
        path = self.random.choice(
            (f"/api/conversations/{talk.id}/events", f"/api/events?conversation={talk.id}")
        )
        async with person.http.get(person.url + path, headers=headers) as response:
            assert response.status == 200
            with suppress(aiohttp.ClientError):
                async for chunk in response.content.iter_any():
                    heard += chunk
                    if b"event: snapshot" in heard:
                        begun.set()
        begun.set()
        return heard

    def _closed(self, which: Callable[[Listener], bool]) -> None:
        for listener in self.listeners:
            if which(listener):
                listener.open = False

    # ── what they see ─────────────────────────────────────────────────────────────────────────────

    async def check(self, user: str) -> None:
        person = self.person(user)
        theirs = [talk for talk in self.talks if talk.right(user) is not Right.NONE]
        page = await person.get("/api/conversations?limit=200")
        listed = {(one["id"], one["role"], one["owner"]) for one in page["items"]}
        assert listed == {(talk.id, talk.right(user).role, talk.owner) for talk in theirs}
        for talk in (*self.talks, *self.gone):
            await self._check_talk(person, user, talk)
        known = {word for talk in theirs for word in talk.words}
        for word in self.random.sample([f"word{n + 1}x" for n in range(self.count)], min(self.count, 4)):
            found = await person.get(f"/api/conversations?search={word}")
            wanted = {talk.id for talk in theirs if word in talk.words}
            assert {one["id"] for one in found["items"]} == wanted, (user, word)
            assert bool(wanted) == (word in known)
        for token in self.dead_links[-2:]:
            async with person.http.get(f"{person.url}/api/shared/{token}") as response:
                assert response.status in (404, 429)

    async def _check_talk(self, person: Site, user: str, talk: Talk) -> None:
        right = talk.right(user) if talk in self.talks else Right.NONE
        hidden = right is Right.NONE
        for path, needed in (
            (f"/api/conversations/{talk.id}", Right.READ),
            (f"/api/conversations/{talk.id}/tree", Right.READ),
            (f"/api/conversations/{talk.id}/export", Right.READ),
            (f"/api/conversations/{talk.id}/raw", Right.OWN),
            (f"/api/conversations/{talk.id}/members", Right.READ),
            (f"/api/conversations/{talk.id}/shares", Right.OWN),
            (f"/v1/conversations/{talk.id}/items", Right.READ),
            *((f"/api/turns/{turn}/trace", Right.READ) for turn in talk.turns[-1:]),
        ):
            answer = await person.ask("GET", path)
            wanted = 404 if hidden else 200 if right >= needed else 403
            assert answer.status == wanted, (user, path, right)
            if hidden:
                assert not [word for word in talk.words if word in json.dumps(answer.body)]
        for blob in talk.blobs:
            elsewhere = [one for one in self.talks if one.right(user) is not Right.NONE and blob in one.blobs]
            seen = bool(elsewhere) or user in self.uploaded.get(blob, ())
            assert (await person.ask("GET", f"/api/files/{blob}")).status == (200 if seen else 404)
        for token, (_, frozen) in talk.links.items() if talk in self.talks else ():
            async with person.http.get(f"{person.url}/api/shared/{token}") as response:
                if response.status == 429:
                    continue  # wrong ones were tried
                body = (await response.read()).decode()
            others = {word for one in self.talks if one is not talk for word in one.words} - {*talk.words}
            assert not [word for word in others if word in body.replace(".txt", "")]
            if frozen is not None:
                later = [word for word in talk.words if word not in frozen]
                assert not [word for word in later if word in body]
            assert not [blob for blob in talk.blobs if blob in body]

    async def end(self) -> None:
        """Those that were removed have heard nothing since; the streams of the others are open."""
        await asyncio.sleep(0.05)
        for listener in self.listeners:
            if listener.open:
                assert not listener.task.done(), listener.user
                listener.task.cancel()
                continue
            heard = (await listener.task).decode()
            told = {word for talk in (*self.talks, *self.gone) for word in talk.words if f'"{word}"' in heard}
            assert told <= listener.words, (listener.user, told - listener.words)


@pytest.mark.parametrize("seed", range(SEED, SEED + examples(6, 400)))
async def test_nobody_sees_what_is_not_theirs(tmp_path: Path, seed: int) -> None:
    """V1: lists, searches, trees, exports, blobs, traces, other protocols, links and live streams."""
    random = Random(seed)
    async with served(tmp_path, [says("ok")] * 200) as site, asyncio.timeout(PATIENCE * 4):
        for name in PEOPLE[1:]:
            await site.runtime.store.add_person(name, key_hash(f"key of {name}"), 1.0)
        world = World(site, random)
        await world.begin()
        steps: list[Callable[[], Awaitable[None]]] = [
            *(world.begin, world.say, world.say, world.share, world.share, world.invite, world.remove),
            *(world.remove, world.transfer, world.fork, world.link, world.revoke, world.delete, world.listen),
        ]
        for _ in range(STEPS):
            await random.choice(steps)()
            await world.check(random.choice(PEOPLE))
        await world.end()
