"""Ask a server for its models. This also works for unknown servers that imitate a known one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue
from pydantic_core import from_json, to_json

from dragoman.errors import ProviderError
from dragoman.messages.media import MODEL_TYPES, ModelType
from dragoman.sentences import sentence
from dragoman.wire.endpoint import Endpoint
from dragoman.wire.http_client.client import HttpClient, Timeouts

SECONDS = 15.0  # for a whole list
LARGEST = 16 << 20  # bytes of one: aggregators have long lists

# The fields in which servers put a model's context: OpenRouter and Together, vLLM, Mistral, Groq, Gemini,
# GitHub.
_CONTEXTS = (
    "context_length",
    "max_model_len",
    "max_context_length",
    "context_window",
    "inputTokenLimit",
    "max_input_tokens",
)

# Names of model types at servers that report them: Together under `type`, Speaches and others with Hugging
# Face's terms under `task`.
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
    type: ModelType | None = None  # if the server reports a task other than chat


async def list_models(
    client: HttpClient, endpoint: Endpoint, *, seconds: float = SECONDS
) -> list[ListedModel]:
    """Return the models of a server, by name. Raises ProviderError if it has no list, or refuses the
    credentials."""
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
    """Return the models in an answer, in any of the usual forms. None for anything else.

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


# Find the model servers that run on this machine. Only the loopback address is ever asked.


HOST = "127.0.0.1"
PORTS = {"ollama": 11434, "lmstudio": 1234, "llamacpp": 8080, "vllm": 8000, "sglang": 30000, "litellm": 4000}
LOCAL_SECONDS = 0.5  # a server on this machine answers immediately
LARGEST_LOCAL = 1 << 20  # bytes of an answer: another program may use the port


@dataclass(slots=True, frozen=True)
class LocalServer:
    """A server that answered. `provider` is its name in the catalog."""

    provider: str
    base_url: str
    models: tuple[str, ...]


async def discover(ports: Mapping[str, int] = PORTS, *, seconds: float = LOCAL_SECONDS) -> list[LocalServer]:
    """Ask all usual ports in parallel for their models. A server that does not answer in time is ignored."""
    client = HttpClient(timeouts=Timeouts(connect=seconds), use_environment=False)  # without a proxy
    async with client:
        asked = (_ask(client, provider, port, seconds) for provider, port in ports.items())
        return [server for server in await asyncio.gather(*asked) if server is not None]


async def _ask(client: HttpClient, provider: str, port: int, seconds: float) -> LocalServer | None:
    base_url = f"http://{HOST}:{port}/v1"
    try:
        async with asyncio.timeout(seconds):
            answer = from_json(await client.get(f"{base_url}/models", largest=LARGEST_LOCAL))
    except (ProviderError, TimeoutError, ValueError):  # not running, too slow, or not valid JSON
        return None
    models = _names(answer)
    return LocalServer(provider, base_url, models) if models is not None else None


def _names(answer: JsonValue) -> tuple[str, ...] | None:
    """Return the models in a list such as OpenAI's. None for any other answer."""
    if not isinstance(answer, dict) or answer.get("object") != "list":
        return None
    listed = answer.get("data")  # Ollama without a model: null
    found = listed if isinstance(listed, list) else []
    names = [str(one["id"]) for one in found if isinstance(one, dict) and one.get("id")]
    return tuple(name for name in names if "embed" not in name.lower())


# Remember across restarts the types that servers list for their models.


_log = logging.getLogger("dragoman.providers")
FILE = "model-types.json"
MOST = 10_000  # models: aggregators list thousands


class ListedTypes(dict[str, ModelType]):
    """Types by the full names of models, in a file if given. An unreadable file counts as empty."""

    def __init__(self, file: Path | None = None) -> None:
        super().__init__()
        self._file = file
        if file is None or not file.exists():
            return
        try:
            found = from_json(file.read_bytes())
            known = {type: type for type in MODEL_TYPES}
            super().update({str(name): known[type] for name, type in found.items() if type in known})
        except (OSError, ValueError, AttributeError, TypeError) as error:
            _log.warning("cannot read %s, writing it again: %s", file, error)

    def note(self, types: Mapping[str, ModelType]) -> None:
        """Remember these, and keep the newest longest."""
        if all(self.get(name) == type for name, type in types.items()):
            return
        for name, type in types.items():
            self.pop(name, None)
            self[name] = type
        for name in [*self][: max(0, len(self) - MOST)]:
            del self[name]
        if self._file is not None:
            self._save(self._file)

    def _save(self, file: Path) -> None:
        draft = file.with_suffix(".new")
        try:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            draft.write_bytes(to_json(dict(self), indent=1))
            draft.replace(file)
        except OSError as error:
            _log.warning("cannot store what models support: %s", error)
