"""Hand a downloaded model over to a local Ollama or LM Studio, if Dragoman cannot serve it."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

from pydantic_core import to_json

from dragoman.errors import ConfigError
from dragoman.providers.listing import LocalServer
from dragoman.providers.local.downloaded import Downloaded, models_folder
from dragoman.providers.local.server import can_serve
from dragoman.sentences import sentence
from dragoman.wire.http_client.client import HttpClient
from dragoman.wire.http_client.exchange import client_error, read_bounded
from dragoman.wire.http_client.payload import FileContent, Payload

TAKERS = ("ollama", "lmstudio")
_PIECE = 1 << 20


def server_for(found: list[LocalServer]) -> LocalServer | None:
    """Return the program that serves downloads here. None for Dragoman itself. Raises ConfigError if there is
    none."""
    if can_serve():
        return None
    taker = next((one for one in found if one.provider in TAKERS), None)
    if taker is None:
        raise ConfigError(sentence("hub.no_server"))
    return taker


async def hand_over(client: HttpClient, record: Downloaded, server: LocalServer | None) -> str:
    """Return the full name under which the model answers from now on."""
    if server is None:
        return f"local/{record.name}"
    if server.provider == "lmstudio":
        await asyncio.to_thread(_link, record)
        return f"lmstudio/{record.name.lower()}"
    await _give_to_ollama(client, record, server)
    return f"ollama/{record.name.lower()}"


async def _give_to_ollama(client: HttpClient, record: Downloaded, server: LocalServer) -> None:
    """Upload each file to Ollama, under the hash that it checks, and make a model of them."""
    address = server.base_url.removesuffix("/v1")
    for file, sha256 in zip(record.files, record.sha256, strict=True):
        path = models_folder() / file
        await _post(client, f"{address}/api/blobs/sha256:{sha256}", _payload(path), (200, 201))
    files = {file: f"sha256:{sha256}" for file, sha256 in zip(record.files, record.sha256, strict=True)}
    body = to_json({"model": record.name.lower(), "files": files, "stream": False})
    await _post(client, f"{address}/api/create", body, (200,))


async def _post(client: HttpClient, url: str, body: bytes | Payload, fine: tuple[int, ...]) -> None:
    try:
        async with await client.post(url, headers={}, body=body) as response:
            answer = await read_bounded(response, seconds=None)
    except (OSError, client_error()) as error:
        raise ConfigError(sentence("hub.not_taken", server="Ollama", error=error)) from error
    if response.status not in fine:
        said = answer.decode(errors="replace")[:300]
        raise ConfigError(sentence("hub.not_taken", server="Ollama", error=f"HTTP {response.status} {said}"))


def _link(record: Downloaded) -> None:
    """Link the files into LM Studio's folder: a second name costs no space on the same disk."""
    folder = Path.home() / ".lmstudio" / "models" / record.repo
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file in record.files:
            (folder / file).unlink(missing_ok=True)
            try:
                os.link(models_folder() / file, folder / file)
            except OSError:  # another disk
                shutil.copyfile(models_folder() / file, folder / file)
    except OSError as error:
        raise ConfigError(sentence("hub.not_taken", server="LM Studio", error=error.strerror)) from error


def _payload(file: Path) -> Payload:
    async def read() -> AsyncIterator[bytes]:
        with await asyncio.to_thread(file.open, "rb") as data:
            while piece := await asyncio.to_thread(data.read, _PIECE):
                yield piece

    return Payload([FileContent(file.stat().st_size, read)])
