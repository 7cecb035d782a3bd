"""M1: audio that is really synthesized and really transcribed, over the wire."""

from __future__ import annotations

import io
import wave
from pathlib import Path

import pytest

from tests.media.media_server import media_server
from tests.media.runtimes import made, media_runtime
from tests.media.speech_server import NEEDS_SPEECH, SpeechServer
from tests.sweeps import some

pytestmark = [NEEDS_SPEECH, pytest.mark.slow]

LIGHT = "open the door and turn on the light"
WEATHER = "what is the weather"
NUMBERS = "one two three four five"
PHRASES = (LIGHT, WEATHER, NUMBERS, "hello how can i help you")


@pytest.mark.parametrize("said", some([LIGHT, WEATHER, NUMBERS], 3))
async def test_a_sentence_goes_over_the_wire_as_sound_and_comes_back(tmp_path: Path, said: str) -> None:
    """M1, M3: speech and transcription of an OpenAI-shaped server, with a real voice and a real ear."""
    server = SpeechServer(phrases=PHRASES)
    async with media_server(server), media_runtime(tmp_path, server) as runtime:
        turn = await runtime.send(said, model="acme/tts-1", options={"format": "wav"})
        ((sound, data),) = await made(runtime, turn)
        usage = (await turn.result()).usage
        heard = await (await runtime.send([sound], model="acme/gpt-4o-transcribe")).result()
    assert (sound.media_type, data, sound.name) == ("audio/wav", server.sounds[0], "speech.wav")
    assert _seconds(data) > 1
    assert usage.characters == len(said)
    assert heard.text.strip() == said


def _seconds(data: bytes) -> float:
    with wave.open(io.BytesIO(data)) as sound:
        return float(sound.getnframes() / sound.getframerate())
