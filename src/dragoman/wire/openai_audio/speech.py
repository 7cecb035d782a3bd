"""Turn text into speech with `audio/speech`, whose answer is the audio itself, streamed."""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from pydantic import JsonValue

from dragoman.errors import BadRequest
from dragoman.messages.events import Event, FileAdded, FilePartial, MessageEnd
from dragoman.messages.media import is_text
from dragoman.messages.message import File
from dragoman.messages.request import Request
from dragoman.sentences import sentence
from dragoman.wire.endpoint import NO_QUIRKS, Endpoint, Quirks
from dragoman.wire.files.file_parts import NO_ATTACHMENTS, Attachments
from dragoman.wire.media.selection import prompt_of, select
from dragoman.wire.options import Extra, SpeechOptions, check_media_options, with_extra

NAME = "openai_speech"
VOICE = "alloy"  # the default
FIRST = 24 << 10  # bytes of the first chunk, small so that it arrives soon
LARGEST = 192 << 10  # bytes of a later chunk, which arrives before the earlier ones have been played

_TYPES = {
    "mp3": "audio/mpeg",
    "opus": "audio/ogg",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "wav": "audio/wav",
    "pcm": "audio/pcm",
}
_BEGINNINGS = {b"ID3": "mp3", b"RIFF": "wav", b"OggS": "opus", b"fLaC": "flac"}


@dataclass(slots=True)
class OpenAISpeech:
    """The wire, for one provider. Satisfies `wire.Wire` and `wire.MediaWire`."""

    quirks: Quirks = NO_QUIRKS
    name: str = NAME
    options: frozenset[str] = frozenset(SpeechOptions.__annotations__)

    def select(self, request: Request) -> Request:
        return select(request, None)

    def endpoint(self, request: Request, endpoint: Endpoint) -> Endpoint:
        headers = {**endpoint.headers, "Accept": "*/*"}
        return replace(endpoint, path="audio/speech", query={}, framing="bytes", headers=headers)

    def check_options(self, options: Mapping[str, JsonValue], *, model: str, extra: Extra) -> None:
        check_media_options(options, SpeechOptions, model=model, extra=extra)

    def encode(self, request: Request, attachments: Attachments = NO_ATTACHMENTS) -> dict[str, JsonValue]:
        text, options = prompt_of(request, attachments), request.options
        if not text:
            raise BadRequest(sentence("speech.no_text"))
        body: dict[str, JsonValue] = {
            "model": request.model,
            "input": text,
            "voice": options.get("voice") or VOICE,
            "response_format": options.get("format") or "mp3",
        }
        for name in ("speed", "instructions"):
            if (value := options.get(name)) is not None:
                body[name] = value
        return with_extra(body, request.extra)

    def carries(self, file: File) -> bool:
        return is_text(file)

    def decoder(self, reply: str) -> SoundDecoder:
        return SoundDecoder()


class SoundDecoder:
    """One audio file. It is encoded as it arrives, so that the end of a long one takes no time."""

    def __init__(self) -> None:
        self.finish_word: str | None = None
        self._kind = ""
        self._coded = bytearray()  # one block, which grows in place
        self._rest = b""  # up to two bytes, which wait for the next chunk
        self._told = 0  # bytes that have been passed on as chunks
        self._piece = bytearray()

    def feed(self, frame: bytes) -> Iterable[Event]:
        if not self._kind:
            self._kind = _kind(frame)
            self._coded += self._address("").encode()
        data = self._rest + frame
        whole = len(data) - len(data) % 3
        self._rest = data[whole:]
        self._coded += b2a_base64(data[:whole], newline=False)
        self._piece += frame
        if len(self._piece) < min(LARGEST, max(FIRST, self._told // 2)):
            return ()
        piece = File(self._type, url=self._address(_base64(bytes(self._piece))), name="piece")
        event = FilePartial(piece, offset=self._told)
        self._told += len(self._piece)
        self._piece.clear()
        return (event,)

    def end(self) -> Iterator[Event]:
        yield from self.break_off()
        yield MessageEnd("stop")

    def break_off(self) -> Iterator[Event]:
        """Yield the audio so far: a player can play it even if it was cut off."""
        if self._kind:
            self._coded += b2a_base64(self._rest, newline=False)
            url = self._coded.decode("ascii")
            self._coded.clear()
            yield FileAdded(File(self._type, url=url, name=f"speech.{self._kind}"))
            self._kind = ""

    @property
    def _type(self) -> str:
        return _TYPES[self._kind]

    def _address(self, base64: str) -> str:
        return f"data:{self._type};base64,{base64}"


def _kind(head: bytes) -> str:
    """Return the format of audio from its first bytes. Unknown ones mean raw samples."""
    found = next((kind for begin, kind in _BEGINNINGS.items() if head.startswith(begin)), None)
    if found is None and len(head) > 1 and head[0] == 0xFF and head[1] & 0xE0 == 0xE0:
        return "aac" if head[1] & 0x06 == 0 else "mp3"
    return found or "pcm"


def _base64(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode("ascii")
