"""Build models by name, `provider/model`: from the catalog, a key, a wire and the HTTP client."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from pydantic import JsonValue

from dragoman.dialects.dialect import NATIVE
from dragoman.dialects.dialect import dialect as named_dialect
from dragoman.errors import BadRequest, ConfigError, NotFound
from dragoman.messages.media import CHAT, MODEL_TYPES, ModelType
from dragoman.providers.catalog import (
    Catalog,
    Provider,
    Traits,
    load_catalog,
    media_traits,
    split_variant,
)
from dragoman.providers.chain import ModelChain, chain_name, names_in
from dragoman.providers.compatible import NamedModel, OpenAICompatible
from dragoman.providers.facts import cost_of
from dragoman.providers.lessons import Lessons
from dragoman.providers.listing import ListedTypes
from dragoman.providers.local.box import PROVIDER, local_model, server_of
from dragoman.providers.local.downloaded import CONTEXT as DOWNLOADED_CONTEXT
from dragoman.providers.local.downloaded import find_download
from dragoman.providers.local.server import LlamaServer
from dragoman.providers.local.weights import Progress
from dragoman.providers.served import LAST_RESORT, ServedModel
from dragoman.providers.sign_in import Keys, reach
from dragoman.providers.uploads import ProviderUploads
from dragoman.providers.wires import wire_for
from dragoman.sentences import sentence
from dragoman.wire.auth.aws import AwsIdentity
from dragoman.wire.auth.token import TokenAuth
from dragoman.wire.endpoint import Endpoint
from dragoman.wire.files.attachments import AttachmentReader, BlobReader
from dragoman.wire.files.pictures import FileLimits
from dragoman.wire.files.uploads import KeepsProviderFiles
from dragoman.wire.http_client.client import HttpClient
from dragoman.wire.http_client.http_model import HttpModel
from dragoman.wire.learned import Learned
from dragoman.wire.wire import Model

AUTO = "auto"
_log = logging.getLogger("dragoman.providers")


class Models:
    """All models, by name: the value for `Runtime(model=…)`. Use it as an async context manager, or call
    `close`.

    `default` is the model if none is named. `dialect` is how calls are made: "auto" as in the catalog,
    "native", or the name of a dialect for all models. `blobs` reads attachments. `progress` receives the
    download progress of the bundled model: bytes so far, and in total. `types_file` remembers the types
    that servers list for their models, `lessons_file` what they refused. `switches` lists by model the
    groups of tools it is not offered, unless a conversation or a send overrides it.
    """

    def __init__(
        self,
        default: str | None = None,
        *,
        catalog: Catalog | None = None,
        keys: Keys | None = None,
        client: HttpClient | None = None,
        dialect: str = AUTO,
        blobs: BlobReader | None = None,
        progress: Progress | None = None,
        types_file: Path | None = None,
        lessons_file: Path | None = None,
        switches: Mapping[str, Mapping[str, bool]] | None = None,
    ) -> None:
        if not isinstance(default, str | None):
            raise ConfigError(sentence("model.by_name", kind=type(default).__name__))
        if dialect not in (AUTO, NATIVE):
            named_dialect(dialect)  # raises, with the known names
        self.default = default
        self.catalog = catalog or load_catalog()
        self.keys = keys or Keys()
        self.client = client or HttpClient()
        self._dialect = dialect
        self._attachments = AttachmentReader(blobs)
        self._progress = progress
        self._switches = dict(switches or {})
        self._models: dict[str, ServedModel] = {}
        self._chains: dict[str, ModelChain] = {}
        self._servers: dict[str, LlamaServer] = {}
        self._identities: dict[object, TokenAuth | AwsIdentity] = {}
        self._learned: dict[str, Learned] = {}
        self.uploads = ProviderUploads(self.client, self._reach)
        self._types = ListedTypes(types_file)  # as their servers list them
        self._lessons = Lessons(lessons_file, clock=self.client.clock)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections, and stop the servers that were started."""
        for server in self._servers.values():
            await server.close()
        await self.uploads.close()
        await self.client.close()

    def use_blobs(self, blobs: BlobReader) -> None:
        """Add a place where attachments are: a runtime adds its store."""
        self._attachments.use(blobs)

    def forget_blobs(self, blobs: BlobReader) -> None:
        """Remove a place where attachments are."""
        self._attachments.forget(blobs)

    async def delete_unwanted_files(self, store: KeepsProviderFiles) -> None:
        """Delete at their providers what was uploaded for deleted conversations."""
        await self.uploads.delete_unwanted(store, self.catalog.providers.get)

    def note_types(self, types: Mapping[str, ModelType]) -> None:
        """Remember the types that servers list for their models. The catalog's entries win."""
        self._types.note(types)
        for name in types:
            self._models.pop(name, None)

    def use_catalog(self, catalog: Catalog) -> None:
        """Use another catalog from now on. Replies in progress end with the old one."""
        changed = {*self.catalog.providers} ^ {*catalog.providers}
        changed |= {
            name for name, one in catalog.providers.items() if self.catalog.providers.get(name) != one
        }
        self.catalog = catalog
        for name in changed:
            self.forget(name)

    def forget(self, provider: str) -> None:
        """Rebuild a provider's models when they are next asked, because its key or address has changed."""
        for name in [one for one in self._models if one.partition("/")[0] == provider]:
            del self._models[name]
        self.uploads.forget(provider)
        self._chains.clear()

    def traits(self, provider: Provider, model: str) -> Traits:
        """Return what is known of a model, from the catalog or from its server's list."""
        traits = self.catalog.traits(provider, model)
        if provider.name == PROVIDER and traits.file is None and find_download(model) is not None:
            traits = replace(traits, context=traits.context or DOWNLOADED_CONTEXT)
        listed = self._types.get(f"{provider.name}/{model}", CHAT)
        if traits.type == CHAT and listed != CHAT:
            return media_traits(listed, {})
        return traits

    def types(self) -> set[ModelType]:
        """Return the types, other than chat, of models that can be asked here."""
        named = self._named()
        return {type for type in MODEL_TYPES if type != CHAT and self._of_type(type, named)}

    def of_type(self, type: ModelType) -> list[str]:
        """Return the models of a type that can be asked here, by name: those in the settings first."""
        return self._of_type(type, self._named())

    def _named(self) -> list[tuple[Provider, dict[str, Traits]]]:
        """Return the models that the catalog lists under a name, not by a pattern, with their traits."""
        return [
            (
                provider,
                {one: self.traits(provider, one) for one in provider.models if not {*"*?["} & set(one)},
            )
            for provider in self.catalog.providers.values()
        ]

    def _of_type(self, type: ModelType, named: list[tuple[Provider, dict[str, Traits]]]) -> list[str]:
        own: list[str] = []
        others: list[str] = []
        for provider, models in named:
            typed = [model for model, traits in models.items() if _does(traits, type)]
            if typed and self._is_reached(provider):
                for model in typed:
                    (own if model in provider.own else others).append(f"{provider.name}/{model}")
        listed = [name for name, one in self._types.items() if one == type]
        return list(dict.fromkeys((*own, *others, *listed)))

    def _is_reached(self, provider: Provider) -> bool:
        """Return whether its models can be asked, as far as that is known without opening a keyring."""
        if any(name.partition("/")[0] == provider.name for name in self._models):
            return True
        try:
            reach(provider, self.keys.at_hand())
        except ConfigError:
            return False
        return True

    def __call__(self, name: str | None = None) -> ServedModel | ModelChain:
        """Return the model or the chain with this name. NotFound names the nearest. ConfigError names a
        missing key."""
        wanted = name or self.default
        if wanted is None:
            raise ConfigError(sentence("model.unnamed"))
        if len(names := names_in(wanted)) == 1:
            return self._one(names[0])
        whole = chain_name(names)
        chain = self._chains.get(whole)
        if chain is None or any(map(self._is_set_up, chain.left_out)):
            chain = self._chains[whole] = self._chain(names)
        return chain

    def _is_set_up(self, name: str) -> bool:
        """Return whether a model that was left out can be asked now: a key may be set later."""
        try:
            return self._one(name) is not None
        except _NotSetUp:
            return False

    def _chain(self, names: Sequence[str]) -> ModelChain:
        """Return the chain of models that can be asked here. A model without a key is skipped, as if its
        server were down."""
        served: dict[str, ServedModel] = {}
        left_out: dict[str, str] = {}
        for name in names:
            try:
                served[name] = self._one(name)
            except _NotSetUp as error:
                left_out[name] = str(error)
        if not served:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
            raise ConfigError(sentence("chain.none", reasons=reasons))
        for name, reason in left_out.items():
            _log.warning("leaving %s out of the chain %r: %s", name, chain_name(names), reason)
        return ModelChain(names, served, left_out)

    def _one(self, name: str) -> ServedModel:
        if name not in self._models:
            self._models[name] = self._build(name)
        return self._models[name]

    def _build(self, name: str) -> ServedModel:
        base, variant = split_variant(name)
        provider, model = self.catalog.find(base)
        traits = self.traits(provider, model)
        if self._dialect != AUTO:
            traits = replace(traits, tools=self._dialect)
        encoding = wire_for(provider, traits, model)
        host = urlsplit(provider.base_url).netloc.rpartition("@")[2]
        remembered: tuple[str, ...] = ()
        if base not in self._learned:  # its variants are the same model
            self._learned[base] = Learned()
            remembered = self._learned[base].recall(self._lessons.of(base, host))
        learned = self._learned[base]
        answering: Model
        if provider.name == PROVIDER:
            answering = local_model(
                self._server(model, traits),
                self.client,
                encoding,
                base,
                trained=traits.adapter is not None,
                attachments=self._attachments,
            )
        else:
            answering = HttpModel(
                self.client,
                encoding,
                self._reach(provider),
                model=model,
                name=base,
                context=traits.context,
                extra=provider.extra if traits.type == CHAT else provider.extra is True,
                attachments=self._attachments,
                learned=learned,
                limits=provider.files if traits.type == CHAT else FileLimits(reply=provider.files.reply),
                uploads=self.uploads.of(provider) if traits.type == CHAT else None,
            )
        served = ServedModel(
            answering,
            traits,
            variant=_variant(base, variant, traits),
            switches=self._switches.get(base),
            price=partial(
                cost_of,
                provider=provider.prices,
                model=model,
                units=traits.unit_prices,
                free=provider.is_free(model),
            ),
            others=self.of_type,
            fallback=LAST_RESORT if self._dialect == AUTO else None,
            wire=provider.wire,
            learned=learned,
            remembered=remembered,
            remember=partial(self._lessons.note, base, host),
        )
        try:
            served.check_options({})
        except BadRequest as error:
            raise ConfigError(sentence("catalog.unresolved", name=name, error=error)) from error
        return served

    def _server(self, model: str, traits: Traits) -> LlamaServer:
        if model not in self._servers:
            self._servers[model] = server_of(
                model,
                file=traits.file,
                adapter=traits.adapter,
                context=traits.context,
                progress=self._progress,
            )
        return self._servers[model]

    def _reach(self, provider: Provider) -> Endpoint:
        """Return the provider's endpoint. Models of one account share one access token, or the same keys."""
        try:
            endpoint = reach(provider, self.keys)
        except ConfigError as error:
            raise _NotSetUp(str(error)) from error
        if not isinstance(endpoint.auth, TokenAuth | AwsIdentity):
            return endpoint
        return replace(endpoint, auth=self._identities.setdefault(endpoint.auth.key, endpoint.auth))


