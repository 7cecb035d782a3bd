"""Read, check and merge the tables of `catalog.toml` and `dragoman.toml`.

Later files override earlier ones.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    JsonValue,
    TypeAdapter,
    ValidationError,
    with_config,
)
from typing_extensions import TypedDict  # pydantic requires this one on Python 3.11

from dragoman.dialects.dialect import NAMES as DIALECTS
from dragoman.dialects.dialect import NATIVE
from dragoman.errors import ConfigError
from dragoman.messages.media import Modality, ModelType
from dragoman.sentences import sentence, worded
from dragoman.web_address import WANTED, web_address
from dragoman.wire.endpoint import Quirks
from dragoman.wire.options import merge_options

NONE = "none"  # spills: its text contains no calls
ASK = "ask"  # spills: text that looks like a call needs approval
VARIANT = r"[A-Za-z0-9][A-Za-z0-9_.-]*"  # the name of a variant, after the # in a model's name

# ── fields of a file ──────────────────────────────────────────────────────────────────────────────


def _dialect_or(*words: str) -> AfterValidator:
    def check(name: str) -> str:
        if name not in (*words, *DIALECTS):
            raise ValueError(f"choose {' or '.join(map(repr, words))}, or a dialect: {', '.join(DIALECTS)}")
        return name

    return AfterValidator(check)


def _variable(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or name.startswith("sk_"):
        raise ValueError("write the name of an environment variable, never the key itself")
    return name


def _variant(name: str) -> str:
    if not re.fullmatch(VARIANT, name):
        raise ValueError("the name of a variant can have A-Z, a-z, digits, `-`, `_` and `.`")
    return name


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


Variable: TypeAlias = Annotated[str, AfterValidator(_variable)]
Worded: TypeAlias = Annotated[str, AfterValidator(worded)]
AuthKind: TypeAlias = Literal["key", "aws", "google", "entra"]
ReasoningStyle: TypeAlias = Literal["apart", "tags", "inside"]


@with_config(extra="forbid", strict=True)
class UnitPrices(TypedDict, total=False):
    """Prices in dollars. A model with any of these has no other prices."""

    image: Annotated[float, Field(ge=0)]
    minute: Annotated[float, Field(ge=0)]  # of audio input
    million_characters: Annotated[float, Field(ge=0)]  # of text that is spoken
    million_input: Annotated[float, Field(ge=0)]  # of tokens that are sent
    million_cached: Annotated[float, Field(ge=0)]  # of sent tokens that the provider had cached
    million_output: Annotated[float, Field(ge=0)]  # of tokens that are received


@with_config(extra="forbid", strict=True)
class TraitsTable(TypedDict, total=False):
    """Facts about a model. Several files can add to them."""

    type: ModelType  # the task that it does, chat by default
    context: Annotated[int, Field(gt=0)]
    modalities: list[Modality]
    tools: Annotated[str, _dialect_or(NATIVE)]
    spills: Annotated[str, _dialect_or(NONE, ASK)]
    reasoning: ReasoningStyle
    file: str  # the GGUF file of a local model
    adapter: str  # the GGUF file of an adapter for it, made by `extras/training/`
    note: Worded  # a note that users should read before they trust it
    prompt: str  # of every request, after the general system prompt
    options: dict[str, JsonValue]  # of every request, under those of the conversation
    variants: dict[Annotated[str, AfterValidator(_variant)], dict[str, JsonValue]]  # options by name
    extra: dict[str, JsonValue]  # added to every body unchanged
    unit_prices: UnitPrices


@with_config(extra="forbid", strict=True)
class FilesTable(TypedDict, total=False):
    """Limits of a provider on the files of a request."""

    picture_edge: Annotated[int, Field(ge=16)]  # pixels of the longer side: larger images are shrunk
    picture_bytes: Annotated[int, Field(ge=1024)]  # of one image
    together: Annotated[int, Field(ge=1024)]  # bytes of all files: above that, the oldest are left out
    upload_above: Annotated[int, Field(ge=0)]  # bytes: larger files are uploaded once, and named by their ID
    reply: Annotated[int, Field(ge=1024)]  # bytes of a whole reply: a larger one is broken off


@with_config(extra="forbid", strict=True)
class ProviderTable(TypedDict, total=False):
    """A server of models. Several files can add to it."""

    title: Worded
    base_url: str
    base_url_from: Annotated[list[Variable], BeforeValidator(_listed)]  # variables that may contain it
    keys: Annotated[list[Variable], BeforeValidator(_listed)]  # the first that is set is used
    wire: Literal["openai_chat", "openai_responses", "anthropic_messages", "gemini", "bedrock_converse"]
    endpoint: Literal["azure", "azure_v1", "bedrock_invoke", "vertex_gemini", "vertex_claude"]
    auth: AuthKind  # how to authenticate if no key is set: `wire/auth/`
    headers: dict[str, str]
    query: dict[str, str]
    extra: bool | list[str]  # options it accepts in addition to those of its wire
    local: bool  # on this machine: works without a key
    default: str  # the model for users who have its key and name none
    prices: str  # its name in genai-prices
    facts: Annotated[list[str], BeforeValidator(_listed)]  # its name in the sources of the facts
    routes: dict[str, str]  # models by a pattern, and another provider's name that serves them instead
    quirks: dict[str, str | bool]
    files: FilesTable  # its limits for attachments
    defaults: TraitsTable
    models: dict[str, TraitsTable]


class CatalogTable(TypedDict, total=False):
    """Our tables of a file. Other tables of `dragoman.toml` are ignored here."""

    providers: dict[str, ProviderTable]
    families: dict[str, TraitsTable]


# ── reading ───────────────────────────────────────────────────────────────────────────────────────


def read_tables(
    *files: Path,
    under: CatalogTable | None = None,
    project: Path | None = None,
    check: Callable[[Path, bytes], None] | None = None,
) -> CatalogTable:
    """Return the tables of all files merged, over those `under` them. ConfigError names the wrong file and
    place.

    `project` is a file from an untrusted project. It can set other addresses, but keys that are meant for
    the address of the catalog or of the user's own settings are not sent there: it has to name the keys
    itself. `check` raises for content of that file that must not be used.
    """
    merged: CatalogTable = under or {}
    for file in (*files, project) if project is not None else files:
        foreign = file is project
        read = _read(file, check if foreign else None)
        if foreign:
            _refuse_foreign(file, read)
        merged = _merged(merged, read, foreign=foreign)
        for name, table in merged.get("providers", {}).items():
            if "base_url" not in table and "base_url_from" not in table:
                raise ConfigError(sentence("provider.no_base_url", file=file, name=name))
            for there in table.get("routes", {}).values():
                if there not in merged["providers"]:
                    raise ConfigError(sentence("provider.no_route", file=file, name=name, there=there))
    return merged


def _read(file: Path, check: Callable[[Path, bytes], None] | None) -> CatalogTable:
    try:
        data = file.read_bytes()
        if check is not None:
            check(file, data)
        tables = tomllib.loads(data.decode("utf-8-sig"))
    except OSError as error:
        raise ConfigError(sentence("file.not_read", file=file, error=error.strerror)) from error
    except (ValueError, RecursionError) as error:  # invalid TOML, and numbers without end
        raise ConfigError(sentence("file.no_toml", file=file, error=error)) from error
    return check_tables(tables, str(file))


def check_tables(tables: object, where: str) -> CatalogTable:
    """Return the tables unchanged, if they are valid for a catalog.

    ConfigError names the place that is not.
    """
    try:
        checked: CatalogTable = _adapter().validate_python(tables)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        raise ConfigError(
            sentence("settings.wrong", where=where, place=_place(fault["loc"]), why=_describe(fault))
        ) from error
    for name, table in checked.get("providers", {}).items():
        _check(f"{where}: {_place(('providers', name))}", name, table)
    return checked


@cache
def _adapter() -> TypeAdapter[CatalogTable]:
    return TypeAdapter(CatalogTable)


def _check(at: str, name: str, table: ProviderTable) -> None:
    """Check what types cannot express."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
        raise ConfigError(sentence("provider.name", at=at))
    if "base_url" in table and web_address(table["base_url"], references=True) is None:
        raise ConfigError(sentence("provider.base_url_form", at=at, wanted=WANTED))
    known = {one.name: str(one.type) for one in fields(Quirks)}
    for quirk, value in table.get("quirks", {}).items():
        if quirk not in known:
            raise ConfigError(sentence("provider.no_quirk", at=at, quirk=quirk, known=", ".join(known)))
        if isinstance(value, bool) != (known[quirk] == "bool"):
            raise ConfigError(
                sentence("provider.quirk_type", at=at, quirk=quirk, type=known[quirk], value=value)
            )


