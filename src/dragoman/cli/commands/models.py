"""Run `dragoman models`: list the catalog, compare it with providers' lists, and show what servers
refused."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, cast

from pydantic import JsonValue
from rich.markup import escape
from rich.table import Table

from dragoman.cli.flags.setup import ModelsFlags
from dragoman.cli.folder_trust import settings_for
from dragoman.cli.terminal.tables import as_markup, open_console
from dragoman.cli.terminal.text import print_json
from dragoman.config.build import catalog_of
from dragoman.errors import ConfigError, DragomanError
from dragoman.messages.media import CHAT
from dragoman.providers.catalog import Catalog, Provider, Traits
from dragoman.providers.facts import PAST, ModelFacts, Price, as_of, facts_of, known_models, library, price_of
from dragoman.providers.lessons import FILE, Lesson, Lessons
from dragoman.providers.listing import ListedModel, LocalServer, discover
from dragoman.providers.listing import list_models as list_from_provider
from dragoman.providers.local.box import PROVIDER
from dragoman.providers.local.downloaded import downloads
from dragoman.providers.local.server import can_serve
from dragoman.providers.sign_in import Key, Keys, describe_auth, reach
from dragoman.redaction import redact_text
from dragoman.stored_keys import data_folder
from dragoman.web_address import WANTED, web_address
from dragoman.wire.http_client.client import HttpClient
from dragoman.wire.learned import in_words

AT_ONCE = 8  # number of providers that are asked at the same time


@dataclass(slots=True, frozen=True)
class ModelEntry:
    """A model, or all models whose names begin alike."""

    pattern: str
    traits: Traits
    price: Price | None


async def show_models(flags: ModelsFlags) -> None:
    if flags.learned or flags.forget:
        (_forget_lessons if flags.forget else _show_lessons)(flags.providers or [], as_json=flags.json)
    elif flags.check or flags.base_url is not None:
        await _check_models(flags)
    else:
        await _list_models(flags)


async def _list_models(flags: ModelsFlags) -> None:
    catalog, keys, names = catalog_of(settings_for(flags)), Keys(), flags.providers or []
    check_names(names, catalog)
    servers = {server.provider: server for server in await discover()}
    listed = {
        name: (keys.find(provider), _entries(catalog, provider, servers.get(name)))
        for name, provider in catalog.providers.items()
        if not names or name in names
    }
    if flags.json:
        providers: list[JsonValue] = [
            _report(catalog.providers[name], *found, servers.get(name)) for name, found in listed.items()
        ]
        print_json({"providers": providers}, indent=2)
    else:
        _show(catalog, listed, servers, every=bool(names) or flags.all)


def _entries(catalog: Catalog, provider: Provider, server: LocalServer | None) -> list[ModelEntry]:
    """Return the models in the catalog, or those that a local server lists."""
    patterns: Sequence[str] = server.models if server is not None else [*provider.models]
    if provider.name == PROVIDER:
        patterns = [*(one.name for one in downloads()), *patterns]
    return [
        ModelEntry(
            pattern,
            catalog.traits(provider, pattern.replace("*", "x")),
            _price(provider, pattern.rstrip("*").rstrip("-.")),
        )
        for pattern in patterns
    ]


def _price(provider: Provider, model: str) -> Price | None:
    """Return the price from the price list, or otherwise from the model's facts."""
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
    catalog: Catalog,
    listed: dict[str, tuple[Key | None, list[ModelEntry]]],
    servers: dict[str, LocalServer],
    *,
    every: bool,
) -> None:
    """Print the models that can answer now first. For other providers, print only the access, unless `every`
    is set."""
    console = open_console()

    def rank(name: str) -> int:
        provider, key = catalog.providers[name], listed[name][0]
        here = name in servers or (name == PROVIDER and can_serve())
        return 0 if here else 1 if key is not None or describe_auth(provider, Keys()) is not None else 2

    ranks = {name: rank(name) for name in listed}
    for name in sorted(listed, key=ranks.__getitem__):
        key, found = listed[name]
        provider = catalog.providers[name]
        if ranks[name] == 2 and not every:
            found = []
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
        "\n[dim]Each with its context in tokens, or what it does if it does not talk, what it takes besides "
        "text, and the price of a million tokens in and out, as far as it is known. Other names of these "
        "providers work too. `dragoman models --all` lists the models of all providers. `dragoman models "
        "get` downloads one.[/]"
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
    if "million_input" in units and "million_output" in units:
        return f"${units['million_input']:g} / ${units['million_output']:g}"
    return f"${one.price.input:g} / ${one.price.output:g}" if one.price is not None else ""


def _describe_access(provider: Provider, key: Key | None, server: LocalServer | None) -> str:
    if provider.name == PROVIDER:
        return "[green]served here[/]" if can_serve() else "[dim]pip install 'dragoman\\[local]' serves it[/]"
    if provider.local:
        return "[green]running here[/]" if server is not None else "[dim]not running[/]"
    if key is not None:
        return f"[green]key found[/] in the {key.source} ({key.name})"
    if (signs := describe_auth(provider, Keys())) is not None:
        return f"[green]{escape(signs)}[/]"
    return f"[yellow]no key[/]: set {' or '.join(provider.keys)}" if provider.keys else "needs no key"


