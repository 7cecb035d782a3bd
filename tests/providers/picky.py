"""A conversation with a provider that refuses what it does not like."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragoman import Runtime
from dragoman.messages.events import Event
from dragoman.messages.message import File
from dragoman.providers.catalog import Provider, load_catalog
from dragoman.providers.catalog_tables import TraitsTable
from dragoman.providers.models import Models
from dragoman.providers.sign_in import Keys
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.wire.endpoint import Quirks
from dragoman.wire.http_client.client import HttpClient, Retry
from tests.loopback import (
    Answer,
    Body,
    Loopback,
    Reply,
    Script,
    loopback,
)
from tests.patience import PATIENCE
from tests.wire.endings.replies import ANSWERS

CHAT, RESPONSES, MESSAGES, GEMINI = "openai_chat", "openai_responses", "anthropic_messages", "gemini"
PNG = b"\x89PNG\r\n\x1a\n"


@dataclass
class Talk:
    """A conversation with a provider that is picky."""

    server: Loopback
    runtime: Runtime
    events: list[Event] = field(default_factory=list)

    async def say(self, said: Any = "Hi", **options: Any) -> str:
        turn: TurnHandle = await self.runtime.send(said, **options)
        self.events += [event async for event in turn.events()]
        return (await turn.result()).text

    async def picture(self, type: str = "image/png", data: bytes = PNG, name: str = "cat.png") -> File:
        return File(type, blob=await self.runtime.store.put_blob(data), name=name, size=len(data))

    @property
    def learned(self) -> list[str]:
        return [event.text for event in self.events if event.type == "notice" and event.kind == "learned"]


class Picky:
    """Refuses a body as long as it has a refused field, and then answers."""

    def __init__(self, refuses: Callable[[Body], bool], reply: Reply, *, wire: str = CHAT) -> None:
        self.refuses, self.reply, self.wire = refuses, reply, wire

    def __call__(self, body: Body) -> Reply:
        return self.reply if self.refuses(body) else ANSWERS[self.wire]("Hello.")


def says_no(message: str, status: int = 400, **more: Any) -> Answer:
    return Answer(status, {"error": {"message": message, "type": "invalid_request_error", **more}})


async def talk(
    folder: Path,
    *script: Script,
    then: Callable[[Talk], Any],
    wire: str = CHAT,
    known: TraitsTable | None = None,
    quirks: dict[str, Any] | None = None,
    **settings: Any,
) -> Talk:
    async with loopback(*script) as server:
        known = known or {"spills": "none", "reasoning": "apart"}
        provider = Provider(
            "acme", "Acme", server.url, wire=wire, defaults=known, quirks=Quirks(**quirks or {})
        )
        models = Models(
            "acme/model",
            catalog=load_catalog().with_provider(provider),
            keys=Keys({"acme": "sk-acme-0123456789"}, use_keyring=False),
            client=HttpClient(retry=Retry(attempts=2, first_wait=0.01)),
        )
        runtime = Runtime(folder / "chat.db", model=models, allow=["*"], **settings)
        async with asyncio.timeout(PATIENCE), models, runtime:
            talked = Talk(server, runtime)
            await then(talked)
        return talked