def _does(traits: Traits, type: ModelType) -> bool:
    """Return whether a model is of a type. One that makes images may be able to edit them, too."""
    both = type == "image-edit" and traits.type == "image-gen" and "image" in traits.modalities
    return traits.type == type or both


def models_named(
    wanted: NamedModel | Sequence[NamedModel] | None,
    catalog: Catalog,
    blobs: BlobReader | None,
    **options: Any,
) -> Models:
    """Return the models of a catalog, and those whose address the caller passes. A list is a chain.

    `options` are those of Models.
    """
    listed = [wanted] if isinstance(wanted, NamedModel) else list(wanted or ())
    given: Sequence[object] = listed
    if wrong := [one for one in given if not isinstance(one, NamedModel)]:
        kind = type(wrong[0]).__name__
        raise ConfigError(sentence("chain.kind", kind=kind))
    names = [one if isinstance(one, str) else one.full_name for one in listed]
    by_name = {each.partition("/")[0] for one in listed if isinstance(one, str) for each in names_in(one)}
    servers: dict[str, tuple[Provider, str | None]] = {}
    for one in listed:
        if not isinstance(one, OpenAICompatible):
            continue
        name, server = one.provider.name, (one.provider, one.key)
        if servers.setdefault(name, server) != server or (name in by_name and name in catalog.providers):
            raise ConfigError(sentence("chain.same_name", model=one.full_name, name=name))
    for provider, _ in servers.values():
        catalog = catalog.with_provider(provider)
    keys = Keys({name: key for name, (_, key) in servers.items() if key})
    return Models(
        chain_name(names) if names else None, **{"catalog": catalog, "keys": keys, "blobs": blobs, **options}
    )


class _NotSetUp(ConfigError):
    """The user has no key for a provider, or has not set where it is."""


def _variant(model: str, name: str | None, traits: Traits) -> Mapping[str, JsonValue]:
    if name is None:
        return {}
    if name not in traits.variants:
        there = (
            sentence("hint.there_are", names=", ".join(traits.variants))
            if traits.variants
            else sentence("hint.none")
        )
        raise NotFound("variant", f"{model}#{name}", there)
    return traits.variants[name]