def _refuse_foreign(file: Path, tables: CatalogTable) -> None:
    """Reject settings that an untrusted file must not have: they would take more than the keys it names.

    An access token that we fetch would go wherever the file sends it, and so would any variable in an
    address.
    """
    for name, table in tables.get("providers", {}).items():
        at = f"{file}: {_place(('providers', name))}"
        if "auth" in table:
            raise ConfigError(sentence("provider.auth", at=at))
        if "routes" in table:
            raise ConfigError(sentence("provider.routes", at=at))
        if "$" in table.get("base_url", ""):
            raise ConfigError(sentence("provider.base_url", at=at))


def _place(path: tuple[int | str, ...]) -> str:
    """Return the place in the file, as TOML writes it."""
    return ".".join(str(step) if re.fullmatch(r"[\w-]+", str(step)) else f'"{step}"' for step in path)


def _describe(fault: Mapping[str, Any]) -> str:
    if fault["type"] == "extra_forbidden":
        return "unknown key"
    message = str(fault["msg"]).removeprefix("Value error, ")
    return f"{message[0].lower()}{message[1:]}"


# ── merging ───────────────────────────────────────────────────────────────────────────────────────


def _merged(under: CatalogTable, over: CatalogTable, *, foreign: bool) -> CatalogTable:
    providers = dict(under.get("providers", {}))
    for name, table in over.get("providers", {}).items():
        held: ProviderTable = providers.get(name, {})
        if foreign and _moves(held, table):
            held = {**held, "keys": [], "auth": "key", "routes": {}}
        merged: dict[str, Any] = {
            **held,
            **table,
            "defaults": merge_traits(held.get("defaults", {}), table.get("defaults", {})),
            "quirks": {**held.get("quirks", {}), **table.get("quirks", {})},
            "models": merge_patterns(held.get("models", {}), table.get("models", {})),
        }
        providers[name] = cast("ProviderTable", merged)
    families = merge_patterns(under.get("families", {}), over.get("families", {}))
    return {"providers": providers, "families": families}


