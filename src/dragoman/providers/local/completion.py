"""The wire of plain completions, by which guided models are asked (`guided.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue
from pydantic_core import from_json, to_json

from dragoman.messages.events import Event
from dragoman.messages.parts import Text
from dragoman.messages.request import Request
from dragoman.wire.endpoint import Endpoint
from dragoman.wire.openai_chat.decode import ChatDecoder

PATH = Endpoint(path="completions")


class CompletionDecoder(ChatDecoder):
    """Chunks with `text` in the place of a `delta`; everything else is as in a chat."""

    def feed(self, frame: bytes) -> Iterator[Event]:
        return super().feed(_as_chat(frame) if frame.startswith(b"{") else frame)


def _as_chat(frame: bytes) -> bytes:
    chunk = from_json(frame)
    for choice in chunk.get("choices") or ():
        choice["delta"] = {"content": choice.pop("text", "")}
    return to_json(chunk)


@dataclass(slots=True)
class Completions:
    """The wire. The request's only text is the prompt; grammar and bias come in `extra`."""

    name: str = "completions"

    def encode(self, request: Request) -> dict[str, JsonValue]:
        prompt = "".join(
            part.text for message in request.messages for part in message.parts if isinstance(part, Text)
        )
        body: dict[str, JsonValue] = {"model": request.model, "prompt": prompt, "stream": True}
        return body | {"stream_options": {"include_usage": True}} | request.options | request.extra

    def decoder(self, reply: str) -> CompletionDecoder:
        return CompletionDecoder(reply)
