"""The catalog: who serves which model, and what is known of it, from `catalog.toml` and `dragoman.toml`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from dragoman.dialects.dialect import ANY, NATIVE
from dragoman.errors import ConfigError, NotFound
from dragoman.providers.tables import (
    VARIANT,
    Modality,
    ProviderTable,
    ReasoningStyle,
    TraitsTable,
    first_fitting,
    merge_traits,
    read_tables,
)
from dragoman.wire.endpoint import AZURE, ENDPOINTS, Endpoint
from dragoman.wire.quirks import NO_QUIRKS, Quirks

BUILT_IN = Path(__file__).with_name("catalog.toml")


@dataclass(slots=True, frozen=True)
class Traits:
    """What is known of one model. The defaults fit an unknown imitator of OpenAI."""

    context: int | None = None
    modalities: tuple[Modality, ...] = ("text",)
    tools: str = NATIVE  # or the dialect in which it writes its calls
    spills: str = ANY.name  # the dialect in which calls slip into its text all the same, or "none"
    reasoning: ReasoningStyle = "tags"
    guided: bool = False  # so small that it calls tools only by examples, in steps (`local/guided.py`)
    file: str | None = None  # of a model that we serve ourselves
    note: str = ""  # what a person should know before they trust it
    prompt: str = ""  # of every request, after the general system prompt
    options: Mapping[str, JsonValue] = field(default_factory=dict)
    variants: Mapping[str, Mapping[str, JsonValue]] = field(default_factory=dict)  # options by name
    extra: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(slots=True, frozen=True)
class Provider:
    """Who serves models, where, and how it differs from others of its wire."""

    name: str
    title: str = ""
    base_url: str = ""
    base_url_from: str | None = None
    keys: tuple[str, ...] = ()
    wire: str = "openai_chat"
    endpoint: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: Mapping[str, str] = field(default_factory=dict)
    extra: bool | tuple[str, ...] = True  # the options it takes beside those of its wire: unknown servers all
    local: bool = False
    prices: str | None = None
    default: str | None = None  # the model for who has its key and names none
    quirks: Quirks = NO_QUIRKS
    defaults: TraitsTable = field(default_factory=TraitsTable)
    models: Mapping[str, TraitsTable] = field(default_factory=dict)

    def address(self, environment: Mapping[str, str] = os.environ) -> str:
        """The base URL. ConfigError where only the person can know it and has not set it."""
        found = (self.base_url_from and environment.get(self.base_url_from)) or self.base_url
        if not found:
            raise ConfigError(f"{self.title} has no address of its own: set {self.base_url_from} to yours")
        return found

    def reached(self, base_url: str, key: str | None, key_name: str | None) -> Endpoint:
        """Where requests go, and what they carry."""
        shape = AZURE if self.endpoint == "azure" else ENDPOINTS[self.wire]
        return replace(
            shape,
            base_url=base_url,
            key=key,
            key_name=key_name,
            headers={**shape.headers, **self.headers},
            query={**shape.query, **self.query},
        )


@dataclass(slots=True, frozen=True)
class Catalog:
    """All providers by name, and the families of open models."""

    providers: Mapping[str, Provider]
    families: Mapping[str, TraitsTable] = field(default_factory=dict)

    def find(self, name: str) -> tuple[Provider, str]:
        """`provider/model` → both, without the variant. NotFound names what comes nearest."""
        provider, _, model = split_variant(name)[0].partition("/")
        provider = provider if provider in self.providers else provider.lower()
        if not model:
            raise NotFound("model", name, self._with_provider_of(name))
        if provider not in self.providers:
            raise NotFound("provider", provider, _nearest(provider, self.providers))
        return self.providers[provider], model

    def traits(self, provider: Provider, model: str) -> Traits:
        """Everything that is known of a model, the special over the general."""
        family = first_fitting(self.families, model.rpartition("/")[2])
        known: dict[str, Any] = {
            **merge_traits(provider.defaults, family, first_fitting(provider.models, model))
        }
        known["modalities"] = tuple(known.get("modalities", ("text",)))
        return Traits(**known)

    def with_provider(self, provider: Provider) -> Catalog:
        return replace(self, providers={**self.providers, provider.name: provider})

    def _with_provider_of(self, model: str) -> str:
        serving = [name for name, one in self.providers.items() if first_fitting(one.models, model)]
        names = " or ".join(f"{name}/{model}" for name in serving)
        return f"did you mean {names}?" if names else "write it as PROVIDER/MODEL, such as openai/gpt-5.4"


def split_variant(name: str) -> tuple[str, str | None]:
    """`provider/model#variant` → `provider/model`, and the variant if one is named. A path is left whole."""
    model, mark, variant = name.rpartition("#")
    if not mark or not re.fullmatch(VARIANT, variant) or variant.lower().endswith(".gguf"):
        return name, None
    return model, variant


def load_catalog(
    *files: Path, project: Path | None = None, check: Callable[[Path, bytes], None] | None = None
) -> Catalog:
    """The built-in catalog with these files over it; their patterns come before the built-in ones."""
    known = read_tables(BUILT_IN, *files, project=project, check=check)
    providers = {name: _provider(name, table) for name, table in known.get("providers", {}).items()}
    return Catalog(providers, known.get("families", {}))


def _provider(name: str, table: ProviderTable) -> Provider:
    known: dict[str, Any] = {"title": name, **table}
    known["keys"] = tuple(known.get("keys", ()))
    known["quirks"] = Quirks(**known.get("quirks", {}))
    if isinstance(known.get("extra"), list):
        known["extra"] = tuple(known["extra"])
    return Provider(name, **known)


def _nearest(name: str, names: Iterable[str]) -> str:
    known = list(names)
    near = get_close_matches(name.lower(), known, n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}."
    return f"{hint} Your own goes into dragoman.toml as [providers.{name}], or comes with a base URL"
