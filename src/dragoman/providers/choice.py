"""Chooses a model: the one that is named, one of a server that runs here, or one whose key is set."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from dragoman.errors import ConfigError
from dragoman.messages.media import CHAT
from dragoman.providers.catalog import Catalog
from dragoman.providers.listing import LocalServer, discover
from dragoman.providers.local.box import IN_THE_BOX, PROVIDER
from dragoman.providers.local.downloaded import newest
from dragoman.providers.local.server import can_serve
from dragoman.providers.sign_in import Keys
from dragoman.sentences import sentence


class NoModel(ConfigError):
    """Nothing on this machine or in the settings can answer: somebody has to set a model up."""


@dataclass(slots=True, frozen=True)
class ModelChoice:
    """A model by name, and the reason in words: "OPENAI_API_KEY is set"."""

    name: str
    reason: str


async def choose(
    named: str | None,
    *,
    catalog: Catalog,
    keys: Keys,
    servers: Callable[[], Awaitable[Sequence[LocalServer]]] = discover,
    boxed: Callable[[], bool] = can_serve,
) -> ModelChoice:
    """The model that is named; else one of a server that runs here; else one of a provider whose key is
    there, in the catalog's order; else the last one that was downloaded here; else the bundled model. NoModel
    where there is none of these.

    A scripted model is never chosen: who wants one names it.
    """
    if named:
        return ModelChoice(named, sentence("model.named"))
    for server in await servers():
        talking = [name for name in server.models if _talks(catalog, server.provider, name)]
        if talking:
            title = catalog.providers[server.provider].title if server.provider in catalog.providers else ""
            name = f"{server.provider}/{talking[0]}"
            return ModelChoice(
                name, sentence("model.runs", provider=title or server.provider, address=server.base_url)
            )
    for provider in catalog.providers.values():
        if provider.local or provider.default is None:
            continue
        if (key := keys.find(provider)) is not None:
            where = "is set" if key.source == "environment" else "is there"
            reason = f"{key.name} {where}" + (" in the keyring" if key.source == "keyring" else "")
            return ModelChoice(f"{provider.name}/{provider.default}", reason)
    if boxed():
        if (fetched := newest()) is not None:
            return ModelChoice(f"{PROVIDER}/{fetched.name}", sentence("model.downloaded"))
        return ModelChoice(f"{PROVIDER}/{IN_THE_BOX}", sentence("model.box_chosen"))
    raise NoModel(sentence("model.none"))


def _talks(catalog: Catalog, provider: str, model: str) -> bool:
    """A server may have others: those that listen or speak do not answer."""
    known = catalog.providers.get(provider)
    return known is None or catalog.traits(known, model).type == CHAT
