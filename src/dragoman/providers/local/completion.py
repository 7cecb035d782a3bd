"""Define the wire of plain completions, which the trained model uses (`trained.py`)."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from dragoman.errors import ProviderError
from dragoman.messages.events import Event
from dragoman.messages.message import File, Text
from dragoman.messages.request import Request
from dragoman.providers.local.server import LlamaServer, PostJson
from dragoman.wire.endpoint import Endpoint
from dragoman.wire.files.file_parts import NO_ATTACHMENTS, Attachments
from dragoman.wire.openai_chat.decode import ChatDecoder
from dragoman.wire.options import COMMON, Extra, check_options

PATH = Endpoint(path="completions")


class CompletionDecoder(ChatDecoder):
    """Decodes chunks with `text` instead of a `delta`. Everything else is as in a chat."""

    def _chunk(self, chunk: Any) -> Iterable[Event]:
        for choice in chunk.get("choices") or ():
            choice["delta"] = {"content": choice.pop("text", "")}
        return super()._chunk(chunk)


@dataclass(slots=True)
class Completions:
    """The wire. The request's only text is the prompt. Grammar and bias are in `extra`."""

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


# Cache the server's state for the start of a prompt, so that the first turn need not wait for it.
#
# The tools come first in every prompt, and reading them is most of its cost. They are read once, alone, and
# the state of the server is saved to a file, which the next server loads. It contains nothing that a user
# wrote.


MOST_FILES = 4  # about 25 kB per token each
_SUFFIX = ".state"


class Prefill:
    """The start of prompts on one server, in one of its slots."""

    def __init__(self, server: LlamaServer, post: PostJson, slot: int) -> None:
        self._server = server
        self._post = post
        self._slot = slot
        self._loaded: tuple[str, str] | None = None  # the server's address, and the text
        self._working = asyncio.Lock()

    async def load(self, beginning: str) -> None:
        """Let the server read this, unless it has. If that fails, turns are only slower."""
        async with self._working:
            with suppress(ProviderError, OSError):
                await self._load(beginning)

    async def _load(self, beginning: str) -> None:
        address = await self._server.address()
        if self._loaded == (address.url, beginning):
            return
        folder = self._server.states
        digest = hashlib.sha256(f"{self._server.fingerprint}\0{beginning}".encode()).hexdigest()
        file = f"{digest[:32]}{_SUFFIX}"
        there = folder is not None and (folder / file).is_file()
        restored = there and await self._slot_action("restore", file)
        if restored and folder is not None:
            (folder / file).touch()  # Files in use are kept.
        else:
            await self._post("/completion", {"prompt": beginning, "n_predict": 0, "id_slot": self._slot})
            if folder is not None and await self._slot_action("save", file):
                await asyncio.to_thread(_remove_oldest, folder)
        self._loaded = (address.url, beginning)

    async def _slot_action(self, action: str, file: str) -> bool:
        try:
            answer = await self._post(f"/slots/{self._slot}?action={action}", {"filename": file})
        except ProviderError:
            return False
        return "error" not in answer


def _remove_oldest(folder: Path) -> None:
    files = sorted(folder.glob(f"*{_SUFFIX}"), key=lambda file: file.stat().st_mtime, reverse=True)
    for file in files[MOST_FILES:]:
        with suppress(OSError):
            file.unlink()
