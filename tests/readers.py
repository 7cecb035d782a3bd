"""Simulate a client that reads a conversation at one node after another, and records what it receives."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dragoman.messages.message import Message
from dragoman.turn.live.event_log import owner_of
from tests.people import GONE

if TYPE_CHECKING:
    from tests.chaos import Chaos


@dataclass
class Reader:
    """A reader that can start at any moment. Its state is a snapshot and the events after it."""

    chaos: Chaos
    conversation: str
    moves: bool  # to another node every few seconds, also if nothing is wrong
    wrong: list[str] = field(default_factory=list)
    starts: Counter[str] = field(default_factory=Counter)  # how a connection began: "snapshot" or "cursor"
    ended: set[str] = field(default_factory=set)
    cursor: str = ""
    _texts: dict[str, str] = field(default_factory=dict)  # by message
    _calls: dict[str, str] = field(default_factory=dict)  # the state of each
    _replies: dict[str, str] = field(default_factory=dict)  # by turn: the message that arrives
    _numbers: dict[str, int] = field(default_factory=dict)  # by turn: the last

    async def read(self, enough: Callable[[], bool]) -> None:
        """Until it has heard enough."""
        while not enough() and any(web.is_read for web in self.chaos.webs):
            web = self.chaos.random.choice(self.chaos.webs)
            pause = 0.5 + 4 * self.chaos.random.random() if self.moves else None
            with suppress(*GONE):
                assert web.http is not None
                path = f"/api/conversations/{self.conversation}/events"
                headers = {"last-event-id": self.cursor} if self.cursor else {}
                async with asyncio.timeout(pause), web.http.get(path, headers=headers) as stream:
                    if stream.status == 200 and web.is_read:
                        await self._take(stream.content, enough)
            await asyncio.sleep(0.05)

    async def _take(self, lines: Any, enough: Callable[[], bool]) -> None:
        frame: dict[str, str] = {}
        began = False
        async for line in lines:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name:
                frame[name] = value
                continue
            if "data" in frame:
                if not began and "id" in frame:
                    self.starts["snapshot" if frame["event"] == "snapshot" else "cursor"] += 1
                    began = True
                self._hear(frame["event"], json.loads(frame["data"]))
                self.cursor = frame.get("id", self.cursor)  # the farewell of a server that stops has none
            frame = {}
            if enough():
                return

    def _hear(self, kind: str, data: dict[str, Any]) -> None:
        if kind == "snapshot":
            self._begin(data)
            return
        turn, number = data.get("turn", ""), data.get("seq", 0)
        if number:
            self._count(turn, number, kind)
        match kind:
            case "step.start":
                self._replies[turn] = data["message"]
                self._texts[data["message"]] = ""
            case "text.delta" if turn not in self._replies:
                self.wrong.append(f"{turn}: text {number} belongs to no message")
            case "text.delta":
                self._texts[self._replies[turn]] += data["text"]
            case "message.added":
                self._texts[data["message"]["id"]] = _text(data["message"])
                self._calls |= _calls([data["message"]])
            case "call.end":
                self._calls[data["call"]] = data["state"]
            case "turn.end":
                self.ended.add(turn)

    def _begin(self, tree: dict[str, Any]) -> None:
        self._texts = {message["id"]: _text(message) for message in tree["messages"]}
        self._calls = _calls(tree["messages"])
        replies = [message for message in tree["messages"] if message["role"] == "assistant"]
        self._replies = {message["turn"]: message["id"] for message in replies}
        self._numbers = {}
        open = {turn["id"] for turn in tree["turns"]}
        self.ended |= {message["turn"] for message in tree["messages"] if message["turn"]} - open

    def _count(self, turn: str, number: int, kind: str) -> None:
        last = self._numbers.get(turn, 0)
        self._numbers[turn] = number
        if number <= last:
            self.wrong.append(f"{turn}: {kind} {number} came after {last}")
        elif last and owner_of(last) == owner_of(number) and number != last + 1:
            self.wrong.append(f"{turn}: {number - last - 1} events are missing before {kind} {number}")

    def differences(self, stored: Sequence[Message]) -> list[str]:
        """Return the differences between the received messages and those stored at the end."""
        wrong = [f"a reader of {self.conversation}: {one}" for one in self.wrong]
        for message in stored:
            if message.turn in self.ended:
                told = self._texts.get(message.id)
                if told != message.text:
                    wrong.append(f"{message.turn}: {message.id} was told as {told!r}, not {message.text!r}")
                for call in message.calls:
                    if self._calls.get(call.id) != call.state:
                        wrong.append(f"{call.id} was told as {self._calls.get(call.id)}, not {call.state}")
        return wrong


def _calls(messages: Sequence[dict[str, Any]]) -> dict[str, str]:
    parts = [part for message in messages for part in message["parts"]]
    return {part["id"]: part["state"] for part in parts if part["type"] == "call"}


def _text(message: dict[str, Any]) -> str:
    return "".join(part.get("text", "") for part in message["parts"] if part["type"] == "text")
