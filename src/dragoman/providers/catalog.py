"""Build the catalog of providers and their models, from `catalog.toml` and `dragoman.toml`."""

from __future__ import annotations

import logging
import os
import pickle
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from dragoman.dialects.dialect import NATIVE
from dragoman.errors import ConfigError, NotFound
from dragoman.installed import import_point, installed
from dragoman.messages.media import CHAT, Modality, ModelType
from dragoman.providers.catalog_tables import (
    ASK,
    NONE,
    VARIANT,
    AuthKind,
    CatalogTable,
    ProviderTable,
    ReasoningStyle,
    TraitsTable,
    UnitPrices,
    any_fits,
    check_tables,
    first_fitting,
    merge_patterns,
    merge_traits,
    read_tables,
)
from dragoman.providers.facts import facts_of
from dragoman.sentences import sentence, together
from dragoman.web_address import WANTED, web_address
from dragoman.wire.auth.auth import ProviderAuth
from dragoman.wire.endpoint import ENDPOINTS, NO_QUIRKS, SHAPES, Endpoint, Quirks
from dragoman.wire.files.pictures import NO_LIMITS, FileLimits
from dragoman.wire.http_client.network import is_loopback

# Fill a provider's address with values that only the user knows: a region, a project, an account.
#
# `${A|B:-c}` in an address is the value of the first of these environment variables that is set, or else `c`.


_PLACE = re.compile(r"\$\{([A-Za-z_][\w|]*)(?::-([^}]*))?\}")
_VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")  # of a host or of one step of a path, and nothing else

# Vertex has no region before its global host, and another form for a continent.
_VERTEX = re.compile(r"//(global|us|eu)-aiplatform\.")


def fill_address(
    address: str, environment: Mapping[str, str], *, of: str, instead: Sequence[str] = ()
) -> str:
    """Return the address with all values in it. ConfigError names variables that are missing or wrong.

    `instead` are the variables that contain a whole address.
    """

    def missing(names: Sequence[str]) -> ConfigError:
        wanted = " or ".join([*instead, *names])
        return ConfigError(sentence("provider.no_address", of=of, wanted=wanted))

    def value(place: re.Match[str]) -> str:
        names = place[1].split("|")
        name = next((name for name in names if environment.get(name)), None)
        if name is None and place[2] is None:
            raise missing(names)
        given = place[2] if name is None else _bare_host(environment[name])
        if not _VALUE.fullmatch(given):
            raise ConfigError(sentence("provider.address_part", name=name, of=of))
        return given

    if not address:
        raise missing(())
    return _VERTEX.sub(_vertex_host, _PLACE.sub(value, address))


def is_here(address: str) -> bool:
    """Return whether an address is on this machine."""
    parts = web_address(address if "//" in address else f"http://{address}", references=True)
    return parts is not None and (is_loopback(parts.hostname) or parts.hostname in ("0.0.0.0", "::"))


def _bare_host(value: str) -> str:
    """Return the host alone, because users often set `https://host/`."""
    return re.sub(r"^https?://", "", value.strip()).rstrip("/")


def _vertex_host(found: re.Match[str]) -> str:
    return "//aiplatform." if found[1] == "global" else f"//aiplatform.{found[1]}.rep."


_log = logging.getLogger("dragoman.providers")
BUILT_IN = Path(__file__).with_name("catalog.toml")
_IN_THE_BOX = "local"  # the provider of the models that this program runs itself


@dataclass(slots=True, frozen=True)
class Traits:
    """The facts about one model. The defaults fit an unknown imitator of OpenAI."""

    context: int | None = None
    modalities: tuple[Modality, ...] = ("text",)
    tools: str = NATIVE  # or the dialect in which it writes its calls
    spills: str = ASK  # the dialect in which its family writes calls as text; "none": it never does
    reasoning: ReasoningStyle = "tags"
    type: ModelType = CHAT  # the task that it does
    file: str | None = None  # of a model that we serve ourselves
    adapter: str | None = None  # that taught it to call tools in the format of `local/prompt.py`
    note: str = ""  # a note that users should read before they trust it
    prompt: str = ""  # of every request, after the general system prompt
    options: Mapping[str, JsonValue] = field(default_factory=dict)
    variants: Mapping[str, Mapping[str, JsonValue]] = field(default_factory=dict)  # options by name
    extra: Mapping[str, JsonValue] = field(default_factory=dict)
    unit_prices: UnitPrices = field(default_factory=UnitPrices)
    # its accepted modalities are known; otherwise its wire decides
    listed: bool = field(default=False, compare=False)


