"""The wire of plain completions, by which the trained model is asked (`trained.py`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from dragoman.messages.events import Event
from dragoman.messages.message import File, Text
from dragoman.messages.request import Request
from dragoman.wire.endpoint import Endpoint
from dragoman.wire.files import NO_ATTACHMENTS, Attachments
from dragoman.wire.openai_chat.decode import ChatDecoder
from dragoman.wire.options import COMMON, Extra, check_options

PATH = Endpoint(path="completions")


class CompletionDecoder(ChatDecoder):
    """Chunks with `text` in the place of a `delta`; everything else is as in a chat."""

    def _chunk(self, chunk: Any) -> Iterable[Event]:
        for choice in chunk.get("choices") or ():
            choice["delta"] = {"content": choice.pop("text", "")}
        return super()._chunk(chunk)


@dataclass(slots=True)
class Completions:
    """The wire. The request's only text is the prompt; grammar and bias come in `extra`."""

    name: str = "completions"
    options: frozenset[str] = COMMON

    def check_options(self, options: Mapping[str, JsonValue], *, model: str, extra: Extra) -> None:
        check_options(options, model=model, words=self.options, extra=extra)

    def encode(self, request: Request, attachments: Attachments = NO_ATTACHMENTS) -> dict[str, JsonValue]:
        prompt = "".join(
            part.text for message in request.messages for part in message.parts if isinstance(part, Text)
        )
        body: dict[str, JsonValue] = {"model": request.model, "prompt": prompt, "stream": True}
        return body | {"stream_options": {"include_usage": True}} | request.options | request.extra

    def carries(self, file: File) -> bool:
        return False

    def decoder(self, reply: str) -> CompletionDecoder:
        return CompletionDecoder(reply)
