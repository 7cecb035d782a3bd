"""Users share conversations at one server step by step, and a small model decides who can see which.

Everything in a conversation has a mark: a word, an ID or the hash of a file. The test searches each byte that
a user receives for marks. Each mark must belong to something that this user can read.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

import aiohttp

from dragoman.conversation.sharing import ROLES, Right
from dragoman.messages.request import Request
from dragoman.wire.scripted import Line, calls, says
from tests.server.site import Answer, Site
from tests.server.test_sharing import BY_BODY

MARK = re.compile(
    rb"(?<![0-9a-z_])(?:w[0-9]+z|(?:conv|msg|turn|call|ask|share|resp|file|grant)_[0-9a-z]{16}|[0-9a-f]{64})"
)
KINDS = {"message": "msg", "turn": "turn", "call": "call", "question": "ask"}


def play(request: Request) -> Line:
    """Repeat the word of the last message, in an answer or in a call."""
    last = request.messages[-1]
    said = next((one for one in reversed(request.messages) if one.role == "user"), last)
    word = "".join(re.findall(r"w[0-9]+z", said.text)[-1:]) or "nothing"
    done = last.role != "user" or any(call.result is not None for call in last.calls)
    if done or not re.match("wipe|look", said.text):
        return says(f"answer to {word}")
    return calls("wipe", disk=word) if "wipe" in said.text else calls("look", at=word)


@dataclass
class Scene:
    """A server that plays one sequence after another."""

    site: Site
    later: list[float]  # seconds that its clock is ahead
    seen: Counter[str] = field(default_factory=Counter)  # how often each case was tried
    marks: set[str] = field(default_factory=set)  # marks of earlier sequences


@dataclass(eq=False)
class Talk:
    """The state of one conversation in the test's model."""

    id: str
    owner: str
    members: dict[str, Right] = field(default_factory=dict)
    marks: set[str] = field(default_factory=set)
    shares: set[str] = field(default_factory=set)  # ids that the owner alone sees
    links: dict[str, tuple[str, float, set[str] | None]] = field(
        default_factory=dict
    )  # token: id, expiry, words
    invitations: dict[str, tuple[str, float]] = field(default_factory=dict)  # token: role, expiry
    gone: bool = False

    def right(self, user: str) -> Right:
        if self.gone:
            return Right.NONE
        return Right.OWN if user == self.owner else self.members.get(user, Right.NONE)

    def of(self, kind: str) -> list[str]:
        return sorted(mark for mark in self.marks if mark.startswith(f"{KINDS[kind]}_"))

    @property
    def blobs(self) -> list[str]:
        return sorted(mark for mark in self.marks if len(mark) == 64)

    @property
    def words(self) -> set[str]:
        return {mark for mark in self.marks if mark.startswith("w")}


@dataclass(eq=False)
class Listener:
    """A stream that a user opened, and the marks it may have told."""

    user: str
    talk: Talk | None  # None: the list
    may: set[str]
    heard: bytearray = field(default_factory=bytearray)
    task: asyncio.Task[None] | None = None
    open: bool = True