@dataclass(slots=True, frozen=True)
class Provider:
    """A server of models: its address, and how it differs from others with its wire."""

    name: str
    title: str = ""
    base_url: str = ""
    base_url_from: tuple[str, ...] = ()  # the first of these variables that is set overrides `base_url`
    keys: tuple[str, ...] = ()
    auth: AuthKind = "key"  # how to authenticate if no key is set
    wire: str = "openai_chat"
    endpoint: str | None = None  # a separate entry in `wire/endpoint.py`, if it has one
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: Mapping[str, str] = field(default_factory=dict)
    # options it accepts in addition to those of its wire: unknown servers accept all
    extra: bool | tuple[str, ...] = True
    local: bool = False
    prices: str | None = None
    facts: tuple[str, ...] = ()  # its names in the sources of the facts
    default: str | None = None  # the model for users who have its key and name none
    routes: Mapping[str, str] = field(default_factory=dict)  # models that another provider serves, by pattern
    quirks: Quirks = NO_QUIRKS
    files: FileLimits = NO_LIMITS
    defaults: TraitsTable = field(default_factory=TraitsTable)
    models: Mapping[str, TraitsTable] = field(default_factory=dict)
    own: Mapping[str, TraitsTable] = field(default_factory=dict)  # those of `models` that override the facts
    custom: bool = False  # a user added it: the built-in catalog does not have it

    def address(self, environment: Mapping[str, str] = os.environ) -> str:
        """Return the base URL. Raises ConfigError if only the user can know it and has not set it."""
        name = next((name for name in self.base_url_from if environment.get(name)), None)
        if name is not None:
            if web_address(environment[name]) is None:
                raise ConfigError(
                    sentence("provider.bad_address", name=name, provider=self.title, wanted=WANTED)
                )
            return environment[name]
        return fill_address(self.base_url, environment, of=self.title, instead=self.base_url_from)

    def is_free(self, model: str) -> bool:
        """Return whether a model runs on this machine, so that its tokens cost nothing.

        A configured price applies anyway, and Ollama passes some models on to its cloud.
        """
        if self.prices is not None or model.endswith(("-cloud", ":cloud")):
            return False
        return self.name == _IN_THE_BOX or (self.local and is_here(self.address()))

    @property
    def shape(self) -> Endpoint:
        """The common part of its endpoint: without address and authentication."""
        if self.endpoint is None:
            return ENDPOINTS[self.wire]
        if (shape := SHAPES.get((self.endpoint, self.wire))) is None:
            wires = " or ".join(wire for endpoint, wire in SHAPES if endpoint == self.endpoint)
            raise ConfigError(
                sentence(
                    "provider.wire", endpoint=self.endpoint, provider=self.title, wires=wires, wire=self.wire
                )
            )
        return shape

    def reached(self, base_url: str, auth: ProviderAuth) -> Endpoint:
        """Return the endpoint with address and authentication. Users often copy the full URL of requests, so
        the path is removed."""
        shape = self.shape
        base_url = base_url.rstrip("/").removesuffix(f"/{shape.path}")
        return replace(
            shape,
            base_url=base_url.rstrip("/").removesuffix(shape.path_prefix),
            auth=auth,
            headers={**shape.headers, **self.headers},
            query={**shape.query, **self.query},
        )


@dataclass(slots=True, frozen=True)
class Catalog:
    """All providers by name, and the families of open models."""

    providers: Mapping[str, Provider]
    families: Mapping[str, TraitsTable] = field(default_factory=dict)
    unused: str = ""  # a file that may have more entries, and why it is not used

    def find(self, name: str) -> tuple[Provider, str]:
        """Return the provider and the model of `provider/model`, without the variant. For a chain, those of
        its first.

        NotFound names the nearest. If a cloud supports several protocols, the provider is the one with
        this model's protocol.
        """
        provider, _, model = split_variant(name.partition(",")[0].strip())[0].partition("/")
        provider = provider if provider in self.providers else provider.lower()
        if not model:
            raise NotFound("model", name, self._with_provider_of(name))
        if provider not in self.providers:
            raise NotFound("provider", provider, _nearest(provider, self.providers, self.unused))
        found = self.providers[provider]
        there = next((name for pattern, name in found.routes.items() if any_fits([pattern], model)), provider)
        return self.providers[there], model

    def traits(self, provider: Provider, model: str) -> Traits:
        """Return everything known about a model. Specific entries override general ones."""
        layers = (
            provider.defaults,
            first_fitting(self.families, model.rpartition("/")[2]),
            first_fitting(provider.models, model),
            _listed(provider, model),
            first_fitting(provider.own, model),
        )
        known: dict[str, Any] = {**merge_traits(*layers)}
        # Our own lists that have a context would list modalities as well. A user's entry need not.
        ours = "context" in layers[3] or ("context" in layers[2] and "context" not in layers[4])
        known["listed"] = "modalities" in known or ours
        known["modalities"] = tuple(known.get("modalities", ("text",)))
        if known.get("type", CHAT) != CHAT:
            return media_traits(known["type"], merge_traits(*layers[1:3], layers[4]))
        return Traits(**known)

    def with_provider(self, provider: Provider) -> Catalog:
        return replace(self, providers={**self.providers, provider.name: provider})

    def _with_provider_of(self, model: str) -> str:
        serving = [name for name, one in self.providers.items() if first_fitting(one.models, model)]
        names = " or ".join(f"{name}/{model}" for name in serving[:3])
        return sentence("hint.did_you_mean", near=names) if names else sentence("hint.model_form")


