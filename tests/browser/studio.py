"""A stage with models that make pictures, listen and speak, and a browser that hears a microphone."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from unittest import mock

from playwright.async_api import expect

from tests.browser.plays import furnish, obey
from tests.browser.stage import Person, Server, free_port
from tests.loopback import Script, loopback
from tests.media.media_server import KEY, MediaServer, media_server, png, wav

MICROPHONE = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")

MODELS = """
[providers.studio]
title = "Studio"
base_url = "{url}"
keys = "STUDIO_API_KEY"

[providers.studio.models]
"gpt-image-1" = {{ unit_prices = {{ image = 0.04 }} }}
"retoucher" = {{ type = "image-edit" }}
"whisper-large-v3" = {{ }}
"tts-1" = {{ unit_prices = {{ million_characters = 15.0 }} }}
"reader" = {{ modalities = ["text"], context = 1000 }}
"viewer" = {{ modalities = ["text", "image"], context = 1000 }}
"""


@asynccontextmanager
async def opened_studio(
    folder: Path, script: Script = obey, media_models: MediaServer | None = None
) -> AsyncIterator[tuple[Server, MediaServer]]:
    async with loopback(script) as talker, media_server(media_models) as media:
        media.picture, media.sound = png(320, 200), wav(1.0)
        config = furnish(folder, talker.url)
        config.write_text(config.read_text("utf-8") + MODELS.format(url=media.url), "utf-8")
        server = Server(config, free_port())
        with mock.patch.dict(os.environ, STUDIO_API_KEY=KEY):  # as the user who starts it would
            await server.start()
        try:
            yield server, media
        finally:
            await server.stop()


async def choose(person: Person, model: str) -> None:
    """In the list of models, by its name."""
    await person.by("model").click()
    await person.by("model-search").fill(model)
    await person.page.locator(f"[data-testid=model-choice][data-model='studio/{model}']").click()
    await expect(person.by("models")).to_have_count(0)
    await expect(person.by("model")).to_contain_text(model)
