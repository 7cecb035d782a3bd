"""Builds models by name, `provider/model`: from the catalog, a key, a wire and the HTTP client."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Self

from dragoman.dialects.dialect import dialect as named_dialect
from dragoman.errors import ConfigError
from dragoman.providers.catalog import Catalog, Provider, Traits, load_catalog
from dragoman.providers.keys import Keys
from dragoman.providers.local.box import PROVIDER, local_model, server_of
from dragoman.providers.local.server import LlamaServer
from dragoman.providers.local.weights import Progress
from dragoman.providers.prices import cost_of
from dragoman.providers.served import LAST_RESORT, ServedModel
from dragoman.providers.tables import NATIVE
from dragoman.wire import anthropic_messages, gemini, openai_chat, openai_responses
from dragoman.wire.endpoint import Endpoint
from dragoman.wire.files import Load, no_blobs
from dragoman.wire.http import HttpClient, HttpModel
from dragoman.wire.quirks import NO_QUIRKS, Quirks
from dragoman.wire.wire import Model, Wire

AUTO = "auto"

WIRES: dict[str, Callable[..., Wire]] = {
    "openai_chat": openai_chat.WIRE,
    "openai_responses": openai_responses.WIRE,
    "anthropic_messages": anthropic_messages.WIRE,
    "gemini": gemini.WIRE,
}


def wire(name: str, *, quirks: Quirks = NO_QUIRKS, load: Load = no_blobs) -> Wire:
    """The wire of this name, or of the only one that begins like this."""
    meant = [known for known in WIRES if name and known.startswith(name)]
    if name not in WIRES and len(meant) != 1:
        raise ConfigError(f"there is no wire {name!r}: choose one of {', '.join(WIRES)}")
    return WIRES[name if name in WIRES else meant[0]](quirks=quirks, load=load)


class Models:
    """Every model there is, by name: what `Runtime(model=…)` takes. An async context manager; else `close`.

    `default` is the one that is meant where none is named. `dialect` is how calls are made: "auto" as the
    catalog says, "native", or the name of a dialect for all models. `load` gives the bytes of attachments.
    `progress` hears of the download of the model in the box: bytes so far, and in all.
    """

    def __init__(
        self,
        default: str | None = None,
        *,
        catalog: Catalog | None = None,
        keys: Keys | None = None,
        client: HttpClient | None = None,
        dialect: str = AUTO,
        load: Load = no_blobs,
        progress: Progress | None = None,
    ) -> None:
        if dialect not in (AUTO, NATIVE):
            named_dialect(dialect)  # raises, and names those there are
        self.default = default
        self.catalog = catalog or load_catalog()
        self.keys = keys or Keys()
        self.client = client or HttpClient()
        self._dialect = dialect
        self._load = load
        self._progress = progress
        self._models: dict[str, ServedModel] = {}
        self._servers: dict[str, LlamaServer] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Give the connections back, and stop the servers that were started."""
        for server in self._servers.values():
            await server.close()
        await self.client.close()

    def use_blobs(self, load: Load) -> None:
        """Where the bytes of attachments are, unless that is known already."""
        if self._load is no_blobs:
            self._load = load
            self._models.clear()

    def __call__(self, name: str | None = None) -> ServedModel:
        """The model of this name. NotFound names the nearest; ConfigError says which key is missing."""
        wanted = name or self.default
        if wanted is None:
            raise ConfigError("no model is named: say which, as PROVIDER/MODEL; `dragoman models` lists them")
        if wanted not in self._models:
            self._models[wanted] = self._build(wanted)
        return self._models[wanted]

    def _build(self, name: str) -> ServedModel:
        provider, model = self.catalog.find(name)
        traits = self.catalog.traits(provider, model)
        if self._dialect != AUTO:
            traits = replace(traits, tools=self._dialect)
        encoding = wire(provider.wire, quirks=provider.quirks, load=self._load)
        served: Model
        if provider.name == PROVIDER:
            served = local_model(
                self._server(model, traits), self.client, encoding, name, guided=traits.guided
            )
        else:
            served = HttpModel(
                self.client,
                encoding,
                self._endpoint(provider),
                model=model,
                name=name,
                context=traits.context,
            )
        return ServedModel(
            served,
            traits,
            price=partial(cost_of, provider=provider.prices, model=model),
            fallback=LAST_RESORT if self._dialect == AUTO else None,
        )

    def _server(self, model: str, traits: Traits) -> LlamaServer:
        if model not in self._servers:
            self._servers[model] = server_of(
                model, file=traits.file, guided=traits.guided, context=traits.context, progress=self._progress
            )
        return self._servers[model]

    def _endpoint(self, provider: Provider) -> Endpoint:
        address = provider.address()
        key = self.keys.needed(provider)
        named = key.name if key else next(iter(provider.keys), None)
        return provider.reached(address, key.value if key else None, named)
