"""Speak with eSpeak NG or listen with PocketSphinx, in a child process.

The process reads the body of one request from its standard input, in the shape of OpenAI's Audio. It answers
with lines of JSON: chunks of a WAV file, or the frames of a transcript. Then it ends, and killing it cancels
the request.
"""

from __future__ import annotations

import ctypes
import io
import json
import signal
import sys
import wave
from array import array
from base64 import b64decode, b64encode
from collections.abc import Iterator
from importlib import import_module
from itertools import accumulate
from typing import Any, TypeAlias

Frame: TypeAlias = dict[str, Any]

WORDS_A_MINUTE = 160  # at speed 1
HEARD_RATE = 16_000  # samples a second: the acoustic model knows no other
_PIECE = 96 << 10  # bytes of a sound in one line
_SYNCHRONOUS, _RATE_PARAMETER, _UTF8, _NO_EXIT = 2, 1, 1, 1 << 15  # of speak_lib.h
_QUIET = b"\0\0" * (HEARD_RATE // 4)  # before and after: speech without leading silence is not recognized


class RefusedOrder(Exception):
    """The request cannot be answered, for a reason that its sender can fix."""


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to make something of
    body: Frame = json.loads(sys.stdin.buffer.read())
    try:
        for frame in listen(body) if "file" in body else speak(body):
            _write(frame)
    except RefusedOrder as error:
        _write({"error": {"message": str(error), "type": "invalid_request_error"}})


def _write(frame: Frame) -> None:
    sys.stdout.write(json.dumps(frame) + "\n")
    sys.stdout.flush()


# ── speaking ──────────────────────────────────────────────────────────────────────────────────────


def speak(body: Frame) -> Iterator[Frame]:
    """A text as a WAV file, in pieces."""
    samples, rate = _synthesize(str(body["input"]), str(body["voice"]), float(body.get("speed") or 1))
    out = io.BytesIO()
    with wave.open(out, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(rate)
        sound.writeframes(samples)
    data = out.getvalue()
    for at in range(0, len(data), _PIECE):
        yield {"sound": b64encode(data[at : at + _PIECE]).decode("ascii")}


def _synthesize(text: str, voice: str, speed: float) -> tuple[bytes, int]:
    """16-bit samples, and how many there are a second."""
    loader = import_module("espeakng_loader")
    library = ctypes.CDLL(loader.get_library_path())
    rate = library.espeak_Initialize(_SYNCHRONOUS, 0, str(loader.get_data_path()).encode(), _NO_EXIT)
    if rate <= 0:
        raise RefusedOrder("eSpeak NG does not find its data: install espeakng-loader again")
    samples = bytearray()

    def collect(made: Any, count: int, events: object) -> int:
        if count > 0:
            samples.extend(ctypes.string_at(made, 2 * count))
        return 0

    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)
    callback = kind(collect)  # a separate name, because the callback must outlive the calls below
    library.espeak_SetSynthCallback(callback)
    if library.espeak_SetVoiceByName(voice.encode()) != 0:
        raise RefusedOrder(f"eSpeak NG has no voice {voice!r}: try en-us, en-gb-scotland, de, fr+f3 or cmn")
    library.espeak_SetParameter(_RATE_PARAMETER, round(WORDS_A_MINUTE * speed), 0)
    coded = text.replace("\0", " ").encode("utf-8", "replace") + b"\0"  # where it reads no further
    library.espeak_Synth(coded, ctypes.c_size_t(len(coded)), 0, 1, 0, _UTF8, None, None)
    library.espeak_Synchronize()
    return bytes(samples), rate


# ── listening ─────────────────────────────────────────────────────────────────────────────────────


def listen(body: Frame) -> Iterator[Frame]:
    """Yield the spoken segments between silences, in order."""
    samples = read_samples(b64decode(body["file"]["base64"]))
    pocketsphinx = import_module("pocketsphinx")
    decoder = pocketsphinx.Decoder(samprate=float(HEARD_RATE), loglevel="FATAL")
    expect_phrases(decoder, str(body.get("prompt") or ""))
    segments: list[Frame] = []
    heard = io.BytesIO(samples + _QUIET * 4)  # speech without trailing silence would be lost
    for segment in pocketsphinx.Segmenter(sample_rate=HEARD_RATE).segment(heard):
        decoder.start_utt()
        decoder.process_raw(_QUIET + segment.pcm + _QUIET, full_utt=True)
        decoder.end_utt()
        if (found := decoder.hyp()) is None or not found.hypstr:
            continue
        yield {"type": "transcript.text.delta", "delta": f"{' ' if segments else ''}{found.hypstr}"}
        times = {"start": round(segment.start_time, 2), "end": round(segment.end_time, 2)}
        segments.append({**times, "text": found.hypstr})
    yield {
        "type": "transcript.text.done",
        "text": " ".join(one["text"] for one in segments),
        "language": "english",
        "duration": round(len(samples) / 2 / HEARD_RATE, 2),
        "segments": segments,
    }


def expect_phrases(decoder: Any, prompt: str) -> None:
    """Limit recognition to the lines of the prompt, each a phrase, which works far better.

    A phrase with a word that the dictionary lacks cannot be recognized, and is left out.
    """
    phrases = [_words(line) for line in prompt.lower().split("\n")]
    known = [" ".join(one) for one in phrases if one and all(decoder.lookup_word(word) for word in one)]
    if known:
        grammar = f"#JSGF V1.0; grammar expected; public <phrases> = ( {' | '.join(known)} )+ ;"
        decoder.add_jsgf_string("expected", grammar)
        decoder.activate_search("expected")


def _words(line: str) -> list[str]:
    return "".join(sign if sign.isalpha() or sign == "'" else " " for sign in line).split()


def read_samples(data: bytes) -> bytes:
    """The samples of a WAV file, of one channel, at the rate that can be heard."""
    try:
        with wave.open(io.BytesIO(data)) as sound:
            channels, width, rate = sound.getnchannels(), sound.getsampwidth(), sound.getframerate()
            read = sound.readframes(sound.getnframes())
    except (wave.Error, EOFError) as error:
        raise RefusedOrder(f"this is no WAV file that can be read: {error}") from None
    if width != 2 or rate < 8000:
        raise RefusedOrder("PocketSphinx hears 16-bit WAV files of at least 8000 Hz: convert it first")
    samples = array("h", read[: len(read) // 2 * 2])
    if sys.byteorder == "big":
        samples.byteswap()
    return resample(samples[::channels], rate).tobytes()


def resample(samples: array[int], rate: int) -> array[int]:
    """Each new sample is the mean of what was heard in its time: no high tone turns into a low one."""
    if rate == HEARD_RATE or not samples:
        return samples
    sums, ratio = [0, *accumulate(samples)], rate / HEARD_RATE

    def until(time: float) -> float:
        whole = min(int(time), len(samples) - 1)
        return sums[whole] + (time - whole) * samples[whole]

    count = int(len(samples) / ratio)
    return array("h", (int((until((n + 1) * ratio) - until(n * ratio)) / ratio) for n in range(count)))


if __name__ == "__main__":
    main()
