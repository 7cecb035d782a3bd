"""Asks a server which models it has: every server that imitates a known one is asked, also an unknown one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue
from pydantic_core import from_json

from dragoman.errors import ProviderError
from dragoman.messages.media import ModelType
from dragoman.sentences import sentence
from dragoman.wire.endpoint import Endpoint
from dragoman.wire.http import HttpClient

SECONDS = 15.0  # for a whole list
LARGEST = 16 << 20  # bytes of one: those who serve the models of everybody have long ones

# Where servers write what a model can take: OpenRouter and Together, vLLM, Mistral, Groq, Gemini, GitHub.
_CONTEXTS = (
    "context_length",
    "max_model_len",
    "max_context_length",
    "context_window",
    "inputTokenLimit",
    "max_input_tokens",
)

# What servers call the type of a model, those that say it: Together under `type`, Speaches and others in the
# words of Hugging Face under `task`.
_TYPES: dict[str, ModelType] = {
    "image": "image-gen",
    "text-to-image": "image-gen",
    "image-to-image": "image-edit",
    "transcribe": "audio-stt",
    "automatic-speech-recognition": "audio-stt",
    "audio": "audio-tts",
    "text-to-speech": "audio-tts",
}


@dataclass(slots=True, frozen=True)
class ListedModel:
    """A model as its server lists it."""

    id: str
    context: int | None = None
    type: ModelType | None = None  # where the server says that it does something else than talk


async def list_models(
    client: HttpClient, endpoint: Endpoint, *, seconds: float = SECONDS
) -> list[ListedModel]:
    """The models of a server, by name. ProviderError where it has no list, or does not let us in."""
    url = endpoint.list_url()
    if url is None:
        raise ProviderError(sentence("models.no_address"), kind="no_list")
    try:
        async with asyncio.timeout(seconds):
            answer: JsonValue = from_json(await client.get(url, largest=LARGEST, endpoint=endpoint))
    except TimeoutError:
        raise ProviderError(
            sentence("models.late", seconds=seconds), kind="timeout", retryable=True
        ) from None
    except ValueError:
        raise ProviderError(sentence("models.no_list"), kind="no_list") from None
    found = read_list(answer)
    if found is None:
        raise ProviderError(sentence("models.no_list"), kind="no_list")
    return sorted(found, key=lambda model: model.id)


def read_list(answer: JsonValue) -> list[ListedModel] | None:
    """The models in an answer, in any of the shapes in use; None where it is something else.

    OpenAI has them under `data`, Gemini and Ollama under `models`, Together in a bare list.
    """
    listed = answer
    if isinstance(answer, dict):
        listed = next((answer[name] for name in ("data", "models") if name in answer), None)
        if listed is None and answer.get("object") == "list":
            listed = []  # Ollama without a model: `data` is null
    return list(_models(listed)) if isinstance(listed, list) else None


def _models(listed: list[JsonValue]) -> Iterator[ListedModel]:
    seen: set[str] = set()
    for one in listed:
        name = (one.get("id") or one.get("name")) if isinstance(one, dict) else one
        if not isinstance(name, str) or not name or name in seen:
            continue
        seen.add(name)
        limits = [one.get(field) for field in _CONTEXTS] if isinstance(one, dict) else []
        context = next((limit for limit in limits if isinstance(limit, int) and limit > 0), None)
        yield ListedModel(name.removeprefix("models/"), context, _type(one))


def _type(listed: JsonValue) -> ModelType | None:
    words = [listed.get("type"), listed.get("task")] if isinstance(listed, dict) else []
    if isinstance(listed, dict) and listed.get("supportedGenerationMethods") == ["predict"]:
        return "image-gen"  # Imagen, in Google's list
    return next((_TYPES[word] for word in words if isinstance(word, str) and word in _TYPES), None)
