"""Serve models on this machine with our own process, started when they are first asked."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

from pydantic import JsonValue
from pydantic_core import from_json, to_json

from dragoman.errors import ConfigError, ProviderError
from dragoman.messages.events import Event
from dragoman.messages.request import Request
from dragoman.providers.local.completion import PATH, Completions, Prefill
from dragoman.providers.local.downloaded import find_download
from dragoman.providers.local.eight_bits import quicker_copy
from dragoman.providers.local.server import CONTEXT, LlamaServer, available_cores, sensible_threads
from dragoman.providers.local.trained import SLOTS, TRAINED_CONTEXT, WORK, TrainedModel
from dragoman.providers.local.weights import Progress, cache_folder, fetch, find_adapter
from dragoman.sentences import sentence
from dragoman.wire.auth.auth import KeyAuth
from dragoman.wire.endpoint import ENDPOINTS, Endpoint
from dragoman.wire.files.attachments import AttachmentReader
from dragoman.wire.http_client.client import HttpClient
from dragoman.wire.http_client.exchange import client_error, read_bounded
from dragoman.wire.http_client.http_model import HttpModel
from dragoman.wire.wire import Model, Wire

PROVIDER = "local"
IN_THE_BOX = "smollm2"
# The server closes the connection after each reply without announcing it.
_ONE_REQUEST = {"Connection": "close"}


def server_of(
    model: str, *, file: str | None, adapter: str | None, context: int | None, progress: Progress | None
) -> LlamaServer:
    """Return the server for `local/MODEL`: the bundled model, or a GGUF file."""
    named = file or (model if model.lower().endswith(".gguf") else None)
    fetched = find_download(model) if named is None else None
    given = Path(named).expanduser() if named is not None else fetched.file if fetched is not None else None
    if given is None and model != IN_THE_BOX:
        raise ConfigError(sentence("local.unknown", model=model, box=IN_THE_BOX))

    async def found() -> Path:
        return await quicker_copy(await fetch(progress=progress)) if given is None else given

    if adapter is None:
        threads = None if given is None else sensible_threads(most=available_cores())  # a large model
        return LlamaServer(found, context=context or CONTEXT, threads=threads)
    return LlamaServer(
        found,
        adapter=lambda: find_adapter(adapter),
        context=TRAINED_CONTEXT,
        slots=SLOTS,
        states=cache_folder() / "prompts",
    )


def local_model(
    server: LlamaServer,
    client: HttpClient,
    wire: Wire,
    name: str,
    *,
    trained: bool,
    attachments: AttachmentReader | None = None,
) -> Model:
    """Return a model on the server: over the wire with native calls, or in the format it was trained on."""
    chat = BoxedModel(server, client, wire, ENDPOINTS["openai_chat"], name=name, attachments=attachments)
    if not trained:
        return chat
    complete = BoxedModel(server, client, Completions(), PATH, name=name)
    return TrainedModel(chat, complete, Prefill(server, complete.post, WORK))


class BoxedModel:
    """A model at the address of a server that starts when it is first asked. Satisfies `wire.Model`."""

    def __init__(
        self,
        server: LlamaServer,
        client: HttpClient,
        wire: Wire,
        endpoint: Endpoint,
        *,
        name: str,
        attachments: AttachmentReader | None = None,
    ) -> None:
        self.name = name
        self.context: int | None = None  # the prompt is shortened to fit, or the server refuses it
        self.variant: Mapping[str, JsonValue] = {}
        self._attachments = attachments
        self._server = server
        self._client = client
        self._wire = wire
        self._endpoint = endpoint

    def __repr__(self) -> str:
        return f"BoxedModel({self.name!r}, {self._wire.name})"

    def check_options(self, options: Mapping[str, JsonValue]) -> None:
        self._http(self._endpoint).check_options(options)

    async def stream(self, request: Request, reply: str) -> AsyncGenerator[Sequence[Event], None]:
        address = await self._server.address()
        headers = {**self._endpoint.headers, **_ONE_REQUEST}
        http = self._http(
            replace(self._endpoint, base_url=address.url, auth=KeyAuth(address.key), headers=headers)
        )
        async with aclosing(http.stream(request, reply)) as batches:
            async for events in batches:
                yield events

    def _http(self, endpoint: Endpoint) -> HttpModel:
        return HttpModel(self._client, self._wire, endpoint, model=self.name, attachments=self._attachments)

    async def post(self, path: str, body: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """Ask the server something that is not for display. Raises ProviderError without an answer."""
        address = await self._server.address()
        url = f"{address.url.removesuffix('/v1')}{path}"
        headers = {"Authorization": f"Bearer {address.key}", **_ONE_REQUEST}
        try:
            response = await self._client.post(url, headers=headers, body=to_json(body))
            async with response:
                answer = from_json(await read_bounded(response, seconds=None))
        except (OSError, client_error(), ValueError) as error:
            raise ProviderError(sentence("local.no_answer", error=error), kind="unreachable") from error
        return answer if isinstance(answer, dict) else {}
