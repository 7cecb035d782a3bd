"""Simulate the users of a fleet under attack: users, a model that follows orders, tools that record calls."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp

from dragoman.wire.scripted import Line, calls, says
from tests.fleet import Fleet
from tests.loopback import Body

if TYPE_CHECKING:
    from tests.chaos import Chaos
    from tests.readers import Reader

TOOLS = '''
import os
from dragoman import tool

def note(key: str) -> str:
    file = os.open("EFFECTS", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, (key + "\\n").encode())
    os.close(file)
    return f"{key} noted"

@tool
def mark(key: str) -> str:
    """Note it."""
    return note(key)

@tool
def pay(key: str) -> str:
    """Pay for it."""
    return note(key)

@tool(review="always")
def look(key: str) -> str:
    """Look at it."""
    return note(key)
'''
SETTINGS = 'allow = ["mark", "look"]\nask = ["pay"]'
KINDS = ("plain", "marks", "pays", "looks", "steered", "cancelled")
# the last one: our session is closed
GONE = (aiohttp.ClientError, TimeoutError, ConnectionError, RuntimeError)


def attacked_fleet(folder: Path, store: str, model: str) -> Fleet:
    """Its tools note every effect in one file."""
    effects = folder / "work" / "effects"
    effects.unlink(missing_ok=True)  # left by an earlier run with the same seed, in a folder that was kept
    tools = TOOLS.replace("EFFECTS", str(effects))
    return Fleet(folder, store, model, SETTINGS, tools)


def act(body: Body) -> Line:
    """Play the model: its order is in the last message of the user."""
    said = [message for message in body["messages"] if message["role"] == "user"]
    kind, _, key = _text(said[-1]).splitlines()[-1].partition(" ")  # two messages can have been merged
    if body["messages"][-1]["role"] != "tool":
        match kind:
            case "marks":
                return sum((calls("mark", key=f"{key}.{n}") for n in range(3)), Line())
            case "pays":
                return calls("pay", key=key)
            case "looks":
                return calls("look", key=key)
    slow = kind in ("steered", "cancelled")
    return says("word " * (60 if slow else 10), waits=0.03 if slow else 0.001)


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    return str(content if isinstance(content, str) else content[0]["text"])


@dataclass
class Person:
    """A user who talks in one conversation, through any web node that answers, and answers its requests."""

    chaos: Chaos
    number: int
    turns: int
    conversation: str = ""
    reader: Reader = field(init=False)  # from the first turn to the last

    async def talk(self) -> None:
        await self.begin()
        for count in range(self.turns):
            kind = self.chaos.random.choice(KINDS)
            await self.say(kind, f"{kind} {self.number}-{count}")

    async def begin(self) -> None:
        self.conversation = (await self.chaos.ask("POST", "/api/conversations", {}))["id"]
        self.reader = self.chaos.reader(self.conversation, moves=True)

    async def say(self, kind: str, text: str) -> None:
        turn = await self._send(text)
        self.chaos.promised[turn] = text
        followers = [asyncio.create_task(self.chaos.follow(turn, web)) for web in self.chaos.webs]
        followers.append(asyncio.create_task(self.reader.read(lambda: turn in self.reader.ended)))
        followers.append(asyncio.create_task(self._come_in_the_middle(turn)))
        if kind == "steered":
            with suppress(Refused):
                await self.chaos.ask("POST", f"/api/turns/{turn}/steer", {"text": f"plain steering {turn}"})
        if kind == "cancelled":
            await asyncio.sleep(self.chaos.random.random())
            with suppress(Refused):
                await self.chaos.ask("POST", f"/api/turns/{turn}/cancel", {})
        while (await self.chaos.ask("GET", f"/api/turns/{turn}"))["live"]:
            await self.answer()
            await asyncio.sleep(0.2)
        await asyncio.gather(*followers)

    async def _come_in_the_middle(self, turn: str) -> None:
        await asyncio.sleep(2 * self.chaos.random.random())
        reader = self.chaos.reader(self.conversation, moves=False)
        await reader.read(lambda: turn in reader.ended)

    async def _send(self, text: str) -> str:
        """Send the text once, although the outcome of an aborted request is unknown."""
        path = f"/api/conversations/{self.conversation}"
        while True:
            for message in (await self.chaos.ask("GET", f"{path}/tree"))["messages"]:
                if message["role"] == "user" and _said(message) == text:
                    return str(message["turn"])
            with suppress(Refused, *GONE):
                return str((await self.chaos.ask("POST", f"{path}/turns", {"text": text}, tries=1))["turn"])
            await asyncio.sleep(0.3)

    async def answer(self) -> None:
        """Allow each call once, and reject an interrupted call that has perhaps run."""
        questions = await self.chaos.ask("GET", f"/api/questions?conversation={self.conversation}")
        for question in questions["items"]:
            first = question.get("because") != "interrupted"
            verdict = ("release" if question["kind"] == "review" else "allow") if first else "reject"
            with suppress(Refused):
                await self.chaos.ask("POST", f"/api/questions/{question['id']}/answer", {"verdict": verdict})


class Refused(Exception):
    """A node refuses the request, for example because the turn is already over."""


def _said(message: dict[str, Any]) -> str:
    return "".join(part.get("text", "") for part in message["parts"] if part["type"] == "text")