def _moves(held: ProviderTable, table: ProviderTable) -> bool:
    """Return whether a table sends requests to another address than before."""
    before = (held.get("base_url"), held.get("base_url_from"))
    return (table.get("base_url", before[0]), table.get("base_url_from", before[1])) != before


def merge_patterns(under: dict[str, TraitsTable], over: dict[str, TraitsTable]) -> dict[str, TraitsTable]:
    """Merge patterns, of which the first match counts. So those that win come first, extended by what is
    known."""
    merged = {pattern: merge_traits(first_fitting(under, pattern), table) for pattern, table in over.items()}
    return {**merged, **{pattern: table for pattern, table in under.items() if pattern not in over}}


def any_fits(patterns: Iterable[str], model: str) -> bool:
    return any(_fits(model.lower(), pattern) for pattern in patterns)


def first_fitting(patterns: Mapping[str, TraitsTable], model: str) -> TraitsTable:
    name = model.lower()
    fits = (table for pattern, table in patterns.items() if _fits(name, pattern))
    return next(fits, TraitsTable())


def _fits(name: str, pattern: str) -> bool:
    """Compare the literal prefix first: for most patterns, that decides without a regular expression."""
    start, rest = _divided(pattern)
    return name.startswith(start) and (rest == "*" or fnmatchcase(name, f"{start}{rest}"))


@cache
def _divided(pattern: str) -> tuple[str, str]:
    """Return the literal prefix of a pattern, and the rest."""
    start = re.split(r"[*?[]", pattern.lower(), maxsplit=1)[0]
    return start, pattern.lower()[len(start) :]


_LAYERED = ("options", "variants", "extra")


def merge_traits(*tables: TraitsTable) -> TraitsTable:
    """Merge tables. Later ones override earlier ones.

    Options, variants and extra fields are merged by field.
    """
    merged: dict[str, Any] = {}
    for table in cast("tuple[dict[str, Any], ...]", tables):
        for name, value in table.items():
            merged[name] = merge_options(merged.get(name, {}), value) if name in _LAYERED else value
    return cast("TraitsTable", merged)
