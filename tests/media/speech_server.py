"""A media server that really speaks and listens: eSpeak NG and PocketSphinx behind OpenAI's Audio."""

from __future__ import annotations

import asyncio
import base64
import sys
from asyncio.subprocess import PIPE
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from pydantic_core import from_json, to_json

from tests.media.media_server import MediaServer, Upload

HAS_SPEECH = find_spec("espeakng_loader") is not None and find_spec("pocketsphinx") is not None
NEEDS_SPEECH = pytest.mark.skipif(not HAS_SPEECH, reason="eSpeak NG or PocketSphinx is not installed")


async def ask_child(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The frames with which the program answers."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, Path(__file__).with_name("speech_child.py"), stdin=PIPE, stdout=PIPE
    )
    out, _ = await process.communicate(to_json(body))
    return [from_json(line) for line in out.splitlines()]


async def speak(text: str, *, voice: str = "en-us", speed: float = 0.85) -> bytes:
    """A text as a WAV file."""
    frames = await ask_child({"input": text, "voice": voice, "speed": speed})
    return b"".join(base64.b64decode(frame["sound"]) for frame in frames)


async def hear(sound: bytes, *phrases: str) -> str:
    """Return which of the phrases are spoken in the audio."""
    file = {"base64": base64.b64encode(sound).decode()}
    frames = await ask_child({"file": file, "prompt": "\n".join(phrases)})
    return str(frames[-1]["text"])


@dataclass
class SpeechServer(MediaServer):
    """Listens for the phrases it knows, and says anything."""

    phrases: tuple[str, ...] = ()
    sounds: list[bytes] = field(default_factory=list)  # that it made

    async def transcript(self, request: web.Request) -> web.StreamResponse:
        file = self.fields["file"]
        assert isinstance(file, Upload)
        self.heard = await hear(file.data, *self.phrases)
        return await super().transcript(request)

    async def speech(self, request: web.Request) -> web.StreamResponse:
        self.sound = await speak(self.fields["input"])
        self.sounds.append(self.sound)
        return await super().speech(request)
