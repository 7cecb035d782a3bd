"""People share conversations at one server, step after step, and a small model says who may see what.

Everything that a conversation holds has a mark: a word, an id or the hash of a file. Each byte that a user
gets is searched for marks, and each mark has to be of something that this user may read.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import aiohttp

from dragoman import tool
from dragoman.conversation.sharing import ROLES, Right
from dragoman.messages.request import Request
from dragoman.server.auth import key_hash
from dragoman.wire.scripted import Line, calls, says
from tests.patience import PATIENCE
from tests.server.site import Answer, Site, served
from tests.server.test_sharing import BODIES, BY_BODY, OTHERS, RIGHTS

MARK = re.compile(
    rb"(?<![0-9a-z_])(?:w[0-9]+z|(?:conv|msg|turn|call|ask|share|resp|file|grant)_[0-9a-z]{16}|[0-9a-f]{64})"
)
KINDS = {"message": "msg", "turn": "turn", "call": "call", "question": "ask"}
ROUTES = [route for route in RIGHTS if "ai-sdk" not in route]
CHATS = [route for route in RIGHTS if "ai-sdk" in route]  # a client names these itself: they are not missing

# What a user sees without naming anything: all of it stays as it is, whatever others do among themselves.
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
# Other routes: they make something of the user's own, and a step below does so; or they name nothing.
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


@tool(permission="wipe")
def wipe(disk: str) -> str:
    """Wipe a disk."""
    return f"wiped {disk}"


@tool
def look(at: str) -> str:
    """Look at something."""
    return f"{at} is fine"


def play(request: Request) -> Line:
    """Repeats the word of what was said last, in an answer or in a call."""
    last = request.messages[-1]
    said = next((one for one in reversed(request.messages) if one.role == "user"), last)
    word = "".join(re.findall(r"w[0-9]+z", said.text)[-1:]) or "nothing"
    done = last.role != "user" or any(call.result is not None for call in last.calls)
    if done or not re.match("wipe|look", said.text):
        return says(f"answer to {word}")
    return calls("wipe", disk=word) if "wipe" in said.text else calls("look", at=word)


@dataclass
class Scene:
    """A server on which one sequence is played after another."""

    site: Site
    later: list[float]  # seconds that its clock is ahead
    seen: Counter[str] = field(default_factory=Counter)  # what was tried, and how often
    marks: set[str] = field(default_factory=set)  # of the sequences before


@dataclass(eq=False)
class Talk:
    """What the model of the test knows of a conversation."""

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
    """One sequence of steps. Each is followed by what everybody may see, and may not."""

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
        self.dead: list[str] = []  # tokens that are worth nothing any more
        self.removed: list[str] = []
        self.seen = scene.seen
        self.count = seed * 1000

    # ── requests, and what comes back ─────────────────────────────────────────────────────────────

    async def ask(
        self, user: str | None, route: str, body: Any = None, *, may: Iterable[str] = (), **more: Any
    ) -> Answer:
        """As this user, or as anyone. Whatever the answer is, it has no mark that the user may not see."""
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
        """What is of no conversation: a rule, a prompt, a file."""
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
        """There, the name of what is not theirs is a name of their own, for a conversation of theirs."""
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
        before = talk.right(user)
        if before < ROLES[role]:
            talk.members[user] = ROLES[role]
            del talk.invitations[token]
            self.dead.append(token)
        self.widen()
        self.touched.add(talk)
        answer = await self.ask(user, "POST /api/invitations/accept", {"token": token})
        assert (answer.status, answer.body["id"]) == (200, talk.id), (self.seed, answer)

    async def replay(self) -> None:
        """An invitation or a link that is used, revoked, over, or whose maker lost the conversation."""
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
        """A member is removed at the moment in which they read, send, ask and open streams."""
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
                listener.may |= talk.marks  # what they sent at that moment
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

    # ── what they see ─────────────────────────────────────────────────────────────────────────────

    async def look_around(self, user: str) -> None:
        """The lists have all that is shared with them, and nothing else; a search finds it, or does not."""
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
        for route in self.random.sample(ROUTES + CHATS, 3):
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
                if answer.status != 403:  # what was begun and stopped is nowhere, for the owner, too
                    owner = self.reader(talk) or ""
                    said = await self.ask(owner, *filled(route, body, names))
                    assert answer.status == said.status == 404, (self.seed, user, route, answer, said)
            elif route.startswith("GET") and not re.search("events|/stream|sound", route):
                self.seen[f"within {route}"] += 1
                answer = await self.ask(user, *filled(route, body, names))
                assert answer.status != 403, (self.seed, user, route, answer)

    async def strange(self, user: str) -> None:
        """A request of their own that names what is not."""
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
        """What is not theirs is answered as what was never there: status, body and headers."""
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
        """What others do in conversations that a user does not see changes nothing that the user gets."""
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
        """What a user gets without naming anything."""
        return [blank(await self.ask(user, f"GET {path}{QUERIES.get(path, '')}"), {}) for path in LISTS]

    async def play(self, steps: int) -> None:
        acts = [self.begin, self.say, self.say, self.say, self.share, self.share, self.invite, self.accept]
        acts += [self.remove, self.race, self.transfer, self.fork, self.carry, self.link, self.revoke]
        acts += [self.answer, self.answer, self.change, self.change, self.keep, self.by_protocol, self.wait]
        acts += [self.replay, self.delete, self.listen, self.listen, self.remove_person]
        for act in (self.begin, self.begin, self.share, self.share, self.invite, self.link):
            await act()
        for _ in range(steps):
            await self.step(self.random.choice(acts))
            if self.random.random() < 0.7:
                await self.look_around(self.random.choice(self.people))
        await self.end()
        self.scene.marks.update(self.where, *self.own.values())

    async def end(self) -> None:
        """Those that were removed have heard nothing since; the streams of the others are open."""
        for talk in self.talks:
            await self.settle(talk)
        for listener in self.listeners:
            assert listener.task is not None
            if not listener.open:
                async with asyncio.timeout(5):
                    await listener.task
            else:
                assert not listener.task.done(), (self.seed, listener.user)
                listener.task.cancel()
            may = listener.may | self.knew.get(listener.user, set())  # that it is gone is told afterwards
            self.check_marks(listener.user, bytes(listener.heard), may, "a stream")


def marks_in(told: bytes) -> set[str]:
    return {mark.decode() for mark in MARK.findall(told)}


def as_bytes(data: object) -> bytes:
    return data if isinstance(data, bytes) else b""


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
    """What came back, without the names that were sent and what is different each time."""
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
    world = World(scene, seed)
    for name in world.people:
        await scene.site.runtime.store.add_person(name, key_hash(f"key of {name}"), 1.0)
    async with asyncio.timeout(PATIENCE):
        await world.play(steps)