class World:
    """One sequence of steps. After each step, the test checks what every user can and cannot see."""

    def __init__(self, scene: Scene, seed: int) -> None:
        self.scene, self.site, self.seed, self.random = scene, scene.site, seed, Random(seed)
        self.people = [f"{name}{seed}" for name in ("ada", "bob", "cyd", "eve")]
        self.talks: list[Talk] = []
        self.where: dict[str, set[Talk]] = {}
        self.own: dict[str, set[str]] = {}  # marks of what is a user's alone: files, rules, prompts
        self.touched: set[Talk] = set()  # in this step
        self.actors: set[str | None] = set()
        self.listeners: list[Listener] = []
        self.knew: dict[str, set[str]] = {}  # ids of conversations that a user could read at some time
        self.begun: set[tuple[str, str]] = set()  # under the name of what is another user's
        self.dead: list[str] = []  # tokens that are no longer valid
        self.removed: list[str] = []
        self.seen = scene.seen
        self.count = seed * 1000

    # ── requests, and what comes back ─────────────────────────────────────────────────────────────

    async def ask(
        self, user: str | None, route: str, body: Any = None, *, may: Iterable[str] = (), **more: Any
    ) -> Answer:
        """Send a request as this user, or as any user, and check that the answer has no mark hidden from the
        user."""
        method, _, path = route.partition(" ")
        headers = {"x-forwarded-for": f"10.{self.random.randrange(256)}.{self.random.randrange(256)}.7"}
        if user is not None:
            headers["authorization"] = f"Bearer key of {user}"
        kind = more.pop("headers", {})
        data = body if isinstance(body, bytes | aiohttp.FormData) else None
        if data is None and (body is not None or method in ("POST", "PUT", "PATCH")):
            data, kind = json.dumps(body or {}).encode(), {"content-type": "application/json"} | kind
        allowed = self.visible(user).union(may, sent := marks_in(route.encode() + as_bytes(data)))
        if method != "GET":
            self.actors.add(user)
            self.touched.update(*(self.where.get(mark, ()) for mark in sent))
        async with self.site.http.request(
            method, self.site.url + path, headers=headers | kind, data=data, allow_redirects=False, **more
        ) as response:
            raw = await response.read()
            told = {name.lower(): value for name, value in response.headers.items()}
            status = response.status
        assert status < 500, (self.seed, user, route, body, status, raw[:500])
        self.check_marks(user, raw + str(told).encode(), allowed, route)
        is_json = "json" in told.get("content-type", "") and raw
        return Answer(status, json.loads(raw) if is_json else raw, told)

    async def good(self, user: str, route: str, body: Any = None, **more: Any) -> Any:
        answer = await self.ask(user, route, body, **more)
        assert answer.status < 300, (self.seed, user, route, body, answer)
        return answer.body

    def visible(self, user: str | None) -> set[str]:
        if user is None:
            return set()
        return self.own.get(user, set()).union(
            *(talk.marks | {talk.id} for talk in self.talks if talk.right(user)),
            *(talk.shares for talk in self.talks if talk.right(user) is Right.OWN),
        )

    def check_marks(self, user: str | None, told: bytes, may: set[str], what: str) -> None:
        known = marks_in(told).intersection(self.scene.marks.union(self.where, *self.own.values()))
        for mark in known - set(may):
            at = told.index(mark.encode())
            raise AssertionError(self.seed, user, what, mark, told[max(0, at - 500) : at + 200])

    def keep_own(self, user: str, *marks: str) -> None:
        self.own.setdefault(user, set()).update(marks)

    def mark(self, talk: Talk, *marks: str) -> None:
        for mark in marks:
            talk.marks.add(mark)
            self.where.setdefault(mark, set()).add(talk)
        self.widen()

    def mark_share(self, talk: Talk, id: str) -> None:
        talk.shares.add(id)
        self.where.setdefault(id, set()).add(talk)

    def widen(self) -> None:
        """Streams may tell what their users may see from now on."""
        for talk in self.talks:
            for user in filter(talk.right, self.people):
                self.knew.setdefault(user, set()).add(talk.id)
        for listener in self.listeners:
            if listener.open:
                listener.may |= self.visible(listener.user)

    def reader(self, talk: Talk) -> str | None:
        return next((user for user in (talk.owner, *talk.members) if user in self.people), None)

    async def learn(self, talk: Talk) -> None:
        """The names of what is in it now, as its owner reads them."""
        if (reader := self.reader(talk)) is None or talk.gone:
            return
        read = await self.good(reader, f"GET /api/conversations/{talk.id}/tree")
        found = marks_in(json.dumps(read).encode())
        self.mark(talk, *(one for one in found if one not in self.where or "_" not in one))
        self.mark(talk, *(f"resp_{one.removeprefix('turn_')}" for one in talk.of("turn")))

    def new(self, id: str, owner: str) -> Talk:
        talk = Talk(id, owner)
        self.talks.append(talk)
        self.mark(talk, id)
        return talk

    def word(self) -> str:
        self.count += 1
        return f"w{self.count}z"

    def pick(self, right: Right) -> tuple[str, Talk] | None:
        """A user who may do as much, somewhere."""
        found = [(user, talk) for talk in self.talks for user in self.people if talk.right(user) >= right]
        return self.random.choice(found) if found else None

    def other(self, *users: str) -> str:
        return self.random.choice([one for one in self.people if one not in users])

    # ── what people do ────────────────────────────────────────────────────────────────────────────

    async def begin(self) -> None:
        user, title = self.random.choice(self.people), self.word()
        made = await self.good(user, "POST /api/conversations", {"title": title})
        talk = self.new(made["id"], user)
        self.mark(talk, title)
        await self.speak(user, talk)

    async def say(self) -> None:
        if (chosen := self.pick(Right.TAKE_PART)) is not None:
            await self.speak(*chosen)

    async def speak(self, user: str, talk: Talk) -> None:
        word = self.word()
        self.mark(talk, word)
        text = f"{self.random.choice(('say', 'say', 'wipe', 'look'))} {word}"
        parts: list[dict[str, Any]] = [{"type": "text", "text": text}]
        if self.random.random() < 0.3:
            parts.append(await self.upload(user, talk))
        body = {"parts": parts, "queue": self.random.random() < 0.7}
        answer = await self.ask(user, f"POST /api/conversations/{talk.id}/turns", body)
        assert answer.status in (202, 409), (self.seed, answer)
        if answer.status == 202:
            self.mark(talk, answer.body["turn"])
        await self.settle(talk)

    async def upload(self, user: str, talk: Talk) -> Any:
        word = self.word()
        self.keep_own(user, word)
        kind = {"content-type": "application/octet-stream"}
        data = f"bytes of {word}".encode()
        file = await self.good(user, f"POST /api/files?name={word}.txt&type=text/plain", data, headers=kind)
        self.mark(talk, word, file["blob"])
        self.keep_own(user, word, file["blob"])
        return file

    async def settle(self, talk: Talk) -> None:
        """Until it is over, or waits for an answer."""
        if (reader := self.reader(talk)) is None or talk.gone:
            return
        while (line := await self.good(reader, f"GET /api/conversations/{talk.id}"))["live"]:
            if line["waiting"]:
                break
            await asyncio.sleep(0.003)
        await self.learn(talk)

    async def answer(self) -> None:
        if (chosen := self.pick(Right.ANSWER)) is None:
            return
        user, talk = chosen
        asked = (await self.good(user, f"GET /api/questions?conversation={talk.id}"))["items"]
        for question in asked[:1]:
            verdict = self.random.choice(("allow", "reject"))
            body = {"verdict": verdict, "scope": self.random.choice(("once", "always"))}
            answer = await self.ask(user, f"POST /api/questions/{question['id']}/answer", body)
            assert answer.status in (200, 409), (self.seed, answer)
            await self.settle(talk)

    async def change(self) -> None:
        """Edit, rerun, cancel, rate, reorder, rename, type or choose a branch."""
        if (chosen := self.pick(Right.TAKE_PART)) is None:
            return
        user, talk = chosen
        message = self.random.choice(talk.of("message") or ["msg_none"])
        turn = self.random.choice(talk.of("turn") or ["turn_none"])
        word, note = self.word(), self.word()
        self.mark(talk, word)
        self.keep_own(user, note)
        routes: list[tuple[str, Any]] = [
            (f"POST /api/messages/{message}/edit", {"text": f"say {word}"}),
            (f"POST /api/messages/{message}/rerun", {}),
            (f"POST /api/turns/{turn}/cancel", {"reason": word}),
            (f"POST /api/turns/{turn}/steer", {"text": word}),
            (f"PUT /api/turns/{turn}/rating", {"value": "bad", "note": note}),
            (f"PATCH /api/conversations/{talk.id}", {"leaf": message}),
            (f"PATCH /api/conversations/{talk.id}", {"title": word, "tags": [word]}),
            (f"POST /api/conversations/{talk.id}/typing", {}),
            (f"PUT /api/conversations/{talk.id}/queue", {"turns": [turn]}),
            (f"DELETE /api/turns/{turn}/rating", None),
        ]
        await self.ask(user, *self.random.choice(routes))
        await self.settle(talk)

    async def keep(self) -> None:
        """Create an object that belongs to no conversation: a rule, a prompt or a file."""
        user, word = self.random.choice(self.people), self.word()
        self.keep_own(user, word)
        match self.random.randrange(3):
            case 0:
                body = {"permission": "wipe", "pattern": word, "action": "allow"}
                self.keep_own(user, (await self.good(user, "POST /api/grants", body))["id"])
            case 1:
                await self.good(user, f"PUT /api/prompts/{word}", {"text": f"text of {word}"})
            case _:
                form = aiohttp.FormData({"purpose": "user_data"})
                form.add_field("file", word.encode(), filename=f"{word}.txt", content_type="text/plain")
                self.keep_own(user, (await self.good(user, "POST /v1/files", form))["id"])

    async def by_protocol(self) -> None:
        """A client of another protocol, in a conversation that it names, or begins under this name."""
        user, protocol = self.random.choice(self.people), self.random.choice([*BY_BODY])
        talk = self.random.choice(self.talks)
        path, body = BY_BODY[protocol](talk.id)
        word, right = self.word(), talk.right(user)
        text = json.dumps(body).replace('"hi"', f'"say {word}"')
        body = json.loads(text.replace('"m1"', f'"m{word}"').replace('"r1"', f'"r{word}"'))
        if "/v1/" in path:
            body["model"] = "scripted/model"
        if right >= Right.TAKE_PART:
            self.mark(talk, word)
        # In a header, since metadata is a text of the sender's, which goes along where the message goes.
        named = body.pop("metadata", {}).get("conversation")
        head = {"headers": {"x-dragoman-conversation": named}} if named else {}
        answer = await self.ask(user, f"POST {path}", body, may=[talk.id], **head)
        refused = 403 if right else 404 if "/v1/" in path else 200
        good = answer.status in (200, 409) if right >= Right.TAKE_PART else answer.status == refused
        assert good, (self.seed, user, path, right, answer)
        await self.settle(talk)
        if right < Right.TAKE_PART and refused == 200:
            await self.find_begun(user, word)
            self.begun.add((user, talk.id))

    async def find_begun(self, user: str, word: str) -> None:
        """Mark the new conversation of the user: a client ID hidden from the user names one there."""
        found = (await self.good(user, f"GET /api/conversations?search={word}", may=[word]))["items"]
        assert len(found) == 1, (self.seed, user, word, found)
        id = found[0]["id"]
        talk = next((one for one in self.talks if one.id == id), None) or self.new(id, user)
        self.mark(talk, word)
        await self.settle(talk)

    async def share(self) -> None:
        if (chosen := self.pick(Right.OWN)) is not None:
            owner, talk = chosen
            other, role = self.other(owner), self.random.choice([*ROLES])
            path = f"PUT /api/conversations/{talk.id}/members/{other}"
            talk.members[other] = max(ROLES[role], talk.right(other))  # streams open at this moment
            self.widen()
            assert (await self.ask(owner, path, {"role": role})).status == 200
            talk.members[other] = ROLES[role]
            await self.settle(talk)

    async def invite(self) -> None:
        if (chosen := self.pick(Right.OWN)) is not None:
            owner, talk = chosen
            role = self.random.choice([*ROLES])
            path = f"POST /api/conversations/{talk.id}/invitations"
            made = await self.good(owner, path, {"role": role, "seconds": self.random.choice((None, 600))})
            self.mark_share(talk, made["share"]["id"])
            talk.invitations[made["token"]] = (role, made["share"]["expires"])

    async def accept(self) -> None:
        """By anybody who has got the token."""
        invited = [talk for talk in self.talks if talk.invitations and not talk.gone]
        if not invited:
            return
        talk = self.random.choice(invited)
        token = self.random.choice([*talk.invitations])
        (role, _), user = talk.invitations[token], self.random.choice(self.people)
        before, gets = talk.right(user), next(ROLES[one] for one in ROLES if one == role)
        if before < gets:
            talk.members[user] = gets
            del talk.invitations[token]
            self.dead.append(token)
        self.widen()
        self.touched.add(talk)
        answer = await self.ask(user, "POST /api/invitations/accept", {"token": token})
        assert (answer.status, answer.body["id"]) == (200, talk.id), (self.seed, answer)

    async def replay(self) -> None:
        """Try an invitation or a link that is used, revoked or expired, or whose author lost the
        conversation."""
        for token in self.random.sample(self.dead, min(1, len(self.dead))):
            user = self.random.choice(self.people)
            answer = await self.ask(user, "POST /api/invitations/accept", {"token": token})
            assert answer.status in (404, 429), (self.seed, user, answer)
            for path in ("", "/events"):
                answer = await self.ask(None, f"GET /api/shared/{token}{path}")
                assert answer.status in (404, 429), (self.seed, answer)
            self.seen["replayed"] += 1

    def shared(self) -> list[Talk]:
        return [talk for talk in self.talks if talk.members and not talk.gone]

    async def remove(self) -> None:
        shared = self.shared()
        if shared:
            talk = self.random.choice(shared)
            await self.put_out(talk, self.random.choice([*talk.members]))
            await self.settle(talk)

    async def put_out(self, talk: Talk, user: str) -> None:
        by = self.random.choice([one for one in (user, talk.owner) if one in self.people])
        assert (await self.ask(by, f"DELETE /api/conversations/{talk.id}/members/{user}")).status == 204
        del talk.members[user]
        self.close(lambda one: one.user == user and one.talk is talk)

    async def race(self) -> None:
        """Remove a member while that member reads, sends, answers and opens streams."""
        shared = self.shared()
        if not shared:
            return
        talk = self.random.choice(shared)
        user, word = self.random.choice([*talk.members]), self.word()
        self.mark(talk, word)
        routes: list[tuple[str, Any]] = [
            (f"POST /api/conversations/{talk.id}/turns", {"text": f"wipe {word}", "queue": True}),
            (f"GET /api/conversations/{talk.id}/tree", None),
            (f"GET /api/conversations/{talk.id}/export", None),
        ]
        opened = [self.hear(user, talk) for _ in range(2)]
        asked = [self.ask(user, *route) for route in self.random.sample(routes, 2)]
        removed = self.put_out(talk, user)
        work: list[Awaitable[Any]] = [*opened, *asked, removed]
        self.random.shuffle(work)
        await asyncio.gather(*work)
        await self.learn(talk)
        for listener in self.listeners:
            if listener.user == user and listener.talk in (talk, None):
                listener.may |= talk.marks  # messages that the member sent at that moment
        self.close(lambda one: one.user == user and one.talk is talk)
        await self.settle(talk)
        if (reader := self.reader(talk)) is not None:
            now = await self.good(reader, f"GET /api/conversations/{talk.id}/tree")
            running = {one["id"] for one in now["turns"]}
            theirs = [one for one in now["messages"] if one["by"] == user and one["turn"] in running]
            assert not theirs + [one for one in now["queued"] if one["message"]["by"] == user], self.seed

    async def transfer(self) -> None:
        shared = [talk for talk in self.shared() if talk.owner in self.people]
        if shared:
            talk = self.random.choice(shared)
            user, old = self.random.choice([*talk.members]), talk.owner
            await self.good(old, f"POST /api/conversations/{talk.id}/transfer", {"user": user})
            del talk.members[user]
            talk.members[old], talk.owner = Right.TAKE_PART, user
            self.lose_shares(talk)
            self.widen()

    def lose_shares(self, talk: Talk) -> None:
        self.dead += [*talk.links, *talk.invitations]
        talk.links, talk.invitations = {}, {}

    async def fork(self) -> None:
        if (chosen := self.pick(Right.READ)) is not None and (messages := chosen[1].of("message")):
            user, talk = chosen
            body = {"message": self.random.choice(messages)}
            answer = await self.ask(user, f"POST /api/conversations/{talk.id}/fork", body)
            if answer.status == 201:
                await self.learn(self.new(answer.body["id"], user))

    async def carry(self) -> None:
        """Export it, and import it: also without the files, with names of others, and as another user."""
        if (chosen := self.pick(Right.READ)) is None:
            return
        user, talk = chosen
        data = await self.good(user, f"GET /api/conversations/{talk.id}/export")
        to = self.random.choice(self.people)
        whole = self.random.random() < 0.5
        if not whole:
            data["blobs"] = {}
        marks = {mark for mark in marks_in(json.dumps(data).encode()) if mark.startswith("w")}
        text = json.dumps(data).replace(f'"{user}"', f'"{self.random.choice(self.people)}"')
        made = await self.good(to, "POST /api/import", json.loads(text))
        copy = self.new(made["id"], to)
        self.mark(copy, *marks, *(talk.blobs if whole else ()))
        await self.learn(copy)

    async def link(self) -> None:
        if (chosen := self.pick(Right.OWN)) is not None:
            owner, talk = chosen
            body = {"frozen": self.random.random() < 0.5, "seconds": self.random.choice((None, 600))}
            made = await self.good(owner, f"POST /api/conversations/{talk.id}/links", body)
            id, expires = made["share"]["id"], made["share"]["expires"]
            self.mark_share(talk, id)
            talk.links[made["token"]] = (id, expires, {*talk.words} if body["frozen"] else None)

    async def revoke(self) -> None:
        linked = [talk for talk in self.talks if talk.links and not talk.gone]
        if linked:
            talk = self.random.choice(linked)
            token = self.random.choice([*talk.links])
            share, *_ = talk.links.pop(token)
            await self.ask(talk.owner, f"DELETE /api/conversations/{talk.id}/shares/{share}")
            self.dead.append(token)

    async def wait(self) -> None:
        """Some links and invitations expire."""
        self.scene.later[0] += 601
        now = self.site.runtime.services.clock()
        for talk in self.talks:
            for tokens in (talk.links, talk.invitations):
                for token in [one for one in tokens if tokens[one][1] <= now]:
                    del tokens[token]
                    self.dead.append(token)

    async def delete(self) -> None:
        owned = [talk for talk in self.talks if not talk.gone and talk.owner in self.people]
        if len(owned) > 2:
            talk = self.random.choice(owned)
            assert (await self.ask(talk.owner, f"DELETE /api/conversations/{talk.id}")).status == 204
            talk.gone = True
            self.lose_shares(talk)
            self.close(lambda one: one.talk is talk)

    async def remove_person(self) -> None:
        """From the server: with their sign-ins, streams, memberships, links and invitations."""
        if len(self.people) <= 2 or self.random.random() < 0.7:
            return
        user = self.random.choice(self.people)
        await self.site.runtime.remove_person(user)
        self.people.remove(user)
        for talk in self.talks:
            talk.members.pop(user, None)
            if talk.owner == user:
                self.lose_shares(talk)
        self.close(lambda one: one.user == user)
        for path in ("/api/conversations", "/api/questions", f"/api/conversations/{self.talks[0].id}"):
            assert (await self.ask(user, f"GET {path}")).status == 401
        for talk in self.talks:
            await self.settle(talk)

    async def listen(self) -> None:
        if (chosen := self.pick(Right.READ)) is not None and len(self.listeners) < 8:
            user, talk = chosen
            await self.hear(user, None if self.random.random() < 0.3 else talk)

    async def hear(self, user: str, talk: Talk | None) -> None:
        """Open a stream, which stays open."""
        paths = ["/api/events"]
        if talk is not None:
            paths = [f"/api/conversations/{talk.id}/events", f"/api/events?conversation={talk.id}"]
        listener = Listener(user, talk, self.visible(user))
        begun = asyncio.Event()
        listener.task = asyncio.create_task(self._hear(listener, self.random.choice(paths), begun))
        self.listeners.append(listener)
        await begun.wait()

    async def _hear(self, listener: Listener, path: str, begun: asyncio.Event) -> None:
        headers = {"authorization": f"Bearer key of {listener.user}"}
        async with self.site.http.get(self.site.url + path, headers=headers) as response:
            assert response.status in (200, 404)
            if listener.talk is None or response.status == 404:
                begun.set()
            with suppress(aiohttp.ClientError):
                async for chunk in response.content.iter_any():
                    listener.heard += chunk
                    if b"event: snapshot" in listener.heard:
                        begun.set()
        begun.set()

    def close(self, which: Callable[[Listener], bool]) -> None:
        for listener in self.listeners:
            if which(listener):
                listener.open = False


def marks_in(told: bytes) -> set[str]:
    return {mark.decode() for mark in MARK.findall(told)}


def as_bytes(data: object) -> bytes:
    return data if isinstance(data, bytes) else b""
