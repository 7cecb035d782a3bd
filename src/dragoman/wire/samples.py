"""Sound that a chat model speaks in its answer: bare samples in pieces, put together as a WAV file."""

from __future__ import annotations

import re
import struct
from binascii import a2b_base64, b2a_base64

from dragoman.messages.message import File

RATE = 24_000  # samples a second, where nobody says how many


class Samples:
    """The samples of one reply: 16 bits, one channel. `file` is the sound so far; None without any."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._rate = RATE

    def add(self, base64: str, media_type: str = "") -> None:
        """A piece. Gemini writes the rate into its type: `audio/L16;codec=pcm;rate=24000`."""
        if found := re.search(r"rate=(\d{4,6})", media_type):
            self._rate = int(found[1])
        self._pieces.append(a2b_base64(base64))

    def take(self) -> File | None:
        """What has come, as a file. What comes later is another one."""
        data, self._pieces = b"".join(self._pieces), []
        if not data:
            return None
        coded = b2a_base64(_header(len(data), self._rate) + data, newline=False).decode("ascii")
        return File("audio/wav", url=f"data:audio/wav;base64,{coded}", name="speech.wav")


def is_bare(media_type: str) -> bool:
    """Whether a sound is nothing but samples."""
    return media_type.partition(";")[0].lower() in ("audio/l16", "audio/pcm")


def _header(size: int, rate: int) -> bytes:
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, rate, rate * 2, 2, 16)
    return b"RIFF" + struct.pack("<I", 36 + size) + b"WAVE" + form + b"data" + struct.pack("<I", size)
