"""Run one turn over real HTTP with a faulty provider, and return the calls, events and bodies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragoman import ProviderError, Runtime, tool
from dragoman.messages.events import Event, ReasoningDelta, TextDelta
from dragoman.messages.fold import fold
from dragoman.messages.message import Message, ToolCall
from dragoman.messages.questions import allow_once
from dragoman.providers.catalog import Provider, load_catalog
from dragoman.providers.models import Models
from dragoman.providers.sign_in import Keys
from dragoman.tools.tool import Tool
from dragoman.wire.http_client.client import HttpClient, Retry, Timeouts
from dragoman.wire.scripted import says
from tests.loopback import (
    Loopback,
    Script,
    Stream,
    call_piece,
    delta,
    loopback,
    stream,
)
from tests.patience import PATIENCE
from tests.runtimes import calls_of, with_tables

ANSWER = says("It is 3.")
MARKUP = ("<think", "</think", "tool_call", "tool_code", "<|", '"arguments"')


@dataclass
class Played:
    """A finished turn: its events, its calls, and the requests to the model."""

    server: Loopback
    ran: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    stored: list[Message] = field(default_factory=list)
    state: str = ""
    text: str = ""
    error: Exception | None = None

    @property
    def shown(self) -> str:
        """Everything a person saw as text while it streamed."""
        return "".join(event.text for event in self.events if isinstance(event, TextDelta))

    @property
    def thought(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, ReasoningDelta))

    def notices(self, kind: str) -> list[str]:
        return [event.text for event in self.events if event.type == "notice" and event.kind == kind]

    @property
    def calls(self) -> list[ToolCall]:
        return calls_of(self.messages)

    @property
    def explained(self) -> list[str]:
        """Return the results that the model received, in the last request that has any."""
        return [message["content"] for message in self.server.messages() if message["role"] == "tool"]


def tools(ran: list[tuple[str, dict[str, Any]]]) -> list[Tool]:
    """Return tools that record their arguments."""

    @tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        ran.append(("add", {"a": a, "b": b}))
        return a + b

    @tool
    def ping() -> str:
        """Say pong."""
        ran.append(("ping", {}))
        return "pong"

    return [add, ping]


async def play(
    folder: Path,
    *script: Script,
    provider: Callable[[str], Provider] = lambda url: Provider("acme", "Acme", url),
    model: str = "acme/model",
    dialect: str = "auto",
    answer: Any = None,
    **settings: Any,
) -> Played:
    stalls = any(isinstance(reply, Stream) and reply.then == "stalls" for reply in script)
    async with loopback(*script) as server:
        played = Played(server)
        models = Models(
            model,
            catalog=load_catalog().with_provider(provider(server.url)),
            keys=Keys({"acme": "sk-acme-0123456789"}, use_keyring=False),
            client=HttpClient(
                timeouts=Timeouts(PATIENCE, between_chunks=2 if stalls else PATIENCE, after_done=0.05),
                retry=Retry(attempts=2, first_wait=0.01),
            ),
            dialect=dialect,
        )
        runtime = Runtime(
            with_tables(folder / "chat.db"), model=models, tools=tools(played.ran), allow=["*"], **settings
        )
        async with asyncio.timeout(PATIENCE), models, runtime:
            chat = await runtime.conversation()
            turn = await chat.send("What is 1 + 2?")
            async for event in turn.events():
                played.events.append(event)
                if event.type == "call.asked":
                    await turn.answer(event.question, answer or allow_once())
                if event.type == "turn.end":
                    played.state, played.text = event.state, event.text
            try:
                result = await turn.result()
            except ProviderError as error:
                played.error = error
                played.stored = await chat.messages()
            else:
                played.messages = list(result.messages)
                assert not any(mark in played.text for mark in MARKUP)
                assert [message.text for message in fold(played.events)] == [
                    message.text
                    for message in result.messages
                    if message.role == "assistant" and message.parts
                ]
        return played


WHOLE = '{"a": 1, "b": 2}'


def one_call(name: str | None = "add", arguments: Any = WHOLE, **sent: Any) -> Stream:
    return stream(call_piece(name, arguments, **sent), finish="tool_calls")


def text(*pieces: str) -> Stream:
    return stream(*(delta(content=piece) for piece in pieces))


WRITTEN = 'Let me see.\n<tool_code>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_code>'
