"""Define the route to list models: those of providers, those on this machine, and what each one lacks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, cast

from fastapi import Query

from dragoman.errors import BadRequest, ConfigError, DragomanError, NotFound
from dragoman.messages.media import type_of
from dragoman.providers.catalog import Provider
from dragoman.providers.facts import Price, price_of
from dragoman.providers.listing import LocalServer, discover, list_models
from dragoman.providers.local.box import PROVIDER
from dragoman.providers.local.downloaded import downloads
from dragoman.providers.local.server import can_serve
from dragoman.providers.models import Models
from dragoman.providers.sign_in import reach
from dragoman.redaction import redact_text
from dragoman.sentences import sentence
from dragoman.server import shapes
from dragoman.server.context import TheContext, api_router
from dragoman.wire.options import option_schemas

router = api_router("models")
_FRESH = 15.0  # seconds that the list of local servers stays cached


@router.get("/models")
async def models(context: TheContext, ready: Annotated[bool, Query()] = False) -> shapes.ModelList:
    """List all models and what each one lacks, usable ones first. With `ready`, list only usable ones,
    without the schemas of their options."""
    find = context.runtime.services.model
    if not isinstance(find, Models):
        only = find(None)
        view = shapes.ModelView(only.name, "", only.name, only.context, type=type_of(only))
        return shapes.ModelList(only.name, [view], options=option_schemas())
    nearby = await _nearby()
    known = await asyncio.to_thread(lambda: list(_all(find, nearby)))  # Keyrings and price lists are slow.
    views = {view.name: view for view in known}
    current = await context.current_model()
    default = current.name if current is not None else find.default
    if default is not None:
        found = views.get(default) or _view(find, *find.catalog.find(default), missing=None)
        views[default] = replace(found, name=default, note=current.note if current is not None else None)
    providers = await asyncio.to_thread(
        lambda: [_provider_view(find, provider) for provider in find.catalog.providers.values()]
    )
    if ready:
        answering = [view for view in views.values() if view.ready or view.name == default]
        return shapes.ModelList(default, answering, [one for one in providers if one.ready])
    ready_first = sorted(views.values(), key=lambda view: not view.ready)
    return shapes.ModelList(default, ready_first, providers, option_schemas())


@router.get("/models/{provider}")
async def models_of(context: TheContext, provider: str) -> shapes.ModelList:
    """List a provider's models, requested from the provider now."""
    find = context.runtime.services.model
    if not isinstance(find, Models) or provider not in find.catalog.providers:
        raise NotFound("provider", provider)
    named = find.catalog.providers[provider]
    secrets: tuple[str, ...] = ()
    try:
        endpoint = reach(named, find.keys)
        secrets = endpoint.secrets
        listed = await list_models(find.client, endpoint)
        find.note_types({f"{provider}/{one.id}": one.type for one in listed if one.type is not None})
    except DragomanError as error:
        raise BadRequest(
            redact_text(sentence("models.failed", provider=named.title or provider, error=error), secrets)
        ) from None
    views = await asyncio.to_thread(
        lambda: [_view(find, named, one.id, missing=None, context=one.context) for one in listed]
    )
    return shapes.ModelList(find.default, views)


def _provider_view(find: Models, provider: Provider) -> shapes.ProviderView:
    missing = _missing(find, provider)
    title = provider.title or provider.name
    local = provider.local or provider.name == PROVIDER
    return shapes.ProviderView(provider.name, title, missing is None, missing, local, provider.custom)


def _all(find: Models, nearby: Sequence[LocalServer]) -> Iterator[shapes.ModelView]:
    """Yield every model that is known by its full name."""
    providers = find.catalog.providers
    for server in nearby:
        for model in server.models:
            if server.provider in providers:
                yield _view(find, providers[server.provider], model, missing=None)
    unserved = None if can_serve() else sentence("local.needs_package")
    for one in downloads():
        yield _view(find, providers[PROVIDER], one.name, unserved)
    for provider in providers.values():
        missing = _missing(find, provider)
        # A local model that is not running cannot answer. A model that the settings name is assumed to run.
        for model in provider.own if provider.local else provider.models:
            if not {"*", "?"} & set(model):
                yield _view(find, provider, model, missing)


def _view(
    find: Models, provider: Provider, model: str, missing: str | None, context: int | None = None
) -> shapes.ModelView:
    traits = find.traits(provider, model)
    return shapes.ModelView(
        f"{provider.name}/{model}",
        provider.title or provider.name,
        model,
        traits.context or context,
        list(traits.modalities) if traits.listed else [],  # Otherwise, the modalities are unknown.
        traits.tools,
        note=traits.note or None,
        ready=missing is None,
        missing=missing,
        price=Price(0, 0) if provider.is_free(model) else price_of(provider.prices, model),
        type=traits.type,
        unit_prices=cast("dict[str, float]", {**traits.unit_prices}),
    )


def _missing(find: Models, provider: Provider) -> str | None:
    """Return a sentence that says why a provider's models cannot answer, or None."""
    try:
        reach(provider, find.keys)
    except ConfigError as error:
        return str(error)
    return None


_found: tuple[float, list[LocalServer]] = (-_FRESH, [])


async def _nearby() -> list[LocalServer]:
    """Return the local model servers, from a short-lived cache."""
    global _found  # noqa: PLW0603 - one machine, one memory of it
    if time.monotonic() - _found[0] > _FRESH:
        _found = (time.monotonic(), await discover())
    return _found[1]
