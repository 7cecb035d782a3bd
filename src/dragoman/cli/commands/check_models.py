"""`dragoman models --check`: what is known of each model, beside what its provider's own list says of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from pydantic import JsonValue

from dragoman.cli.terminal.tables import as_markup, open_console
from dragoman.cli.terminal.text import print_json
from dragoman.config.build import catalog_of
from dragoman.config.settings import Settings
from dragoman.errors import ConfigError, DragomanError
from dragoman.providers.catalog import Catalog, Provider
from dragoman.providers.facts import PAST, ModelFacts, as_of, facts_of, known_models
from dragoman.providers.listing import ListedModel, list_models
from dragoman.providers.local.box import PROVIDER
from dragoman.providers.sign_in import Keys, describe_auth, reach
from dragoman.redaction import redact_text
from dragoman.web_address import WANTED, web_address
from dragoman.wire.http_client.client import HttpClient

AT_ONCE = 8  # providers that are asked at the same time


@dataclass(slots=True, frozen=True)
class CheckedModel:
    """A model, as we know it and as its provider does. `state` is None where nobody was asked."""

    name: str
    context: int | None
    facts: ModelFacts | None
    state: Literal["listed", "not listed", "new"] | None
    their_context: int | None = None


@dataclass(slots=True, frozen=True)
class CheckedProvider:
    """A provider, what its list says, or why there is none."""

    provider: Provider
    models: list[CheckedModel]
    access: str | None  # what one signs in with
    problem: str | None = None


def check_models(
    settings: Settings,
    *,
    names: Sequence[str],
    as_json: bool,
    base_url: str | None = None,
    api_key: str | None = None,
) -> None:
    """Look at all providers, those that are named, or a server that nobody knows."""
    catalog, keys = catalog_of(settings), Keys()
    if base_url is not None:
        if web_address(base_url, references=True) is None:
            raise ConfigError(f"--base-url {base_url!r}: {WANTED}")
        who = names[0] if names else "server"
        provider = Provider(who, who, base_url, local=True)
        catalog, names = catalog.with_provider(provider), [who]
        keys = Keys({who: api_key} if api_key else None, environment={}, use_keyring=False)
    check_names(names, catalog)
    checked = asyncio.run(_check_all(catalog, keys, names or [*catalog.providers]))
    if base_url is not None and (problem := checked[0].problem) is not None:
        raise ConfigError(problem)  # nothing else was asked for
    if as_json:
        print_json({"as_of": as_of(), "providers": [_report(one) for one in checked]}, indent=2)
    else:
        _show(checked)


def check_names(names: Sequence[str], catalog: Catalog) -> None:
    if unknown := [name for name in names if name not in catalog.providers]:
        raise ConfigError(f"there is no provider {unknown[0]!r}: `dragoman models` lists those there are")


async def _check_all(catalog: Catalog, keys: Keys, names: Sequence[str]) -> list[CheckedProvider]:
    gate = asyncio.Semaphore(AT_ONCE)

    async def check(client: HttpClient, provider: Provider) -> CheckedProvider:
        async with gate:
            return await _check(client, catalog, keys, provider)

    async with HttpClient() as client:
        asked = (check(client, catalog.providers[name]) for name in names if name != PROVIDER)
        return await asyncio.gather(*asked)


async def _check(client: HttpClient, catalog: Catalog, keys: Keys, provider: Provider) -> CheckedProvider:
    access = describe_auth(provider, keys)
    listed: list[ListedModel] | None = None
    problem: str | None = None
    if access is not None or provider.local:
        secrets: tuple[str, ...] = ()
        try:
            endpoint = reach(provider, keys)
            secrets = endpoint.secrets
            listed = await list_models(client, endpoint)
        except DragomanError as error:
            problem = redact_text(str(error), secrets)
    return CheckedProvider(provider, [*_compare(catalog, provider, listed)], access, problem)


def _compare(
    catalog: Catalog, provider: Provider, listed: Sequence[ListedModel] | None
) -> Iterator[CheckedModel]:
    theirs: Mapping[str, ListedModel] = {model.id.lower(): model for model in listed or ()}
    literal = [pattern for pattern in provider.models if not {"*", "?", "["} & set(pattern)]
    ours = sorted({*known_models(provider.facts), *(name.lower() for name in literal)})
    spelled = {name.lower(): name for name in literal}
    for name in ours:
        shown = theirs[name].id if name in theirs else spelled.get(name, name)
        yield CheckedModel(
            shown,
            catalog.traits(provider, shown).context,
            facts_of(provider.facts, shown),
            None if listed is None else "listed" if name in theirs else "not listed",
            theirs[name].context if name in theirs else None,
        )
    for name, model in theirs.items():
        if name not in ours:
            context = catalog.traits(provider, model.id).context
            yield CheckedModel(model.id, context, facts_of(provider.facts, model.id), "new", model.context)


# ── what is printed ───────────────────────────────────────────────────────────────────────────────


def _report(checked: CheckedProvider) -> JsonValue:
    models: list[JsonValue] = [
        {
            "name": f"{checked.provider.name}/{model.name}",
            "context": model.context,
            "their_context": model.their_context,
            "state": model.state,
            "output": model.facts.output if model.facts else None,
            "modalities": [*(model.facts.modalities or ())] if model.facts else None,
            "price": {"input": model.facts.input_price, "output": model.facts.output_price}
            if model.facts
            else None,
            "released": model.facts.released if model.facts else None,
            "retires": model.facts.retires if model.facts else None,
        }
        for model in checked.models
    ]
    return {
        "name": checked.provider.name,
        "access": checked.access,
        "problem": checked.problem,
        "models": models,
    }


def _show(checked: Sequence[CheckedProvider]) -> None:
    console = open_console()
    today = datetime.now(UTC).date().isoformat()
    for one in checked:
        console.print(
            f"[bold]{one.provider.name}[/]  {as_markup(one.provider.title)}: {as_markup(_about(one))}"
        )
        width = max((len(model.name) for model in one.models), default=0)
        for model in one.models:
            name = as_markup(f"{one.provider.name}/{model.name}") + " " * (width - len(model.name))
            known = (_their_side(model), _price(model.facts), _dates(model.facts, today))
            line = f"  {name}  {format_size(model.context):>5}  {'  '.join(filter(None, known))}"
            console.print(line.rstrip(), soft_wrap=True)  # a line a model, to be searched
    console.print(
        f"\n[dim]Context as known on {as_of()}; what the provider's own list says, where it was asked; the "
        "price of a million tokens in and out; when it ends. `make facts` brings newer facts.[/]"
    )


def _about(checked: CheckedProvider) -> str:
    if checked.problem is not None:
        return checked.problem
    if checked.access is None and not checked.provider.local:
        return f"not asked, without {' or '.join(checked.provider.keys) or 'a key'}"
    found = [model for model in checked.models if model.state in ("listed", "new")]
    gone = [model for model in checked.models if model.state == "not listed"]
    return f"{len(found)} listed there, {len(gone)} of ours not"


def _their_side(model: CheckedModel) -> str:
    if model.state == "not listed":
        return "[yellow]not listed[/]"
    if model.their_context is not None and model.their_context != model.context:
        return f"[yellow]{model.state}, {format_size(model.their_context)} there[/]"
    return model.state or ""


def _price(facts: ModelFacts | None) -> str:
    if facts is None or facts.input_price is None or facts.output_price is None:
        return ""
    return f"${facts.input_price:g} / ${facts.output_price:g}"


def _dates(facts: ModelFacts | None, today: str) -> str:
    if facts is None or facts.retires is None:
        return ""
    if facts.is_dead(today):
        return "[red]retired[/]" if facts.retires == PAST else f"[red]retired {facts.retires}[/]"
    return f"until {facts.retires}"


def format_size(tokens: int | None) -> str:
    if tokens is None:
        return ""
    return f"{tokens / 1e6:.2g}M" if tokens >= 1_000_000 else f"{tokens // 1000}k"
