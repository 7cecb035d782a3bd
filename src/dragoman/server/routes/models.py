"""Route to list the models: those of providers, those that run on this machine, and what is missing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from fastapi import APIRouter

from dragoman.errors import ConfigError
from dragoman.providers.catalog import Provider
from dragoman.providers.discover import LocalServer, discover
from dragoman.providers.models import Models
from dragoman.providers.sign_in import reach
from dragoman.server import shapes
from dragoman.server.context import Person, TheContext

router = APIRouter(tags=["models"])
_FRESH = 15.0  # seconds for which we believe what we found on this machine


@router.get("/models")
async def models(context: TheContext, person: Person) -> shapes.ModelList:
    """What can answer, whether it could now, and what is missing if not. Those that are ready come first."""
    find = context.runtime.services.model
    if not isinstance(find, Models):
        only = find(None)
        return shapes.ModelList(only.name, [shapes.ModelView(only.name, "", only.name, only.context)])
    views = {view.name: view for view in _all(find, await _nearby())}
    default = context.model.name if context.model is not None else find.default
    if default is not None:
        found = views.get(default) or _view(find, *find.catalog.find(default), missing=None)
        views[default] = replace(
            found, name=default, note=context.model.note if context.model is not None else None
        )
    return shapes.ModelList(default, sorted(views.values(), key=lambda view: not view.ready))


def _all(find: Models, nearby: Sequence[LocalServer]) -> Iterator[shapes.ModelView]:
    """Every model that is known by its whole name."""
    providers = find.catalog.providers
    for server in nearby:
        for model in server.models:
            if server.provider in providers:
                yield _view(find, providers[server.provider], model, missing=None)
    for provider in providers.values():
        if provider.local:
            continue  # what runs is known, and what does not run cannot answer
        missing = _missing(find, provider)
        for model in provider.models:
            if not {"*", "?"} & set(model):
                yield _view(find, provider, model, missing)


def _view(find: Models, provider: Provider, model: str, missing: str | None) -> shapes.ModelView:
    traits = find.catalog.traits(provider, model)
    return shapes.ModelView(
        f"{provider.name}/{model}",
        provider.title or provider.name,
        model,
        traits.context,
        list(traits.modalities),
        traits.tools,
        note=traits.note or None,
        ready=missing is None,
        missing=missing,
    )


def _missing(find: Models, provider: Provider) -> str | None:
    """What keeps a provider's models from answering, in words."""
    try:
        reach(provider, find.keys)
    except ConfigError as error:
        return str(error)
    return None


_found: tuple[float, list[LocalServer]] = (-_FRESH, [])


async def _nearby() -> list[LocalServer]:
    """The servers of this machine, asked now and then."""
    global _found  # noqa: PLW0603 - one machine, one memory of it
    if time.monotonic() - _found[0] > _FRESH:
        _found = (time.monotonic(), await discover())
    return _found[1]
