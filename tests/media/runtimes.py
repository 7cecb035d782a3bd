"""A runtime whose models are at the media server, as `dragoman.toml` would name them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dragoman import Runtime
from dragoman.messages.events import Event
from dragoman.messages.message import File
from dragoman.providers.catalog import Provider, load_catalog
from dragoman.providers.models import Models
from dragoman.providers.sign_in import Keys
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.wire.endpoint import Quirks
from dragoman.wire.http_client.client import HttpClient, Retry
from tests.media.media_server import KEY, MediaServer


def models_of(server: MediaServer, **quirks: Any) -> Models:
    """All that the server has, and no other."""
    tables: Any = {
        "gpt-image-1": {},
        "dall-e-3": {"unit_prices": {"image": 0.04}},
        "retoucher": {"type": "image-edit"},
        "whisper-large-v3": {"unit_prices": {"minute": 0.006}},
        "gpt-4o-transcribe": {},
        "tts-1": {"unit_prices": {"million_characters": 15.0}},
        "talker": {"modalities": ["text"], "context": 1000},
    }
    provider = Provider(
        "acme", "Acme", server.url, models=tables, own=tables, extra=(), quirks=Quirks(**quirks)
    )
    catalog = load_catalog().with_provider(provider)
    return Models(
        "acme/gpt-image-1",
        catalog=catalog,
        keys=Keys({"acme": KEY}, use_keyring=False, environment={}),
        client=HttpClient(retry=Retry(attempts=2, first_wait=0.01)),
    )


@asynccontextmanager
async def media_runtime(folder: Path, server: MediaServer, **settings: Any) -> AsyncIterator[Runtime]:
    quirks = settings.pop("quirks", {})
    async with (
        models_of(server, **quirks) as models,
        Runtime(folder / "chat.db", model=models, **settings) as runtime,
    ):
        yield runtime


async def put(runtime: Runtime, data: bytes, type: str, name: str) -> File:
    return File(type, blob=await runtime.store.put_blob(data), name=name, size=len(data))


async def events_of(turn: TurnHandle[Any]) -> list[Event]:
    return [event async for event in turn.events()]


async def made(runtime: Runtime, turn: TurnHandle[Any]) -> list[tuple[File, bytes]]:
    """The files of the answer, with their bytes."""
    found = []
    for message in (await turn.result()).messages:
        if message.role == "assistant":
            found += [(file, await runtime.store.blob(file.blob or "")) for file in message.files]
    return found
