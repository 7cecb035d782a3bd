"""M1: sound that is really spoken and really heard, by programs on this machine and over the wire."""

from __future__ import annotations

import io
import os
import signal
import wave
from array import array
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman import BadRequest, ProviderError, Runtime
from dragoman.messages.parts import Text
from dragoman.providers.catalog import load_catalog
from dragoman.providers.keys import Keys
from dragoman.providers.local.speech_child import resample
from dragoman.providers.models import Models
from tests.media.media_server import media_server, wav
from tests.media.runtimes import made, media_runtime, put
from tests.media.speech_server import NEEDS_SPEECH, SpeechServer, hear, speak
from tests.patience import eventually
from tests.sweeps import some

pytestmark = [NEEDS_SPEECH, pytest.mark.slow]

LIGHT = "open the door and turn on the light"
WEATHER = "what is the weather"
NUMBERS = "one two three four five"
PHRASES = (LIGHT, WEATHER, NUMBERS, "hello how can i help you")
NO_KEYS = Keys(environment={}, use_keyring=False)


@asynccontextmanager
async def local_runtime(folder: Path) -> AsyncIterator[Runtime]:
    async with (
        Models("local/espeak", catalog=load_catalog(), keys=NO_KEYS) as models,
        Runtime(folder / "chat.db", model=models) as runtime,
    ):
        yield runtime


@pytest.mark.parametrize("said", some([LIGHT, WEATHER, NUMBERS], 3))
async def test_what_is_spoken_on_this_machine_is_heard_on_this_machine(tmp_path: Path, said: str) -> None:
    """M1, M3: words to sound, and the sound back to words, which cost nothing."""
    async with local_runtime(tmp_path) as runtime:
        turn = await runtime.send(said, model="local/espeak", options={"speed": 0.85})
        ((sound, data),) = await made(runtime, turn)
        usage = (await turn.result()).usage
        words = Text("\n".join(PHRASES).title())
        heard = await (await runtime.send([words, sound], model="local/pocketsphinx")).result()
    assert (sound.media_type, data[:4], sound.name) == ("audio/wav", b"RIFF", "speech.wav")
    assert (usage.characters, usage.cost) == (len(said), 0)
    assert heard.text == said
    transcript: Any = heard.messages[-1].metadata["transcript"]
    assert transcript["language"] == "english"
    assert transcript["duration"] == pytest.approx(_seconds(data), abs=0.05)
    assert [one["text"] for one in transcript["segments"]] == [said]
    assert heard.usage.seconds == transcript["duration"]


@pytest.mark.long
async def test_what_comes_after_a_nul_is_spoken_too(tmp_path: Path) -> None:
    """M1: the program would read no further than that."""
    async with local_runtime(tmp_path) as runtime:
        turns = [
            await runtime.send(text, model="local/espeak") for text in (LIGHT, LIGHT.replace(" ", "\0", 1))
        ]
        (_, whole), (_, other) = [(await made(runtime, turn))[0] for turn in turns]
    assert _seconds(other) == pytest.approx(_seconds(whole), rel=0.1)


@pytest.mark.long
async def test_a_sentence_goes_over_the_wire_as_sound_and_comes_back(tmp_path: Path) -> None:
    """M1: speech and transcription of an OpenAI-shaped server, with a real voice and a real ear."""
    server = SpeechServer(phrases=PHRASES)
    async with media_server(server), media_runtime(tmp_path, server) as runtime:
        turn = await runtime.send(LIGHT, model="acme/tts-1", options={"format": "wav"})
        ((sound, _),) = await made(runtime, turn)
        heard = await (await runtime.send([sound], model="acme/gpt-4o-transcribe")).result()
    assert heard.text.strip() == LIGHT


@pytest.mark.long
async def test_speed_and_voice_are_heard(tmp_path: Path) -> None:
    """M1: options do what they say."""
    chosen: list[dict[str, Any]] = [{}, {"speed": 2.0}, {"voice": "de"}]
    async with local_runtime(tmp_path) as runtime:
        sounds = [
            (await made(runtime, await runtime.send(NUMBERS, options=options)))[0][1] for options in chosen
        ]
    plain, fast, german = sounds
    assert _seconds(fast) < _seconds(plain) * 0.7
    assert german != plain


@pytest.mark.parametrize(
    ("model", "options", "match"),
    [
        ("espeak", {"format": "mp3"}, "the option format"),
        ("espeak", {"instructions": "kindly"}, "has no option 'instructions'"),
        ("espeak", {"speed": 9.0}, "the option speed"),
        ("espeak", {"voice": "../x"}, "the option voice"),
        ("pocketsphinx", {"language": "de"}, "the option language"),
        ("pocketsphinx", {"temperature": 0.5}, "has no option 'temperature'"),
    ],
)
async def test_what_they_cannot_do_is_refused_before_anything_is_stored(
    tmp_path: Path, model: str, options: dict[str, Any], match: str
) -> None:
    """M2 × R3"""
    async with local_runtime(tmp_path) as runtime:
        sound = await put(runtime, wav(), "audio/wav", "memo.wav")
        parts = [Text("x")] if model == "espeak" else [sound]
        with pytest.raises(BadRequest, match=match):
            await runtime.send(parts, model=f"local/{model}", options=options)
        assert await runtime.conversations() == []


