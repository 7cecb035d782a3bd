"""`dragoman models`: the catalog as a list, with context, prices, keys, and the servers that run here."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from pydantic import JsonValue
from rich.markup import escape
from rich.table import Table

from dragoman.cli.commands.check_models import check_names, format_size
from dragoman.cli.terminal.tables import as_markup, open_console
from dragoman.cli.terminal.text import print_json
from dragoman.config.build import catalog_of
from dragoman.config.settings import Settings
from dragoman.messages.media import CHAT
from dragoman.providers.catalog import Catalog, Provider, Traits
from dragoman.providers.facts import Price, facts_of, library, price_of
from dragoman.providers.listing import LocalServer, discover
from dragoman.providers.sign_in import Key, Keys, describe_auth
from dragoman.redaction import redact_text


@dataclass(slots=True, frozen=True)
class ModelEntry:
    """A model, or all whose names begin alike."""

    pattern: str
    traits: Traits
    price: Price | None


def list_models(settings: Settings, *, names: Sequence[str] = (), as_json: bool) -> None:
    catalog, keys = catalog_of(settings), Keys()
    check_names(names, catalog)
    servers = {server.provider: server for server in asyncio.run(discover())}
    listed = {
        name: (keys.find(provider), _entries(catalog, provider, servers.get(name)))
        for name, provider in catalog.providers.items()
        if not names or name in names
    }
    if as_json:
        providers: list[JsonValue] = [
            _report(catalog.providers[name], *found, servers.get(name)) for name, found in listed.items()
        ]
        print_json({"providers": providers}, indent=2)
    else:
        _show(catalog, listed, servers)


def _entries(catalog: Catalog, provider: Provider, server: LocalServer | None) -> list[ModelEntry]:
    """The models the catalog knows, or those a server on this machine lists."""
    patterns = server.models if server is not None else provider.models
    return [
        ModelEntry(
            pattern,
            catalog.traits(provider, pattern.replace("*", "x")),
            _price(provider, pattern.rstrip("*").rstrip("-.")),
        )
        for pattern in patterns
    ]


def _price(provider: Provider, model: str) -> Price | None:
    """By the price list, or else by the facts."""
    if (price := price_of(provider.prices, model)) is not None:
        return price
    facts = facts_of(provider.facts, model)
    if facts is None or facts.input_price is None or facts.output_price is None:
        return None
    return Price(facts.input_price, facts.output_price)


def _report(
    provider: Provider, key: Key | None, listed: list[ModelEntry], server: LocalServer | None
) -> dict[str, JsonValue]:
    return {
        "name": provider.name,
        "title": provider.title,
        "wire": provider.wire,
        "base_url": redact_text(provider.base_url or "") or None,
        "local": provider.local,
        "running": server is not None if provider.local else None,
        "key": {
            "variables": [*provider.keys],
            "needed": bool(provider.keys) and not provider.local,
            "found": key.source if key is not None else None,
        },
        "signs_in": describe_auth(provider, Keys()),
        "models": [
            {
                "name": f"{provider.name}/{one.pattern}",
                "type": one.traits.type,
                "context": one.traits.context,
                "modalities": [*one.traits.modalities],
                "tools": one.traits.tools,
                "reasoning": one.traits.reasoning,
                "price": {"input": one.price.input, "output": one.price.output} if one.price else None,
                "unit_prices": cast("dict[str, JsonValue]", {**one.traits.unit_prices}),
            }
            for one in listed
        ],
    }


def _show(
    catalog: Catalog, listed: dict[str, tuple[Key | None, list[ModelEntry]]], servers: dict[str, LocalServer]
) -> None:
    console = open_console()
    for name, (key, found) in listed.items():
        provider = catalog.providers[name]
        console.print(
            f"[bold]{name}[/]  {escape(provider.title)}: {_describe_access(provider, key, servers.get(name))}"
        )
        table = Table(box=None, show_header=False, padding=(0, 1))
        for no_wrap in (True, True, False, False, True):
            table.add_column(no_wrap=no_wrap, overflow="fold")
        for one in found:
            table.add_row(
                " " + as_markup(f"{name}/{one.pattern}"),
                format_size(one.traits.context) if one.traits.type == CHAT else one.traits.type,
                ", ".join(taken for taken in one.traits.modalities if taken != "text"),
                "" if one.traits.tools == "native" else f"calls as {one.traits.tools}",
                _describe_price(one),
            )
        if found:
            console.print(table)
    console.print(
        "\n[dim]Each with its context in tokens, or what it does if it does not talk, what it takes beside "
        "text, and the price of a million tokens in and out, as far as it is known. Other names of these "
        "providers work too.[/]"
    )
    if library() is None:
        console.print("[dim]For prices install dragoman\\[prices].[/]")


def _describe_price(one: ModelEntry) -> str:
    units = one.traits.unit_prices
    if "image" in units:
        return f"${units['image']:g} an image"
    if "minute" in units:
        return f"${units['minute']:g} a minute"
    if "million_characters" in units:
        return f"${units['million_characters']:g} a million characters"
    return f"${one.price.input:g} / ${one.price.output:g}" if one.price is not None else ""


def _describe_access(provider: Provider, key: Key | None, server: LocalServer | None) -> str:
    if provider.local:
        return "[green]running here[/]" if server is not None else "[dim]not running[/]"
    if key is not None:
        return f"[green]key found[/] in the {key.source} ({key.name})"
    if (signs := describe_auth(provider, Keys())) is not None:
        return f"[green]{escape(signs)}[/]"
    return f"[yellow]no key[/]: set {' or '.join(provider.keys)}" if provider.keys else "needs no key"
