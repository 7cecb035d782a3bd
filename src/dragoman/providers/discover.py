"""Finds the model servers that run on this machine. Only the loopback address is ever asked."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue
from pydantic_core import from_json

from dragoman.errors import ProviderError
from dragoman.wire.http import HttpClient, Timeouts

HOST = "127.0.0.1"
PORTS = {"ollama": 11434, "lmstudio": 1234, "llamacpp": 8080, "vllm": 8000, "sglang": 30000, "litellm": 4000}
SECONDS = 0.5  # a server on this machine answers at once, or is none
LARGEST = 1 << 20  # bytes of an answer: something else may live at the port


@dataclass(slots=True, frozen=True)
class LocalServer:
    """A server that answered. `provider` is its name in the catalog."""

    provider: str
    base_url: str
    models: tuple[str, ...]


async def discover(ports: Mapping[str, int] = PORTS, *, seconds: float = SECONDS) -> list[LocalServer]:
    """Ask every usual port at once which models are there. What does not answer in time is not there."""
    client = HttpClient(timeouts=Timeouts(connect=seconds), use_environment=False)  # no proxy in between
    async with client:
        asked = (_ask(client, provider, port, seconds) for provider, port in ports.items())
        return [server for server in await asyncio.gather(*asked) if server is not None]


async def _ask(client: HttpClient, provider: str, port: int, seconds: float) -> LocalServer | None:
    base_url = f"http://{HOST}:{port}/v1"
    try:
        async with asyncio.timeout(seconds):
            answer = from_json(await client.get(f"{base_url}/models", largest=LARGEST))
    except (ProviderError, TimeoutError, ValueError):  # nobody there, too slow, or no JSON
        return None
    models = _names(answer)
    return LocalServer(provider, base_url, models) if models is not None else None


def _names(answer: JsonValue) -> tuple[str, ...] | None:
    """The models in a list such as OpenAI's; None where it is something else that answered."""
    if not isinstance(answer, dict) or answer.get("object") != "list":
        return None
    listed = answer.get("data")  # Ollama without a model: null
    found = listed if isinstance(listed, list) else []
    names = [str(one["id"]) for one in found if isinstance(one, dict) and one.get("id")]
    return tuple(name for name in names if "embed" not in name.lower())