async def test_only_wav_is_heard_here(tmp_path: Path) -> None:
    """M2: before anything is stored."""
    async with local_runtime(tmp_path) as runtime:
        sound = await put(runtime, b"\x1aE\xdf\xa3", "audio/webm", "memo.webm")
        with pytest.raises(BadRequest, match="hears WAV files alone"):
            await runtime.send([sound], model="local/pocketsphinx")
        assert await runtime.conversations() == []


@pytest.mark.parametrize(
    ("model", "data", "options", "match"),
    [
        ("espeak", b"", {"voice": "klingonese"}, "has no voice 'klingonese'"),
        ("pocketsphinx", b"RIFF????", {}, "no WAV file"),
        ("pocketsphinx", wav(0.1, rate=4000), {}, "at least 8000 Hz"),
    ],
)
async def test_the_program_says_what_is_wrong(
    tmp_path: Path, model: str, data: bytes, options: dict[str, Any], match: str
) -> None:
    """M1: what only the program itself can know ends the turn with its words."""
    async with local_runtime(tmp_path) as runtime:
        parts = [await put(runtime, data, "audio/wav", "memo.wav")] if data else [Text("Hello.")]
        turn = await runtime.send(parts, model=f"local/{model}", options=options)
        with pytest.raises(ProviderError, match=match):
            await turn.result()


@pytest.mark.long
async def test_nothing_is_spoken_in_silence(tmp_path: Path) -> None:
    """M1: an empty transcript is an answer, too."""
    async with local_runtime(tmp_path) as runtime:
        silence = await put(runtime, wav(1.0), "audio/wav", "silence.wav")
        result = await (await runtime.send([silence], model="local/pocketsphinx")).result()
    assert (result.state, result.text) == ("completed", "")


@pytest.mark.long
async def test_a_cancel_ends_the_program(tmp_path: Path) -> None:
    """T6: nobody waits for the end of a recording that is no longer wanted."""
    async with local_runtime(tmp_path) as runtime:
        long = await put(runtime, await speak(". ".join([LIGHT] * 40)), "audio/wav", "long.wav")
        turn = await runtime.send([long], model="local/pocketsphinx")
        await eventually(_children)
        await turn.cancel()
        result = await turn.result()
        await eventually(lambda: not _children())
    assert result.state == "cancelled"


@pytest.mark.long
async def test_a_program_that_is_killed_is_an_error_and_can_be_asked_again(tmp_path: Path) -> None:
    """M1 × T14: and the second time it answers."""
    async with local_runtime(tmp_path) as runtime:
        chat = await runtime.conversation(model="local/pocketsphinx")
        sound = await put(runtime, await speak(LIGHT), "audio/wav", "memo.wav")
        turn = await chat.send([Text("\n".join(PHRASES)), sound])
        await eventually(_children)
        for child in _children():
            os.kill(child, signal.SIGKILL)
        with pytest.raises(ProviderError, match="ended before its answer"):
            await turn.result()
        messages, _ = await runtime.store.messages(chat.id)
        question = next(one for one in messages if one.role == "user")
        assert (await (await chat.rerun(question.id)).result()).text == LIGHT


def test_what_is_poor_is_used_only_where_somebody_names_it() -> None:
    """M4: no tool speaks with such a voice by itself; a line in the settings has it do so."""
    models = Models(catalog=load_catalog(), keys=NO_KEYS)
    assert (models.of_type("audio-tts"), models.of_type("audio-stt")) == ([], [])


def test_settings_that_name_them_have_them_used(tmp_path: Path) -> None:
    """M4"""
    file = tmp_path / "dragoman.toml"
    file.write_text("[providers.local.models]\nespeak = {}\npocketsphinx = {}\n")
    models = Models(catalog=load_catalog(file), keys=NO_KEYS)
    assert models.types() == {"audio-tts", "audio-stt"}
    assert models("local/espeak").type == "audio-tts"


def test_a_sound_of_another_rate_keeps_its_length_and_its_tones() -> None:
    """M1: 48 kHz, as microphones give it, to the 16 kHz that are heard."""
    slow = array("h", [0, 0, 0, 300, 300, 300] * 100)
    assert resample(slow, 48_000)[:4] == array("h", [0, 300, 0, 300])
    assert len(resample(slow, 22_050)) == int(600 * 16_000 / 22_050)
    assert resample(slow, 16_000) == slow


@pytest.mark.long
async def test_a_microphone_of_another_rate_is_heard() -> None:
    """M1: as a file of two channels, too."""
    spoken = await speak(LIGHT)
    with wave.open(io.BytesIO(spoken)) as sound:
        samples, rate = array("h", sound.readframes(sound.getnframes())), sound.getframerate()
    out = io.BytesIO()
    with wave.open(out, "wb") as stereo:
        stereo.setnchannels(2)
        stereo.setsampwidth(2)
        stereo.setframerate(rate * 2)
        stereo.writeframes(array("h", [one for one in samples for _ in range(4)]).tobytes())
    assert await hear(out.getvalue(), *PHRASES) == LIGHT


def _seconds(data: bytes) -> float:
    with wave.open(io.BytesIO(data)) as sound:
        return float(sound.getnframes() / sound.getframerate())


def _children() -> list[int]:
    """The programs of this process that speak or listen."""
    tasks = Path("/proc/self/task").glob("*/children")
    ids = [int(id) for task in tasks for id in task.read_text().split()]
    return [id for id in ids if b"speech_child" in _command(id)]


def _command(id: int) -> bytes:
    try:
        return Path(f"/proc/{id}/cmdline").read_bytes()
    except OSError:
        return b""
