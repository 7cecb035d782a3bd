"""Run one turn over real HTTP with a provider of each wire, and return what it showed, stored and sent."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragoman import ProviderError, Runtime, tool
from dragoman.messages.events import Event, TurnEnd
from dragoman.messages.message import Message
from dragoman.providers.catalog import Provider, load_catalog
from dragoman.providers.catalog_tables import TraitsTable
from dragoman.providers.models import Models
from dragoman.providers.sign_in import Keys
from dragoman.wire.http_client.client import HttpClient, Retry
from tests.loopback import Loopback, Script, loopback
from tests.patience import PATIENCE
from tests.runtimes import with_tables

CHAT, RESPONSES, MESSAGES, GEMINI = "openai_chat", "openai_responses", "anthropic_messages", "gemini"
CONVERSE = "bedrock_converse"
SERVER_TOOLS: dict[str, Any] = {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}


@dataclass
class Ended:
    """A turn that is over, and the one after it."""

    server: Loopback
    events: list[Event] = field(default_factory=list)
    stored: list[Message] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)
    error: ProviderError | None = None

    @property
    def end(self) -> TurnEnd:
        (end,) = (event for event in self.events if isinstance(event, TurnEnd))
        return end

    def notices(self, kind: str) -> list[str]:
        return [event.text for event in self.events if event.type == "notice" and event.kind == kind]


async def play(
    folder: Path, wire: str, *script: Script, said: str = "What is 1 + 2?", **settings: Any
) -> Ended:
    """A turn with these replies."""
    async with loopback(*script) as server:
        ended = Ended(server)

        @tool
        def add(a: int, b: int) -> int:
            """Add two numbers."""
            ended.ran.append(f"{a} + {b}")
            return a + b

        known: TraitsTable = {"spills": "none", "reasoning": "apart"}
        if wire == MESSAGES:
            known["extra"] = SERVER_TOOLS
        provider = Provider("acme", "Acme", server.url, wire=wire, defaults=known)
        models = Models(
            "acme/model",
            catalog=load_catalog().with_provider(provider),
            keys=Keys({"acme": "sk-acme-0123456789"}, use_keyring=False),
            client=HttpClient(retry=Retry(attempts=1)),
        )
        runtime = Runtime(with_tables(folder / "chat.db"), model=models, tools=[add], allow=["*"], **settings)
        async with asyncio.timeout(PATIENCE), models, runtime:
            conversation = await runtime.conversation()
            turn = await conversation.send(said)
            ended.events += [event async for event in turn.events()]
            try:
                assert (await turn.result()).finish == ended.end.finish
            except ProviderError as error:
                ended.error = error
            ended.stored = await conversation.messages()
        return ended
