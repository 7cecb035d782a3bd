"""Transcribe speech with `audio/transcriptions`: newer models stream, Whisper returns segments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import JsonValue

from dragoman.errors import BadRequest
from dragoman.messages.events import Event, MessageEnd, ProviderData
from dragoman.messages.media import is_text, media_type, modality
from dragoman.messages.message import File
from dragoman.messages.request import Request
from dragoman.messages.usage import Usage
from dragoman.sentences import sentence
from dragoman.wire.endpoint import NO_QUIRKS, Endpoint, Quirks
from dragoman.wire.files.file_parts import NO_ATTACHMENTS, Attachments, base64_of
from dragoman.wire.http_client.body import form_file
from dragoman.wire.http_client.framing import DONE
from dragoman.wire.media.selection import files_in, prompt_of, select
from dragoman.wire.options import Extra, TranscriptionOptions, check_media_options, with_extra
from dragoman.wire.prose import read_json
from dragoman.wire.provider_errors import provider_error
from dragoman.wire.transport_errors import unfinished
from dragoman.wire.wire import Prose

NAME = "openai_transcription"

_SEGMENTS = re.compile(r"whisper", re.IGNORECASE)  # models that return timestamps, and do not stream
_ENDINGS = {  # servers recognize formats by file names
    "audio/mpeg": "mp3",
    "audio/wav": "wav",
    "audio/mp4": "m4a",
    "audio/x-m4a": "m4a",
    "audio/aac": "aac",
    "audio/ogg": "ogg",
    "audio/opus": "ogg",
    "audio/flac": "flac",
    "audio/x-flac": "flac",
    "audio/webm": "webm",
}


@dataclass(slots=True)
class OpenAITranscription:
    """The wire, for one provider. Satisfies `wire.Wire` and `wire.MediaWire`."""

    quirks: Quirks = NO_QUIRKS
    name: str = NAME
    options: frozenset[str] = frozenset(TranscriptionOptions.__annotations__)

    def select(self, request: Request) -> Request:
        return select(request, "audio")

    def endpoint(self, request: Request, endpoint: Endpoint) -> Endpoint:
        return replace(endpoint, path="audio/transcriptions", query={}, form=True, framing="sse")

    def check_options(self, options: Mapping[str, JsonValue], *, model: str, extra: Extra) -> None:
        check_media_options(options, TranscriptionOptions, model=model, extra=extra)

    def encode(self, request: Request, attachments: Attachments = NO_ATTACHMENTS) -> dict[str, JsonValue]:
        sounds, options = files_in(request, "audio"), request.options
        base64 = base64_of(sounds[-1], attachments) if sounds else None
        if base64 is None:
            raise BadRequest(sentence("sound.missing"))
        body: dict[str, JsonValue] = {
            "model": request.model,
            "file": form_file(_name(sounds[-1]), media_type(sounds[-1]), base64),
        }
        wanted = options.get("timestamps")
        if wanted is not None or _SEGMENTS.search(request.model):
            body["response_format"] = "verbose_json"
            if wanted is not None:
                body["timestamp_granularities[]"] = wanted
        else:
            body |= {"response_format": "json", "stream": "true"}
        for name in ("language", "temperature"):
            if (value := options.get(name)) is not None:
                body[name] = value
        if prompt := prompt_of(request, attachments):
            body["prompt"] = prompt
        return with_extra(body, request.extra)

    def carries(self, file: File) -> bool:
        return modality(file) == "audio" or is_text(file)

    def decoder(self, reply: str) -> TranscriptDecoder:
        return TranscriptDecoder()


class TranscriptDecoder:
    """One transcript. Other data (language, length, segments) goes with the message."""

    def __init__(self) -> None:
        self.finish_word: str | None = None
        self._prose = Prose(NAME)
        self._usage: dict[str, Any] = {}
        self._seconds = 0.0

    def feed(self, frame: bytes) -> Iterable[Event]:
        if frame.startswith(DONE):
            return ()
        return self._read(read_json(frame))

    def whole(self, body: JsonValue) -> Iterable[Event] | None:
        if not isinstance(body, dict) or not isinstance(text := body.get("text"), str):
            return None
        return [*self._done({**body, "text": text})]

    def end(self) -> Iterator[Event]:
        yield from self._prose.close()
        if self.finish_word is None:
            raise unfinished()
        usage = Usage.claimed(self._usage.get("input_tokens"), self._usage.get("output_tokens"))
        yield MessageEnd("stop", replace(usage, seconds=self._seconds))

    def _read(self, event: dict[str, Any]) -> Iterator[Event]:
        if error := event.get("error"):
            raise provider_error(error)
        match event.get("type"):
            case "transcript.text.delta":
                yield from self._prose.text(event.get("delta") or "")
            case "transcript.text.done":
                yield from self._done(event)
            case None if isinstance(text := event.get("text"), str):  # some stream segments without a type
                self.finish_word = "stop"
                yield from self._prose.text(text)
            case _:
                pass

    def _done(self, event: dict[str, Any]) -> Iterator[Event]:
        """End the transcript. If it was not streamed, this event contains the whole text."""
        self.finish_word = "stop"
        if not self._prose.length:
            yield from self._prose.text((event.get("text") or "").strip())
        self._usage = usage if isinstance(usage := event.get("usage"), dict) else {}
        self._seconds = _length(self._usage.get("seconds")) or _length(event.get("duration"))
        known: dict[str, JsonValue] = {
            name: value for name in ("language", "duration") if (value := event.get(name)) is not None
        }
        for name in ("segments", "words"):
            if isinstance(listed := event.get(name), list):
                known[name] = [_piece(one) for one in listed if isinstance(one, dict)]
        if known:
            yield ProviderData(NAME, {"transcript": known})


def _length(claim: object) -> float:
    if isinstance(claim, bool) or not isinstance(claim, int | float) or not 0 <= claim < 1e7:
        return 0.0
    return float(claim)


def _piece(listed: dict[str, Any]) -> JsonValue:
    """Return the useful fields of a segment or a word."""
    return {name: listed[name] for name in ("start", "end", "text", "word", "speaker") if name in listed}


def _name(file: File) -> str:
    ending = _ENDINGS.get(media_type(file))
    if file.name and ("." in file.name or ending is None):
        return file.name
    return f"{file.name or 'sound'}.{ending or 'wav'}"