def media_traits(type: ModelType, known: TraitsTable) -> Traits:
    """Return the traits of a model that does not chat. Its inputs follow from its type.

    A model that makes images may also be able to edit them.
    """
    taken: dict[ModelType, tuple[Modality, ...]] = {
        "image-edit": ("text", "image"),
        "audio-stt": ("text", "audio"),
        "image-gen": ("text", "image") if "image" in known.get("modalities", ()) else ("text",),
    }
    return Traits(
        type=type,
        modalities=taken.get(type, ("text",)),
        spills=NONE,
        reasoning="apart",
        note=known.get("note", ""),
        options=known.get("options", {}),
        variants=known.get("variants", {}),
        extra=known.get("extra", {}),
        unit_prices=known.get("unit_prices", {}),
        listed=True,
    )


def split_variant(name: str) -> tuple[str, str | None]:
    """Split `provider/model#variant` into `provider/model` and the variant, if any. A path stays whole."""
    model, mark, variant = name.rpartition("#")
    if not mark or not re.fullmatch(VARIANT, variant) or variant.lower().endswith(".gguf"):
        return name, None
    return model, variant


def load_catalog(
    *files: Path, project: Path | None = None, check: Callable[[Path, bytes], None] | None = None
) -> Catalog:
    """Return the built-in catalog extended by these files. Their patterns come before the built-in ones."""
    built_in: CatalogTable = pickle.loads(_built_in())  # a copy, because merging changes it
    built_in["providers"] = {**_installed(), **built_in["providers"]}  # a built-in name cannot be taken over
    patterns = {name: table.pop("models", {}) for name, table in built_in["providers"].items()}
    known = read_tables(*files, under=built_in, project=project, check=check)
    providers = {
        name: replace(_provider(name, table, patterns.get(name, {})), custom=name not in patterns)
        for name, table in known["providers"].items()
    }
    return Catalog(providers, known.get("families", {}))


@cache
def _built_in() -> bytes:
    """Return our own catalog, read once: parsing would be half of the cost of making a runtime."""
    return pickle.dumps(read_tables(BUILT_IN))


def _installed() -> dict[str, ProviderTable]:
    """Return the providers of installed packages: each a table, as in `dragoman.toml`."""
    found: dict[str, ProviderTable] = {}
    for name, point in installed("providers").items():
        try:
            tables = check_tables({"providers": {name: import_point(point)}}, point.value)
        except ConfigError as error:
            _log.warning("leaving out provider %s: %s", name, error)
        else:
            found |= tables["providers"]
    return found


def _listed(provider: Provider, model: str) -> TraitsTable:
    """Return what the facts list for a model with its name."""
    facts = facts_of(provider.facts, model)
    traits: TraitsTable = {}
    if facts is not None and facts.context is not None:
        traits["context"] = facts.context
    if facts is not None and facts.modalities is not None:
        traits["modalities"] = [*facts.modalities]
    return traits


def _provider(name: str, table: ProviderTable, built_in: dict[str, TraitsTable]) -> Provider:
    own = table.get("models", {})
    known: dict[str, Any] = {"title": name, **table, "models": merge_patterns(built_in, own), "own": own}
    for listed in ("keys", "base_url_from", "facts"):
        known[listed] = tuple(known.get(listed, ()))
    known["files"] = FileLimits(**known.get("files", {}))
    known["quirks"] = Quirks(**known.get("quirks", {}))
    if (default := known.get("default")) is not None and not any_fits(known["models"], default):
        known["models"][default] = {}  # so that lists include it
    if isinstance(known.get("extra"), list):
        known["extra"] = tuple(known["extra"])
    return Provider(name, **known)


def _nearest(name: str, names: Iterable[str], unused: str) -> str:
    near = get_close_matches(name.lower(), list(names), n=3, cutoff=0.6)
    hint = sentence("hint.did_you_mean", near=" or ".join(near)) if near else sentence("hint.models_listed")
    return together([hint, unused or sentence("hint.own_provider", name=name)])