@dataclass(slots=True, frozen=True)
class CheckedModel:
    """A model, compared with its provider's list. `state` is None if the provider was not asked."""

    name: str
    context: int | None
    facts: ModelFacts | None
    state: Literal["listed", "not listed", "new"] | None
    their_context: int | None = None


@dataclass(slots=True, frozen=True)
class CheckedProvider:
    """A provider with the content of its list, or the reason why there is none."""

    provider: Provider
    models: list[CheckedModel]
    access: str | None  # the credentials for it
    problem: str | None = None


async def _check_models(flags: ModelsFlags) -> None:
    """Check all providers, the named ones, or a server that is not in the catalog."""
    catalog, keys, names = catalog_of(settings_for(flags)), Keys(), flags.providers or []
    base_url, api_key = flags.base_url, flags.api_key
    if base_url is not None:
        if web_address(base_url, references=True) is None:
            raise ConfigError(f"Invalid --base-url {base_url!r}: {WANTED}")
        who = names[0] if names else "server"
        provider = Provider(who, who, base_url, local=True)
        catalog, names = catalog.with_provider(provider), [who]
        keys = Keys({who: api_key} if api_key else None, environment={}, use_keyring=False)
    check_names(names, catalog)
    checked = await _check_all(catalog, keys, names or [*catalog.providers])
    if base_url is not None and (problem := checked[0].problem) is not None:
        raise ConfigError(problem)  # This was the only provider to check.
    if flags.json:
        print_json({"as_of": as_of(), "providers": [_report_checked(one) for one in checked]}, indent=2)
    else:
        _show_checked(checked)


def check_names(names: Sequence[str], catalog: Catalog) -> None:
    if unknown := [name for name in names if name not in catalog.providers]:
        raise ConfigError(f"Unknown provider {unknown[0]!r}. Run `dragoman models` to list providers.")


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
            listed = await list_from_provider(client, endpoint)
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


# ── output ────────────────────────────────────────────────────────────────────────────────────────


def _report_checked(checked: CheckedProvider) -> JsonValue:
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


def _show_checked(checked: Sequence[CheckedProvider]) -> None:
    console = open_console()
    today = datetime.now(UTC).date().isoformat()
    for one in checked:
        console.print(
            f"[bold]{one.provider.name}[/]  {as_markup(one.provider.title)}: {as_markup(_about(one))}"
        )
        width = max((len(model.name) for model in one.models), default=0)
        for model in one.models:
            name = as_markup(f"{one.provider.name}/{model.name}") + " " * (width - len(model.name))
            known = (_their_side(model), _price_of_facts(model.facts), _dates(model.facts, today))
            line = f"  {name}  {format_size(model.context):>5}  {'  '.join(filter(None, known))}"
            # one line for each model, so that the output can be searched
            console.print(line.rstrip(), soft_wrap=True)
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


def _price_of_facts(facts: ModelFacts | None) -> str:
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


def _show_lessons(providers: Sequence[str], *, as_json: bool) -> None:
    found = [one for one in _lessons().all() if not providers or one.model.partition("/")[0] in providers]
    if as_json:
        print_json({"lessons": [_report_lesson(one) for one in found]}, indent=2)
        return
    console = open_console()
    for one in found:
        console.print(
            f"[bold]{as_markup(one.model)}[/] at {as_markup(one.host)} {as_markup(in_words(one.word))}"
        )
        console.print(f"  [dim]{_describe_age(one)}[/]")
    if not found:
        console.print("No server has refused anything.")


def _forget_lessons(providers: Sequence[str], *, as_json: bool) -> None:
    count = _lessons().forget(providers)
    if as_json:
        print_json({"forgotten": count})
    else:
        open_console().print(f"{count} forgotten: what they were about is sent again.")


def _lessons() -> Lessons:
    return Lessons(data_folder() / FILE)


def _describe_age(lesson: Lesson) -> str:
    heard = f"refused {lesson.times} times, last on {_day(lesson.last)}"
    if not lesson.is_sure:
        return f"refused once, on {_day(lesson.last)}: counts from the second time on"
    if lesson.until < time.time():
        return f"{heard}: sent again now"
    return f"{heard}: sent again from {_day(lesson.until)} on"


def _report_lesson(lesson: Lesson) -> dict[str, JsonValue]:
    return {
        "model": lesson.model,
        "host": lesson.host,
        "lesson": lesson.word,
        "text": in_words(lesson.word),
        "times": lesson.times,
        "last": _day(lesson.last),
        "counts": lesson.is_sure and lesson.until > time.time(),
        "until": _day(lesson.until) if lesson.is_sure else None,
    }


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).date().isoformat()
